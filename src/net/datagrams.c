/*
 * datagrams.c - several datagrams in one system call, as calls and as futures.
 *
 * They are one operation of the driver. The system needs a header, a vector and a name for each
 * datagram, which is too much for a fiber's stack and for a future: they are allocated for the one
 * call. A future allocates them when it is first polled, because a future that is never polled need
 * not be cancelled. It frees them when the operation has ended; with a completion backend the
 * kernel uses them until then, cancelled or not.
 */
#include <errno.h>

#include "io/sockaddr.h"
#include "net/net_future.h"

struct batch {
    blitz_datagram *datagrams; /* the caller's */
    bool is_read;
    struct bz_msg_of_many header[BLITZ_DATAGRAMS_MAX];
    blitz_piece piece[BLITZ_DATAGRAMS_MAX];
    struct bz_sockname name[BLITZ_DATAGRAMS_MAX];
};

/* Prepare one datagram. Returns 0, -EINVAL. */
static int fill(struct batch *b, size_t i, const blitz_datagram *d)
{
    int bytes = sizeof b->name[i];
    if (d->data == NULL && d->bytes > 0)
        return -EINVAL;
    b->piece[i] = (blitz_piece){d->data, d->bytes};
    b->header[i] =
        (struct bz_msg_of_many){.msg = {.pieces = &b->piece[i], .piece_count = 1}, .bytes = 0};
    if (!b->is_read && d->addr.kind == BLITZ_ADDR_NONE)
        return 0;
    if (!b->is_read)
        bytes = bz_sockaddr_of(&d->addr, &b->name[i]);
    b->header[i].msg.name = &b->name[i];
    b->header[i].msg.name_bytes = (uint32_t)bytes;
    return bytes < 0 ? bytes : 0;
}

static void batch_free(const struct bz_socket *s, struct batch *b)
{
    bz_free(s->file->files->alloc, b, sizeof *b);
}

/* Returns 0 and *out, or a negative errno. */
static int batch_new(struct bz_socket *s, blitz_datagram *d, size_t count, bool is_read,
                     struct batch **out)
{
    int err = 0;
    struct batch *b = bz_alloc(s->file->files->alloc, sizeof *b, _Alignof(struct batch));
    if (b == NULL)
        return -ENOMEM;
    b->datagrams = d;
    b->is_read = is_read;
    for (size_t i = 0; i < count && err == 0; i++)
        err = fill(b, i, &d[i]);
    if (err != 0)
        batch_free(s, b);
    else
        *out = b;
    return err;
}

/* Store the results of `count` datagrams, and free the memory. */
static void batch_end(const struct bz_socket *s, struct batch *b, int64_t n)
{
    for (int64_t i = 0; b->is_read && i < n; i++) {
        b->datagrams[i].bytes = b->header[i].bytes;
        bz_sockaddr_to(&b->name[i], b->header[i].msg.name_bytes, &b->datagrams[i].addr);
    }
    batch_free(s, b);
}

static void batch_op(struct batch *b, struct bz_op *op, size_t count)
{
    op->mmsg.headers = b->header;
    op->mmsg.count = (unsigned)count;
    op->flags = b->is_read ? BZ_MSG_TRUNC : 0;
}

static bool is_wrong(const blitz_udp *u, const blitz_datagram *d, size_t count)
{
    return u == NULL || d == NULL || count == 0 || count > BLITZ_DATAGRAMS_MAX;
}

/* ---- blocking calls ---- */

static int run(blitz_udp *u, blitz_datagram *d, size_t count, bool is_read, blitz_deadline until)
{
    struct batch *b;
    struct bz_op op;
    int err = is_wrong(u, d, count) ? -EINVAL : batch_new(&u->s, d, count, is_read, &b);
    if (err != 0)
        return err;
    bz_socket_op(&u->s, &op, is_read ? BZ_OP_RECVMMSG : BZ_OP_SENDMMSG);
    batch_op(b, &op, count);
    int64_t n = bz_io_run(&op, is_read ? "udp receive" : "udp send", until);
    batch_end(&u->s, b, n);
    return (int)n;
}

int blitz_udp_recv_many(blitz_udp *u, blitz_datagram *d, size_t count, blitz_deadline until)
{
    return run(u, d, count, true, until);
}

int blitz_udp_send_many(blitz_udp *u, const blitz_datagram *d, size_t count, blitz_deadline until)
{
    return run(u, (blitz_datagram *)d, count, false, until); /* a send only reads them */
}

/* ---- as futures ---- */

static void many_init(blitz_net_future *out, blitz_udp *u, blitz_datagram *d, size_t count,
                      bool is_read)
{
    struct bz_net_future *f = bz_net_future_init(out, BZ_CALL_MANY, u != NULL ? &u->s : NULL);
    f->is_read = is_read;
    if (is_wrong(u, d, count)) {
        (void)bz_net_future_over(f, -EINVAL);
        return;
    }
    f->in.many.datagrams = d;
    f->in.many.count = count;
    bz_net_future_class(f);
}

int bz_many_begin(struct bz_net_future *f)
{
    struct batch *b;
    size_t count = f->in.many.count;
    int err = batch_new(f->of, f->in.many.datagrams, count, f->is_read, &b);
    if (err != 0)
        return err;
    bz_net_future_begin(f, f->is_read ? BZ_OP_RECVMMSG : BZ_OP_SENDMMSG);
    batch_op(b, &f->in.io.op, count);
    return 0;
}

void bz_many_end(struct bz_net_future *f, int64_t count)
{
    batch_end(f->of, BZ_CONTAINER_OF(f->in.io.op.mmsg.headers, struct batch, header[0]), count);
}

void blitz_udp_recv_many_future_init(blitz_net_future *f, blitz_udp *u, blitz_datagram *d,
                                     size_t count)
{
    many_init(f, u, d, count, true);
}

void blitz_udp_send_many_future_init(blitz_net_future *f, blitz_udp *u, const blitz_datagram *d,
                                     size_t count)
{
    many_init(f, u, (blitz_datagram *)d, count, false); /* a send only reads them */
}
