/* blitz/tls.h: who is trusted, who is refused and with which words, and what else two sides agree on. */
#include "harness.h"

#include <string.h>
#include <unistd.h>

#include "tls/pair.h"

static const char hello[] = "hello over tls";

/* One message each way. */
static void exchange(struct t_pair *p)
{
    char heard[64];
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(blitz_tls_write(p->end[i], hello, sizeof hello, blitz_after(30 * BLITZ_S)),
                 sizeof hello);
        CHECK_EQ(blitz_tls_read_exact(p->end[1 - i], heard, sizeof hello, NULL,
                                      blitz_after(30 * BLITZ_S)),
                 0);
        CHECK_MEM_EQ(heard, hello, sizeof hello);
    }
}

struct
try {
    struct t_world w;
    struct t_pair p;
};

static void on(int (*fn)(void *))
{
    struct try *t = calloc(1, sizeof *t);
    CHECK_NOT_NULL(t);
    t_world_new(&t->w);
    int err = blitz_run(fn, t, NULL);
    CHECK_EQ(err, 0);
    t_world_free(&t->w);
    free(t);
}

/* ---- it works ---- */

static int verified(void *arg)
{
    struct try *t = arg;
    blitz_tls_config *c = t_client_config(&t->w), *s = t_server_config(&t->w);
    blitz_tls_info info;
    for (int i = 0; i < 2; i++) {
        if (i == 0)
            t_pair_memory(&t->p, 4096, c, s, "server.test");
        else
            t_pair_tcp(&t->p, c, s, "127.0.0.1");
        t_watch("%s / %s", t->p.text[0].text, t->p.text[1].text);
        CHECK_EQ(t->p.err[0], 0);
        CHECK_EQ(t->p.err[1], 0);
        exchange(&t->p);
        CHECK_EQ(blitz_tls_info_read(t->p.end[0], &info), 0);
        CHECK_STR_EQ(info.version, "TLSv1.3");
        CHECK_STR_EQ(info.peer, "CN = server");
        CHECK(info.is_peer_verified);
        CHECK_STR_EQ(t->p.text[0].text, "no error");
        CHECK_EQ(blitz_tls_handshake(t->p.end[0], 0), 0);
        t_pair_free(&t->p);
    }
    blitz_tls_config_unref(c);
    blitz_tls_config_unref(s);
    return 0;
}

/* Over memory and over a socket; by name and by address. */
TEST(tls, a_verified_peer_and_bytes_in_both_directions)
{
    on(verified);
}

/* ---- the refused ---- */

struct bad {
    struct t_wish wish;
    const char *host;
    const char *says;
    bool is_revoked;
};

static const struct bad bads[] = {
    {{.name = "old", .san = "DNS:server.test", .from_s = -2 * 86400L, .to_s = -86400L},
     "server.test",
     "CN = old expired on",
     false},
    {{.name = "new", .san = "DNS:server.test", .from_s = 86400L},
     "server.test",
     "CN = new is not valid before",
     false},
    {{.name = "self", .san = "DNS:server.test", .is_self_signed = true},
     "server.test",
     "signed by itself and not trusted",
     false},
    {{.name = "other", .san = "DNS:other.test"},
     "server.test",
     "not for the host \"server.test\": it names other.test",
     false},
    {{.name = "other", .san = "DNS:other.test,IP:127.0.0.2"},
     "127.0.0.1",
     "not for the host \"127.0.0.1\": it names other.test, 127.0.0.2",
     false},
    {{.name = "half", .san = "DNS:s*.test"}, "server.test", "not for the host", false},
    {{.name = "gone", .san = "DNS:server.test"}, "server.test", "CN = gone is revoked", true},
    {{.name = "mail", .san = "DNS:server.test", .purpose = "emailProtection"},
     "server.test",
     "made for another purpose",
     false},
};

