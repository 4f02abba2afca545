/*
 * waitq.c - the line before a primitive: joining, giving, giving up. The essay is in waitq.h.
 *
 *              join     give      tell       give up (deadline, cancel)   enter again
 *   out        queued   -         -          -                            -
 *   queued     -        granted   notified   out, serve                   -
 *   granted    -        -         -          (future) give_back, serve    -
 *   notified   queued   -         -          (future) give_back, serve    out, or queued
 *
 * A stack that was given to has taken it with the same step (the arbiter of its wait, sched/wait.h),
 * so only a future can be given something and then go: it does not run until it is polled.
 *
 * Rejected: giving futures a mere notification everywhere (they would lose their place in the line
 * with every race they lose, so that a first-in-first-out semaphore could not be one); the wait's
 * hook testing again under the lock (a barrier's last, and a condition's mutex, would run wakers of
 * others' futures from a hook).
 *
 * I1  A node is in the list if and only if its state is BZ_WAITER_QUEUED.
 * I2  A stack's node is given or told to with its wait won, or before its wait was published.
 * I3  The last thread that drops the lock touches nothing of the primitive afterwards.
 * I4  is_last_to_leave: a released waiter may free the primitive. So each call takes the lock once
 *     and releases at most one list of waiters. If more wait than a list holds, the released waiters
 *     release the rest: each of them takes the lock before it leaves (a poll, a cancel, the end of a
 *     blocking wait), and serves one more list. A list that was cut short has released BZ_WAKELIST_MAX
 *     waiters that have not taken the lock yet, so the chain does not break.
 *
 * No atomics of its own: everything here is under the lock, or handed over by a wait.
 */
#include "sync/waitq.h"

#include <assert.h>
#include <errno.h>

/* ---- under the lock ---- */

void bz_node_join(struct bz_node *n)
{
    struct bz_waiter *w = &n->waiter;
    BZ_ASSERT(w->state == BZ_WAITER_OUT || w->state == BZ_WAITER_NOTIFIED);
    if (w->state == BZ_WAITER_NOTIFIED)
        bz_waiter_queue_first(w, &n->q->inside);
    else
        bz_waiter_queue(w, &n->q->inside);
    w->is_parked = false;
}

/* Take a node off the line, in that state; false: its owner had gone. */
static BZ_ALWAYS_INLINE bool node_hand(struct bz_node *n, enum bz_waiter_state state,
                                       struct bz_wakelist *wakes)
{
    struct bz_waiter *w = &n->waiter;
    BZ_ASSERT(w->state == BZ_WAITER_QUEUED); /* I1 */
    if (w->is_polled) {
        bz_wakelist_notify(wakes, w);
        w->state = (uint8_t)state;
        return true;
    }
    bz_list_remove(&w->in);
    w->state = (uint8_t)state;
    if (!w->is_parked)
        return true; /* I2: its hook will see */
    if (BZ_BROKEN(223))
        w->state = BZ_WAITER_QUEUED;
    if (bz_wait_claim(w->wait, w->outcome, bz_wakelist_next(wakes))) {
        if (BZ_BROKEN(223))
            w->state = (uint8_t)state;
        bz_wakelist_add(wakes);
        return true; /* and is gone, perhaps */
    }
    w->state = BZ_WAITER_OUT; /* it takes the lock before it goes: sched/wait.h, rule 2 */
    return BZ_BROKEN(110);    /* as if it had taken what it was given */
}

bool bz_node_give(struct bz_node *n, struct bz_wakelist *wakes)
{
    return node_hand(n, BZ_WAITER_GRANTED, wakes);
}

bool bz_node_tell(struct bz_node *n, struct bz_wakelist *wakes)
{
    return node_hand(n, BZ_WAITER_NOTIFIED, wakes);
}

void bz_waitq_end_slow(struct bz_waitq *q, void *owner, const struct bz_node_ops *ops,
                       struct bz_wakelist *wakes, const struct bz_os *os)
{
    bz_wakelist_deliver(wakes);
    while (wakes->has_more && (!ops->is_last_to_leave || BZ_BROKEN(222))) { /* I4 */
        wakes->has_more = false;
        bz_waitq_take(q, os);
        ops->serve(owner, wakes);
        bz_waitq_drop(q, os);
        bz_wakelist_deliver(wakes);
    }
}

