/*
 * net.h - sockets: user-space instructions of one operation. The peer is a plain descriptor, used
 * by direct system calls on the same thread, so that its cost is a few instructions a round. (The C library's
 * send and recv are cancellation points: 60 instructions each, which a user of blitz does not pay.)
 */
#ifndef BENCH_BUDGET_NET_H
#define BENCH_BUDGET_NET_H

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "budget/budget.h"

/* One message of the peer. Returns bytes, or less than 0. */
static inline long peer_call(long number, int fd, void *data, size_t bytes)
{
#if defined(__x86_64__) && !defined(__ILP32__)
    register long r10 __asm__("r10") = 0, r8 __asm__("r8") = 0, r9 __asm__("r9") = 0;
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"((long)fd), "S"(data), "d"(bytes), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
#else
    return number == SYS_sendto ? send(fd, data, bytes, 0) : recv(fd, data, bytes, 0);
#endif
}

static inline void peer_send(int fd, void *data, size_t bytes)
{
    must(peer_call(SYS_sendto, fd, data, bytes), "send");
}

static inline void peer_recv(int fd, void *data, size_t bytes)
{
    must(peer_call(SYS_recvfrom, fd, data, bytes), "recv");
}

struct pair {
    blitz_tcp *ours;
    int peer;
};

/* A connection over the loopback, not a socket pair: a short read of a Unix stream proves nothing
 * (io/ready.c), so each read of one would make a second call. */
static struct pair pair_new(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof at;
    int one = 1, l = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct pair p = {.peer = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    if (bind(l, (struct sockaddr *)&at, sizeof at) != 0 || listen(l, 1) != 0 ||
        getsockname(l, (struct sockaddr *)&at, &bytes) != 0 ||
        connect(p.peer, (struct sockaddr *)&at, sizeof at) != 0 ||
        setsockopt(p.peer, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) != 0)
        budget_die("no connection");
    int ours = accept4(l, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    must(blitz_tcp_adopt(ours, &p.ours), "adopt");
    close(l);
    return p;
}

static void pair_end(struct pair *p)
{
    blitz_tcp_unref(p->ours);
    close(p->peer);
}

static void write_message(uint64_t rounds)
{
    struct pair p = pair_new();
    char data[64] = "message";
    for (; rounds > 0; rounds--) {
        must(blitz_tcp_write(p.ours, data, sizeof data, BLITZ_FOREVER), "write");
        peer_recv(p.peer, data, sizeof data);
    }
    pair_end(&p);
}

static void read_ready(uint64_t rounds)
{
    struct pair p = pair_new();
    char data[64] = "message";
    for (; rounds > 0; rounds--) {
        peer_send(p.peer, data, sizeof data);
        must(blitz_tcp_read(p.ours, data, sizeof data, BLITZ_FOREVER), "read");
    }
    pair_end(&p);
}

static void read_exact(uint64_t rounds)
{
    struct pair p = pair_new();
    char data[64] = "message";
    for (; rounds > 0; rounds--) {
        peer_send(p.peer, data, sizeof data);
        must(blitz_tcp_read_exact(p.ours, data, sizeof data, NULL, BLITZ_FOREVER), "read");
    }
    pair_end(&p);
}

/* A reader's buffer is larger than a message, as in a server: a read that fills its buffer is followed by another
 * call, which finds the stream empty. */
enum { ROOM = 256 };

/* 64 readers that wait in every round. The peers send to all; the last reader to go on wakes the
 * sender. One round is one read. */
enum { CONNECTIONS = 64 };
static struct pair pairs[CONNECTIONS];
static blitz_notify all_read = BLITZ_NOTIFY_INIT;
static unsigned reads_left;

static int read_often(void *arg)
{
    struct pair *p = arg;
    char data[ROOM];
    while (blitz_tcp_read(p->ours, data, sizeof data, BLITZ_FOREVER) > 0)
        if (--reads_left == 0)
            blitz_notify_one(&all_read);
    return 0;
}

static int echo_often(void *arg)
{
    struct pair *p = arg;
    char data[ROOM];
    int64_t n;
    while ((n = blitz_tcp_read(p->ours, data, sizeof data, BLITZ_FOREVER)) > 0) {
        must(blitz_tcp_write(p->ours, data, (size_t)n, BLITZ_FOREVER), "write");
        if (--reads_left == 0)
            blitz_notify_one(&all_read);
    }
    return 0;
}

static void drive(uint64_t rounds, int (*serve)(void *), bool answers)
{
    blitz_task *t[CONNECTIONS];
    char data[64] = "message";
    for (int i = 0; i < CONNECTIONS; i++) {
        pairs[i] = pair_new();
        t[i] = spawn(serve, &pairs[i]);
    }
    for (uint64_t turn = rounds / CONNECTIONS; turn > 0; turn--) {
        reads_left = CONNECTIONS;
        for (int i = 0; i < CONNECTIONS; i++)
            peer_send(pairs[i].peer, data, sizeof data);
        must(blitz_notify_wait(&all_read, BLITZ_FOREVER), "wait");
        for (int i = 0; answers && i < CONNECTIONS; i++)
            peer_recv(pairs[i].peer, data, sizeof data);
    }
    for (int i = 0; i < CONNECTIONS; i++) {
        shutdown(pairs[i].peer, SHUT_WR);
        join(t[i]);
        pair_end(&pairs[i]);
    }
}

static void read_waits(uint64_t rounds)
{
    drive(rounds, read_often, false);
}

static void echo_64(uint64_t rounds)
{
    drive(rounds, echo_often, true);
}

/* A connection that waits to be accepted is accepted, and closed. */
static void accept_close(uint64_t rounds)
{
    blitz_tcp_listener *l;
    blitz_addr at = blitz_addr_loopback_v4(0);
    must(blitz_tcp_listen(&at, NULL, &l), "listen");
    must(blitz_tcp_listener_local(l, &at), "local");
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons(blitz_addr_port(&at)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    for (; rounds > 0; rounds--) {
        struct linger reset = {1, 0};
        blitz_tcp *c;
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof to) != 0 ||
            setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset) != 0)
            budget_die("no connection");
        must(blitz_tcp_accept(l, &c, NULL, BLITZ_FOREVER), "accept");
        close(fd); /* by a reset: no port lingers */
        blitz_tcp_close(c);
    }
    blitz_tcp_listener_close(l);
}

static void udp(uint64_t rounds)
{
    blitz_udp *a, *b;
    blitz_addr at = blitz_addr_loopback_v4(0), to;
    char data[64] = "message";
    must(blitz_udp_bind(&at, NULL, &a), "bind");
    must(blitz_udp_bind(&at, NULL, &b), "bind");
    must(blitz_udp_local(b, &to), "local");
    for (; rounds > 0; rounds--) {
        must(blitz_udp_send_to(a, data, sizeof data, &to, BLITZ_FOREVER), "send");
        must(blitz_udp_recv_from(b, data, sizeof data, &at, BLITZ_FOREVER), "recv");
    }
    blitz_udp_unref(a);
    blitz_udp_unref(b);
}

/* clang-format off */
#define BUDGET_NET                                                                           \
    {"tcp write", write_message}, {"tcp read, ready", read_ready},                           \
    {"tcp read exact, ready", read_exact},                                                   \
    {"tcp read that waits", read_waits}, {"tcp echo, 64 connections", echo_64},              \
    {"tcp accept + close", accept_close}, {"udp send + receive", udp}
/* clang-format on */

#endif
