/* Streams over the network: data, waits and their ends. */
#include "harness.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/compiler.h"
#include "blitz/unix.h"
#include "support/net.h"
#include "support/on_each.h"

static blitz_deadline soon(void)
{
    return blitz_after(20 * BLITZ_S); /* a test that waits so long has failed */
}

/* ---- bytes ---- */

static int echo(void *arg)
{
    blitz_tcp *t = arg;
    char buffer[1000];
    int64_t n;
    while ((n = blitz_tcp_read(t, buffer, sizeof buffer, soon())) > 0)
        CHECK_EQ(blitz_tcp_write_all(t, buffer, (size_t)n, NULL, soon()), 0);
    blitz_tcp_close(t);
    return (int)n;
}

static int talk(void *arg)
{
    blitz_tcp *end[2];
    char in[300], out[300];
    (void)arg;
    t_tcp_pair(end);
    blitz_task *server = t_spawn(echo, end[1]);
    for (int i = 0; i < 20; i++) {
        size_t done = 0;
        memset(out, i, sizeof out);
        CHECK_EQ(blitz_tcp_write_all(end[0], out, sizeof out, &done, soon()), 0);
        CHECK_EQ(done, sizeof out);
        CHECK_EQ(blitz_tcp_read_exact(end[0], in, sizeof in, &done, soon()), 0);
        CHECK_EQ(done, sizeof in);
        CHECK_MEM_EQ(in, out, sizeof in);
    }
    CHECK_EQ(blitz_tcp_shutdown(end[0], BLITZ_WRITABLE), 0);
    CHECK_EQ(blitz_tcp_read(end[0], in, 1, soon()), 0); /* the end came round */
    CHECK_EQ(t_join(server), 0);
    blitz_tcp_close(end[0]);
    return 0;
}

TEST(tcp, written_bytes_are_read)
{
    t_on_each(talk, NULL, 0);
}

static int pieces(void *arg)
{
    blitz_tcp *end[2];
    char a[2], b[3], rest[8], ab[] = "ab", more[] = "cdefg";
    (void)arg;
    t_tcp_pair(end);
    const blitz_piece out[] = {{ab, 2}, {NULL, 0}, {more, 5}};
    const blitz_piece in[] = {{a, sizeof a}, {b, sizeof b}};
    CHECK_EQ(blitz_tcp_writev(end[0], out, 3, soon()), 7);
    CHECK_EQ(blitz_tcp_peek(end[1], rest, 3, soon()), 3); /* and they stay */
    CHECK_MEM_EQ(rest, "abc", 3);
    CHECK_EQ(blitz_tcp_readv(end[1], in, 2, soon()), 5);
    CHECK_MEM_EQ(a, "ab", 2);
    CHECK_MEM_EQ(b, "cde", 3);
    CHECK_EQ(blitz_tcp_read(end[1], rest, sizeof rest, soon()), 2);
    CHECK_MEM_EQ(rest, "fg", 2);
    CHECK_EQ(blitz_tcp_readv(end[1], in, 0, soon()), 0);
    t_close_both(end);
    return 0;
}

TEST(tcp, pieces_are_one_stream)
{
    t_on_each(pieces, NULL, 0);
}

/* ---- waiting ---- */

static int waits(void *arg)
{
    blitz_tcp *end[2];
    char c;
    (void)arg;
    t_tcp_pair(end);
    CHECK_EQ(blitz_tcp_try_read(end[0], &c, 1), -EAGAIN);
    CHECK_EQ(blitz_tcp_read(end[0], &c, 1, 0), -ETIMEDOUT);
    CHECK_EQ(blitz_tcp_read(end[0], &c, 1, blitz_after(BLITZ_MS)), -ETIMEDOUT);
    CHECK_EQ(blitz_tcp_wait(end[0], BLITZ_READABLE, blitz_after(BLITZ_MS)), -ETIMEDOUT);
    CHECK_EQ(blitz_tcp_wait(end[0], BLITZ_WRITABLE, soon()), 0);
    CHECK_EQ(blitz_tcp_write(end[1], "x", 1, soon()), 1);
    CHECK_EQ(blitz_tcp_wait(end[0], BLITZ_READABLE, soon()), 0);
    CHECK_EQ(blitz_tcp_try_read(end[0], &c, 1), 1);
    CHECK_EQ(c, 'x');
    size_t done = 9;
    CHECK_EQ(blitz_tcp_write(end[1], "yz", 2, soon()), 2);
    char three[3];
    CHECK_EQ(blitz_tcp_wait(end[0], BLITZ_READABLE, soon()), 0); /* both have arrived */
    CHECK_EQ(blitz_tcp_read_exact(end[0], three, 3, &done, blitz_after(BLITZ_MS)), -ETIMEDOUT);
    CHECK_EQ(done, 2u);
    blitz_tcp_close(end[1]);
    CHECK_EQ(blitz_tcp_read_exact(end[0], three, 3, &done, soon()), -ENODATA);
    CHECK_EQ(done, 0u);
    blitz_tcp_close(end[0]);
    return 0;
}

