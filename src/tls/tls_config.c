/*
 * tls_config.c - a configuration: an SSL_CTX made of options, which can be replaced.
 *
 * A set (struct bz_tls_set) has everything that comes from the options, and never changes. A
 * configuration points to its current set; a reload makes a new set and swaps the pointer. Each
 * connection holds a reference to the set that it began with.
 *
 * Tickets survive a reload, if a ticket proves nothing about the client: the keys move to the new
 * context. If the server verifies clients, a ticket stands for a certificate that the new options
 * may refuse; then the new context has new keys.
 *
 * [A] unref: refs release -> unref: refs acquire   all uses come before the free
 */
#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <stdio.h>
#include <string.h>

#include "blitz/blocking.h"
#include "tls/tls.h"

#define SESSIONS_DEFAULT 256

/* ---- certificates of ours ---- */

static BIO *pem_of(const char *file, const char *text)
{
    return file != NULL ? BIO_new_file(file, "r") : BIO_new_mem_buf(text, -1);
}

static const char *name_of(const char *file, const char *text)
{
    return file != NULL ? file : text;
}

/* Describe a failed load of a certificate or a key. Return the error. */
static int cert_fails(blitz_tls_text *why, const char *what, const char *file, const char *hint)
{
    blitz_tls_text inner;
    int err = bz_tls_fault(&inner, "OpenSSL says");
    if (err == -ENOENT || err == -EACCES || err == -EISDIR)
        bz_tls_say(why, "the %s %s cannot be read: %s.", what, file, bz_tls_cause(err));
    else
        bz_tls_say(why, "the %s %s is not usable. %s (%.300s)", what,
                   file != NULL ? file : "in memory", hint, inner.text);
    return err == -EPROTO ? -EINVAL : err;
}

static int chain_load(SSL_CTX *ctx, BIO *from)
{
    X509 *cert = PEM_read_bio_X509_AUX(from, NULL, NULL, NULL);
    int ok = cert != NULL && SSL_CTX_use_certificate(ctx, cert) == 1;
    X509_free(cert);
    while (ok && (cert = PEM_read_bio_X509(from, NULL, NULL, NULL)) != NULL)
        if (SSL_CTX_add0_chain_cert(ctx, cert) != 1) {
            X509_free(cert);
            ok = 0;
        }
    if (ok && ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE)
        ERR_clear_error(); /* the end of the text */
    return ok && ERR_peek_error() == 0;
}

/* Refuse a key with a passphrase: a library has no user to ask. */
/* NOLINTNEXTLINE(readability-non-const-parameter): the signature of OpenSSL */
static int no_passphrase(char *out, int bytes, int is_writing, void *arg)
{
    (void)out;
    (void)bytes;
    (void)is_writing;
    (void)arg;
    return -1;
}

static int key_load(SSL_CTX *ctx, BIO *from)
{
    EVP_PKEY *key = PEM_read_bio_PrivateKey(from, NULL, no_passphrase, NULL);
    int ok = key != NULL && SSL_CTX_use_PrivateKey(ctx, key) == 1;
    EVP_PKEY_free(key);
    return ok;
}

static int cert_load(SSL_CTX *ctx, const blitz_tls_cert *c, blitz_tls_text *why)
{
    bool is_one = c->key_file == NULL && c->key_pem == NULL;
    const char *key_file = is_one ? c->cert_file : c->key_file;
    const char *key_pem = is_one ? c->cert_pem : c->key_pem;
    if (name_of(c->cert_file, c->cert_pem) == NULL) {
        bz_tls_say(why, "an entry of `certs` has neither cert_file nor cert_pem.");
        return -EINVAL;
    }
    BIO *from = pem_of(c->cert_file, c->cert_pem);
    int ok = from != NULL && chain_load(ctx, from);
    BIO_free(from);
    if (!ok)
        return cert_fails(why, "certificate", c->cert_file,
                          "It must be PEM: the certificate first, then its issuers.");
    from = pem_of(key_file, key_pem);
    ok = from != NULL && key_load(ctx, from);
    BIO_free(from);
    if (ok)
        return 0;
    return cert_fails(why, "key", key_file,
                      "It must be PEM, without a passphrase, and belong to the certificate.");
}

