/*
 * net_ops.h - every call of the network that waits, as a future, in one table.
 *
 * Each has its own setup, in which it has to wait until `allow` is called. `check` then checks its
 * effect, and that it happened exactly once.
 */
#ifndef T_NET_OPS_H
#define T_NET_OPS_H

#include "harness.h"

#include <sys/socket.h>
#include <unistd.h>

#include "blitz/unix.h"
#include "net/socket.h"
#include "support/net.h"

struct t_net_world {
    blitz_tcp *t[2]; /* a pair of streams, of datagrams, of foreign descriptors */
    blitz_udp *u[2];
    int raw[2];
    blitz_tcp_listener *listener;
    blitz_addr at, from;
    blitz_tcp *client;
    union {
        blitz_net_future net;
        blitz_pieces_future pieces;
        blitz_message_future message;
    } f;
    int64_t *result; /* in it */
    uint64_t filled; /* bytes or datagrams that are in the way */
    char data[16], packet[3][16];
    blitz_piece piece[2];
    blitz_datagram datagram[3];
    int fds[4];
};

struct t_net_op {
    const char *name;
    void (*given)(struct t_net_world *w); /* so that it has to wait */
    blitz_future *(*init)(struct t_net_world *w);
    void (*allow)(struct t_net_world *w);
    void (*check)(struct t_net_world *w);
    void (*close)(struct t_net_world *w); /* the object it waits on; NULL: it must not close it */
    bool is_for_tasks;                    /* -EOPNOTSUPP on a plain thread */
};

static inline blitz_deadline t_soon(void)
{
    return blitz_after(20 * BLITZ_S);
}

static inline void t_net_world_open(struct t_net_world *w)
{
    memset(w, 0, sizeof *w);
    CHECK_EQ(blitz_unix_pair(w->t), 0);
    CHECK_EQ(blitz_unix_datagram_pair(w->u), 0);
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, w->raw), 0);
    w->listener = t_listen(&w->at);
    w->from = w->at;
}

static inline void t_net_world_close(struct t_net_world *w)
{
    t_close_both(w->t);
    for (int i = 0; i < 2; i++) {
        blitz_udp_close(w->u[i]);
        close(w->raw[i]);
    }
    blitz_tcp_listener_close(w->listener);
    blitz_tcp_close(w->client);
}

/* ---- making them wait, and letting them continue ---- */

static inline void t_net_nothing(struct t_net_world *w)
{
    char c;
    CHECK_EQ(blitz_tcp_try_read(w->t[1], &c, 1), -EAGAIN); /* it is known to be empty */
}

static inline void t_net_hello(struct t_net_world *w)
{
    CHECK_EQ(blitz_tcp_write_all(w->t[0], "hello", 5, NULL, t_soon()), 0);
}

static inline void t_net_descriptors(struct t_net_world *w)
{
    CHECK_EQ(blitz_unix_send_fds(w->t[0], "hello", 5, w->raw, 2, t_soon()), 5);
}

static inline void t_net_packets(struct t_net_world *w)
{
    CHECK_EQ(blitz_udp_send(w->u[0], "one", 3, t_soon()), 3);
    CHECK_EQ(blitz_udp_send(w->u[0], "four", 4, t_soon()), 4);
}

static inline void t_net_client(struct t_net_world *w)
{
    CHECK_EQ(blitz_tcp_connect(&w->at, &w->client, t_soon()), 0);
}

static inline void t_net_raw_hello(struct t_net_world *w)
{
    CHECK_EQ(write(w->raw[0], "hello", 5), 5);
}

/* By the system's answer: a backend that polls before it tries may see no room although there is
 * some. */
static inline void t_net_fill(struct t_net_world *w)
{
    static const char data[65536];
    ssize_t n;
    while ((n = send(w->t[0]->s.file->fd, data, sizeof data, MSG_DONTWAIT)) > 0)
        w->filled += (uint64_t)n;
    CHECK_EQ(blitz_tcp_try_write(w->t[0], data, 1), -EAGAIN); /* and now it is known */
}

/* Drain only the blocking bytes: the waiting write may have put bytes behind them meanwhile. */
static inline void t_net_drain(struct t_net_world *w)
{
    static char data[65536];
    while (w->filled > 0) {
        int64_t n =
            blitz_tcp_try_read(w->t[1], data, w->filled < sizeof data ? w->filled : sizeof data);
        CHECK_GT(n, 0);
        w->filled -= (uint64_t)n;
    }
}

