/*
 * chan_request.c - a step of a channel that may have to wait, as a request (park/request.h).
 *
 * Calls and futures share it. A blocking request has tried its step before it comes here, so it enters in the
 * hook of its wait. No other party can come between the decision to wait and joining the queue.
 *
 * A future that was notified may find that another party was faster. Then it goes to the head of the queue:
 * it was the first.
 *
 * Rejected: holding the lock from the first try until the hook drops it. It saves a pair of locked
 * instructions, but the lock is held while the scheduler finds the next task. That may fire timers and call
 * wakers, which may use this very channel.
 *
 * I1  The party that serves a blocking waiter copies its value after the claim, under the lock. So a waiter
 *     that continues early (wait/wait.h, bz_wait_is_early) takes the lock once.
 * I2  Once a waiter is in the queue and the lock is dropped, its owner may continue, and drop the channel.
 *     So the unlock touches the channel afterwards only if there is something to free or more to serve. That
 *     is never the case for a request that was queued.
 * I3  Under the lock: if may_recv is 0, there is no value and no sender, and the channel is open. If may_send is 0, it is
 *     an open rendezvous without a receiver. Each is cleared only after a look at all that, and set by every step that
 *     changes it, in the same section. So the hook of a wait that found the hint without the lock looks at the hint alone.
 */
#include "chan/chan.h"

static struct bz_chan_op *op_of(struct bz_request *r)
{
    return BZ_CONTAINER_OF(r, struct bz_chan_op, request);
}

static BZ_ALWAYS_INLINE void chan_lock(struct bz_request *r)
{
    bz_chan_lock(op_of(r)->c);
}

static BZ_ALWAYS_INLINE void chan_unlock(struct bz_request *r, struct bz_wakelist *wakes)
{
    bz_chan_done(op_of(r)->c, wakes);
}

/* Queue a blocking request on the fast path. Return false if it is not one of the common cases. */
static inline bool queue_in_short(struct blitz_chan *c, struct bz_chan_op *op)
{
    if (op->kind == BZ_CHAN_RECV) {
        if (BZ_UNLIKELY(bz_load_relaxed(&c->may_recv) != 0)) { /* relaxed: locked */
            if (!bz_chan_is_empty(c))
                return false;
            bz_store_relaxed(&c->may_recv, 0); /* relaxed: a hint for those without the lock */
        }
        BZ_ASSERT(bz_chan_is_empty(c)); /* I3 */
        bz_waiter_queue(&op->request.waiter, &c->receivers);
        bz_chan_has_room(c);
        return true;
    }
    if (BZ_UNLIKELY(bz_load_relaxed(&c->may_send) != 0)) { /* relaxed: locked */
        if (!bz_chan_is_lonely(c))
            return false;
        bz_store_relaxed(&c->may_send, 0); /* relaxed: a hint for those without the lock */
    }
    BZ_ASSERT(bz_chan_is_lonely(c)); /* I3 */
    bz_waiter_queue(&op->request.waiter, &c->senders);
    bz_chan_has_news(c);
    return true;
}

static BZ_NOINLINE bool enter_in_full(struct bz_request *r, struct bz_wakelist *wakes)
{
    struct bz_chan_op *op = op_of(r);
    bool was_notified = bz_chan_untell(op);
    int rc = op->is_done ? 0 : bz_chan_try(op, wakes);
    if (rc == -EAGAIN) {
        bz_chan_join_line(op, was_notified, wakes);
        return false;
    }
    bz_set(&r->waiter.result, rc);
    return true;
}

static BZ_ALWAYS_INLINE bool chan_enter(struct bz_request *r, struct bz_wakelist *wakes)
{
    struct bz_chan_op *op = op_of(r);
    if (BZ_CHAN_SHORT && !r->waiter.is_polled && queue_in_short(op->c, op))
        return false;
    return enter_in_full(r, wakes);
}

static bool chan_leave(struct bz_request *r, struct bz_wakelist *wakes)
{
    struct bz_chan_op *op = op_of(r);
    if (bz_chan_untell(op))
        bz_chan_serve(op->c, wakes); /* another waiter is notified instead */
    bz_waiter_leave(&r->waiter);
    if (op->kind == BZ_CHAN_RESERVE && bz_chan_let_go(op))
        bz_chan_serve(op->c, wakes);
    return !op->is_done;
}

static BZ_ALWAYS_INLINE void chan_resumed(struct bz_request *r, bool is_early)
{
    struct bz_chan_op *op = op_of(r);
    if (BZ_LIKELY(!is_early))
        return;
    bz_chan_lock(op->c); /* I1 */
    bz_chan_unlock(op->c);
}

#define CHAN_REQUEST(what_)                                                             \
    {                                                                                   \
        .what = (what_), .lock = chan_lock, .unlock = chan_unlock, .enter = chan_enter, \
        .leave = chan_leave, .is_tried = true, .resumed = chan_resumed                  \
    }

const struct bz_request_ops bz_chan_requests[] = {
    [BZ_CHAN_SEND] = CHAN_REQUEST("send"),
    [BZ_CHAN_RECV] = CHAN_REQUEST("receive"),
    [BZ_CHAN_RESERVE] = CHAN_REQUEST("reserve"),
};

/* The functions of all three kinds, as a constant, so that the compiler can inline them. */
static const struct bz_request_ops known = CHAN_REQUEST("");

BZ_REQUEST_HOOKS(chan_hooks, &known);

