/* Unix sockets: by path, by abstract name, in pairs; descriptor passing; peer credentials. */
#include "harness.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/compiler.h"
#include "blitz/unix.h"
#include "support/net.h"
#include "support/on_each.h"

static blitz_deadline soon(void)
{
    return blitz_after(20 * BLITZ_S);
}

static int talk_at(const blitz_addr *at)
{
    blitz_tcp_listener *l;
    blitz_tcp *t[2];
    blitz_addr name;
    char c;
    CHECK_EQ(blitz_tcp_listen(at, NULL, &l), 0);
    CHECK_EQ(blitz_tcp_listener_local(l, &name), 0);
    CHECK(blitz_addr_is_equal(&name, at));
    CHECK_EQ(blitz_tcp_connect(at, &t[0], soon()), 0);
    CHECK_EQ(blitz_tcp_accept(l, &t[1], &name, soon()), 0);
    CHECK(blitz_addr_is_unix(&name));
    CHECK_EQ(blitz_tcp_write(t[0], "x", 1, soon()), 1);
    CHECK_EQ(blitz_tcp_read(t[1], &c, 1, soon()), 1);
    CHECK_EQ(blitz_tcp_peer(t[0], &name), 0);
    CHECK(blitz_addr_is_equal(&name, at));
    CHECK_EQ(blitz_tcp_set_nodelay(t[0], true), -EOPNOTSUPP);
    t_close_both(t);
    blitz_tcp_listener_close(l);
    return 0;
}

static int by_name(void *arg)
{
    blitz_addr at;
    char name[64];
    (void)arg;
    snprintf(name, sizeof name, "blitz-test-%d", (int)getpid());
    CHECK_EQ(blitz_addr_abstract(name, strlen(name), &at), 0);
    CHECK_EQ(talk_at(&at), 0);
    snprintf(name, sizeof name, "%s/blitz-test-%d", "/tmp", (int)getpid());
    (void)unlink(name); /* of one that was killed */
    CHECK_EQ(blitz_addr_unix(name, &at), 0);
    CHECK_EQ(talk_at(&at), 0);
    blitz_tcp_listener *l;
    CHECK_EQ(blitz_tcp_listen(&at, NULL, &l), -EADDRINUSE); /* its file is still there */
    CHECK_EQ(unlink(name), 0);
    CHECK_EQ(blitz_tcp_connect(&at, &(blitz_tcp *){NULL}, soon()), -ENOENT);
    return 0;
}

TEST(unix_socket, streams_by_path_and_by_abstract_name)
{
    CHECK_EQ(blitz_run(by_name, NULL, NULL), 0);
}

static int pairs(void *arg)
{
    blitz_tcp *t[2];
    blitz_udp *u[2];
    blitz_unix_peer peer;
    blitz_addr name;
    char data[8];
    (void)arg;
    CHECK_EQ(blitz_unix_pair(t), 0);
    CHECK_EQ(blitz_tcp_write(t[0], "abc", 3, soon()), 3);
    CHECK_EQ(blitz_tcp_read(t[1], data, sizeof data, soon()), 3);
    CHECK_EQ(blitz_tcp_peer(t[0], &name), 0);
    CHECK(blitz_addr_is_unix(&name) && name.bytes == 0); /* it has none */
    CHECK_EQ(blitz_unix_peer_of(t[0], &peer), 0);
    CHECK_EQ(peer.pid, getpid());
    CHECK_EQ(peer.uid, getuid());
    CHECK_EQ(peer.gid, getgid());
    t_close_both(t);
    t_tcp_pair(t);
    CHECK_EQ(blitz_unix_peer_of(t[0], &peer), -EOPNOTSUPP);
    t_close_both(t);
    CHECK_EQ(blitz_unix_datagram_pair(u), 0);
    CHECK_EQ(blitz_udp_send(u[0], "abc", 3, soon()), 3);
    CHECK_EQ(blitz_udp_send(u[0], "defg", 4, soon()), 4);
    CHECK_EQ(blitz_udp_recv(u[1], data, sizeof data, soon()), 3);
    CHECK_EQ(blitz_udp_recv(u[1], data, sizeof data, soon()), 4);
    blitz_udp_close(u[0]);
    blitz_udp_close(u[1]);
    CHECK_EQ(blitz_unix_pair(NULL), -EINVAL);
    return 0;
}

TEST(unix_socket, pairs_know_each_other)
{
    t_on_each(pairs, NULL, 0);
}

/* ---- descriptors ---- */

static bool is_same_file(int a, int b)
{
    struct stat x, y;
    return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_ino == y.st_ino && x.st_dev == y.st_dev;
}

