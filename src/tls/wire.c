/*
 * wire.c - the end of a connection that OpenSSL sees: a BIO in memory.
 *
 * OpenSSL reads the bytes that have come from the stream below, and its own bytes are kept for it.
 * A read without bytes asks for a retry; a write never does. So OpenSSL never waits, and the
 * drivers wait in its stead (op.c).
 *
 * Rejected: BIO_s_mem() (it moves its content with each small read, and has no limit) and a BIO
 *           over the socket (the stream below need not be one).
 */
#include <errno.h>
#include <openssl/bio.h>
#include <string.h>

#include "tls/tls.h"

static int wire_read(BIO *b, char *data, size_t bytes, size_t *got)
{
    blitz_tls *tls = BIO_get_data(b);
    struct bz_tls_bytes *in = &tls->in;
    size_t n = in->end - in->at < bytes ? in->end - in->at : bytes;
    BIO_clear_retry_flags(b);
    if (n == 0) {
        BIO_set_retry_read(b);
        return 0;
    }
    memcpy(data, in->data + in->at, n);
    in->at += n;
    *got = n;
    return 1;
}

/* Make room for `bytes` more. Return 0 or an error. */
static int bytes_room(struct bz_tls_bytes *b, size_t bytes)
{
    size_t room = b->room > 0 ? b->room : 2048;
    if (b->end + bytes <= b->room)
        return 0;
    if (b->end + bytes > BZ_TLS_OUT_MAX)
        return -ENOSPC;
    while (room < b->end + bytes)
        room *= 2;
    void *bigger = OPENSSL_realloc(b->data, room);
    if (bigger == NULL)
        return -ENOMEM;
    b->data = bigger;
    b->room = room;
    return 0;
}

static int wire_write(BIO *b, const char *data, size_t bytes, size_t *put)
{
    blitz_tls *tls = BIO_get_data(b);
    BIO_clear_retry_flags(b);
    tls->wire_err = bytes_room(&tls->pending, bytes);
    if (tls->wire_err != 0)
        return 0;
    memcpy(tls->pending.data + tls->pending.end, data, bytes);
    tls->pending.end += bytes;
    *put = bytes;
    return 1;
}

static long wire_ctrl(BIO *b, int what, long number, void *pointer)
{
    (void)b;
    (void)number;
    (void)pointer;
    return what == BIO_CTRL_FLUSH || what == BIO_CTRL_DUP;
}

/* The methods of such a BIO; each configuration has its own. Return NULL without memory. */
BIO_METHOD *bz_tls_wire_method(void)
{
    BIO_METHOD *m = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "blitz");
    if (m != NULL && BIO_meth_set_read_ex(m, wire_read) == 1 &&
        BIO_meth_set_write_ex(m, wire_write) == 1 && BIO_meth_set_ctrl(m, wire_ctrl) == 1)
        return m;
    BIO_meth_free(m);
    return NULL;
}

/* Return NULL without memory. */
BIO *bz_tls_wire_new(blitz_tls *tls)
{
    BIO *b = BIO_new(tls->config->wire);
    if (b != NULL) {
        BIO_set_data(b, tls);
        BIO_set_init(b, 1);
    }
    return b;
}
