/*
 * split.h - split a range of indexes into chunks and run them on all idle workers.
 *
 * The base of all loops: for.c, reduce.c. split.c has the rules.
 */
#ifndef BZ_SPLIT_H
#define BZ_SPLIT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/bz_atomic.h"
#include "base/compiler.h"
#include "blitz/loop.h"
#include "blitz/par.h"

/* The rows [from, to) of the columns [left, right). A line has one column. */
struct bz_span {
    size_t from, to;
    size_t left, right;
};

static inline size_t bz_span_cells(const struct bz_span *s)
{
    /* does not overflow: checked when a loop starts */
    return (s->to - s->from) * (s->right - s->left);
}

struct bz_loop;

/* Run one chunk; acc is the accumulator of all chunks to its left in its part, or NULL. */
typedef int bz_chunk_fn(const struct bz_loop *loop, const struct bz_span *s, void *acc);

/* Shared by all parts of a loop. Constant except is_stopped and offers. */
struct bz_loop {
    bz_chunk_fn *chunk;
    void (*body)(void); /* the user's function and argument, used by the chunk function */
    void *arg;
    const blitz_reduction *how; /* NULL: no accumulators */
    size_t cells;               /* of the whole */
    size_t grain;               /* at least 1 */
    size_t chunk_max;           /* at least grain */
    bool is_tiled;              /* the grain is a number of cells, and the longer side is split */
    bool is_shielded;           /* the caller is shielded, so the parts are, too */
    bz_atomic(int) is_stopped;  /* 1: no further chunk starts */

    /* With accumulators only; split.c. */
    uint64_t began;                   /* when */
    unsigned offers_even, offers_max; /* the budget: for even work, and for any work */
    bz_atomic(unsigned) shares;       /* offers with a share that no thief has taken yet */
    bz_atomic(unsigned) offers;       /* parts that are on offer or were taken */
};

/* Fill in the fields that follow from the options. */
void bz_loop_init(struct bz_loop *loop, size_t cells, const blitz_par_opts *opts);

/* Run the loop, from any thread. acc is the initialised first accumulator, or NULL. */
BZ_MUST_USE int bz_loop_run(struct bz_loop *loop, const struct bz_span *whole, void *acc);

/* Call before a chunk. Return false if the loop has stopped; *out is -ECANCELED or 0. */
BZ_MUST_USE bool bz_loop_may_continue(struct bz_loop *loop, int *out);

/* Call after a chunk: yield if the monitor asked for it, or if it is time. Unless the loop is
 * quiet, expose a job to idle workers. turn.c */
void bz_par_checkpoint(bool is_time, bool is_quiet);

/* As blitz_fork(), but quiet: only the monitor may take the job until the next bz_par_checkpoint(). */
void bz_par_fork_quietly(struct blitz_job *job, int (*fn)(void *), void *arg);
/* Take a quiet job back. Return false if it was taken: then join it. */
BZ_MUST_USE bool bz_par_take_back(struct blitz_job *job);

/* Stop the loop: no further chunk starts. */
static inline void bz_loop_stop(struct bz_loop *loop)
{
    bz_store_relaxed(&loop->is_stopped, 1); /* relaxed: a hint; the joins order the results */
}

static inline bool bz_loop_is_stopped(struct bz_loop *loop)
{
    return bz_load_relaxed(&loop->is_stopped) != 0; /* relaxed: likewise */
}

/* True if the caller is shielded. */
bool bz_par_is_shielded(void);
/* In a part: shield it if the loop's caller is shielded. Return true if blitz_unshield() must
 * follow. */
BZ_MUST_USE bool bz_loop_shield(const struct bz_loop *loop);

/* Allocate from the runtime; on a plain thread, from the C library. */
void *bz_par_alloc(size_t bytes);
void bz_par_free(void *memory, size_t bytes);

/* ---- accumulators ---- */

enum { BZ_ACC_SMALL = 64 };

/* Storage of an accumulator: small ones here, others allocated. */
struct bz_acc {
    void *at; /* NULL: there is none */
    _Alignas(max_align_t) char small[BZ_ACC_SMALL];
};

/* Provide storage; return false if there is no memory. In a task, or on a plain thread. */
BZ_MUST_USE bool bz_acc_begin(struct bz_acc *acc, size_t bytes);
/* acc = acc . right */
void bz_acc_add(const blitz_reduction *how, void *acc, void *right, void *arg);
void bz_acc_end(struct bz_acc *acc, size_t bytes);

#endif
