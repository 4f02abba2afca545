/*
 * tls_calls.c - connections, and the operations on them as calls that wait.
 *
 * [A] unref: refs release -> unref: refs acquire   all uses come before the free
 */
#include <errno.h>
#include <openssl/err.h>
#include <string.h>

#include "tls/tls.h"

/* ---- making ---- */

static void tls_free(blitz_tls *tls)
{
    /* Otherwise OpenSSL forbids to resume a session whose connection was left without close_notify. */
    if (tls->is_ready && tls->dead == 0)
        SSL_set_shutdown(tls->ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
    SSL_free(tls->ssl);
    OPENSSL_clear_free(tls->in.data, tls->in.room);
    OPENSSL_free(tls->pending.data);
    OPENSSL_free(tls->sending.data);
    OPENSSL_free(tls->host);
    CRYPTO_THREAD_lock_free(tls->lock);
    bz_tls_set_unref(tls->set);
    blitz_tls_config_unref(tls->config);
    OPENSSL_free(tls);
}

static struct bz_tls_set *current_set(blitz_tls_config *config)
{
    struct bz_tls_set *set = NULL;
    if (CRYPTO_THREAD_read_lock(config->lock)) {
        set = bz_tls_set_ref(config->set);
        CRYPTO_THREAD_unlock(config->lock);
    }
    return set;
}

static int check_args(const blitz_tls_config *config, blitz_stream over, const char *host)
{
    if (config == NULL || over.in.ops == NULL || over.out.ops == NULL)
        return -EINVAL;
    if (config->side == BLITZ_TLS_SERVER)
        return host == NULL ? 0 : -EINVAL;
    return host == NULL || (host[0] != '\0' && strlen(host) <= BZ_TLS_HOST_MAX) ? 0 : -EINVAL;
}

int blitz_tls_new(blitz_tls_config *config, blitz_stream over, const char *host, blitz_tls **out)
{
    int err = check_args(config, over, host);
    blitz_tls *tls = err == 0 ? OPENSSL_zalloc(sizeof *tls) : NULL;
    if (tls == NULL)
        return err != 0 ? err : -ENOMEM;
    bz_atomic_init(&tls->refs, 1);
    tls->config = blitz_tls_config_ref(config);
    tls->set = current_set(config);
    tls->over = over;
    blitz_semaphore_init(&tls->reading, 1);
    blitz_semaphore_init(&tls->writing, 1);
    blitz_notify_init(&tls->progress);
    tls->lock = CRYPTO_THREAD_lock_new();
    tls->host = host != NULL ? OPENSSL_strdup(host) : NULL;
    if (tls->set == NULL || tls->lock == NULL || (host != NULL && tls->host == NULL))
        err = -ENOMEM;
    else
        err = bz_tls_engine_new(tls);
    if (err != 0) {
        tls_free(tls);
        ERR_clear_error();
        return err;
    }
    *out = tls;
    return 0;
}

blitz_tls *blitz_tls_ref(blitz_tls *tls)
{
    if (tls != NULL)
        bz_fetch_add_relaxed(&tls->refs, 1); /* relaxed: the caller has a reference */
    return tls;
}

void blitz_tls_unref(blitz_tls *tls)
{
    if (tls == NULL || bz_fetch_sub_acqrel(&tls->refs, 1) != 1) /* [A] */
        return;
    bz_tls_begin();
    tls_free(tls);
    ERR_clear_error();
}

/* ---- the driver that waits on a stack ---- */

/* A turn that is free is taken, for any deadline. */
static int turn(blitz_semaphore *s, blitz_deadline until)
{
    return blitz_semaphore_try_acquire(s, 1) == 0 ? 0 : blitz_semaphore_acquire(s, 1, until);
}

static int64_t fulfil(struct bz_tls_op *op, blitz_deadline until)
{
    blitz_tls *tls = op->tls;
    switch (op->need) {
    case BZ_TLS_READ_TURN:
        return turn(&tls->reading, until);
    case BZ_TLS_WRITE_TURN:
        return turn(&tls->writing, until);
    case BZ_TLS_PROGRESS:
        return blitz_notify_wait(&tls->progress, until);
    case BZ_TLS_INPUT:
        return blitz_reader_read(tls->over.in, op->data, op->bytes, until);
    default:
        return blitz_writer_write(tls->over.out, op->data, op->bytes, until);
    }
}

static int64_t run(enum bz_tls_kind kind, blitz_tls *tls, void *data, size_t bytes, size_t *done,
                   blitz_deadline until)
{
    struct bz_tls_op op;
    int64_t got = 0;
    if (tls == NULL)
        return -EINVAL;
    bz_tls_op_init(&op, kind, tls, data, bytes);
    while (bz_tls_op_step(&op, got) != BZ_TLS_NOTHING)
        got = fulfil(&op, until);
    if (done != NULL)
        *done = op.done;
    return op.result;
}

int blitz_tls_handshake(blitz_tls *tls, blitz_deadline until)
{
    return (int)run(BZ_TLS_HANDSHAKE, tls, NULL, 0, NULL, until);
}

int64_t blitz_tls_read(blitz_tls *tls, void *data, size_t bytes, blitz_deadline until)
{
    return run(BZ_TLS_READ, tls, data, bytes, NULL, until);
}

int blitz_tls_read_exact(blitz_tls *tls, void *data, size_t bytes, size_t *done,
                         blitz_deadline until)
{
    return (int)run(BZ_TLS_READ_EXACT, tls, data, bytes, done, until);
}

int64_t blitz_tls_write(blitz_tls *tls, const void *data, size_t bytes, blitz_deadline until)
{
    return run(BZ_TLS_WRITE, tls, (void *)data, bytes, NULL, until);
}

int blitz_tls_write_all(blitz_tls *tls, const void *data, size_t bytes, size_t *done,
                        blitz_deadline until)
{
    return (int)run(BZ_TLS_WRITE_ALL, tls, (void *)data, bytes, done, until);
}

int blitz_tls_flush(blitz_tls *tls, blitz_deadline until)
{
    return (int)run(BZ_TLS_FLUSH, tls, NULL, 0, NULL, until);
}

int blitz_tls_end(blitz_tls *tls, blitz_deadline until)
{
    return (int)run(BZ_TLS_END, tls, NULL, 0, NULL, until);
}

/* ---- as a stream ---- */

static int64_t stream_read(void *ctx, void *data, size_t bytes, blitz_deadline until)
{
    return blitz_tls_read(ctx, data, bytes, until);
}

static int64_t stream_write(void *ctx, const void *data, size_t bytes, blitz_deadline until)
{
    return blitz_tls_write(ctx, data, bytes, until);
}

static int stream_end(void *ctx, blitz_deadline until)
{
    return blitz_tls_end(ctx, until);
}

static const blitz_reader_ops reader_ops = {.name = "tls", .read = stream_read};
static const blitz_writer_ops writer_ops = {
    .name = "tls", .write = stream_write, .end = stream_end};

blitz_stream blitz_tls_stream(blitz_tls *tls)
{
    return (blitz_stream){{&reader_ops, tls}, {&writer_ops, tls}};
}
