/*
 * TCP over completion ports (src/io/iocp.c): accept, connect, read, write, deadlines, cancels, and closes under waiters.
 */
#include "blitz.h"
#include "harness.h"

enum { PROCS = 3 };

static blitz_task *spawned(int (*fn)(void *), void *arg)
{
    blitz_task *t;
    CHECK_EQ(blitz_spawn(fn, arg, NULL, &t), 0);
    return t;
}

static int joined(blitz_task *t)
{
    int result = -1;
    CHECK_EQ(blitz_task_join(t, &result, BLITZ_FOREVER), 0);
    return result;
}

static void run(int (*fn)(void *))
{
    CHECK_EQ(blitz_run(fn, NULL, &(blitz_runtime_opts){.procs = PROCS}), 0);
}

struct pair {
    blitz_tcp_listener *listener;
    blitz_tcp *here, *there;
};

static blitz_tcp_listener *listening(blitz_addr *at)
{
    blitz_tcp_listener *l;
    blitz_addr any = blitz_addr_loopback_v4(0);
    CHECK_EQ(blitz_tcp_listen(&any, NULL, &l), 0);
    CHECK_EQ(blitz_tcp_listener_local(l, at), 0);
    CHECK_NE(at->port, 0);
    return l;
}

static struct pair connected(void)
{
    struct pair p;
    blitz_addr at, from, of;
    p.listener = listening(&at);
    CHECK_EQ(blitz_tcp_connect(&at, &p.here, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_tcp_accept(p.listener, &p.there, &from, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_tcp_local(p.here, &of), 0);
    CHECK_EQ(from.port, of.port);
    return p;
}

static void close_pair(struct pair *p)
{
    blitz_tcp_close(p->here);
    blitz_tcp_close(p->there);
    blitz_tcp_listener_close(p->listener);
}

/* ---- bytes ---- */

static int talk(void *arg)
{
    struct pair p = connected();
    char got[16] = "";
    (void)arg;
    CHECK_EQ(blitz_tcp_write(p.here, "hello", 5, BLITZ_FOREVER), 5);
    CHECK_EQ(blitz_tcp_peek(p.there, got, sizeof got, BLITZ_FOREVER), 5);
    CHECK_EQ(blitz_tcp_read(p.there, got, sizeof got, BLITZ_FOREVER), 5);
    CHECK_MEM_EQ(got, "hello", 5);
    blitz_piece out[2] = {{(char[]){"ab"}, 2}, {(char[]){"cde"}, 3}};
    CHECK_EQ(blitz_tcp_writev(p.there, out, 2, BLITZ_FOREVER), 5);
    blitz_piece in[2] = {{got, 1}, {got + 8, 8}};
    CHECK_EQ(blitz_tcp_readv(p.here, in, 2, BLITZ_FOREVER), 5);
    CHECK_EQ(got[0], 'a');
    CHECK_MEM_EQ(got + 8, "bcde", 4);
    CHECK_EQ(blitz_tcp_shutdown(p.here, BLITZ_WRITABLE), 0);
    CHECK_EQ(blitz_tcp_read(p.there, got, sizeof got, BLITZ_FOREVER), 0);
    close_pair(&p);
    return 0;
}

TEST(windows_net, bytes_and_the_end_of_a_stream_arrive)
{
    run(talk);
}

static int echo(void *arg)
{
    blitz_tcp *t = arg;
    char buffer[1000];
    int64_t n;
    while ((n = blitz_tcp_read(t, buffer, sizeof buffer, BLITZ_FOREVER)) > 0)
        CHECK_EQ(blitz_tcp_write_all(t, buffer, (size_t)n, NULL, BLITZ_FOREVER), 0);
    blitz_tcp_close(t);
    return (int)n;
}

enum { CLIENTS = 20, MESSAGES = 50, BYTES = 3000 };
static blitz_addr server;

static int client(void *arg)
{
    unsigned char out[BYTES], in[BYTES];
    blitz_tcp *t;
    CHECK_EQ(blitz_tcp_connect(&server, &t, BLITZ_FOREVER), 0);
    for (int m = 0; m < (int)t_scaled(MESSAGES); m++) {
        memset(out, (int)(intptr_t)arg + m, sizeof out);
        CHECK_EQ(blitz_tcp_write_all(t, out, sizeof out, NULL, BLITZ_FOREVER), 0);
        CHECK_EQ(blitz_tcp_read_exact(t, in, sizeof in, NULL, BLITZ_FOREVER), 0);
        CHECK_MEM_EQ(in, out, sizeof in);
    }
    blitz_tcp_close(t);
    return 0;
}

static int serve(void *arg)
{
    blitz_task *server_of[CLIENTS], *clients[CLIENTS];
    blitz_tcp_listener *l = listening(&server);
    (void)arg;
    for (intptr_t i = 0; i < CLIENTS; i++)
        clients[i] = spawned(client, (void *)i);
    for (int i = 0; i < CLIENTS; i++) {
        blitz_tcp *t;
        CHECK_EQ(blitz_tcp_accept(l, &t, NULL, BLITZ_FOREVER), 0);
        server_of[i] = spawned(echo, t);
    }
    for (int i = 0; i < CLIENTS; i++) {
        CHECK_EQ(joined(clients[i]), 0);
        CHECK_EQ(joined(server_of[i]), 0);
    }
    blitz_tcp_listener_close(l);
    return 0;
}

TEST(windows_net, many_clients_get_back_what_they_sent)
{
    run(serve);
}

/* A peer that does not read makes the writer wait, and no byte is lost. */
enum { MUCH = 8 << 20 };

static int write_much(void *arg)
{
    unsigned char *bytes = malloc(MUCH);
    for (size_t i = 0; i < MUCH; i++)
        bytes[i] = (unsigned char)(i % 251);
    int err = blitz_tcp_write_all(arg, bytes, MUCH, NULL, BLITZ_FOREVER);
    free(bytes);
    return err;
}

static int read_slowly(void *arg)
{
    struct pair p = connected();
    static unsigned char got[64 << 10];
    (void)arg;
    blitz_task *writer = spawned(write_much, p.here);
    CHECK_EQ(blitz_sleep(20 * BLITZ_MS), 0); /* the buffers fill */
    for (size_t at = 0; at < MUCH;) {
        int64_t n = blitz_tcp_read(p.there, got, sizeof got, BLITZ_FOREVER);
        CHECK_GT(n, 0);
        for (size_t i = 0; i < (size_t)n; i++, at++)
            CHECK_EQ(got[i], (unsigned char)(at % 251));
    }
    CHECK_EQ(joined(writer), 0);
    close_pair(&p);
    return 0;
}

TEST(windows_net, a_writer_waits_for_a_reader_and_loses_nothing)
{
    run(read_slowly);
}

/* ---- deadlines ---- */

static int late(void *arg)
{
    struct pair p = connected();
    char got[8];
    blitz_tcp *none;
    (void)arg;
    CHECK_EQ(blitz_tcp_read(p.here, got, sizeof got, 0), -ETIMEDOUT);
    CHECK_EQ(blitz_tcp_try_read(p.here, got, sizeof got), -EAGAIN);
    for (int i = 0; i < 5; i++) {
        blitz_deadline until = blitz_after((uint64_t)i * BLITZ_MS);
        CHECK_EQ(blitz_tcp_read(p.here, got, sizeof got, until), -ETIMEDOUT);
        CHECK_GE(blitz_now(), until);
    }
    CHECK_EQ(blitz_tcp_accept(p.listener, &none, NULL, blitz_after(BLITZ_MS)), -ETIMEDOUT);
    CHECK_EQ(blitz_tcp_write(p.there, "x", 1, BLITZ_FOREVER), 1);
    CHECK_EQ(blitz_tcp_read(p.here, got, sizeof got, BLITZ_FOREVER),
             1); /* nothing was read by those */
    CHECK_EQ(blitz_tcp_try_read(p.here, got, sizeof got), -EAGAIN);
    close_pair(&p);
    return 0;
}

TEST(windows_net, a_read_and_an_accept_end_at_their_deadlines_and_take_nothing)
{
    run(late);
}

/* ---- cancels and closes ---- */

static int read_for_ever(void *arg)
{
    char got[8];
    return (int)blitz_tcp_read(arg, got, sizeof got, BLITZ_FOREVER);
}

static int accept_for_ever(void *arg)
{
    blitz_tcp *t;
    return blitz_tcp_accept(arg, &t, NULL, BLITZ_FOREVER);
}

static int cancel_waiters(void *arg)
{
    struct pair p = connected();
    char got[8];
    (void)arg;
    for (int round = 0; round < 20; round++) {
        blitz_task *reader = spawned(read_for_ever, p.here),
                   *accepter = spawned(accept_for_ever, p.listener);
        for (int i = 0; i < round % 5; i++)
            blitz_yield();
        blitz_task_cancel(reader);
        blitz_task_cancel(accepter);
        CHECK_EQ(joined(reader), -ECANCELED);
        CHECK_EQ(joined(accepter), -ECANCELED);
    }
    CHECK_EQ(blitz_tcp_write(p.there, "x", 1, BLITZ_FOREVER), 1);
    CHECK_EQ(blitz_tcp_read(p.here, got, sizeof got, BLITZ_FOREVER), 1);
    close_pair(&p);
    return 0;
}

TEST(windows_net, cancelled_waiters_leave_the_socket_usable)
{
    run(cancel_waiters);
}

static int close_under_waiters(void *arg)
{
    (void)arg;
    for (int round = 0; round < 10; round++) {
        struct pair p = connected();
        blitz_task *reader = spawned(read_for_ever, blitz_tcp_ref(p.here)),
                   *accepter = spawned(accept_for_ever, blitz_tcp_listener_ref(p.listener));
        blitz_tcp *here = p.here;
        blitz_tcp_listener *l = p.listener;
        for (int i = 0; i < round % 5; i++)
            blitz_yield();
        close_pair(&p);
        CHECK_EQ(joined(reader), -EBADF);
        CHECK_EQ(joined(accepter), -EBADF);
        blitz_tcp_unref(here);
        blitz_tcp_listener_unref(l);
    }
    return 0;
}

TEST(windows_net, a_close_ends_the_calls_that_wait)
{
    run(close_under_waiters);
}

static int refuse(void *arg)
{
    blitz_addr at;
    blitz_tcp *t;
    blitz_tcp_listener *l = listening(&at);
    (void)arg;
    blitz_tcp_listener_close(l);
    CHECK_EQ(blitz_tcp_connect(&at, &t, BLITZ_FOREVER), -ECONNREFUSED);
    return 0;
}

TEST(windows_net, nobody_listens)
{
    run(refuse);
}

/* ---- futures ---- */

static int await_both(void *arg)
{
    struct pair p = connected();
    char got[4] = "", other[4] = "";
    blitz_net_future first, second;
    (void)arg;
    blitz_tcp_read_future_init(&first, p.here, got, 1);
    blitz_tcp_read_future_init(&second, p.there, other, 1);
    CHECK_EQ(blitz_tcp_write(p.there, "a", 1, BLITZ_FOREVER), 1);
    CHECK_EQ(blitz_tcp_write(p.here, "b", 1, BLITZ_FOREVER), 1);
    CHECK_EQ(blitz_await(&first.future, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_await(&second.future, BLITZ_FOREVER), 0);
    CHECK_EQ(first.result, 1);
    CHECK_EQ(second.result, 1);
    CHECK_STR_EQ(got, "a");
    CHECK_STR_EQ(other, "b");
    close_pair(&p);
    return 0;
}

TEST(windows_net, futures_read)
{
    run(await_both);
}

/* ---- datagrams, names ---- */

static int send_datagrams(void *arg)
{
    blitz_udp *here, *there;
    blitz_addr any = blitz_addr_loopback_v4(0), at, from, of;
    char got[8] = "";
    (void)arg;
    CHECK_EQ(blitz_udp_bind(&any, NULL, &here), 0);
    CHECK_EQ(blitz_udp_bind(&any, NULL, &there), 0);
    CHECK_EQ(blitz_udp_local(here, &of), 0);
    CHECK_EQ(blitz_udp_local(there, &at), 0);
    CHECK_EQ(blitz_udp_recv_from(there, got, sizeof got, &from, blitz_after(BLITZ_MS)), -ETIMEDOUT);
    for (int i = 0; i < 10; i++) {
        CHECK_EQ(blitz_udp_send_to(here, "ping", 4, &at, BLITZ_FOREVER), 4);
        CHECK_EQ(blitz_udp_recv_from(there, got, sizeof got, &from, BLITZ_FOREVER), 4);
        CHECK_MEM_EQ(got, "ping", 4);
        CHECK_EQ(from.port, of.port);
    }
    blitz_udp_close(here);
    blitz_udp_close(there);
    return 0;
}

TEST(windows_net, datagrams_come_with_the_address_of_their_sender)
{
    run(send_datagrams);
}

static int wait_for_both(void *arg)
{
    struct pair p = connected();
    (void)arg;
    CHECK_EQ(blitz_tcp_wait(p.here, BLITZ_WRITABLE, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_tcp_wait(p.here, BLITZ_READABLE, blitz_after(BLITZ_MS)), -ETIMEDOUT);
    CHECK_EQ(blitz_tcp_write(p.there, "x", 1, BLITZ_FOREVER), 1);
    CHECK_EQ(blitz_tcp_wait(p.here, BLITZ_READABLE, BLITZ_FOREVER), 0);
    close_pair(&p);
    return 0;
}

TEST(windows_net, a_socket_is_waited_for)
{
    run(wait_for_both);
}