static inline void t_net_fill_packets(struct t_net_world *w)
{
    while (send(w->u[0]->s.file->fd, "zero", 4, MSG_DONTWAIT) == 4)
        w->filled++;
    CHECK_EQ(blitz_udp_send(w->u[0], "zero", 4, 0), -ETIMEDOUT);
}

static inline void t_net_drain_packets(struct t_net_world *w)
{
    char data[8];
    for (; w->filled > 0; w->filled--)
        CHECK_EQ(blitz_udp_recv(w->u[1], data, sizeof data, 0), 4);
}

static inline void t_net_fill_raw(struct t_net_world *w)
{
    static const char data[65536];
    while (write(w->raw[0], data, sizeof data) > 0)
        continue;
}

static inline void t_net_drain_raw(struct t_net_world *w)
{
    static char data[65536];
    while (read(w->raw[1], data, sizeof data) > 0)
        continue;
}

/* ---- checking their effects ---- */

/* There were five bytes, and there are no more. */
static inline void t_net_check_read(struct t_net_world *w)
{
    char c;
    CHECK_EQ(*w->result, 5);
    CHECK_MEM_EQ(w->data, "hello", 5);
    CHECK_EQ(blitz_tcp_try_read(w->t[1], &c, 1), -EAGAIN);
}

static inline void t_net_check_exact(struct t_net_world *w)
{
    CHECK_EQ(*w->result, 0);
    CHECK_EQ(w->f.net.done, 5u);
    *w->result = 5;
    t_net_check_read(w);
}

static inline void t_net_check_peek(struct t_net_world *w)
{
    CHECK_EQ(*w->result, 5);
    *w->result = blitz_tcp_try_read(w->t[1], w->data, sizeof w->data);
    t_net_check_read(w);
}

static inline void t_net_check_wait(struct t_net_world *w)
{
    CHECK_EQ(*w->result, 0);
    *w->result = 5;
    t_net_check_peek(w);
}

static inline void t_net_check_recv(struct t_net_world *w)
{
    CHECK_EQ(*w->result, 3);
    CHECK_MEM_EQ(w->data, "one", 3);
    CHECK_EQ(blitz_udp_recv(w->u[1], w->data, sizeof w->data, 0), 4);
    CHECK_EQ(blitz_udp_recv(w->u[1], w->data, sizeof w->data, 0), -ETIMEDOUT);
}

static inline void t_net_check_recv_from(struct t_net_world *w)
{
    CHECK_EQ(w->from.kind, BLITZ_ADDR_NONE); /* it is written: the other one has no name */
    t_net_check_recv(w);
}

static inline void t_net_check_recv_many(struct t_net_world *w)
{
    char data[8];
    int64_t n = *w->result;
    CHECK(n == 1 || n == 2); /* the second may have come later */
    CHECK_EQ(w->datagram[0].bytes, 3u);
    CHECK_MEM_EQ(w->packet[0], "one", 3);
    if (n == 2)
        CHECK_MEM_EQ(w->packet[1], "four", 4);
    else
        CHECK_EQ(blitz_udp_recv(w->u[1], data, sizeof data, 0), 4);
    CHECK_EQ(blitz_udp_recv(w->u[1], data, sizeof data, 0), -ETIMEDOUT);
}

static inline void t_net_check_recv_fds(struct t_net_world *w)
{
    t_net_check_read(w);
    CHECK_EQ(w->f.message.fd_count, 2u);
    for (int i = 0; i < 2; i++)
        CHECK_EQ(close(w->fds[i]), 0);
}

static inline void t_net_check_accept(struct t_net_world *w)
{
    blitz_addr ends[2];
    blitz_tcp *t;
    CHECK_EQ(*w->result, 0);
    CHECK_EQ(blitz_tcp_peer(w->f.net.tcp, &ends[0]), 0);
    CHECK_EQ(blitz_tcp_local(w->client, &ends[1]), 0);
    CHECK(blitz_addr_is_equal(&ends[0], &ends[1]));
    blitz_tcp_close(w->f.net.tcp);
    CHECK_EQ(blitz_tcp_accept(w->listener, &t, NULL, 0), -ETIMEDOUT);
}

static inline void t_net_check_raw(struct t_net_world *w)
{
    CHECK_EQ(*w->result, BLITZ_FD_READ);
    CHECK_EQ(read(w->raw[1], w->data, sizeof w->data), 5);
}

/* A stream that was empty holds exactly the sent bytes. */
static inline void t_net_check_write(struct t_net_world *w)
{
    CHECK_EQ(*w->result, 5);
    *w->result = blitz_tcp_try_read(w->t[1], w->data, sizeof w->data);
    t_net_check_read(w);
}

