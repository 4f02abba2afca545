/*
 * engine.c - every call of OpenSSL on a connection.
 *
 * Each function takes the engine lock, calls OpenSSL, empties the error queue of the thread, and
 * releases the lock. None waits: OpenSSL works on memory (wire.c). The lock is OpenSSL's own,
 * which blocks the thread; a holder computes for microseconds, in a handshake for a millisecond.
 *
 * An error of OpenSSL, or of a read of the stream below, is final. It and its message are kept, and
 * every later call returns it. But bytes that OpenSSL made before, such as an alert, are still sent.
 * An error of a write of the stream below ends the writing alone.
 *
 * A write may need input. A message for OpenSSL, such as a ticket, may span two records, and the
 * second one may be on its way. Then OpenSSL wants the rest of the message before it writes: the
 * write is stuck. It takes the read turn if that is free. If not, a reader will process the rest,
 * and notifies the write: bz_tls_engine_unstick().
 */
#include <errno.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>

#include "tls/tls.h"

static void engine_lock(blitz_tls *tls)
{
    /* The lock of a live connection is valid, so this cannot fail. */
    (void)!CRYPTO_THREAD_write_lock(tls->lock);
}

static void engine_unlock(blitz_tls *tls)
{
    CRYPTO_THREAD_unlock(tls->lock);
}

/* ---- errors ---- */

/* The lock is held. */
static void dies(blitz_tls *tls, int err, const char *text)
{
    if (tls->dead == 0)
        tls->dead = err;
    if (tls->text.text[0] == '\0' && text != NULL)
        bz_tls_say(&tls->text, "%s", text);
}

void bz_tls_engine_dies(blitz_tls *tls, int err, const char *text)
{
    engine_lock(tls);
    dies(tls, err, text);
    engine_unlock(tls);
}

int bz_tls_engine_dead(blitz_tls *tls)
{
    engine_lock(tls);
    int err = tls->dead;
    engine_unlock(tls);
    return err;
}

/* The stream below takes no more bytes. Reads continue: the peer may have sent an answer. */
void bz_tls_engine_deaf(blitz_tls *tls, int err, const char *text)
{
    engine_lock(tls);
    tls->deaf = tls->deaf != 0 ? tls->deaf : err;
    if (tls->text.text[0] == '\0')
        bz_tls_say(&tls->text, "%s", text);
    engine_unlock(tls);
}

/* Return the error of a call that is about to begin, or 0. */
int bz_tls_engine_error(blitz_tls *tls, bool is_writing, bool is_ready_needed)
{
    engine_lock(tls);
    int err = tls->dead;
    if (err == 0 && is_writing)
        err = tls->deaf;
    if (err == 0 && is_ready_needed && !tls->is_ready)
        err = -ENOTCONN;
    engine_unlock(tls);
    return err;
}

static void fails(blitz_tls *tls, const char *doing)
{
    blitz_tls_text why;
    int err = bz_tls_fault(&why, doing);
    if (tls->is_refused)
        dies(tls, err == -ENOMEM ? err : -EACCES, NULL);
    else if (tls->wire_err == -ENOSPC)
        dies(tls, -EPROTO, "the peer sends requests, and does not read the answers");
    else if (err == -ENOMEM || tls->wire_err != 0)
        dies(tls, -ENOMEM, "out of memory");
    else
        dies(tls, err, why.text);
}

/* Begin a call of OpenSSL. The lock is held. Return false if the connection is dead. */
static bool begins(blitz_tls *tls)
{
    bz_tls_begin();
    tls->wire_err = 0;
    return tls->dead == 0;
}

/* Say what the result of a call of OpenSSL means, and empty the error queue. The lock is held. */
static enum bz_tls_went ends(blitz_tls *tls, int rc, const char *doing)
{
    int what = rc > 0 ? SSL_ERROR_NONE : SSL_get_error(tls->ssl, rc);
    enum bz_tls_went went = BZ_TLS_FAILED;
    if (what == SSL_ERROR_NONE)
        went = BZ_TLS_DONE;
    else if (what == SSL_ERROR_ZERO_RETURN)
        went = BZ_TLS_IS_OVER;
    else if (what == SSL_ERROR_WANT_READ)
        went = BZ_TLS_NEEDS_INPUT;
    if (went == BZ_TLS_FAILED)
        fails(tls, doing);
    else
        ERR_clear_error();
    return went;
}

/* Input that is needed, and can no longer come. The lock is held. */
static enum bz_tls_went cut(blitz_tls *tls, enum bz_tls_went went)
{
    if (went != BZ_TLS_NEEDS_INPUT || !tls->is_cut)
        return went;
    dies(tls, -ECONNABORTED,
         tls->is_ready
             ? "the connection ended without the peer's close_notify: data may be missing. An "
               "attacker may have cut it, or the peer has crashed or does not end properly"
             : "the peer closed the connection during the handshake");
    return BZ_TLS_FAILED;
}

/* ---- calls ---- */

