/*
 * pair.h - two ends of a TLS connection, over a duplex in memory or over TCP.
 */
#ifndef T_TLS_PAIR_H
#define T_TLS_PAIR_H

#include "harness.h"

#include "blitz.h"
#include "blitz/tls.h"
#include "support/net.h"
#include "tls/ca.h"

/* An authority, a server's certificate for "server.test" and 127.0.0.1, and one for a client. */
struct t_world {
    struct t_ca ca;
    struct t_id server, client;
    blitz_tls_cert server_cert, client_cert;
};

static inline blitz_tls_cert t_cert_of(const struct t_id *id)
{
    return (blitz_tls_cert){.cert_pem = id->cert_pem, .key_pem = id->key_pem};
}

static inline void t_world_new(struct t_world *w)
{
    t_ca_new(&w->ca, "Test Root");
    t_issue(&w->ca,
            &(struct t_wish){
                .name = "server", .san = "DNS:server.test,IP:127.0.0.1", .purpose = "serverAuth"},
            &w->server);
    t_issue(&w->ca, &(struct t_wish){.name = "the client", .purpose = "clientAuth"}, &w->client);
    w->server_cert = t_cert_of(&w->server);
    w->client_cert = t_cert_of(&w->client);
}

static inline void t_world_free(struct t_world *w)
{
    t_id_free(&w->server);
    t_id_free(&w->client);
    t_ca_free(&w->ca);
}

static inline blitz_tls_config *t_config(blitz_tls_side side, const blitz_tls_opts *opts)
{
    blitz_tls_config *c = NULL;
    blitz_tls_text why = {{0}};
    int err = blitz_tls_config_new(side, opts, &why, &c);
    t_watch("config: %s", why.text);
    CHECK_EQ(err, 0);
    return c;
}

/* The usual configurations of a world. */
static inline blitz_tls_config *t_server_config(const struct t_world *w)
{
    return t_config(BLITZ_TLS_SERVER, &(blitz_tls_opts){.certs = &w->server_cert, .cert_count = 1});
}

static inline blitz_tls_config *t_client_config(const struct t_world *w)
{
    return t_config(BLITZ_TLS_CLIENT, &(blitz_tls_opts){.ca_pem = w->ca.pem});
}

/* end[0]: the client's, end[1]: the server's. */
struct t_pair {
    blitz_tls *end[2];
    int err[2]; /* of the handshakes */
    blitz_tls_text text[2];
    blitz_duplex *duplex; /* or */
    blitz_tcp *tcp[2];
    blitz_stream below[2];
};

static inline int t_shake_server(void *arg)
{
    struct t_pair *p = arg;
    p->err[1] = blitz_tls_handshake(p->end[1], blitz_after(60 * BLITZ_S));
    blitz_tls_error(p->end[1], &p->text[1]);
    if (p->err[1] != 0 && p->duplex != NULL)
        blitz_duplex_close(p->duplex, 1);
    if (p->err[1] != 0 && p->duplex == NULL)
        blitz_tcp_shutdown(p->tcp[1], BLITZ_WRITABLE);
    return 0;
}

/* Shake hands over p->below. */
static inline void t_pair_shake(struct t_pair *p, blitz_tls_config *client,
                                blitz_tls_config *server, const char *host)
{
    CHECK_EQ(blitz_tls_new(client, p->below[0], host, &p->end[0]), 0);
    CHECK_EQ(blitz_tls_new(server, p->below[1], NULL, &p->end[1]), 0);
    blitz_task *t = t_spawn(t_shake_server, p);
    p->err[0] = blitz_tls_handshake(p->end[0], blitz_after(60 * BLITZ_S));
    blitz_tls_error(p->end[0], &p->text[0]);
    if (p->err[0] != 0 && p->duplex != NULL)
        blitz_duplex_close(p->duplex, 0);
    if (p->err[0] != 0 && p->duplex == NULL)
        blitz_tcp_shutdown(p->tcp[0], BLITZ_WRITABLE);
    t_join(t);
}

static inline void t_pair_memory(struct t_pair *p, size_t room, blitz_tls_config *client,
                                 blitz_tls_config *server, const char *host)
{
    *p = (struct t_pair){.duplex = NULL};
    CHECK_EQ(blitz_duplex_new(room, p->below, &p->duplex), 0);
    t_pair_shake(p, client, server, host);
}

static inline void t_pair_tcp(struct t_pair *p, blitz_tls_config *client, blitz_tls_config *server,
                              const char *host)
{
    *p = (struct t_pair){.duplex = NULL};
    t_tcp_pair(p->tcp);
    for (int i = 0; i < 2; i++)
        p->below[i] = blitz_tcp_stream(p->tcp[i]);
    t_pair_shake(p, client, server, host);
}

static inline void t_pair_free(struct t_pair *p)
{
    for (int i = 0; i < 2; i++)
        blitz_tls_unref(p->end[i]);
    if (p->duplex != NULL)
        blitz_duplex_unref(p->duplex);
    else
        t_close_both(p->tcp);
}

/* The text has the words. */
#define CHECK_SAYS(text, words)              \
    do {                                     \
        t_watch("%s", text);                 \
        CHECK_NOT_NULL(strstr(text, words)); \
    } while (0)

#endif
