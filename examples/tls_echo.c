/*
 * tls_echo.c - an echo server over TLS, written twice, and its clients.
 *
 *     example_tls_echo                                     both, with built-in clients and a certificate of its own
 *     example_tls_echo fiber|task CERT.pem KEY.pem [PORT]  serve until stopped: a fiber, or a stackless task, each
 *     example_tls_echo client HOST PORT CA.pem             send standard input, print the answer
 *
 * The fiber calls; the stackless task awaits the same calls as futures. The client verifies the
 * server; if that fails, it prints which certificate is wrong, what is wrong with it, and what to do.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <blitz.h>
#include <blitz/tls.h>

#include "tls_self.h"

enum { CLIENTS = 20, MESSAGES = 20, BYTES = 1000, BUFFER = 16384 };

/* ---- with a stack ---- */

struct guest {
    blitz_tcp *tcp;
    blitz_tls *tls;
};

static void guest_leave(struct guest *g)
{
    blitz_tls_unref(g->tls);
    blitz_tcp_close(g->tcp);
}

static int echo_fiber(void *arg)
{
    struct guest g = *(struct guest *)arg;
    char *buffer = malloc(BUFFER);
    int64_t n = -1;
    free(arg);
    if (buffer != NULL && blitz_tls_handshake(g.tls, blitz_after(10 * BLITZ_S)) == 0)
        while ((n = blitz_tls_read(g.tls, buffer, BUFFER, BLITZ_FOREVER)) > 0)
            if (blitz_tls_write_all(g.tls, buffer, (size_t)n, NULL, BLITZ_FOREVER) != 0)
                break;
    if (n == 0) /* the peer has ended its data: end ours */
        blitz_tls_end(g.tls, blitz_after(10 * BLITZ_S));
    free(buffer);
    guest_leave(&g);
    return 0;
}

/* ---- without ---- */

struct echo {
    blitz_frame frame; /* where the next poll continues */
    struct guest guest;
    char *buffer;
    blitz_tls_future io; /* the current call */
};

static blitz_poll echo_task(void *state, blitz_cx *cx)
{
    struct echo *s = state;
    int rc;
    BLITZ_BEGIN(&s->frame, cx);
    blitz_tls_handshake_future_init(&s->io, s->guest.tls);
    BLITZ_AWAIT(rc, &s->io.future);
    while (rc == 0 && s->io.result == 0) {
        blitz_tls_read_future_init(&s->io, s->guest.tls, s->buffer, BUFFER);
        BLITZ_AWAIT(rc, &s->io.future);
        if (rc != 0 || s->io.result <= 0)
            break;
        blitz_tls_write_all_future_init(&s->io, s->guest.tls, s->buffer, (size_t)s->io.result);
        BLITZ_AWAIT(rc, &s->io.future);
    }
    if (rc == 0 && s->io.result == 0) {
        blitz_tls_end_future_init(&s->io, s->guest.tls);
        BLITZ_AWAIT(rc, &s->io.future);
    }
    free(s->buffer);
    guest_leave(&s->guest);
    BLITZ_END(0);
}

/* ---- the server ---- */

struct server {
    blitz_tcp_listener *listener;
    blitz_tls_config *config;
    int is_stackless;
};

static int greet(struct server *server, struct guest g)
{
    struct echo s = {.guest = g, .buffer = malloc(BUFFER)};
    struct guest *copy = malloc(sizeof *copy);
    int rc = -ENOMEM;
    if (server->is_stackless && s.buffer != NULL)
        rc = blitz_spawn_poll(echo_task, &s, sizeof s, NULL, NULL);
    if (!server->is_stackless && copy != NULL) {
        *copy = g;
        rc = blitz_spawn(echo_fiber, copy, NULL, NULL);
    }
    if (!server->is_stackless || rc != 0)
        free(s.buffer);
    if (server->is_stackless || rc != 0)
        free(copy);
    return rc;
}

