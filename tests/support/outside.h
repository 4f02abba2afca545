/*
 * outside.h - computations for plain threads that run tasks as guests.
 *
 *     int (*const *fn)(void *) = t_visits;      each returns its argument, on any runtime
 */
#ifndef T_OUTSIDE_H
#define T_OUTSIDE_H

#include "harness.h"

#include "blitz.h"

static inline int t_fib(void *arg)
{
    intptr_t n = (intptr_t)arg;
    blitz_job job;
    if (n < 2)
        return (int)n;
    blitz_fork(&job, t_fib, (void *)(n - 2));
    int left = t_fib((void *)(n - 1));
    return left + blitz_join(&job);
}

static inline int t_visit_returns(void *arg)
{
    return (int)(intptr_t)arg;
}

static inline int t_visit_forks(void *arg)
{
    CHECK_EQ(t_fib((void *)(intptr_t)9), 34);
    return (int)(intptr_t)arg;
}

static inline int t_visit_yields(void *arg)
{
    blitz_job job;
    blitz_fork(&job, t_visit_returns, arg);
    blitz_yield(); /* from here on it is a worker's */
    return blitz_join(&job);
}

static inline int t_visit_sleeps(void *arg)
{
    blitz_job job;
    blitz_fork(&job, t_visit_yields, arg);
    CHECK_EQ(blitz_sleep(10 * BLITZ_US), 0);
    return blitz_join(&job);
}

static inline int t_visit_spawns(void *arg)
{
    blitz_task *t;
    int result = -1;
    CHECK_EQ(blitz_spawn(t_visit_yields, arg, NULL, &t), 0);
    CHECK_EQ(blitz_task_join(t, &result, BLITZ_FOREVER), 0);
    return result;
}

/* It continues here after every wait, on the caller's thread. */
static inline int t_visit_locks(void *arg)
{
    struct blitz_worker_ *here = blitz_worker_();
    if (blitz_thread_lock() != 0)
        return (int)(intptr_t)arg;
    blitz_yield();
    CHECK(blitz_worker_() == here);
    CHECK_EQ(blitz_sleep(BLITZ_US), 0);
    CHECK(blitz_worker_() == here);
    if ((intptr_t)arg % 2 == 0)
        CHECK_EQ(blitz_thread_unlock(), 0);
    int result = t_visit_spawns(arg);
    CHECK((intptr_t)arg % 2 == 0 || blitz_worker_() == here);
    return result;
}

static inline int t_visit_calls(void *arg)
{
    int result = blitz_block_in_place(t_visit_forks, arg);
    blitz_syscall_enter();
    blitz_syscall_leave();
    return blitz_blocking(t_visit_returns, (void *)(intptr_t)result);
}

static int (*const t_visits[])(void *) = {t_visit_returns, t_visit_forks,  t_visit_yields,
                                          t_visit_sleeps,  t_visit_spawns, t_visit_locks,
                                          t_visit_calls};
enum { T_VISITS = sizeof t_visits / sizeof t_visits[0] };

#endif