static int refused(void *arg)
{
    struct try *t = arg;
    char crl[4096];
    for (size_t i = 0; i < sizeof bads / sizeof bads[0]; i++) {
        const struct bad *b = &bads[i];
        struct t_id id;
        t_issue(&t->w.ca, &b->wish, &id);
        t_crl(&t->w.ca, id.cert, 86400, crl, sizeof crl);
        blitz_tls_cert cert = t_cert_of(&id);
        blitz_tls_config *s =
            t_config(BLITZ_TLS_SERVER, &(blitz_tls_opts){.certs = &cert, .cert_count = 1});
        blitz_tls_config *c =
            t_config(BLITZ_TLS_CLIENT, &(blitz_tls_opts){.ca_pem = t->w.ca.pem,
                                                         .crl_pem = b->is_revoked ? crl : NULL});
        t_pair_memory(&t->p, 4096, c, s, b->host);
        CHECK_EQ(t->p.err[0], -EACCES);
        CHECK_SAYS(t->p.text[0].text, b->says);
        char data[8];
        CHECK_EQ(blitz_tls_read(t->p.end[0], data, 8, 0), -EACCES);
        CHECK_EQ(blitz_tls_write(t->p.end[0], data, 8, 0), -EACCES);
        t_pair_free(&t->p);
        blitz_tls_config_unref(c);
        blitz_tls_config_unref(s);
        t_id_free(&id);
    }
    return 0;
}

/* Each with its own words: which certificate, what is wrong. */
TEST(tls, expired_early_self_signed_wrong_host_revoked_and_misused_certificates_are_refused)
{
    on(refused);
}

static int unknown(void *arg)
{
    struct try *t = arg;
    struct t_ca other;
    t_ca_new(&other, "Another Root");
    blitz_tls_config *s = t_server_config(&t->w);
    blitz_tls_config *c = t_config(BLITZ_TLS_CLIENT, &(blitz_tls_opts){.ca_pem = other.pem});
    t_pair_memory(&t->p, 4096, c, s, "server.test");
    CHECK_EQ(t->p.err[0], -EACCES);
    CHECK_SAYS(t->p.text[0].text, "an issuer that is not known");
    CHECK_EQ(t->p.err[1], -EPROTO); /* the alert has come */
    CHECK_SAYS(t->p.text[1].text, "the peer does not trust the issuer of our certificate");
    t_pair_free(&t->p);
    blitz_tls_config_unref(c);
    /* The list of another issuer says nothing about this one. */
    char crl[4096];
    t_crl(&other, NULL, 86400, crl, sizeof crl);
    c = t_config(BLITZ_TLS_CLIENT, &(blitz_tls_opts){.ca_pem = t->w.ca.pem, .crl_pem = crl});
    t_pair_memory(&t->p, 4096, c, s, "server.test");
    CHECK_EQ(t->p.err[0], -EACCES);
    CHECK_SAYS(t->p.text[0].text, "revocation list is missing");
    t_pair_free(&t->p);
    blitz_tls_config_unref(c);
    t_crl(&t->w.ca, NULL, -30, crl, sizeof crl);
    c = t_config(BLITZ_TLS_CLIENT, &(blitz_tls_opts){.ca_pem = t->w.ca.pem, .crl_pem = crl});
    t_pair_memory(&t->p, 4096, c, s, "server.test");
    CHECK_EQ(t->p.err[0], -EACCES);
    CHECK_SAYS(t->p.text[0].text, "revocation list is out of date");
    t_pair_free(&t->p);
    blitz_tls_config_unref(c);
    t_crl(&t->w.ca, NULL, 86400, crl, sizeof crl);
    c = t_config(BLITZ_TLS_CLIENT, &(blitz_tls_opts){.ca_pem = t->w.ca.pem, .crl_pem = crl});
    t_pair_memory(&t->p, 4096, c, s, "server.test");
    CHECK_EQ(t->p.err[0], 0);
    t_pair_free(&t->p);
    blitz_tls_config_unref(c);
    blitz_tls_config_unref(s);
    t_ca_free(&other);
    return 0;
}

