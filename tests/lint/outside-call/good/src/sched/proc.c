/* proc.c - a fixture of the lint tests, and more words to make it an essay. */
/* clock_gettime() and usleep() are told of here, not called. */
struct future {
    int (*poll)(void *self);
    bool wait, pause;
};
int drive(struct future *f, struct timer *timer)
{
    const char *text = "pthread_create(\"/* usleep(1) */\") and 'sleep(1)'";
    char quote = '"'; // random()
    f->wait = os_now(timer->clock) > 0; /* sleep(1) */
    __asm__ volatile("mov %0, %1" ::: "memory");
    return f->poll(f) + bz_wait(timer) + timer->time(text, quote) + f->pause;
}
