/*
 * held.h - which of the runtime's locks a thread holds: test builds only.
 *
 * Two rules keep the runtime's own locks harmless, and both are about a moment that no test sees by
 * itself. A task must not suspend while it holds one: whoever needs the lock then waits for a task
 * that waits for its turn. And locks are taken in one order, or two threads hold what the other one
 * wants. So in test builds (BZ_WATCH) every thread keeps a list of what it holds; taking looks at
 * the ranks before it waits, so that a deadlock is named instead of being waited for, and a
 * suspension looks whether the list is empty.
 *
 * The ranks are the table below, outermost first: while a lock is held only locks of a later rank
 * may be waited for. A lock without a rank of its own is a leaf: nothing is taken while it is held.
 * A try cannot wait, so it may come in any order; what it took counts as held. Of rank WAIT several
 * may be held at once, if they were taken in the order of their addresses: a select does that.
 *
 * A lock that is released by a post-switch hook, after its holder has left its stack, is passed on
 * (bz_lock_pass): from then on it is nobody's until it is dropped.
 *
 * Rejected: learning the order from what is seen, as some kernels do. It finds the cycle only after
 * both halves have run, and says nothing of the order that was meant.
 *
 * The list belongs to the thread; held.c has the accessors, out of line, so that no address of it is
 * kept over a switch. Simulated threads each have their own: os/sim_coro.c carries it along.
 */
#ifndef BZ_OS_HELD_H
#define BZ_OS_HELD_H

#include <stdint.h>

#include "base/compiler.h"

/* The order of locks, outermost first. */
enum bz_rank {
    BZ_RANK_LEAF = 0,     /* the default: after all others */
    BZ_RANK_RUNTIME = 1,  /* sched: the registry; cancels under it */
    BZ_RANK_TASK = 2,     /* sched: a task's lock; who cancels wakes under it */
    BZ_RANK_WAIT = 3,     /* sync, chan: of what can be waited for; arms timers, wakes */
    BZ_RANK_TIMERS = 4,   /* sched: a proc's wheel; firing wakes */
    BZ_RANK_START = 5,    /* sched: starting threads, which takes a stack */
    BZ_RANK_INJECTOR = 6, /* sched */
    BZ_RANK_STACKS = 7,   /* task: the pool of stacks */
    BZ_RANK_IDLE = 8,     /* sched: going over to fences, which takes a barrier */
    BZ_RANKS
};

#if defined(BZ_WATCH)

enum { BZ_HELD_MAX = 24 };

struct bz_held {
    unsigned count;
    const void *lock[BZ_HELD_MAX];
    uint8_t rank[BZ_HELD_MAX];
};

/* About to wait for a lock of that rank. Aborts if one is held that comes later. */
void bz_held_order(const void *lock, unsigned rank);
/* It is ours, or no longer. Aborts if it was not. */
void bz_held_add(const void *lock, unsigned rank);
void bz_held_remove(const void *lock);
/* The calling thread is about to suspend. Aborts if it holds a lock, and says which. */
void bz_held_none(void);
unsigned bz_held_count(void);
/* The thread is now another, simulated one, with that list; NULL: itself again. */
void bz_held_use(struct bz_held *list);

#else

static inline void bz_held_none(void) {}

#endif

#endif