TEST(tcp, a_wait_ends_with_its_deadline_and_says_how_far_it_came)
{
    t_on_each(waits, NULL, 0);
}

struct write_call {
    blitz_tcp *tcp;
    size_t bytes, done;
    char *data;
};

static int writes_all(void *arg)
{
    struct write_call *w = arg;
    return blitz_tcp_write_all(w->tcp, w->data, w->bytes, &w->done, BLITZ_FOREVER);
}

static uint64_t drain(blitz_tcp *t)
{
    static char buffer[65536];
    uint64_t sum = 0;
    for (int64_t n; (n = blitz_tcp_read(t, buffer, sizeof buffer, soon())) != 0;) {
        CHECK_GT(n, 0);
        sum += (uint64_t)n;
    }
    return sum;
}

/* A slow reader: the writer writes in parts, and a cancel tells how much of it went. */
static int partial_writes(void *arg)
{
    enum { BYTES = 2 << 20 };
    blitz_tcp *end[2];
    t_tcp_pair(end);
    CHECK_EQ(blitz_tcp_set_buffers(end[0], 10000, 0), 0);
    CHECK_EQ(blitz_tcp_set_buffers(end[1], 0, 65536), 0); /* by itself it may take all of it */
    struct write_call w = {.tcp = end[0], .bytes = BYTES, .data = calloc(1, BYTES)};
    char *into = calloc(1, BYTES);
    blitz_task *writer = t_spawn(writes_all, &w);
    t_until_waits(writer);
    if (arg != NULL)
        blitz_task_cancel(writer);
    else
        CHECK_EQ(blitz_tcp_read_exact(end[1], into, BYTES, NULL, soon()), 0);
    CHECK_EQ(t_join(writer), arg != NULL ? -ECANCELED : 0);
    if (arg != NULL) {
        CHECK_GT(w.done, 0u);
        CHECK_LT(w.done, (size_t)BYTES);
        CHECK_EQ(blitz_tcp_shutdown(end[0], BLITZ_WRITABLE), 0);
        CHECK_EQ(drain(end[1]), w.done);
    } else {
        CHECK_EQ(w.done, (size_t)BYTES);
    }
    free(w.data);
    free(into);
    t_close_both(end);
    return 0;
}

TEST(tcp, a_slow_reader_gets_it_all_in_parts)
{
    t_on_each(partial_writes, NULL, 0);
}

TEST(tcp, bug_21_a_cancelled_write_says_how_much_was_written)
{
    t_on_each(partial_writes, &(char){1}, 0);
}

static int reads_a_byte(void *arg)
{
    char c;
    return (int)blitz_tcp_read(arg, &c, 1, BLITZ_FOREVER);
}

static int reads_once_it_is_cancelled(void *arg)
{
    while (!blitz_is_cancelled())
        blitz_yield();
    return reads_a_byte(arg);
}

/* Readers without a deadline: one is cancelled before its wait, one in it, and the others share what comes. */
static int cancelled_readers(void *arg)
{
    enum { READERS = 4 };
    blitz_tcp *end[2];
    blitz_task *reader[READERS];
    (void)arg;
    t_tcp_pair(end);
    char none;
    CHECK_EQ(blitz_tcp_read(end[0], &none, 1, blitz_after(BLITZ_MS)), -ETIMEDOUT); /* it is empty */
    blitz_task *early = t_spawn(reads_once_it_is_cancelled, end[0]);
    blitz_task_cancel(early);
    CHECK_EQ(t_join(early), -ECANCELED);
    for (int i = 0; i < READERS; i++) {
        reader[i] = t_spawn(reads_a_byte, end[0]);
        t_until_waits(reader[i]);
    }
    blitz_task_cancel(reader[1]);
    CHECK_EQ(t_join(reader[1]), -ECANCELED);
    CHECK_EQ(blitz_tcp_write(end[1], "ab", 2, soon()), 2); /* one edge for two readers */
    CHECK_EQ(t_join(reader[0]), 1);
    CHECK_EQ(t_join(reader[2]), 1);
    blitz_tcp_close(end[1]);
    CHECK_EQ(t_join(reader[3]), 0);
    blitz_tcp_close(end[0]);
    return 0;
}

