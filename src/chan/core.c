/*
 * core.c - the steps of a channel under its lock.
 *
 * A channel has one lock, one store of values and two wait queues. There are three steps: *put* a value, *take* one,
 * *hold* a slot. Each step succeeds or returns the reason why not. After a change, bz_chan_serve serves the waiters that
 * the change has made servable, the first waiter first.
 *
 * If the waiter is a blocking call, the step claims its wait and copies its value while holding the lock. The claim
 * fails if a deadline, a cancel or another case of a select was first. Then the waiter leaves the queue and the next
 * one is tried: nothing was given, so nothing is lost. A future is only notified, because it may be cancelled at any
 * time without a word. Its value stays in the store meanwhile (I2), so the waiters behind it in the queue do not take
 * it; a new call may.
 *
 * A rendezvous has no store. A value passes from a sender's memory to a receiver's in the step of
 * the party that comes second. A receiver that polls cannot be given a value, so it is notified that a sender
 * waits, and takes. A receiver can take from a sender that polls, which is the exception that blitz/chan.h
 * names: of two futures one has to stand still for the other.
 *
 * A polled select may have sends in the queues of several rendezvous channels, and each queue has its own
 * lock. The select's claim word decides: a receiver sets it before it takes a send of that select, and
 * leaves the send alone if the word was set already (I4). A polled select may also receive from and send
 * to one rendezvous channel. It cannot serve itself, so its receive is notified only if a sender of
 * another party waits.
 *
 * A reserve of several slots gathers them: while it is the first in the queue of senders, it gets each slot that becomes
 * free, and keeps it (I5). So no other sender can take a slot that it waits for, and a fast path need not look for such a
 * waiter: there is no free slot beside it. A future that waits in this way is granted its slots and not only notified;
 * its cancel returns them.
 *
 * Rejected: cells with sequence numbers (a lock-free MPMC ring) with waiters beside them.
 * Every operation pays a fence against a waiter that is just going to sleep, direct hand-off is lost,
 * and close, permits and select need the lock all the same.
 *
 * I1  values.count + permits <= capacity.
 * I2  A future that is notified and has not polled since stands for one value (notified_receivers) or one
 *     free slot (notified_senders): bz_chan_serve leaves that many for them.
 * I3  While the lock is free, no waiter could be served, except those that a thread is about
 *     to come back for (wakes->has_more).
 * I4  Of the sends of one polled select at most one is done (is_done): the one whose receiver set the
 *     claim.
 * I5  A reserve that waits has slots (asked_for - wanted > 0, counted in permits) only if it was the first in the queue.
 *     A notified future may have come back to the head since; it does not gather. So of all reserves that wait at most
 *     one has slots, and no two wait for each other's.
 */
#include "chan/chan.h"

/* ---- the state ---- */

static bool is_drained(const struct blitz_chan *c)
{
    return c->is_shut || (c->is_closed && c->values.count == 0 && c->permits == 0);
}

static size_t free_slots(const struct blitz_chan *c)
{
    return c->capacity - c->values.count - c->permits; /* I1 */
}

/* True if an unbounded channel has no slot left beyond those of its permits. */
static bool must_grow(const struct blitz_chan *c)
{
    return c->capacity == BLITZ_UNBOUNDED && c->values.room <= c->permits;
}

/* True if an unbounded channel has fewer than `slots` beyond those of its permits. */
static bool lacks(const struct blitz_chan *c, size_t slots)
{
    return c->capacity == BLITZ_UNBOUNDED && c->values.room < c->permits + slots;
}

static void tell(struct blitz_chan *c, struct bz_waiter *w, struct bz_wakelist *wakes)
{
    if (bz_chan_op_of(w)->kind == BZ_CHAN_RECV)
        c->notified_receivers++;
    else
        c->notified_senders++;
    bz_wakelist_notify(wakes, w);
}

bool bz_chan_untell(struct bz_chan_op *op)
{
    if (op->request.waiter.state != BZ_WAITER_NOTIFIED)
        return false;
    op->request.waiter.state = BZ_WAITER_OUT;
    if (op->kind == BZ_CHAN_RECV)
        op->c->notified_receivers--;
    else
        op->c->notified_senders--;
    return true;
}

/* ---- a rendezvous ---- */

/* Hand off the value to the first blocking receiver whose wait can be claimed. Skip futures. */
static int hand_to_receiver(struct blitz_chan *c, const void *value, struct bz_wakelist *wakes)
{
    BZ_LIST_FOR_EACH_SAFE (in, &c->receivers) {
        struct bz_waiter *w = bz_waiter_of(in);
        if (w->is_polled || !bz_wakelist_grant(wakes, w, 0))
            continue;
        bz_value_copy(bz_chan_op_of(w)->value, value, c->values.size);
        return 0;
    }
    return -EAGAIN;
}

