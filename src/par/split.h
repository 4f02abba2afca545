/*
 * split.h - a range of indexes, cut into chunks that are run by whoever has time.
 *
 * What all loops are made of: for.c, reduce.c. split.c has the rules.
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
    return (s->to - s->from) * (s->right - s->left); /* fits: who starts a loop sees to it */
}

struct bz_loop;

/* Run one chunk; acc is the accumulator of all that is left of it in its part, or NULL. */
typedef int bz_chunk_fn(const struct bz_loop *loop, const struct bz_span *s, void *acc);

/* All parts of a loop see it. Constant but for is_stopped and offers. */
struct bz_loop {
    bz_chunk_fn *chunk;
    void (*body)(void); /* the user's, as the chunk function knows it */
    void *arg;
    const blitz_reduction *how; /* NULL: there are no accumulators */
    size_t cells;               /* of the whole */
    size_t grain;               /* at least 1 */
    size_t chunk_max;           /* at least grain */
    bool is_tiled;              /* grain is a number of cells, and the longer side is cut */
    bool is_shielded;           /* the caller does not hear cancels: nor do the parts */
    bz_atomic(int) is_stopped;  /* 1: no chunk begins any more */

    /* With accumulators only; split.c. */
    uint64_t began;                   /* when */
    unsigned offers_even, offers_max; /* the budget: for even work, and for any */
    bz_atomic(unsigned) shares;       /* offers with a share that no thief has taken yet */
    bz_atomic(unsigned) offers;       /* parts that are on offer or were taken */
};

/* Fill in what follows from the options. */
void bz_loop_init(struct bz_loop *loop, size_t cells, const blitz_par_opts *opts);

/* Run all of it, from whichever thread; the first accumulator, which init has seen, or NULL. */
BZ_MUST_USE int bz_loop_run(struct bz_loop *loop, const struct bz_span *whole, void *acc);

/* Before a chunk. False: nothing more is to begin, and *out is -ECANCELED or 0. */
BZ_MUST_USE bool bz_loop_may_go_on(struct bz_loop *loop, int *out);

/* After a chunk: let others run if we were asked, or if it is time; and unless we are quiet, show a job
 * to those who have nothing to do. turn.c */
void bz_par_look_up(bool is_time, bool is_quiet);

/* As blitz_fork(), but for the monitor alone: nobody else takes it until we look up. */
void bz_par_fork_quietly(struct blitz_job *job, int (*fn)(void *), void *arg);
/* Have such a one back, as quietly. False: somebody has it; join it. */
BZ_MUST_USE bool bz_par_take_back(struct blitz_job *job);

/* No chunk is to begin any more. */
static inline void bz_loop_stop(struct bz_loop *loop)
{
    bz_store_relaxed(&loop->is_stopped, 1); /* relaxed: a hint, results go by the joins */
}

static inline bool bz_loop_is_stopped(struct bz_loop *loop)
{
    return bz_load_relaxed(&loop->is_stopped) != 0; /* relaxed: likewise */
}

/* Does the caller stand under a shield? */
bool bz_par_is_shielded(void);
/* In a part: let cancels wait, if the loop's caller does. True: blitz_unshield() when it is done. */
BZ_MUST_USE bool bz_loop_shield(const struct bz_loop *loop);

/* Memory of the runtime; on a plain thread, of the C library. */
void *bz_par_alloc(size_t bytes);
void bz_par_free(void *memory, size_t bytes);

/* ---- accumulators ---- */

enum { BZ_ACC_SMALL = 64 };

/* Room for one: small ones here, others in the runtime's memory. */
struct bz_acc {
    void *at; /* NULL: there is none */
    _Alignas(max_align_t) char small[BZ_ACC_SMALL];
};

/* Where it shall be; false: no memory. In a task, or on a plain thread. */
BZ_MUST_USE bool bz_acc_begin(struct bz_acc *acc, size_t bytes);
/* acc = acc . right */
void bz_acc_add(const blitz_reduction *how, void *acc, void *right, void *arg);
void bz_acc_end(struct bz_acc *acc, size_t bytes);

#endif
