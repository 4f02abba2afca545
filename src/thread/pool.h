/*
 * pool.h - the threads of a runtime: started on demand, kept for a while, joined at the end.
 *
 * A caller that needs a thread gives the pool something to run. A thread that sleeps in the pool takes it, or a new
 * one is started. A thread that has finished sleeps in the pool, and leaves after BZ_POOL_IDLE_NS. Two kinds of
 * things run here:
 *
 *   a machine (bz_pool_run)   for long: it leaves when it has no proc any more. It gets a thread
 *                             at once or is refused; it never waits in a queue.
 *   a piece of work           one blocking call. Beyond what the limit leaves for machines, or
 *   (bz_pool_work)            if no thread can be started, it waits in a queue, first come first
 *                             served; a thread that finishes its work takes the next.
 *
 * Queued work is never lost: a thread that works now takes it. If no thread works, the work is
 * refused instead, and its caller does it itself.
 */
#ifndef BZ_POOL_H
#define BZ_POOL_H

#include "base/list.h"
#include "blitz/hooks.h"
#include "os/lock.h"
#include "thread/fate.h"

#define BZ_POOL_IDLE_NS UINT64_C(10000000000)

struct bz_pool_thread;

/* A piece of work. Its memory belongs to its creator until `run` is called. */
struct bz_work {
    struct bz_list in; /* pool->pending while it waits; guarded by the pool's lock */
    void (*run)(struct bz_work *w);
    /* Set by its creator: bz_pool_abandon() may abandon it. Then `run` calls bz_work_is_wanted()
     * before it touches anything of the pool's owner. */
    bool may_abandon;
    /* Set by its creator: no task waits for it, so a shutdown refuses it. See bz_pool_stop(). */
    bool is_independent;
    /* NULL, or called instead of `run`, without a lock: the pool was abandoned before the work began. */
    void (*refuse)(struct bz_work *w);
    bz_fate *fate; /* of the thread that runs it: the pool's, written before `run` */
};

struct bz_pool {
    const struct bz_os *os; /* constant after init, like the next ones */
    const blitz_allocator *alloc;
    const char *name;
    unsigned count_max;
    unsigned machines_min; /* there must be room for this many machines */
    unsigned reserve;      /* and for so many more */
    struct bz_lock lock;   /* guards the rest */
    bool is_closing;
    bool is_stopping;            /* independent work is refused */
    unsigned count;              /* threads that have not left */
    unsigned started;            /* threads so far: the number of the last */
    unsigned machines;           /* of these run a machine */
    bz_atomic(uint32_t) working; /* and do a piece of work; the others are idle. A hint outside */
    unsigned kept;               /* so many idle threads are for machines, and stay */
    struct bz_list idle;         /* asleep here; last in, first out */
    struct bz_list busy;         /* running something */
    struct bz_list left;         /* about to return from their thread function: to be joined */
    struct bz_list pending;      /* work that waits for a thread */
    uint64_t begun;              /* pieces of work since init */
    bz_os_word ended;            /* changes when work ends; written under the lock */
    bool is_awaited;             /* a thread sleeps on `ended` */
};

/* Current figures. */
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
 * Run fn(arg), a machine, on a thread of the pool; *out (may be NULL) is that thread, written
 * before fn runs (and undefined on error). Any thread; also during fini, which then refuses.
 * Returns: 0; -EAGAIN (count_max threads are busy, or the system's limit), -ENOMEM, -ESHUTDOWN.
 */
BZ_MUST_USE int bz_pool_run(struct bz_pool *pool, void (*fn)(void *arg), void *arg,
                            const struct bz_os_thread **out);

/*
 * Keep a thread for a machine that is going to need one: one more idle thread
 * neither leaves nor does work, until a matching bz_pool_unkeep.
 * Returns: 0; -EAGAIN, -ENOMEM, -ESHUTDOWN.
 */
BZ_MUST_USE int bz_pool_keep(struct bz_pool *pool);
void bz_pool_unkeep(struct bz_pool *pool);

/*
 * Call w->run(w) on a thread of the pool, now or when one is free.
 * Returns: 0: it will be called, and w may be gone already. -EAGAIN, -ENOMEM: no thread works and none can
 *          be started; -ESHUTDOWN. On error nothing happened, and the caller should do the work itself.
 */
BZ_MUST_USE int bz_pool_work(struct bz_pool *pool, struct bz_work *w);

/* Take back work that has not begun. False: it has begun, or is done. The caller knows that w is
 * alive. */
BZ_MUST_USE bool bz_pool_withdraw(struct bz_pool *pool, struct bz_work *w);

/* Refuse new independent work. A bz_pool_await_quiet() from here on finds all that was not refused. */
void bz_pool_stop(struct bz_pool *pool);

/*
 * Refuse new work, finish the queued work, and join all threads after they have finished.
 * Suspends: the thread, until then. The caller has told endless work to end. Once.
 */
void bz_pool_fini(struct bz_pool *pool);

/*
 * Wait until no work is running or queued.
 * Suspends: the thread, until then or `until`.
 * Returns:  0; -ETIMEDOUT: *out_left pieces still are.
 */
BZ_MUST_USE int bz_pool_await_quiet(struct bz_pool *pool, uint64_t until, unsigned *out_left);

/*
 * Abandon running work that allows it (may_abandon): its thread no longer belongs to the pool,
 * and ends by itself when `run` has returned. The caller knows that nothing waits for that work. Refuse queued work that
 * allows it: no thread would take it from the queue.
 * Returns: how many pieces were running; 0 also if the system's threads cannot be detached.
 */
unsigned bz_pool_abandon(struct bz_pool *pool);

/* For `run` of work that may be abandoned. Call once, when its foreign call has returned. False: it
 * was abandoned, and everything that belongs to the pool's owner may be gone. */
BZ_MUST_USE bool bz_work_is_wanted(struct bz_work *w);

/* True if no work is running or queued. */
BZ_MUST_USE bool bz_pool_is_quiet(struct bz_pool *pool);

/* True if work is running, so that a result may come soon. A hint. */
static inline bool bz_pool_is_working(struct bz_pool *pool)
{
    return bz_load_relaxed(&pool->working) > 0; /* relaxed: a hint */
}

/* Any thread. */
struct bz_pool_figures bz_pool_figures(struct bz_pool *pool);

/* The invariants of pool.c; aborts with what it saw. */
void bz_pool_check(struct bz_pool *pool);

#endif
