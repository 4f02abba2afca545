/*
 * net_future.c - stream calls as futures.
 *
 * A call is an operation of the driver inside our future, which checks its result and starts the
 * next one if there is more to do: more bytes, another connection, a sleep first. So there is one
 * loop (net_poll), a `step` for each kind of call, and no allocation except for batches (datagrams.c).
 *
 * The class is that of the backend's operation. If that is pinned, a cancel requests its end and
 * the future is polled further: its result counts (`result`, `done`), but no new operation starts.
 *
 * An accepted or new connection belongs to the awaiting task from the moment the future is ready.
 * Before that a cancel leaves nothing open: an accept has taken nothing, a connect is closed.
 */
#include <assert.h>
#include <errno.h>
#include <limits.h>

#include "blitz/fd.h"
#include "blitz/tcp.h"
#include "net/net_future.h"

static_assert(sizeof(struct bz_net_future) <= sizeof(blitz_net_future), "it has room");
static_assert(offsetof(struct bz_net_future, done) == offsetof(blitz_net_future, done), "the same");
static_assert(offsetof(struct bz_net_future, made) == offsetof(blitz_net_future, tcp), "the same");

static struct bz_net_future *own(blitz_future *f)
{
    return BZ_CONTAINER_OF(f, struct bz_net_future, future);
}

/* ---- steps: return true if the future is ready ---- */

bool bz_net_future_over(struct bz_net_future *f, int64_t result)
{
    f->result = result;
    f->is_ready = true;
    return true;
}

void bz_net_future_begin(struct bz_net_future *f, enum bz_op_code code)
{
    bz_io_future_init(&f->in.io, f->of->file, code);
    f->in.io.op.generation = f->of->generation;
    f->is_napping = false;
    f->is_begun = true;
}

static void nap(struct bz_net_future *f)
{
    uint64_t ns = bz_accept_nap_ns(f->nap_us * BLITZ_US);
    f->nap_us = (uint32_t)(ns / BLITZ_US);
    blitz_sleep_until_future_init(&f->in.nap, blitz_after(ns));
    f->is_napping = true;
    f->is_begun = true;
}

/* Continue with the remaining bytes. */
static bool step_bytes(struct bz_net_future *f, int64_t n)
{
    int rc = bz_stream_after(&f->in.io.op, n, &f->done);
    if (rc <= 0)
        return bz_net_future_over(f, rc);
    if (f->is_stopping)
        return bz_net_future_over(f, -ECANCELED);
    bz_net_future_begin(f, f->call == BZ_CALL_EXACT ? BZ_OP_RECV : BZ_OP_SEND);
    return false;
}

static void begin_accept(struct bz_net_future *f)
{
    bz_net_future_begin(f, BZ_OP_ACCEPT);
    f->in.io.op.name.address = NULL;
}

static bool step_accept(struct bz_net_future *f, int64_t fd)
{
    if (fd >= 0)
        return bz_net_future_over(f, bz_socket_take((int)fd, BZ_FILE_STREAM, &f->made));
    enum bz_accept_step next = f->is_stopping ? BZ_ACCEPT_FAILS : bz_accept_after(fd);
    if (next == BZ_ACCEPT_FAILS)
        return bz_net_future_over(f, fd);
    if (next == BZ_ACCEPT_NAPS)
        nap(f);
    else
        begin_accept(f);
    return false;
}

/* Not started yet, or a sleep has ended. */
static bool step_connect_begin(struct bz_net_future *f)
{
    struct bz_socket *s = NULL;
    int err = bz_connect_begin(f->to, f->opts, &s);
    if (err == -EAGAIN) {
        nap(f);
        return false;
    }
    if (err == -EINPROGRESS) {
        f->of = s;
        bz_net_future_begin(f, BZ_OP_POLL);
        bz_sock_poll(&f->in.io.op, false, true, false);
        return false;
    }
    f->made = s;
    return bz_net_future_over(f, err);
}

static bool step_connect(struct bz_net_future *f, int64_t events)
{
    int err = events < 0 ? (int)events : bz_connect_end(f->of);
    if (err == 0)
        f->made = f->of;
    else
        bz_socket_close(f->of);
    return bz_net_future_over(f, err);
}

static bool step_fd_begin(struct bz_net_future *f)
{
    struct bz_file *file;
    int err = bz_fd_open(f->fd, f->is_copy, &file);
    if (err != 0)
        return bz_net_future_over(f, err);
    bz_io_future_init(&f->in.io, file, BZ_OP_POLL);
    bz_sock_poll(&f->in.io.op, f->is_read, !f->is_read, false);
    f->is_begun = true;
    return false;
}

