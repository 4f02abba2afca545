/*
 * future.c - a channel's operations as values: polled instead of waited for.
 *
 * A poll tries the step under the lock; if it would have to wait, it puts itself into the line with a
 * clone of the waker. It is told to look again when that is worth while (core.c), and tries again in
 * its next poll: what it was told of may be gone by then, so it goes to the head of the line. A
 * cancel takes it off; if it had been told, somebody else is.
 *
 * Wakers are anybody's code: cloned before the lock is taken, dropped and woken after.
 *
 * I1  The op is linked or notified only between a poll that said pending and the next poll or cancel.
 */
#include <assert.h>

#include "chan/chan.h"

static_assert(sizeof(struct bz_chan_op) <= sizeof(((blitz_chan_future *)NULL)->inside),
              "it has room");

static struct bz_chan_op *op_of(blitz_future *future)
{
    return (struct bz_chan_op *)BZ_CONTAINER_OF(future, blitz_chan_future, future)->inside;
}

/* One try under the lock. With a waker: if it has to wait it stands in line when this returns, and
 * has taken the waker; what it had before is left in its place, to be dropped. */
static int poll_once(struct bz_chan_op *op, bool *was_told, blitz_waker *waker)
{
    struct blitz_chan *c = op->c;
    struct bz_wakelist wakes;
    int rc = -EAGAIN;
    bz_wakelist_init(&wakes);
    bz_chan_lock(c);
    bool is_in_line =
        op->waiter.state == BZ_WAITER_QUEUED; /* then it is no use to try: core.c, I3 */
    if (!is_in_line) {
        *was_told |= bz_chan_untell(op);
        rc = op->is_done ? 0 : bz_chan_try(op, &wakes);
    }
    if (rc == -EAGAIN && waker != NULL) {
        *waker = bz_waiter_set_waker(&op->waiter, *waker);
        if (!is_in_line)
            bz_chan_join_line(op, *was_told, &wakes);
    }
    bz_chan_done(c, &wakes);
    return rc;
}

static blitz_poll chan_poll(blitz_future *future, const blitz_waker *waker)
{
    blitz_chan_future *f = BZ_CONTAINER_OF(future, blitz_chan_future, future);
    struct bz_chan_op *op = op_of(future);
    bool was_told = false;
    if (f->result != -EINPROGRESS)
        return BLITZ_READY; /* as before */
    int rc = poll_once(op, &was_told, NULL);
    while (rc == -ENOBUFS)
        rc = (rc = bz_chan_grow(op->c)) != 0 ? rc : poll_once(op, &was_told, NULL);
    if (rc == -EAGAIN) {
        blitz_waker mine = blitz_waker_clone(waker);
        rc = poll_once(op, &was_told, &mine);
        blitz_waker_drop(&mine);
    }
    if (rc == -EAGAIN)
        return BLITZ_PENDING;
    if (rc == 0 && op->kind == BZ_CHAN_RESERVE)
        ((blitz_permit *)op->value)->chan = blitz_chan_ref(op->c);
    f->result = rc;
    return BLITZ_READY;
}

static void chan_cancel(blitz_future *future)
{
    blitz_chan_future *f = BZ_CONTAINER_OF(future, blitz_chan_future, future);
    struct bz_chan_op *op = op_of(future);
    struct blitz_chan *c = op->c;
    struct bz_wakelist wakes;
    if (f->result != -EINPROGRESS)
        return;
    bz_wakelist_init(&wakes);
    bz_chan_lock(c);
    if (bz_chan_untell(op) && !BZ_BROKEN(115))
        bz_chan_settle(c, &wakes); /* another waiter is notified instead */
    bz_waiter_leave(&op->waiter);
    f->result = op->is_done ? 0 : -ECANCELED;
    bz_chan_done(c, &wakes);
    blitz_waker_drop(&op->waiter.waker);
}

static int chan_output(blitz_future *future)
{
    return BZ_CONTAINER_OF(future, blitz_chan_future, future)->result;
}

/* ---- the three of them ---- */

static void chan_init(blitz_chan_future *f, const blitz_future_ops *ops, struct bz_chan_op what)
{
    struct bz_chan_op *op = op_of(&f->future);
    f->future.ops = ops;
    f->result = -EINPROGRESS;
    *op = what;
    bz_waiter_init_polled(&op->waiter);
}

void blitz_chan_send_future_init(blitz_chan_future *f, blitz_chan *c, const void *value)
{
    static const blitz_future_ops ops = {"send", BLITZ_REVOCABLE, chan_poll, chan_cancel,
                                         chan_output};
    chan_init(f, &ops, (struct bz_chan_op){.c = c, .kind = BZ_CHAN_SEND, .value = (void *)value});
}

void blitz_chan_recv_future_init(blitz_chan_future *f, blitz_chan *c, void *value)
{
    static const blitz_future_ops ops = {"receive", BLITZ_REVOCABLE, chan_poll, chan_cancel,
                                         chan_output};
    chan_init(f, &ops, (struct bz_chan_op){.c = c, .kind = BZ_CHAN_RECV, .value = value});
}

void blitz_chan_reserve_future_init(blitz_chan_future *f, blitz_chan *c, blitz_permit *permit)
{
    static const blitz_future_ops ops = {"reserve", BLITZ_REVOCABLE, chan_poll, chan_cancel,
                                         chan_output};
    permit->chan = NULL;
    chan_init(f, &ops, (struct bz_chan_op){.c = c, .kind = BZ_CHAN_RESERVE, .value = permit});
}
