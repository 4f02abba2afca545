/*
 * udp.c - datagrams.
 *
 * Each call is one operation of the driver. Receives request the full length (BZ_MSG_TRUNC), so that
 * truncation can be reported; the rest of a truncated datagram is lost. Several at once: datagrams.c.
 */
#include "blitz/udp.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>

#include "blitz/tcp.h"
#include "io/sockaddr.h"
#include "net/net.h"

static struct bz_socket *of(blitz_udp *u)
{
    return u != NULL ? &u->s : NULL;
}

static int open_at(const blitz_addr *at, const blitz_udp_opts *opts)
{
    int fd = bz_sock_open(at, false), err = 0;
    if (fd < 0)
        return fd;
    if (opts->is_addr_shared)
        err = bz_sock_set(fd, BZ_SOCK_REUSE_ADDR, 1);
    if (err == 0 && opts->is_port_shared)
        err = bz_sock_set(fd, BZ_SOCK_REUSE_PORT, 1);
    if (err == 0 && blitz_addr_is_v6(at))
        err = bz_sock_set(fd, BZ_SOCK_V6_ONLY, opts->is_v6_only);
    if (err == 0)
        err = bz_sock_bind(fd, at);
    if (err == 0)
        return fd;
    bz_sock_close(fd);
    return err;
}

int blitz_udp_bind(const blitz_addr *at, const blitz_udp_opts *opts, blitz_udp **out)
{
    static const blitz_udp_opts plain;
    if (at == NULL || out == NULL)
        return -EINVAL;
    opts = opts != NULL ? opts : &plain;
    int fd = open_at(at, opts);
    if (fd == -EAFNOSUPPORT && blitz_addr_is_v6(at) && blitz_addr_is_any(at) && !opts->is_v6_only) {
        blitz_addr v4 = blitz_addr_any_v4(at->port);
        fd = open_at(&v4, opts);
    }
    return fd < 0 ? fd : bz_socket_take(fd, 0, (struct bz_socket **)out);
}

int blitz_udp_connect(blitz_udp *u, const blitz_addr *to)
{
    struct bz_op op;
    if (u == NULL)
        return -EINVAL;
    int fd = bz_socket_enter(&u->s, &op);
    if (fd < 0)
        return fd;
    int err = bz_sock_connect(fd, to);
    bz_socket_leave(&u->s, &op);
    return err;
}

/* ---- one ---- */

static int64_t receive(blitz_udp *u, void *data, size_t bytes, int flags, blitz_deadline until)
{
    struct bz_op op;
    int err = bz_stream_refuses(of(u), BZ_SOCKET_READS, data, bytes);
    if (err != 0)
        return err;
    bz_stream_op(&u->s, &op, BZ_OP_RECV, data, bytes);
    op.flags = BZ_MSG_TRUNC | flags;
    return bz_io_run(&op, "udp receive", until);
}

int64_t blitz_udp_recv(blitz_udp *u, void *data, size_t bytes, blitz_deadline until)
{
    return receive(u, data, bytes, 0, until);
}

int64_t blitz_udp_peek(blitz_udp *u, void *data, size_t bytes, blitz_deadline until)
{
    return receive(u, data, bytes, BZ_MSG_PEEK, until);
}

int64_t blitz_udp_send(blitz_udp *u, const void *data, size_t bytes, blitz_deadline until)
{
    struct bz_op op;
    int err = bz_stream_refuses(of(u), BZ_SOCKET_WRITES, data, bytes);
    if (err != 0)
        return err;
    bz_stream_op(&u->s, &op, BZ_OP_SEND, data, bytes);
    return bz_io_run(&op, "udp send", until);
}

int bz_message_to_recv_from(struct bz_message *m, struct bz_socket *s, void *data, size_t bytes)
{
    int err = bz_stream_refuses(s, BZ_SOCKET_READS, data, bytes);
    if (err != 0)
        return err;
    m->piece = (blitz_piece){data, bytes};
    m->header = (struct bz_msg){.name = &m->beside.name,
                                .name_bytes = sizeof m->beside.name,
                                .pieces = &m->piece,
                                .piece_count = 1};
    return 0;
}

static int64_t receive_from(blitz_udp *u, void *data, size_t bytes, int flags, blitz_addr *from,
                            blitz_deadline until)
{
    struct bz_op op;
    struct bz_message m;
    int err = bz_message_to_recv_from(&m, of(u), data, bytes);
    if (err != 0)
        return err;
    bz_socket_op(&u->s, &op, BZ_OP_RECVMSG);
    op.msg.header = &m.header;
    op.flags = BZ_MSG_TRUNC | flags;
    int64_t n = bz_io_run(&op, "udp receive", until);
    if (n >= 0 && from != NULL)
        bz_sockaddr_to(&m.beside.name, m.header.name_bytes, from);
    return n;
}

int64_t blitz_udp_recv_from(blitz_udp *u, void *data, size_t bytes, blitz_addr *from,
                            blitz_deadline until)
{
    return receive_from(u, data, bytes, 0, from, until);
}

int64_t blitz_udp_peek_from(blitz_udp *u, void *data, size_t bytes, blitz_addr *from,
                            blitz_deadline until)
{
    return receive_from(u, data, bytes, BZ_MSG_PEEK, from, until);
}