TEST(tls, an_unknown_issuer_or_a_missing_or_old_revocation_list_is_refused)
{
    on(unknown);
}

static int never(void *arg)
{
    struct try *t = arg;
    blitz_tls_info info;
    blitz_tls *tls;
    blitz_tls_config *s = t_server_config(&t->w);
    blitz_tls_config *c =
        t_config(BLITZ_TLS_CLIENT, &(blitz_tls_opts){.verify = BLITZ_TLS_VERIFY_NEVER});
    t_pair_memory(&t->p, 4096, c, s, "wrong.test");
    CHECK_EQ(t->p.err[0], 0);
    CHECK_EQ(blitz_tls_info_read(t->p.end[0], &info), 0);
    CHECK(!info.is_peer_verified);
    CHECK_EQ(blitz_tls_new(c, t->p.below[0], NULL, &tls), 0); /* no host needed */
    blitz_tls_unref(tls);
    blitz_tls_config_unref(c);
    c = t_client_config(&t->w);
    CHECK_EQ(blitz_tls_new(c, t->p.below[0], NULL, &tls), -EINVAL); /* needed */
    CHECK_EQ(blitz_tls_new(c, t->p.below[0], "", &tls), -EINVAL);
    CHECK_EQ(blitz_tls_new(s, t->p.below[0], "server.test", &tls), -EINVAL);
    CHECK_EQ(blitz_tls_new(s, (blitz_stream){0}, NULL, &tls), -EINVAL);
    CHECK_EQ(blitz_tls_new(c, t->p.below[0], "server.test", &tls), 0);
    CHECK_EQ(blitz_tls_info_read(tls, &info), -ENOTCONN);
    CHECK_EQ(blitz_tls_read(tls, &info, 4, 0), -ENOTCONN);
    CHECK_EQ(blitz_tls_write(tls, &info, 4, 0), -ENOTCONN);
    CHECK_EQ(blitz_tls_end(tls, 0), -ENOTCONN);
    blitz_tls_unref(tls);
    t_pair_free(&t->p);
    blitz_tls_config_unref(c);
    blitz_tls_config_unref(s);
    return 0;
}

TEST(tls, only_an_explicit_option_turns_verification_off)
{
    on(never);
}

/* ---- client certificates ---- */

static void with_client(struct try *t, blitz_tls_verify verify, const blitz_tls_cert *cert,
                        int want, const char *peer)
{
    blitz_tls_info info;
    char data[4];
    blitz_tls_config *s = t_config(BLITZ_TLS_SERVER, &(blitz_tls_opts){.certs = &t->w.server_cert,
                                                                       .cert_count = 1,
                                                                       .verify = verify,
                                                                       .ca_pem = t->w.ca.pem});
    blitz_tls_config *c = t_config(
        BLITZ_TLS_CLIENT,
        &(blitz_tls_opts){.ca_pem = t->w.ca.pem, .certs = cert, .cert_count = cert != NULL});
    t_pair_memory(&t->p, 4096, c, s, "server.test");
    t_watch("%s / %s", t->p.text[0].text, t->p.text[1].text);
    CHECK_EQ(t->p.err[1], want);
    if (want == 0) {
        exchange(&t->p);
        CHECK_EQ(blitz_tls_info_read(t->p.end[1], &info), 0);
        CHECK_STR_EQ(info.peer, peer);
        CHECK_EQ(info.is_peer_verified, peer[0] != '\0');
    } else if (t->p.err[0] == 0) { /* TLS 1.3: the client learns of it by its first read */
        CHECK_EQ(blitz_tls_read(t->p.end[0], data, 4, blitz_after(30 * BLITZ_S)), -EPROTO);
        blitz_tls_error(t->p.end[0], &t->p.text[0]);
    }
    t_pair_free(&t->p);
    blitz_tls_config_unref(c);
    blitz_tls_config_unref(s);
}

