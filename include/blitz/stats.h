/*
 * blitz/stats.h - counters of a runtime.
 *
 *     blitz_stats s;
 *     char text[2048];
 *     blitz_stats_read(rt, &s);
 *     blitz_stats_format(&s, text, sizeof text);
 *
 * Every worker has its own counters, at the cost of an addition each, so there is nothing to switch on. Counts only
 * grow; for an interval take the difference of two readings. A reading of an active runtime is not a consistent
 * snapshot: each figure is right, but they need not agree to the last unit.
 *
 * How to read them:
 *   - `useless_wakes` near `wakes`: workers are roused for work that others have taken by then.
 *   - `stolen` near `run`: all tasks are spawned in one place.
 *   - few `claimed` where a tree of tasks joins its children: the children are started elsewhere before.
 */
#ifndef BLITZ_STATS_H
#define BLITZ_STATS_H

#include <stddef.h>
#include <stdint.h>

#include "blitz/api.h"
#include "blitz/runtime.h"

BLITZ_BEGIN_DECLS

typedef struct blitz_stats {
    uint64_t procs; /* covered by the figures: all of them, or 1 */

    /* Tasks. */
    uint64_t spawned;  /* counted where they were spawned; refused spawns count here and as ended */
    uint64_t ended;    /* counted where they ended; in the total, spawned - ended live */
    uint64_t run;      /* started or resumed by a worker's loop, or directly by the previous task */
    uint64_t parked;   /* left the worker to wait */
    uint64_t yielded;  /* left it for other ready tasks */
    uint64_t switches; /* from one stack to another */
    uint64_t claimed;  /* run by the task that joined them, as a call */

    /* Where they came from. */
    uint64_t next_hits;        /* ran next, right after the task that woke or spawned them */
    uint64_t injector_batches; /* taken from the injector */
    uint64_t injected;         /* tasks in these batches */
    uint64_t searches;         /* searches of other queues, with or without success */
    uint64_t steals;           /* from another worker's queue */
    uint64_t stolen;           /* tasks in these steals */

    /* Sleeping. */
    uint64_t sleeps;        /* of workers */
    uint64_t wakes;         /* of workers, counted where they were roused from */
    uint64_t useless_wakes; /* after which the worker found nothing, counted where it slept */

    /* Fork and join. A fork that no other worker could have taken is not counted: it costs a nanosecond, and counting
     * would cost another. */
    uint64_t forks_shared;    /* jobs that other workers could have taken */
    uint64_t jobs_stolen;     /* jobs that other workers took */
    uint64_t jobs_evacuated;  /* jobs that went to the queues because their task had to wait, or was
                              * busy for long */
    uint64_t joins_suspended; /* joins that had to wait for a job of another worker */
    uint64_t joins_out_of_order; /* joins of a job that was not the last one forked: slow */

    /* Calls made in place: blitz/blocking.h. */
    uint64_t calls_moved;    /* calls so long that another thread took the proc */
    uint64_t calls_regained; /* of these, calls that found a free proc at once at their end */

    /* Memory now; 0 in the figures of one proc. */
    uint64_t stacks;     /* in use or cached */
    uint64_t task_bytes; /* of task headers, unused ones included */

    /* Threads now, and calls that block (blitz/blocking.h); 0 in the figures of one proc. */
    uint64_t threads;          /* of workers and of blocking calls, idle ones included */
    uint64_t threads_idle;     /* without work; they end after ten seconds */
    uint64_t blocking;         /* calls that a pool thread has begun, in total */
    uint64_t blocking_pending; /* calls that wait for a thread, now */

    /* The I/O backend of the runtime: its name as in blitz_runtime_opts.io, and why it was chosen. Constant strings. */
    const char *io;
    const char *io_why;
} blitz_stats;

/*
 * Read the figures of a runtime, summed over its workers.
 * Owns:     borrows the runtime until it returns.
 * Suspends: never. Call from any thread, also from a task.
 * Returns:  0, -EINVAL (no runtime, and the caller is no task). *out is written only on 0.
 */
BLITZ_API int blitz_stats_read(blitz_runtime *rt, blitz_stats *out);

/*
 * Read the figures of one worker, counted from 0. A NULL `rt` is the runtime of the calling task, here and above.
 * Owns:     borrows the runtime until it returns.
 * Suspends: never. Call from any thread, also from a task.
 * Returns:  0, -EINVAL (no runtime, or no such worker). *out is written only on 0.
 */
BLITZ_API int blitz_stats_read_proc(blitz_runtime *rt, unsigned proc, blitz_stats *out);

/*
 * Write the figures as text, a line each, with a final 0.
 * Owns:     borrows both until it returns.
 * Suspends: never. Call from any thread.
 * Returns:  the length of the whole text, as snprintf: if it is not less than `size` it was cut.
 */
BLITZ_API size_t blitz_stats_format(const blitz_stats *stats, char *out, size_t size);

BLITZ_END_DECLS

#endif
