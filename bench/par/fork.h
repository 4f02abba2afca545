/*
 * fork.h - our cases of fork and join, for blitz.c: those of tasks/forks.h, and queens.
 */
#ifndef BENCH_PAR_FORK_H
#define BENCH_PAR_FORK_H

#include "par/cases.h"
#include "tasks/forks.h"

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
