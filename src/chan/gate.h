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
 * A channel that two CPUs fight over all the time is fastest when one of them has it for a while, with
 * its lines in that one's cache: each change of hands costs half a dozen cache misses. So a gate knows
 * whether it is *hot*, that is, shut most of the time: it counts its uses, and who has waited looks how
 * many there were since somebody waited last, and how long that is ago. At a hot gate the first look
 * comes some twenty microseconds later; at any other one, where two have met by chance, at once.
 * Measured, 4 senders and 4 receivers on two procs, ns a message: 29.5 with os/lock.h, 19.5 without
 * this, 13.8 with it; 13.6 on one proc. Who waits in the channel's line is served in order all the
 * same: fairness is there, not here.
 *
 * The plain form keeps os/lock.h.
 *
 * [A] drop: word release -> take: word acquire    what one holder wrote, the next one sees
 */
#ifndef BZ_CHAN_GATE_H
#define BZ_CHAN_GATE_H

#include "os/lock.h"

struct bz_gate {
    struct bz_lock lock;
    bz_atomic(uint8_t) is_hot; /* written under the lock, read by who waits for it */
    uint32_t uses, uses_seen;  /* guarded by it, as is: now, and when somebody waited last */
    uint64_t ns_seen;
};

static inline void bz_gate_init(struct bz_gate *g)
{
    bz_lock_init_ranked(&g->lock, BZ_RANK_WAIT);
    bz_atomic_init(&g->is_hot, 0);
    g->uses = g->uses_seen = 0;
    g->ns_seen = 0;
}

#if defined(BZ_PLAIN)

static inline void bz_gate_take(struct bz_gate *g, const struct bz_os *os)
{
    bz_lock_take(&g->lock, os);
}

static inline void bz_gate_drop(struct bz_gate *g, const struct bz_os *os)
{
    bz_lock_drop(&g->lock, os);
}

#else

/* The slow half: spin, then sleep and look again. */
void bz_gate_wait(struct bz_gate *g, const struct bz_os *os);

static BZ_ALWAYS_INLINE bool bz_gate_try_(struct bz_gate *g)
{
    uint32_t seen = BZ_LOCK_FREE;
    return bz_cas_strong_acq_rlx(&g->lock.word, &seen, BZ_LOCK_HELD); /* [A] */
}

static BZ_ALWAYS_INLINE void bz_gate_take(struct bz_gate *g, const struct bz_os *os)
{
    bz_lock_about_to_wait_(&g->lock);
    bz_os_delay(os, BZ_OS_AT_LOCK);
    bz_self_hold();
    if (BZ_UNLIKELY(!bz_gate_try_(g)))
        bz_gate_wait(g, os);
    bz_lock_taken_(&g->lock);
    g->uses++;
}

static BZ_ALWAYS_INLINE void bz_gate_drop(struct bz_gate *g, const struct bz_os *os)
{
    (void)os;
    bz_lock_dropping_(&g->lock);
    bz_store_release(&g->lock.word, BZ_LOCK_FREE); /* [A] */
    bz_self_release();
}

#endif

#endif
