/*
 * text.c - what went wrong, for people.
 *
 * A message answers three questions: which certificate or file, what is wrong, what to do. OpenSSL
 * calls bz_tls_refuse() for each certificate that it refuses; the first such message is kept.
 * Other errors come from OpenSSL's queue, which bz_tls_fault() empties. The first entry is the
 * cause, the later ones say which caller was disappointed; so the first one is reported.
 */
#include <errno.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tls/tls.h"

/* Empty the error queue of this thread: another user of OpenSSL may have left errors there. */
void bz_tls_begin(void)
{
    ERR_clear_error();
}

void bz_tls_say(blitz_tls_text *why, const char *format, ...)
{
    va_list args;
    if (why == NULL)
        return;
    va_start(args, format);
    vsnprintf(why->text, sizeof why->text, format, args);
    va_end(args);
}

/* Say why a file cannot be read. strerror() is not safe among threads. */
const char *bz_tls_cause(int err)
{
    switch (err) {
    case -ENOENT:
        return "No such file";
    case -EACCES:
        return "permission denied";
    case -EISDIR:
        return "it is a directory";
    case -ENOMEM:
        return "out of memory";
    default:
        return "the system refuses it";
    }
}

/* ---- errors of OpenSSL ---- */

struct hint {
    int reason;
    const char *text;
};

static const struct hint hints[] = {
    {SSL_R_UNSUPPORTED_PROTOCOL,
     "the peer offers only versions of TLS below the configured minimum; update the peer"},
    {SSL_R_VERSION_TOO_LOW,
     "the peer offers only versions of TLS below the configured minimum; update the peer"},
    {SSL_R_TLSV1_ALERT_PROTOCOL_VERSION,
     "the peer supports none of our versions of TLS; update the peer"},
    {SSL_R_WRONG_VERSION_NUMBER, "the peer does not speak TLS; check the port"},
    {SSL_R_HTTP_REQUEST, "the peer speaks plain HTTP; it should use https"},
    {SSL_R_NO_SHARED_CIPHER,
     "the two sides have no cipher in common; check `ciphers` and the kind of key"},
    {SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE,
     "the peer found no common parameters, or wants a certificate from us"},
    {SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED,
     "the peer wants a certificate from us; give one in `certs`"},
    {SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE,
     "the client has shown no certificate, and one is required"},
    {SSL_R_TLSV1_ALERT_UNKNOWN_CA, "the peer does not trust the issuer of our certificate; add the "
                                   "issuer there, or send the whole chain"},
    {SSL_R_SSLV3_ALERT_BAD_CERTIFICATE, "the peer refuses our certificate"},
    {SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED,
     "the peer says that our certificate has expired; renew it"},
    {SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED,
     "the peer says that our certificate is revoked; get a new one"},
    {SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE,
     "the peer says that our certificate is for another purpose"},
    {SSL_R_TLSV1_UNRECOGNIZED_NAME, "the server has no certificate for the name that we asked for"},
    {SSL_R_TLSV1_ALERT_NO_APPLICATION_PROTOCOL, "the two sides have no protocol (ALPN) in common"},
    {SSL_R_NO_APPLICATION_PROTOCOL, "the two sides have no protocol (ALPN) in common"},
    {SSL_R_DECRYPTION_FAILED_OR_BAD_RECORD_MAC,
     "a record was changed on its way; the network or an attacker did it"},
};

static const char *hint_of(unsigned long code)
{
    if (ERR_GET_LIB(code) == ERR_LIB_SSL)
        for (size_t i = 0; i < sizeof hints / sizeof hints[0]; i++)
            if (hints[i].reason == ERR_GET_REASON(code))
                return hints[i].text;
    return NULL;
}

static int errno_of(unsigned long code)
{
    if (ERR_GET_REASON(code) == ERR_R_MALLOC_FAILURE)
        return -ENOMEM;
    return ERR_SYSTEM_ERROR(code) && ERR_GET_REASON(code) > 0 ? -ERR_GET_REASON(code) : -EPROTO;
}

/* Empty the error queue. Return the error that its first entry means, and describe it. */
int bz_tls_fault(blitz_tls_text *why, const char *doing)
{
    const char *data = NULL;
    int flags = 0;
    unsigned long code = ERR_get_error_all(NULL, NULL, NULL, &data, &flags);
    const char *hint = hint_of(code), *reason = ERR_reason_error_string(code);
    char number[32];
    int err = code != 0 ? errno_of(code) : -EPROTO;
    if (reason == NULL) {
        snprintf(number, sizeof number, "error %lx of OpenSSL", code);
        reason = ERR_SYSTEM_ERROR(code) ? "error of the system" : number;
    }
    bool has_data = (flags & ERR_TXT_STRING) != 0 && data != NULL && data[0] != '\0';
    bz_tls_say(why, "%s: %s%s%s%s%s%s", doing, reason, has_data ? " (" : "", has_data ? data : "",
               has_data ? ")" : "", hint != NULL ? ": " : "", hint != NULL ? hint : "");
    ERR_clear_error();
    return err;
}

/* ---- certificates ---- */

void bz_tls_subject(X509 *cert, char *out, size_t bytes)
{
    BIO *b = cert != NULL ? BIO_new(BIO_s_mem()) : NULL;
    int n = 0;
    if (b != NULL && X509_NAME_print_ex(b, X509_get_subject_name(cert), 0, XN_FLAG_ONELINE) >= 0)
        n = BIO_read(b, out, (int)bytes - 1);
    out[n > 0 ? n : 0] = '\0';
    if (cert != NULL && n <= 0)
        snprintf(out, bytes, "(no subject)");
    BIO_free(b);
}

