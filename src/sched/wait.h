/*
 * wait.h - how a task or a thread waits, and how a wake, a deadline or a cancel ends it.
 *
 * The manual for whoever builds something that can be waited for: a join, a lock, a channel.
 *
 *     struct bz_wait w;                                  // in the waiting frame; allocates nothing
 *     bz_wait_begin(&w, os, "receive", until);
 *     uint32_t outcome = bz_wait_refuse(&w);             // no use in beginning?
 *     if (outcome == BZ_WAIT_OPEN) {
 *         outcome = bz_wait_park(&w, receive_hook, &call);
 *         if (outcome < BZ_WAIT_WOKEN) {                 // a deadline or a cancel
 *             lock; unlink the node, if it still is linked; unlock
 *         }
 *     }
 *     return bz_wait_error(outcome);
 *
 * The hook registers the wait where its waker will look. It runs once the waiter's stack has been
 * left (on a plain thread: at once), and does three things under the primitive's lock:
 *
 *     static bool receive_hook(struct bz_wait *w, void *arg)
 *     {
 *         lock                                  // or it is held already, since the test
 *         if (there is a value by now) {        // the test of the caller was without the lock
 *             unlock
 *             return bz_wait_over(w, BZ_WAIT_WOKEN);
 *         }
 *         link the node
 *         bool waits = bz_wait_publish(w);      // from here on a deadline or a cancel may end it
 *         unlock                                // the last thing: w may be gone after it
 *         return waits;
 *     }
 *
 * A waker takes the node off under the same lock and says bz_wait_wake(w, BZ_WAIT_WOKEN): true, the
 * waiter goes on with what was done for it; false, a deadline or a cancel was first, and what was
 * meant for it must be given to somebody else. After either the node is not the waker's any more.
 *
 * Rules, each of which closes a hole:
 *   1  Publish under the lock, unlock last: a waiter that leaves by a deadline or a cancel takes
 *      the lock to unlink itself, and so cannot be gone while the hook is still at it.
 *   2  After an outcome below BZ_WAIT_WOKEN, always take the lock, even if the node may be off.
 *   3  A waker decides what it gives before the wake and touches nothing of the waiter's after it.
 *      "The value is ready" without the node taken off is no wake: the waiter may look, go and be
 *      gone (so take the node off first, under the lock).
 *   4  One wake for each registration; a second one aborts.
 *   5  A lock that is held since the test is passed on (bz_lock_pass) and dropped by the hook. It is
 *      held while the next task is looked for, which may fire timers: no waker may want it.
 *
 * Without a hook nobody but the deadline and a cancel ends the wait: a sleep.
 *
 * A task that waits says in what: `task->wait`. A canceller looks there. Only the task itself, or
 * its hook, writes it:
 *
 *   0            it does not wait, or waits behind a cloned waker: a cancel wakes it
 *   node         a struct bz_wait: a cancel tries to end it
 *   child | 1    it joins a child without a deadline, claimed or not: the cancel is the child's
 *   job | 2      as 0, and said for dumps: it joins a forked job that another has
 *   host | 3     as 0: it awaits a future behind a cloned waker (await.c). For dumps and host.c
 *
 * Waiting is frequent and cancelling is rare, so the waiter pays two plain stores and the canceller
 * a barrier on every thread:
 *
 *      waiter                                  canceller
 *      1  wait = what                          1  the flag in the word (cancel_mark)
 *         (compiler barrier)                   2  barrier on every thread
 *      2  the flag is set? act on it itself    3  under task->lock: look at wait (cancel_deliver)
 *      ...
 *      3  wait = 0
 *         (compiler barrier)
 *      4  the flag is set? take and drop task->lock
 *
 * The store-buffer pattern, twice. On the way in either the waiter sees the flag or the canceller
 * sees what it waits in. On the way out either the waiter sees the flag, and waits until no
 * canceller is looking any more, or the canceller sees that the wait is over. So what `wait` points
 * to, a frame or a child, is alive while a canceller looks at it.
 *
 * In the plain form both sides fence, and parking and waking are steps of the state word.
 */
#ifndef BZ_WAIT_H
#define BZ_WAIT_H

#include "sched/sched.h"
#include "wait/waiter.h"

/* The tag of task->wait; a node has none. */
enum { BZ_WAIT_CHILD = 1, BZ_WAIT_JOB = 2, BZ_WAIT_FUTURE = 3, BZ_WAIT_TAG_MASK = 3 };

/* The light half of the pattern: what was stored before comes before what is loaded after. */
static BZ_ALWAYS_INLINE void bz_wait_order(const struct bz_runtime *rt)
{
    if (bz_is_plain(rt))
        bz_fence_seqcst(); /* wait.c [C] [L] */
    else
        bz_compiler_barrier(); /* wait.c [C] [L] */
}

