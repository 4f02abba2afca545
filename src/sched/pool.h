/*
 * pool.h - the threads of a runtime: started on demand, kept for a while, joined at the end.
 *
 * Whoever needs a thread gives the pool something to run; a thread that sleeps there takes it, or
 * one is started. A thread whose work is done sleeps in the pool and is gone after BZ_POOL_IDLE_NS
 * of that. Machines run here: with one that is left without a proc, its thread is free for the
 * next.
 */
#ifndef BZ_POOL_H
#define BZ_POOL_H

#include "base/list.h"
#include "blitz/hooks.h"
#include "os/lock.h"

#define BZ_POOL_IDLE_NS UINT64_C(10000000000)

struct bz_pool_thread;

struct bz_pool {
    const struct bz_os *os; /* constant after init, as are the next ones */
    const blitz_allocator *alloc;
    const char *name;
    unsigned count_max;
    struct bz_lock lock; /* guards the rest */
    bool is_closing;
    unsigned count;      /* threads that have not left */
    struct bz_list idle; /* asleep here; the last to come is the first to go */
    struct bz_list busy; /* running something */
    struct bz_list left; /* about to return from their thread: to be joined */
};

/* Owns: borrows `alloc` and `name` until fini. At most `count_max` threads at a time. */
void bz_pool_init(struct bz_pool *pool, const struct bz_os *os, const blitz_allocator *alloc,
                  const char *name, unsigned count_max);

/*
 * Have fn(arg) run on a thread of the pool. Any thread; also while fini is under way, which then
 * refuses.
 * Returns: 0; -EAGAIN (count_max threads are busy, or the system's limit), -ENOMEM, -ESHUTDOWN.
 */
BZ_MUST_USE int bz_pool_run(struct bz_pool *pool, void (*fn)(void *arg), void *arg);

/*
 * No more work is taken, and when all threads have come to the end of theirs they are joined.
 * Suspends: the thread, until then: whoever runs something endless has told it to end. Once.
 */
void bz_pool_fini(struct bz_pool *pool);

/* How many threads there are, and how many of them sleep. Any thread. */
unsigned bz_pool_count(struct bz_pool *pool, unsigned *out_idle);

#endif