/* ---- a context ---- */

static int verify_mode(const struct bz_tls_set *set, const blitz_tls_opts *opts)
{
    if (!set->is_verifying)
        return SSL_VERIFY_NONE;
    if (set->is_server && opts->verify == BLITZ_TLS_VERIFY_REQUIRE)
        return SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT;
    return SSL_VERIFY_PEER;
}

/* A list of the issuers that we trust, for clients that choose a certificate by it. */
static void name_issuers(SSL_CTX *ctx)
{
    STACK_OF(X509_OBJECT) *all = X509_STORE_get0_objects(SSL_CTX_get_cert_store(ctx));
    for (int i = 0; i < sk_X509_OBJECT_num(all); i++) {
        X509 *cert = X509_OBJECT_get0_X509(sk_X509_OBJECT_value(all, i));
        if (cert != NULL)
            SSL_CTX_add_client_CA(ctx, cert);
    }
    ERR_clear_error();
}

static int resumption_set(SSL_CTX *ctx, const struct bz_tls_set *set)
{
    static const unsigned char id[] = "blitz";
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF); /* a server: tickets alone */
    if (!set->is_resuming) {
        SSL_CTX_set_options(ctx, SSL_OP_NO_TICKET);
        return SSL_CTX_set_num_tickets(ctx, 0) == 1 ? 0 : -ENOMEM;
    }
    if (set->is_server)
        return SSL_CTX_set_session_id_context(ctx, id, sizeof id - 1) == 1 ? 0 : -ENOMEM;
    bz_tls_sessions_hook(ctx);
    return 0;
}

static int basics_set(SSL_CTX *ctx, const blitz_tls_opts *opts, blitz_tls_text *why)
{
    int least =
        opts->version_min == BLITZ_TLS_VERSION_DEFAULT ? TLS1_2_VERSION : (int)opts->version_min;
    SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                 SSL_OP_CIPHER_SERVER_PREFERENCE);
    SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_read_ahead(ctx, 1);
    if (least < TLS1_2_VERSION || SSL_CTX_set_min_proto_version(ctx, least) != 1) {
        bz_tls_say(why, "version_min is neither TLS 1.2 nor TLS 1.3.");
        return -EINVAL;
    }
    if (opts->ciphers != NULL && SSL_CTX_set_cipher_list(ctx, opts->ciphers) != 1) {
        bz_tls_say(why, "`ciphers` names no cipher that OpenSSL has: %s", opts->ciphers);
        return -EINVAL;
    }
    return 0;
}

static int context_make(struct bz_tls_set *set, const blitz_tls_opts *opts,
                        const blitz_tls_cert *cert, SSL_CTX **out, blitz_tls_text *why)
{
    SSL_CTX *ctx = SSL_CTX_new(set->is_server ? TLS_server_method() : TLS_client_method());
    int err = ctx != NULL ? basics_set(ctx, opts, why) : -ENOMEM;
    if (err == 0 && cert != NULL)
        err = cert_load(ctx, cert, why);
    if (err == 0 && set->is_verifying)
        err = bz_tls_store_load(ctx, opts, why);
    if (err == 0)
        err = resumption_set(ctx, set);
    if (err == 0)
        err = bz_tls_names_set(ctx, set);
    if (err != 0) {
        SSL_CTX_free(ctx);
        return err;
    }
    SSL_CTX_set_verify(ctx, verify_mode(set, opts), bz_tls_refuse);
    if (set->is_server && set->is_verifying)
        name_issuers(ctx);
    *out = ctx;
    return 0;
}

/* ---- a set ---- */