/* The slow halves of what follows. */
void bz_wait_pass_on(struct bz_task *me, struct bz_task *child);
void bz_wait_settle(struct bz_task *me);

/*
 * The calling task waits for the end of a child from here on, and by no other way out: a cancel of
 * `me` goes to the child, at once if it came before. Between enter and leave `me` either runs the
 * child on its own stack or is parked; it holds a reference to the child throughout.
 */
static BZ_ALWAYS_INLINE void bz_wait_enter_child(struct bz_task *me, struct bz_task *child)
{
    bz_store_release(&me->wait, (uintptr_t)child | BZ_WAIT_CHILD); /* wait.c [W] */
    bz_wait_order(me->rt);
    /* relaxed: wait.c [C]; who acts on it looks again */
    if (BZ_UNLIKELY(bz_load_relaxed(&me->word) & BZ_WORD_CANCELLED))
        bz_wait_pass_on(me, child);
}

/* The wait is over. On return no canceller looks at what it was for. */
static BZ_ALWAYS_INLINE void bz_wait_leave(struct bz_task *me)
{
    bz_store_relaxed(&me->wait, 0); /* relaxed: wait.c [L] */
    bz_wait_order(me->rt);
    /* relaxed: wait.c [L] */
    if (BZ_UNLIKELY(bz_load_relaxed(&me->word) & BZ_WORD_CANCELLED) && !BZ_BROKEN(80))
        bz_wait_settle(me);
}

/* The calling task waits in something that nobody else touches through `wait`: a job or a future,
 * tagged. Only dumps look. 0: no longer. */
static inline void bz_wait_say(struct bz_task *me, uintptr_t what)
{
    bz_store_relaxed(&me->wait,
                     what); /* relaxed: for dumps, which believe nothing they read there */
}

static BZ_ALWAYS_INLINE void bz_wait_leave_child(struct bz_task *me, struct bz_task *child)
{
    /* relaxed: our own field */
    BZ_ASSERT(bz_load_relaxed(&me->wait) == ((uintptr_t)child | BZ_WAIT_CHILD));
    (void)child;
    bz_wait_leave(me);
}

/* ---- a wait ---- */

/* How a wait ended. From BZ_WAIT_WOKEN up the number is the waker's to choose. */
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
    bz_os_word arbiter;     /* BZ_WAIT_OPEN, or the outcome; who changes it owes the resuming */
    bool is_sole;           /* constant: nobody but the waker ends it, no arbiter is needed */
    bool is_published;      /* task->wait was set; the hook's, then the waiter's */
    bool is_shared;         /* constant: registered in several places, so wakes may be late */
    struct bz_task *task;   /* constant: who waits; NULL: a plain thread */
    const struct bz_os *os; /* constant: whose thread */
    const char *what;       /* constant: for dumps */
    blitz_deadline until;   /* constant */
    uint32_t since;         /* when it was published, for dumps: age.h. The hook's */
    const void *holder; /* NULL, or where the id of who has what is waited for stands; for dumps */
    bz_wait_hook *hook; /* the rest: the waiter's before the switch, then the hook's */
    void *arg;
    struct bz_timer timer; /* timer.proc is NULL: never armed */
};

/* Whoever calls is going to wait: a task, or a plain thread of `os`. */
static inline void bz_wait_begin(struct bz_wait *w, const struct bz_os *os, const char *what,
                                 blitz_deadline until)
{
    bz_atomic_init(&w->arbiter, BZ_WAIT_OPEN);
    w->is_sole = false;
    w->is_published = false;
    w->is_shared = false;
    w->task = bz_task_self();
    w->os = os;
    w->what = what;
    w->holder = NULL;
    w->until = until;
    w->timer.proc = NULL;
}

/* The same for a wait that only its waker can end: no deadline, and a cancel goes elsewhere (a join
 * without a deadline, between bz_wait_enter_child and leave) or nowhere (a thread). No step of it
 * is a read-modify-write. */
void bz_wait_begin_sole(struct bz_wait *w, const struct bz_os *os, const char *what);

/* Why not to wait at all: the deadline has passed or the task was cancelled. BZ_WAIT_OPEN: none. A
 * wait may be begun without asking, it ends soon enough then; asking saves the switch. */
BZ_MUST_USE uint32_t bz_wait_refuse_in_full(struct bz_wait *w);
BZ_MUST_USE static inline uint32_t bz_wait_refuse(struct bz_wait *w)
{
    /* relaxed: a cancel that is not seen here is seen when the wait is published, wait.c [C] */
    bool is_cancelled = w->task == NULL || bz_load_relaxed(&w->task->word) & BZ_WORD_CANCELLED;
    return BZ_LIKELY(w->until == BLITZ_FOREVER && !is_cancelled) ? (uint32_t)BZ_WAIT_OPEN
                                                                 : bz_wait_refuse_in_full(w);
}

