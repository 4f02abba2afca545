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
 * A body gets a *chunk*, the indexes from `from` up to, but not including, `to`, and is called for
 * every index exactly once. No chunk size is asked for: a loop begins with a few indexes, looks how
 * long they took, and goes on in chunks of some 20 microseconds; what others can take is forked
 * (blitz/fork.h), which costs about a nanosecond where nobody does. A loop that is done in a few
 * microseconds runs straight away in the caller. Long or uneven bodies need no advice either, except for
 * one: an index can not be shared, so let it be a small part of the whole.
 *
 * The rules:
 *   - Chunks run at the same time, in any order, on any worker. A body may do what a job may: wait, lock,
 *     spawn, fork, run a loop of its own. It may continue on another thread after that.
 *   - A body that returns other than 0 stops the loop: chunks that have not begun do not begin, those
 *     that run are waited for. The loop returns that result; of several, that of the lowest index.
 *   - A cancel of the calling task stops it in the same way, with -ECANCELED: no chunk begins after it
 *     was seen. A loop all of whose chunks had begun is as if there had been no cancel. Under
 *     blitz_shield() there is none.
 *   - Between chunks a loop looks up, as BLITZ_POLL(): tickers and others go on.
 *   - From a plain thread the loop runs on the workers of blitz_par_runtime(), and the thread waits.
 *   - Nothing is allocated, unless it says so.
 *   - `arg` and what it leads to is the body's; loops synchronize: what was written before the call is
 *     seen by the bodies, and what they wrote by whoever called.
 */
#ifndef BLITZ_LOOP_H
#define BLITZ_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "blitz/api.h"

BLITZ_BEGIN_DECLS

/* Advice, for those who know better. Zero everywhere (or NULL for the whole) means: as it turns out. */
typedef struct blitz_par_opts {
    size_t grain;     /* no chunk is smaller, but if n is; chunks begin at multiples of it. 0: 1 */
    size_t chunk_max; /* no chunk is larger, unless 2 * grain is. 0: any size */
    bool is_ordered;  /* blitz_reduce: the same tree of combinations each time */
} blitz_par_opts;

/* ---- loops ---- */

/* The body of a loop: the indexes [from, to). Not 0: stop. */
typedef int blitz_range_fn(size_t from, size_t to, void *arg);
/* The same for one index. */
typedef int blitz_index_fn(size_t i, void *arg);
/* The same for the rows [row, row_end) of the columns [column, column_end). */
typedef int blitz_tile_fn(size_t row, size_t row_end, size_t column, size_t column_end, void *arg);

/*
 * Call body for all of [0, n), chunk by chunk.
 * Owns:     borrows `opts` until it returns; `arg` is the body's.
 * Suspends: until all chunks that others have taken are done. Call from a task, a job or any thread.
 * Returns:  0; what a body returned; -ECANCELED; -EINVAL (no body).
 */
BLITZ_API BLITZ_SUSPENDS int blitz_for(size_t n, blitz_range_fn *body, void *arg,
                                       const blitz_par_opts *opts);

/*
 * The same, one call for each index. Each costs a call through a pointer, a nanosecond or two.
 * Owns:     borrows `opts` until it returns; `arg` is the body's.
 * Suspends: as blitz_for().
 * Returns:  as blitz_for(). In a chunk no index is begun after one that returned other than 0.
 */
BLITZ_API BLITZ_SUSPENDS int blitz_for_each(size_t n, blitz_index_fn *body, void *arg,
                                            const blitz_par_opts *opts);

/*
 * Call body for all cells of `rows` times `columns`, tile by tile: the longer side is halved, so that
 * tiles are about as high as wide. grain and chunk_max count cells.
 * Owns:     borrows `opts` until it returns; `arg` is the body's.
 * Suspends: as blitz_for().
 * Returns:  as blitz_for(), but of several results that of the tile that is first in the order of
 *           halving; -EINVAL also if there are more cells than a size_t counts.
 */
BLITZ_API BLITZ_SUSPENDS int blitz_for_2d(size_t rows, size_t columns, blitz_tile_fn *body,
                                          void *arg, const blitz_par_opts *opts);

/* ---- reductions ---- */

/*
 * How to reduce: an accumulator of `bytes` (aligned as malloc aligns), what it is to begin with, how
 * the indexes [from, to) are added to it, and how the one that covers what follows is added.
 * combine(acc, right): acc = acc . right, which must be associative; it need not be commutative: what
 * is combined are always neighbours, in the order of their indexes. map may be called several times
 * with one accumulator, for ranges that follow each other. A map that returns other than 0 stops all.
 */
typedef struct blitz_reduction {
    size_t bytes;
    void (*init)(void *acc, void *arg);
    int (*map)(void *acc, size_t from, size_t to, void *arg);
    void (*combine)(void *acc, const void *right, void *arg);
} blitz_reduction;

