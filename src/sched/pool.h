/*
 * pool.h - the threads of a runtime: started on demand, kept for a while, joined at the end.
 *
 * Whoever needs a thread gives the pool something to run; a thread that sleeps there takes it, or
 * one is started. A thread whose work is done sleeps in the pool and is gone after BZ_POOL_IDLE_NS
 * of that. Two kinds of things run here:
 *
 *   a machine (bz_pool_run)   for long: it leaves when it is left without a proc. It gets a thread
 *                             at once or is told that there is none; it never stands in a line.
 *   a piece of work           one call that blocks. Beyond what the limit leaves for machines, or
 *   (bz_pool_work)            when no thread can be started, it waits in a line, first come first
 *                             served; a thread that comes to the end of its work takes the next.
 *
 * Work in the line is never lost: it is taken by a thread that works now, and if there is none such
 * it is refused instead, and its caller does it itself.
 */
#ifndef BZ_POOL_H
#define BZ_POOL_H

#include "base/list.h"
#include "blitz/hooks.h"
#include "os/lock.h"
#include "sched/fate.h"

#define BZ_POOL_IDLE_NS UINT64_C(10000000000)

struct bz_pool_thread;

/* A piece of work. The memory is its maker's, until `run` is called. */
struct bz_work {
    struct bz_list in; /* pool->pending while it waits; guarded by the pool's lock */
    void (*run)(struct bz_work *w);
    /* Set by its maker: bz_pool_abandon() may leave it to itself. Then `run` asks bz_work_is_wanted() before
     * it touches anything of the pool's owner. */
    bool may_abandon;
    bz_fate *fate; /* of the thread that runs it: the pool's, written before `run` */
};

struct bz_pool {
    const struct bz_os *os; /* constant after init, as are the next ones */
    const blitz_allocator *alloc;
    const char *name;
    unsigned count_max;
    unsigned machines_min; /* there must be room for this many machines */
    unsigned reserve;      /* and for this many more */
    struct bz_lock lock;   /* guards the rest */
    bool is_closing;
    unsigned count;              /* threads that have not left */
    unsigned started;            /* threads so far: the number of the last */
    unsigned machines;           /* of these run a machine */
    bz_atomic(uint32_t) working; /* and do a piece of work; the others are idle. Others peek */
    unsigned kept;               /* so many idle ones are for machines, and stay */
    struct bz_list idle;         /* asleep here; the last to come is the first to go */
    struct bz_list busy;         /* running something */
    struct bz_list left;         /* about to return from their thread: to be joined */
    struct bz_list pending;      /* work that waits for a thread */
    uint64_t begun;              /* pieces of work, since ever */
    bz_os_word ended;            /* changes with each that ends; written under the lock */
    bool is_awaited;             /* somebody sleeps on that */
};

/* What there is now. */
struct bz_pool_figures {
    unsigned threads, idle, pending;
    uint64_t begun;
};

/*
 * Owns: borrows `alloc` and `name` until fini. At most `count_max` threads at a time, more than
 * `machines`: work leaves room for that many machines, and for some more if the limit allows.
 */
void bz_pool_init(struct bz_pool *pool, const struct bz_os *os, const blitz_allocator *alloc,
                  const char *name, unsigned count_max, unsigned machines);

/*
 * Have fn(arg), a machine, run on a thread of the pool; *out (may be NULL) is that thread, written
 * before fn runs (and undefined on error). Any thread; also while fini is under way, which then refuses.
 * Returns: 0; -EAGAIN (count_max threads are busy, or the system's limit), -ENOMEM, -ESHUTDOWN.
 */
BZ_MUST_USE int bz_pool_run(struct bz_pool *pool, void (*fn)(void *arg), void *arg,
                            const struct bz_os_thread **out);

/*
 * See to it that a thread is there for a machine that is going to need one: one more idle thread
 * neither leaves nor does work, until as many unkeeps.
 * Returns: 0; -EAGAIN, -ENOMEM, -ESHUTDOWN.
 */
BZ_MUST_USE int bz_pool_keep(struct bz_pool *pool);
void bz_pool_unkeep(struct bz_pool *pool);

/*
 * Have w->run(w) called on a thread of the pool, now or when one is free.
 * Returns: 0: it will be, and w may be gone already. -EAGAIN, -ENOMEM: no thread works and none is
 *          to be had; -ESHUTDOWN. On error nothing happened, and the caller had better do it itself.
 */
BZ_MUST_USE int bz_pool_work(struct bz_pool *pool, struct bz_work *w);

/* Take back work that has not begun. False: it has, or is done. The caller knows that w is alive. */
BZ_MUST_USE bool bz_pool_withdraw(struct bz_pool *pool, struct bz_work *w);

/*
 * No more work is taken; what is in the line is done, and when all threads have come to the end of
 * theirs they are joined.
 * Suspends: the thread, until then: whoever runs something endless has told it to end. Once.
 */
void bz_pool_fini(struct bz_pool *pool);

/*
 * Wait until no work is under way or in the line.
 * Suspends: the thread, until then or `until`.
 * Returns:  0; -ETIMEDOUT: *out_left pieces still are.
 */
BZ_MUST_USE int bz_pool_await_quiet(struct bz_pool *pool, uint64_t until, unsigned *out_left);

/*
 * Leave work to itself that says it may be (may_abandon) and is under way: its thread is no longer the pool's,
 * and ends by itself when `run` has returned. The caller knows that nothing waits for that work.
 * Returns: how many pieces; 0 as well where the system's threads cannot be detached.
 */
unsigned bz_pool_abandon(struct bz_pool *pool);

/* For `run` of work that may be abandoned, once, when its foreign call has returned. False: it was abandoned,
 * and all that belongs to the pool's owner may be gone. */
BZ_MUST_USE bool bz_work_is_wanted(struct bz_work *w);

/* Is no work under way or in the line? */
BZ_MUST_USE bool bz_pool_is_quiet(struct bz_pool *pool);

/* Is a piece of work under way, so that somebody may soon have a result? A hint. */
static inline bool bz_pool_is_working(struct bz_pool *pool)
{
    return bz_load_relaxed(&pool->working) > 0; /* relaxed: a hint */
}

/* Any thread. */
struct bz_pool_figures bz_pool_figures(struct bz_pool *pool);

/* The invariants of pool.c; aborts with what it saw. */
void bz_pool_check(struct bz_pool *pool);

#endif