static int clients(void *arg)
{
    struct try *t = arg;
    struct t_id bad;
    with_client(t, BLITZ_TLS_VERIFY_REQUIRE, &t->w.client_cert, 0, "CN = the client");
    with_client(t, BLITZ_TLS_VERIFY_REQUEST, &t->w.client_cert, 0, "CN = the client");
    with_client(t, BLITZ_TLS_VERIFY_REQUEST, NULL, 0, "");
    with_client(t, BLITZ_TLS_VERIFY_DEFAULT, &t->w.client_cert, 0, "");
    with_client(t, BLITZ_TLS_VERIFY_REQUIRE, NULL, -EPROTO, "");
    CHECK_SAYS(t->p.text[1].text, "the client has shown no certificate");
    CHECK_SAYS(t->p.text[0].text, "the peer wants a certificate from us");
    with_client(t, BLITZ_TLS_VERIFY_REQUIRE, &t->w.server_cert, -EACCES,
                ""); /* the wrong purpose */
    CHECK_SAYS(t->p.text[1].text, "CN = server is made for another purpose");
    t_issue(&t->w.ca, &(struct t_wish){.name = "late", .from_s = -2 * 86400L, .to_s = -86400L},
            &bad);
    blitz_tls_cert cert = t_cert_of(&bad);
    with_client(t, BLITZ_TLS_VERIFY_REQUEST, &cert, -EACCES, "");
    CHECK_SAYS(t->p.text[1].text, "CN = late expired on");
    CHECK_SAYS(t->p.text[0].text, "our certificate has expired; renew it");
    t_id_free(&bad);
    return 0;
}

TEST(tls, client_certificates_are_asked_for_required_and_verified)
{
    on(clients);
}

/* ---- names and protocols ---- */

static int by_name(void *arg)
{
    struct try *t = arg;
    static const char *const hosts[] = {"server.test", "b.test", "deep.c.test", "nobody.test"};
    static const char *const peers[] = {"CN = server", "CN = b", "CN = c", "CN = server"};
    struct t_id b, c;
    blitz_tls_info info;
    t_issue(&t->w.ca, &(struct t_wish){.name = "b", .san = "DNS:b.test"}, &b);
    t_issue(&t->w.ca, &(struct t_wish){.name = "c", .san = "DNS:*.c.test"}, &c);
    blitz_tls_cert certs[] = {t->w.server_cert, t_cert_of(&b), t_cert_of(&c)};
    blitz_tls_opts opts = {.certs = certs, .cert_count = 3};
    blitz_tls_config *s = t_config(BLITZ_TLS_SERVER, &opts);
    blitz_tls_config *cl = t_client_config(&t->w);
    blitz_tls_config *any =
        t_config(BLITZ_TLS_CLIENT, &(blitz_tls_opts){.verify = BLITZ_TLS_VERIFY_NEVER});
    for (int i = 0; i < 4; i++) {
        t_pair_memory(&t->p, 4096, i < 3 ? cl : any, s, hosts[i]);
        CHECK_EQ(t->p.err[0], 0);
        CHECK_EQ(blitz_tls_info_read(t->p.end[0], &info), 0);
        CHECK_STR_EQ(info.peer, peers[i]);
        CHECK_EQ(blitz_tls_info_read(t->p.end[1], &info), 0);
        CHECK_STR_EQ(info.server_name, i < 3 ? hosts[i] : info.server_name);
        t_pair_free(&t->p);
    }
    opts.is_name_required = true;
    CHECK_EQ(blitz_tls_config_reload(s, &opts, NULL), 0);
    t_pair_memory(&t->p, 4096, any, s, "nobody.test");
    CHECK_EQ(t->p.err[0], -EPROTO);
    CHECK_SAYS(t->p.text[0].text, "no certificate for the name that we asked for");
    t_pair_free(&t->p);
    blitz_tls_config_unref(any);
    blitz_tls_config_unref(cl);
    blitz_tls_config_unref(s);
    t_id_free(&b);
    t_id_free(&c);
    return 0;
}

