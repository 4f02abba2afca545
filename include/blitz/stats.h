/*
 * blitz/stats.h - what a runtime has been doing.
 *
 *     blitz_stats s;
 *     char text[2048];
 *     blitz_stats_read(rt, &s);
 *     blitz_stats_format(&s, text, sizeof text);
 *
 * Every worker counts for itself and pays an addition for it, so there is nothing to switch on.
 * Counts only grow; what is between two moments is the difference of two readings. A reading of a
 * runtime that runs is not one moment: each figure is right, and they need not fit each other to the
 * last unit.
 *
 * What to look for: `useless_wakes` near `wakes` means that workers are roused for work others have
 * taken by then; `stolen` near `run`, that everything is spawned in one place; few `claimed` where a
 * tree of tasks joins its children, that the children are started elsewhere before.
 */
#ifndef BLITZ_STATS_H
#define BLITZ_STATS_H

#include <stddef.h>
#include <stdint.h>

#include "blitz/api.h"
#include "blitz/runtime.h"

BLITZ_BEGIN_DECLS

typedef struct blitz_stats {
    uint64_t procs; /* that the figures are of: all of them, or 1 */

    /* Tasks. */
    uint64_t spawned;  /* counted where they were spawned; refused spawns count here and as ended */
    uint64_t ended;    /* counted where they ended; in the total, spawned - ended live */
    uint64_t run;      /* begun or gone on with by a worker's loop, or straight by who left */
    uint64_t parked;   /* left the worker to wait */
    uint64_t yielded;  /* left it for others that were ready */
    uint64_t switches; /* from one stack to another */
    uint64_t claimed;  /* run by the task that joined them, as a call */

    /* Where they came from. */
    uint64_t next_hits;        /* ran next, right after who woke or spawned them */
    uint64_t injector_batches; /* taken from the queue all workers share */
    uint64_t injected;         /* tasks in these batches */
    uint64_t searches;         /* looks at the others' queues, with or without success */
    uint64_t steals;           /* from another worker's queue */
    uint64_t stolen;           /* tasks in these steals */

    /* Sleeping. */
    uint64_t sleeps;        /* of workers */
    uint64_t wakes;         /* of workers, counted where they were roused from */
    uint64_t useless_wakes; /* after which the worker found nothing, counted where it slept */

    /* Fork and join. A fork that nobody else could have taken is not counted: it costs a nanosecond,
     * and counting would cost another. */
    uint64_t forks_shared;    /* jobs that others could have taken */
    uint64_t jobs_stolen;     /* jobs others did take */
    uint64_t jobs_evacuated;  /* jobs that went to the queues because their task had to wait, or was
                              * long at something else */
    uint64_t joins_suspended; /* joins that had to wait for a job somebody else had */
    uint64_t joins_out_of_order; /* joins of a job that was not the last one forked: slow */

    /* Calls made in place: blitz/blocking.h. */
    uint64_t calls_moved;    /* that took so long that others went on in the worker's place */
    uint64_t calls_regained; /* of these, that found a free place at once when they came back */

    /* Memory now; 0 in the figures of one proc. */
    uint64_t stacks;     /* in use or at hand */
    uint64_t task_bytes; /* of task headers, unused ones in between included */

    /* Threads now, and calls that block (blitz/blocking.h); 0 in the figures of one proc. */
    uint64_t threads;          /* of workers and of blocking calls, idle ones included */
    uint64_t threads_idle;     /* wait for something to do; gone after ten seconds of that */
    uint64_t blocking;         /* calls that a thread of the pool has begun, since ever */
    uint64_t blocking_pending; /* calls that wait for a thread, now */
} blitz_stats;

/*
 * Read the figures of a runtime, summed over its workers.
 * Owns:     borrows the runtime until it returns.
 * Suspends: never. Call from any thread, also from a task.
 * Returns:  0, -EINVAL (no runtime, and the caller is no task). *out is written only on 0.
 */
BLITZ_API int blitz_stats_read(blitz_runtime *rt, blitz_stats *out);

/*
 * The same of one worker, counted from 0. A NULL `rt` is that of the calling task, here and above.
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
