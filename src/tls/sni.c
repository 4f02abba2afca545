/*
 * sni.c - a server's answers to the names in a client's first message: SNI and ALPN.
 *
 * A server has a context for each certificate. The client names the host that it wants; the first
 * certificate that is valid for this name is shown. OpenSSL calls these functions during a
 * handshake, so they compute and do not wait. The connection holds a reference to the set.
 */
#include <errno.h>
#include <openssl/x509v3.h>
#include <string.h>

#include "tls/tls.h"

static SSL_CTX *context_for(const struct bz_tls_set *set, const char *name)
{
    for (size_t i = 0; i < set->name_count; i++) {
        X509 *cert = SSL_CTX_get0_certificate(set->by_name[i]);
        if (cert != NULL && X509_check_host(cert, name, 0, 0, NULL) == 1)
            return set->by_name[i];
    }
    return NULL;
}

static int on_server_name(SSL *ssl, int *alert, void *arg)
{
    const struct bz_tls_set *set = arg;
    const char *name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
    SSL_CTX *ctx = name != NULL ? context_for(set, name) : NULL;
    if (ctx == NULL && set->is_name_required) {
        *alert = SSL_AD_UNRECOGNIZED_NAME;
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    }
    if (ctx == NULL)
        return SSL_TLSEXT_ERR_NOACK;
    if (ctx != set->ctx && SSL_set_SSL_CTX(ssl, ctx) == NULL)
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    return SSL_TLSEXT_ERR_OK;
}

static int on_alpn(SSL *ssl, const unsigned char **out, unsigned char *out_bytes,
                   const unsigned char *in, unsigned in_bytes, void *arg)
{
    const struct bz_tls_set *set = arg;
    unsigned char *chosen = NULL;
    (void)ssl;
    if (SSL_select_next_proto(&chosen, out_bytes, set->alpn, set->alpn_bytes, in, in_bytes) !=
        OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    *out = chosen;
    return SSL_TLSEXT_ERR_OK;
}

/* Install both. The set owns the context, and outlives its handshakes. */
int bz_tls_names_set(SSL_CTX *ctx, struct bz_tls_set *set)
{
    if (!set->is_server)
        return set->alpn == NULL || SSL_CTX_set_alpn_protos(ctx, set->alpn, set->alpn_bytes) == 0
                   ? 0
                   : -ENOMEM;
    SSL_CTX_set_tlsext_servername_callback(ctx, on_server_name);
    SSL_CTX_set_tlsext_servername_arg(ctx, set);
    if (set->alpn != NULL)
        SSL_CTX_set_alpn_select_cb(ctx, on_alpn, set);
    return 0;
}

/* Write the protocols in the form of the wire: a length and the name, each. */
int bz_tls_alpn_wire(const blitz_tls_opts *opts, struct bz_tls_set *set, blitz_tls_text *why)
{
    size_t sum = 0;
    for (size_t i = 0; i < opts->alpn_count; i++) {
        size_t n = opts->alpn[i] != NULL ? strlen(opts->alpn[i]) : 0;
        if (n == 0 || n > 255 || sum + n + 1 > 65535) {
            bz_tls_say(why, "the protocol (ALPN) number %zu is empty or longer than 255 bytes.", i);
            return -EINVAL;
        }
        sum += n + 1;
    }
    if (sum == 0)
        return 0;
    set->alpn = OPENSSL_malloc(sum);
    if (set->alpn == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < opts->alpn_count; i++) {
        size_t n = strlen(opts->alpn[i]);
        set->alpn[set->alpn_bytes++] = (unsigned char)n;
        memcpy(set->alpn + set->alpn_bytes, opts->alpn[i], n);
        set->alpn_bytes += (unsigned)n;
    }
    return 0;
}
