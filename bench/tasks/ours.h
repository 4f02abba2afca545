/*
 * ours.h - what our own programs have in common that use the frame of bench-tasks: every case runs in
 * the first task of a runtime with as many procs as were asked for.
 */
#ifndef BENCH_TASKS_OURS_H
#define BENCH_TASKS_OURS_H

#include <blitz.h>

#include "tasks/tasks.h"

static inline void must(int rc, const char *what)
{
    if (rc < 0)
        bench_die("%s: error %d", what, -rc);
}

struct ours_order {
    const struct tasks_case *c;
    const char *name;
};

static inline int ours_measure(void *arg)
{
    const struct ours_order *o = (const struct ours_order *)arg;
    tasks_measure(o->c, o->name);
    return 0;
}

static inline void ours_start(const struct tasks_case *c, const char *name)
{
    blitz_runtime_opts config = {.procs = tasks_procs};
    struct ours_order o = {c, name};
    must(blitz_run(ours_measure, &o, &config), "run");
}

#endif
