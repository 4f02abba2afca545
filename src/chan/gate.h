/*
 * gate.h - the lock of a channel: taken by a CAS, dropped by a store.
 *
 * The runtime's own lock (os/lock.h) is dropped by an exchange, because somebody may sleep for it and
 * must be woken. A channel's lock is held for some ten nanoseconds and taken at every send and receive,
 * so that exchange is a third of what a message costs. Here nobody is woken: who finds the gate shut
 * spins, each time twice as long, and then sleeps for a while at a time, by the clock. That matters
 * only if the holder has lost its CPU; and then a late look costs less than what the holder waits for
 * anyway.
 *
 * The spinning is unfair, and that is as good as it gets on two CPUs: a channel that two of them fight
 * over is fastest when one has it for a while, with its lines in that one's cache. Who waits in the
 * channel's line is served in order all the same: fairness is there, not here.
 *
 * The plain form keeps os/lock.h.
 *
 * [A] drop: word release -> take: word acquire    what one holder wrote, the next one sees
 */
#ifndef BZ_CHAN_GATE_H
#define BZ_CHAN_GATE_H

#include "os/lock.h"

#if defined(BZ_PLAIN)

static inline void bz_gate_take(struct bz_lock *l, const struct bz_os *os)
{
    bz_lock_take(l, os);
}

static inline void bz_gate_drop(struct bz_lock *l, const struct bz_os *os)
{
    bz_lock_drop(l, os);
}

#else

/* The slow half: spin, then sleep and look again. */
void bz_gate_wait(struct bz_lock *l, const struct bz_os *os);

static BZ_ALWAYS_INLINE bool bz_gate_try_(struct bz_lock *l)
{
    uint32_t seen = BZ_LOCK_FREE;
    return bz_cas_strong_acq_rlx(&l->word, &seen, BZ_LOCK_HELD); /* [A] */
}

static BZ_ALWAYS_INLINE void bz_gate_take(struct bz_lock *l, const struct bz_os *os)
{
    bz_lock_about_to_wait_(l);
    if (BZ_UNLIKELY(!bz_gate_try_(l)))
        bz_gate_wait(l, os);
    bz_lock_taken_(l);
}

static BZ_ALWAYS_INLINE void bz_gate_drop(struct bz_lock *l, const struct bz_os *os)
{
    (void)os;
    bz_lock_dropping_(l);
    bz_store_release(&l->word, BZ_LOCK_FREE); /* [A] */
}

#endif

#endif
