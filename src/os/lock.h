/*
 * lock.h - the runtime's own lock, for short sections: spin a little, then sleep.
 *
 * For data that is rare or slow enough that a lock-free protocol would be a risk without a gain:
 * the injector, a timer wheel, the global pool of stacks. It is never held across a suspension, a
 * system call or a call into user code. So a waiter waits for nanoseconds, unless the holder has
 * lost its CPU; then the waiter sleeps on the word instead of using the CPU that the holder needs.
 *
 *   FREE -> HELD -> FREE             no contention: one CAS and one exchange
 *   HELD -> CONTENDED -> FREE + wake a waiter sleeps, or may sleep
 *
 * A waiter that has slept takes the lock as CONTENDED, because it cannot know whether it was the
 * only sleeper. The cost is one unneeded wake at the end of a contended period.
 *
 * Not fair, not recursive, not for users. Locks have ranks, and test builds check that they are
 * taken in that order and never held over a suspension: os/held.h.
 *
 * Lock and unlock are delay points (os/os.h), also when the lock is free. So a simulation can run
 * another thread between two locked sections of one function. It finds bugs in which the second
 * section relies on a decision of the first.
 *
 * [A] unlock: word release -> lock: word acquire    the next holder sees the writes of this one
 */
#ifndef BZ_OS_LOCK_H
#define BZ_OS_LOCK_H

#include "base/bz_atomic.h"
#include "base/check.h"
#include "os/held.h"
#include "os/os.h"
#include "os/self.h"

enum { BZ_LOCK_FREE = 0, BZ_LOCK_HELD = 1, BZ_LOCK_CONTENDED = 2 };

/* Spin rounds before the first sleep: about a microsecond. */
#if !defined(BZ_LOCK_SPINS)
#define BZ_LOCK_SPINS 6
#endif

struct bz_lock {
    bz_os_word word;
#if defined(BZ_WATCH)
    uint16_t rank;      /* enum bz_rank; constant after init */
    uint16_t is_passed; /* guarded by the lock itself: the thread that unlocks is not the holder */
#endif
};

/* Initialiser of a leaf lock with static storage. */
#define BZ_LOCK_INIT         \
    {                        \
        .word = BZ_LOCK_FREE \
    }

/* ---- checks of test builds: os/held.h ---- */

#if defined(BZ_WATCH)
static inline void bz_lock_about_to_wait_as_(struct bz_lock *l, enum bz_rank rank)
{
    bz_held_order(l, rank);
}
static inline void bz_lock_taken_as_(struct bz_lock *l, enum bz_rank rank)
{
    bz_held_add(l, rank);
}
static inline void bz_lock_about_to_wait_(struct bz_lock *l)
{
    bz_held_order(l, l->rank);
}
static inline void bz_lock_taken_(struct bz_lock *l)
{
    bz_held_add(l, l->rank);
}
static inline void bz_lock_dropping_(struct bz_lock *l)
{
    if (!l->is_passed)
        bz_held_remove(l);
    l->is_passed = 0;
}
static inline void bz_lock_rank_(struct bz_lock *l, enum bz_rank rank)
{
    l->rank = (uint16_t)rank;
    l->is_passed = 0;
}
/* Call before the holder leaves its stack, if a hook on the next stack will unlock. */
static inline void bz_lock_pass(struct bz_lock *l)
{
    bz_held_remove(l);
    l->is_passed = 1;
}
#else
static inline void bz_lock_about_to_wait_as_(struct bz_lock *l, enum bz_rank rank)
{
    (void)l;
    (void)rank;
}
static inline void bz_lock_taken_as_(struct bz_lock *l, enum bz_rank rank)
{
    (void)l;
    (void)rank;
}
static inline void bz_lock_about_to_wait_(struct bz_lock *l)
{
    (void)l;
}
static inline void bz_lock_taken_(struct bz_lock *l)
{
    (void)l;
}
static inline void bz_lock_dropping_(struct bz_lock *l)
{
    (void)l;
}
static inline void bz_lock_rank_(struct bz_lock *l, enum bz_rank rank)
{
    (void)l;
    (void)rank;
}
static inline void bz_lock_pass(struct bz_lock *l)
{
    (void)l;
}
#endif

static inline void bz_lock_init_ranked(struct bz_lock *l, enum bz_rank rank)
{
    bz_atomic_init(&l->word, BZ_LOCK_FREE);
    bz_lock_rank_(l, rank);
}

/* Initialise a leaf: no other lock is taken while it is held. */
static inline void bz_lock_init(struct bz_lock *l)
{
    bz_lock_init_ranked(l, BZ_RANK_LEAF);
}

/* ---- taking and dropping ---- */

static inline bool bz_lock_grab_(struct bz_lock *l)
{
    uint32_t seen = BZ_LOCK_FREE;
    return bz_cas_strong_acq_rlx(&l->word, &seen, BZ_LOCK_HELD); /* [A] */
}

/* Try once. Return true if the caller now holds the lock. */
BZ_MUST_USE static inline bool bz_lock_try(struct bz_lock *l)
{
    bz_self_hold();
    if (!bz_lock_grab_(l)) {
        bz_self_release();
        return false;
    }
    bz_lock_taken_(l);
    return true;
}

/* The slow path of bz_lock_take: spin, then sleep. */
void bz_lock_wait(struct bz_lock *l, const struct bz_os *os);

static inline void bz_lock_take(struct bz_lock *l, const struct bz_os *os)
{
    bz_lock_about_to_wait_(l);
    bz_os_delay(os, BZ_OS_AT_LOCK);
    bz_self_hold();
    if (!bz_lock_grab_(l))
        bz_lock_wait(l, os);
    bz_lock_taken_(l);
}

/* The same for a lock in zeroed memory that was never initialized, such as that of a primitive with
 * a static initializer; the caller gives its rank. */
static inline void bz_lock_take_ranked(struct bz_lock *l, enum bz_rank rank, const struct bz_os *os)
{
    bz_lock_about_to_wait_as_(l, rank);
    bz_os_delay(os, BZ_OS_AT_LOCK);
    bz_self_hold();
    if (!bz_lock_grab_(l))
        bz_lock_wait(l, os);
    bz_lock_taken_as_(l, rank);
}

static inline void bz_lock_drop(struct bz_lock *l, const struct bz_os *os)
{
    bz_lock_dropping_(l);
    uint32_t was = bz_xchg_release(&l->word, BZ_LOCK_FREE); /* [A] */
    BZ_ASSERT(was != BZ_LOCK_FREE);
    if (was == BZ_LOCK_CONTENDED)
        bz_os_wake(os, &l->word, 1);
    bz_self_release();
    bz_os_delay(os, BZ_OS_AT_LOCK); /* *l may be freed */
}

#endif
