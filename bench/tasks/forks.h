/*
 * forks.h - our cases of fork and join that bench-tasks and bench-par both have.
 *
 *   fork-empty    one job forked and joined on an empty deque, where it is shown to others at once
 *   fork-nested   the same with another job pending, as in the depth of any recursion: that one is for
 *                 others to take
 *   fib           fib(38), in milliseconds: 126 million forks that are nearly all joined by a call
 */
#ifndef BENCH_TASKS_FORKS_H
#define BENCH_TASKS_FORKS_H

#include <blitz.h>

#include "tasks/fib.h"
#include "tasks/tasks.h"

/* A thing of the fork's own, so that the call is not guessed at compile time. */
static __attribute__((noinline)) int job_answer(void *arg)
{
    return (int)(intptr_t)arg;
}

static double case_fork_empty(uint64_t ops)
{
    uint64_t sum = 0, began = tasks_now_ns();
    for (uint64_t i = 0; i < ops; i++) {
        blitz_job job;
        blitz_fork(&job, job_answer, (void *)(intptr_t)1);
        sum += (uint64_t)blitz_join(&job);
    }
    double ns = (double)(tasks_now_ns() - began);
    if (sum != ops)
        bench_die("%llu jobs ran", (unsigned long long)sum);
    return ns;
}

static double case_fork_nested(uint64_t ops)
{
    blitz_job outer;
    blitz_fork(&outer, job_answer, (void *)(intptr_t)0);
    double ns = case_fork_empty(ops);
    if (blitz_join(&outer) != 0)
        bench_die("the outer job is lost");
    return ns;
}

static int job_fib(void *arg)
{
    intptr_t n = (intptr_t)arg;
    blitz_job job;
    if (n < 2)
        return (int)n;
    blitz_fork(&job, job_fib, (void *)(n - 2));
    int left = job_fib((void *)(n - 1));
    return left + blitz_join(&job);
}

static double case_fib(uint64_t ops)
{
    uint64_t began = tasks_now_ns();
    for (uint64_t i = 0; i < ops; i++)
        if (job_fib((void *)(intptr_t)FIB_N) != FIB_RESULT)
            bench_die("a wrong number");
    return (double)(tasks_now_ns() - began) / 1e6;
}

#endif
