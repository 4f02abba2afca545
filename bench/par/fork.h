/*
 * fork.h - our cases of fork and join, for blitz.c.
 */
#ifndef BENCH_PAR_FORK_H
#define BENCH_PAR_FORK_H

#include <blitz.h>

#include "par/cases.h"

/* A thing of its own, so that the call is not guessed at compile time. */
static __attribute__((noinline)) int job_answer(void *arg)
{
    return (int)(intptr_t)arg;
}

/* With another job pending, as in the depth of any recursion: that one is for others to take. */
static double case_fork(uint64_t ops)
{
    blitz_job outer;
    blitz_fork(&outer, job_answer, (void *)(intptr_t)0);
    uint64_t sum = 0, began = tasks_now_ns();
    for (uint64_t i = 0; i < ops; i++) {
        blitz_job job;
        blitz_fork(&job, job_answer, (void *)(intptr_t)1);
        sum += (uint64_t)blitz_join(&job);
    }
    double ns = (double)(tasks_now_ns() - began);
    if (blitz_join(&outer) != 0 || sum != ops)
        bench_die("%llu jobs ran", (unsigned long long)sum);
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

/* A board fits into the argument: 13 bits for the columns, and for either diagonal. */
static void *queens_pack(struct queens q)
{
    return (void *)((uintptr_t)q.columns | (uintptr_t)q.left << 16 | (uintptr_t)q.right << 32);
}

static struct queens queens_unpack(void *arg)
{
    uintptr_t bits = (uintptr_t)arg;
    return (struct queens){(uint32_t)(bits & QUEENS_ALL), (uint32_t)(bits >> 16 & QUEENS_ALL),
                           (uint32_t)(bits >> 32)};
}

static int job_queens(void *arg)
{
    struct queens q = queens_unpack(arg);
    blitz_job jobs[QUEENS_N];
    int count = 0, found = 0;
    if (q.columns == QUEENS_ALL)
        return 1;
    for (uint32_t free = queens_free(q); free != 0; free &= free - 1)
        blitz_fork(&jobs[count++], job_queens, queens_pack(queens_place(q, free)));
    while (count > 0)
        found += blitz_join(&jobs[--count]);
    return found;
}

static double case_queens(uint64_t ops)
{
    uint64_t began = tasks_now_ns();
    for (uint64_t i = 0; i < ops; i++)
        if (job_queens(NULL) != QUEENS_RESULT)
            bench_die("a wrong number");
    return (double)(tasks_now_ns() - began) / 1e6;
}

#endif
