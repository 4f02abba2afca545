/*
 * future.c - the calls of a stream as futures.
 *
 * A call is an operation of the driver inside a future of ours, which looks at how it went and
 * begins the next one if there is more to do: more bytes, another connection, a nap first. So there
 * is one loop (net_poll), a `step` for each kind of call, and nothing is allocated.
 *
 * The class is that of the keeper's own operation. Where that is pinned, a cancel asks it to stop and
 * the future is polled on: what it brings then counts (`result`, `done`), but nothing new is begun.
 *
 * A connection that was accepted or made belongs to whoever awaits the future, from the moment it is
 * ready. Before that a cancel leaves nothing open: an accept has taken nothing, a connect is closed.
 */
#include <assert.h>
#include <errno.h>
#include <limits.h>

#include "blitz/fd.h"
#include "blitz/futures.h"
#include "blitz/tcp.h"
#include "blitz/udp.h"
#include "net/net.h"

enum net_call { PLAIN, EXACT, ALL, WAIT, ACCEPT, CONNECT, FD };

struct net_future {
    blitz_future future;
    int64_t result;
    size_t done;
    struct bz_socket *made;
    union {
        struct bz_socket *of; /* the handle, or what is being connected */
        const blitz_addr *to; /* CONNECT, until it is begun */
        int fd;               /* FD */
    };
    uint32_t nap_us; /* the last one */
    uint8_t call;    /* enum net_call */
    bool is_begun;   /* there is something to wait for: `in`. CONNECT and FD begin when polled */
    bool is_ready;
    uint8_t is_napping : 1;  /* `in.nap` is what is waited for */
    uint8_t is_stopping : 1; /* cancelled, and pinned */
    uint8_t is_copy : 1;     /* FD: by a descriptor of our own */
    uint8_t is_read : 1;     /* FD: which event */
    union {
        struct bz_io_future io;
        blitz_sleep_future nap;
    } in;
};

static_assert(sizeof(struct net_future) <= sizeof(blitz_net_future), "it has room");
static_assert(offsetof(struct net_future, done) == offsetof(blitz_net_future, done), "the same");
static_assert(offsetof(struct net_future, made) == offsetof(blitz_net_future, tcp), "the same");

static struct net_future *own(blitz_future *f)
{
    return BZ_CONTAINER_OF(f, struct net_future, future);
}

/* ---- what comes next: true if the future is ready ---- */

static bool is_over(struct net_future *f, int64_t result)
{
    f->result = result;
    f->is_ready = true;
    return true;
}

static void begin(struct net_future *f, enum bz_op_code code)
{
    bz_io_future_init(&f->in.io, f->of->file, code);
    f->in.io.op.generation = f->of->generation;
    f->is_napping = false;
    f->is_begun = true;
}

static void nap(struct net_future *f)
{
    uint64_t ns = bz_accept_nap_ns(f->nap_us * BLITZ_US);
    f->nap_us = (uint32_t)(ns / BLITZ_US);
    blitz_sleep_future_init(&f->in.nap, blitz_after(ns));
    f->is_napping = true;
    f->is_begun = true;
}

/* More of the same bytes. */
static bool step_bytes(struct net_future *f, int64_t n)
{
    struct bz_op *op = &f->in.io.op;
    if (n <= 0)
        return is_over(f, n == 0 ? -ENODATA : n);
    char *data = (char *)op->buffer.data + n;
    size_t left = op->buffer.bytes - (size_t)n;
    f->done += (size_t)n;
    if (left == 0)
        return is_over(f, 0);
    if (f->is_stopping)
        return is_over(f, -ECANCELED);
    begin(f, f->call == EXACT ? BZ_OP_RECV : BZ_OP_SEND);
    op->buffer.data = data;
    op->buffer.bytes = left;
    return false;
}

static void begin_accept(struct net_future *f)
{
    begin(f, BZ_OP_ACCEPT);
    f->in.io.op.name.address = NULL;
}

static bool step_accept(struct net_future *f, int64_t fd)
{
    if (fd >= 0)
        return is_over(f, bz_socket_take((int)fd, BZ_FILE_STREAM, &f->made));
    enum bz_accept_step next = f->is_stopping ? BZ_ACCEPT_FAILS : bz_accept_after(fd);
    if (next == BZ_ACCEPT_FAILS)
        return is_over(f, fd);
    if (next == BZ_ACCEPT_NAPS)
        nap(f);
    else
        begin_accept(f);
    return false;
}

