/*
 * graceful.c - graceful shutdown: a server stops accepting, lets its connections finish, and
 * cancels those that take too long.
 *
 *     example_graceful 127.0.0.1:4003    until SIGTERM or SIGINT; try: nc 127.0.0.1 4003
 *     example_graceful                   with two built-in clients, and a SIGTERM to itself
 *
 * Each connection is a task of a scope. It echoes lines, with a timeout of some seconds for each. A
 * signalfd becomes readable when a signal arrives, so the program waits for the signal as for any
 * descriptor. The scope is a future: an await with a deadline cancels the remaining tasks at the
 * deadline, and returns when all have ended. A cancelled read returns -ECANCELED, and the task
 * closes its connection as after any other error: no special clean-up is needed.
 *
 * To close a listener resets the connections in its backlog. So the program first cancels the
 * accepting task, then accepts the backlog without waiting: with a deadline of 0.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <blitz.h>

enum { LINE_MAX_BYTES = 1024, LINE_S = 30, GRACE_MS = 200 };

struct server {
    blitz_tcp_listener *listener;
    blitz_scope connections;
    blitz_addr at;
    int cut_off; /* connections that were cancelled; read when all have ended */
};

static struct server server;

/* ---- a connection ---- */

static int echo_line(blitz_tcp *t, const char *line, size_t bytes)
{
    blitz_deadline until = blitz_after(LINE_S * BLITZ_S);
    int err = blitz_tcp_write_all(t, line, bytes, NULL, until);
    return err != 0 ? err : blitz_tcp_write_all(t, "\n", 1, NULL, until);
}

static int serve(void *arg)
{
    blitz_tcp *t = arg;
    char room[LINE_MAX_BYTES];
    blitz_buffered_reader in;
    const char *line;
    int64_t n = 0;
    int err = blitz_buffered_reader_init(&in, blitz_tcp_reader(t), room, sizeof room);
    while (err == 0 &&
           (n = blitz_buffered_line(&in, sizeof room, &line, blitz_after(LINE_S * BLITZ_S))) >= 0)
        err = echo_line(t, line, (size_t)n);
    if (err == -ECANCELED || n == -ECANCELED)
        __atomic_fetch_add(&server.cut_off, 1, __ATOMIC_RELAXED);
    blitz_tcp_close(t);
    return 0; /* that a client went wrong is not the server's failure: it would end the scope */
}

static int accept_until(blitz_deadline until)
{
    blitz_tcp *t;
    int err;
    while ((err = blitz_tcp_accept(server.listener, &t, NULL, until)) == 0)
        if (blitz_scope_spawn(&server.connections, serve, t, NULL) != 0)
            blitz_tcp_close(t);
    return err;
}

static int accept_all(void *arg)
{
    (void)arg;
    return accept_until(BLITZ_FOREVER);
}

/* ---- two clients: one ends soon, one never ---- */

static int brief(void *arg)
{
    blitz_tcp *t;
    char back[6] = "";
    (void)arg;
    int err = blitz_tcp_connect(&server.at, &t, BLITZ_FOREVER);
    if (err != 0)
        return err;
    err = blitz_tcp_write_all(t, "hello\n", 6, NULL, BLITZ_FOREVER);
    kill(getpid(), SIGTERM); /* in the middle of it */
    if (err == 0)
        err = blitz_tcp_read_exact(t, back, sizeof back, NULL, BLITZ_FOREVER);
    blitz_tcp_close(t);
    printf("a client that was being served: %s\n", err == 0 ? "has its answer" : strerror(-err));
    return err;
}

static int stays(void *arg)
{
    blitz_tcp *t = arg;
    char byte;
    int64_t n = blitz_tcp_read(t, &byte, 1, BLITZ_FOREVER);
    blitz_tcp_close(t);
    printf("a client that would not go: %s\n", n == 0 ? "was hung up on" : strerror((int)-n));
    return 0;
}

/* ---- the server ---- */

static int serve_until(int stop)
{
    blitz_task *accepting;
    int err = blitz_spawn(accept_all, NULL, NULL, &accepting);
    if (err != 0)
        return err;
    err = blitz_fd_wait(stop, BLITZ_FD_READ, BLITZ_FOREVER);
    blitz_task_cancel(accepting);
    blitz_task_join(accepting, NULL, BLITZ_FOREVER);
    accept_until(0); /* connections in the backlog came before the shutdown */
    blitz_tcp_listener_close(server.listener);
    if (blitz_await(&server.connections.future, blitz_after(GRACE_MS * BLITZ_MS)) != 0)
        printf("the time of grace is over\n");
    printf("all connections have ended, %d of them were cut off\n", server.cut_off);
    return err < 0 ? err : 0;
}

static int run_clients(blitz_task *client[2])
{
    blitz_tcp *t;
    int err = blitz_tcp_connect(&server.at, &t, BLITZ_FOREVER);
    if (err == 0 && (err = blitz_spawn(stays, t, NULL, &client[0])) != 0)
        blitz_tcp_close(t);
    return err != 0 ? err : blitz_spawn(brief, NULL, NULL, &client[1]);
}

static int serve_ourselves(int stop)
{
    blitz_task *client[2];
    int result = 0, err = run_clients(client);
    if (err != 0 || (err = serve_until(stop)) != 0)
        return err;
    blitz_task_join(client[0], NULL, BLITZ_FOREVER);
    blitz_task_join(client[1], &result, BLITZ_FOREVER);
    return result;
}

static sigset_t signals;

static int run(void *text)
{
    int stop = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    int err = stop < 0 ? -errno : blitz_addr_parse(text != NULL ? text : "127.0.0.1:0", &server.at);
    if (err == 0)
        err = blitz_tcp_listen(&server.at, NULL, &server.listener);
    if (err == 0)
        err = blitz_tcp_listener_local(server.listener, &server.at);
    if (err == 0)
        err = blitz_scope_open(&server.connections, NULL, BLITZ_FOREVER);
    if (err == 0)
        err = text != NULL ? serve_until(stop) : serve_ourselves(stop);
    if (stop >= 0)
        close(stop);
    return err;
}

int main(int argc, char **argv)
{
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigprocmask(SIG_BLOCK, &signals, NULL); /* before there are threads, which inherit it */
    int err = blitz_run(run, argc > 1 ? argv[1] : NULL, NULL);
    if (err < 0)
        fprintf(stderr, "graceful: %s\n", strerror(-err));
    return err < 0;
}
