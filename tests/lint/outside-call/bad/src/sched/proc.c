/* proc.c - a fixture of the lint tests, and more words to make it an essay. */
uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    usleep(10);
    while (!ready)
        __builtin_ia32_pause();
    __asm__ volatile("pause" ::: "memory");
    pthread_mutex_t lock;
    long seed = time(NULL) + random();
    sched_yield();
    return poll(fds, 1, -1) + (uint64_t)syscall(202, &word);
}
void (*wait_fn)(void *) = epoll_wait;