/* Not begun yet, or a nap is over. */
static bool step_connect_begin(struct net_future *f)
{
    struct bz_socket *s = NULL;
    int err = bz_connect_begin(f->to, &s);
    if (err == -EAGAIN) {
        nap(f);
        return false;
    }
    if (err == -EINPROGRESS) {
        f->of = s;
        begin(f, BZ_OP_POLL);
        bz_sock_poll(&f->in.io.op, false, true, false);
        return false;
    }
    f->made = s;
    return is_over(f, err);
}

static bool step_connect(struct net_future *f, int64_t events)
{
    int err = events < 0 ? (int)events : bz_connect_end(f->of);
    if (err == 0)
        f->made = f->of;
    else
        bz_socket_close(f->of);
    return is_over(f, err);
}

static bool step_fd_begin(struct net_future *f)
{
    struct bz_file *file;
    int err = bz_fd_open(f->fd, f->is_copy, &file);
    if (err != 0)
        return is_over(f, err);
    bz_io_future_init(&f->in.io, file, BZ_OP_POLL);
    bz_sock_poll(&f->in.io.op, f->is_read, !f->is_read, false);
    f->is_begun = true;
    return false;
}

static bool step_fd(struct net_future *f, int64_t result)
{
    bz_fd_close(f->in.io.op.file, f->is_copy);
    if (result == -EEXIST && !f->is_copy && !f->is_stopping) {
        f->is_copy = 1;
        return step_fd_begin(f);
    }
    return is_over(f, bz_fd_events(result));
}

static bool step_after_nap(struct net_future *f)
{
    if (f->call == CONNECT)
        return step_connect_begin(f);
    begin_accept(f);
    return false;
}

static bool step(struct net_future *f)
{
    if (f->is_napping)
        return step_after_nap(f);
    int64_t result = bz_io_future_result(&f->in.io);
    switch ((enum net_call)f->call) {
    case EXACT:
    case ALL:
        return step_bytes(f, result);
    case ACCEPT:
        return step_accept(f, result);
    case CONNECT:
        return step_connect(f, result);
    case FD:
        return step_fd(f, result);
    case WAIT:
        return is_over(f, result > 0 ? 0 : result);
    default:
        return is_over(f, result);
    }
}

/* ---- the future ---- */

static blitz_future *waited_for(struct net_future *f)
{
    return f->is_napping ? &f->in.nap.future : &f->in.io.future;
}

static blitz_poll net_poll(blitz_future *future, const blitz_waker *waker)
{
    struct net_future *f = own(future);
    if (!f->is_ready && !f->is_begun)
        (void)(f->call == FD ? step_fd_begin(f) : step_connect_begin(f));
    while (!f->is_ready) {
        blitz_future *in = waited_for(f);
        if (in->ops->poll(in, waker) == BLITZ_PENDING)
            return BLITZ_PENDING;
        (void)step(f);
    }
    return BLITZ_READY;
}

static void net_cancel(blitz_future *future)
{
    struct net_future *f = own(future);
    if (f->is_ready)
        return;
    f->result = -ECANCELED;
    f->is_stopping = true;
    f->is_ready = !f->is_begun;
    if (!f->is_begun)
        return;
    blitz_future *in = waited_for(f);
    in->ops->cancel(in);
    f->is_ready = in->ops->kind == BLITZ_REVOCABLE;
    if (f->is_ready && f->call == CONNECT && !f->is_napping)
        bz_socket_close(f->of);
    else if (f->is_ready && f->call == FD)
        bz_fd_close(f->in.io.op.file, f->is_copy);
}

static int net_output(blitz_future *future)
{
    int64_t result = own(future)->result;
    return result > INT_MAX ? INT_MAX : (int)result;
}

static const blitz_future_ops revocable = {.name = "network",
                                           .kind = BLITZ_REVOCABLE,
                                           .poll = net_poll,
                                           .cancel = net_cancel,
                                           .output = net_output};
static const blitz_future_ops pinned = {.name = "network",
                                        .kind = BLITZ_PINNED,
                                        .poll = net_poll,
                                        .cancel = net_cancel,
                                        .output = net_output};

/* ---- making them ---- */

static struct net_future *future_init(blitz_net_future *out, enum net_call call,
                                      struct bz_socket *of)
{
    struct net_future *f = (struct net_future *)out;
    f->future.ops = &pinned;
    f->result = -ECANCELED;
    f->done = 0;
    f->made = NULL;
    f->of = of;
    f->nap_us = 0;
    f->call = (uint8_t)call;
    f->is_begun = f->is_ready = false;
    f->is_napping = f->is_stopping = f->is_copy = 0;
    return f;
}

/* The keeper's class is ours. */
static void begin_first(struct net_future *f, enum bz_op_code code)
{
    begin(f, code);
    if (f->in.io.future.ops->kind == BLITZ_REVOCABLE)
        f->future.ops = &revocable;
}