TEST(tls, a_server_shows_the_certificate_of_the_name_that_is_asked_for)
{
    on(by_name);
}

static int protocols(void *arg)
{
    struct try *t = arg;
    static const char *const ours[] = {"h2", "http/1.1"}, *const theirs[] = {"http/1.1", "x"},
                             *const odd[] = {"y"};
    blitz_tls_info info;
    blitz_tls_config *s =
        t_config(BLITZ_TLS_SERVER,
                 &(blitz_tls_opts){
                     .certs = &t->w.server_cert, .cert_count = 1, .alpn = ours, .alpn_count = 2});
    blitz_tls_config *c =
        t_config(BLITZ_TLS_CLIENT,
                 &(blitz_tls_opts){.ca_pem = t->w.ca.pem, .alpn = theirs, .alpn_count = 2});
    blitz_tls_config *o = t_config(
        BLITZ_TLS_CLIENT, &(blitz_tls_opts){.ca_pem = t->w.ca.pem, .alpn = odd, .alpn_count = 1});
    t_pair_memory(&t->p, 4096, c, s, "server.test");
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(blitz_tls_info_read(t->p.end[i], &info), 0);
        CHECK_STR_EQ(info.alpn, "http/1.1");
    }
    t_pair_free(&t->p);
    t_pair_memory(&t->p, 4096, o, s, "server.test");
    CHECK_EQ(t->p.err[0], -EPROTO);
    CHECK_SAYS(t->p.text[0].text, "no protocol (ALPN) in common");
    t_pair_free(&t->p);
    blitz_tls_config_unref(o);
    blitz_tls_config_unref(c);
    blitz_tls_config_unref(s);
    return 0;
}

TEST(tls, both_sides_agree_on_a_protocol_or_part)
{
    on(protocols);
}

/* ---- sessions and reload ---- */

static bool again(struct try *t, blitz_tls_config *c, blitz_tls_config *s)
{
    blitz_tls_info info;
    t_pair_memory(&t->p, 4096, c, s, "server.test");
    t_watch("%s / %s", t->p.text[0].text, t->p.text[1].text);
    CHECK_EQ(t->p.err[0], 0);
    exchange(&t->p); /* the tickets come with it */
    CHECK_EQ(blitz_tls_info_read(t->p.end[0], &info), 0);
    CHECK(info.is_peer_verified);
    t_pair_free(&t->p);
    return info.is_resumed;
}

static int resumes(void *arg)
{
    struct try *t = arg;
    blitz_tls_opts server = {.certs = &t->w.server_cert, .cert_count = 1};
    blitz_tls_opts client = {.ca_pem = t->w.ca.pem};
    blitz_tls_config *c = t_config(BLITZ_TLS_CLIENT, &client),
                     *s = t_config(BLITZ_TLS_SERVER, &server);
    CHECK(!again(t, c, s));
    CHECK(again(t, c, s));
    CHECK(again(t, c, s));
    CHECK_EQ(blitz_tls_config_reload(s, &server, NULL), 0);
    CHECK(again(t, c, s)); /* tickets survive */
    CHECK_EQ(blitz_tls_config_reload(c, &client, NULL), 0);
    CHECK(!again(t, c, s)); /* the client has forgotten */
    CHECK(again(t, c, s));
    server.is_resumption_off = true;
    CHECK_EQ(blitz_tls_config_reload(s, &server, NULL), 0);
    CHECK(!again(t, c, s));
    CHECK(!again(t, c, s));
    server.is_resumption_off = false;
    server.verify = BLITZ_TLS_VERIFY_REQUEST;
    server.ca_pem = t->w.ca.pem;
    CHECK_EQ(blitz_tls_config_reload(s, &server, NULL), 0);
    CHECK(!again(t, c, s));
    CHECK(again(t, c, s));
    CHECK_EQ(blitz_tls_config_reload(s, &server, NULL), 0);
    CHECK(!again(t, c, s)); /* a ticket stood for a client: it is void */
    blitz_tls_config_unref(c);
    blitz_tls_config_unref(s);
    return 0;
}

