/*
 * latch.h - where the end of a job and the join that waits for it meet: one word in the job.
 *
 *   OPEN        nobody has come
 *   a task      its join waits; the task's stack has been left
 *   DONE        the job is over
 *
 * Both come by an exchange, so that who comes second sees who came first, and owes the resumption.
 * The finisher's exchange is its last access to the job: the join may return at once, and take the
 * frame the job lies in along. Rejected: a flag and a waiter in two words (store, fence, look, on both
 * sides, and the finisher would touch the job after the flag).
 *
 * [L] finish: word acq_rel -> is_done: acquire, wait: acq_rel   all the job did, and its result
 * [W] wait: word acq_rel -> finish: acq_rel   the stack has been left before the task is resumed
 */
#ifndef BZ_LATCH_H
#define BZ_LATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bz_atomic.h"
#include "base/compiler.h"

typedef bz_atomic(uintptr_t) bz_latch;

enum { BZ_LATCH_OPEN = 0, BZ_LATCH_DONE = 1 };

/* Before anybody else has seen it; a latch may be used again. */
static inline void bz_latch_init(bz_latch *l)
{
    bz_store_relaxed(l, BZ_LATCH_OPEN); /* relaxed: whoever publishes the job publishes this */
}

static inline bool bz_latch_is_done(bz_latch *l)
{
    return bz_load_acquire(l) == BZ_LATCH_DONE; /* [L] */
}

/* The job is over. Returns: the task that waits, to be resumed by the caller; NULL if none does. */
BZ_MUST_USE static inline void *bz_latch_finish(bz_latch *l)
{
    uintptr_t was;
    if (BZ_BROKEN(
            70)) { /* it looks, then says so: a join that comes between the two is forgotten */
        was = bz_load_relaxed(l);           /* relaxed: broken */
        bz_store_relaxed(l, BZ_LATCH_DONE); /* relaxed: broken */
    } else {
        was = bz_xchg_acqrel(l, BZ_LATCH_DONE); /* [L] [W] */
    }
    return was != BZ_LATCH_OPEN ? (void *)was : NULL;
}

/* `task` waits, and does not run any more. Returns: true if it is to be resumed by the caller. */
BZ_MUST_USE static inline bool bz_latch_wait(bz_latch *l, void *task)
{
    return bz_xchg_acqrel(l, (uintptr_t)task) == BZ_LATCH_DONE; /* [L] [W] */
}

#endif
