/*
 * store.c - whom a configuration trusts: certificates of issuers, and lists of revoked ones.
 *
 * All of it is read when the configuration is made. OpenSSL can also look into a directory during
 * a handshake; that would block a worker in the file system.
 */
#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/store.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tls/tls.h"

/* Add every certificate and list in the PEM text. Return their number. */
static int add_pem(X509_STORE *store, BIO *from)
{
    STACK_OF(X509_INFO) *found = PEM_X509_INFO_read_bio(from, NULL, NULL, NULL);
    int count = 0;
    for (int i = 0; i < sk_X509_INFO_num(found); i++) {
        X509_INFO *one = sk_X509_INFO_value(found, i);
        count += one->x509 != NULL && X509_STORE_add_cert(store, one->x509) == 1;
        count += one->crl != NULL && X509_STORE_add_crl(store, one->crl) == 1;
    }
    sk_X509_INFO_pop_free(found, X509_INFO_free);
    return count;
}

static int add_file(X509_STORE *store, const char *path, const char *what, blitz_tls_text *why)
{
    BIO *from = BIO_new_file(path, "r");
    if (from == NULL) {
        int err = bz_tls_fault(NULL, "");
        bz_tls_say(why, "%s %s cannot be read: %s.", what, path, bz_tls_cause(err));
        return err == -EPROTO ? -EINVAL : err;
    }
    int count = add_pem(store, from);
    BIO_free(from);
    if (count > 0)
        return 0;
    int err = ERR_GET_REASON(ERR_peek_error()) == ERR_R_MALLOC_FAILURE ? -ENOMEM : -EINVAL;
    ERR_clear_error();
    bz_tls_say(why, "%s %s holds nothing of that kind in PEM form.", what, path);
    return err;
}

static int add_text(X509_STORE *store, const char *pem, const char *what, blitz_tls_text *why)
{
    BIO *from = BIO_new_mem_buf(pem, -1);
    int count = from != NULL ? add_pem(store, from) : 0;
    BIO_free(from);
    ERR_clear_error();
    if (count == 0)
        bz_tls_say(why, "%s holds nothing of that kind in PEM form.", what);
    return count > 0 ? 0 : from == NULL ? -ENOMEM : -EINVAL;
}

/* Read each file of a directory; files of other kinds are skipped. */
static int add_dir(X509_STORE *store, const char *path, blitz_tls_text *why)
{
    OSSL_STORE_CTX *dir = OSSL_STORE_open(path, NULL, NULL, NULL, NULL);
    int count = 0;
    while (dir != NULL && !OSSL_STORE_eof(dir)) {
        OSSL_STORE_INFO *entry = OSSL_STORE_load(dir);
        if (entry != NULL && OSSL_STORE_INFO_get_type(entry) == OSSL_STORE_INFO_NAME)
            count += add_file(store, OSSL_STORE_INFO_get0_NAME(entry), "", NULL) == 0;
        OSSL_STORE_INFO_free(entry);
    }
    OSSL_STORE_close(dir);
    ERR_clear_error();
    if (count == 0)
        bz_tls_say(why, "the directory %s has no file with a certificate (PEM), or cannot be read.",
                   path);
    return count > 0 ? 0 : -ENOENT;
}

static const char *from_environment(const char *name, const char *otherwise)
{
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): a concurrent change cannot be prevented */
    const char *value = getenv(name);
    return value != NULL && value[0] != '\0' ? value : otherwise;
}

/* The system's bundle; else the bundle that Debian keeps in the directory; else the whole directory. */
static int add_system(X509_STORE *store, blitz_tls_text *why)
{
    const char *dir =
        from_environment(X509_get_default_cert_dir_env(), X509_get_default_cert_dir());
    const char *file = from_environment(X509_get_default_cert_file_env(), NULL);
    char bundle[4096];
    if (file != NULL)
        return add_file(store, file, "the certificate file of the environment", why);
    if (add_file(store, X509_get_default_cert_file(), "", NULL) == 0)
        return 0;
    snprintf(bundle, sizeof bundle, "%s/ca-certificates.crt", dir);
    if (add_file(store, bundle, "", NULL) == 0)
        return 0;
    int err = add_dir(store, dir, NULL);
    if (err != 0)
        bz_tls_say(why,
                   "the system has no certificates of issuers in %s. Install its package "
                   "(ca-certificates), or name a `ca_file`.",
                   dir);
    return err;
}

static int add_crls(X509_STORE *store, const blitz_tls_opts *opts, blitz_tls_text *why)
{
    int err = 0;
    if (opts->crl_file == NULL && opts->crl_pem == NULL)
        return 0;
    if (opts->crl_file != NULL)
        err = add_file(store, opts->crl_file, "the revocation list", why);
    if (err == 0 && opts->crl_pem != NULL)
        err = add_text(store, opts->crl_pem, "crl_pem", why);
    X509_STORE_set_flags(store, X509_V_FLAG_CRL_CHECK);
    return err;
}

int bz_tls_store_load(SSL_CTX *ctx, const blitz_tls_opts *opts, blitz_tls_text *why)
{
    X509_STORE *store = SSL_CTX_get_cert_store(ctx);
    bool is_given = opts->ca_file != NULL || opts->ca_dir != NULL || opts->ca_pem != NULL;
    int err = 0;
    if (opts->ca_file != NULL)
        err = add_file(store, opts->ca_file, "the file of trusted certificates", why);
    if (err == 0 && opts->ca_dir != NULL)
        err = add_dir(store, opts->ca_dir, why);
    if (err == 0 && opts->ca_pem != NULL)
        err = add_text(store, opts->ca_pem, "ca_pem", why);
    if (err == 0 && (!is_given || opts->is_system_trusted))
        err = add_system(store, why);
    return err != 0 ? err : add_crls(store, opts, why);
}
