/*
 * cases.h - what the cases of bench-tasks have in common in ours and in the peers in C and C++: how
 * much there is to do. The peers in other languages say the same numbers again.
 */
#ifndef BENCH_TASKS_CASES_H
#define BENCH_TASKS_CASES_H

#include "tasks/fib.h"
#include "tasks/tasks.h"

enum {
    MILLION = 1000000,
    TREE_DEPTH = 14,
    TREE_NODES = (1 << (TREE_DEPTH + 1)) - 1,
};

/* Leaves of one tree: a million, or a thousand where fewer are asked for (to count instructions). */
static inline uint64_t skynet_size(uint64_t ops)
{
    return ops >= MILLION ? MILLION : 1000;
}

/* Work that takes a microsecond or so wherever it runs, and touches no memory. */
static inline void work_a_microsecond(void)
{
    uint64_t x = 88172645463325252u;
    for (int i = 0; i < 620; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    }
    bench_keep(x);
}

#endif
