/*
 * brief_lock.h - a lock that is taken by a CAS and dropped by a store.
 *
 * For locks that are held for some ten nanoseconds and taken several times in each operation, such as a file's. The
 * lock of os/lock.h is dropped by an exchange, because a thread may sleep for it and must be roused. Here the holder
 * rouses no thread, so the drop is a plain store. A thread that finds the lock held spins, each time twice as long,
 * and then sleeps with a timeout before each retry. The sleeps matter only if the holder has lost its CPU, or makes a
 * rare system call with the lock held. A late retry then costs less than the time for which the holder waits anyway.
 *
 * Rejected: a count of sleepers that the holder reads after its store. It needs a fence, or a membarrier by the
 * sleeper, and rouses threads that a timeout rouses as well.
 *
 * The functions work on a struct bz_lock, so ranks and checks are those of os/lock.h. One lock is used with these
 * functions or with those of os/lock.h, never with both. The plain form is os/lock.h. (The lock of a channel, chan_lock.h,
 * is like this one, and also knows whether two CPUs contend for it all the time.)
 *
 * [A] drop: word release -> take: word acquire    the next holder sees the writes of the last one
 */
#ifndef BZ_OS_BRIEF_LOCK_H
#define BZ_OS_BRIEF_LOCK_H

#include "os/lock.h"

#if defined(BZ_PLAIN)

static inline void bz_brief_take(struct bz_lock *l, const struct bz_os *os)
{
    bz_lock_take(l, os);
}

static inline void bz_brief_take_by(struct bz_lock *l, const struct bz_os *os,
                                    void (*wait)(struct bz_lock *l))
{
    (void)wait;
    bz_lock_take(l, os);
}

static inline bool bz_brief_try(struct bz_lock *l, const struct bz_os *os)
{
    bz_os_delay(os, BZ_OS_AT_LOCK);
    return bz_lock_try(l);
}

static inline void bz_brief_drop(struct bz_lock *l, const struct bz_os *os)
{
    bz_lock_drop(l, os);
}

#else

static BZ_ALWAYS_INLINE bool bz_brief_grab_(struct bz_lock *l)
{
    uint32_t seen = BZ_LOCK_FREE;
    return bz_cas_strong_acq_rlx(&l->word, &seen, BZ_LOCK_HELD); /* [A] */
}

/* Take the lock on the slow path: spin, then sleep and retry. */
void bz_brief_wait(struct bz_lock *l, const struct bz_os *os);

static BZ_ALWAYS_INLINE void bz_brief_take(struct bz_lock *l, const struct bz_os *os)
{
    bz_lock_about_to_wait_(l);
    bz_os_delay(os, BZ_OS_AT_LOCK);
    bz_self_hold();
    if (BZ_UNLIKELY(!bz_brief_grab_(l)))
        bz_brief_wait(l, os);
    bz_lock_taken_(l);
}

/* The same. `wait` calls bz_brief_wait(): so that only the slow path loads the system, where a lock's owner knows it. */
static BZ_ALWAYS_INLINE void bz_brief_take_by(struct bz_lock *l, const struct bz_os *os,
                                              void (*wait)(struct bz_lock *l))
{
    bz_lock_about_to_wait_(l);
    bz_os_delay(os, BZ_OS_AT_LOCK);
    bz_self_hold();
    if (BZ_UNLIKELY(!bz_brief_grab_(l)))
        wait(l);
    bz_lock_taken_(l);
}

/* Try once. Return true if the caller now holds the lock. So a fast path has no call in it, and saves no registers. */
BZ_MUST_USE static BZ_ALWAYS_INLINE bool bz_brief_try(struct bz_lock *l, const struct bz_os *os)
{
    bz_lock_about_to_wait_(l);
    bz_os_delay(os, BZ_OS_AT_LOCK);
    bz_self_hold();
    if (BZ_UNLIKELY(!bz_brief_grab_(l))) {
        bz_self_release();
        return false;
    }
    bz_lock_taken_(l);
    return true;
}

static BZ_ALWAYS_INLINE void bz_brief_drop(struct bz_lock *l, const struct bz_os *os)
{
    bz_lock_dropping_(l);
    BZ_ASSERT(bz_load_relaxed(&l->word) != BZ_LOCK_FREE); /* relaxed: ours while we hold it */
    bz_store_release(&l->word, BZ_LOCK_FREE);             /* [A] */
    bz_self_release();
    bz_os_delay(os, BZ_OS_AT_LOCK); /* *l may be freed */
}

#endif

#endif