struct bz_tls_set *bz_tls_set_ref(struct bz_tls_set *set)
{
    bz_fetch_add_relaxed(&set->refs,
                         1); /* relaxed: the caller has a reference, or the lock of one */
    return set;
}

void bz_tls_set_unref(struct bz_tls_set *set)
{
    if (set == NULL || bz_fetch_sub_acqrel(&set->refs, 1) != 1) /* [A] */
        return;
    for (size_t i = 0; i < set->name_count; i++)
        SSL_CTX_free(set->by_name[i]);
    OPENSSL_free(set->by_name);
    OPENSSL_free(set->alpn);
    OPENSSL_free(set);
}

static int contexts_make(struct bz_tls_set *set, const blitz_tls_opts *opts, blitz_tls_text *why)
{
    size_t count = opts->cert_count > 0 ? opts->cert_count : 1;
    /* NOLINTNEXTLINE(bugprone-sizeof-expression): an array of pointers */
    set->by_name = OPENSSL_zalloc(count * sizeof set->by_name[0]);
    if (set->by_name == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++) {
        int err = context_make(set, opts, opts->cert_count > 0 ? &opts->certs[i] : NULL,
                               &set->by_name[i], why);
        if (err != 0)
            return err;
        set->name_count++;
    }
    set->ctx = set->by_name[0];
    return 0;
}

static int opts_check(blitz_tls_side side, const blitz_tls_opts *opts, blitz_tls_text *why)
{
    const char *bad = NULL;
    if (side != BLITZ_TLS_CLIENT && side != BLITZ_TLS_SERVER)
        bad = "the side is neither client nor server.";
    else if (opts->verify < BLITZ_TLS_VERIFY_DEFAULT || opts->verify > BLITZ_TLS_VERIFY_NEVER)
        bad = "`verify` has none of its values.";
    else if (opts->cert_count > 0 && opts->certs == NULL)
        bad = "cert_count is more than 0, and `certs` is NULL.";
    else if (side == BLITZ_TLS_SERVER && opts->cert_count == 0)
        bad = "a server needs a certificate: give it in `certs`.";
    else if (side == BLITZ_TLS_CLIENT && opts->cert_count > 1)
        bad = "a client has one certificate at most.";
    else if (opts->alpn_count > 0 && opts->alpn == NULL)
        bad = "alpn_count is more than 0, and `alpn` is NULL.";
    if (bad != NULL)
        bz_tls_say(why, "%s", bad);
    return bad != NULL ? -EINVAL : 0;
}

static bool is_verifying(blitz_tls_side side, blitz_tls_verify verify)
{
    if (side == BLITZ_TLS_CLIENT)
        return verify != BLITZ_TLS_VERIFY_NEVER;
    return verify == BLITZ_TLS_VERIFY_REQUEST || verify == BLITZ_TLS_VERIFY_REQUIRE;
}

static int set_make(blitz_tls_side side, const blitz_tls_opts *opts, struct bz_tls_set **out,
                    blitz_tls_text *why)
{
    struct bz_tls_set *set = OPENSSL_zalloc(sizeof *set);
    if (set == NULL)
        return -ENOMEM;
    bz_atomic_init(&set->refs, 1);
    set->is_server = side == BLITZ_TLS_SERVER;
    set->is_verifying = is_verifying(side, opts->verify);
    set->is_name_required = opts->is_name_required;
    set->is_resuming = !opts->is_resumption_off;
    set->sessions_max = opts->sessions_max > 0 ? opts->sessions_max : SESSIONS_DEFAULT;
    int err = bz_tls_alpn_wire(opts, set, why);
    if (err == 0)
        err = contexts_make(set, opts, why);
    if (err == 0)
        *out = set;
    else
        bz_tls_set_unref(set);
    return err;
}

struct making {
    blitz_tls_side side;
    const blitz_tls_opts *opts;
    struct bz_tls_set *set;
    blitz_tls_text why;
};