TEST(tls, sessions_are_resumed_until_a_reload_makes_them_void)
{
    on(resumes);
}

static int reloads(void *arg)
{
    struct try *t = arg;
    struct t_id fresh;
    struct t_pair later;
    blitz_tls_info info;
    blitz_tls_text why;
    blitz_tls_opts opts = {.certs = &t->w.server_cert, .cert_count = 1};
    blitz_tls_config *c = t_client_config(&t->w), *s = t_config(BLITZ_TLS_SERVER, &opts);
    t_pair_memory(&t->p, 4096, c, s, "server.test");
    t_issue(&t->w.ca, &(struct t_wish){.name = "fresh", .san = "DNS:server.test"}, &fresh);
    blitz_tls_cert cert = {.cert_pem = fresh.cert_pem, .key_pem = t->w.server.key_pem};
    opts.certs = &cert;
    CHECK_EQ(blitz_tls_config_reload(s, &opts, &why), -EINVAL); /* the wrong key: all as before */
    CHECK_SAYS(why.text, "key values mismatch");
    cert.key_pem = fresh.key_pem;
    CHECK_EQ(blitz_tls_config_reload(s, &opts, &why), 0);
    CHECK_EQ(blitz_tls_config_reload(c, &(blitz_tls_opts){.ca_pem = t->w.ca.pem}, NULL), 0);
    t_pair_memory(&later, 4096, c, s, "server.test");
    CHECK_EQ(later.err[0], 0);
    CHECK_EQ(blitz_tls_info_read(later.end[0], &info), 0);
    CHECK_STR_EQ(info.peer, "CN = fresh");
    exchange(&later);
    exchange(&t->p); /* the old connection goes on */
    CHECK_EQ(blitz_tls_info_read(t->p.end[0], &info), 0);
    CHECK_STR_EQ(info.peer, "CN = server");
    t_pair_free(&later);
    t_pair_free(&t->p);
    blitz_tls_config_unref(c);
    blitz_tls_config_unref(s);
    t_id_free(&fresh);
    return 0;
}

TEST(tls, a_reload_changes_new_connections_and_drops_none)
{
    on(reloads);
}

/* ---- options ---- */

