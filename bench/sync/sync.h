/*
 * sync.h - what the cases of bench-sync have in common: one task, or several, that do something so
 * many times. The frame (cases, kinds, clocks) is that of bench-tasks.
 */
#ifndef BENCH_SYNC_SYNC_H
#define BENCH_SYNC_SYNC_H

#include "tasks/ours.h"

enum { SYNC_TASKS_MAX = 64 };

/* work(&ops) in the calling task: the nanoseconds of all of it. */
static inline double sync_alone(int (*work)(void *ops), uint64_t ops)
{
    uint64_t began = tasks_now_ns();
    (void)work(&ops);
    return (double)(tasks_now_ns() - began);
}

/* The same by `count` tasks, each with its share. */
static inline double sync_together(int (*work)(void *ops), uint64_t ops, unsigned count)
{
    blitz_task *t[SYNC_TASKS_MAX];
    uint64_t each = ops / count, began = tasks_now_ns();
    for (unsigned i = 0; i < count; i++)
        must(blitz_spawn(work, &each, NULL, &t[i]), "spawn");
    for (unsigned i = 0; i < count; i++)
        must(blitz_task_join(t[i], NULL, BLITZ_FOREVER), "join");
    return (double)(tasks_now_ns() - began) / (double)(each * count) * (double)ops;
}

#endif
