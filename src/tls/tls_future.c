/*
 * tls_future.c - the operations on a connection as futures: the driver without a stack.
 *
 * A future has the operation (op.c) and, while the operation needs something, a child that waits
 * for it: a permit, a notification, a read or write of the connection below. A stream that is not
 * a connection has no futures. For it a fiber makes the call, and the child is a linked join: a
 * cancel is passed on to the fiber, and its outcome counts.
 *
 * The class is pinned, because a child may be. After a cancel, a child that is not pinned has done
 * nothing, and counts as -ECANCELED; a pinned one is polled until it is complete. From then on every
 * need of the operation is answered with -ECANCELED.
 */
#include <assert.h>
#include <errno.h>
#include <limits.h>

#include "blitz/futures.h"
#include "blitz/task.h"
#include "blitz/tcp.h"
#include "tls/tls.h"

/* A call on a stream, made by a fiber. */
struct lent {
    blitz_join_future join;
    struct bz_tls_op *op;
    int64_t got;
};

struct tls_future {
    blitz_future future;
    int64_t result;
    size_t done;
    struct bz_tls_op op;
    int64_t got;         /* the outcome of the last need */
    blitz_future *child; /* NULL: none is waiting */
    bool is_stopping;    /* cancelled */
    bool is_ready;
    union {
        blitz_sync_future sync;
        blitz_net_future net;
        struct lent lent;
    } in;
};

static_assert(sizeof(struct tls_future) <= sizeof(blitz_tls_future), "it has room");
static_assert(offsetof(struct tls_future, done) == offsetof(blitz_tls_future, done), "the same");

/* ---- children ---- */

static int lent_call(void *arg)
{
    struct lent *l = arg;
    blitz_stream over = l->op->tls->over;
    if (l->op->need == BZ_TLS_INPUT)
        l->got = blitz_reader_read(over.in, l->op->data, l->op->bytes, BLITZ_FOREVER);
    else
        l->got = blitz_writer_write(over.out, l->op->data, l->op->bytes, BLITZ_FOREVER);
    return 0;
}

static void begin_lent(struct tls_future *f)
{
    blitz_task *fiber;
    f->in.lent.op = &f->op;
    int err = blitz_spawn(lent_call, &f->in.lent, NULL, &fiber);
    if (err != 0) {
        f->got = err;
        return;
    }
    blitz_task_join_linked_future_init(&f->in.lent.join, fiber);
    f->child = &f->in.lent.join.future;
}

static bool is_tcp(blitz_stream over)
{
    return over.in.ops == blitz_tcp_reader(over.in.ctx).ops &&
           over.out.ops == blitz_tcp_writer(over.out.ctx).ops;
}

static void begin_bytes(struct tls_future *f)
{
    blitz_stream over = f->op.tls->over;
    if (!is_tcp(over)) {
        begin_lent(f);
        return;
    }
    if (f->op.need == BZ_TLS_INPUT)
        blitz_tcp_read_future_init(&f->in.net, over.in.ctx, f->op.data, f->op.bytes);
    else
        blitz_tcp_write_future_init(&f->in.net, over.out.ctx, f->op.data, f->op.bytes);
    f->child = &f->in.net.future;
}

static void begin_turn(struct tls_future *f, blitz_semaphore *s)
{
    f->got = blitz_semaphore_try_acquire(s, 1);
    if (f->got == 0)
        return;
    blitz_semaphore_acquire_future_init(&f->in.sync, s, 1);
    f->child = &f->in.sync.future;
}

/* Make the child that waits for the current need; or have its outcome at once. */
static void begin(struct tls_future *f)
{
    blitz_tls *tls = f->op.tls;
    if (f->is_stopping) {
        f->got = -ECANCELED;
    } else if (f->op.need == BZ_TLS_READ_TURN) {
        begin_turn(f, &tls->reading);
    } else if (f->op.need == BZ_TLS_WRITE_TURN) {
        begin_turn(f, &tls->writing);
    } else if (f->op.need == BZ_TLS_PROGRESS) {
        blitz_notify_wait_future_init(&f->in.sync, &tls->progress);
        f->child = &f->in.sync.future;
    } else {
        begin_bytes(f);
    }
}