static inline void t_net_check_write_all(struct t_net_world *w)
{
    CHECK_EQ(*w->result, 0);
    CHECK_EQ(w->f.net.done, 5u);
    *w->result = 5;
    t_net_check_write(w);
}

static inline void t_net_check_writable(struct t_net_world *w)
{
    CHECK_EQ(*w->result, 0);
    CHECK_EQ(blitz_tcp_try_write(w->t[0], "x", 1), 1);
}

static inline void t_net_check_send(struct t_net_world *w)
{
    CHECK_EQ(*w->result, 3);
    CHECK_EQ(blitz_udp_recv(w->u[1], w->data, sizeof w->data, 0), 3);
    CHECK_EQ(blitz_udp_recv(w->u[1], w->data, sizeof w->data, 0), -ETIMEDOUT);
}

static inline void t_net_check_send_many(struct t_net_world *w)
{
    int64_t n = *w->result;
    CHECK(n == 1 || n == 2); /* there may have been room for one when it was tried */
    for (int64_t i = 0; i < n; i++)
        CHECK_EQ(blitz_udp_recv(w->u[1], w->data, sizeof w->data, 0), 3);
    CHECK_EQ(blitz_udp_recv(w->u[1], w->data, sizeof w->data, 0), -ETIMEDOUT);
}

static inline void t_net_check_send_fds(struct t_net_world *w)
{
    size_t count = 4;
    CHECK_EQ(*w->result, 5);
    *w->result = blitz_unix_recv_fds(w->t[1], w->data, sizeof w->data, w->fds, &count, 0);
    CHECK_EQ(count, 2u);
    w->f.message.fd_count = count;
    t_net_check_recv_fds(w);
}

static inline void t_net_check_raw_room(struct t_net_world *w)
{
    CHECK_EQ(*w->result, BLITZ_FD_WRITE);
    CHECK_EQ(write(w->raw[0], "x", 1), 1);
}

/* ---- closing the object of a wait ---- */

static inline void t_net_close_in(struct t_net_world *w)
{
    blitz_tcp_close(blitz_tcp_ref(w->t[1]));
}

static inline void t_net_close_out(struct t_net_world *w)
{
    blitz_tcp_close(blitz_tcp_ref(w->t[0]));
}

static inline void t_net_close_packets_in(struct t_net_world *w)
{
    blitz_udp_close(blitz_udp_ref(w->u[1]));
}

static inline void t_net_close_packets_out(struct t_net_world *w)
{
    blitz_udp_close(blitz_udp_ref(w->u[0]));
}

static inline void t_net_close_listener(struct t_net_world *w)
{
    blitz_tcp_listener_close(blitz_tcp_listener_ref(w->listener));
}

/* ---- beginning them ---- */

#define T_NET_INIT(name_, which_, ...)                                    \
    static inline blitz_future *t_net_init_##name_(struct t_net_world *w) \
    {                                                                     \
        __VA_ARGS__;                                                      \
        w->result = &w->f.which_.result;                                  \
        return &w->f.which_.future;                                       \
    }

static inline const blitz_piece *t_net_pieces(struct t_net_world *w, const char *text)
{
    memcpy(w->data, text, 5);
    w->piece[0] = (blitz_piece){w->data, 2};
    w->piece[1] = (blitz_piece){w->data + 2, 3};
    return w->piece;
}

static inline blitz_datagram *t_net_datagrams(struct t_net_world *w, size_t bytes)
{
    for (int i = 0; i < 3; i++)
        w->datagram[i] = (blitz_datagram){.data = w->packet[i], .bytes = bytes};
    return w->datagram;
}

T_NET_INIT(read, net, blitz_tcp_read_future_init(&w->f.net, w->t[1], w->data, 16))
T_NET_INIT(peek, net, blitz_tcp_peek_future_init(&w->f.net, w->t[1], w->data, 16))
T_NET_INIT(exact, net, blitz_tcp_read_exact_future_init(&w->f.net, w->t[1], w->data, 5))
T_NET_INIT(readv, pieces,
           blitz_tcp_readv_future_init(&w->f.pieces, w->t[1], t_net_pieces(w, "     "), 2))
T_NET_INIT(readable, net, blitz_tcp_wait_future_init(&w->f.net, w->t[1], BLITZ_READABLE))
T_NET_INIT(recv_fds, message,
           blitz_unix_recv_fds_future_init(&w->f.message, w->t[1], w->data, 16, w->fds, 4))
