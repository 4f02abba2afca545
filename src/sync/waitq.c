/*
 * waitq.c - the wait queue of a primitive: joining, granting, leaving. The essay is in waitq.h.
 *
 *              join     give      tell       give up (deadline, cancel)   enter again
 *   out        queued   -         -          -                            -
 *   queued     -        granted   notified   out, serve                   -
 *   granted    -        -         -          (future) give_back, serve    -
 *   notified   queued   -         -          (future) give_back, serve    out, or queued
 *
 * A grant to a blocking owner claims its wait in the same step (the arbiter of its wait, wait/wait.h). So only a
 * future can have a grant and then leave, because it does not run until it is polled.
 *
 * Rejected: giving futures a mere notification everywhere. They would lose their place in the queue with every race
 * they lose, so a future could not be a waiter of a first-in-first-out semaphore.
 *
 * I1  A node is in the list if and only if its state is BZ_WAITER_QUEUED.
 * I2  The node of a blocking call is granted or notified with its wait claimed, or before its wait was published.
 * I3  The last thread that drops the lock touches nothing of the primitive afterwards.
 * I4  is_last_to_leave: a released waiter may free the primitive. So each call takes the lock once
 *     and releases at most one list of waiters. If more wait than a list holds, the released waiters
 *     release the rest: each of them takes the lock before it leaves (a poll, a cancel, the end of a
 *     blocking wait), and serves one more list. A list that was cut short has released BZ_WAKELIST_MAX
 *     waiters that have not taken the lock yet, so the chain does not break.
 *
 * This file has no atomics of its own: the lock guards everything here, or a wait hands it off.
 */
#include "sync/waitq.h"

#include <assert.h>
#include <errno.h>

/* ---- under the lock ---- */

void bz_sync_op_join(struct bz_sync_op *n)
{
    struct bz_waiter *w = &n->request.waiter;
    BZ_ASSERT(w->state == BZ_WAITER_OUT || w->state == BZ_WAITER_NOTIFIED);
    if (w->state == BZ_WAITER_NOTIFIED)
        bz_waiter_queue_first(w, &n->q->inside);
    else
        bz_waiter_queue(w, &n->q->inside);
    w->is_parked = false;
}

void bz_waitq_end_slow(struct bz_waitq *q, void *owner, const struct bz_sync_op_ops *ops,
                       struct bz_wakelist *wakes, const struct bz_os *os)
{
    bz_wakelist_deliver(wakes);
    while (wakes->has_more && !ops->is_last_to_leave) { /* I4 */
        wakes->has_more = false;
        bz_waitq_take(q, os);
        ops->serve(owner, wakes);
        bz_waitq_drop(q, os);
        bz_wakelist_deliver(wakes);
    }
}

void bz_waitq_serve(struct bz_waitq *q, void *owner, const struct bz_sync_op_ops *ops)
{
    const struct bz_os *os = bz_sync_os();
    struct bz_wakelist wakes;
    bz_wakelist_init(&wakes);
    bz_waitq_take(q, os);
    ops->serve(owner, &wakes);
    bz_waitq_end(q, owner, ops, &wakes, os);
}

/* ---- requests ---- */

static BZ_ALWAYS_INLINE void node_lock(struct bz_request *r)
{
    bz_waitq_take(bz_sync_op_of(r)->q, bz_sync_os());
}

static BZ_ALWAYS_INLINE void node_unlock(struct bz_request *r, struct bz_wakelist *wakes)
{
    struct bz_sync_op *n = bz_sync_op_of(r);
    bz_waitq_end(n->q, n->owner, bz_sync_op_ops_of(n), wakes, bz_sync_os());
}

void bz_sync_op_lock(struct bz_request *r)
{
    node_lock(r);
}

void bz_sync_op_unlock(struct bz_request *r, struct bz_wakelist *wakes)
{
    node_unlock(r, wakes);
}

/* Unregister a blocking node whose wait has ended. Return false if it got its grant before it could park. */
static bool leave_blocking(struct bz_sync_op *n, const struct bz_sync_op_ops *ops)
{
    struct bz_waiter *w = &n->request.waiter;
    if (w->state == BZ_WAITER_QUEUED)
        w->state = ops->leave == NULL || ops->leave(n) ? BZ_WAITER_OUT : BZ_WAITER_GRANTED;
    bz_list_remove(&w->in);
    return w->state == BZ_WAITER_OUT;
}

/* Cancel the node of a future. Give back its grant or notification for the other waiters. */
static void leave_polled(struct bz_sync_op *n, const struct bz_sync_op_ops *ops,
                         struct bz_wakelist *wakes)
{
    struct bz_waiter *w = &n->request.waiter;
    uint8_t state = w->state;
    if (state == BZ_WAITER_QUEUED && ops->leave != NULL)
        (void)ops->leave(n);
    bz_list_remove(&w->in);
    bool has_something = state == BZ_WAITER_GRANTED || state == BZ_WAITER_NOTIFIED;
    if (has_something && ops->give_back != NULL)
        ops->give_back(n, wakes);
    w->state = BZ_WAITER_OUT;
}

