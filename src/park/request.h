/*
 * request.h - one operation that may have to wait, written once and driven in two ways.
 *
 * A request is one operation that a caller wants from a primitive: a receive from a channel, a permit of a semaphore,
 * the end of a task. The primitive implements it in a table of functions that all run under its
 * lock. It does not know whether a blocking call or a future makes the request:
 *
 *   enter      Try the operation. True: it is done, and waiter.result has the result. False: the waiter is now
 *              in a queue of the primitive (wait/waiter.h), where the operation that makes it possible finds it.
 *   leave      After a deadline or a cancel: unregister the waiter. Its grant or notification goes to another
 *              waiter. False: the operation was done all the same, and waiter.result has the result.
 *   lock, unlock   The primitive's lock. `unlock` also delivers the wake-ups that were chosen under it.
 *
 * Two drivers use the table:
 *
 *   bz_request_wait   for a stack. It enters; if it must wait, it parks until it is claimed, or until the
 *                     deadline or a cancel, and then leaves.
 *   bz_request_poll, bz_request_cancel   for a future, with a waker instead of a stack.
 *
 * The time at which a blocking request enters: if is_far predicts that it will have to wait, the hook of the wait
 * enters, once the stack is left. Then the lock is taken once, to enter and to publish the wait. Otherwise the
 * caller enters first, so that a request that need not wait pays no switch. If it must wait after all, the
 * hook takes the lock a second time to publish the wait, and finds a grant that came in between.
 *
 * docs/writing-a-primitive.md builds a primitive with this, from the first line to its test.
 *
 * I1  A blocking waiter that is granted its request is claimed by the arbiter of its wait in the same step.
 *     So only a future can be granted something and then leave: it does not run until it is polled.
 * I2  A waiter that entered before its stack was left is not parked until its hook has run (is_parked). A
 *     grant in between changes its state, claims nothing, and the hook finds it.
 */
#ifndef BZ_SCHED_REQUEST_H
#define BZ_SCHED_REQUEST_H

#include "park/park.h"

struct bz_request_ops {
    const char *what; /* for dumps */
    void (*lock)(struct bz_request *r);
    /* Drop the lock, then deliver. Must not touch the request after that: its owner may be gone. */
    void (*unlock)(struct bz_request *r, struct bz_wakelist *wakes);
    bool (*enter)(struct bz_request *r, struct bz_wakelist *wakes);
    bool (*leave)(struct bz_request *r, struct bz_wakelist *wakes);
    bool is_tried;  /* blocking callers have tried already, without success: the hook enters */
    bool is_shared; /* several waiters share its wait: only one of them is claimed */
    /* Without the lock: predict whether `enter` will have to wait. NULL: not known. */
    bool (*is_far)(const struct bz_request *r);
    /* A blocking request continues after a grant. NULL: nothing to do. */
    void (*resumed)(struct bz_request *r, bool is_early);
    /* Under the lock: a future that is queued, or was granted its request, is polled. Return
     * whether it is done. NULL: it is done if it was granted. */
    bool (*check)(struct bz_request *r, struct bz_wakelist *wakes);
    /* The address of the id of the task that holds the resource, for dumps. NULL: not known. */
    const void *(*holder)(const struct bz_request *r);
};

/* ---- granting: under the lock ---- */

/* Unlink a waiter: its request is done, or (notify) it must enter again. False: its owner had left,
 * and got nothing. */
BZ_MUST_USE bool bz_request_grant(struct bz_request *r, struct bz_wakelist *wakes);
BZ_MUST_USE bool bz_request_notify(struct bz_request *r, struct bz_wakelist *wakes);

/* ---- on a stack ---- */

/*
 * Make the request, and wait if needed.
 * Suspends: until it is done, `until`, or a cancel. Call from a task or any thread, without locks.
 * Returns:  waiter.result; -ETIMEDOUT, -ECANCELED: nothing was done.
 */
BZ_MUST_USE int bz_request_wait(struct bz_request *r, const struct bz_os *os, blitz_deadline until);