static void date_of(const ASN1_TIME *t, char *out, size_t bytes)
{
    BIO *b = BIO_new(BIO_s_mem());
    int n = 0;
    if (b != NULL && ASN1_TIME_print(b, t) == 1)
        n = BIO_read(b, out, (int)bytes - 1);
    out[n > 0 ? n : 0] = '\0';
    BIO_free(b);
}

/* The DNS names and addresses of a certificate, as far as there is room. */
static void names_of(X509 *cert, char *out, size_t bytes)
{
    size_t at = 0;
    GENERAL_NAMES *names = X509_get_ext_d2i(cert, NID_subject_alt_name, NULL, NULL);
    out[0] = '\0';
    for (int i = 0; names != NULL && i < sk_GENERAL_NAME_num(names) && at < bytes; i++) {
        const GENERAL_NAME *g = sk_GENERAL_NAME_value(names, i);
        const unsigned char *d =
            g->type == GEN_DNS || g->type == GEN_IPADD ? ASN1_STRING_get0_data(g->d.ia5) : NULL;
        const char *comma = at > 0 ? ", " : "";
        if (g->type == GEN_DNS)
            at += (size_t)snprintf(out + at, bytes - at, "%s%.*s", comma,
                                   ASN1_STRING_length(g->d.ia5), (const char *)d);
        else if (g->type == GEN_IPADD && ASN1_STRING_length(g->d.iPAddress) == 4)
            at += (size_t)snprintf(out + at, bytes - at, "%s%d.%d.%d.%d", comma, d[0], d[1], d[2],
                                   d[3]);
    }
    GENERAL_NAMES_free(names);
    if (out[0] == '\0')
        snprintf(out, bytes, "no host at all");
}

static void refuse_for_dates(blitz_tls_text *why, const char *which, X509 *cert, int err)
{
    char date[64];
    bool is_early = err == X509_V_ERR_CERT_NOT_YET_VALID;
    date_of(is_early ? X509_get0_notBefore(cert) : X509_get0_notAfter(cert), date, sizeof date);
    if (is_early)
        bz_tls_say(why, "%s is not valid before %s. Check the clocks of both sides.", which, date);
    else
        bz_tls_say(why,
                   "%s expired on %s. Its owner must renew it; or check the clock of this side.",
                   which, date);
}

static void refuse_for_host(blitz_tls_text *why, const char *which, X509 *cert, const char *host)
{
    char names[200];
    names_of(cert, names, sizeof names);
    bz_tls_say(
        why,
        "%s is not for the host \"%s\": it names %s. Connect by one of its names, or give the "
        "server a certificate for this one.",
        which, host, names);
}

static const char *advice_of(int err)
{
    switch (err) {
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
        return "is signed by itself and not trusted. If it is the right one, trust it in "
               "`ca_file`.";
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
        return "is a root that is not trusted. If it is the right one, trust it in `ca_file`.";
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
        return "has an issuer that is not known. Trust the issuer in `ca_file`, or let the peer "
               "send the whole chain.";
    case X509_V_ERR_CERT_REVOKED:
        return "is revoked by its issuer. Its owner needs a new one.";
    case X509_V_ERR_UNABLE_TO_GET_CRL:
        return "cannot be checked: its issuer's revocation list is missing. Add the list to "
               "`crl_file`.";
    case X509_V_ERR_CRL_HAS_EXPIRED:
        return "cannot be checked: its issuer's revocation list is out of date. Get a new list for "
               "`crl_file`.";
    case X509_V_ERR_INVALID_PURPOSE:
        return "is made for another purpose (its extended key usage). Its owner needs one for this "
               "side of TLS.";
    default:
        return NULL;
    }
}

static void refuse_text(blitz_tls *tls, int err, X509 *cert, int depth)
{
    char subject[160], which[220];
    const char *advice = advice_of(err);
    bz_tls_subject(cert, subject, sizeof subject);
    snprintf(which, sizeof which, "the certificate of %s%s", cert != NULL ? subject : "the peer",
             depth > 0 ? " (an issuer in the chain)" : "");
    if (cert != NULL &&
        (err == X509_V_ERR_CERT_HAS_EXPIRED || err == X509_V_ERR_CERT_NOT_YET_VALID))
        refuse_for_dates(&tls->text, which, cert, err);
    else if (cert != NULL &&
             (err == X509_V_ERR_HOSTNAME_MISMATCH || err == X509_V_ERR_IP_ADDRESS_MISMATCH))
        refuse_for_host(&tls->text, which, cert, tls->host != NULL ? tls->host : "");
    else if (advice != NULL)
        bz_tls_say(&tls->text, "%s %s", which, advice);
    else
        bz_tls_say(&tls->text, "%s is refused: %s.", which, X509_verify_cert_error_string(err));
}

/* OpenSSL's verify callback, in a call of OpenSSL on the connection: note the first refusal, and keep it. */
int bz_tls_refuse(int ok, X509_STORE_CTX *at)
{
    SSL *ssl = X509_STORE_CTX_get_ex_data(at, SSL_get_ex_data_X509_STORE_CTX_idx());
    blitz_tls *tls = ssl != NULL ? SSL_get_app_data(ssl) : NULL;
    if (ok == 1 || tls == NULL || tls->is_refused)
        return ok;
    tls->is_refused = true;
    refuse_text(tls, X509_STORE_CTX_get_error(at), X509_STORE_CTX_get_current_cert(at),
                X509_STORE_CTX_get_error_depth(at));
    return ok;
}
