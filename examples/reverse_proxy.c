/*
 * reverse_proxy.c - forward connections from one address to another.
 *
 *     example_reverse_proxy 127.0.0.1:4002 localhost 80
 *     example_reverse_proxy                 passes a megabyte through itself, and ends
 *
 * Each connection is a fiber that connects to the target and copies in both directions. The end of
 * one direction is forwarded as a half-close, and the other direction continues. If one direction
 * fails, both end. Long transfers go from socket to socket through a pipe, not through the memory
 * of the process (blitz_stream_copy()).
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <blitz.h>

enum { BUFFER = 16384, MEGABYTE = 1 << 20, IDLE_S = 300 };

static const char *host, *port;

static int passes(void *arg)
{
    blitz_tcp *client = arg, *server;
    if (blitz_tcp_connect_host(host, port, &server, blitz_after(10 * BLITZ_S)) == 0) {
        blitz_stream_copy_both(blitz_tcp_stream(client), blitz_tcp_stream(server),
                               IDLE_S * (uint64_t)BLITZ_S, NULL, NULL, BLITZ_FOREVER);
        blitz_tcp_close(server);
    }
    blitz_tcp_close(client);
    return 0;
}

static int accepts(blitz_tcp_listener *l, int (*fn)(void *))
{
    blitz_spawn_opts opts = {.stack_bytes = 65536};
    blitz_tcp *t;
    int err;
    while ((err = blitz_tcp_accept(l, &t, NULL, BLITZ_FOREVER)) == 0)
        if (blitz_spawn(fn, t, &opts, NULL) != 0)
            blitz_tcp_close(t);
    return err;
}

static int proxy(void *listener)
{
    return accepts(listener, passes);
}

/* ---- a server and a client of our own, to show it ---- */

static int echo(void *arg)
{
    int err = blitz_stream_copy(blitz_tcp_reader(arg), blitz_tcp_writer(arg), NULL, BLITZ_FOREVER);
    blitz_tcp_close(arg);
    return err;
}

static int echoes(void *listener)
{
    return accepts(listener, echo);
}

static int sends(void *arg)
{
    static const char zeros[MEGABYTE];
    int err = blitz_tcp_write_all(arg, zeros, sizeof zeros, NULL, BLITZ_FOREVER);
    blitz_tcp_shutdown(arg, BLITZ_WRITABLE);
    return err;
}

static int64_t goes_round(const blitz_addr *at)
{
    char data[BUFFER];
    int64_t sum = 0, n;
    blitz_tcp *t;
    blitz_task *task;
    if (blitz_tcp_connect(at, &t, blitz_after(5 * BLITZ_S)) != 0)
        return 0;
    if (blitz_spawn(sends, t, NULL, &task) == 0) {
        while ((n = blitz_tcp_read(t, data, sizeof data, blitz_after(10 * BLITZ_S))) > 0)
            sum += n;
        blitz_task_join(task, NULL, BLITZ_FOREVER);
    }
    blitz_tcp_close(t);
    return sum;
}

static int show(void)
{
    static char number[8];
    blitz_addr any = blitz_addr_loopback_v4(0), at[2];
    blitz_tcp_listener *l[2] = {NULL, NULL};
    blitz_task *task[2];
    for (int i = 0; i < 2; i++) {
        int err = blitz_tcp_listen(&any, NULL, &l[i]);
        if (err != 0)
            return err;
        blitz_tcp_listener_local(l[i], &at[i]);
        err = blitz_spawn(i == 0 ? echoes : proxy, blitz_tcp_listener_ref(l[i]), NULL, &task[i]);
        if (err != 0)
            return err;
    }
    snprintf(number, sizeof number, "%u", (unsigned)blitz_addr_port(&at[0]));
    host = "127.0.0.1";
    port = number;
    int64_t bytes = goes_round(&at[1]);
    printf("%lld bytes there and back through the proxy\n", (long long)bytes);
    for (int i = 0; i < 2; i++) {
        blitz_tcp_listener_close(l[i]);
        blitz_task_join(task[i], NULL, BLITZ_FOREVER);
        blitz_tcp_listener_unref(l[i]); /* the task's */
    }
    return bytes == MEGABYTE ? 0 : -EIO;
}

static int run(void *arg)
{
    char **argv = arg;
    blitz_addr at;
    blitz_tcp_listener *l;
    if (argv == NULL)
        return show();
    host = argv[2];
    port = argv[3];
    int err = blitz_addr_parse(argv[1], &at);
    if (err == 0)
        err = blitz_tcp_listen(&at, NULL, &l);
    return err != 0 ? err : proxy(l);
}

int main(int argc, char **argv)
{
    if (argc != 1 && argc != 4) {
        fprintf(stderr, "usage: %s [ADDRESS HOST PORT]\n", argv[0]);
        return 2;
    }
    int err = blitz_run(run, argc == 4 ? argv : NULL, NULL);
    if (err < 0)
        fprintf(stderr, "reverse_proxy: %s\n", strerror(-err));
    return err < 0;
}
