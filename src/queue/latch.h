/*
 * latch.h - where the end of a job and the join that waits for it meet: one word in the job.
 *
 *   OPEN        neither side has come
 *   a task      its join waits; the task's stack has been left
 *   DONE        the job is over
 *   RETURNED    no machine can run the job: the join runs it itself
 *
 * A machine that holds the job and cannot run it returns it, but only to a join that waits. While the word is
 * OPEN the machine keeps the job: the forker may never join before the job has done something. Once the word
 * names a task, only the job's holder writes it, so a return is a load and a store.
 *
 * Both sides come by an exchange. So the second side sees the first, and must resume the task. The
 * finisher's exchange is its last access to the job: the join may return at once, and the frame that the
 * job lies in is then gone. Rejected: a flag and a waiter in two words (store, fence, look, on both
 * sides, and the finisher would touch the job after the flag).
 *
 * [L] finish: word acq_rel -> is_done: acquire, wait: acq_rel   all the job did, and its result
 * [W] wait: word acq_rel -> finish: acq_rel, give_back: acquire   the stack has been left before the task is
 *     resumed
 */
#ifndef BZ_LATCH_H
#define BZ_LATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bz_atomic.h"
#include "base/compiler.h"

typedef bz_atomic(uintptr_t) bz_latch;

enum { BZ_LATCH_OPEN = 0, BZ_LATCH_DONE = 1, BZ_LATCH_RETURNED = 2 };

/* Before any other thread has seen it; a latch may be used again. */
static inline void bz_latch_init(bz_latch *l)
{
    bz_store_relaxed(l, BZ_LATCH_OPEN); /* relaxed: published with the job */
}

static inline bool bz_latch_is_done(bz_latch *l)
{
    return bz_load_acquire(l) == BZ_LATCH_DONE; /* [L] */
}

/* The job is over. Returns: the task that waits, to be resumed by the caller; NULL if none does. */
BZ_MUST_USE static inline void *bz_latch_finish(bz_latch *l)
{
    uintptr_t was = bz_xchg_acqrel(l, BZ_LATCH_DONE); /* [L] [W] */
    return was != BZ_LATCH_OPEN ? (void *)was : NULL;
}

/* `task` waits, and has left its stack. Returns: true if the caller must resume it. */
BZ_MUST_USE static inline bool bz_latch_wait(bz_latch *l, void *task)
{
    return bz_xchg_acqrel(l, (uintptr_t)task) == BZ_LATCH_DONE; /* [L] [W] */
}

/*
 * The holder of the job cannot run it. Returns: the task that waits, to be resumed by the caller, which then
 * runs the job; NULL if no task waits, and the caller still holds the job.
 */
BZ_MUST_USE static inline void *bz_latch_give_back(bz_latch *l)
{
    uintptr_t task = bz_load_acquire(l); /* [W] */
    if (task == BZ_LATCH_OPEN)
        return NULL;
    bz_store_relaxed(l, BZ_LATCH_RETURNED); /* relaxed: the resumption publishes it */
    return (void *)task;
}

/* For the task that was resumed: it has the job back. */
BZ_MUST_USE static inline bool bz_latch_was_returned(bz_latch *l)
{
    return bz_load_relaxed(l) == BZ_LATCH_RETURNED; /* relaxed: the resumption published it */
}

#endif
