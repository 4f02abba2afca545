/*
 * calls.c - what is called on a channel by those who have a stack: send, receive, permits.
 *
 * Each tries its step first, and waits only if that would not do. Many at a time take the lock once
 * for as many steps as go without waiting and as can be owed.
 *
 * I1  Between two tries of one call nothing is held but what the call was told of: an error says how
 *     much was done, and nothing else happened.
 */
#include "chan/chan.h"

static int finish(struct bz_chan_op *op, int rc, const char *what, blitz_deadline until)
{
    if (rc == -ENOBUFS && (rc = bz_chan_grow(op->c)) == 0)
        rc = bz_chan_once(op);
    return rc == -EAGAIN ? bz_chan_wait(op, what, until) : rc;
}

int blitz_chan_send(blitz_chan *c, const void *value, blitz_deadline until)
{
    struct bz_owed owed;
    bz_owed_init(&owed);
    bz_chan_lock(c);
    int rc = bz_chan_put(c, value, &owed);
    bz_chan_done(c, &owed);
    if (BZ_LIKELY(rc == 0))
        return 0;
    struct bz_chan_op op = {.c = c, .kind = BZ_CHAN_SEND, .value = (void *)value};
    return finish(&op, rc, "send", until);
}

int blitz_chan_try_send(blitz_chan *c, const void *value)
{
    struct bz_chan_op op = {.c = c, .kind = BZ_CHAN_SEND, .value = (void *)value};
    return bz_chan_once(&op);
}

int blitz_chan_recv(blitz_chan *c, void *value, blitz_deadline until)
{
    struct bz_owed owed;
    bz_owed_init(&owed);
    bz_chan_lock(c);
    int rc = bz_chan_take(c, value, &owed);
    bz_chan_done(c, &owed);
    if (BZ_LIKELY(rc == 0))
        return 0;
    struct bz_chan_op op = {.c = c, .kind = BZ_CHAN_RECV, .value = value};
    return finish(&op, rc, "receive", until);
}

int blitz_chan_try_recv(blitz_chan *c, void *value)
{
    struct bz_chan_op op = {.c = c, .kind = BZ_CHAN_RECV, .value = value};
    return bz_chan_once(&op);
}

/* ---- many ---- */

/* As many as go without waiting. Adds to *sent; says why it stopped, 0: all are sent. */
static int put_some(blitz_chan *c, const char *values, size_t count, size_t *sent)
{
    struct bz_owed owed;
    int rc = 0;
    bz_owed_init(&owed);
    bz_chan_lock(c);
    while (*sent < count && !bz_owed_is_full(&owed)) {
        rc = bz_chan_put(c, values + *sent * c->values.size, &owed);
        if (rc != 0)
            break;
        ++*sent;
    }
    bz_chan_done(c, &owed);
    return rc;
}

int blitz_chan_send_many(blitz_chan *c, const void *values, size_t count, blitz_deadline until,
                         size_t *sent)
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
    return rc;
}

static int take_some(blitz_chan *c, char *values, size_t max, size_t *received)
{
    struct bz_owed owed;
    int rc = 0;
    bz_owed_init(&owed);
    bz_chan_lock(c);
    while (*received < max && !bz_owed_is_full(&owed)) {
        rc = bz_chan_take(c, values + *received * c->values.size, &owed);
        if (rc != 0)
            break;
        ++*received;
    }
    bz_chan_done(c, &owed);
    return rc;
}

int blitz_chan_recv_many(blitz_chan *c, void *values, size_t max, blitz_deadline until,
                         size_t *received)
{
    *received = 0;
    if (max == 0)
        return -EINVAL;
    int rc = take_some(c, values, max, received);
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

int blitz_chan_reserve(blitz_chan *c, blitz_deadline until, blitz_permit *permit)
{
    struct bz_chan_op op = {.c = c, .kind = BZ_CHAN_RESERVE};
    int rc = bz_chan_once(&op);
    return granted(c, rc == -EAGAIN ? bz_chan_wait(&op, "reserve", until) : rc, permit);
}

int blitz_chan_try_reserve(blitz_chan *c, blitz_permit *permit)
{
    struct bz_chan_op op = {.c = c, .kind = BZ_CHAN_RESERVE};
    return granted(c, bz_chan_once(&op), permit);
}

/* The permit is used up: with a value, or without (NULL). */
static void spend(blitz_permit *permit, const void *value)
{
    struct blitz_chan *c = permit->chan;
    struct bz_owed owed;
    permit->chan = NULL;
    bz_owed_init(&owed);
    bz_chan_lock(c);
    bool is_shut = c->is_shut;
    if (value == NULL || is_shut) {
        c->permits--;
        bz_chan_settle(c, &owed);
    } else {
        bz_chan_put_held(c, value, &owed);
    }
    bz_chan_done(c, &owed);
    if (value != NULL && is_shut && c->drop != NULL)
        c->drop((void *)value,
                c->drop_ctx); /* a copy would be dropped; this one is not used again */
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