static bool step_fd(struct bz_net_future *f, int64_t result)
{
    bz_fd_close(f->in.io.op.file, f->is_copy);
    if (result == -EEXIST && !f->is_copy && !f->is_stopping) {
        f->is_copy = 1;
        return step_fd_begin(f);
    }
    return bz_net_future_over(f, bz_fd_events(result));
}

static bool step_after_nap(struct bz_net_future *f)
{
    if (f->call == BZ_CALL_CONNECT)
        return step_connect_begin(f);
    begin_accept(f);
    return false;
}

static bool step(struct bz_net_future *f)
{
    if (f->is_napping)
        return step_after_nap(f);
    int64_t result = bz_io_future_result(&f->in.io);
    switch ((enum bz_net_call)f->call) {
    case BZ_CALL_EXACT:
    case BZ_CALL_ALL:
        return step_bytes(f, result);
    case BZ_CALL_ACCEPT:
        return step_accept(f, result);
    case BZ_CALL_CONNECT:
        return step_connect(f, result);
    case BZ_CALL_FD:
        return step_fd(f, result);
    case BZ_CALL_WAIT:
        return bz_net_future_over(f, result > 0 ? 0 : result);
    case BZ_CALL_FROM:
    case BZ_CALL_FDS:
        return bz_net_future_over(f, bz_message_came(f, result));
    case BZ_CALL_MANY:
        bz_many_end(f, result);
        return bz_net_future_over(f, result);
    default:
        return bz_net_future_over(f, result);
    }
}

/* ---- the future ---- */

static blitz_future *waited_for(struct bz_net_future *f)
{
    return f->is_napping ? &f->in.nap.future : &f->in.io.future;
}

/* Calls that start with their first poll. */
static void first_step(struct bz_net_future *f)
{
    if (f->call == BZ_CALL_FD) {
        (void)step_fd_begin(f);
    } else if (f->call == BZ_CALL_CONNECT) {
        (void)step_connect_begin(f);
    } else {
        int err = bz_many_begin(f);
        if (err != 0)
            (void)bz_net_future_over(f, err);
    }
}

/* Only in a task: on a plain thread an accepted connection could be lost. */
static bool refuses_thread(const struct bz_net_future *f)
{
    if (f->is_ready || f->call != BZ_CALL_ACCEPT || f->is_napping || bz_machine_self() != NULL)
        return false;
    bz_file_lock(f->in.io.op.file); /* once started, the backend owns its state */
    bool is_new = f->in.io.op.state == BZ_OP_NEW;
    bz_file_unlock(f->in.io.op.file);
    return is_new;
}

