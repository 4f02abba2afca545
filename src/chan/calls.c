/*
 * calls.c - the blocking calls of a channel: send, receive, permits.
 *
 * Each call tries its step first, and waits only if the step would have to wait. The calls for many values take the
 * lock once for as many steps as need no waiting and as fit into the wake list.
 *
 * A function that makes calls only as its last step needs no frame and saves no registers. So blitz_chan_send and
 * blitz_chan_recv do the common step without a call, and leave everything else to a function that they end with:
 * a lock that is held, a value of an unusual size, a party that waits. (Values of 8 bytes, a stream of 128 slots: 135
 * instructions a value instead of 159.)
 *
 * I1  Between two tries of one call nothing is held but what the call was told of: an error says how
 *     much was done, and nothing else happened.
 */
#include "chan/chan.h"
#include "chan/short.h"
#include "park/grant.h"

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

/* The last step of a fast path: let other tasks run. */
static BZ_NOINLINE int look_up_last(void)
{
    bz_look_up(); /* ask.h */
    return 0;
}

/* End a fast path: drop the lock. */
static BZ_ALWAYS_INLINE int end_short(struct blitz_chan *c)
{
    bz_chan_unlock(c);
    return bz_must_look_up() ? look_up_last() : 0;
}

/* Send on the slow path. The lock is held. */
static BZ_NOINLINE int send_in_full(struct blitz_chan *c, const void *value, blitz_deadline until)
{
    struct bz_wakelist wakes;
    struct bz_wake wake;
    if (bz_chan_put_short(c, value))
        return end_short(c);
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

/* Send after the lock was found held. */
static BZ_NOINLINE int send_late(struct blitz_chan *c, const void *value, blitz_deadline until)
{
    bz_chan_lock_take_late(&c->lock, c->os);
    return send_in_full(c, value, until);
}

/* Send while a receiver waits: hand the value to it. The lock is held. */
static BZ_NOINLINE int send_to_first(struct blitz_chan *c, const void *value, blitz_deadline until)
{
    struct bz_waiter *w = bz_waiter_of(c->receivers.next);
    struct bz_machine *m = bz_machine_self();
    struct bz_task *t;
    if (!BZ_CHAN_SHORT || c->values.count != 0 || c->is_slow || (t = bz_grant_begin(m, w)) == NULL)
        return send_in_full(c, value, until);
    bz_value_copy_small(bz_chan_op_of(w)->value, value, c->values.size);
    bz_chan_unlock(c);
    return bz_grant_end(m, t); /* no yield: the receiver has waited already */
}

int blitz_chan_send(blitz_chan *c, const void *value, blitz_deadline until)
{
    if (BZ_UNLIKELY(!bz_chan_may(&c->may_send)))
        return bz_chan_send_wait(c, value, until);
    if (BZ_UNLIKELY(!bz_chan_lock_try(&c->lock, c->os)))
        return send_late(c, value, until);
    if (!bz_list_is_empty(&c->receivers))
        return send_to_first(c, value, until);
    return bz_chan_put_small(c, value) ? end_short(c) : send_in_full(c, value, until);
}

int blitz_chan_try_send(blitz_chan *c, const void *value)
{
    bz_chan_lock(c);
    if (bz_chan_put_short(c, value)) {
        bz_chan_unlock(c);
        return 0;
    }
    struct bz_chan_op op = {.c = c, .kind = BZ_CHAN_SEND, .value = (void *)value};
    return bz_chan_once_locked(&op);
}

static BZ_NOINLINE int recv_in_full(struct blitz_chan *c, void *value, blitz_deadline until)
{
    struct bz_wakelist wakes;
    struct bz_wake wake;
    if (bz_chan_take_short(c, value))
        return end_short(c);
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

static BZ_NOINLINE int recv_late(struct blitz_chan *c, void *value, blitz_deadline until)
{
    bz_chan_lock_take_late(&c->lock, c->os);
    return recv_in_full(c, value, until);
}

/* Receive at a rendezvous where a sender waits: take its value. The lock is held. */
static BZ_NOINLINE int recv_from_first(struct blitz_chan *c, void *value, blitz_deadline until)
{
    struct bz_waiter *w = bz_waiter_of(c->senders.next);
    struct bz_machine *m = bz_machine_self();
    struct bz_task *t;
    if (!BZ_CHAN_SHORT || c->is_slow || !bz_list_is_empty(&c->receivers) ||
        (t = bz_grant_begin(m, w)) == NULL)
        return recv_in_full(c, value, until);
    bz_value_copy_small(value, bz_chan_op_of(w)->value, c->values.size);
    bz_chan_unlock(c);
    return bz_grant_end(m, t);
}

int blitz_chan_recv(blitz_chan *c, void *value, blitz_deadline until)
{
    if (BZ_UNLIKELY(!bz_chan_may(&c->may_recv)))
        return bz_chan_recv_wait(c, value, until);
    if (BZ_UNLIKELY(!bz_chan_lock_try(&c->lock, c->os)))
        return recv_late(c, value, until);
    if (bz_chan_take_small(c, value))
        return end_short(c);
    if (c->capacity == 0 && !bz_list_is_empty(&c->senders))
        return recv_from_first(c, value, until);
    return recv_in_full(c, value, until);
}

int blitz_chan_try_recv(blitz_chan *c, void *value)
{
    bz_chan_lock(c);
    if (bz_chan_take_short(c, value)) {
        bz_chan_unlock(c);
        return 0;
    }
    struct bz_chan_op op = {.c = c, .kind = BZ_CHAN_RECV, .value = value};
    return bz_chan_once_locked(&op);
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
            rc = bz_chan_grow(c, 1);
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
    struct bz_chan_op op = {.c = c, .kind = BZ_CHAN_RESERVE, .wanted = 1};
    bz_look_up(); /* ask.h */
    int rc = bz_chan_once(&op);
    return granted(c, rc == -EAGAIN ? bz_chan_wait(&op, until) : rc, permit);
}

int blitz_chan_try_reserve(blitz_chan *c, blitz_permit *permit)
{
    struct bz_chan_op op = {.c = c, .kind = BZ_CHAN_RESERVE, .wanted = 1};
    return granted(c, bz_chan_once(&op), permit);
}

/* Use up slots of permits: one, with a value, or n without one (NULL). */
static void spend(struct blitz_chan *c, size_t n, const void *value)
{
    struct bz_wakelist wakes;
    bz_wakelist_init(&wakes);
    bz_chan_lock(c);
    bool is_shut = c->is_shut;
    if (value == NULL || is_shut) {
        c->permits -= n;
        bz_chan_has_room(c);
        bz_chan_serve(c, &wakes);
    } else {
        bz_chan_put_held(c, value, &wakes);
    }
    bz_chan_done(c, &wakes);
    if (value != NULL && is_shut && c->drop != NULL)
        c->drop((void *)value,
                c->drop_ctx); /* as a copy would be; the caller does not use the value again */
}

static void spend_permit(blitz_permit *permit, const void *value)
{
    struct blitz_chan *c = permit->chan;
    permit->chan = NULL;
    spend(c, 1, value);
    blitz_chan_unref(c);
}

void blitz_permit_send(blitz_permit *permit, const void *value)
{
    BZ_CHECK(permit->chan != NULL, "permit %p: it is used already, or was never given",
             (void *)permit);
    spend_permit(permit, value);
}

void blitz_permit_drop(blitz_permit *permit)
{
    if (permit->chan != NULL)
        spend_permit(permit, NULL);
}

/* ---- several slots ---- */

int bz_chan_may_reserve(const struct blitz_chan *c, size_t n)
{
    if (c->capacity == 0)
        return -EOPNOTSUPP;
    return n == 0 || n > c->capacity || n > PTRDIFF_MAX / 2 / c->values.size ? -EINVAL : 0;
}

static int reserve_many(blitz_chan *c, size_t n, blitz_permits *permits, bool waits,
                        blitz_deadline until)
{
    int rc = bz_chan_may_reserve(c, n);
    struct bz_chan_op op = {
        .c = c, .kind = BZ_CHAN_RESERVE, .is_many = true, .value = permits, .wanted = n};
    *permits = (blitz_permits){.chan = NULL, .left = n};
    if (rc == 0)
        rc = bz_chan_once(&op);
    if (rc == -EAGAIN && waits)
        rc = bz_chan_wait(&op, until);
    if (rc == 0)
        permits->chan = blitz_chan_ref(c);
    else
        permits->left = 0;
    return rc;
}

int blitz_chan_reserve_many(blitz_chan *c, size_t n, blitz_permits *permits, blitz_deadline until)
{
    bz_look_up(); /* ask.h */
    return reserve_many(c, n, permits, true, until);
}

int blitz_chan_try_reserve_many(blitz_chan *c, size_t n, blitz_permits *permits)
{
    return reserve_many(c, n, permits, false, 0);
}

/* The last slot is used: release the channel. */
static void permits_end(blitz_permits *permits)
{
    struct blitz_chan *c = permits->chan;
    permits->chan = NULL;
    blitz_chan_unref(c);
}

void blitz_permits_send(blitz_permits *permits, const void *value)
{
    BZ_CHECK(permits->left != 0, "permits %p: all are used already, or were never given",
             (void *)permits);
    permits->left--;
    spend(permits->chan, 1, value);
    if (permits->left == 0)
        permits_end(permits);
}

size_t blitz_permits_left(const blitz_permits *permits)
{
    return permits->left;
}

void blitz_permits_drop(blitz_permits *permits)
{
    size_t left = permits->left;
    permits->left = 0;
    if (left == 0)
        return;
    spend(permits->chan, left, NULL);
    permits_end(permits);
}
