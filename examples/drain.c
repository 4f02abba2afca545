/*
 * drain.c - a web server that goes away without breaking a request.
 *
 *     example_drain [PORT]      until Ctrl-C or SIGTERM; 0: any port, printed as the first line
 *
 * Each answer takes 50 ms, so there is always work in progress. When the signal comes:
 *
 *   1. The accepting task stops, and takes the connections that the kernel has accepted for it already: closing the
 *      listener would reset them. Then it closes the listener, and new clients are refused at once.
 *   2. Requests in progress are answered, with "Connection: close". Connections that wait for another request end.
 *   3. When the last connection has ended, or after 5 seconds, or at a second Ctrl-C, the program ends.
 *
 * So a client sees a complete answer or a refused connection, and never a reset. tests/programs/drain_test.py checks
 * this with curl under load.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <blitz.h>

enum { DRAIN_S = 5, ANSWER_MS = 50 };

static blitz_shutdown *stop;
static blitz_tcp_listener *listener;
static blitz_scope connections;
static unsigned long answers;

static int answer(blitz_tcp *t)
{
    char text[128];
    bool is_last = blitz_shutdown_is_begun(stop);
    int err = blitz_sleep(ANSWER_MS * BLITZ_MS);
    int n = snprintf(text, sizeof text, "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n%s\r\nhello\n",
                     is_last ? "Connection: close\r\n" : "");
    if (err == 0)
        err = blitz_tcp_write_all(t, text, (size_t)n, NULL, BLITZ_FOREVER);
    __atomic_fetch_add(&answers, err == 0, __ATOMIC_RELAXED);
    return err != 0 ? err : is_last ? -ESHUTDOWN : 0;
}

/*
 * Read the head of a request: up to an empty line. Returns the bytes; 0 or less: none will come. Between two requests the
 * end of the program ends the connection. The first request, and one that has begun, is read.
 */
static int64_t read_head(blitz_tcp *t, bool is_first, char *head, size_t room)
{
    size_t have = 0;
    while (have < room - 1) {
        blitz_net_future got;
        blitz_sync_future told;
        blitz_tcp_read_future_init(&got, t, head + have, room - 1 - have);
        blitz_shutdown_wait_future_init(&told, stop);
        blitz_future *any[] = {&got.future, &told.future};
        int rc = blitz_first_of(any, have > 0 || is_first ? 1 : 2, BLITZ_FOREVER);
        if (rc < 0 || got.result <= 0)
            return rc < 0 ? rc : got.result;
        have += (size_t)got.result;
        head[have] = '\0';
        if (strstr(head, "\r\n\r\n") != NULL)
            return (int64_t)have;
    }
    return -EMSGSIZE;
}

static int serve(void *arg)
{
    blitz_tcp *t = arg;
    char head[4096];
    for (bool is_first = true; read_head(t, is_first, head, sizeof head) > 0; is_first = false)
        if (answer(t) != 0)
            break;
    (void)blitz_tcp_shutdown(t, BLITZ_WRITABLE);
    blitz_tcp_close(t);
    blitz_shutdown_leave(stop);
    return 0;
}

/* The connection counts before its task exists, so the drain waits for it. The caller is in: it may enter more. */
static void start(blitz_tcp *t)
{
    if (blitz_shutdown_enter_more(stop) != 0) {
        blitz_tcp_close(t);
        return;
    }
    if (blitz_scope_spawn(&connections, serve, t, NULL) == 0)
        return;
    blitz_tcp_close(t);
    blitz_shutdown_leave(stop);
}

static int accept_all(void *arg)
{
    blitz_tcp *t;
    int first = 0;
    (void)arg;
    if (blitz_shutdown_enter(stop) != 0)
        return 0;
    while (first == 0) {
        blitz_net_future got;
        blitz_sync_future told;
        blitz_tcp_accept_future_init(&got, listener);
        blitz_shutdown_wait_future_init(&told, stop);
        blitz_future *any[] = {&got.future, &told.future};
        first = blitz_first_of(any, 2, BLITZ_FOREVER);
        if (got.result == 0)
            start(got.tcp); /* also if the accept lost the race, and completed all the same */
    }
    while (blitz_tcp_accept(listener, &t, NULL, 0) == 0)
        start(t);
    blitz_tcp_listener_close(
        blitz_tcp_listener_ref(listener)); /* the server keeps its own reference */
    blitz_shutdown_leave(stop);
    return 0;
}

static void say_goodbye(void *arg)
{
    (void)arg;
    printf("%lu answers\n", answers);
}

static int server(void *arg)
{
    blitz_addr at;
    char text[64];
    blitz_scope_opts scope = {.token = blitz_shutdown_token(stop)};
    int err = blitz_addr_parse(arg, &at);
    if (err == 0)
        err = blitz_tcp_listen(&at, NULL, &listener);
    if (err != 0) {
        fprintf(stderr, "%s: error %d\n", (const char *)arg, -err);
        return 1;
    }
    if (blitz_tcp_listener_local(listener, &at) != 0 ||
        blitz_addr_print(&at, text, sizeof text) < 0)
        return 1;
    printf("%s\n", text);
    fflush(stdout);
    if (blitz_shutdown_hook(stop, say_goodbye, NULL) != 0 ||
        blitz_scope_open(&connections, &scope, BLITZ_FOREVER) != 0 ||
        blitz_scope_spawn(&connections, accept_all, NULL, NULL) != 0)
        return 1;
    int rc = blitz_shutdown_run(stop, BLITZ_FOREVER);
    (void)blitz_scope_close(&connections); /* -ECANCELED if it was forced */
    blitz_tcp_listener_unref(listener);
    return rc < 0;
}

int main(int argc, char **argv)
{
    char at[64];
    snprintf(at, sizeof at, "127.0.0.1:%s", argc > 1 ? argv[1] : "8080");
    if (blitz_shutdown_new(&(blitz_shutdown_opts){.drain = DRAIN_S * BLITZ_S}, &stop) != 0)
        return 1;
    int rc = blitz_run(server, at, NULL);
    blitz_shutdown_unref(stop);
    return rc;
}
