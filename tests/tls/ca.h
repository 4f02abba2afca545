/*
 * ca.h - a small certificate authority, made anew by each test program: keys, certificates, revocation lists.
 */
#ifndef T_CA_H
#define T_CA_H

#include "harness.h"

#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <string.h>

struct t_ca {
    X509 *cert;
    EVP_PKEY *key;
    char pem[4096];
    long serial;
};

/* A certificate and its key. */
struct t_id {
    X509 *cert;
    char cert_pem[8192], key_pem[2048];
};

/* The content of a certificate; zeroed: valid for a year, for every purpose. */
struct t_wish {
    const char *name;    /* its subject */
    const char *san;     /* "DNS:a.test,IP:127.0.0.1" */
    const char *purpose; /* "serverAuth" */
    long from_s, to_s;   /* from now */
    bool is_self_signed;
};

static inline void t_pem_of(BIO *b, char *out, size_t room)
{
    int n = BIO_read(b, out, (int)room - 1);
    CHECK_GT(n, 0);
    CHECK_LT(n, (int)room - 1);
    out[n] = '\0';
    BIO_free(b);
}

static inline void t_extension(X509 *cert, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX how;
    X509V3_set_ctx(&how, issuer, cert, NULL, NULL, 0);
    X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, &how, nid, value);
    CHECK_NOT_NULL(e);
    CHECK_EQ(X509_add_ext(cert, e, -1), 1);
    X509_EXTENSION_free(e);
}

static inline X509 *t_cert_new(EVP_PKEY *key, const struct t_wish *w, long serial)
{
    X509 *x = X509_new();
    CHECK_NOT_NULL(x);
    X509_set_version(x, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(x), serial);
    X509_gmtime_adj(X509_getm_notBefore(x), w->from_s != 0 ? w->from_s : -3600);
    X509_gmtime_adj(X509_getm_notAfter(x), w->to_s != 0 ? w->to_s : 365L * 86400);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", MBSTRING_UTF8,
                               (const unsigned char *)w->name, -1, -1, 0);
    CHECK_EQ(X509_set_pubkey(x, key), 1);
    return x;
}

static inline void t_ca_new(struct t_ca *ca, const char *name)
{
    *ca = (struct t_ca){.key = EVP_EC_gen("P-256"), .serial = 100};
    CHECK_NOT_NULL(ca->key);
    ca->cert = t_cert_new(ca->key, &(struct t_wish){.name = name}, 1);
    X509_set_issuer_name(ca->cert, X509_get_subject_name(ca->cert));
    t_extension(ca->cert, ca->cert, NID_basic_constraints, "critical,CA:TRUE");
    t_extension(ca->cert, ca->cert, NID_key_usage, "critical,keyCertSign,cRLSign");
    t_extension(ca->cert, ca->cert, NID_subject_key_identifier, "hash");
    CHECK_GT(X509_sign(ca->cert, ca->key, EVP_sha256()), 0);
    BIO *b = BIO_new(BIO_s_mem());
    CHECK_EQ(PEM_write_bio_X509(b, ca->cert), 1);
    t_pem_of(b, ca->pem, sizeof ca->pem);
}

static inline void t_issue(struct t_ca *ca, const struct t_wish *w, struct t_id *out)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    CHECK_NOT_NULL(key);
    X509 *x = t_cert_new(key, w, ++ca->serial), *issuer = w->is_self_signed ? x : ca->cert;
    X509_set_issuer_name(x, X509_get_subject_name(issuer));
    t_extension(x, issuer, NID_basic_constraints, "CA:FALSE");
    if (w->san != NULL)
        t_extension(x, issuer, NID_subject_alt_name, w->san);
    if (w->purpose != NULL)
        t_extension(x, issuer, NID_ext_key_usage, w->purpose);
    CHECK_GT(X509_sign(x, w->is_self_signed ? key : ca->key, EVP_sha256()), 0);
    BIO *b = BIO_new(BIO_s_mem());
    CHECK_EQ(PEM_write_bio_X509(b, x), 1);
    t_pem_of(b, out->cert_pem, sizeof out->cert_pem);
    b = BIO_new(BIO_s_mem());
    CHECK_EQ(PEM_write_bio_PrivateKey(b, key, NULL, NULL, 0, NULL, NULL), 1);
    t_pem_of(b, out->key_pem, sizeof out->key_pem);
    EVP_PKEY_free(key);
    out->cert = x;
}

/* The revocation list of the authority: with that certificate, or none (NULL). `to_s`: valid so long from now. */
static inline void t_crl(struct t_ca *ca, X509 *revoked, long to_s, char *out, size_t room)
{
    X509_CRL *crl = X509_CRL_new();
    ASN1_TIME *now = X509_gmtime_adj(NULL, -60), *next = X509_gmtime_adj(NULL, to_s);
    X509_CRL_set_version(crl, 1);
    X509_CRL_set_issuer_name(crl, X509_get_subject_name(ca->cert));
    X509_CRL_set1_lastUpdate(crl, now);
    X509_CRL_set1_nextUpdate(crl, next);
    if (revoked != NULL) {
        X509_REVOKED *r = X509_REVOKED_new();
        X509_REVOKED_set_serialNumber(r, X509_get_serialNumber(revoked));
        X509_REVOKED_set_revocationDate(r, now);
        CHECK_EQ(X509_CRL_add0_revoked(crl, r), 1);
    }
    X509_CRL_sort(crl);
    CHECK_GT(X509_CRL_sign(crl, ca->key, EVP_sha256()), 0);
    BIO *b = BIO_new(BIO_s_mem());
    CHECK_EQ(PEM_write_bio_X509_CRL(b, crl), 1);
    t_pem_of(b, out, room);
    ASN1_TIME_free(now);
    ASN1_TIME_free(next);
    X509_CRL_free(crl);
}

static inline void t_id_free(struct t_id *id)
{
    X509_free(id->cert);
}

static inline void t_ca_free(struct t_ca *ca)
{
    X509_free(ca->cert);
    EVP_PKEY_free(ca->key);
}

#endif
