/*
 * consumer.c - a program that uses an installed blitz. C11, and C++17 as it stands.
 *
 * Prints the version of the library it runs with; fails if headers and library do not fit, or if
 * the inline code of the headers does not find the library's worker.
 */
#include <stdio.h>

#include <blitz.h>

/* Macros and inline functions of the headers compile in a user's program, as C++ too. */
struct count {
    blitz_frame frame;
    blitz_sleep_future nap;
    int left;
};

static blitz_poll count_down(void *state, blitz_cx *cx)
{
    struct count *me = (struct count *)state;
    int rc;
    BLITZ_BEGIN(&me->frame, cx);
    while (me->left > 0) {
        BLITZ_SLEEP(rc, &me->nap, BLITZ_US);
        if (rc < 0)
            BLITZ_RETURN(rc);
        BLITZ_YIELD();
        me->left--;
    }
    BLITZ_END(4);
}

static int run(void *arg)
{
    struct count state = {{0, 0}, {{NULL}, 0, {NULL}}, 3};
    blitz_task *t;
    int result = -1;
    (void)arg;
    if (blitz_spawn_poll(count_down, &state, sizeof state, NULL, &t) != 0)
        return 5;
    blitz_task_join(t, &result, BLITZ_FOREVER);
    return result == 4 ? 0 : 6;
}

static int fib(void *arg)
{
    intptr_t n = (intptr_t)arg;
    blitz_job job;
    if (n < 2)
        return (int)n;
    blitz_fork(&job, fib, (void *)(n - 2));
    int left = fib((void *)(n - 1));
    return left + blitz_join(&job);
}

/* The inline code and the library mean the same worker. */
static int fib_on_a_worker(void *arg)
{
    struct blitz_worker_ *w = blitz_worker_();
    return w != NULL && w == blitz_worker_slow_() ? fib(arg) : -1;
}

int main(void)
{
    if (blitz_worker_() != NULL || fib((void *)10) != 55)
        return 4;
    if (blitz_run(fib_on_a_worker, (void *)20, NULL) != 6765)
        return 5;
    if (blitz_log_set(NULL, NULL, BLITZ_LOG_WARN) != 0)
        return 2;
    if (!blitz_version_ok())
        return 3;
    if (blitz_run(run, NULL, NULL) != 0)
        return 4;
    printf("%s\n", blitz_version_string());
    return 0;
}