/* A plain thread may make a configuration, too. */
TEST(tls, bad_options_are_refused_with_words)
{
    struct t_world *w = calloc(1, sizeof *w);
    CHECK_NOT_NULL(w);
    t_world_new(w);
    const struct {
        blitz_tls_side side;
        blitz_tls_opts opts;
        blitz_tls_cert cert;
        int err;
        const char *says;
    } rows[] = {
        {BLITZ_TLS_SERVER, {0}, {0}, -EINVAL, "a server needs a certificate"},
        {BLITZ_TLS_SERVER, {.cert_count = 1}, {0}, -EINVAL, "neither cert_file nor cert_pem"},
        {BLITZ_TLS_SERVER,
         {.cert_count = 1},
         {.cert_file = "/no/such.pem"},
         -ENOENT,
         "/no/such.pem cannot be read: No such file"},
        {BLITZ_TLS_SERVER,
         {.cert_count = 1},
         {.cert_pem = w->server.cert_pem},
         -EINVAL,
         "the key in memory is not usable"},
        {BLITZ_TLS_SERVER,
         {.cert_count = 1},
         {.cert_pem = w->server.cert_pem, .key_pem = w->client.key_pem},
         -EINVAL,
         "key values mismatch"},
        {BLITZ_TLS_SERVER,
         {.cert_count = 1},
         {.cert_pem = "junk"},
         -EINVAL,
         "the certificate in memory is not usable"},
        {BLITZ_TLS_CLIENT,
         {.ca_file = "/no/such.pem"},
         {0},
         -ENOENT,
         "/no/such.pem cannot be read"},
        {BLITZ_TLS_CLIENT, {.ca_dir = "/no/such"}, {0}, -ENOENT, "the directory /no/such"},
        {BLITZ_TLS_CLIENT, {.ca_pem = "junk"}, {0}, -EINVAL, "ca_pem holds nothing"},
        {BLITZ_TLS_CLIENT,
         {.ca_pem = w->ca.pem, .crl_pem = "junk"},
         {0},
         -EINVAL,
         "crl_pem holds nothing"},
        {BLITZ_TLS_CLIENT,
         {.ca_pem = w->ca.pem, .ciphers = "none"},
         {0},
         -EINVAL,
         "names no cipher"},
        {BLITZ_TLS_CLIENT,
         {.ca_pem = w->ca.pem, .version_min = (blitz_tls_version)0x0301},
         {0},
         -EINVAL,
         "neither TLS 1.2 nor"},
        {BLITZ_TLS_CLIENT,
         {.ca_pem = w->ca.pem, .verify = (blitz_tls_verify)9},
         {0},
         -EINVAL,
         "none of its values"},
        {BLITZ_TLS_CLIENT, {.ca_pem = w->ca.pem, .alpn_count = 1}, {0}, -EINVAL, "`alpn` is NULL"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        blitz_tls_config *c;
        blitz_tls_text why = {{0}};
        blitz_tls_opts opts = rows[i].opts;
        opts.certs = &rows[i].cert;
        CHECK_EQ(blitz_tls_config_new(rows[i].side, &opts, &why, &c), rows[i].err);
        CHECK_SAYS(why.text, rows[i].says);
        CHECK_EQ(blitz_tls_config_new(rows[i].side, &opts, NULL, &c), rows[i].err);
    }
    t_world_free(w);
    free(w);
}

/* ---- files ---- */

static void put(const char *folder, const char *name, const char *text, char path[200])
{
    snprintf(path, 200, "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    CHECK_NOT_NULL(f);
    CHECK_GE(fputs(text, f), 0);
    CHECK_EQ(fclose(f), 0);
}

static int files(void *arg)
{
    struct try *t = arg;
    char folder[] = "/tmp/blitz-tls-test-XXXXXX", ca[200], cert[200], key[200];
    CHECK_NOT_NULL(mkdtemp(folder));
    put(folder, "ca.pem", t->w.ca.pem, ca);
    put(folder, "cert.pem", t->w.server.cert_pem, cert);
    put(folder, "key.pem", t->w.server.key_pem, key);
    CHECK_EQ(setenv("SSL_CERT_FILE", ca, 1), 0);
    blitz_tls_cert of_files = {.cert_file = cert, .key_file = key};
    blitz_tls_config *s =
        t_config(BLITZ_TLS_SERVER, &(blitz_tls_opts){.certs = &of_files, .cert_count = 1});
    const blitz_tls_opts ways[] = {{.ca_file = ca}, {.ca_dir = folder}, {.ca_file = NULL}};
    for (int i = 0; i < 3; i++) {
        blitz_tls_config *c = t_config(BLITZ_TLS_CLIENT, i < 2 ? &ways[i] : NULL);
        t_pair_memory(&t->p, 4096, c, s, "server.test");
        t_watch("way %d: %s", i, t->p.text[0].text);
        CHECK_EQ(t->p.err[0], 0);
        exchange(&t->p);
        t_pair_free(&t->p);
        blitz_tls_config_unref(c);
    }
    blitz_tls_config_unref(s);
    CHECK_EQ(unlink(ca) + unlink(cert) + unlink(key) + rmdir(folder), 0);
    return 0;
}

/* A file, a directory, and the system's store, which the environment names here. */
TEST(tls, certificates_come_from_files_directories_and_the_system)
{
    on(files);
}