/*
 * Reduce [0, n) to one accumulator, *result.
 * How many accumulators there are: one for *result, and one for each part that another worker takes. If
 * the indexes take about the same time, there are at most 4 for each worker (blitz_worker_count()), for
 * any n. If a part turns out to be much longer than the others, it is shared further; there are never
 * more than 16 for each worker. init is called once for each of them, combine for all but the first.
 * With opts->is_ordered what is combined with what depends on n and grain alone, so that sums of
 * floating-point numbers are the same bit for bit with any number of workers, each time. Then chunks
 * are n / 1024 indexes, or grain if that is more, and each has an accumulator of its own: up to 2047, of
 * which one for each halving and worker exists at a time.
 * Owns:     borrows `how` and `opts` until it returns; *result is the caller's, and is written to while
 *           it runs. Accumulators of up to 64 bytes lie on stacks; larger ones are allocated where
 *           another worker takes a part (and given back), ordered: for each chunk.
 * Suspends: as blitz_for().
 * Returns:  0: *result is what [0, n) comes to, of 0 indexes what init makes it; what a map returned,
 *           -ECANCELED: *result is an accumulator of some of the indexes. -ENOMEM, only if ordered:
 *           likewise (otherwise a part for which there is no memory is not taken by others). -EINVAL:
 *           something is missing, and *result was not touched.
 */
BLITZ_API BLITZ_SUSPENDS int blitz_reduce(size_t n, const blitz_reduction *how, void *arg,
                                          void *result, const blitz_par_opts *opts);

/* ---- scans ---- */

/* Write what belongs to [from, to). acc covers [0, from) when it is called, and [0, to) when it returns.
 * Not 0: stop. */
typedef int blitz_emit_fn(void *acc, size_t from, size_t to, void *arg);

/*
 * For each index what all before it come to. `emit` goes through ranges from left to right with the
 * accumulator of all that is left of them, and writes: the value before an index is added makes the scan
 * exclusive, the one after inclusive. Ranges that others take are gone through twice, by how->map
 * first; map must find what emit has not yet written over, so input and output may be the same array.
 * With w workers it takes about 2 / (w + 1) of the time, if map takes as long as emit.
 * Owns:     borrows `how` and `opts` until it returns; *total is the caller's. Up to 256 accumulators are
 *           allocated, but no more than 32 for each worker, and half of them combined; where there is
 *           no memory one worker does it.
 * Suspends: as blitz_for().
 * Returns:  0: *total covers [0, n). Else as blitz_for(): what a map or an emit returned, -ECANCELED: part of
 *           it was written. -EINVAL: something is missing, nothing was touched.
 */
BLITZ_API BLITZ_SUSPENDS int blitz_scan(size_t n, const blitz_reduction *how, blitz_emit_fn *emit,
                                        void *arg, void *total, const blitz_par_opts *opts);

/*
 * The same for arrays of accumulators: out[i] = in[0] . in[1] ... in[i], and, exclusive, without in[i]
 * (out[0] is what init makes). `how` needs no map. Each value costs two or three calls through pointers.
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
 * How many workers there are: of the runtime of the calling task; from a plain thread those that
 * loops would use.
 * Suspends: never.
 * Returns:  1 or more.
 */
BLITZ_API unsigned blitz_worker_count(void);

/*
 * Call fn once on every worker, each with its number, from 0. All at the same time, where workers are
 * not busy: one that is comes to it when it can, and the call waits for it.
 * Owns:     `arg` is fn's. A task is spawned for each worker.
 * Suspends: until the last has returned. Call from a task, a job or any thread.
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
 * What is done to an item. fn gets it in *item and leaves there what goes on to the next stage: the same,
 * another one, or NULL for nothing. Not 0: stop the pipeline.
 */
typedef struct blitz_stage {
    enum blitz_stage_kind kind;
    int (*fn)(void **item, void *arg);
    void *arg;
} blitz_stage;

typedef struct blitz_pipeline_opts {
    size_t in_flight; /* at most so many items at a time; 0: 4 for each worker */
    void (*drop)(void *value,
                 void *ctx); /* for items that are left; NULL: nothing is done for them */
    void *ctx;
} blitz_pipeline_opts;

/*
 * Take items from a source and pass each through all stages, several items at the same time. `source`
 * leaves the next item in *item, or NULL at the end; it is called by one at a time. An item is carried
 * by one task through all its stages, as far as it can go without waiting for its turn.
 * Owns:     borrows everything until it returns. An item is the stage's that has it; `drop` gets what the
 *           last stage leaves, what a stage that failed leaves, and what was under way when it stopped.
 *           Memory by in_flight and the number of stages is allocated in the beginning, none later.
 * Suspends: until the last item is through. Call from a task, a job or any thread. Functions may wait.
 * Returns:  0; what the source or a stage returned first; -ECANCELED (between two stages, or while an item
 *           waits); -ENOMEM; -EINVAL (no source, or no function, or an unknown kind).
 */
BLITZ_API BLITZ_SUSPENDS int blitz_pipeline(int (*source)(void **item, void *arg), void *arg,
                                            const blitz_stage *stages, size_t count,
                                            const blitz_pipeline_opts *opts);

BLITZ_END_DECLS

#endif