TEST(tcp, bug_21_a_cancelled_reader_leaves_the_bytes_to_the_others)
{
    t_on_each(cancelled_readers, NULL, 0);
}

/* ---- closing ---- */

static int close_under_readers(void *arg)
{
    enum { READERS = 5 };
    blitz_tcp *end[2];
    blitz_task *reader[READERS];
    char c;
    (void)arg;
    t_tcp_pair(end);
    for (int i = 0; i < READERS; i++) {
        reader[i] = t_spawn(reads_a_byte, end[0]);
        t_until_waits(reader[i]);
    }
    blitz_tcp *kept = blitz_tcp_ref(end[0]);
    blitz_tcp_close(end[0]);
    for (int i = 0; i < READERS; i++)
        CHECK_EQ(t_join(reader[i]), -EBADF);
    CHECK_EQ(blitz_tcp_read(end[1], &c, 1, soon()), 0); /* the peer has seen the end */
    CHECK_EQ(blitz_tcp_read(kept, &c, 1, soon()), -EBADF);
    CHECK_EQ(blitz_tcp_write(kept, &c, 1, soon()), -EBADF);
    CHECK_EQ(blitz_tcp_set_nodelay(kept, true), -EBADF);
    CHECK_EQ(blitz_tcp_shutdown(kept, BLITZ_WRITABLE), -EBADF);
    CHECK_EQ(blitz_tcp_error(kept), -EBADF);
    blitz_tcp_close(kept);
    blitz_tcp_close(end[1]);
    return 0;
}

/* liburing#932: close() does not end what is under way, and the peer never sees the end. */
TEST(tcp, bug_16_close_ends_pending_operations_and_the_peer_sees_it)
{
    t_on_each(close_under_readers, NULL, 0);
}

/* The table slot and the descriptor number are reused by the next connection at once; an old handle
 * never reaches it. */
static int reuse(void *arg)
{
    blitz_tcp *old[2], *new[2];
    char c;
    (void)arg;
    for (int i = 0; i < 50; i++) {
        t_tcp_pair(old);
        blitz_task *reader = t_spawn(reads_a_byte, old[0]);
        t_until_waits(reader);
        blitz_tcp *kept = blitz_tcp_ref(old[0]);
        blitz_tcp_close(old[0]);
        CHECK_EQ(t_join(reader), -EBADF);
        CHECK_EQ(blitz_unix_pair(new), 0); /* one of them has its place now */
        CHECK_EQ(blitz_tcp_write(kept, "x", 1, soon()), -EBADF);
        CHECK_EQ(blitz_tcp_try_read(new[1], &c, 1), -EAGAIN);
        CHECK_EQ(blitz_tcp_write(new[1], "y", 1, soon()), 1);
        CHECK_EQ(blitz_tcp_read(kept, &c, 1, soon()), -EBADF);
        CHECK_EQ(blitz_tcp_read(new[0], &c, 1, soon()), 1);
        CHECK_EQ(c, 'y');
        blitz_tcp_unref(kept);
        blitz_tcp_close(old[1]);
        t_close_both(new);
    }
    return 0;
}

TEST(tcp, bug_14_a_handle_never_reaches_the_next_user_of_its_slot)
{
    t_on_each(reuse, NULL, 0);
}

/* A descriptor that was closed behind our back and made to be another one by dup2: state of the
 * backend for the old one must not affect the new one. */
