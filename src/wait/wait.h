/*
 * wait.h - how a task or a thread waits, and how a wake, a deadline or a cancel ends it.
 *
 * The manual for authors of a primitive that tasks can wait for: a join, a lock, a channel.
 *
 *     struct bz_wait w;                                  // in the waiting frame; allocates nothing
 *     bz_wait_begin(&w, os, "receive", until);
 *     uint32_t outcome = bz_wait_refuse(&w);             // deadline passed, or cancelled?
 *     if (outcome == BZ_WAIT_OPEN) {
 *         outcome = bz_wait_park(&w, receive_hook, &call);
 *         if (outcome < BZ_WAIT_WOKEN) {                 // a deadline or a cancel
 *             lock; unlink the node, if it still is linked; unlock
 *         }
 *     }
 *     return bz_wait_error(outcome);
 *
 * The hook registers the wait where its waker will look. It runs after the switch away from the waiter's stack
 * (on a plain thread: at once), and does three things under the primitive's lock:
 *
 *     static bool receive_hook(struct bz_wait *w, void *arg)
 *     {
 *         lock                                  // or the caller has held it since its test
 *         if (there is a value by now) {        // the caller's test was without the lock
 *             unlock
 *             return bz_wait_over(w, BZ_WAIT_WOKEN);
 *         }
 *         link the node
 *         bool waits = bz_wait_publish(w);      // from here on a deadline or a cancel may end it
 *         unlock                                // last: w may be gone after it
 *         return waits;
 *     }
 *
 * A waker unlinks the node under the same lock and calls bz_wait_wake(w, BZ_WAIT_WOKEN). True: the waiter
 * continues with the waker's result. False: a deadline or a cancel was first, and the waker must give its value
 * to another waiter. After either result the waker must not touch the node.
 *
 * Rules, each of which closes a race:
 *   1  Publish under the lock, unlock last: a waiter that leaves by a deadline or a cancel takes
 *      the lock to unlink itself, and so its frame cannot be gone while the hook still uses it.
 *   2  After an outcome below BZ_WAIT_WOKEN, always take the lock, even if the node may be unlinked.
 *   3  A waker decides what it gives before the wake, and touches nothing of the waiter's after it.
 *      Setting "the value is ready" without unlinking the node is not a wake: the waiter may see it, return
 *      and be gone. So unlink the node first, under the lock.
 *   4  One wake for each registration; a second wake aborts.
 *   5  If the caller holds the lock since its test, it passes the lock on (bz_lock_pass) and the hook drops it. The
 *      lock stays held during the search for the next task, which may fire timers: no waker may need it.
 *
 * Without a hook only the deadline or a cancel ends the wait: a sleep.
 *
 * A waiting task records its wait in `task->wait`, for cancellers. Only the task itself, or its hook, writes
 * the field:
 *
 *   0            it does not wait, or waits behind a cloned waker: a cancel wakes it
 *   node         a struct bz_wait: a cancel tries to end it
 *   child | 1    it joins a child without a deadline, claimed or not: the cancel goes to the child
 *   job | 2      as 0, recorded for dumps: it joins a forked job that another worker runs
 *   host | 3     as 0: it awaits a future behind a cloned waker (await.c). For dumps and host.c
 *
 * Waiting is frequent and cancelling is rare. So the waiter pays two plain stores, and the canceller pays
 * a barrier on every thread:
 *
 *      waiter                                  canceller
 *      1  wait = what                          1  the flag in the word (cancel_mark)
 *         (compiler barrier)                   2  barrier on every thread
 *      2  the flag is set? act on it itself    3  under task->lock: read wait (cancel_deliver)
 *      ...
 *      3  wait = 0
 *         (compiler barrier)
 *      4  the flag is set? take and drop task->lock
 *
 * This is the store-buffer pattern, twice. On the way in, either the waiter sees the flag or the canceller
 * sees the wait. On the way out, either the waiter sees the flag and waits until no canceller reads `wait`
 * any more, or the canceller sees that the wait is over. So the target of `wait`, a frame or a child, is
 * alive while a canceller reads it.
 *
 * In the plain form both sides fence, and parking and waking are steps of the state word.
 *
 * [W] publish, enter: wait release -> cancel.c, deliver: wait acquire   the target of the wait was filled in before
 * [C] publish, enter: wait, order, flag -> cancel.c: flag, barrier, wait   one of them sees the other
 * [L] leave: wait, order, flag -> cancel.c: flag, barrier, wait   one of them sees the other
 */
#ifndef BZ_WAIT_H
#define BZ_WAIT_H

#include "proc/state.h"
#include "proc/proc_timer.h"
#include "wait/waiter.h"

