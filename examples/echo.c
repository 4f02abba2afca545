/*
 * echo.c - an echo server, written twice.
 *
 *     example_echo                      run both with built-in clients, then exit
 *     example_echo fiber [PORT]         serve until stopped: a fiber for each connection
 *     example_echo task [PORT]          the same, a stackless task for each
 *
 * The fiber is a plain loop of reads and writes, with a buffer on its stack. The stackless task
 * keeps its state across a wait in a struct, without a buffer. It waits until the socket is
 * readable, then uses a buffer of its thread while it reads and writes without waiting. Ten
 * thousand idle connections of that kind take a few megabytes.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <blitz.h>

enum { CLIENTS = 50, MESSAGES = 20, BYTES = 1000, BUFFER = 4096 };

/* ---- with a stack ---- */

static int echo_fiber(void *arg)
{
    blitz_tcp *t = arg;
    char buffer[BUFFER];
    int64_t n;
    while ((n = blitz_tcp_read(t, buffer, sizeof buffer, BLITZ_FOREVER)) > 0)
        if (blitz_tcp_write_all(t, buffer, (size_t)n, NULL, BLITZ_FOREVER) != 0)
            break;
    blitz_tcp_close(t);
    return 0;
}

/* ---- without ---- */

struct echo {
    blitz_frame frame; /* where the next poll continues */
    blitz_tcp *tcp;
    char *rest; /* bytes that did not fit into the socket */
    size_t rest_bytes;
    blitz_net_future io; /* the current wait */
};

/*
 * Read and write without waiting. Return -EAGAIN to continue when more bytes arrive, 0 at the end,
 * 1 if bytes must be written first. The thread-local buffer is safe only because this function does
 * not wait.
 */
static __attribute__((noinline)) int echo_some(struct echo *s)
{
    static _Thread_local char buffer[BUFFER];
    int64_t n, sent;
    n = blitz_tcp_try_read(s->tcp, buffer, sizeof buffer);
    if (n <= 0)
        return n == -EAGAIN ? -EAGAIN : 0;
    sent = blitz_tcp_try_write(s->tcp, buffer, (size_t)n);
    if (sent == n)
        return -EAGAIN; /* if there is more already, the wait says so at once */
    if (sent < 0 && sent != -EAGAIN)
        return 0;
    sent = sent < 0 ? 0 : sent;
    s->rest_bytes = (size_t)(n - sent);
    s->rest = malloc(s->rest_bytes);
    if (s->rest == NULL)
        return 0;
    memcpy(s->rest, buffer + sent, s->rest_bytes);
    return 1;
}

static blitz_poll echo_task(void *state, blitz_cx *cx)
{
    struct echo *s = state;
    int rc;
    BLITZ_BEGIN(&s->frame, cx);
    while ((rc = echo_some(s)) != 0) {
        if (rc > 0) {
            blitz_tcp_write_all_future_init(&s->io, s->tcp, s->rest, s->rest_bytes);
            BLITZ_AWAIT(rc, &s->io.future);
            free(s->rest);
        } else {
            blitz_tcp_wait_future_init(&s->io, s->tcp, BLITZ_READABLE);
            BLITZ_AWAIT(rc, &s->io.future);
        }
        if (rc != 0 || s->io.result < 0)
            break; /* cancelled, or the connection is broken */
    }
    blitz_tcp_close(s->tcp);
    BLITZ_END(0);
}

/* ---- the server ---- */

struct server {
    blitz_tcp_listener *listener;
    int is_stackless;
};

static int accept_all(void *arg)
{
    struct server *server = arg;
    blitz_tcp *t;
    int rc;
    while ((rc = blitz_tcp_accept(server->listener, &t, NULL, BLITZ_FOREVER)) == 0) {
        struct echo s = {.tcp = t};
        rc = server->is_stackless ? blitz_spawn_poll(echo_task, &s, sizeof s, NULL, NULL)
                                  : blitz_spawn(echo_fiber, t, NULL, NULL);
        if (rc != 0)
            blitz_tcp_close(t); /* no memory for another: this one is turned away */
    }
    blitz_tcp_listener_unref(
        server->listener); /* its own reference: another task may close it meanwhile */
    return rc;
}

static int listen_at(struct server *server, uint16_t port, blitz_addr *at)
{
    *at = blitz_addr_loopback_v4(port);
    int rc = blitz_tcp_listen(at, NULL, &server->listener);
    return rc != 0 ? rc : blitz_tcp_listener_local(server->listener, at);
}

static int serve(void *arg)
{
    char **argv = arg;
    struct server server = {.is_stackless = strcmp(argv[1], "task") == 0};
    blitz_addr at;
    int rc = listen_at(&server, (uint16_t)(argv[2] != NULL ? atoi(argv[2]) : 0), &at);
    if (rc != 0)
        return rc;
    printf("port %d\n", blitz_addr_port(&at));
    fflush(stdout);
    return accept_all(&server);
}

/* ---- clients ---- */

/* How many messages came back as they were sent. */
static int talk(void *at)
{
    char said[BYTES], heard[BYTES];
    blitz_tcp *t;
    int right = 0;
    if (blitz_tcp_connect(at, &t, blitz_after(10 * BLITZ_S)) != 0)
        return 0;
    for (int i = 0; i < MESSAGES; i++) {
        memset(said, 'a' + i, sizeof said);
        if (blitz_tcp_write_all(t, said, sizeof said, NULL, BLITZ_FOREVER) != 0 ||
            blitz_tcp_read_exact(t, heard, sizeof heard, NULL, blitz_after(10 * BLITZ_S)) != 0)
            break;
        right += memcmp(said, heard, sizeof said) == 0;
    }
    blitz_tcp_close(t);
    return right;
}

static int try_form(int is_stackless)
{
    struct server server = {.is_stackless = is_stackless};
    blitz_task *accepts, *clients[CLIENTS];
    blitz_addr at;
    int sum = 0, rc = listen_at(&server, 0, &at);
    if (rc != 0)
        return rc;
    blitz_tcp_listener_ref(server.listener); /* for accept_all */
    if ((rc = blitz_spawn(accept_all, &server, NULL, &accepts)) != 0)
        return rc;
    for (int i = 0; i < CLIENTS; i++)
        if (blitz_spawn(talk, &at, NULL, &clients[i]) != 0)
            clients[i] = NULL;
    for (int i = 0; i < CLIENTS; i++) {
        int right = 0;
        if (clients[i] != NULL)
            blitz_task_join(clients[i], &right, BLITZ_FOREVER);
        sum += right;
    }
    blitz_tcp_listener_close(server.listener); /* accept says so, and the task ends */
    blitz_task_join(accepts, NULL, BLITZ_FOREVER);
    printf("%s: %d of %d messages came back over %d connections\n",
           is_stackless ? "stackless tasks" : "fibers", sum, CLIENTS * MESSAGES, CLIENTS);
    return sum == CLIENTS * MESSAGES ? 0 : -EIO;
}

static int try_both(void *arg)
{
    (void)arg;
    int rc = try_form(0);
    return rc != 0 ? rc : try_form(1);
}

int main(int argc, char **argv)
{
    int rc;
    if (argc > 1 && strcmp(argv[1], "fiber") != 0 && strcmp(argv[1], "task") != 0) {
        fprintf(stderr, "usage: %s [fiber|task [PORT]]\n", argv[0]);
        return 2;
    }
    rc = argc > 1 ? blitz_run(serve, argv, NULL) : blitz_run(try_both, NULL, NULL);
    if (rc < 0)
        fprintf(stderr, "echo: %s\n", strerror(-rc));
    return rc < 0;
}
