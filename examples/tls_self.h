/*
 * tls_self.h - a certificate that an example makes for itself and trusts itself. A real server has one from an
 * authority, in files.
 */
#ifndef TLS_SELF_H
#define TLS_SELF_H

#include <errno.h>
#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>

struct tls_self {
    char cert[2048], key[1024]; /* PEM */
};

static inline int tls_self_text(BIO *b, char *out, int room)
{
    int n = BIO_read(b, out, room - 1);
    out[n > 0 ? n : 0] = '\0';
    return n > 0 && n < room - 1;
}

static inline int tls_self_fill(X509 *x, EVP_PKEY *key, const char *host)
{
    char names[300];
    X509V3_CTX how;
    snprintf(names, sizeof names, "DNS:%s,DNS:localhost,IP:127.0.0.1", host);
    X509_set_version(x, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(x), 1);
    X509_gmtime_adj(X509_getm_notBefore(x), -60);
    X509_gmtime_adj(X509_getm_notAfter(x), 86400);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", MBSTRING_UTF8,
                               (const unsigned char *)host, -1, -1, 0);
    X509_set_issuer_name(x, X509_get_subject_name(x));
    X509_set_pubkey(x, key);
    X509V3_set_ctx(&how, x, x, NULL, NULL, 0);
    X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, &how, NID_subject_alt_name, names);
    int ok = e != NULL && X509_add_ext(x, e, -1) == 1 && X509_sign(x, key, EVP_sha256()) > 0;
    X509_EXTENSION_free(e);
    return ok;
}

/* Return 0 or -ENOMEM. */
static inline int tls_self_make(struct tls_self *self, const char *host)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *x = X509_new();
    BIO *cert = BIO_new(BIO_s_mem()), *text = BIO_new(BIO_s_mem());
    int ok = key != NULL && x != NULL && cert != NULL && text != NULL &&
             tls_self_fill(x, key, host) && PEM_write_bio_X509(cert, x) == 1 &&
             PEM_write_bio_PrivateKey(text, key, NULL, NULL, 0, NULL, NULL) == 1 &&
             tls_self_text(cert, self->cert, sizeof self->cert) &&
             tls_self_text(text, self->key, sizeof self->key);
    BIO_free(cert);
    BIO_free(text);
    X509_free(x);
    EVP_PKEY_free(key);
    return ok ? 0 : -ENOMEM;
}

#endif
