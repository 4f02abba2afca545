/*
 * work.h - the workloads. Each runs in the first task of a runtime, does work in proportion to the
 * number of procs, and returns how many operations that was.
 *
 * A workload whose tasks share nothing should cost the same on any number of procs. One whose tasks
 * share an object (WORK_SHARED) pays for the lines of that object: its slope is shown and not judged.
 */
#ifndef SCALE_WORK_H
#define SCALE_WORK_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "blitz.h"
#include "scale/world.h"

enum work_flags {
    WORK_CPU = 0,     /* the cost is CPU time of all threads / operations */
    WORK_SPAN = 1,    /* every proc should have work: procs x elapsed time / operations */
    WORK_SHARED = 2,  /* the tasks share an object */
    WORK_OUTSIDE = 4, /* run by a plain thread, not by the first task */
};

/* The procs of the runtime, and how many operations to do for each. */
struct work_scene {
    blitz_runtime *rt;
    const struct bz_os *os;
    unsigned procs;
    unsigned rounds;
};

typedef uint64_t work_fn(const struct work_scene *s);

struct work {
    const char *name;
    unsigned flags;
    const char *op; /* one operation, in words */
    work_fn *run;
};

/* End with a message if a call of blitz failed. */
static inline void must(int err, const char *what)
{
    if (err != 0) {
        fprintf(stderr, "scale: %s: %d\n", what, err);
        abort();
    }
}

static inline blitz_task *spawn(int (*fn)(void *), void *arg)
{
    blitz_task *t;
    must(blitz_spawn(fn, arg, NULL, &t), "spawn");
    return t;
}

static inline void join(blitz_task *t)
{
    must(blitz_task_join(t, NULL, BLITZ_FOREVER), "join");
}

/* Run fn(&args[i]) as `count` tasks that begin on procs 0, 1, 2, ... in turn. Wait for all. */
void work_on_each(const struct work_scene *s, unsigned count, int (*fn)(void *), void *args,
                  size_t arg_bytes);

/* An array of `count` objects, zeroed, each in cache lines of its own; free() releases it. */
void *work_array(size_t count, size_t bytes);

/* The workloads by file, each list ended by a NULL name. */
extern const struct work work_spawn[], work_fork[], work_chan[], work_time[], work_idle[],
    work_sync[];

#endif
