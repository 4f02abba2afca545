/*
 * blitz/loop.h - parallel loops, reductions, scans and pipelines.
 *
 *     static int scale(size_t from, size_t to, void *arg)
 *     {
 *         double *x = arg;
 *         for (size_t i = from; i < to; i++)
 *             x[i] *= 2;
 *         return 0;
 *     }
 *
 *     int err = blitz_for(n, scale, x, NULL);
 *
 * A body gets a *chunk*: the indexes from `from` up to, but not including, `to`. The loop covers every index exactly
 * once. You need not choose a chunk size. A loop begins with a few indexes, measures how long they take, and
 * continues in chunks of some 20 microseconds. It forks the part that other workers can take (blitz/fork.h). A fork
 * that no worker takes costs about a nanosecond. A loop that takes only a few microseconds runs in the caller. Long
 * or uneven bodies need no options either, with one exception: an index cannot be divided, so let each index be a
 * small part of the whole.
 *
 * The rules:
 *   - Chunks run at the same time, in any order, on any worker. A body may do what a job may: wait, lock, spawn,
 *     fork, run a loop of its own. It may continue on another thread after that.
 *   - A body that returns other than 0 stops the loop: no further chunk begins, and the loop waits for the chunks
 *     that run. The loop returns that result; of several results, that of the lowest index.
 *   - A cancel of the calling task stops the loop in the same way, with -ECANCELED: no chunk begins after the loop
 *     has seen it. If all chunks had begun, the cancel has no effect on the loop. Under blitz_shield() there is no
 *     cancel.
 *   - Between chunks a loop polls, as by BLITZ_POLL(), so that other tasks can run.
 *   - If a plain thread calls the loop, it runs on the workers of blitz_par_runtime(), and the thread waits.
 *   - Nothing is allocated, unless the function's comment says so.
 *   - `arg`, and what it points to, belongs to the body. Loops synchronize: the bodies see all writes that were made
 *     before the call, and the caller sees all writes of the bodies.
 */
#ifndef BLITZ_LOOP_H
#define BLITZ_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "blitz/api.h"

BLITZ_BEGIN_DECLS

/* Tuning. A zero field, or NULL for the whole struct, means that the loop decides. */
typedef struct blitz_par_opts {
    size_t grain;     /* no chunk is smaller, unless n is; chunks begin at its multiples. 0: 1 */
    size_t chunk_max; /* no chunk is larger, unless 2 * grain is. 0: any size */
    bool is_ordered;  /* blitz_reduce: the same tree of combinations each time */
} blitz_par_opts;

/* ---- loops ---- */

/* The body of a loop, for the indexes [from, to). A result other than 0 stops the loop. */
typedef int blitz_range_fn(size_t from, size_t to, void *arg);
/* The body of a loop for one index. */
typedef int blitz_index_fn(size_t i, void *arg);
/* The body of a loop for the rows [row, row_end) of the columns [column, column_end). */
typedef int blitz_tile_fn(size_t row, size_t row_end, size_t column, size_t column_end, void *arg);

/*
 * Call the body for all of [0, n), chunk by chunk.
 * Owns:     borrows `opts` until it returns; `arg` is passed to the body.
 * Suspends: until the chunks that other workers have taken are done. Call from a task, a job or any thread.
 * Returns:  0; what a body returned; -ECANCELED; -EINVAL (no body).
 */
BLITZ_API BLITZ_SUSPENDS int blitz_for(size_t n, blitz_range_fn *body, void *arg,
                                       const blitz_par_opts *opts);

/*
 * Run a loop with one call of the body for each index. Each call goes through a pointer: a nanosecond or two.
 * Owns:     borrows `opts` until it returns; `arg` is passed to the body.
 * Suspends: as blitz_for().
 * Returns:  as blitz_for(). Within a chunk, no index begins after one that returned other than 0.
 */
BLITZ_API BLITZ_SUSPENDS int blitz_for_each(size_t n, blitz_index_fn *body, void *arg,
                                            const blitz_par_opts *opts);