static int accept_all(void *arg)
{
    struct server *server = arg;
    struct guest g = {NULL, NULL};
    int rc;
    while ((rc = blitz_tcp_accept(server->listener, &g.tcp, NULL, BLITZ_FOREVER)) == 0) {
        rc = blitz_tls_new(server->config, blitz_tcp_stream(g.tcp), NULL, &g.tls);
        if (rc == 0)
            rc = greet(server, g);
        if (rc != 0)
            guest_leave(&g); /* no memory for another: this one is turned away */
        g.tls = NULL;
    }
    blitz_tcp_listener_unref(server->listener);
    return rc;
}

static int listen_at(struct server *server, uint16_t port, blitz_addr *at)
{
    *at = blitz_addr_loopback_v4(port);
    int rc = blitz_tcp_listen(at, NULL, &server->listener);
    return rc != 0 ? rc : blitz_tcp_listener_local(server->listener, at);
}

static int server_config(const blitz_tls_cert *cert, blitz_tls_config **out)
{
    blitz_tls_text why;
    blitz_tls_opts opts = {.certs = cert, .cert_count = 1};
    int rc = blitz_tls_config_new(BLITZ_TLS_SERVER, &opts, &why, out);
    if (rc != 0)
        fprintf(stderr, "tls_echo: %s\n", why.text);
    return rc;
}

static int serve(void *arg)
{
    char **argv = arg;
    struct server server = {.is_stackless = strcmp(argv[1], "task") == 0};
    blitz_tls_cert cert = {.cert_file = argv[2], .key_file = argv[3]};
    blitz_addr at;
    int rc = server_config(&cert, &server.config);
    if (rc == 0)
        rc = listen_at(&server, (uint16_t)(argv[4] != NULL ? atoi(argv[4]) : 0), &at);
    if (rc != 0)
        return rc;
    printf("port %d\n", blitz_addr_port(&at));
    fflush(stdout);
    rc = accept_all(&server);
    blitz_tls_config_unref(server.config);
    return rc;
}

/* ---- clients ---- */

struct visit {
    blitz_addr at;
    const char *host;
    blitz_tls_config *config;
};

static int visit_open(const struct visit *v, struct guest *g)
{
    blitz_tls_text text;
    int rc = blitz_tcp_connect(&v->at, &g->tcp, blitz_after(10 * BLITZ_S));
    if (rc != 0)
        return rc;
    rc = blitz_tls_new(v->config, blitz_tcp_stream(g->tcp), v->host, &g->tls);
    if (rc == 0)
        rc = blitz_tls_handshake(g->tls, blitz_after(10 * BLITZ_S));
    if (rc != 0) {
        if (g->tls != NULL)
            fprintf(stderr, "tls_echo: %s\n", blitz_tls_error(g->tls, &text));
        guest_leave(g);
    }
    return rc;
}

/* How many messages came back as they were sent. */
static int talk(void *arg)
{
    char said[BYTES], heard[BYTES];
    struct guest g = {NULL, NULL};
    int right = 0;
    if (visit_open(arg, &g) != 0)
        return 0;
    for (int i = 0; i < MESSAGES; i++) {
        memset(said, 'a' + i, sizeof said);
        if (blitz_tls_write_all(g.tls, said, sizeof said, NULL, BLITZ_FOREVER) != 0 ||
            blitz_tls_read_exact(g.tls, heard, sizeof heard, NULL, blitz_after(10 * BLITZ_S)) != 0)
            break;
        right += memcmp(said, heard, sizeof said) == 0;
    }
    blitz_tls_end(g.tls, blitz_after(10 * BLITZ_S));
    guest_leave(&g);
    return right;
}

/* Standard input to the server, while its answer goes to standard output. */
static int send_input(void *arg)
{
    struct guest *g = arg;
    blitz_fd_stream in;
    int rc = blitz_fd_stream_init(&in, 0);
    if (rc == 0)
        rc = blitz_stream_copy(blitz_fd_reader(&in), blitz_tls_stream(g->tls).out, NULL,
                               BLITZ_FOREVER);
    return rc != 0 ? rc : blitz_tls_end(g->tls, BLITZ_FOREVER);
}