static int dup2_in_between(void *arg)
{
    blitz_tcp *a[2], *b[2];
    char c;
    (void)arg;
    for (int i = 0; i < 20; i++) {
        t_tcp_pair(a);
        t_tcp_pair(b);
        CHECK_EQ(blitz_tcp_read(a[0], &c, 1, blitz_after(BLITZ_MS)), -ETIMEDOUT); /* it is known */
        blitz_fd fd, other;
        CHECK_EQ(blitz_tcp_release(a[0], &fd), 0);
        CHECK_EQ(blitz_tcp_release(b[0], &other), 0);
        CHECK_EQ(blitz_tcp_write(a[1], "a", 1, soon()), 1); /* the old one becomes readable */
        CHECK_EQ(dup2(other, fd), fd);
        CHECK_EQ(blitz_tcp_adopt(fd, &a[0]), 0);
        CHECK_EQ(blitz_tcp_read(a[0], &c, 1, blitz_after(BLITZ_MS)), -ETIMEDOUT);
        CHECK_EQ(blitz_tcp_write(b[1], "b", 1, soon()), 1);
        CHECK_EQ(blitz_tcp_read(a[0], &c, 1, soon()), 1);
        CHECK_EQ(c, 'b');
        close(other);
        t_close_both(a);
        blitz_tcp_close(b[1]);
    }
    return 0;
}

TEST(tcp, bug_14_a_descriptor_replaced_by_dup2_gets_no_old_event)
{
    t_on_each(dup2_in_between, NULL, 0);
}

/* A read ends before urgent data, which is not in the stream: it is short, and the stream is not empty. */
static int urgent(void *arg)
{
    blitz_tcp *end[2];
    char data[8];
    int on_its_way = 1;
    (void)arg;
    t_tcp_pair(end);
    CHECK_EQ(blitz_tcp_read(end[0], data, 1, blitz_after(BLITZ_MS)), -ETIMEDOUT); /* it is known */
    blitz_fd fd;
    CHECK_EQ(blitz_tcp_release(end[1], &fd), 0);
    CHECK_EQ(send(fd, "abc", 3, 0), 3);
    CHECK_EQ(send(fd, "!", 1, MSG_OOB), 1);
    CHECK_EQ(send(fd, "de", 2, 0), 2);
    while (on_its_way > 0) { /* until all of it is there: one edge */
        CHECK_EQ(ioctl(fd, TIOCOUTQ, &on_its_way), 0);
        sched_yield();
    }
    CHECK_EQ(blitz_tcp_read(end[0], data, sizeof data, soon()), 3);
    CHECK_EQ(blitz_tcp_read(end[0], data, sizeof data, soon()), 2);
    CHECK_MEM_EQ(data, "de", 2);
    CHECK_EQ(blitz_tcp_read(end[0], data, sizeof data, blitz_after(BLITZ_MS)), -ETIMEDOUT);
    close(fd);
    blitz_tcp_close(end[0]);
    return 0;
}

TEST(tcp, bug_13_bytes_behind_urgent_data_are_read)
{
    t_on_each(urgent, NULL, 0);
}

/* ---- halves ---- */

static int split(void *arg)
{
    blitz_tcp *end[2], *reader, *writer;
    char c;
    (void)arg;
    t_tcp_pair(end);
    CHECK_EQ(blitz_tcp_split(end[0], &reader, &writer), 0);
    CHECK_EQ(blitz_tcp_read(writer, &c, 1, soon()), -EBADF);
    CHECK_EQ(blitz_tcp_write(reader, &c, 1, soon()), -EBADF);
    CHECK_EQ(blitz_tcp_wait(writer, BLITZ_READABLE, soon()), -EBADF);
    CHECK_EQ(blitz_tcp_split(reader, &reader, &writer), -EINVAL);
    CHECK_EQ(blitz_tcp_write(writer, "x", 1, soon()), 1);
    blitz_tcp_close(writer);
    CHECK_EQ(blitz_tcp_read(end[1], &c, 1, soon()), 1);
    CHECK_EQ(blitz_tcp_read(end[1], &c, 1, soon()), 0); /* its end */
    CHECK_EQ(blitz_tcp_write(end[1], "y", 1, soon()), 1);
    CHECK_EQ(blitz_tcp_read(reader, &c, 1, soon()), 1); /* the other direction continues */
    CHECK_EQ(c, 'y');
    blitz_tcp_close(reader);
    blitz_tcp_close(end[1]);
    return 0;
}

TEST(tcp, halves_end_each_for_itself)
{
    t_on_each(split, NULL, 0);
}

/* ---- connecting ---- */