bool bz_sync_op_leave(struct bz_request *r, struct bz_wakelist *wakes)
{
    struct bz_sync_op *n = bz_sync_op_of(r);
    const struct bz_sync_op_ops *ops = bz_sync_op_ops_of(n);
    bool has_left = true;
    if (r->waiter.is_polled)
        leave_polled(n, ops, wakes);
    else
        has_left = leave_blocking(n, ops);
    ops->serve(n->owner, wakes); /* it may have blocked the waiters behind it */
    return has_left;
}

void bz_sync_op_resumed(struct bz_request *r, bool is_early)
{
    struct bz_sync_op *n = bz_sync_op_of(r);
    (void)is_early;
    /* I3: the releaser may still hold the lock; I4 */
    bz_waitq_serve(n->q, n->owner, bz_sync_op_ops_of(n));
}

bool bz_sync_op_check(struct bz_request *r, struct bz_wakelist *wakes)
{
    struct bz_sync_op *n = bz_sync_op_of(r);
    const struct bz_sync_op_ops *ops = bz_sync_op_ops_of(n);
    if (r->waiter.state == BZ_WAITER_QUEUED && ops->leave(n))
        return false;
    bz_list_remove(&r->waiter.in); /* linked: it was polled before the chain reached it */
    ops->serve(n->owner, wakes);   /* I4 */
    return true;
}

/* Copy the operations and set those that all primitives share, so that the compiler can inline them. */
static BZ_ALWAYS_INLINE struct bz_request_ops known_of(const struct bz_request *r)
{
    struct bz_request_ops by = *r->ops;
    by.lock = node_lock;
    by.unlock = node_unlock;
    return by;
}

static bool node_hook(struct bz_wait *w, void *arg)
{
    struct bz_request *r = arg;
    struct bz_request_ops by = known_of(r);
    return bz_request_hook_by(w, r, &by);
}

static void node_hook_task(void *wait)
{
    bz_wait_register(wait, node_hook);
}

static bool node_hook_short(struct bz_wait *w, void *arg)
{
    struct bz_request *r = arg;
    struct bz_request_ops by = known_of(r);
    return bz_request_hook_of(w, r, &by, false);
}

static void node_hook_usual(void *wait)
{
    bz_wait_register_by(wait, node_hook_short, false);
}

int bz_waitq_acquire(struct bz_waitq *q, void *owner, const struct bz_sync_op_ops *ops,
                     uint64_t want, blitz_deadline until)
{
    struct bz_sync_op n;
    bz_sync_op_init(&n, q, owner, ops, want, false);
    struct bz_request_ops by = known_of(&n.request);
    return bz_request_wait_by(&n.request, bz_sync_os(), until,
                              (struct bz_request_hooks){node_hook, node_hook_task, node_hook_usual},
                              &by);
}

/* ---- futures ---- */

static_assert(sizeof(struct bz_sync_op) <= sizeof(((blitz_sync_future *)NULL)->inside),
              "it has room");

void bz_sync_future_init(blitz_sync_future *f, struct bz_waitq *q, void *owner,
                         const struct bz_sync_op_ops *ops, uint64_t want)
{
    f->future.ops = &ops->look.future;
    f->result = 0;
    bz_sync_op_init(bz_sync_future_node(f), q, owner, ops, want, true);
}

blitz_poll bz_sync_future_poll(blitz_future *future, const blitz_waker *waker)
{
    blitz_sync_future *f = BZ_CONTAINER_OF(future, blitz_sync_future, future);
    struct bz_sync_op *n = bz_sync_future_node(f);
    if (n->q == NULL)
        return BLITZ_READY; /* it was ready before */
    if (!bz_request_poll(&n->request, waker))
        return BLITZ_PENDING;
    f->result = bz_get(&n->request.waiter.result);
    n->q = NULL;
    return BLITZ_READY;
}

bool bz_sync_future_is_far(blitz_future *future)
{
    struct bz_sync_op *n = bz_sync_future_node(BZ_CONTAINER_OF(future, blitz_sync_future, future));
    const struct bz_request_ops *ops = n->request.ops;
    return !n->request.waiter.was_polled && ops->is_far != NULL && ops->is_far(&n->request);
}

void bz_sync_future_cancel(blitz_future *future)
{
    struct bz_sync_op *n = bz_sync_future_node(BZ_CONTAINER_OF(future, blitz_sync_future, future));
    if (n->q != NULL)
        (void)bz_request_cancel(&n->request);
}

int bz_sync_future_output(blitz_future *future)
{
    return BZ_CONTAINER_OF(future, blitz_sync_future, future)->result;
}
