/*
 * chan_future.c - a channel's operations as futures.
 *
 * The operation is the request of chan_request.c, driven by polls (park/request.h). Only allocation is different: an
 * unbounded channel that needs a block allocates it between two polls of the request, without the lock.
 */
#include <assert.h>

#include "chan/chan.h"

static_assert(sizeof(struct bz_chan_op) <= sizeof(((blitz_chan_future *)NULL)->inside),
              "it has room");

static struct bz_chan_op *op_of(blitz_future *future)
{
    return (struct bz_chan_op *)BZ_CONTAINER_OF(future, blitz_chan_future, future)->inside;
}

/* A reserve has ended: fill the permit or the permits. */
static void reserved(struct bz_chan_op *op, int rc)
{
    struct blitz_chan *c = rc == 0 ? blitz_chan_ref(op->c) : NULL;
    if (!op->is_many) {
        ((blitz_permit *)op->value)->chan = c;
        return;
    }
    blitz_permits *permits = op->value;
    permits->chan = c;
    if (rc != 0)
        permits->left = 0;
}

static blitz_poll chan_poll(blitz_future *future, const blitz_waker *waker)
{
    blitz_chan_future *f = BZ_CONTAINER_OF(future, blitz_chan_future, future);
    struct bz_chan_op *op = op_of(future);
    int rc = -ENOBUFS;
    if (f->result != -EINPROGRESS)
        return BLITZ_READY; /* it was ready before */
    while (rc == -ENOBUFS) {
        if (!bz_request_poll(&op->request, waker))
            return BLITZ_PENDING;
        rc = bz_get(&op->request.waiter.result);
        /* not under the lock: it allocates */
        int err = rc == -ENOBUFS ? bz_chan_grow(op->c, bz_chan_slots_of(op)) : 0;
        if (err != 0)
            rc = err;
    }
    if (op->kind == BZ_CHAN_RESERVE)
        reserved(op, rc);
    f->result = rc;
    return BLITZ_READY;
}

static void chan_cancel(blitz_future *future)
{
    blitz_chan_future *f = BZ_CONTAINER_OF(future, blitz_chan_future, future);
    struct bz_chan_op *op = op_of(future);
    if (f->result != -EINPROGRESS)
        return;
    f->result = bz_request_cancel(&op->request) ? -ECANCELED : 0;
    if (op->kind == BZ_CHAN_RESERVE)
        reserved(op, f->result);
}

static int chan_output(blitz_future *future)
{
    return BZ_CONTAINER_OF(future, blitz_chan_future, future)->result;
}

/* ---- send, receive, reserve ---- */

static void chan_init(blitz_chan_future *f, const blitz_future_ops *ops, struct bz_chan_op what)
{
    struct bz_chan_op *op = op_of(&f->future);
    f->future.ops = ops;
    f->result = -EINPROGRESS;
    *op = what;
    bz_waiter_init_polled(&op->request.waiter);
    op->request.ops = &bz_chan_requests[what.kind];
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
    chan_init(f, &ops,
              (struct bz_chan_op){.c = c, .kind = BZ_CHAN_RESERVE, .value = permit, .wanted = 1});
}

void blitz_chan_reserve_many_future_init(blitz_chan_future *f, blitz_chan *c, size_t n,
                                         blitz_permits *permits)
{
    static const blitz_future_ops ops = {"reserve", BLITZ_REVOCABLE, chan_poll, chan_cancel,
                                         chan_output};
    int rc = bz_chan_may_reserve(c, n);
    *permits = (blitz_permits){.chan = NULL, .left = rc == 0 ? n : 0};
    chan_init(f, &ops,
              (struct bz_chan_op){
                  .c = c, .kind = BZ_CHAN_RESERVE, .is_many = true, .value = permits, .wanted = n});
    if (rc != 0)
        f->result = rc; /* ready at once */
}