static int connects(void *arg)
{
    blitz_tcp *t[2];
    blitz_addr at, peer, local;
    int errors[3];
    (void)arg;
    blitz_tcp_listener *l = t_listen(&at), *gone;
    blitz_addr to[3] = {at, at, at};
    gone = t_listen(&to[0]);
    blitz_tcp_listener_close(gone);
    CHECK_EQ(blitz_tcp_connect(&to[0], &t[0], soon()), -ECONNREFUSED);
    CHECK_EQ(blitz_tcp_connect_first(to, 3, errors, &t[0], soon()), 1);
    CHECK_EQ(errors[0], -ECONNREFUSED);
    CHECK_EQ(errors[1], 0);
    CHECK_EQ(errors[2], -EINPROGRESS);
    CHECK_EQ(blitz_tcp_accept(l, &t[1], &peer, soon()), 0);
    CHECK_EQ(blitz_tcp_local(t[0], &local), 0);
    CHECK(blitz_addr_is_equal(&peer, &local));
    CHECK_EQ(blitz_tcp_peer(t[1], &peer), 0);
    CHECK(blitz_addr_is_equal(&peer, &local));
    CHECK_EQ(blitz_tcp_peer(t[0], &peer), 0);
    CHECK(blitz_addr_is_equal(&peer, &at));
    t_close_both(t);
    CHECK_EQ(blitz_tcp_accept(l, &t[0], NULL, blitz_after(BLITZ_MS)), -ETIMEDOUT);
    to[1] = to[0];
    CHECK_EQ(blitz_tcp_connect_first(to, 2, errors, &t[0], soon()), -ECONNREFUSED);
    CHECK_EQ(errors[1], -ECONNREFUSED);
    blitz_tcp_listener_close(l);
    return 0;
}

TEST(tcp, connecting_tells_why_not_and_names_both_ends)
{
    t_on_each(connects, NULL, 0);
}

static int connects_for_ever(void *arg)
{
    blitz_tcp *t;
    return blitz_tcp_connect(arg, &t, BLITZ_FOREVER);
}

/* A listener whose backlog is full does not answer: the connect waits, and leaves nothing
 * behind. */
static int full_line(void *arg)
{
    enum { MORE = 8 };
    blitz_tcp_listener *l;
    blitz_addr at = blitz_addr_loopback_v4(0);
    blitz_tcp *t[MORE];
    (void)arg;
    CHECK_EQ(blitz_tcp_listen(&at, &(blitz_tcp_listen_opts){.backlog = 1}, &l), 0);
    CHECK_EQ(blitz_tcp_listener_local(l, &at), 0);
    int n = t_fill_line(l, t, MORE);
    unsigned sockets = t_open_sockets();
    CHECK_GT(sockets, (unsigned)n);
    CHECK_EQ(blitz_tcp_connect(&at, &(blitz_tcp *){NULL}, blitz_after(BLITZ_MS)), -ETIMEDOUT);
    blitz_task *task = t_spawn(connects_for_ever, &at);
    t_until_waits(task);
    blitz_task_cancel(task);
    CHECK_EQ(t_join(task), -ECANCELED);
    CHECK_EQ(t_open_sockets(), sockets);
    while (n > 0)
        blitz_tcp_close(t[--n]);
    blitz_tcp_listener_close(l);
    return 0;
}

TEST(tcp, a_connect_that_is_given_up_leaves_nothing_open)
{
    CHECK_EQ(blitz_run(full_line, NULL, &(blitz_runtime_opts){.procs = 2}), 0);
}

static int both_families(void *arg)
{
    blitz_addr any, v4, v6, peer;
    blitz_tcp_listener *l;
    blitz_tcp *t[2];
    (void)arg;
    CHECK_EQ(blitz_addr_parse(":0", &any), 0);
    CHECK_EQ(blitz_tcp_listen(&any, NULL, &l), 0);
    CHECK_EQ(blitz_tcp_listener_local(l, &any), 0);
    v4 = blitz_addr_loopback_v4(blitz_addr_port(&any));
    v6 = blitz_addr_loopback_v6(blitz_addr_port(&any));
    CHECK_EQ(blitz_tcp_connect(&v4, &t[0], soon()), 0);
    CHECK_EQ(blitz_tcp_accept(l, &t[1], &peer, soon()), 0);
    CHECK(blitz_addr_is_loopback(&peer));
    t_close_both(t);
    if (blitz_addr_is_v6(&any) && blitz_tcp_connect(&v6, &t[0], soon()) == 0) {
        CHECK_EQ(blitz_tcp_accept(l, &t[1], &peer, soon()), 0);
        CHECK(blitz_addr_is_v6(&peer) && blitz_addr_is_loopback(&peer));
        t_close_both(t);
    }
    blitz_tcp_listener_close(l);
    return 0;
}