int blitz_udp_wait(blitz_udp *u, unsigned what, blitz_deadline until)
{
    struct bz_op op;
    int err = bz_stream_wait_op(of(u), &op, what);
    if (err != 0)
        return err;
    int64_t events = bz_io_run(&op, what == BLITZ_READABLE ? "readable" : "writable", until);
    return events < 0 ? (int)events : 0;
}

int bz_message_to_send_to(struct bz_message *m, struct bz_socket *s, const void *data, size_t bytes,
                          const blitz_addr *to)
{
    int err = bz_stream_refuses(s, BZ_SOCKET_WRITES, data, bytes);
    int name_bytes = to != NULL ? bz_sockaddr_of(to, &m->beside.name) : -EINVAL;
    if (err != 0 || name_bytes < 0)
        return err != 0 ? err : name_bytes;
    m->piece = (blitz_piece){(void *)data, bytes}; /* a send only reads it */
    m->header = (struct bz_msg){.name = &m->beside.name,
                                .name_bytes = (uint32_t)name_bytes,
                                .pieces = &m->piece,
                                .piece_count = 1};
    return 0;
}

int64_t blitz_udp_send_to(blitz_udp *u, const void *data, size_t bytes, const blitz_addr *to,
                          blitz_deadline until)
{
    struct bz_op op;
    struct bz_message m;
    int err = bz_message_to_send_to(&m, of(u), data, bytes, to);
    if (err != 0)
        return err;
    bz_socket_op(&u->s, &op, BZ_OP_SENDMSG);
    op.msg.header = &m.header;
    return bz_io_run(&op, "udp send", until);
}

/* ---- groups ---- */

static int group(blitz_udp *u, const blitz_addr *at, uint32_t interface, bool is_joined)
{
    struct bz_op op;
    if (u == NULL || at == NULL)
        return -EINVAL;
    int fd = bz_socket_enter(&u->s, &op);
    if (fd < 0)
        return fd;
    int err = bz_sock_group(fd, at, interface, is_joined);
    bz_socket_leave(&u->s, &op);
    return err;
}

int blitz_udp_join(blitz_udp *u, const blitz_addr *at, uint32_t interface)
{
    return group(u, at, interface, true);
}

int blitz_udp_leave(blitz_udp *u, const blitz_addr *at, uint32_t interface)
{
    return group(u, at, interface, false);
}

int blitz_udp_set_group_interface(blitz_udp *u, uint32_t interface)
{
    struct bz_op op;
    if (u == NULL || interface > INT_MAX)
        return -EINVAL;
    int fd = bz_socket_enter(&u->s, &op);
    if (fd < 0)
        return fd;
    int err = bz_sock_group_out(fd, interface);
    bz_socket_leave(&u->s, &op);
    return err;
}

int blitz_udp_set_group_ttl(blitz_udp *u, int hops)
{
    return hops < 0 || hops > 255 ? -EINVAL : bz_socket_set(of(u), BZ_SOCK_MULTICAST_TTL, hops);
}

int blitz_udp_set_group_loop(blitz_udp *u, bool is_on)
{
    return bz_socket_set(of(u), BZ_SOCK_MULTICAST_LOOP, is_on);
}

/* ---- options, names, handles ---- */

int blitz_udp_set_broadcast(blitz_udp *u, bool is_allowed)
{
    return bz_socket_set(of(u), BZ_SOCK_BROADCAST, is_allowed);
}

int blitz_udp_set_ttl(blitz_udp *u, int hops)
{
    return hops < 1 || hops > 255 ? -EINVAL : bz_socket_set(of(u), BZ_SOCK_TTL, hops);
}

int blitz_udp_set_tos(blitz_udp *u, int tos)
{
    return tos < 0 || tos > 255 ? -EINVAL : bz_socket_set(of(u), BZ_SOCK_TOS, tos);
}

int blitz_udp_set_buffers(blitz_udp *u, size_t send_bytes, size_t recv_bytes)
{
    return blitz_tcp_set_buffers((blitz_tcp *)u, send_bytes, recv_bytes);
}

int blitz_udp_local(blitz_udp *u, blitz_addr *out)
{
    return bz_socket_local(of(u), out);
}

int blitz_udp_peer(blitz_udp *u, blitz_addr *out)
{
    return bz_socket_peer(of(u), out);
}

int blitz_udp_error(blitz_udp *u)
{
    return blitz_tcp_error((blitz_tcp *)u);
}

blitz_udp *blitz_udp_ref(blitz_udp *u)
{
    (void)bz_socket_ref(of(u));
    return u;
}

void blitz_udp_unref(blitz_udp *u)
{
    bz_socket_unref(of(u));
}

void blitz_udp_close(blitz_udp *u)
{
    bz_socket_close(of(u));
}

int blitz_udp_adopt(blitz_fd fd, blitz_udp **out)
{
    if (out == NULL)
        return -EINVAL;
    int err = bz_sock_adopt(fd, false);
    return err != 0 ? err : bz_socket_new(fd, 0, (struct bz_socket **)out);
}

int blitz_udp_release(blitz_udp *u, blitz_fd *out)
{
    return bz_socket_release(of(u), out);
}
