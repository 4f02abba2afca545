/* blitz/tls.h: a message for OpenSSL that comes in two records, while we want to write. */
#include "harness.h"

#include <openssl/ssl.h>
#include <string.h>

#include "blitz/event.h"
#include "tls/pair.h"

/* A server by OpenSSL alone. Its ticket is longer than its records, and its rest comes only when it is told so. */
struct raw {
    struct t_world w;
    blitz_duplex *duplex;
    blitz_stream below[2];
    blitz_event is_begun, go;
    SSL *ssl;
    char heard[64];
};

static int big_ticket(SSL *ssl, void *arg)
{
    static const char filler[1200];
    (void)arg;
    return SSL_SESSION_set1_ticket_appdata(SSL_get_session(ssl), filler, sizeof filler);
}

static SSL_TICKET_RETURN any_ticket(SSL *ssl, SSL_SESSION *s, const unsigned char *key,
                                    size_t bytes, SSL_TICKET_STATUS status, void *arg)
{
    (void)ssl, (void)s, (void)key, (void)bytes, (void)arg;
    return status == SSL_TICKET_SUCCESS ? SSL_TICKET_RETURN_USE : SSL_TICKET_RETURN_IGNORE;
}

static SSL_CTX *raw_context(const struct t_world *w)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
    BIO *b = BIO_new_mem_buf(w->server.key_pem, -1);
    EVP_PKEY *key = PEM_read_bio_PrivateKey(b, NULL, NULL, NULL);
    CHECK_EQ(SSL_CTX_use_certificate(ctx, w->server.cert), 1);
    CHECK_EQ(SSL_CTX_use_PrivateKey(ctx, key), 1);
    SSL_CTX_set_num_tickets(ctx, 1);
    SSL_CTX_set_session_ticket_cb(ctx, big_ticket, any_ticket, NULL);
    SSL_CTX_set_max_send_fragment(ctx, 512);
    EVP_PKEY_free(key);
    BIO_free(b);
    return ctx;
}

static void raw_send(struct raw *r, size_t most)
{
    char data[8192];
    int n;
    while (most > 0 && (n = BIO_read(SSL_get_wbio(r->ssl), data,
                                     (int)(most < sizeof data ? most : sizeof data))) > 0) {
        CHECK_EQ(blitz_writer_write_all(r->below[1].out, data, (size_t)n, NULL, BLITZ_FOREVER), 0);
        most -= (size_t)n;
    }
}

static void raw_receive(struct raw *r)
{
    char data[4096];
    int64_t n = blitz_reader_read(r->below[1].in, data, sizeof data, BLITZ_FOREVER);
    CHECK_GT(n, 0);
    CHECK_EQ(BIO_write(SSL_get_rbio(r->ssl), data, (int)n), (int)n);
}

/* One thread: the error queue of OpenSSL is emptied by each call of ours in between, and not needed here. */
static int raw_server(void *arg)
{
    struct raw *r = arg;
    unsigned char *head;
    int n;
    while (SSL_do_handshake(r->ssl) != 1) {
        raw_send(r, SIZE_MAX);
        raw_receive(r);
    }
    long all = BIO_get_mem_data(SSL_get_wbio(r->ssl), &head);
    size_t first = 5 + ((size_t)head[3] << 8 | head[4]);
    CHECK_GT(all, (long)first); /* there are further records */
    raw_send(r, first);
    blitz_event_set(&r->is_begun);
    CHECK_EQ(blitz_event_wait(&r->go, BLITZ_FOREVER), 0);
    raw_send(r, SIZE_MAX);
    while ((n = SSL_read(r->ssl, r->heard, sizeof r->heard)) <= 0)
        raw_receive(r);
    CHECK_GT(SSL_write(r->ssl, r->heard, n), 0);
    raw_send(r, SIZE_MAX);
    return n;
}

static int reads_answer(void *arg)
{
    char data[16];
    return (int)blitz_tls_read(arg, data, sizeof data, BLITZ_FOREVER);
}

/* An end needs the rest, too. Its deadline may be over before. */
static int ends_early(void *arg)
{
    return blitz_tls_end(arg, blitz_after(BLITZ_MS));
}

static int writes(void *arg)
{
    return (int)blitz_tls_write(arg, "hello", 5, BLITZ_FOREVER);
}

/* with_reader: another task waits in a read, and has the read turn. */
static void stuck(struct raw *r, bool with_reader)
{
    blitz_tls_config *c = t_client_config(&r->w);
    SSL_CTX *ctx = raw_context(&r->w);
    blitz_tls *tls;
    char data[16];
    r->ssl = SSL_new(ctx);
    SSL_set_accept_state(r->ssl);
    SSL_set_bio(r->ssl, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    blitz_event_init(&r->is_begun);
    blitz_event_init(&r->go);
    CHECK_EQ(blitz_duplex_new(16384, r->below, &r->duplex), 0);
    CHECK_EQ(blitz_tls_new(c, r->below[0], "server.test", &tls), 0);
    blitz_task *server = t_spawn(raw_server, r);
    CHECK_EQ(blitz_tls_handshake(tls, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_event_wait(&r->is_begun, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_tls_read(tls, data, 4, 0), -ETIMEDOUT);     /* the first part is read */
    CHECK_EQ(blitz_tls_write(tls, "hello", 5, 0), -ETIMEDOUT); /* and the rest is wanted */
    CHECK_EQ(blitz_tls_end(tls, 0), -ETIMEDOUT);
    blitz_task *reader = NULL;
    if (with_reader) {
        reader = t_spawn(reads_answer, tls);
        t_until_waits(reader);
    }
    CHECK_EQ(ends_early(tls), -ETIMEDOUT);
    blitz_task *writer = t_spawn(writes, tls);
    t_until_waits(writer);
    blitz_event_set(&r->go);
    CHECK_EQ(t_join(writer), 5);
    CHECK_EQ(t_join(server), 5);
    CHECK_MEM_EQ(r->heard, "hello", 5);
    CHECK_EQ(with_reader ? t_join(reader) : reads_answer(tls), 5);
    CHECK_EQ(blitz_tls_end(tls, BLITZ_FOREVER), 0);
    blitz_tls_unref(tls);
    blitz_duplex_unref(r->duplex);
    SSL_free(r->ssl);
    SSL_CTX_free(ctx);
    blitz_tls_config_unref(c);
}

static int both(void *arg)
{
    stuck(arg, false);
    stuck(arg, true);
    return 0;
}

/* The peer answers only after our message: a write that waited for the reader to end would wait forever. */
TEST(tls_stuck, a_write_goes_on_when_the_rest_of_a_message_has_come)
{
    struct raw *r = calloc(1, sizeof *r);
    CHECK_NOT_NULL(r);
    t_world_new(&r->w);
    CHECK_EQ(blitz_run(both, r, &(blitz_runtime_opts){.procs = 1}), 0);
    t_world_free(&r->w);
    free(r);
}
