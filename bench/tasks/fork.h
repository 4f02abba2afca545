/*
 * fork.h - our cases of fork and join, for blitz.c.
 *
 *   fork-empty    one job forked and joined on an empty deque, where it is shown to others at once
 *   fork-nested   the same with another job pending, as in the depth of any recursion
 *   fib           fib(38), in milliseconds: 126 million forks that are nearly all joined by a call
 *   fork-tree     a tree of jobs of a microsecond each
 */
#ifndef BENCH_TASKS_FORK_H
#define BENCH_TASKS_FORK_H

#include <blitz.h>

#include "tasks/cases.h"

/* A thing of the fork's own, so that the call is not guessed at compile time. */
static __attribute__((noinline)) int job_answer(void *arg)
{
    return (int)(intptr_t)arg;
}

static double fork_join_often(uint64_t ops)
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

static double case_fork_empty(uint64_t ops)
{
    return fork_join_often(ops);
}

static double case_fork_nested(uint64_t ops)
{
    blitz_job outer;
    blitz_fork(&outer, job_answer, (void *)(intptr_t)0);
    double ns = fork_join_often(ops);
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

static int job_tree(void *arg)
{
    intptr_t depth = (intptr_t)arg;
    blitz_job left, right;
    work_a_microsecond();
    if (depth == 0)
        return 1;
    blitz_fork(&left, job_tree, (void *)(depth - 1));
    blitz_fork(&right, job_tree, (void *)(depth - 1));
    int nodes = 1 + blitz_join(&right);
    return nodes + blitz_join(&left);
}

static double case_fork_tree(uint64_t ops)
{
    uint64_t began = tasks_now_ns();
    for (uint64_t done = 0; done < ops; done += TREE_NODES)
        if (job_tree((void *)(intptr_t)TREE_DEPTH) != TREE_NODES)
            bench_die("a wrong number of jobs");
    return (double)(tasks_now_ns() - began);
}

#endif
