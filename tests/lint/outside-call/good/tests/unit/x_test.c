void f(void)
{
    pthread_create(&id, NULL, run, NULL);
}