static int make_on_thread(void *arg)
{
    struct making *m = arg;
    bz_tls_begin();
    int err = opts_check(m->side, m->opts, &m->why);
    if (err == 0)
        err = set_make(m->side, m->opts, &m->set, &m->why);
    if (err == -ENOMEM)
        bz_tls_say(&m->why, "out of memory.");
    ERR_clear_error();
    return err;
}

/* Make a set where the files can be read without blocking a worker. */
static int make_set(blitz_tls_side side, const blitz_tls_opts *opts, struct bz_tls_set **out,
                    blitz_tls_text *why)
{
    static const blitz_tls_opts none;
    struct making m = {.side = side, .opts = opts != NULL ? opts : &none};
    int err = blitz_blocking(make_on_thread, &m);
    if (err != 0 && why != NULL)
        *why = m.why;
    if (err == 0)
        *out = m.set;
    return err;
}

/* ---- configurations ---- */

static void config_free(blitz_tls_config *c)
{
    bz_tls_sessions_clear(&c->sessions);
    bz_tls_set_unref(c->set);
    BIO_meth_free(c->wire);
    CRYPTO_THREAD_lock_free(c->lock);
    OPENSSL_free(c);
}

int blitz_tls_config_new(blitz_tls_side side, const blitz_tls_opts *opts, blitz_tls_text *why,
                         blitz_tls_config **out)
{
    struct bz_tls_set *set;
    int err = make_set(side, opts, &set, why);
    if (err != 0)
        return err;
    blitz_tls_config *c = OPENSSL_zalloc(sizeof *c);
    if (c == NULL) {
        bz_tls_set_unref(set);
        return -ENOMEM;
    }
    bz_atomic_init(&c->refs, 1);
    c->side = side;
    c->set = set;
    c->lock = CRYPTO_THREAD_lock_new();
    c->wire = bz_tls_wire_method();
    if (c->lock == NULL || c->wire == NULL) {
        config_free(c);
        ERR_clear_error();
        return -ENOMEM;
    }
    *out = c;
    return 0;
}

/* Let the new context open the tickets of the old one. */
static void tickets_move(struct bz_tls_set *from, struct bz_tls_set *to)
{
    unsigned char keys[256];
    long bytes = SSL_CTX_get_tlsext_ticket_keys(from->ctx, NULL, 0);
    if (from->is_verifying || to->is_verifying || bytes <= 0 || bytes > (long)sizeof keys)
        return;
    if (SSL_CTX_get_tlsext_ticket_keys(from->ctx, keys, bytes) == 1)
        SSL_CTX_set_tlsext_ticket_keys(to->ctx, keys, bytes);
    OPENSSL_cleanse(keys, sizeof keys);
}

int blitz_tls_config_reload(blitz_tls_config *config, const blitz_tls_opts *opts,
                            blitz_tls_text *why)
{
    struct bz_tls_set *set = NULL, *old;
    int err = make_set(config->side, opts, &set, why);
    if (err != 0)
        return err;
    if (!CRYPTO_THREAD_write_lock(config->lock)) {
        bz_tls_set_unref(set);
        return -ENOMEM;
    }
    old = config->set;
    if (set->is_server)
        tickets_move(old, set);
    config->set = set;
    bz_tls_sessions_clear(&config->sessions);
    CRYPTO_THREAD_unlock(config->lock);
    bz_tls_set_unref(old);
    ERR_clear_error();
    return 0;
}

blitz_tls_config *blitz_tls_config_ref(blitz_tls_config *config)
{
    if (config != NULL)
        bz_fetch_add_relaxed(&config->refs, 1); /* relaxed: the caller has a reference */
    return config;
}

void blitz_tls_config_unref(blitz_tls_config *config)
{
    if (config != NULL && bz_fetch_sub_acqrel(&config->refs, 1) == 1) /* [A] */
        config_free(config);
}