static int converse(struct guest *g)
{
    blitz_fd_stream out;
    blitz_tls_text text;
    blitz_task *sender;
    int sent = 0, rc = blitz_fd_stream_init(&out, 1);
    if (rc != 0 || (rc = blitz_spawn(send_input, g, NULL, &sender)) != 0)
        return rc;
    rc = blitz_stream_copy(blitz_tls_stream(g->tls).in, blitz_fd_writer(&out), NULL, BLITZ_FOREVER);
    if (rc != 0) {
        fprintf(stderr, "tls_echo: %s\n", blitz_tls_error(g->tls, &text));
        blitz_task_cancel(sender);
    }
    blitz_task_join(sender, &sent, BLITZ_FOREVER);
    return rc != 0 ? rc : sent;
}

static int visit(void *arg)
{
    char **argv = arg;
    struct visit v = {.host = argv[2]};
    struct guest g = {NULL, NULL};
    blitz_tls_text why;
    blitz_tls_opts opts = {.ca_file = argv[4]};
    v.at = blitz_addr_loopback_v4((uint16_t)atoi(argv[3]));
    int rc = blitz_tls_config_new(BLITZ_TLS_CLIENT, &opts, &why, &v.config);
    if (rc != 0) {
        fprintf(stderr, "tls_echo: %s\n", why.text);
        return rc;
    }
    rc = visit_open(&v, &g);
    if (rc == 0) {
        rc = converse(&g);
        guest_leave(&g);
    }
    blitz_tls_config_unref(v.config);
    return rc;
}

/* ---- both forms, with clients ---- */

static int try_form(int is_stackless, const struct tls_self *self)
{
    struct server server = {.is_stackless = is_stackless};
    struct visit v = {.host = "echo.test"};
    blitz_task *accepts, *clients[CLIENTS];
    blitz_tls_cert cert = {.cert_pem = self->cert, .key_pem = self->key};
    blitz_tls_opts trust = {.ca_pem = self->cert};
    int sum = 0, rc = server_config(&cert, &server.config);
    if (rc != 0 || (rc = blitz_tls_config_new(BLITZ_TLS_CLIENT, &trust, NULL, &v.config)) != 0 ||
        (rc = listen_at(&server, 0, &v.at)) != 0)
        return rc;
    blitz_tcp_listener_ref(server.listener); /* for accept_all */
    if ((rc = blitz_spawn(accept_all, &server, NULL, &accepts)) != 0)
        return rc;
    for (int i = 0; i < CLIENTS; i++)
        if (blitz_spawn(talk, &v, NULL, &clients[i]) != 0)
            clients[i] = NULL;
    for (int i = 0; i < CLIENTS; i++) {
        int right = 0;
        if (clients[i] != NULL)
            blitz_task_join(clients[i], &right, BLITZ_FOREVER);
        sum += right;
    }
    blitz_tcp_listener_close(server.listener); /* accept says so, and the task ends */
    blitz_task_join(accepts, NULL, BLITZ_FOREVER);
    blitz_tls_config_unref(server.config);
    blitz_tls_config_unref(v.config);
    printf("%s: %d of %d messages came back over %d connections\n",
           is_stackless ? "stackless tasks" : "fibers", sum, CLIENTS * MESSAGES, CLIENTS);
    return sum == CLIENTS * MESSAGES ? 0 : -EIO;
}

static int try_both(void *arg)
{
    struct tls_self self;
    (void)arg;
    int rc = tls_self_make(&self, "echo.test");
    if (rc == 0)
        rc = try_form(0, &self);
    return rc != 0 ? rc : try_form(1, &self);
}

int main(int argc, char **argv)
{
    int is_server = argc >= 4 && (strcmp(argv[1], "fiber") == 0 || strcmp(argv[1], "task") == 0);
    int is_client = argc == 5 && strcmp(argv[1], "client") == 0;
    if (argc > 1 && !is_server && !is_client) {
        fprintf(stderr, "usage: %s [fiber|task CERT KEY [PORT] | client HOST PORT CA]\n", argv[0]);
        return 2;
    }
    int rc = blitz_run(is_server ? serve : is_client ? visit : try_both, argv, NULL);
    if (rc < 0)
        fprintf(stderr, "tls_echo: %s\n", strerror(-rc));
    return rc < 0;
}
