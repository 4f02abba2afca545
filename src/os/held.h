/*
 * held.h - the runtime locks that a thread holds: test builds only.
 *
 * Two rules make the runtime's own locks safe, and tests rarely see a violation by chance. A task
 * must not suspend while it holds a lock: a thread that needs the lock would wait for a task that
 * waits to run. And all threads take locks in one order, or they deadlock. So in test builds
 * (BZ_WATCH) every thread keeps a list of the locks it holds. A lock operation checks the ranks
 * before it waits, so that it reports a deadlock instead of waiting. A suspension checks that the
 * list is empty.
 *
 * The ranks are the table below, outermost first: while a lock is held only locks of a later rank
 * may be waited for. A lock without its own rank is a leaf: no lock is taken while it is held. A
 * try-lock cannot wait, so it may come in any order; the lock it took counts as held. Several locks
 * of rank WAIT may be held at once if they were taken in the order of their addresses, as a select
 * does.
 *
 * If a post-switch hook releases a lock after its holder has left its stack, the holder calls
 * bz_lock_pass: from then on no thread owns the lock until the hook releases it.
 *
 * Rejected: learning the order at run time, as some kernels do. That finds a cycle only after both
 *           halves have run, and does not document the intended order.
 *
 * The list is thread-local; the accessors in held.c are out of line, so that no code keeps its
 * address across a switch. Each simulated thread has its own list: sim/coro.c swaps them.
 */
#ifndef BZ_OS_HELD_H
#define BZ_OS_HELD_H

#include <stdint.h>

#include "base/compiler.h"

/* The order of locks, outermost first. */
enum bz_rank {
    BZ_RANK_LEAF = 0,     /* the default: after all others */
    BZ_RANK_RUNTIME = 1,  /* sched: the registry; cancels under it */
    BZ_RANK_TASK = 2,     /* sched: a task's lock; a cancel wakes tasks under it */
    BZ_RANK_WAIT = 3,     /* sync, chan: locks of primitives; arm timers and wake under it */
    BZ_RANK_TIMERS = 4,   /* sched: a proc's timer wheel; expiry wakes tasks under it */
    BZ_RANK_START = 5,    /* sched: starting threads, which takes a stack */
    BZ_RANK_INJECTOR = 6, /* sched */
    BZ_RANK_GUESTS = 7,   /* sched: idle guests; their stacks go to the pool under it */
    BZ_RANK_STACKS = 8,   /* task: the pool of stacks */
    BZ_RANK_IDLE = 9,     /* sched: the change to fences, which needs a barrier */
    BZ_RANKS
};

#if defined(BZ_WATCH)

enum { BZ_HELD_MAX = 24 };

struct bz_held {
    unsigned count;
    const void *lock[BZ_HELD_MAX];
    uint8_t rank[BZ_HELD_MAX];
};

/* Call before waiting for a lock of this rank. Abort if a lock of a later rank is held. */
void bz_held_order(const void *lock, unsigned rank);
/* Add a lock to the list, or remove it. Abort if it was not held. */
void bz_held_add(const void *lock, unsigned rank);
void bz_held_remove(const void *lock);
/* Call before a suspension. Abort, with the name of the lock, if the thread holds one. */
void bz_held_none(void);
unsigned bz_held_count(void);
/* Switch to the list of a simulated thread; NULL: back to the thread's own list. */
void bz_held_use(struct bz_held *list);

#else

static inline void bz_held_none(void) {}

#endif

#endif