/* The outcome of a child that is ready. */
static int64_t outcome(const struct tls_future *f)
{
    if (f->child == &f->in.net.future && f->op.need >= BZ_TLS_INPUT && is_tcp(f->op.tls->over))
        return f->in.net.result;
    if (f->op.need >= BZ_TLS_INPUT)
        return f->in.lent.join.result != 0 ? f->in.lent.join.result : f->in.lent.got;
    return f->in.sync.result;
}

/* ---- the future ---- */

static blitz_poll tls_poll(blitz_future *future, const blitz_waker *waker)
{
    struct tls_future *f = (struct tls_future *)future;
    for (;;) {
        if (f->is_ready)
            return BLITZ_READY;
        if (f->child != NULL) {
            if (f->child->ops->poll(f->child, waker) == BLITZ_PENDING)
                return BLITZ_PENDING;
            f->got = outcome(f);
            f->child = NULL;
        }
        if (bz_tls_op_step(&f->op, f->got) == BZ_TLS_NOTHING) {
            f->result = f->op.result;
            f->done = f->op.done;
            f->is_ready = true;
        } else {
            begin(f);
        }
    }
}

static void tls_cancel(blitz_future *future)
{
    struct tls_future *f = (struct tls_future *)future;
    f->is_stopping = true;
    if (f->child == NULL)
        return;
    f->child->ops->cancel(f->child);
    if (f->child->ops->kind != BLITZ_PINNED) {
        f->child = NULL;
        f->got = -ECANCELED;
    }
}

static int tls_output(blitz_future *future)
{
    const struct tls_future *f = (struct tls_future *)future;
    return f->result > INT_MAX ? INT_MAX : (int)f->result;
}

static const blitz_future_ops ops = {"tls", BLITZ_PINNED, tls_poll, tls_cancel, tls_output};

static void init(blitz_tls_future *out, enum bz_tls_kind kind, blitz_tls *tls, void *data,
                 size_t bytes)
{
    struct tls_future *f = (struct tls_future *)out;
    *f = (struct tls_future){.future = {&ops}, .is_ready = tls == NULL, .result = -EINVAL};
    bz_tls_op_init(&f->op, kind, tls, data, bytes);
}

void blitz_tls_handshake_future_init(blitz_tls_future *f, blitz_tls *tls)
{
    init(f, BZ_TLS_HANDSHAKE, tls, NULL, 0);
}

void blitz_tls_read_future_init(blitz_tls_future *f, blitz_tls *tls, void *data, size_t bytes)
{
    init(f, BZ_TLS_READ, tls, data, bytes);
}

void blitz_tls_read_exact_future_init(blitz_tls_future *f, blitz_tls *tls, void *data, size_t bytes)
{
    init(f, BZ_TLS_READ_EXACT, tls, data, bytes);
}

void blitz_tls_write_future_init(blitz_tls_future *f, blitz_tls *tls, const void *data,
                                 size_t bytes)
{
    init(f, BZ_TLS_WRITE, tls, (void *)data, bytes);
}

void blitz_tls_write_all_future_init(blitz_tls_future *f, blitz_tls *tls, const void *data,
                                     size_t bytes)
{
    init(f, BZ_TLS_WRITE_ALL, tls, (void *)data, bytes);
}

void blitz_tls_flush_future_init(blitz_tls_future *f, blitz_tls *tls)
{
    init(f, BZ_TLS_FLUSH, tls, NULL, 0);
}

void blitz_tls_end_future_init(blitz_tls_future *f, blitz_tls *tls)
{
    init(f, BZ_TLS_END, tls, NULL, 0);
}