/* Claim a future's send. Return false if it belongs to a select of which another send was taken. */
static bool claim_send(struct bz_chan_op *op)
{
    /* relaxed: only one receiver may claim it; is_done and the value are under the lock of this channel */
    return op->claim == NULL || bz_xchg_relaxed(op->claim, 1) == 0;
}

/* Take the value of the first waiting sender. That send is then done, even if it is a future. */
static int take_from_sender(struct blitz_chan *c, void *value, struct bz_wakelist *wakes)
{
    for (struct bz_waiter *w; (w = bz_waiter_first(&c->senders)) != NULL;) {
        struct bz_chan_op *op = bz_chan_op_of(w);
        if (w->is_polled) {
            if (!claim_send(op)) {
                bz_waiter_leave(w); /* the receiver that claimed the select has notified it */
                continue;
            }
            tell(c, w, wakes);
            op->is_done = true;
        } else if (!bz_wakelist_grant(wakes, w, 0)) {
            continue;
        }
        bz_value_copy(value, op->value, c->values.size);
        return 0;
    }
    return -EAGAIN;
}

/* True if a and b are cases of one polled select. */
static bool is_same_select(struct bz_waiter *a, struct bz_waiter *b)
{
    return a->is_polled && b->is_polled && bz_chan_op_of(a)->claim != NULL &&
           bz_chan_op_of(a)->claim == bz_chan_op_of(b)->claim;
}

/* True if a sender waits that this receiver can take from. A select has at most BLITZ_SELECT_MAX cases,
 * so the loop is short. */
static bool has_sender_for(const struct blitz_chan *c, struct bz_waiter *receiver)
{
    BZ_LIST_FOR_EACH (in, &c->senders)
        if (!is_same_select(bz_waiter_of(in), receiver))
            return true;
    return false;
}

/* Return the first future in the queue of receivers that a sender can serve, or NULL. */
static struct bz_waiter *first_future_to_serve(const struct blitz_chan *c)
{
    BZ_LIST_FOR_EACH (in, &c->receivers)
        if (bz_waiter_of(in)->is_polled && has_sender_for(c, bz_waiter_of(in)))
            return bz_waiter_of(in);
    return NULL;
}

/* Store a value. The caller knows that there is a slot. */
static void store(struct blitz_chan *c, const void *value)
{
    bz_value_copy(bz_values_push(&c->values), value, c->values.size);
    bz_chan_has_news(c);
}

/* ---- serving the waiters ---- */

static size_t asked_for(const struct bz_chan_op *op)
{
    return op->is_many ? ((const blitz_permits *)op->value)->left : 1;
}

/* Give the free slots to a reserve that waits. Return true if it has all of its slots now. */
static bool gather(struct blitz_chan *c, struct bz_chan_op *op)
{
    size_t slots = free_slots(c),
           kept = c->notified_senders; /* I2; a new call may have taken a kept slot */
    size_t spare = slots > kept ? slots - kept : 0;
    size_t n = spare < op->wanted ? spare : op->wanted;
    c->permits += n;
    op->wanted -= n;
    return op->wanted == 0;
}

/* A reserve has joined the queue: if it is the first, it gets the free slots. Its step has just found fewer than it wants,
 * so it does not get all. */
static BZ_NOINLINE void gather_first(struct blitz_chan *c, struct bz_chan_op *op)
{
    if (bz_waiter_first(&c->senders) == &op->request.waiter)
        (void)gather(c, op);
}

bool bz_chan_let_go(struct bz_chan_op *op)
{
    size_t has = asked_for(op) - op->wanted;
    op->c->permits -= has;
    op->wanted += has;
    if (has != 0)
        bz_chan_has_room(op->c);
    return has != 0;
}

/* Serve the first sender, a reserve: there are free slots, or the channel is closed. */
static void serve_reserve(struct blitz_chan *c, struct bz_chan_op *op, struct bz_wakelist *wakes)
{
    struct bz_waiter *w = &op->request.waiter;
    if (c->is_closed) {
        (void)bz_chan_let_go(op);
        if (w->is_polled)
            tell(c, w, wakes);
        else
            (void)!bz_wakelist_grant(wakes, w, -EPIPE);
    } else if (gather(c, op)) { /* before the grant: wait/waiter.h, I2 */
        bool is_granted =
            w->is_polled ? bz_request_grant(&op->request, wakes) : bz_wakelist_grant(wakes, w, 0);
        if (!is_granted)
            (void)bz_chan_let_go(op); /* it takes the lock before it leaves */
    }
}

