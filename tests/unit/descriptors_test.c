/* Descriptors of blitz are close-on-exec: they do not leak into child programs. */
#include "harness.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "blitz/unix.h"
#include "io/ring.h"
#include "support/net.h"

enum { FDS = 256 };

/* Bit i: descriptor i is open, and stays open in a program that is started. */
static void look(bool inherited[FDS])
{
    for (int fd = 0; fd < FDS; fd++) {
        int flags = fcntl(fd, F_GETFD);
        inherited[fd] = flags >= 0 && (flags & FD_CLOEXEC) == 0;
    }
}

static int opened(void)
{
    int n = 0;
    for (int fd = 0; fd < FDS; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

/* Descriptors that came over a socket are ours, too. */
static int pass_one(void)
{
    blitz_tcp *pair[2];
    int out = dup(0), in = -1; /* one that is inherited */
    size_t count = 1;
    char byte = 'x';
    CHECK_EQ(blitz_unix_pair(pair), 0);
    CHECK_EQ(blitz_unix_send_fds(pair[0], &byte, 1, &out, 1, BLITZ_FOREVER), 1);
    close(out);
    CHECK_EQ(blitz_unix_recv_fds(pair[1], &byte, 1, &in, &count, BLITZ_FOREVER), 1);
    CHECK_EQ(count, 1u);
    t_close_both(pair);
    return in;
}

static blitz_udp *datagrams(void)
{
    blitz_udp *u;
    blitz_addr any_port = blitz_addr_loopback_v4(0);
    char byte;
    CHECK_EQ(blitz_udp_bind(&any_port, NULL, &u), 0);
    CHECK_EQ(blitz_udp_recv(u, &byte, 1, blitz_after(BLITZ_MS)), -ETIMEDOUT);
    return u;
}

/* One of each kind, waited for, so that the backends are open as well. */
static int opens_all_there_is(void *arg)
{
    blitz_tcp *end[2], *adopted;
    blitz_udp *pair[2];
    blitz_addr at;
    char byte;
    bool *inherited = arg;
    int before = opened();
    blitz_tcp_listener *l = t_listen(&at);
    t_tcp_pair(end);
    CHECK_EQ(blitz_tcp_read(end[0], &byte, 1, blitz_after(BLITZ_MS)), -ETIMEDOUT);
    blitz_udp *u = datagrams();
    CHECK_EQ(blitz_unix_datagram_pair(pair), 0);
    int passed = pass_one();
    blitz_fd released;
    CHECK_EQ(blitz_tcp_release(end[1], &released), 0);
    CHECK_EQ(blitz_tcp_adopt(released, &adopted), 0);
    t_note("%d descriptors", opened() - before);
    CHECK_GE(opened() - before, 7);
    look(inherited);
    close(passed);
    blitz_tcp_close(adopted);
    blitz_tcp_close(end[0]);
    blitz_tcp_listener_close(l);
    blitz_udp_close(u);
    blitz_udp_close(pair[0]);
    blitz_udp_close(pair[1]);
    return 0;
}

static bool has_rings(void)
{
    struct bz_ring r;
    if (bz_ring_open(&r, 2, 4) != 0)
        return false;
    bz_ring_close(&r);
    return true;
}

static void with_keeper(const char *io)
{
    bool before[FDS], within[FDS];
    t_watch("keeper %s", io);
    look(before);
    CHECK_EQ(blitz_run(opens_all_there_is, within, &(blitz_runtime_opts){.procs = 2, .io = io}), 0);
    for (int fd = 0; fd < FDS; fd++)
        if (within[fd] && !before[fd])
            FAIL("descriptor %d is inherited", fd);
}

TEST(descriptors, bug_36_none_of_ours_is_left_open_by_an_exec)
{
    with_keeper("epoll");
    with_keeper("poll");
    if (has_rings())
        with_keeper("uring");
}