enum bz_tls_went bz_tls_engine_handshake(blitz_tls *tls)
{
    enum bz_tls_went went = BZ_TLS_FAILED;
    engine_lock(tls);
    if (tls->is_ready)
        went = BZ_TLS_DONE;
    else if (begins(tls))
        went = cut(tls, ends(tls, SSL_do_handshake(tls->ssl), "the handshake failed"));
    if (went == BZ_TLS_IS_OVER) {
        dies(tls, -EPROTO, "the peer ended its data during the handshake");
        went = BZ_TLS_FAILED;
    }
    if (went == BZ_TLS_DONE)
        tls->is_ready = true;
    engine_unlock(tls);
    return went;
}

enum bz_tls_went bz_tls_engine_read(blitz_tls *tls, void *data, size_t bytes, size_t *got)
{
    enum bz_tls_went went = BZ_TLS_FAILED;
    engine_lock(tls);
    if (tls->is_over)
        went = BZ_TLS_IS_OVER;
    else if (begins(tls))
        went = cut(tls, ends(tls, SSL_read_ex(tls->ssl, data, bytes, got), "a read failed"));
    tls->is_over = went == BZ_TLS_IS_OVER;
    bool is_unstuck = tls->is_stuck && (SSL_in_init(tls->ssl) == 0 || went == BZ_TLS_FAILED);
    if (is_unstuck)
        tls->is_stuck = false;
    engine_unlock(tls);
    if (is_unstuck)
        blitz_notify_one(&tls->progress);
    return went;
}

/* The read turn is free again: a write that is stuck may take it. */
void bz_tls_engine_unstick(blitz_tls *tls)
{
    engine_lock(tls);
    bool is_unstuck = tls->is_stuck;
    tls->is_stuck = false;
    engine_unlock(tls);
    if (is_unstuck)
        blitz_notify_one(&tls->progress);
}

enum bz_tls_went bz_tls_engine_write(blitz_tls *tls, const void *data, size_t bytes, size_t *put)
{
    enum bz_tls_went went = BZ_TLS_FAILED;
    engine_lock(tls);
    if (tls->is_ended)
        went = BZ_TLS_IS_OVER;
    else if (begins(tls))
        went = cut(tls, ends(tls, SSL_write_ex(tls->ssl, data, bytes, put), "a write failed"));
    tls->is_stuck = went == BZ_TLS_NEEDS_INPUT;
    engine_unlock(tls);
    return went;
}

/* Finish a message that has come in part: OpenSSL refuses to end in the middle of one. The lock is held. */
static enum bz_tls_went in_message(blitz_tls *tls)
{
    if (SSL_in_init(tls->ssl) == 0)
        return BZ_TLS_DONE;
    return cut(tls, ends(tls, SSL_do_handshake(tls->ssl), "a message of the peer is broken"));
}

enum bz_tls_went bz_tls_engine_end(blitz_tls *tls)
{
    enum bz_tls_went went = BZ_TLS_FAILED;
    engine_lock(tls);
    if (tls->is_ended) {
        went = BZ_TLS_DONE;
    } else if (begins(tls)) {
        went = in_message(tls);
        int rc = went == BZ_TLS_DONE ? SSL_shutdown(tls->ssl) : 0;
        if (rc != 0) /* 0: sent, and the peer's has not come yet */
            went = ends(tls, rc, "the end failed");
    }
    tls->is_stuck = went == BZ_TLS_NEEDS_INPUT;
    ERR_clear_error();
    tls->is_ended = tls->is_ended || went == BZ_TLS_DONE;
    engine_unlock(tls);
    return went;
}

/* ---- bytes from and for the stream below ---- */

/* Return where bytes from the stream go; NULL without memory. The caller has the read turn. */
unsigned char *bz_tls_engine_room(blitz_tls *tls, size_t *bytes)
{
    engine_lock(tls);
    if (tls->in.data == NULL) {
        tls->in.data = OPENSSL_malloc(BZ_TLS_IN_BYTES);
        tls->in.room = tls->in.data != NULL ? BZ_TLS_IN_BYTES : 0;
    }
    if (tls->in.at == tls->in.end)
        tls->in.at = tls->in.end = 0;
    unsigned char *room = tls->in.data != NULL ? tls->in.data + tls->in.end : NULL;
    *bytes = tls->in.room - tls->in.end;
    if (room == NULL) {
        ERR_clear_error();
        dies(tls, -ENOMEM, "out of memory");
    }
    engine_unlock(tls);
    return room;
}

/* That many bytes have come; 0: the stream has ended. */
void bz_tls_engine_filled(blitz_tls *tls, size_t bytes)
{
    engine_lock(tls);
    tls->in.end += bytes;
    tls->is_cut = tls->is_cut || bytes == 0;
    engine_unlock(tls);
}