static bool serve_sender(struct blitz_chan *c, struct bz_wakelist *wakes)
{
    struct bz_waiter *w = bz_waiter_first(&c->senders);
    if (w == NULL || !(c->is_closed || free_slots(c) > c->notified_senders)) /* I2 */
        return false;
    struct bz_chan_op *op = bz_chan_op_of(w);
    if (op->kind == BZ_CHAN_RESERVE)
        serve_reserve(c, op, wakes);
    else if (w->is_polled)
        tell(c, w, wakes);
    else if (c->is_closed)
        (void)!bz_wakelist_grant(wakes, w, -EPIPE);
    else if (bz_wakelist_grant(wakes, w, 0))
        store(c, op->value);
    return true;
}

/* Notify a polling receiver of a rendezvous that a sender waits. Only one receiver is notified at a time. */
static bool serve_polling_receiver(struct blitz_chan *c, struct bz_wakelist *wakes)
{
    if (c->notified_receivers != 0 || bz_list_is_empty(&c->senders))
        return false;
    struct bz_waiter *w = first_future_to_serve(c);
    if (w == NULL)
        return false;
    tell(c, w, wakes);
    return true;
}

static bool serve_receiver(struct blitz_chan *c, struct bz_wakelist *wakes)
{
    struct bz_waiter *w = bz_waiter_first(&c->receivers);
    bool is_over = is_drained(c);
    if (w == NULL)
        return false;
    if (c->capacity == 0 && !is_over)
        return serve_polling_receiver(c, wakes);
    if (!is_over && c->values.count <= c->notified_receivers) /* I2 */
        return false;
    if (w->is_polled)
        tell(c, w, wakes);
    else if (is_over)
        (void)!bz_wakelist_grant(wakes, w, -EPIPE);
    else if (bz_wakelist_grant(wakes, w, 0))
        bz_value_copy(bz_chan_op_of(w)->value, bz_values_take(&c->values), c->values.size);
    bz_chan_has_room(c);
    return true;
}

void bz_chan_serve(struct blitz_chan *c, struct bz_wakelist *wakes)
{
    while (!bz_wakelist_is_full(wakes))
        if (!serve_receiver(c, wakes) && !serve_sender(c, wakes))
            return;
    wakes->has_more = true; /* I3 */
}

void bz_chan_serve_all(struct blitz_chan *c)
{
    struct bz_wakelist wakes;
    bz_wakelist_init(&wakes);
    bz_chan_lock(c);
    bz_chan_serve(c, &wakes);
    bz_chan_done(c, &wakes);
}

void bz_chan_done_slow(struct blitz_chan *c, struct bz_wakelist *wakes, struct bz_block *retired)
{
    bool has_more = wakes->has_more;
    bz_wakelist_deliver(wakes);
    if (retired != NULL)
        bz_blocks_free(&c->values, retired, &c->alloc);
    if (has_more)
        bz_chan_serve_all(c);
}

/* ---- the steps ---- */

/* Put a value while receivers wait. Hand it off to the first one, unless the store has older values. */
static void put_among_waiters(struct blitz_chan *c, const void *value, struct bz_wakelist *wakes)
{
    struct bz_waiter *w;
    while (c->values.count == 0 && (w = bz_waiter_first(&c->receivers)) != NULL && !w->is_polled) {
        if (!bz_wakelist_grant(wakes, w, 0))
            continue;
        bz_value_copy(bz_chan_op_of(w)->value, value, c->values.size);
        /* The slot stays free. If a notified sender put the value, the next sender may have the slot: I2. */
        if (!bz_list_is_empty(&c->senders))
            bz_chan_serve(c, wakes);
        return;
    }
    store(c, value);
    bz_chan_serve(c, wakes);
}

int bz_chan_put(struct blitz_chan *c, const void *value, struct bz_wakelist *wakes)
{
    if (BZ_UNLIKELY(c->is_closed))
        return -EPIPE;
    if (c->capacity == 0)
        return hand_to_receiver(c, value, wakes);
    if (free_slots(c) == 0)
        return -EAGAIN;
    if (must_grow(c))
        return -ENOBUFS;
    if (bz_list_is_empty(&c->receivers))
        store(c, value);
    else
        put_among_waiters(c, value, wakes);
    return 0;
}

void bz_chan_put_held(struct blitz_chan *c, const void *value, struct bz_wakelist *wakes)
{
    c->permits--;
    put_among_waiters(c, value, wakes);
    bz_chan_serve(c, wakes); /* it may have been the last permit of a closed channel */
}