int bz_chan_wait(struct bz_chan_op *op, blitz_deadline until)
{
    op->request.ops = &bz_chan_requests[op->kind];
    bz_waiter_init(&op->request.waiter, NULL, BZ_WAIT_WOKEN);
    return bz_request_wait_by(&op->request, op->c->os, until, chan_hooks, &known);
}

/* ---- the common waits: of a receive or a send, without a deadline ---- */

/* The task was cancelled before its wait was published. Under the lock. */
static BZ_NOINLINE void hook_flagged(struct blitz_chan *c, struct bz_wait *w, struct bz_task *t)
{
    bool waits = bz_wait_publish_flagged(w);
    bz_chan_lock_drop_inside(&c->lock, c->os);
    if (!waits) {
        bz_trace_wake(t, t->id); /* by itself */
        bz_task_resume(t);
    }
}

/*
 * The hook of wait_shortly(). It does what chan_hooks_usual does if the lock is free and the step still has to wait:
 * queue the waiter, publish its wait. All else is a call at its end, so that it saves no registers, which makes it 35
 * instructions shorter.
 */
static BZ_ALWAYS_INLINE void hook_of_kind(struct bz_wait *w, enum bz_chan_kind kind)
{
    struct bz_task *t = w->task;
    struct bz_chan_op *op = op_of(w->arg);
    struct blitz_chan *c = op->c;
    bz_os_delay(t->rt->os, BZ_OS_AT_PUBLISH);
    if (BZ_UNLIKELY(!bz_chan_lock_try_inside(&c->lock, c->os))) {
        chan_hooks_usual(w);
        return;
    }
    BZ_ASSUME(op->kind == kind);
    BZ_ASSERT(op->request.waiter.state == BZ_WAITER_OUT);
    if (BZ_UNLIKELY(!queue_in_short(c, op))) {
        bz_chan_lock_drop_inside(&c->lock, c->os);
        chan_hooks_usual(w);
        return;
    }
    if (BZ_LIKELY(bz_wait_show_by(w, t, false)))
        bz_chan_lock_drop_inside(&c->lock, c->os); /* last: the frame may be gone */
    else
        hook_flagged(c, w, t);
}

static void recv_hook(void *wait)
{
    hook_of_kind(wait, BZ_CHAN_RECV);
}

static void send_hook(void *wait)
{
    hook_of_kind(wait, BZ_CHAN_SEND);
}

/* The wait had another outcome than a grant: by a cancel. */
static BZ_NOINLINE int ended_early(struct bz_chan_op *op, uint32_t outcome)
{
    if (bz_request_leave_now(&op->request))
        return bz_wait_error(outcome);
    return bz_get(&op->request.waiter.result);
}

/*
 * Wait as bz_chan_wait() does. A task waits, without a deadline, and nothing unusual holds. bz_suspend_begin() has
 * checked each of these once and entered the runtime, before the wait is set up. (With the grant of park/grant.h, a round
 * trip over a channel takes 664 instructions instead of 772.)
 */
static BZ_ALWAYS_INLINE int wait_shortly(struct bz_machine *m, struct blitz_chan *c,
                                         enum bz_chan_kind kind, void *value, bz_ctx_hook *hook)
{
    struct bz_task *me = m->current;
    struct bz_chan_op op;
    struct bz_wait w;
    op.c = c;
    op.kind = kind;
    op.is_done = false;
    op.value = value;
    op.request.ops = &bz_chan_requests[kind];
    bz_waiter_init(&op.request.waiter, &w, BZ_WAIT_WOKEN);
    op.request.waiter.is_parked = true; /* once it is queued: the hook does both under one lock */
    bz_wait_begin_as(&w, me, m->rt, c->os, bz_chan_requests[kind].what, BLITZ_FOREVER);
    w.arg = &op.request;
    uint32_t outcome = bz_wait_park_begun(m, me, &w, hook);
    if (BZ_UNLIKELY(outcome < BZ_WAIT_WOKEN))
        return ended_early(&op, outcome);
    BZ_ASSERT(op.request.waiter.state == BZ_WAITER_GRANTED); /* only a future is notified */
    return bz_get(&op.request.waiter.result);
}

static BZ_NOINLINE int wait_in_full(struct blitz_chan *c, enum bz_chan_kind kind, void *value,
                                    blitz_deadline until)
{
    struct bz_chan_op op;
    op.c = c;
    op.kind = kind;
    op.is_done = false;
    op.value = value;
    return bz_chan_wait(&op, until);
}

int bz_chan_recv_wait(struct blitz_chan *c, void *value, blitz_deadline until)
{
    struct bz_machine *m = bz_machine_self();
    if (BZ_CHAN_SHORT && BZ_LIKELY(until == BLITZ_FOREVER) && BZ_LIKELY(bz_suspend_begin(m)))
        return wait_shortly(m, c, BZ_CHAN_RECV, value, recv_hook);
    return wait_in_full(c, BZ_CHAN_RECV, value, until);
}

int bz_chan_send_wait(struct blitz_chan *c, const void *value, blitz_deadline until)
{
    struct bz_machine *m = bz_machine_self();
    if (BZ_CHAN_SHORT && BZ_LIKELY(until == BLITZ_FOREVER) && BZ_LIKELY(bz_suspend_begin(m)))
        return wait_shortly(m, c, BZ_CHAN_SEND, (void *)value, send_hook);
    return wait_in_full(c, BZ_CHAN_SEND, (void *)value, until);
}