/* Bytes are to be sent: `sending` has them. The caller has the write turn. */
bool bz_tls_engine_output(blitz_tls *tls)
{
    if (tls->sending.at < tls->sending.end)
        return true;
    engine_lock(tls);
    struct bz_tls_bytes empty = tls->sending;
    empty.at = empty.end = 0;
    tls->sending = tls->pending;
    tls->pending = empty;
    engine_unlock(tls);
    return tls->sending.at < tls->sending.end;
}

static void bytes_trim(struct bz_tls_bytes *b)
{
    if (b->at < b->end || b->room <= BZ_TLS_KEPT_BYTES)
        return;
    OPENSSL_free(b->data);
    *b = (struct bz_tls_bytes){.data = NULL};
}

/* Free large buffers that are empty: the connection is idle. The caller has the write turn. */
void bz_tls_engine_trim(blitz_tls *tls)
{
    engine_lock(tls);
    bytes_trim(&tls->sending);
    bytes_trim(&tls->pending);
    engine_unlock(tls);
}

/* The handshake is done, and the peer needs nothing more of it: what is left are tickets. */
bool bz_tls_engine_owes_tickets(blitz_tls *tls)
{
    engine_lock(tls);
    bool is_rest = tls->set->is_server && SSL_version(tls->ssl) >= TLS1_3_VERSION;
    engine_unlock(tls);
    return is_rest;
}

/* ---- making ---- */

static bool is_address(const char *host)
{
    ASN1_OCTET_STRING *ip = a2i_IPADDRESS(host);
    ASN1_OCTET_STRING_free(ip);
    ERR_clear_error();
    return ip != NULL;
}

/* Set the name that the certificate must have, and that the server is asked for. */
static int host_set(blitz_tls *tls)
{
    X509_VERIFY_PARAM *p = SSL_get0_param(tls->ssl);
    if (tls->host == NULL)
        return tls->set->is_verifying ? -EINVAL : 0;
    if (is_address(tls->host))
        return X509_VERIFY_PARAM_set1_ip_asc(p, tls->host) == 1 ? 0 : -ENOMEM;
    X509_VERIFY_PARAM_set_hostflags(p, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    if (X509_VERIFY_PARAM_set1_host(p, tls->host, 0) != 1 ||
        SSL_set_tlsext_host_name(tls->ssl, tls->host) != 1)
        return -ENOMEM;
    return 0;
}

/* Make the SSL of a connection whose other fields are set. On error the caller frees. */
int bz_tls_engine_new(blitz_tls *tls)
{
    bz_tls_begin();
    tls->ssl = SSL_new(tls->set->ctx);
    BIO *wire = tls->ssl != NULL ? bz_tls_wire_new(tls) : NULL;
    int err = wire != NULL ? 0 : -ENOMEM;
    if (err == 0) {
        SSL_set_bio(tls->ssl, wire, wire);
        err = SSL_set_app_data(tls->ssl, tls) == 1 ? 0 : -ENOMEM;
    }
    if (err == 0 && !tls->set->is_server)
        err = host_set(tls);
    if (err == 0 && tls->set->is_server)
        SSL_set_accept_state(tls->ssl);
    if (err == 0 && !tls->set->is_server) {
        SSL_set_connect_state(tls->ssl);
        bz_tls_session_resume(tls);
    }
    ERR_clear_error();
    return err;
}

/* ---- errors and information ---- */

const char *blitz_tls_error(blitz_tls *tls, blitz_tls_text *text)
{
    engine_lock(tls);
    *text = tls->text;
    engine_unlock(tls);
    if (text->text[0] == '\0')
        bz_tls_say(text, "no error");
    return text->text;
}

static void copy(char *out, size_t room, const char *text)
{
    snprintf(out, room, "%s", text != NULL ? text : "");
}

int blitz_tls_info_read(blitz_tls *tls, blitz_tls_info *info)
{
    const unsigned char *alpn = NULL;
    unsigned alpn_bytes = 0;
    engine_lock(tls);
    bool is_ready = tls->is_ready;
    bz_tls_begin();
    if (is_ready) {
        X509 *peer = SSL_get0_peer_certificate(tls->ssl);
        *info = (blitz_tls_info){.is_resumed = SSL_session_reused(tls->ssl) == 1};
        copy(info->version, sizeof info->version, SSL_get_version(tls->ssl));
        copy(info->cipher, sizeof info->cipher, SSL_get_cipher_name(tls->ssl));
        copy(info->server_name, sizeof info->server_name,
             SSL_get_servername(tls->ssl, TLSEXT_NAMETYPE_host_name));
        SSL_get0_alpn_selected(tls->ssl, &alpn, &alpn_bytes);
        memcpy(info->alpn, alpn != NULL ? (const char *)alpn : "", alpn_bytes);
        if (peer != NULL)
            bz_tls_subject(peer, info->peer, sizeof info->peer);
        info->is_peer_verified =
            peer != NULL && tls->set->is_verifying && SSL_get_verify_result(tls->ssl) == X509_V_OK;
    }
    ERR_clear_error();
    engine_unlock(tls);
    return is_ready ? 0 : -ENOTCONN;
}