/* The second half: wait with a wait that has been begun. Returns 0: the waiter's state has the
 * result; else as above. */
BZ_MUST_USE int bz_request_park(struct bz_request *r, struct bz_wait *w);

/* ---- the same, with functions known at compile time ---- */

/*
 * The blocking driver, for a primitive whose waits are performance-critical: a constant table in `by`
 * makes its calls direct. The primitive has its own hooks, which call bz_request_hook_by. (A round trip
 * over a channel takes 1040 instructions with these and 1150 with the functions above.)
 */
bool bz_request_leave_now(struct bz_request *r); /* false: it was done all the same */

/* On the next stack. A request that has not entered enters here. If it must wait, publish the wait
 * to deadline and cancel. Otherwise it was granted something, here or since it entered. */
static BZ_ALWAYS_INLINE bool bz_request_hook_of(struct bz_wait *w, struct bz_request *r,
                                                const struct bz_request_ops *by, bool is_plain)
{
    struct bz_wakelist wakes;
    bz_wakelist_init(&wakes);
    by->lock(r);
    uint8_t state = r->waiter.state;
    bool is_queued = state == BZ_WAITER_OUT ? !by->enter(r, &wakes) : state == BZ_WAITER_QUEUED;
    if (BZ_UNLIKELY(!is_queued)) {
        if (state == BZ_WAITER_OUT)
            r->waiter.state = BZ_WAITER_GRANTED;
        by->unlock(r, &wakes);
        return bz_wait_over(w, BZ_WAIT_WOKEN);
    }
    r->waiter.is_parked = true;
    bool waits = bz_wait_publish_by(w, is_plain);
    by->unlock(r, &wakes); /* last: the frame may be gone */
    return waits;
}

static BZ_ALWAYS_INLINE bool bz_request_hook_by(struct bz_wait *w, struct bz_request *r,
                                                const struct bz_request_ops *by)
{
    return bz_request_hook_of(w, r, by, w->task != NULL && bz_is_plain(w->task->rt));
}

/* The hooks of such a primitive: of a thread's wait, and of a task's switch. Each calls bz_request_hook_by, the second
 * through bz_wait_register. The third is that of a task's switch in the usual case: bz_wait_is_usual(). */
struct bz_request_hooks {
    bz_wait_hook *thread;
    bz_ctx_hook *task, *usual;
};