TEST(tcp, without_a_host_both_families_are_listened_to)
{
    CHECK_EQ(blitz_run(both_families, NULL, NULL), 0);
}

static int shared_port(void *arg)
{
    blitz_addr at = blitz_addr_loopback_v4(0);
    blitz_tcp_listener *l[3];
    const blitz_tcp_listen_opts shared = {.is_port_shared = true};
    (void)arg;
    CHECK_EQ(blitz_tcp_listen(&at, &shared, &l[0]), 0);
    CHECK_EQ(blitz_tcp_listener_local(l[0], &at), 0);
    CHECK_EQ(blitz_tcp_listen(&at, NULL, &l[2]), -EADDRINUSE);
    CHECK_EQ(blitz_tcp_listen(&at, &shared, &l[1]), 0);
    blitz_tcp_listener_close(l[0]);
    blitz_tcp_listener_close(l[1]);
    return 0;
}

TEST(tcp, a_port_is_shared_on_request)
{
    CHECK_EQ(blitz_run(shared_port, NULL, NULL), 0);
}

/* ---- resets, options, bad input ---- */

static int resets(void *arg)
{
    blitz_tcp *end[2];
    char c;
    (void)arg;
    t_tcp_pair(end);
    CHECK_EQ(blitz_tcp_set_linger(end[1], 0), 0);
    blitz_task *reader = t_spawn(reads_a_byte, end[0]);
    t_until_waits(reader);
    blitz_tcp_close(end[1]);
    CHECK_EQ(t_join(reader), -ECONNRESET);
    CHECK_EQ(blitz_tcp_read(end[0], &c, 1, soon()), 0);
    CHECK_EQ(blitz_tcp_write(end[0], &c, 1, soon()), -EPIPE); /* and no signal */
    CHECK_EQ(blitz_tcp_error(end[0]), 0);
    blitz_tcp_close(end[0]);
    return 0;
}

TEST(tcp, a_reset_is_an_error_and_no_signal)
{
    t_on_each(resets, NULL, 0);
}

static int options(void *arg)
{
    blitz_tcp *end[2];
    (void)arg;
    t_tcp_pair(end);
    CHECK_EQ(blitz_tcp_set_nodelay(end[0], true), 0);
    CHECK_EQ(blitz_tcp_set_keepalive(end[0], 60, 10, 3), 0);
    CHECK_EQ(blitz_tcp_set_keepalive(end[0], 0, 0, 0), 0);
    CHECK_EQ(blitz_tcp_set_linger(end[0], -1), 0);
    CHECK_EQ(blitz_tcp_set_linger(end[0], 5), -EINVAL);
    CHECK_EQ(blitz_tcp_set_ttl(end[0], 64), 0);
    CHECK_EQ(blitz_tcp_set_ttl(end[0], 0), -EINVAL);
    CHECK_EQ(blitz_tcp_set_buffers(end[0], 20000, 30000), 0);
    int value = 0;
    blitz_fd fd;
    socklen_t bytes = sizeof value;
    CHECK_EQ(blitz_tcp_release(end[0], &fd), 0);
    CHECK_EQ(getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &value, &bytes), 0);
    CHECK_EQ(value, 40000); /* the system doubles it */
    CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    CHECK(fcntl(fd, F_GETFL) & O_NONBLOCK);
    close(fd);
    blitz_tcp_close(end[1]);
    return 0;
}

TEST(tcp, options_reach_the_system)
{
    CHECK_EQ(blitz_run(options, NULL, NULL), 0);
}