/* The tag of task->wait; a node has none. */
enum { BZ_WAIT_CHILD = 1, BZ_WAIT_JOB = 2, BZ_WAIT_FUTURE = 3, BZ_WAIT_TAG_MASK = 3 };

/* The light half of the pattern: order earlier stores before later loads. */
static BZ_ALWAYS_INLINE void bz_wait_order_by(bool is_plain)
{
    if (is_plain)
        bz_fence_seqcst(); /* [C] [L] */
    else
        bz_compiler_barrier(); /* [C] [L] */
}
static BZ_ALWAYS_INLINE void bz_wait_order(const struct bz_runtime *rt)
{
    bz_wait_order_by(bz_is_plain(rt));
}

/* The slow halves of the functions below. */
void bz_wait_cancel_child(struct bz_task *me, struct bz_task *child);
void bz_wait_outlast_cancellers(struct bz_task *me);

/*
 * The calling task waits for the end of a child from here on. Only the child's end ends the wait. A cancel
 * of `me` goes to the child, at once if it came before. Between enter and leave, `me` either runs the
 * child on its own stack or is parked; it holds a reference to the child throughout.
 */
static BZ_ALWAYS_INLINE void bz_wait_enter_child_by(struct bz_task *me, struct bz_task *child,
                                                    bool is_plain)
{
    bz_store_release(&me->wait, (uintptr_t)child | BZ_WAIT_CHILD); /* [W] */
    bz_wait_order_by(is_plain);
    /* relaxed: [C]; bz_wait_cancel_child() reads it again */
    if (BZ_UNLIKELY(bz_test_relaxed(&me->word, BZ_WORD_CANCELLED)))
        bz_wait_cancel_child(me, child);
}

static BZ_ALWAYS_INLINE void bz_wait_enter_child(struct bz_task *me, struct bz_task *child)
{
    bz_wait_enter_child_by(me, child, bz_is_plain(me->rt));
}

/* End the wait. On return no canceller reads its target. */
static BZ_ALWAYS_INLINE void bz_wait_leave_by(struct bz_task *me, bool is_plain)
{
    bz_store_relaxed(&me->wait, 0); /* relaxed: [L] */
    bz_wait_order_by(is_plain);
    /* relaxed: [L] */
    if (BZ_UNLIKELY(bz_test_relaxed(&me->word, BZ_WORD_CANCELLED)))
        bz_wait_outlast_cancellers(me);
}

static BZ_ALWAYS_INLINE void bz_wait_leave(struct bz_task *me)
{
    bz_wait_leave_by(me, bz_is_plain(me->rt));
}

/* Record for dumps that the calling task waits for a job or a future (tagged). No other code
 * follows `wait` then. 0: the wait is over. */
static inline void bz_wait_say(struct bz_task *me, uintptr_t what)
{
    bz_store_relaxed(&me->wait, what); /* relaxed: for dumps, which trust nothing they read there */
}

static BZ_ALWAYS_INLINE void bz_wait_leave_child(struct bz_task *me, struct bz_task *child)
{
    /* relaxed: our own field */
    BZ_ASSERT(bz_load_relaxed(&me->wait) == ((uintptr_t)child | BZ_WAIT_CHILD));
    (void)child;
    bz_wait_leave(me);
}

/* ---- a wait ---- */

/* The outcome of a wait. The waker chooses the numbers from BZ_WAIT_WOKEN up. */
enum bz_outcome {
    BZ_WAIT_OPEN,
    BZ_WAIT_TIMED_OUT,
    BZ_WAIT_CANCELLED,
    BZ_WAIT_WOKEN,
    BZ_WAIT_HOSTS /* of a join: run the task on your own stack, host.c */
};

struct bz_wait;
typedef bool bz_wait_hook(struct bz_wait *w, void *arg);

struct bz_wait {
    struct bz_wait_head head; /* first; constant */
    bz_os_word arbiter;   /* BZ_WAIT_OPEN, or the outcome; the thread that sets it must resume */
    bool is_sole;         /* constant: only the waker ends it, no arbiter is needed */
    bool is_published;    /* task->wait was set; written by the hook, then the waiter */
    bool is_shared;       /* constant: registered in several places, so wakes may be late */
    bool is_unused;       /* false: the four are set by one store */
    struct bz_task *task; /* constant: the waiting task; NULL: a plain thread */
    /* constant: the runtime whose workers may claim it by the fast path. NULL: a thread, a wait without an arbiter, or
     * a task of the plain form */
    struct bz_runtime *near_rt;
    const struct bz_os *os; /* constant: the system of the waiting thread */
    const char *what;       /* constant: for dumps */
    blitz_deadline until;   /* constant */
    uint32_t since;         /* when it was published, for dumps: age.h. Written by the hook */
    const void *holder;     /* NULL, or the address of the id of the current holder; for dumps */
    bz_wait_hook *hook;     /* this and the rest: the waiter's before the switch, then the hook's */
    void *arg;
    struct bz_timer timer; /* timer.proc is NULL: never armed */
};