T_NET_INIT(recv, net, blitz_udp_recv_future_init(&w->f.net, w->u[1], w->data, 16))
T_NET_INIT(recv_from, message,
           blitz_udp_recv_from_future_init(&w->f.message, w->u[1], w->data, 16, &w->from))
T_NET_INIT(recv_many, net,
           blitz_udp_recv_many_future_init(&w->f.net, w->u[1], t_net_datagrams(w, 16), 3))
T_NET_INIT(accept, net, blitz_tcp_accept_future_init(&w->f.net, w->listener))
T_NET_INIT(fd_read, net, blitz_fd_wait_future_init(&w->f.net, w->raw[1], BLITZ_FD_READ))
T_NET_INIT(write, net, blitz_tcp_write_future_init(&w->f.net, w->t[0], "hello", 5))
T_NET_INIT(write_all, net, blitz_tcp_write_all_future_init(&w->f.net, w->t[0], "hello", 5))
T_NET_INIT(writev, pieces,
           blitz_tcp_writev_future_init(&w->f.pieces, w->t[0], t_net_pieces(w, "hello"), 2))
T_NET_INIT(writable, net, blitz_tcp_wait_future_init(&w->f.net, w->t[0], BLITZ_WRITABLE))
T_NET_INIT(send_fds, message,
           blitz_unix_send_fds_future_init(&w->f.message, w->t[0], "hello", 5, w->raw, 2))
T_NET_INIT(send, net, blitz_udp_send_future_init(&w->f.net, w->u[0], "one", 3))
T_NET_INIT(send_many, net,
           blitz_udp_send_many_future_init(&w->f.net, w->u[0], t_net_datagrams(w, 3), 2))
T_NET_INIT(fd_write, net, blitz_fd_wait_future_init(&w->f.net, w->raw[0], BLITZ_FD_WRITE))

/* clang-format off */
static const struct t_net_op t_net_ops[] = {
    {"read", t_net_nothing, t_net_init_read, t_net_hello, t_net_check_read, t_net_close_in, false},
    {"peek", t_net_nothing, t_net_init_peek, t_net_hello, t_net_check_peek, t_net_close_in, false},
    {"read_exact", t_net_nothing, t_net_init_exact, t_net_hello, t_net_check_exact, t_net_close_in, false},
    {"readv", t_net_nothing, t_net_init_readv, t_net_hello, t_net_check_read, t_net_close_in, false},
    {"wait, readable", t_net_nothing, t_net_init_readable, t_net_hello, t_net_check_wait, t_net_close_in, false},
    {"recv_fds", t_net_nothing, t_net_init_recv_fds, t_net_descriptors, t_net_check_recv_fds, t_net_close_in, false},
    {"recv", t_net_nothing, t_net_init_recv, t_net_packets, t_net_check_recv, t_net_close_packets_in, false},
    {"recv_from", t_net_nothing, t_net_init_recv_from, t_net_packets, t_net_check_recv_from, t_net_close_packets_in, false},
    {"recv_many", t_net_nothing, t_net_init_recv_many, t_net_packets, t_net_check_recv_many, t_net_close_packets_in, false},
    {"accept", t_net_nothing, t_net_init_accept, t_net_client, t_net_check_accept, t_net_close_listener, true},
    {"fd_wait, readable", t_net_nothing, t_net_init_fd_read, t_net_raw_hello, t_net_check_raw, NULL, true},
    {"write", t_net_fill, t_net_init_write, t_net_drain, t_net_check_write, t_net_close_out, false},
    {"write_all", t_net_fill, t_net_init_write_all, t_net_drain, t_net_check_write_all, t_net_close_out, false},
    {"writev", t_net_fill, t_net_init_writev, t_net_drain, t_net_check_write, t_net_close_out, false},
    {"wait, writable", t_net_fill, t_net_init_writable, t_net_drain, t_net_check_writable, t_net_close_out, false},
    {"send_fds", t_net_fill, t_net_init_send_fds, t_net_drain, t_net_check_send_fds, t_net_close_out, false},
    {"send", t_net_fill_packets, t_net_init_send, t_net_drain_packets, t_net_check_send, t_net_close_packets_out, false},
    {"send_many", t_net_fill_packets, t_net_init_send_many, t_net_drain_packets, t_net_check_send_many, t_net_close_packets_out, false},
    {"fd_wait, writable", t_net_fill_raw, t_net_init_fd_write, t_net_drain_raw, t_net_check_raw_room, NULL, true},
};
/* clang-format on */

#endif
