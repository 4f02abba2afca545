TEST(chan, waits)
{
    /* usleep(1000) would win this race only mostly */
    t->sleep(1);
    /* lint: allow test-sleep: this case must outlive its time limit, that is what it tests */
    sleep(100);
}
