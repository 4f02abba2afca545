/*
 * connect.c - connect to one address, or to the first of several that answers.
 *
 * A non-blocking system call starts a connect. It has ended when the socket is writable; SO_ERROR
 * then has the result. That is one poll without a buffer, so the kernel has no memory of the
 * caller, with any backend. The socket of a cancelled connect is closed, because its state is
 * unknown.
 *
 * A Unix socket connects at once or fails: if the listener's backlog is full, it returns -EAGAIN,
 * and there is no event when there is room. So it is retried after a sleep, like an accept without
 * descriptors.
 *
 * Several addresses are tried one after the other, each with a share of the remaining time: a host
 * that drops packets costs only its share. It is a future over single connects, each in a timeout;
 * the blocking call awaits it. A race is faster if the first address is dead, but makes unused connections on the
 * other side: connect_race.c does that for connects by name.
 */
#include <assert.h>
#include <errno.h>

#include "blitz/combine.h"
#include "blitz/tcp.h"
#include "net/net.h"

/* Bind the socket and call the hook, as the options say. Without a port of its own the bind chooses none: the connect
 * does, so that one local port serves connections to many addresses. */
static int prepare(int fd, const blitz_connect_opts *opts)
{
    int err = 0;
    if (opts == NULL)
        return 0;
    if (opts->local != NULL && opts->local->port == 0)
        (void)!bz_sock_set(fd, BZ_SOCK_BIND_NO_PORT,
                           1); /* a system without it chooses a port now */
    if (opts->before != NULL)
        err = opts->before(fd, opts->ctx);
    if (err > 0)
        err = -EINVAL;
    return err != 0 || opts->local == NULL ? err : bz_sock_bind(fd, opts->local);
}

int bz_connect_begin(const blitz_addr *to, const blitz_connect_opts *opts, struct bz_socket **out)
{
    int fd = bz_sock_open(to, true);
    if (fd < 0)
        return fd;
    int begun = prepare(fd, opts);
    if (begun == 0)
        begun = bz_sock_connect(fd, to); /* before it is a file: a backend may make it blocking */
    if (begun == -EINTR)
        begun = -EINPROGRESS; /* the connect continues in the kernel */
    if (begun != 0 && begun != -EINPROGRESS) {
        bz_sock_close(fd);
        return begun;
    }
    int err = bz_socket_take(fd, BZ_FILE_STREAM, out);
    return err != 0 ? err : begun;
}

int bz_connect_end(struct bz_socket *s)
{
    int error = 0;
    int err = bz_socket_get(s, BZ_SOCK_ERROR, &error);
    return err != 0 ? err : -error;
}

int blitz_tcp_connect_with(const blitz_addr *to, const blitz_connect_opts *opts, blitz_tcp **out,
                           blitz_deadline until)
{
    blitz_net_future f;
    if (to == NULL || out == NULL)
        return -EINVAL;
    blitz_tcp_connect_with_future_init(&f, to, opts);
    int err = blitz_await(&f.future, until);
    if (err == 0 || f.result == 0)
        err = (int)f.result;
    if (err == 0)
        *out = f.tcp;
    return err;
}

int blitz_tcp_connect(const blitz_addr *to, blitz_tcp **out, blitz_deadline until)
{
    return blitz_tcp_connect_with(to, NULL, out, until);
}

/* ---- the first of several ---- */

enum { SHARE_MIN_S = 2 };

static blitz_deadline share_of(blitz_deadline until, size_t left)
{
    blitz_duration time = blitz_deadline_left(until);
    if (until == BLITZ_FOREVER)
        return until;
    blitz_duration share = time / left;
    if (share < SHARE_MIN_S * BLITZ_S)
        share = SHARE_MIN_S * BLITZ_S;
    return blitz_deadline_first(until, blitz_after(share));
}

