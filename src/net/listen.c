/*
 * listen.c - listen and accept.
 *
 * An accept can fail in three ways. Some errors belong to a connection that was aborted before it
 * was accepted: the next one is accepted. Some errors mean that a resource is exhausted, usually
 * descriptors, and the connection stays in the backlog: an immediate retry would burn a CPU without
 * success (bug class 19). So such an accept sleeps, 5 ms at first and twice as long each time, up
 * to a second, and retries. All other errors are returned.
 *
 * Rejected: a spare descriptor that is closed to accept and drop a connection. It resets a client
 *           that a short wait would serve, and races with all other code that opens files.
 *
 * The blocking accept has a loop of its own beside that of its future (net_future.c): driven through the future,
 * an accept with the close takes 1173 instructions instead of 1066 (10 %). The rule for errors and
 * sleeps is bz_accept_after, for both.
 *
 * Several tasks may accept from one listener; ready.c ensures that a connection wakes only one of
 * them.
 */
#include <errno.h>

#include "blitz/tcp.h"
#include "io/sockaddr.h"
#include "net/net.h"

/* ---- listening ---- */

static int set_options(int fd, const blitz_addr *at, const blitz_tcp_listen_opts *opts)
{
    int err = 0;
    bool is_unix = blitz_addr_is_unix(at);
    if (!opts->is_addr_exclusive && !is_unix)
        err = bz_sock_set(fd, BZ_SOCK_REUSE_ADDR, 1);
    if (err == 0 && opts->is_port_shared && !is_unix)
        err = bz_sock_set(fd, BZ_SOCK_REUSE_PORT, 1);
    if (err == 0 && blitz_addr_is_v6(at))
        err = bz_sock_set(fd, BZ_SOCK_V6_ONLY, opts->is_v6_only);
    return err;
}

static int listen_at(const blitz_addr *at, const blitz_tcp_listen_opts *opts)
{
    int fd = bz_sock_open(at, true);
    if (fd < 0)
        return fd;
    int err = set_options(fd, at, opts);
    if (err == 0)
        err = bz_sock_bind(fd, at);
    if (err == 0)
        err = bz_sock_listen(fd, opts->backlog);
    if (err == 0)
        return fd;
    bz_sock_close(fd);
    return err;
}

int blitz_tcp_listen(const blitz_addr *at, const blitz_tcp_listen_opts *opts,
                     blitz_tcp_listener **out)
{
    static const blitz_tcp_listen_opts plain;
    if (at == NULL || out == NULL || (opts != NULL && opts->backlog < 0))
        return -EINVAL;
    opts = opts != NULL ? opts : &plain;
    int fd = listen_at(at, opts);
    if (fd == -EAFNOSUPPORT && blitz_addr_is_v6(at) && blitz_addr_is_any(at) && !opts->is_v6_only) {
        blitz_addr v4 = blitz_addr_any_v4(at->port);
        fd = listen_at(&v4, opts);
    }
    return fd < 0 ? fd : bz_socket_take(fd, 0, (struct bz_socket **)out);
}

/* ---- accepting ---- */

enum bz_accept_step bz_accept_after(int64_t result)
{
    switch (result) {
    case -ECONNABORTED: /* errors of the connection itself: accept(2) */
    case -ENETDOWN:
    case -EPROTO:
    case -ENOPROTOOPT:
    case -EHOSTDOWN:
    case -ENONET:
    case -EHOSTUNREACH:
    case -ENETUNREACH:
        return BZ_ACCEPT_AGAIN;
    case -EMFILE:
    case -ENFILE:
    case -ENOBUFS:
    case -ENOMEM:
        return BZ_ACCEPT_NAPS;
    default:
        return BZ_ACCEPT_FAILS;
    }
}

uint64_t bz_accept_nap_ns(uint64_t last_ns)
{
    if (last_ns == 0)
        return 5 * BLITZ_MS;
    return last_ns < BLITZ_S / 2 ? 2 * last_ns : BLITZ_S;
}

/* Returns 0 to retry, or the error to return. */
static int nap(uint64_t *ns, blitz_deadline until)
{
    *ns = bz_accept_nap_ns(*ns);
    if (until <= blitz_now())
        return -ETIMEDOUT;
    return blitz_sleep_until(blitz_deadline_first(until, blitz_after(*ns)));
}

/* Returns a descriptor or a negative errno. */
static int64_t accept_fd(struct bz_socket *s, struct bz_sockname *name, uint32_t *bytes,
                         blitz_deadline until)
{
    struct bz_op op;
    uint64_t nap_ns = 0;
    for (;;) {
        bz_socket_op(s, &op, BZ_OP_ACCEPT);
        op.name.address = name;
        int64_t fd = bz_io_run(&op, "tcp accept", until);
        *bytes = op.name.bytes;
        if (fd >= 0)
            return fd;
        /* also if a backend could not open a descriptor */
        enum bz_accept_step next = bz_accept_after(fd);
        if (next == BZ_ACCEPT_NAPS)
            fd = nap(&nap_ns, until);
        if (next == BZ_ACCEPT_FAILS || (next == BZ_ACCEPT_NAPS && fd != 0))
            return fd;
    }
}

int blitz_tcp_accept(blitz_tcp_listener *l, blitz_tcp **out, blitz_addr *peer, blitz_deadline until)
{
    struct bz_sockname name;
    uint32_t bytes;
    if (l == NULL || out == NULL)
        return -EINVAL;
    if (bz_machine_self() == NULL)
        return bz_io_refuse();
    int64_t fd = accept_fd(&l->s, peer != NULL ? &name : NULL, &bytes, until);
    if (fd < 0)
        return (int)fd;
    if (peer != NULL)
        bz_sockaddr_to(&name, bytes, peer);
    return bz_socket_take((int)fd, BZ_FILE_STREAM, (struct bz_socket **)out);
}

/* ---- handles ---- */

int blitz_tcp_listener_local(blitz_tcp_listener *l, blitz_addr *out)
{
    return bz_socket_local(l != NULL ? &l->s : NULL, out);
}

blitz_tcp_listener *blitz_tcp_listener_ref(blitz_tcp_listener *l)
{
    if (l != NULL)
        (void)bz_socket_ref(&l->s);
    return l;
}

void blitz_tcp_listener_unref(blitz_tcp_listener *l)
{
    bz_socket_unref(l != NULL ? &l->s : NULL);
}

void blitz_tcp_listener_close(blitz_tcp_listener *l)
{
    bz_socket_close(l != NULL ? &l->s : NULL);
}