/*
 * Call the body for all cells of `rows` times `columns`, tile by tile. The longer side is halved, so that tiles are
 * about as high as wide. grain and chunk_max count cells.
 * Owns:     borrows `opts` until it returns; `arg` is passed to the body.
 * Suspends: as blitz_for().
 * Returns:  as blitz_for(), but of several results that of the first tile in the order of halving; -EINVAL also if
 *           there are more cells than a size_t can count.
 */
BLITZ_API BLITZ_SUSPENDS int blitz_for_2d(size_t rows, size_t columns, blitz_tile_fn *body,
                                          void *arg, const blitz_par_opts *opts);

/* ---- reductions ---- */

/*
 * How to reduce. An accumulator has `bytes` bytes and is aligned as malloc aligns.
 *   init     gives an accumulator its first value
 *   map      adds the indexes [from, to) to an accumulator. It may be called several times with one accumulator, for
 *            ranges that follow each other. A result other than 0 stops the reduction
 *   combine  adds the accumulator of the range that follows: acc = acc . right. It must be associative. It need not
 *            be commutative, because only neighbours are combined, in the order of their indexes
 */
typedef struct blitz_reduction {
    size_t bytes;
    void (*init)(void *acc, void *arg);
    int (*map)(void *acc, size_t from, size_t to, void *arg);
    void (*combine)(void *acc, const void *right, void *arg);
} blitz_reduction;

/*
 * Reduce [0, n) to one accumulator, *result.
 *
 * Number of accumulators: one for *result, and one for each part that another worker takes. If the indexes take
 * about the same time, there are at most 4 for each worker (blitz_worker_count()), for any n. If a part turns out to
 * be much longer than the others, it is divided further. There are never more than 16 for each worker. init is
 * called once for each accumulator, combine for all but the first.
 *
 * With opts->is_ordered, the tree of combinations depends on n and grain alone. So sums of floating-point numbers
 * are the same bit for bit each time, with any number of workers. Then chunks are n / 1024 indexes, or grain if that
 * is more. Each chunk has an accumulator of its own: up to 2047, of which one for each halving and worker exists at
 * a time.
 * Owns:     borrows `how` and `opts` until it returns. *result is the caller's, and is written to while it runs.
 *           Accumulators of up to 64 bytes lie on stacks. A larger one is allocated (and freed) where another worker
 *           takes a part; with is_ordered, for each chunk.
 * Suspends: as blitz_for().
 * Returns:  0: *result covers [0, n); for n = 0 it is what init makes. The result of a map, or -ECANCELED: *result
 *           covers some of the indexes. -ENOMEM, only if ordered: likewise. (If not ordered, a part for which there is
 *           no memory is not taken by other workers.) -EINVAL: an argument is missing, and *result was not touched.
 */
BLITZ_API BLITZ_SUSPENDS int blitz_reduce(size_t n, const blitz_reduction *how, void *arg,
                                          void *result, const blitz_par_opts *opts);

/* ---- scans ---- */

/* Write the output of [from, to). acc covers [0, from) when it is called, and [0, to) when it returns. A result other
 * than 0 stops the scan. */
typedef int blitz_emit_fn(void *acc, size_t from, size_t to, void *arg);

/*
 * Compute, for each index, the combination of all indexes before it. `emit` goes through a range from left to right.
 * It gets the accumulator of everything left of the range, and writes the output. If it writes the value before it
 * adds an index, the scan is exclusive; if after, inclusive. A range that another worker takes is read twice: first by
 * how->map, then by emit. emit never overwrites input that map has still to read, so input and output may be the same
 * array. With w workers a scan takes about 2 / (w + 1) of the time, if map takes as long as emit.
 * Owns:     borrows `how` and `opts` until it returns; *total is the caller's. Allocates up to 256 accumulators, but
 *           no more than 32 for each worker; half of them hold combinations. Without memory one worker does it all.
 * Suspends: as blitz_for().
 * Returns:  0: *total covers [0, n). Else as blitz_for(): the result of a map or an emit, or -ECANCELED: part of the
 *           output was written. -EINVAL: an argument is missing, and nothing was touched.
 */