/* Define `name`, the hooks of a request whose table is *by, a constant. */
#define BZ_REQUEST_HOOKS(name, by)                                            \
    static BZ_ALWAYS_INLINE bool name##_inline(struct bz_wait * w, void *arg) \
    {                                                                         \
        return bz_request_hook_by(w, arg, by);                                \
    }                                                                         \
    static bool name##_of_thread(struct bz_wait *w, void *arg)                \
    {                                                                         \
        return name##_inline(w, arg);                                         \
    }                                                                         \
    static void name##_of_task(void *wait)                                    \
    {                                                                         \
        bz_wait_register(wait, name##_inline);                                \
    }                                                                         \
    static BZ_ALWAYS_INLINE bool name##_short(struct bz_wait *w, void *arg)   \
    {                                                                         \
        return bz_request_hook_of(w, arg, by, false);                         \
    }                                                                         \
    static void name##_usual(void *wait)                                      \
    {                                                                         \
        bz_wait_register_by(wait, name##_short, false);                       \
    }                                                                         \
    static const struct bz_request_hooks name = {name##_of_thread, name##_of_task, name##_usual}

static BZ_ALWAYS_INLINE uint32_t bz_request_suspend(struct bz_request *r, struct bz_wait *w,
                                                    struct bz_request_hooks hooks)
{
    if (BZ_UNLIKELY(w->task == NULL))
        return bz_wait_park(w, hooks.thread, r);
    w->arg = r;
    return bz_wait_park_task(w, hooks.task);
}

static BZ_ALWAYS_INLINE int bz_request_park_by(struct bz_request *r, struct bz_wait *w,
                                               struct bz_request_hooks hooks,
                                               const struct bz_request_ops *by)
{
    if (by->holder != NULL)
        w->holder = by->holder(r);
    if (by->is_shared)
        w->is_shared = true;
    uint32_t outcome = bz_wait_refuse(w);
    if (BZ_LIKELY(outcome == BZ_WAIT_OPEN))
        outcome = bz_request_suspend(r, w, hooks);
    if (BZ_UNLIKELY(outcome < BZ_WAIT_WOKEN))
        return bz_request_leave_now(r) ? bz_wait_error(outcome) : 0;
    if (by->resumed != NULL)
        by->resumed(r, bz_wait_is_early(w));
    return 0;
}

/* True if it is done. */
static BZ_ALWAYS_INLINE bool bz_request_enter_by(struct bz_request *r,
                                                 const struct bz_request_ops *by)
{
    struct bz_wakelist wakes;
    bz_wakelist_init(&wakes);
    by->lock(r);
    bool is_done = by->enter(r, &wakes);
    by->unlock(r, &wakes);
    return is_done;
}

/* bz_request_park_by after bz_wait_is_usual() has returned true. */
static BZ_ALWAYS_INLINE int bz_request_park_usual(struct bz_machine *m, struct bz_request *r,
                                                  struct bz_wait *w, struct bz_request_hooks hooks,
                                                  const struct bz_request_ops *by)
{
    struct bz_task *me = w->task;
    if (by->holder != NULL)
        w->holder = by->holder(r);
    if (by->is_shared)
        w->is_shared = true;
    uint32_t outcome = bz_wait_refuse(w);
    if (BZ_LIKELY(outcome == BZ_WAIT_OPEN)) {
        w->arg = r;
        outcome = bz_wait_park_usual(m, me, w, hooks.usual);
    }
    if (BZ_UNLIKELY(outcome < BZ_WAIT_WOKEN))
        return bz_request_leave_now(r) ? bz_wait_error(outcome) : 0;
    if (by->resumed != NULL)
        by->resumed(r, false); /* bz_wait_is_early(): not a task of the fast form */
    return 0;
}

/* Threads, the plain form and traced runtimes park by a call. */
static BZ_ALWAYS_INLINE int bz_request_wait_by(struct bz_request *r, const struct bz_os *os,
                                               blitz_deadline until, struct bz_request_hooks hooks,
                                               const struct bz_request_ops *by)
{
    struct bz_wait w;
    r->waiter.wait = &w;
    bool is_far = by->is_tried || (by->is_far != NULL && by->is_far(r));
    for (;;) {
        if (!is_far && bz_request_enter_by(r, by))
            return bz_get(&r->waiter.result);
        is_far = false;
        struct bz_machine *m = bz_machine_self(); /* a wait may have moved us to another machine */
        bool is_usual = bz_wait_is_usual(m);
        struct bz_task *me = m != NULL ? m->current : NULL;
        struct bz_runtime *near_rt = is_usual && m != NULL ? m->rt : bz_wait_near(me);
        bz_wait_begin_as(&w, me, near_rt, os, r->ops->what, until);
        int err = BZ_LIKELY(is_usual) ? bz_request_park_usual(m, r, &w, hooks, by)
                                      : bz_request_park(r, &w);
        if (err != 0)
            return err;
        if (BZ_LIKELY(r->waiter.state == BZ_WAITER_GRANTED))
            return bz_get(&r->waiter.result);
        BZ_ASSERT(r->waiter.state == BZ_WAITER_NOTIFIED);
        r->waiter.is_parked = false; /* I2: the next wait is not published yet */
    }
}

/* ---- as a future ---- */

/* True if it is done; waiter.result has the result. Else the waker is woken when another poll may
 * succeed. */
BZ_MUST_USE bool bz_request_poll(struct bz_request *r, const blitz_waker *waker);
/* Cancel it. False: it was done all the same. */
bool bz_request_cancel(struct bz_request *r);

#endif