/* bz_wait_claim below as a function, and the cases that it has not inline. */
BZ_MUST_USE bool bz_wait_claim_called(struct bz_wait *w, uint32_t outcome, struct bz_wake *wake);
BZ_MUST_USE bool bz_wait_claim_in_full(struct bz_wait *w, uint32_t outcome, struct bz_wake *wake);

/* arbiter.c: a deadline or a canceller ends the wait. False: it had another outcome. True: the caller must resume
 * the task. */
BZ_MUST_USE bool bz_wait_time_out(struct bz_wait *w);
BZ_MUST_USE bool bz_wait_cancel(struct bz_wait *w);
/* The function of the wait's timer. */
struct bz_wake bz_wait_timeout(struct bz_timer *timer);

/* wake.c: queue a task whose wait has an outcome. Its stack is left, or will be before the PARK of the
 * plain form. */
void bz_task_resume(struct bz_task *t);

/* The runtime whose workers may claim a wait of that task by the fast path. NULL: none. */
static BZ_ALWAYS_INLINE struct bz_runtime *bz_wait_near(const struct bz_task *me)
{
    return me != NULL && !bz_is_plain(me->rt) ? me->rt : NULL;
}

/* Prepare a wait of the caller: a task, or a plain thread of `os` (NULL). near_rt: bz_wait_near(me). */
static BZ_ALWAYS_INLINE void bz_wait_begin_as(struct bz_wait *w, struct bz_task *me,
                                              struct bz_runtime *near_rt, const struct bz_os *os,
                                              const char *what, blitz_deadline until)
{
    w->head.claim = bz_wait_claim_called;
    bz_atomic_init(&w->arbiter, BZ_WAIT_OPEN);
    w->is_sole = false;
    w->is_published = false;
    w->is_shared = false;
    w->is_unused = false;
    w->task = me;
    w->near_rt = near_rt;
    w->os = os;
    w->what = what;
    w->holder = NULL;
    w->until = until;
    w->timer.proc = NULL;
}

static inline void bz_wait_begin(struct bz_wait *w, const struct bz_os *os, const char *what,
                                 blitz_deadline until)
{
    struct bz_task *me = bz_task_self();
    bz_wait_begin_as(w, me, bz_wait_near(me), os, what, until);
}

/* The same for a wait that only its waker can end. It has no deadline. A cancel goes to the child
 * (a join without a deadline, between bz_wait_enter_child and leave) or has no effect (a thread).
 * No step of it is a read-modify-write. */
void bz_wait_begin_sole(struct bz_wait *w, const struct bz_os *os, const char *what);

/* The reason not to wait at all: the deadline has passed or the task was cancelled. BZ_WAIT_OPEN:
 * no reason. A caller may wait without this check, and the wait then ends soon; the check saves the
 * switch. */
BZ_MUST_USE uint32_t bz_wait_refuse_in_full(struct bz_wait *w);
BZ_MUST_USE static inline uint32_t bz_wait_refuse(struct bz_wait *w)
{
    /* relaxed: if this misses a cancel, the publishing of the wait sees it, [C] */
    bool is_cancelled = w->task == NULL || bz_test_relaxed(&w->task->word, BZ_WORD_CANCELLED);
    return BZ_LIKELY(w->until == BLITZ_FOREVER && !is_cancelled) ? (uint32_t)BZ_WAIT_OPEN
                                                                 : bz_wait_refuse_in_full(w);
}

/*
 * Wait.
 * Suspends: until an outcome. Call from a task or from any thread.
 * Returns:  the outcome, which is not BZ_WAIT_OPEN.
 */
BZ_MUST_USE uint32_t bz_wait_park(struct bz_wait *w, bz_wait_hook *hook, void *arg);

/* For the hook, under the primitive's lock: let deadline and cancel see the wait. The hook returns
 * the result. False: the task was cancelled meanwhile, and continues. */
BZ_MUST_USE bool bz_wait_publish_in_full(struct bz_wait *w);
/* ... The wait is published and the task's cancel flag is set. The wait must not be published again: a canceller may
 * have ended it, and the waiter may have left it. */
