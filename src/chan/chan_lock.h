/*
 * chan_lock.h - the lock of a channel: taken by a CAS, dropped by a store.
 *
 * The runtime's own lock (os/lock.h) is dropped by an exchange, because a thread may sleep for it and must be roused.
 * A channel's lock is held for some ten nanoseconds and taken at every send and receive, so that exchange would be a
 * third of the cost of a message. Here the holder rouses no thread. A thread that finds the lock held spins, each time
 * twice as long, and then sleeps with a timeout before each retry. The sleeps matter only if the holder has lost its
 * CPU. Then a late retry costs less than the time for which the holder waits anyway.
 *
 * A channel that two CPUs contend for all the time is fastest if one of them keeps it for a while, with its lines in
 * that CPU's cache. Each change of owner costs half a dozen cache misses. So the lock knows whether it is
 * *hot*, that is, held most of the time. It counts its uses. A thread that has waited computes the number of uses and
 * the time since a thread last waited. At a hot lock the first retry comes some microseconds later (chan_lock.c); at any
 * other lock, where two threads have met by chance, it comes at once.
 * Measured, 4 senders and 4 receivers on two procs, ns a message: 29.5 with os/lock.h, 19.5 without
 * the hot state, 13.8 with it; 13.6 on one proc. The waiters in the channel's queues are served in order all the
 * same: the queues are fair, the gate need not be.
 *
 * The plain form keeps os/lock.h.
 *
 * [A] drop: word release -> take: word acquire    the next holder sees the writes of the last one
 */
#ifndef BZ_CHAN_LOCK_H
#define BZ_CHAN_LOCK_H

#include "os/lock.h"

struct bz_chan_lock {
    struct bz_lock lock;
    bz_atomic(uint8_t) is_hot; /* written under the lock, read by threads that wait for it */
    uint32_t uses, uses_seen;  /* now, at the last wait; guarded by lock, as is ns_seen */
    uint64_t ns_seen;
};

static inline void bz_chan_lock_init(struct bz_chan_lock *g)
{
    bz_lock_init_ranked(&g->lock, BZ_RANK_WAIT);
    bz_atomic_init(&g->is_hot, 0);
    g->uses = g->uses_seen = 0;
    g->ns_seen = 0;
}

#if defined(BZ_PLAIN)

static inline void bz_chan_lock_take(struct bz_chan_lock *g, const struct bz_os *os)
{
    bz_lock_take(&g->lock, os);
}

static inline void bz_chan_lock_take_late(struct bz_chan_lock *g, const struct bz_os *os)
{
    bz_lock_take(&g->lock, os);
}

static inline bool bz_chan_lock_try_inside(struct bz_chan_lock *g, const struct bz_os *os)
{
    bz_lock_take(&g->lock, os);
    return true;
}

static inline void bz_chan_lock_drop_inside(struct bz_chan_lock *g, const struct bz_os *os)
{
    bz_lock_drop(&g->lock, os);
}

static inline void bz_chan_lock_drop(struct bz_chan_lock *g, const struct bz_os *os)
{
    bz_lock_drop(&g->lock, os);
}

static inline bool bz_chan_lock_try(struct bz_chan_lock *g, const struct bz_os *os)
{
    bz_lock_take(&g->lock, os);
    return true;
}

#else

/* Take the lock on the slow path: spin, then sleep and retry. */
void bz_chan_lock_wait(struct bz_chan_lock *g, const struct bz_os *os);

static BZ_ALWAYS_INLINE bool bz_chan_lock_try_(struct bz_chan_lock *g)
{
    uint32_t seen = BZ_LOCK_FREE;
    return bz_cas_strong_acq_rlx(&g->lock.word, &seen, BZ_LOCK_HELD); /* [A] */
}

static BZ_ALWAYS_INLINE void bz_chan_lock_take(struct bz_chan_lock *g, const struct bz_os *os)
{
    bz_lock_about_to_wait_(&g->lock);
    bz_os_delay(os, BZ_OS_AT_LOCK);
    bz_self_hold();
    if (BZ_UNLIKELY(!bz_chan_lock_try_(g)))
        bz_chan_lock_wait(g, os);
    bz_lock_taken_(&g->lock);
    g->uses++;
}

/* Take the lock if it is free. Without a call, for functions that save no registers. */
BZ_MUST_USE static BZ_ALWAYS_INLINE bool bz_chan_lock_try(struct bz_chan_lock *g,
                                                          const struct bz_os *os)
{
    bz_lock_about_to_wait_(&g->lock);
    bz_os_delay(os, BZ_OS_AT_LOCK);
    bz_self_hold();
    if (BZ_UNLIKELY(!bz_chan_lock_try_(g))) {
        bz_self_release();
        return false;
    }
    bz_lock_taken_(&g->lock);
    g->uses++;
    return true;
}

/* Take the lock after bz_chan_lock_try() has failed. */
static inline void bz_chan_lock_take_late(struct bz_chan_lock *g, const struct bz_os *os)
{
    bz_lock_about_to_wait_(&g->lock);
    bz_self_hold();
    bz_chan_lock_wait(g, os);
    bz_lock_taken_(&g->lock);
    g->uses++;
}

static BZ_ALWAYS_INLINE void bz_chan_lock_drop(struct bz_chan_lock *g, const struct bz_os *os)
{
    (void)os;
    bz_lock_dropping_(&g->lock);
    bz_store_release(&g->lock.word, BZ_LOCK_FREE); /* [A] */
    bz_self_release();
}

/* The same for the hook of a wait. Its machine is in the runtime, where no thread is stopped (bz_machine_may_interrupt),
 * so it counts no lock that it holds: os/self.h. */
BZ_MUST_USE static BZ_ALWAYS_INLINE bool bz_chan_lock_try_inside(struct bz_chan_lock *g,
                                                                 const struct bz_os *os)
{
    bz_lock_about_to_wait_(&g->lock);
    bz_os_delay(os, BZ_OS_AT_LOCK);
    if (BZ_UNLIKELY(!bz_chan_lock_try_(g)))
        return false;
    bz_lock_taken_(&g->lock);
    g->uses++;
    return true;
}

static BZ_ALWAYS_INLINE void bz_chan_lock_drop_inside(struct bz_chan_lock *g,
                                                      const struct bz_os *os)
{
    (void)os;
    bz_lock_dropping_(&g->lock);
    bz_store_release(&g->lock.word, BZ_LOCK_FREE); /* [A] */
}

#endif

#endif