BLITZ_API BLITZ_SUSPENDS int blitz_scan(size_t n, const blitz_reduction *how, blitz_emit_fn *emit,
                                        void *arg, void *total, const blitz_par_opts *opts);

/*
 * Scan an array of accumulators. Inclusive: out[i] = in[0] . in[1] ... in[i]. Exclusive: the same without in[i], and
 * out[0] is what init makes. `how` needs no map. Each value costs two or three calls through pointers.
 * Owns:     borrows everything until it returns. `out` may be `in`; otherwise they do not overlap.
 *           Values are copied as bytes.
 * Suspends: as blitz_for().
 * Returns:  as blitz_scan(); -ENOMEM (for one value; only if bytes is more than 64).
 */
BLITZ_API BLITZ_SUSPENDS int blitz_scan_inclusive(size_t n, const void *in, void *out,
                                                  const blitz_reduction *how, void *arg,
                                                  const blitz_par_opts *opts);
BLITZ_API BLITZ_SUSPENDS int blitz_scan_exclusive(size_t n, const void *in, void *out,
                                                  const blitz_reduction *how, void *arg,
                                                  const blitz_par_opts *opts);

/* ---- workers ---- */

/*
 * Return the number of workers: those of the calling task's runtime. On a plain thread, those that a loop would use.
 * Suspends: never.
 * Returns:  1 or more.
 */
BLITZ_API unsigned blitz_worker_count(void);

/*
 * Call fn once on every worker, each with its number, from 0. The calls run at the same time if the workers are free.
 * A busy worker makes its call when it can, and this function waits for it.
 * Owns:     `arg` is passed to fn. A task is spawned for each worker.
 * Suspends: until the last call has returned. Call from a task, a job or any thread.
 * Returns:  0, or the result other than 0 of the lowest worker; -EINVAL (no fn), -ENOMEM, -EAGAIN
 *           (tasks_max), -ESHUTDOWN: not all were called. A cancel is passed on to all of them.
 */
BLITZ_API BLITZ_SUSPENDS int blitz_on_each_worker(int (*fn)(unsigned worker, void *arg), void *arg);

/* ---- pipelines ---- */

enum blitz_stage_kind {
    BLITZ_STAGE_PARALLEL, /* any number of items at a time, in any order */
    BLITZ_STAGE_ORDERED,  /* one at a time, in the order of the source */
    BLITZ_STAGE_SERIAL    /* one at a time, in any order */
};

/*
 * A stage of a pipeline. fn gets an item in *item and leaves there the item for the next stage: the same one, another
 * one, or NULL for none. A result other than 0 stops the pipeline.
 */
typedef struct blitz_stage {
    enum blitz_stage_kind kind;
    int (*fn)(void **item, void *arg);
    void *arg;
} blitz_stage;

typedef struct blitz_pipeline_opts {
    size_t in_flight;                     /* the most items at a time; 0: 4 for each worker */
    void (*drop)(void *value, void *ctx); /* called for items that are left; NULL: none */
    void *ctx;
} blitz_pipeline_opts;

/*
 * Take items from a source and pass each through all stages, several items at the same time. `source` leaves the next
 * item in *item, or NULL at the end. There is one call of it at a time. One task carries an item through all its
 * stages, as far as it can go without waiting for its turn.
 * Owns:     borrows everything until it returns. An item belongs to the stage that has it. `drop` gets the items that
 *           the last stage leaves, that a failed stage leaves, and that were in flight when the pipeline stopped.
 *           Memory for in_flight items and the stages is allocated at the start, none later.
 * Suspends: until the last item is through. Call from a task, a job or any thread. The functions may wait.
 * Returns:  0; the first result other than 0 of the source or a stage; -ECANCELED (seen between two stages, or while an
 *           item waits); -ENOMEM; -EINVAL (no source, or no function, or an unknown kind).
 */
BLITZ_API BLITZ_SUSPENDS int blitz_pipeline(int (*source)(void **item, void *arg), void *arg,
                                            const blitz_stage *stages, size_t count,
                                            const blitz_pipeline_opts *opts);

BLITZ_END_DECLS

#endif
