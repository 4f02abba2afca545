/*
 * fork.h - our cases of fork and join, for blitz.c: those of forks.h, and
 *
 *   fork-tree     a tree of jobs of a microsecond each
 */
#ifndef BENCH_TASKS_FORK_H
#define BENCH_TASKS_FORK_H

#include "tasks/cases.h"
#include "tasks/forks.h"

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
