TEST(chan, waits)
{
    usleep(1000);
    sleep(1); /* lint: allow test-sleep: */
}