int bz_chan_take(struct blitz_chan *c, void *value, struct bz_wakelist *wakes)
{
    if (BZ_LIKELY(c->values.count > 0)) {
        bz_value_copy(value, bz_values_take(&c->values), c->values.size);
        bz_chan_has_room(c);
        if (!bz_list_is_empty(&c->senders) || BZ_UNLIKELY(c->is_closed))
            bz_chan_serve(c, wakes);
        return 0;
    }
    if (is_drained(c))
        return -EPIPE;
    if (c->capacity != 0)
        return -EAGAIN;
    int rc = take_from_sender(c, value, wakes);
    if (rc == 0 && !bz_list_is_empty(&c->receivers))
        bz_chan_serve(c, wakes); /* notify the next receiver that polls */
    return rc;
}

int bz_chan_hold(struct bz_chan_op *op)
{
    struct blitz_chan *c = op->c;
    if (c->is_closed)
        return -EPIPE;
    if (c->capacity == 0)
        return -EOPNOTSUPP;
    if (free_slots(c) < op->wanted)
        return -EAGAIN;
    if (lacks(c, op->wanted))
        return -ENOBUFS;
    c->permits += op->wanted;
    op->wanted = 0;
    return 0;
}

int bz_chan_try(struct bz_chan_op *op, struct bz_wakelist *wakes)
{
    switch (op->kind) {
    case BZ_CHAN_SEND:
        return bz_chan_put(op->c, op->value, wakes);
    case BZ_CHAN_RECV:
        return bz_chan_take(op->c, op->value, wakes);
    default:
        return bz_chan_hold(op);
    }
}

void bz_chan_join_line(struct bz_chan_op *op, bool at_head, struct bz_wakelist *wakes)
{
    struct blitz_chan *c = op->c;
    struct bz_list *line = op->kind == BZ_CHAN_RECV ? &c->receivers : &c->senders;
    if (at_head)
        bz_waiter_queue_first(&op->request.waiter, line);
    else
        bz_waiter_queue(&op->request.waiter, line);
    if (op->kind == BZ_CHAN_RECV)
        bz_chan_has_room(c);
    else
        bz_chan_has_news(c);
    if (c->capacity == 0 && !bz_list_is_empty(&c->receivers) && !bz_list_is_empty(&c->senders))
        bz_chan_serve(c, wakes);
    else if (BZ_UNLIKELY(op->kind == BZ_CHAN_RESERVE))
        gather_first(c, op);
}

int bz_chan_grow(struct blitz_chan *c, size_t slots)
{
    struct bz_block *b = bz_block_new(&c->values, &c->alloc);
    if (b == NULL)
        return -ENOMEM;
    bz_chan_lock(c);
    bool is_needed = lacks(c, slots) && !c->is_shut;
    if (is_needed)
        bz_values_append(&c->values, b);
    bz_chan_unlock(c);
    if (!is_needed)
        bz_block_free(&c->values, b, &c->alloc);
    return 0;
}

int bz_chan_once(struct bz_chan_op *op)
{
    bz_chan_lock(op->c);
    return bz_chan_once_locked(op);
}

int bz_chan_once_locked(struct bz_chan_op *op)
{
    struct blitz_chan *c = op->c;
    struct bz_wakelist wakes;
    bz_wakelist_init(&wakes);
    for (;;) {
        int rc = bz_chan_try(op, &wakes);
        bz_chan_done(c, &wakes);
        if (rc != -ENOBUFS)
            return rc;
        if ((rc = bz_chan_grow(c, bz_chan_slots_of(op))) != 0)
            return rc;
        bz_chan_lock(c);
    }
}

void bz_chan_check(struct blitz_chan *c)
{
    BZ_CHECK(c->capacity == BLITZ_UNBOUNDED || c->values.count + c->permits <= c->capacity,
             "chan %p: %zu values and %zu permits in %zu slots", (void *)c, c->values.count,
             c->permits, c->capacity); /* I1 */
    BZ_CHECK(bz_list_is_empty(&c->receivers) || c->values.count <= c->notified_receivers,
             "chan %p: receivers wait beside %zu values", (void *)c, c->values.count); /* I3 */
    BZ_CHECK(bz_list_is_empty(&c->senders) || free_slots(c) <= c->notified_senders,
             "chan %p: senders wait beside %zu free slots", (void *)c, free_slots(c)); /* I3 */
    BZ_CHECK(c->capacity != 0 || c->notified_receivers != 0 || first_future_to_serve(c) == NULL,
             "chan %p: a receiver that polls waits beside a sender", (void *)c); /* I3 */
    bz_list_check(&c->receivers);
    bz_list_check(&c->senders);
}