/*
 * Wait.
 * Suspends: until an outcome. Call from a task or from any thread.
 * Returns:  the outcome, which is not BZ_WAIT_OPEN.
 */
BZ_MUST_USE uint32_t bz_wait_park(struct bz_wait *w, bz_wait_hook *hook, void *arg);

/* For the hook, under the primitive's lock: let deadline and cancel see the wait. Its result is the
 * hook's: false if the task was cancelled meanwhile, and goes on. */
BZ_MUST_USE bool bz_wait_publish_in_full(struct bz_wait *w);
BZ_MUST_USE static BZ_ALWAYS_INLINE bool bz_wait_publish(struct bz_wait *w)
{
    struct bz_task *t = w->task;
    if (BZ_UNLIKELY(t == NULL || w->is_sole || w->until != BLITZ_FOREVER || BZ_BROKEN(81)))
        return bz_wait_publish_in_full(w);
    w->is_published = true;
    w->since = bz_age_now(&t->rt->clock);
    bz_store_release(&t->wait, (uintptr_t)w); /* wait.c [W] [C] */
    bz_wait_order(t->rt);
    /* relaxed: wait.c [C] */
    return BZ_LIKELY(!(bz_load_relaxed(&t->word) & BZ_WORD_CANCELLED)) ||
           bz_wait_publish_in_full(w);
}

/* For the hook, instead of publishing: nobody will see this wait, it has this outcome. */
BZ_MUST_USE bool bz_wait_over(struct bz_wait *w, uint32_t outcome);

/*
 * End a wait by what it waited for. Any thread; the caller has taken the registration.
 * Returns: true: the waiter goes on, on this worker if this is one of its runtime. False: it had
 *          another outcome.
 */
bool bz_wait_wake(struct bz_wait *w, uint32_t outcome);

/*
 * The same in two halves: claim the wait under the primitive's lock, deliver the wake-up once the lock is
 * dropped (wait/wake.h). Between the two a task stays where it is. A plain thread, and a task of the
 * plain form, may continue as soon as the wait is claimed. Such a waiter takes the lock once, if
 * bz_wait_is_early() says so, before it looks at what the waker did under it.
 */
BZ_MUST_USE bool bz_wait_claim_in_full(struct bz_wait *w, uint32_t outcome, struct bz_wake *wake);
BZ_MUST_USE static BZ_ALWAYS_INLINE bool bz_wait_claim(struct bz_wait *w, uint32_t outcome,
                                                       struct bz_wake *wake)
{
    struct bz_task *t = w->task;
    struct bz_machine *m = bz_machine_self();
    if (BZ_LIKELY(t != NULL && m != NULL && m->rt == t->rt && !w->is_sole && !bz_is_plain(t->rt))) {
        uint32_t seen = BZ_WAIT_OPEN;
        wake->kind = BZ_WAKE_TASK; /* the caller is a worker of its runtime: wait.c, I4 */
        wake->task = t;
        if (bz_cas_strong_rel_rlx(&w->arbiter, &seen, outcome)) { /* wait.c [A] */
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
    bz_list_remove(&w->in);
    w->state = BZ_WAITER_GRANTED;
    if (!BZ_BROKEN(204))
        bz_set(&w->result, result); /* before the claim: wait/waiter.h, I2 */
    if (!bz_wait_claim(w->wait, w->outcome, wake)) {
        w->state = BZ_WAITER_OUT; /* it takes the lock before it goes: rule 2 */
        return false;
    }
    if (BZ_BROKEN(204))
        bz_set(&w->result, result);
    return true;
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

/* How a wait that is over has ended. Its owner. */
static inline uint32_t bz_wait_outcome(const struct bz_wait *w)
{
    return bz_load_relaxed(&w->arbiter); /* relaxed: the park had the order */
}

/* An outcome as an error: 0, -ETIMEDOUT or -ECANCELED. */
int bz_wait_error(uint32_t outcome);

/* The fields go together. Aborts with what it saw. For its own side: the waiter, or a waker that
 * holds the registration. */
void bz_wait_check(struct bz_wait *w);

/* ---- cancelling: any thread with a reference ---- */

/*
 * bz_task_cancel (sched.h) in halves, for whoever cancels many: mark each, one barrier, deliver
 * each of which mark said true.
 */
BZ_MUST_USE bool bz_task_cancel_mark(struct bz_task *t);
void bz_task_cancel_barrier(struct bz_runtime *rt);
void bz_task_cancel_deliver(struct bz_task *t);

#endif