static blitz_poll net_poll(blitz_future *future, const blitz_waker *waker)
{
    struct bz_net_future *f = own(future);
    if (!f->is_ready && !f->is_begun)
        first_step(f);
    if (refuses_thread(f))
        (void)bz_net_future_over(f, bz_io_refuse());
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
    struct bz_net_future *f = own(future);
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
    if (f->is_ready && f->call == BZ_CALL_CONNECT && !f->is_napping)
        bz_socket_close(f->of);
    else if (f->is_ready && f->call == BZ_CALL_FD)
        bz_fd_close(f->in.io.op.file, f->is_copy);
    else if (f->is_ready && f->call == BZ_CALL_MANY)
        bz_many_end(f, 0);
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

/* ---- constructors ---- */

struct bz_net_future *bz_net_future_init(void *out, enum bz_net_call call, struct bz_socket *of)
{
    struct bz_net_future *f = out;
    f->future.ops = &pinned;
    f->result = -ECANCELED;
    f->done = 0;
    f->made = NULL;
    f->of = of;
    f->nap_us = 0;
    f->call = (uint8_t)call;
    f->is_begun = f->is_ready = false;
    f->is_napping = f->is_stopping = f->is_copy = f->is_read = 0;
    return f;
}

void bz_net_future_class(struct bz_net_future *f)
{
    f->future.ops = bz_io_completes(f->of->file) ? &pinned : &revocable;
}

static void begin_first(struct bz_net_future *f, enum bz_op_code code)
{
    bz_net_future_begin(f, code);
    bz_net_future_class(f);
}

/* An empty stream operation does nothing; a datagram may be empty. */
static void bytes_init(blitz_net_future *out, enum bz_net_call call, struct bz_socket *s,
                       enum bz_op_code code, const void *data, size_t bytes, int flags)
{
    struct bz_net_future *f = bz_net_future_init(out, call, s);
    int err =
        bz_stream_refuses(s, code == BZ_OP_RECV ? BZ_SOCKET_READS : BZ_SOCKET_WRITES, data, bytes);
    if (s == NULL || err != 0 || (bytes == 0 && (s->file->flags & BZ_FILE_STREAM))) {
        (void)bz_net_future_over(f, err);
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
    bytes_init(f, BZ_CALL_PLAIN, stream(t), BZ_OP_RECV, data, bytes, 0);
}

void blitz_tcp_peek_future_init(blitz_net_future *f, blitz_tcp *t, void *data, size_t bytes)
{
    bytes_init(f, BZ_CALL_PLAIN, stream(t), BZ_OP_RECV, data, bytes, BZ_MSG_PEEK);
}

void blitz_tcp_read_exact_future_init(blitz_net_future *f, blitz_tcp *t, void *data, size_t bytes)
{
    bytes_init(f, BZ_CALL_EXACT, stream(t), BZ_OP_RECV, data, bytes, 0);
}

void blitz_tcp_write_future_init(blitz_net_future *f, blitz_tcp *t, const void *data, size_t bytes)
{
    bytes_init(f, BZ_CALL_PLAIN, stream(t), BZ_OP_SEND, data, bytes, 0);
}

void blitz_tcp_write_all_future_init(blitz_net_future *f, blitz_tcp *t, const void *data,
                                     size_t bytes)
{
    bytes_init(f, BZ_CALL_ALL, stream(t), BZ_OP_SEND, data, bytes, 0);
}

static void wait_init(blitz_net_future *out, struct bz_socket *s, unsigned what)
{
    struct bz_op op;
    struct bz_net_future *f = bz_net_future_init(out, BZ_CALL_WAIT, s);
    int err = bz_stream_wait_op(s, &op, what);
    if (s == NULL || err != 0) {
        (void)bz_net_future_over(f, err);
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
    struct bz_net_future *f = bz_net_future_init(out, BZ_CALL_ACCEPT, l != NULL ? &l->s : NULL);
    if (l == NULL) {
        (void)bz_net_future_over(f, -EINVAL);
        return;
    }
    begin_first(f, BZ_OP_ACCEPT);
    f->in.io.op.name.address = NULL;
}

void blitz_tcp_connect_with_future_init(blitz_net_future *out, const blitz_addr *to,
                                        const blitz_connect_opts *opts)
{
    struct bz_net_future *f = bz_net_future_init(out, BZ_CALL_CONNECT, NULL);
    f->to = to;
    f->opts = opts;
    if (to == NULL)
        (void)bz_net_future_over(f, -EINVAL);
}

void blitz_tcp_connect_future_init(blitz_net_future *out, const blitz_addr *to)
{
    blitz_tcp_connect_with_future_init(out, to, NULL);
}

/* ---- datagrams, and descriptors ---- */

void blitz_udp_recv_future_init(blitz_net_future *f, blitz_udp *u, void *data, size_t bytes)
{
    bytes_init(f, BZ_CALL_PLAIN, u != NULL ? &u->s : NULL, BZ_OP_RECV, data, bytes, BZ_MSG_TRUNC);
}

void blitz_udp_peek_future_init(blitz_net_future *f, blitz_udp *u, void *data, size_t bytes)
{
    bytes_init(f, BZ_CALL_PLAIN, u != NULL ? &u->s : NULL, BZ_OP_RECV, data, bytes,
               BZ_MSG_TRUNC | BZ_MSG_PEEK);
}

void blitz_udp_send_future_init(blitz_net_future *f, blitz_udp *u, const void *data, size_t bytes)
{
    bytes_init(f, BZ_CALL_PLAIN, u != NULL ? &u->s : NULL, BZ_OP_SEND, data, bytes, 0);
}

void blitz_udp_wait_future_init(blitz_net_future *f, blitz_udp *u, unsigned what)
{
    wait_init(f, u != NULL ? &u->s : NULL, what);
}

void blitz_fd_wait_future_init(blitz_net_future *out, blitz_fd fd, unsigned event)
{
    struct bz_net_future *f = bz_net_future_init(out, BZ_CALL_FD, NULL);
    f->fd = fd;
    f->is_read = event == BLITZ_FD_READ;
    if (event != BLITZ_FD_READ && event != BLITZ_FD_WRITE)
        (void)bz_net_future_over(f, -EINVAL);
    else if (fd < 0)
        (void)bz_net_future_over(f, -EBADF);
}