void bz_waitq_serve(struct bz_waitq *q, void *owner, const struct bz_node_ops *ops)
{
    const struct bz_os *os = bz_sync_os();
    struct bz_wakelist wakes;
    bz_wakelist_init(&wakes);
    bz_waitq_take(q, os);
    ops->serve(owner, &wakes);
    bz_waitq_end(q, owner, ops, &wakes, os);
}

/* ---- stacks ---- */

/* On the next stack. A node that has not entered enters here. One that must wait lets deadline and cancel
 * see it; the others were given something, here or since they entered. */
static bool node_hook(struct bz_wait *w, void *arg)
{
    struct bz_node *n = arg;
    struct bz_waitq *q = n->q;
    const struct bz_os *os = w->os;
    struct bz_wakelist wakes;
    bz_wakelist_init(&wakes);
    bz_waitq_take(q, os);
    if (n->waiter.state == BZ_WAITER_OUT && n->ops->enter(n, &wakes))
        n->waiter.state = BZ_WAITER_GRANTED;
    if (BZ_UNLIKELY(n->waiter.state != BZ_WAITER_QUEUED)) {
        bz_waitq_end(q, n->owner, n->ops, &wakes, os);
        return bz_wait_over(w, BZ_WAIT_WOKEN);
    }
    BZ_ASSERT(wakes.count == 0); /* a node that must wait serves no other */
    n->waiter.is_parked = true;
    bool waits = bz_wait_publish(w);
    bz_waitq_drop(q, os); /* the last thing */
    return waits;
}

/* A deadline or a cancel. Returns false if it was given all the same, before it could park. */
static BZ_NOINLINE bool node_leave(struct bz_node *n, const struct bz_os *os)
{
    struct bz_waitq *q = n->q;
    void *owner = n->owner;
    const struct bz_node_ops *ops = n->ops;
    struct bz_wakelist wakes;
    bz_wakelist_init(&wakes);
    bz_waitq_take(q, os);
    struct bz_waiter *w = &n->waiter;
    if (w->state == BZ_WAITER_QUEUED)
        w->state = ops->leave == NULL || ops->leave(n) ? BZ_WAITER_OUT : BZ_WAITER_GRANTED;
    bool has_left = w->state == BZ_WAITER_OUT;
    if (!BZ_BROKEN(111))
        bz_list_remove(&w->in);
    ops->serve(owner, &wakes); /* it stood before others, perhaps */
    bz_waitq_end(q, owner, ops, &wakes, os);
    return has_left;
}

int bz_node_wait(struct bz_node *n, struct bz_wait *w, blitz_deadline until)
{
    const struct bz_os *os = bz_sync_os();
    bz_wait_begin(w, os, n->ops->look.future.name, until);
    if (n->ops->holder_at != 0)
        w->holder = (const char *)n->owner + n->ops->holder_at;
    uint32_t outcome = bz_wait_refuse(w);
    if (outcome == BZ_WAIT_OPEN)
        outcome = bz_wait_park(w, node_hook, n);
    if (outcome < BZ_WAIT_WOKEN)
        return node_leave(n, os) ? bz_wait_error(outcome) : 0;
    if (n->ops->is_last_to_leave && !BZ_BROKEN(112)) /* I3: the giver may still hold the lock */
        bz_waitq_serve(n->q, n->owner, n->ops);      /* I4 */
    return 0;
}

/* Enter the line under its lock. True: the node has what it wants. */
static BZ_NOINLINE bool node_enter(struct bz_node *n)
{
    const struct bz_os *os = bz_sync_os();
    struct bz_wakelist wakes;
    bz_wakelist_init(&wakes);
    bz_waitq_take(n->q, os);
    bool has_it = n->ops->enter(n, &wakes);
    bz_waitq_end(n->q, n->owner, n->ops, &wakes, os);
    return has_it;
}

int bz_waitq_acquire(struct bz_waitq *q, void *owner, const struct bz_node_ops *ops, uint64_t want,
                     blitz_deadline until)
{
    struct bz_wait w;
    struct bz_node n;
    bz_node_init(&n, q, owner, ops, want, &w);
    bool is_far = !BZ_SYNC_IS_DULL && ops->is_far != NULL && ops->is_far(&n);
    for (;;) {
        if (!is_far && node_enter(&n)) /* far: the hook enters, and takes the lock once for both */
            return bz_get(&n.waiter.result);
        is_far = false;
        int err = bz_node_wait(&n, &w, until);
        if (err != 0)
            return err;
        if (n.waiter.state == BZ_WAITER_GRANTED)
            return bz_get(&n.waiter.result);
        BZ_ASSERT(n.waiter.state == BZ_WAITER_NOTIFIED);
    }
}

