/*
 * calls.c - the blocking calls of a channel: send, receive, permits.
 *
 * Each call tries its step first, and waits only if the step would have to wait. The calls for many values take the
 * lock once for as many steps as need no waiting and as fit into the wake list.
 *
 * I1  Between two tries of one call nothing is held but what the call was told of: an error says how
 *     much was done, and nothing else happened.
 */
#include "chan/chan.h"

/* Fast path, under the lock: hand off to a waiting blocking receiver, if no value is before this one.
 * Return false if nothing was done, except that a receiver that could not be claimed has left the queue. */
static inline bool hand_over(struct blitz_chan *c, const void *value, struct bz_wake *wake)
{
    struct bz_waiter *w = bz_waiter_first(&c->receivers);
    if (w == NULL || w->is_polled || c->values.count != 0 || c->is_closed)
        return false;
    if (!bz_waiter_grant(w, 0, wake))
        return false;
    bz_value_copy(bz_chan_op_of(w)->value, value, c->values.size);
    return true;
}

/* Fast path: put a value if no receiver waits and there is room in the ring. */
static inline bool put_in_short(struct blitz_chan *c, const void *value)
{
    struct bz_values *v = &c->values;
    if (!bz_list_is_empty(&c->receivers) || v->ring == NULL || c->is_closed ||
        v->count + c->permits >= c->capacity)
        return false;
    bz_value_copy(bz_values_at(v, bz_values_wrap(v, v->head + v->count)), value, v->size);
    v->count++;
    bz_chan_has_news(c);
    return true;
}

/* Fast path: take a value if there is one in the ring and no sender waits for its slot. */
static inline bool take_in_short(struct blitz_chan *c, void *value)
{
    struct bz_values *v = &c->values;
    if (v->count == 0 || v->ring == NULL || !bz_list_is_empty(&c->senders) || c->is_closed)
        return false;
    bz_value_copy(value, bz_values_at(v, v->head), v->size);
    v->head = bz_values_wrap(v, v->head + 1);
    v->count--;
    bz_chan_has_room(c);
    return true;
}

/* Fast path: take the value of a blocking sender that waits at a rendezvous. */
static inline bool take_over(struct blitz_chan *c, void *value, struct bz_wake *wake)
{
    struct bz_waiter *w = bz_waiter_first(&c->senders);
    if (w == NULL || w->is_polled || c->capacity != 0 || c->is_closed ||
        !bz_list_is_empty(&c->receivers))
        return false;
    if (!bz_waiter_grant(w, 0, wake))
        return false;
    bz_value_copy(value, bz_chan_op_of(w)->value, c->values.size);
    return true;
}

/* Deliver the wake-up of a fast path: nearly always of a task of this runtime. */
static BZ_ALWAYS_INLINE void deliver(struct bz_wake *wake)
{
    if (BZ_UNLIKELY(wake->kind != BZ_WAKE_TASK) ||
        BZ_UNLIKELY(!bz_place_usual(bz_machine_self(), bz_entry_resumed(wake->task))))
        bz_wake_deliver(wake);
}

/* Finish a call whose first try returned rc: allocate and retry, wait, or return rc. */
static BZ_NOINLINE int finish(struct blitz_chan *c, enum bz_chan_kind kind, void *value, int rc,
                              blitz_deadline until)
{
    struct bz_chan_op op;
    op.c = c;
    op.kind = kind;
    op.is_done = false;
    op.value = value;
    if (rc == -ENOBUFS) {
        rc = bz_chan_once(&op);
        bz_look_up(); /* ask.h */
        return rc;
    }
    if (rc != -EAGAIN)
        return rc;
    return kind == BZ_CHAN_RECV ? bz_chan_recv_wait(c, value, until)
                                : bz_chan_send_wait(c, value, until);
}

/* Send on the slow path, out of line so that the fast path keeps its registers. The lock is held. */
static BZ_NOINLINE int send_in_full(struct blitz_chan *c, const void *value, blitz_deadline until)
{
    struct bz_wakelist wakes;
    struct bz_wake wake;
    if (BZ_CHAN_SHORT && hand_over(c, value, &wake)) {
        bz_chan_unlock(c);
        deliver(&wake);
        return 0;
    }
    bz_wakelist_init(&wakes);
    int rc = bz_chan_put(c, value, &wakes);
    bz_chan_done(c, &wakes);
    if (rc != 0)
        return finish(c, BZ_CHAN_SEND, (void *)value, rc, until);
    bz_look_up(); /* ask.h. Do not yield after a direct hand-off: the receiver has waited already */
    return 0;
}

int blitz_chan_send(blitz_chan *c, const void *value, blitz_deadline until)
{
    if (BZ_UNLIKELY(!bz_chan_may(&c->may_send)))
        return bz_chan_send_wait(c, value, until);
    bz_chan_lock(c);
    if (!BZ_CHAN_SHORT || !put_in_short(c, value))
        return send_in_full(c, value, until);
    bz_chan_unlock(c);
    bz_look_up(); /* ask.h */
    return 0;
}

int blitz_chan_try_send(blitz_chan *c, const void *value)
{
    struct bz_chan_op op = {.c = c, .kind = BZ_CHAN_SEND, .value = (void *)value};
    return bz_chan_once(&op);
}