static int passes_descriptors(void *arg)
{
    blitz_tcp *t[2];
    int fd[3], got[2] = {-1, -1};
    size_t count = 2;
    char data[8];
    (void)arg;
    CHECK_EQ(blitz_unix_pair(t), 0);
    for (int i = 0; i < 3; i++)
        fd[i] = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    CHECK_EQ(blitz_tcp_read(t[1], data, 1, blitz_after(BLITZ_MS)), -ETIMEDOUT);
    unsigned open_before = t_open_fds(); /* the backend's descriptors are open */
    CHECK_EQ(blitz_unix_send_fds(t[0], "ab", 2, fd, 2, soon()), 2);
    CHECK_EQ(blitz_unix_recv_fds(t[1], data, sizeof data, got, &count, soon()), 2);
    CHECK_EQ(count, 2u);
    CHECK(is_same_file(got[0], fd[0]) && is_same_file(got[1], fd[1]));
    CHECK(fcntl(got[0], F_GETFD) & FD_CLOEXEC);
    close(got[0]);
    close(got[1]);

    /* Three descriptors arrive, there is room for one: the others are closed, and that is
     * reported. */
    count = 1;
    CHECK_EQ(blitz_unix_send_fds(t[0], "c", 1, fd, 3, soon()), 1);
    CHECK_EQ(blitz_unix_recv_fds(t[1], data, sizeof data, got, &count, soon()), 1);
    CHECK_EQ(count, 3u);
    close(got[0]);
    CHECK_EQ(t_open_fds(), open_before);

    /* None came, or nothing at all. */
    count = 2;
    CHECK_EQ(blitz_tcp_write(t[0], "d", 1, soon()), 1);
    CHECK_EQ(blitz_unix_recv_fds(t[1], data, sizeof data, got, &count, soon()), 1);
    CHECK_EQ(count, 0u);
    count = 2;
    CHECK_EQ(blitz_unix_recv_fds(t[1], data, 1, got, &count, blitz_after(BLITZ_MS)), -ETIMEDOUT);
    CHECK_EQ(count, 0u);
    count = 2;
    CHECK_EQ(blitz_unix_recv_fds(t[1], data, 0, got, &count, 0), -EINVAL);
    CHECK_EQ(blitz_unix_send_fds(t[0], "", 0, fd, 1, 0), -EINVAL);
    CHECK_EQ(blitz_unix_send_fds(t[0], "x", 1, fd, BLITZ_UNIX_FDS_MAX + 1, 0), -EINVAL);
    for (int i = 0; i < 3; i++)
        close(fd[i]);
    t_close_both(t);
    return 0;
}

TEST(unix_socket, descriptors_travel_and_none_is_left_behind)
{
    CHECK_EQ(blitz_run(passes_descriptors, NULL, &(blitz_runtime_opts){.procs = 1}), 0);
}

/* The system ends a read behind the bytes that descriptors came with: it is short, and the stream is not empty. */
static int bytes_behind_descriptors(void *arg)
{
    blitz_tcp *t[2];
    int got[2];
    char data[8];
    (void)arg;
    CHECK_EQ(blitz_unix_pair(t), 0);
    CHECK_EQ(blitz_tcp_read(t[1], data, 1, blitz_after(BLITZ_MS)), -ETIMEDOUT); /* it is known */
    for (int i = 0; i < 2; i++) {
        size_t count = 2;
        CHECK_EQ(blitz_unix_send_fds(t[0], "ab", 2, (int[]){0}, 1, soon()), 2);
        CHECK_EQ(blitz_tcp_write(t[0], "cde", 3, soon()), 3);
        if (i == 0) {
            CHECK_EQ(blitz_unix_recv_fds(t[1], data, sizeof data, got, &count, soon()), 2);
            CHECK_EQ(count, 1u);
            close(got[0]);
        } else { /* a plain read gets no descriptors, but all bytes */
            CHECK_EQ(blitz_tcp_read(t[1], data, sizeof data, soon()), 2);
        }
        CHECK_EQ(blitz_tcp_read(t[1], data, sizeof data, soon()), 3);
        CHECK_MEM_EQ(data, "cde", 3);
    }
    t_close_both(t);
    return 0;
}

TEST(unix_socket, bug_13_a_short_read_with_descriptors_leaves_the_rest_to_be_read)
{
    t_on_each(bytes_behind_descriptors, NULL, 0);
}

/* A listener with a full backlog: the connect waits for room, although there is no event. */
static int connects(void *arg)
{
    blitz_tcp *t;
    int err = blitz_tcp_connect(arg, &t, soon());
    if (err == 0)
        blitz_tcp_close(t);
    return err;
}

static int full_line(void *arg)
{
    enum { MORE = 10 };
    blitz_tcp_listener *l;
    blitz_tcp *t, *first[MORE];
    blitz_task *task[MORE];
    blitz_addr at;
    char name[64];
    int n = 0;
    (void)arg;
    snprintf(name, sizeof name, "blitz-line-%d", (int)getpid());
    CHECK_EQ(blitz_addr_abstract(name, strlen(name), &at), 0);
    CHECK_EQ(blitz_tcp_listen(&at, &(blitz_tcp_listen_opts){.backlog = 1}, &l), 0);
    while (n < MORE && blitz_tcp_connect(&at, &first[n], blitz_after(20 * BLITZ_MS)) == 0)
        n++;
    CHECK_LT(n, (int)MORE);
    for (int i = 0; i < MORE; i++) {
        task[i] = t_spawn(connects, &at);
        t_until_waits(task[i]);
    }
    for (int i = 0; i < MORE + n; i++) {
        CHECK_EQ(blitz_tcp_accept(l, &t, NULL, soon()), 0);
        blitz_tcp_close(t);
    }
    for (int i = 0; i < MORE; i++)
        CHECK_EQ(t_join(task[i]), 0);
    while (n > 0)
        blitz_tcp_close(first[--n]);
    blitz_tcp_listener_close(l);
    return 0;
}

TEST(unix_socket, a_connect_to_a_full_backlog_is_retried)
{
    CHECK_EQ(blitz_run(full_line, NULL, &(blitz_runtime_opts){.procs = 2}), 0);
}