BZ_MUST_USE bool bz_wait_publish_flagged(struct bz_wait *w);
/* ... Publish the wait of t, which has no deadline. False: the caller must call bz_wait_publish_flagged(). */
BZ_MUST_USE static BZ_ALWAYS_INLINE bool bz_wait_show_by(struct bz_wait *w, struct bz_task *t,
                                                         bool is_plain)
{
    w->is_published = true;
    w->since = bz_age_now(&t->rt->clock);
    bz_store_release(&t->wait, (uintptr_t)w); /* [W] [C] */
    bz_wait_order_by(is_plain);
    return BZ_LIKELY(!bz_test_relaxed(&t->word, BZ_WORD_CANCELLED)); /* relaxed: [C] */
}
BZ_MUST_USE static BZ_ALWAYS_INLINE bool bz_wait_publish_by(struct bz_wait *w, bool is_plain)
{
    struct bz_task *t = w->task;
    if (BZ_UNLIKELY(t == NULL || w->is_sole || w->until != BLITZ_FOREVER))
        return bz_wait_publish_in_full(w);
    return bz_wait_show_by(w, t, is_plain) || bz_wait_publish_flagged(w);
}

BZ_MUST_USE static BZ_ALWAYS_INLINE bool bz_wait_publish(struct bz_wait *w)
{
    return bz_wait_publish_by(w, w->task != NULL && bz_is_plain(w->task->rt));
}

/* For the hook, instead of bz_wait_publish: end the wait with this outcome. No other thread sees
 * it. */
BZ_MUST_USE bool bz_wait_over(struct bz_wait *w, uint32_t outcome);

/*
 * End a wait with the event it waited for. Any thread; the caller has unlinked the registration.
 * Returns: true: the waiter continues, on this worker if this is one of its runtime. False: it had
 *          another outcome.
 */
bool bz_wait_wake(struct bz_wait *w, uint32_t outcome);

/*
 * The same in two halves: claim the wait under the primitive's lock, deliver the wake-up once the lock is
 * dropped (wait/wake.h). Between the two a task does not run. A plain thread, and a task of the
 * plain form, may continue as soon as the wait is claimed. If bz_wait_is_early() is true, such a waiter takes
 * the lock once before it reads anything that the waker wrote under it.
 */
BZ_MUST_USE static BZ_ALWAYS_INLINE bool bz_wait_claim(struct bz_wait *w, uint32_t outcome,
                                                       struct bz_wake *wake)
{
    struct bz_machine *m = bz_machine_self();
    if (BZ_LIKELY(m != NULL && m->rt == w->near_rt)) {
        struct bz_task *t = w->task;
        uint32_t seen = BZ_WAIT_OPEN;
        wake->kind = BZ_WAKE_TASK; /* the caller is a worker of its runtime: park.c, I4 */
        wake->task = t;
        /* relaxed: the queue orders, arbiter.c */
        if (bz_cas_strong_rlx_rlx(&w->arbiter, &seen, outcome)) {
            bz_os_delay(t->rt->os, BZ_OS_AT_CLAIM);
            return true;
        }
    }
    return bz_wait_claim_in_full(w, outcome, wake);
}

/* bz_waiter_claim for a waiter that is known to be blocking. */
BZ_MUST_USE static BZ_ALWAYS_INLINE bool bz_waiter_grant(struct bz_waiter *w, int result,
                                                         struct bz_wake *wake)
{
    return bz_waiter_grant_by(w, result, wake, bz_wait_claim);
}

/* The same; the wake-up is added to a list. */
BZ_MUST_USE static inline bool bz_wakelist_grant(struct bz_wakelist *list, struct bz_waiter *w,
                                                 int result)
{
    if (!bz_waiter_grant(w, result, bz_wakelist_next(list)))
        return false;
    bz_wakelist_add(list);
    return true;
}

static inline bool bz_wait_is_early(const struct bz_wait *w)
{
    return w->task == NULL || bz_is_plain(w->task->rt);
}

/* The outcome of a wait that is over. Call from its owner. */
static inline uint32_t bz_wait_outcome(const struct bz_wait *w)
{
    return bz_load_relaxed(&w->arbiter); /* relaxed: the park had the acquire */
}

/* An outcome as an error: 0, -ETIMEDOUT or -ECANCELED. */
int bz_wait_error(uint32_t outcome);

/* Check that the fields are consistent. Aborts with what it saw. Call from the waiter, or from a
 * waker that holds the registration. */
void bz_wait_check(struct bz_wait *w);

/* ---- cancelling: any thread with a reference ---- */

/*
 * bz_task_cancel (state.h) in parts, for a caller that cancels many tasks: mark each task, pay one barrier,
 * deliver to each task for which mark returned true.
 */
BZ_MUST_USE bool bz_task_cancel_mark(struct bz_task *t);
void bz_task_cancel_barrier(struct bz_runtime *rt);
void bz_task_cancel_deliver(struct bz_task *t);

#endif