/* ---- futures ---- */

static_assert(sizeof(struct bz_node) <= sizeof(((blitz_sync_future *)NULL)->inside), "it has room");

void bz_sync_future_init(blitz_sync_future *f, struct bz_waitq *q, void *owner,
                         const struct bz_node_ops *ops, uint64_t want)
{
    f->future.ops = &ops->look.future;
    f->result = 0;
    bz_node_init(bz_sync_future_node(f), q, owner, ops, want, NULL);
}

/* Under the lock: is it ready? If not, it stands in the line. */
static bool node_ask(struct bz_node *n, struct bz_wakelist *wakes)
{
    bool is_chain = n->ops->is_last_to_leave;
    if (n->waiter.state == BZ_WAITER_OUT || n->waiter.state == BZ_WAITER_NOTIFIED)
        return n->ops->enter(n, wakes);
    if (n->waiter.state == BZ_WAITER_QUEUED && (!is_chain || n->ops->leave(n)))
        return false;
    bz_list_remove(&n->waiter.in); /* linked: it was polled before the chain reached it */
    if (is_chain)
        n->ops->serve(n->owner, wakes); /* I4 */
    return true;
}

/* Mostly there is none. */
static inline void waker_drop(blitz_waker *w)
{
    if (w->ops != NULL)
        blitz_waker_drop(w);
}

blitz_poll bz_sync_future_poll(blitz_future *future, const blitz_waker *waker)
{
    blitz_sync_future *f = BZ_CONTAINER_OF(future, blitz_sync_future, future);
    struct bz_node *n = bz_sync_future_node(f);
    struct bz_waitq *q = n->q;
    if (q == NULL)
        return BLITZ_READY; /* as before */
    const struct bz_os *os = bz_sync_os();
    struct bz_wakelist wakes;
    bz_wakelist_init(&wakes);
    n->waiter.was_polled = true;
    blitz_waker spare = blitz_waker_clone(waker); /* anybody's code: before the lock */
    bz_waitq_take(q, os);
    bool is_ready = node_ask(n, &wakes);
    blitz_waker old = bz_waiter_set_waker(&n->waiter, is_ready ? (blitz_waker){NULL, NULL} : spare);
    if (is_ready) {
        f->result = bz_get(&n->waiter.result);
        n->waiter.state = BZ_WAITER_OUT;
        n->q = NULL;
    }
    bz_waitq_end(q, n->owner, n->ops, &wakes, os);
    waker_drop(&old);
    if (is_ready)
        waker_drop(&spare);
    return is_ready ? BLITZ_READY : BLITZ_PENDING;
}

bool bz_sync_future_is_far(blitz_future *future)
{
    struct bz_node *n = bz_sync_future_node(BZ_CONTAINER_OF(future, blitz_sync_future, future));
    return !BZ_SYNC_IS_DULL && !n->waiter.was_polled && n->ops->is_far != NULL && n->ops->is_far(n);
}

/* Under the lock: whatever it has or hopes for is others'. */
static void node_revoke(struct bz_node *n, struct bz_wakelist *wakes)
{
    uint8_t state = n->waiter.state;
    if (state == BZ_WAITER_QUEUED && n->ops->leave != NULL)
        (void)n->ops->leave(n);
    bool has_something = state == BZ_WAITER_GRANTED || state == BZ_WAITER_NOTIFIED;
    bz_list_remove(&n->waiter.in);
    if (has_something && n->ops->give_back != NULL && !BZ_BROKEN(113))
        n->ops->give_back(n, wakes);
    n->waiter.state = BZ_WAITER_OUT;
    n->ops->serve(n->owner, wakes);
}

void bz_sync_future_cancel(blitz_future *future)
{
    struct bz_node *n = bz_sync_future_node(BZ_CONTAINER_OF(future, blitz_sync_future, future));
    struct bz_waitq *q = n->q;
    if (q == NULL)
        return;
    const struct bz_os *os = bz_sync_os();
    struct bz_wakelist wakes;
    bz_wakelist_init(&wakes);
    bz_waitq_take(q, os);
    if (n->waiter.state != BZ_WAITER_OUT)
        node_revoke(n, &wakes);
    blitz_waker old = bz_waiter_take_waker(&n->waiter);
    bz_waitq_end(q, n->owner, n->ops, &wakes, os);
    waker_drop(&old);
}

int bz_sync_future_output(blitz_future *future)
{
    return BZ_CONTAINER_OF(future, blitz_sync_future, future)->result;
}