static BZ_NOINLINE int recv_in_full(struct blitz_chan *c, void *value, blitz_deadline until)
{
    struct bz_wakelist wakes;
    struct bz_wake wake;
    if (BZ_CHAN_SHORT && take_over(c, value, &wake)) {
        bz_chan_unlock(c);
        deliver(&wake);
        return 0;
    }
    bz_wakelist_init(&wakes);
    int rc = bz_chan_take(c, value, &wakes);
    bz_chan_done(c, &wakes);
    if (rc != 0)
        return finish(c, BZ_CHAN_RECV, value, rc, until);
    bz_look_up(); /* ask.h */
    return 0;
}

int blitz_chan_recv(blitz_chan *c, void *value, blitz_deadline until)
{
    if (BZ_UNLIKELY(!bz_chan_may(&c->may_recv)))
        return bz_chan_recv_wait(c, value, until);
    bz_chan_lock(c);
    if (!BZ_CHAN_SHORT || !take_in_short(c, value))
        return recv_in_full(c, value, until);
    bz_chan_unlock(c);
    bz_look_up(); /* ask.h */
    return 0;
}

int blitz_chan_try_recv(blitz_chan *c, void *value)
{
    struct bz_chan_op op = {.c = c, .kind = BZ_CHAN_RECV, .value = value};
    return bz_chan_once(&op);
}

/* ---- many ---- */

/* Send as many values as possible without waiting, and add their number to *sent. Return the reason for stopping, or
 * 0 if all are sent or the wake list is full. */
static int put_some(blitz_chan *c, const char *values, size_t count, size_t *sent)
{
    struct bz_wakelist wakes;
    int rc = 0;
    bz_wakelist_init(&wakes);
    bz_chan_lock(c);
    while (*sent < count && !bz_wakelist_is_full(&wakes)) {
        rc = bz_chan_put(c, values + *sent * c->values.size, &wakes);
        if (rc != 0)
            break;
        ++*sent;
    }
    bz_chan_done(c, &wakes);
    return rc;
}

int blitz_chan_send_many(blitz_chan *c, const void *values, size_t count, size_t *sent,
                         blitz_deadline until)
{
    size_t done = 0;
    int rc = 0;
    while (done < count && rc == 0) {
        rc = put_some(c, values, count, &done);
        if (rc == -ENOBUFS)
            rc = bz_chan_grow(c);
        else if (rc == -EAGAIN) {
            rc = blitz_chan_send(c, (const char *)values + done * c->values.size, until);
            done += rc == 0;
        }
    }
    if (sent != NULL)
        *sent = done;
    bz_look_up(); /* ask.h */
    return rc;
}

static int take_some(blitz_chan *c, char *values, size_t max, size_t *received)
{
    struct bz_wakelist wakes;
    int rc = 0;
    bz_wakelist_init(&wakes);
    bz_chan_lock(c);
    while (*received < max && !bz_wakelist_is_full(&wakes)) {
        rc = bz_chan_take(c, values + *received * c->values.size, &wakes);
        if (rc != 0)
            break;
        ++*received;
    }
    bz_chan_done(c, &wakes);
    return rc;
}

int blitz_chan_recv_many(blitz_chan *c, void *values, size_t max, size_t *received,
                         blitz_deadline until)
{
    *received = 0;
    if (max == 0)
        return -EINVAL;
    int rc = take_some(c, values, max, received);
    bz_look_up(); /* ask.h */
    if (*received > 0)
        return 0;
    if (rc == -EAGAIN)
        rc = blitz_chan_recv(c, values, until);
    if (rc == 0) {
        *received = 1;
        (void)!take_some(c, values, max, received);
    }
    return rc;
}

/* ---- permits ---- */

static int granted(blitz_chan *c, int rc, blitz_permit *permit)
{
    permit->chan = rc == 0 ? blitz_chan_ref(c) : NULL;
    return rc;
}

int blitz_chan_reserve(blitz_chan *c, blitz_permit *permit, blitz_deadline until)
{
    struct bz_chan_op op = {.c = c, .kind = BZ_CHAN_RESERVE};
    bz_look_up(); /* ask.h */
    int rc = bz_chan_once(&op);
    return granted(c, rc == -EAGAIN ? bz_chan_wait(&op, until) : rc, permit);
}

int blitz_chan_try_reserve(blitz_chan *c, blitz_permit *permit)
{
    struct bz_chan_op op = {.c = c, .kind = BZ_CHAN_RESERVE};
    return granted(c, bz_chan_once(&op), permit);
}

/* Use up the permit: with a value, or without one (NULL). */
static void spend(blitz_permit *permit, const void *value)
{
    struct blitz_chan *c = permit->chan;
    struct bz_wakelist wakes;
    permit->chan = NULL;
    bz_wakelist_init(&wakes);
    bz_chan_lock(c);
    bool is_shut = c->is_shut;
    if (value == NULL || is_shut) {
        c->permits--;
        bz_chan_has_room(c);
        bz_chan_serve(c, &wakes);
    } else {
        bz_chan_put_held(c, value, &wakes);
    }
    bz_chan_done(c, &wakes);
    if (value != NULL && is_shut && c->drop != NULL)
        c->drop((void *)value,
                c->drop_ctx); /* as a copy would be; the caller does not use the value again */
    blitz_chan_unref(c);
}

void blitz_permit_send(blitz_permit *permit, const void *value)
{
    BZ_CHECK(permit->chan != NULL, "permit %p: it is used already, or was never given",
             (void *)permit);
    spend(permit, value);
}

void blitz_permit_drop(blitz_permit *permit)
{
    if (permit->chan != NULL)
        spend(permit, NULL);
}