/* True if the next address would fail in the same way. */
static bool is_final(int err, blitz_deadline until)
{
    return err == -ECANCELED || err == -EOPNOTSUPP || err == -ENOMEM ||
           (err == -ETIMEDOUT && blitz_deadline_left(until) == 0);
}

struct first {
    blitz_future future;
    int result;
    blitz_tcp *tcp;
    const blitz_addr *to;
    size_t count, at;
    int *errors;
    blitz_deadline until;
    int first_error;
    bool is_trying; /* `limit` is the current wait */
    bool is_over, is_stopping;
    blitz_net_future one;
    blitz_timeout limit;
};

static_assert(sizeof(struct first) <= sizeof(blitz_connect_first_future), "it has room");
static_assert(offsetof(struct first, tcp) == offsetof(blitz_connect_first_future, tcp), "the same");

static struct first *first_of(blitz_future *f)
{
    return BZ_CONTAINER_OF(f, struct first, future);
}

static void first_over(struct first *c, int result)
{
    c->result = result;
    c->is_over = true;
}

static void try_next(struct first *c)
{
    blitz_tcp_connect_future_init(&c->one, &c->to[c->at]);
    (void)!blitz_timeout_init(&c->limit, &c->one.future, share_of(c->until, c->count - c->at));
    c->is_trying = true;
}

/* A successful connect wins over a timeout of its share and over a cancel. */
static void tried(struct first *c)
{
    int err = c->one.result == 0 ? 0 : c->limit.result;
    c->is_trying = false;
    if (c->errors != NULL)
        c->errors[c->at] = err;
    c->first_error = c->first_error != 0 ? c->first_error : err;
    if (err == 0) {
        c->tcp = c->one.tcp;
        first_over(c, (int)c->at);
    } else if (c->is_stopping || is_final(err, c->until)) {
        first_over(c, c->is_stopping ? -ECANCELED : err);
    } else if (++c->at == c->count) {
        first_over(c, c->first_error);
    }
}

static blitz_poll first_poll(blitz_future *future, const blitz_waker *waker)
{
    struct first *c = first_of(future);
    while (!c->is_over) {
        if (!c->is_trying)
            try_next(c);
        if (c->limit.future.ops->poll(&c->limit.future, waker) == BLITZ_PENDING)
            return BLITZ_PENDING;
        tried(c);
    }
    return BLITZ_READY;
}

static void first_cancel(blitz_future *future)
{
    struct first *c = first_of(future);
    if (c->is_over)
        return;
    c->is_stopping = true;
    if (c->is_trying)
        c->limit.future.ops->cancel(&c->limit.future);
    else
        first_over(c, -ECANCELED);
}

static int first_output(blitz_future *future)
{
    return first_of(future)->result;
}

void blitz_tcp_connect_first_future_init(blitz_connect_first_future *f, const blitz_addr *to,
                                         size_t count, int *errors, blitz_deadline until)
{
    static const blitz_future_ops ops = {"connect", BLITZ_PINNED, first_poll, first_cancel,
                                         first_output};
    struct first *c = (struct first *)f;
    *c = (struct first){.future = {&ops},
                        .result = -ECANCELED,
                        .to = to,
                        .count = count,
                        .errors = errors,
                        .until = until};
    if (to == NULL || count == 0 || count > INT16_MAX)
        first_over(c, -EINVAL);
    for (size_t i = 0; errors != NULL && !c->is_over && i < count; i++)
        errors[i] = -EINPROGRESS;
}

/* The future completes at its own deadline, and reports the result of each address. */
int blitz_tcp_connect_first(const blitz_addr *to, size_t count, int *errors, blitz_tcp **out,
                            blitz_deadline until)
{
    blitz_connect_first_future f;
    if (out == NULL)
        return -EINVAL;
    blitz_tcp_connect_first_future_init(&f, to, count, errors, until);
    (void)!blitz_await(&f.future,
                       BLITZ_FOREVER); /* the result tells how it ended, cancelled or not */
    if (f.result >= 0)
        *out = f.tcp;
    return f.result;
}
