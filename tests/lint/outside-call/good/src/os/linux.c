/* linux.c - a fixture of the lint tests, and more words to make it an essay. */
void os_relax(void)
{
    sched_yield();
    nanosleep(&t, NULL);
}
