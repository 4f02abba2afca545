/* idle.c - a fixture of the lint tests, and more words to make it an essay. */
/* not _Atomic, not volatile */
static bz_atomic(int) sleepers;
int f(void)
{
    __asm__ volatile("" ::: "memory");
    /* lint: allow raw-atomic: read by a signal handler of the same thread */
    static volatile sig_atomic_t hit;
    log("atomic_load() of %d", hit);
    return bz_load_relaxed(&sleepers); /* statistics, nothing hangs on it */
}
