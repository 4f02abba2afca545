/*
 * fate.h - one word between a thread in a foreign call and a shutdown that does not wait for it.
 *
 *      FIXED      the thread does something that cannot be abandoned
 *      STARTS     a call that can be    -> RUNS      by the thread, when it is about to make the call
 *      RUNS                             -> RETURNED  by the thread, when the call is back: the thread is the pool's
 *                                       -> TAKEN     by the abandoner, which then detaches the thread
 *      TAKEN                            -> GONE      by the abandoner: its last access to the thread's record
 *
 * A thread that was given a call may still be on its way out of the pool, where it rested. The abandoner waits while it
 * STARTS: the pool must not go meanwhile.
 *
 * Both leave RUNS by a CAS, so one of them loses and knows what the other does. If the thread wins, the runtime
 * stays until the thread is back in the pool. If the abandoner wins, the thread touches nothing of the runtime, waits
 * for GONE, frees its record and ends.
 *
 * [B] begin: release -> take: acq_rel   the thread's last access to the pool comes before the pool goes
 * [F] take: acq_rel, let_go: release -> come_back, is_gone: acquire   what the runtime's tasks did with the
 *     call, and the abandoner's last access, come before what the thread does on its own
 */
#ifndef BZ_FATE_H
#define BZ_FATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bz_atomic.h"
#include "base/compiler.h"

typedef bz_atomic(uint32_t) bz_fate;

enum { BZ_FATE_FIXED, BZ_FATE_STARTS, BZ_FATE_RUNS, BZ_FATE_RETURNED, BZ_FATE_TAKEN, BZ_FATE_GONE };

/* Set the word before the thread starts the work. */
static inline void bz_fate_set(bz_fate *f, bool may_abandon)
{
    /* relaxed: under the pool's lock, and published with the work */
    bz_store_relaxed(f, may_abandon ? BZ_FATE_STARTS : BZ_FATE_FIXED);
}

/* The thread is about to make the call. From here on it may be abandoned, and does not touch the pool. */
static inline void bz_fate_begin(bz_fate *f)
{
    if (bz_load_relaxed(f) == BZ_FATE_STARTS) /* relaxed: only this thread leaves that state */
        bz_store_release(f, BZ_FATE_RUNS);    /* [B] */
}

/* For the abandoner: true if the call will begin in a moment. */
BZ_MUST_USE static inline bool bz_fate_is_starting(bz_fate *f)
{
    return bz_load_relaxed(f) == BZ_FATE_STARTS; /* relaxed: a hint; take decides */
}

/* The thread's call has returned. Return false if it was abandoned. */
BZ_MUST_USE static inline bool bz_fate_come_back(bz_fate *f)
{
    uint32_t seen = BZ_FATE_RUNS;
    return bz_cas_strong_acqrel_acq(f, &seen, BZ_FATE_RETURNED); /* [F] */
}

/* For the abandoner: true if the call is under way, and abandoned from here on. */
BZ_MUST_USE static inline bool bz_fate_take(bz_fate *f)
{
    uint32_t seen = BZ_FATE_RUNS;
    return bz_cas_strong_acqrel_acq(f, &seen, BZ_FATE_TAKEN); /* [F] [B] */
}

/* For the abandoner: the thread may free the record now. */
static inline void bz_fate_let_go(bz_fate *f)
{
    bz_store_release(f, BZ_FATE_GONE); /* [F] */
}

/* For the thread, after its work: true if it was abandoned. Only the thread itself leaves RUNS for RETURNED. */
BZ_MUST_USE static inline bool bz_fate_is_abandoned(bz_fate *f)
{
    return bz_load_relaxed(f) >= BZ_FATE_TAKEN; /* relaxed: come_back has acquired it */
}

/* For a thread that was abandoned: true if it may free its record. */
BZ_MUST_USE static inline bool bz_fate_is_gone(bz_fate *f)
{
    return bz_load_acquire(f) == BZ_FATE_GONE; /* [F] */
}

#endif
