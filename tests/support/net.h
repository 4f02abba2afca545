/*
 * net.h - connections to test with: loopback only, ports that the system chooses.
 */
#ifndef T_NET_H
#define T_NET_H

#include "harness.h"

#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "blitz.h"
#include "blitz/tcp.h"
#include "net/socket.h"
#include "task/task.h"

static inline blitz_tcp_listener *t_listen(blitz_addr *at)
{
    blitz_tcp_listener *l;
    blitz_addr any_port = blitz_addr_loopback_v4(0);
    CHECK_EQ(blitz_tcp_listen(&any_port, NULL, &l), 0);
    CHECK_EQ(blitz_tcp_listener_local(l, at), 0);
    CHECK_NE(blitz_addr_port(at), 0);
    return l;
}

/* Two ends of one connection: the connecting and the accepted one. */
static inline void t_tcp_pair(blitz_tcp *end[2])
{
    blitz_addr at;
    blitz_tcp_listener *l = t_listen(&at);
    CHECK_EQ(blitz_tcp_connect(&at, &end[0], blitz_after(10 * BLITZ_S)), 0);
    CHECK_EQ(blitz_tcp_accept(l, &end[1], NULL, blitz_after(10 * BLITZ_S)), 0);
    blitz_tcp_listener_close(l);
}

static inline void t_close_both(blitz_tcp *end[2])
{
    blitz_tcp_close(end[0]);
    blitz_tcp_close(end[1]);
}

/* Write until there is no room. Returns how many bytes went. */
static inline uint64_t t_fill(blitz_tcp *t)
{
    static const char zeros[65536];
    uint64_t sum = 0;
    for (int64_t n; (n = blitz_tcp_try_write(t, zeros, sizeof zeros)) != -EAGAIN;
         sum += (uint64_t)n)
        CHECK_GT(n, 0);
    return sum;
}

/* Open descriptors of this process. While a runtime exists, its backends use descriptors, and a
 * backend opens when its proc first needs it: compare the counts before and after a run, not
 * within. */
static inline unsigned t_open_fds(void)
{
    unsigned n = 0;
    DIR *d = opendir("/proc/self/fd");
    CHECK_NOT_NULL(d);
    while (readdir(d) != NULL)
        n++;
    closedir(d);
    return n;
}

/* Open sockets of this process; backends use none. */
static inline unsigned t_open_sockets(void)
{
    unsigned n = 0;
    char what[64];
    DIR *d = opendir("/proc/self/fd");
    CHECK_NOT_NULL(d);
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        ssize_t bytes = readlinkat(dirfd(d), e->d_name, what, sizeof what);
        n += bytes > 7 && memcmp(what, "socket:", 7) == 0;
    }
    closedir(d);
    return n;
}

/* The number of connections in a listener's backlog, and whether one more is accepted. */
static inline unsigned t_in_line(blitz_tcp_listener *l, bool *is_full)
{
    struct tcp_info info = {0};
    socklen_t bytes = sizeof info;
    int fd = ((struct bz_socket *)l)->file->fd;
    CHECK_EQ(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &bytes), 0);
    if (bytes < offsetof(struct tcp_info, tcpi_sacked) + sizeof info.tcpi_sacked)
        t_skip("TCP_INFO has no more than %u bytes here", (unsigned)bytes); /* qemu-user: 4 */
    *is_full = info.tcpi_unacked > info.tcpi_sacked; /* its line, and how long that may be */
    return info.tcpi_unacked;
}

/* Connect to a listener until its line is full, which takes `room` at most. Returns how many do. */
static inline int t_fill_line(blitz_tcp_listener *l, blitz_tcp **out, int room)
{
    blitz_addr at;
    int n = 0;
    CHECK_EQ(blitz_tcp_listener_local(l, &at), 0);
    for (bool is_full = false; !is_full; n++) {
        CHECK_LT(n, room);
        CHECK_EQ(blitz_tcp_connect(&at, &out[n], blitz_after(20 * BLITZ_S)), 0);
        while (t_in_line(l, &is_full) <= (unsigned)n)
            blitz_yield(); /* it is connected, and not yet in the backlog */
    }
    return n;
}

static inline blitz_task *t_spawn(int (*fn)(void *), void *arg)
{
    blitz_task *t;
    CHECK_EQ(blitz_spawn(fn, arg, NULL, &t), 0);
    return t;
}

static inline int t_join(blitz_task *t)
{
    int result = -1;
    CHECK_EQ(blitz_task_join(t, &result, BLITZ_FOREVER), 0);
    return result;
}

/* Return once the task waits for something. */
static inline void t_until_waits(blitz_task *t)
{
    while (bz_load_acquire(&((struct bz_task *)t)->wait) == 0) /* acquire: it is what we wait for */
        blitz_yield();
}

#endif