/* Of a stream no bytes are nothing to do; a datagram may be empty. */
static void bytes_init(blitz_net_future *out, enum net_call call, struct bz_socket *s,
                       enum bz_op_code code, const void *data, size_t bytes, int flags)
{
    struct net_future *f = future_init(out, call, s);
    int err =
        bz_stream_refuses(s, code == BZ_OP_RECV ? BZ_SOCKET_READS : BZ_SOCKET_WRITES, data, bytes);
    if (s == NULL || err != 0 || (bytes == 0 && (s->file->flags & BZ_FILE_STREAM))) {
        (void)is_over(f, err);
        return;
    }
    begin_first(f, code);
    f->in.io.op.flags = flags;
    f->in.io.op.buffer.data = (void *)data; /* a send only reads it */
    f->in.io.op.buffer.bytes = bytes;
}

static struct bz_socket *stream(blitz_tcp *t)
{
    return t != NULL ? &t->s : NULL;
}

void blitz_tcp_read_future_init(blitz_net_future *f, blitz_tcp *t, void *data, size_t bytes)
{
    bytes_init(f, PLAIN, stream(t), BZ_OP_RECV, data, bytes, 0);
}

void blitz_tcp_peek_future_init(blitz_net_future *f, blitz_tcp *t, void *data, size_t bytes)
{
    bytes_init(f, PLAIN, stream(t), BZ_OP_RECV, data, bytes, MSG_PEEK);
}

void blitz_tcp_read_exact_future_init(blitz_net_future *f, blitz_tcp *t, void *data, size_t bytes)
{
    bytes_init(f, EXACT, stream(t), BZ_OP_RECV, data, bytes, 0);
}

void blitz_tcp_write_future_init(blitz_net_future *f, blitz_tcp *t, const void *data, size_t bytes)
{
    bytes_init(f, PLAIN, stream(t), BZ_OP_SEND, data, bytes, 0);
}

void blitz_tcp_write_all_future_init(blitz_net_future *f, blitz_tcp *t, const void *data,
                                     size_t bytes)
{
    bytes_init(f, ALL, stream(t), BZ_OP_SEND, data, bytes, 0);
}

static void wait_init(blitz_net_future *out, struct bz_socket *s, unsigned what)
{
    struct bz_op op;
    struct net_future *f = future_init(out, WAIT, s);
    int err = bz_stream_wait_op(s, &op, what);
    if (s == NULL || err != 0) {
        (void)is_over(f, err);
        return;
    }
    begin_first(f, BZ_OP_POLL);
    bz_sock_poll(&f->in.io.op, what == BLITZ_READABLE, what == BLITZ_WRITABLE, true);
}

void blitz_tcp_wait_future_init(blitz_net_future *f, blitz_tcp *t, unsigned what)
{
    wait_init(f, stream(t), what);
}

void blitz_tcp_accept_future_init(blitz_net_future *out, blitz_tcp_listener *l)
{
    struct net_future *f = future_init(out, ACCEPT, l != NULL ? &l->s : NULL);
    if (l == NULL) {
        (void)is_over(f, -EINVAL);
        return;
    }
    begin_first(f, BZ_OP_ACCEPT);
    f->in.io.op.name.address = NULL;
}

void blitz_tcp_connect_future_init(blitz_net_future *out, const blitz_addr *to)
{
    struct net_future *f = future_init(out, CONNECT, NULL);
    f->to = to;
    if (to == NULL)
        (void)is_over(f, -EINVAL);
}

/* ---- datagrams, and descriptors ---- */

void blitz_udp_recv_future_init(blitz_net_future *f, blitz_udp *u, void *data, size_t bytes)
{
    bytes_init(f, PLAIN, u != NULL ? &u->s : NULL, BZ_OP_RECV, data, bytes, MSG_TRUNC);
}

void blitz_udp_send_future_init(blitz_net_future *f, blitz_udp *u, const void *data, size_t bytes)
{
    bytes_init(f, PLAIN, u != NULL ? &u->s : NULL, BZ_OP_SEND, data, bytes, 0);
}

void blitz_udp_wait_future_init(blitz_net_future *f, blitz_udp *u, unsigned what)
{
    wait_init(f, u != NULL ? &u->s : NULL, what);
}

void blitz_fd_wait_future_init(blitz_net_future *out, int fd, unsigned event)
{
    struct net_future *f = future_init(out, FD, NULL);
    f->fd = fd;
    f->is_read = event == BLITZ_FD_READ;
    if (event != BLITZ_FD_READ && event != BLITZ_FD_WRITE)
        (void)is_over(f, -EINVAL);
    else if (fd < 0)
        (void)is_over(f, -EBADF);
}