static int bad_input(void *arg)
{
    blitz_tcp *end[2], *t;
    blitz_addr none = {0}, at;
    blitz_tcp_listener *l;
    char c = 0;
    blitz_piece bad = {NULL, 1};
    (void)arg;
    t_tcp_pair(end);
    CHECK_EQ(blitz_tcp_read(NULL, &c, 1, 0), -EINVAL);
    CHECK_EQ(blitz_tcp_read(end[0], NULL, 1, 0), -EINVAL);
    CHECK_EQ(blitz_tcp_read(end[0], &c, 0, 0), 0);
    CHECK_EQ(blitz_tcp_write(end[0], NULL, 1, 0), -EINVAL);
    CHECK_EQ(blitz_tcp_write(end[0], &c, SIZE_MAX, 0), -EINVAL);
    CHECK_EQ(blitz_tcp_readv(end[0], &bad, 1, 0), -EINVAL);
    CHECK_EQ(blitz_tcp_writev(end[0], NULL, 1, 0), -EINVAL);
    CHECK_EQ(blitz_tcp_writev(end[0], &bad, 1, 0), -EINVAL);
    CHECK_EQ(blitz_tcp_wait(end[0], 0, 0), -EINVAL);
    CHECK_EQ(blitz_tcp_wait(end[0], 3, 0), -EINVAL);
    CHECK_EQ(blitz_tcp_shutdown(end[0], 0), -EINVAL);
    CHECK_EQ(blitz_tcp_shutdown(end[0], 4), -EINVAL);
    CHECK_EQ(blitz_tcp_connect(NULL, &t, 0), -EINVAL);
    CHECK_EQ(blitz_tcp_connect(&none, &t, 0), -EINVAL);
    CHECK_EQ(blitz_tcp_connect_first(&none, 0, NULL, &t, 0), -EINVAL);
    CHECK_EQ(blitz_tcp_listen(&none, NULL, &l), -EINVAL);
    CHECK_EQ(blitz_tcp_listen(NULL, NULL, &l), -EINVAL);
    CHECK_EQ(blitz_tcp_accept(NULL, &t, NULL, 0), -EINVAL);
    CHECK_EQ(blitz_tcp_local(NULL, &at), -EINVAL);
    CHECK_EQ(blitz_tcp_adopt(-1, &t), -EBADF);
    int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    CHECK_EQ(blitz_tcp_adopt(file, &t), -EINVAL);
    close(file);
    blitz_tcp_close(NULL);
    blitz_tcp_unref(NULL);
    blitz_tcp_listener_close(NULL);
    t_close_both(end);
    return 0;
}

TEST(tcp, bad_input_is_refused)
{
    blitz_addr at = blitz_addr_loopback_v4(0);
    blitz_tcp_listener *l;
    CHECK_EQ(blitz_tcp_listen(&at, NULL, &l), -EOPNOTSUPP); /* not in a task */
    CHECK_EQ(blitz_run(bad_input, NULL, NULL), 0);
}

/* ---- accepting ---- */

struct acceptor {
    blitz_tcp_listener *listener;
    int accepted;
};

static int accepts_all(void *arg)
{
    struct acceptor *a = arg;
    blitz_tcp *t;
    int err;
    while ((err = blitz_tcp_accept(a->listener, &t, NULL, BLITZ_FOREVER)) == 0) {
        a->accepted++;
        blitz_tcp_close(t);
    }
    blitz_tcp_listener_unref(a->listener);
    return err;
}

static int many_acceptors(void *arg)
{
    enum { ACCEPTORS = 16, CONNECTIONS = 100 };
    struct acceptor a[ACCEPTORS];
    blitz_task *task[ACCEPTORS];
    blitz_addr at;
    blitz_tcp_listener *l = t_listen(&at);
    int sum = 0;
    char c;
    (void)arg;
    for (int i = 0; i < ACCEPTORS; i++) {
        a[i] = (struct acceptor){.listener = blitz_tcp_listener_ref(l)};
        task[i] = t_spawn(accepts_all, &a[i]);
        t_until_waits(task[i]);
    }
    for (int i = 0; i < CONNECTIONS; i++) {
        blitz_tcp *t;
        CHECK_EQ(blitz_tcp_connect(&at, &t, soon()), 0);
        CHECK_EQ(blitz_tcp_read(t, &c, 1, soon()), 0); /* it was accepted, and closed */
        blitz_tcp_close(t);
    }
    blitz_tcp_listener_close(l);
    for (int i = 0; i < ACCEPTORS; i++) {
        CHECK_EQ(t_join(task[i]), -EBADF);
        sum += a[i].accepted;
    }
    CHECK_EQ(sum, CONNECTIONS);
    return 0;
}

TEST(tcp, many_accept_from_one_and_all_see_its_close)
{
    t_on_each(many_acceptors, NULL, 0);
}
