/*
 * tls.h - what a TLS configuration and a TLS connection consist of. For the files of src/tls alone.
 *
 * libblitz-tls is a library of its own: it uses the public interface of libblitz, and OpenSSL. Its
 * memory comes from OPENSSL_malloc(), so that one hook of OpenSSL counts, or refuses, all of it.
 *
 *   text.c      messages for people
 *   store.c     whom to trust: certificates and revocation lists
 *   tls_config.c    an SSL_CTX from options; replacing it
 *   sni.c     SNI and ALPN: callbacks of a server
 *   sessions.c  the sessions a client may resume
 *   wire.c      a BIO in memory: bytes from the stream below, bytes for it
 *   engine.c    every call of OpenSSL on a connection
 *   op.c        a call as a sequence of needs: the logic of every operation
 *   tls_calls.c     the blocking driver of an operation
 *   tls_future.c the driver of an operation without a stack
 *
 * OpenSSL's error queue belongs to a thread, and a task may continue on another one. So every call
 * of OpenSSL starts with an empty queue and empties it before it returns: bz_tls_begin() and
 * bz_tls_fault(). No wait lies between the two.
 */
#ifndef BZ_TLS_H
#define BZ_TLS_H

#include <openssl/ssl.h>

#include "base/bz_atomic.h"
#include "blitz/notify.h"
#include "blitz/semaphore.h"
#include "blitz/tls.h"

#define BZ_TLS_HOST_MAX 255
#define BZ_TLS_IN_BYTES 17408            /* a record of the largest size, and its header */
#define BZ_TLS_WRITE_MAX ((size_t)65536) /* four records */
#define BZ_TLS_KEPT_BYTES 8192           /* of an empty buffer for output, while a read waits */
#define BZ_TLS_OUT_MAX (4 * BZ_TLS_WRITE_MAX) /* more means: the peer does not read our answers */

/* ---- configurations ---- */

/* The state that a reload replaces. Constant after it is made. */
struct bz_tls_set {
    bz_atomic(uint32_t) refs;
    bool is_server, is_verifying, is_name_required, is_resuming;
    SSL_CTX *ctx;      /* a server's: with its first certificate */
    SSL_CTX **by_name; /* a server's contexts, one for each certificate; the first is ctx */
    size_t name_count;
    unsigned char *alpn; /* as on the wire; NULL: none */
    unsigned alpn_bytes;
    unsigned sessions_max;
};

struct bz_tls_session {
    char *host;
    SSL_SESSION *session;
    uint64_t used; /* by `clock` of the sessions */
};

/* The sessions of a client. Guarded by the lock of the configuration. */
struct bz_tls_sessions {
    struct bz_tls_session *slot;
    unsigned count, room;
    uint64_t clock;
};

struct blitz_tls_config {
    bz_atomic(uint32_t) refs;
    blitz_tls_side side; /* constant after init */
    BIO_METHOD *wire;    /* constant after init */
    CRYPTO_RWLOCK *lock;
    struct bz_tls_set *set; /* guarded by lock */
    struct bz_tls_sessions sessions;
};

struct bz_tls_set *bz_tls_set_ref(struct bz_tls_set *set);
void bz_tls_set_unref(struct bz_tls_set *set);

int bz_tls_store_load(SSL_CTX *ctx, const blitz_tls_opts *opts, blitz_tls_text *why);
int bz_tls_names_set(SSL_CTX *ctx, struct bz_tls_set *set);
int bz_tls_alpn_wire(const blitz_tls_opts *opts, struct bz_tls_set *set, blitz_tls_text *why);

void bz_tls_sessions_hook(SSL_CTX *ctx);
void bz_tls_session_resume(blitz_tls *tls);
void bz_tls_sessions_clear(struct bz_tls_sessions *s);

/* ---- connections ---- */

struct bz_tls_bytes {
    unsigned char *data;
    size_t at, end, room; /* data[at..end) */
};

/*
 * I1  The engine lock guards ssl, `in` up to in.end, `pending`, and the fields below. It is never
 *     held across a wait.
 * I2  The holder of the read turn alone fills in.data behind in.end, and alone moves in.end.
 * I3  The holder of the write turn alone touches `sending`.
 */
struct blitz_tls {
    bz_atomic(uint32_t) refs;
    blitz_tls_config *config; /* constant after init, as are the next three */
    struct bz_tls_set *set;
    blitz_stream over;
    char *host;
    blitz_semaphore reading, writing; /* the turns: one permit each */
    blitz_notify progress;            /* for a write that needs input: input was processed */

    CRYPTO_RWLOCK *lock; /* the engine lock */
    SSL *ssl;
    struct bz_tls_bytes in;      /* from the stream, for OpenSSL */
    struct bz_tls_bytes pending; /* from OpenSSL, for the stream */
    struct bz_tls_bytes sending; /* being written to the stream, I3 */
    bool is_ready;               /* the handshake is done */
    bool is_cut;                 /* the stream below has ended */
    bool is_ended;               /* close_notify is sent, or in `pending` */
    bool is_over;                /* close_notify has come */
    bool is_stuck;               /* a write waits for `progress` */
    int dead;                    /* 0, or the error of every later call */
    int deaf;        /* 0, or the error of every later call that writes: the peer hears nothing */
    int wire_err;    /* of the BIO, in the current call of OpenSSL */
    bool is_refused; /* we refuse the peer's certificate: `text` says why */
    blitz_tls_text text; /* "": no error yet */
};

BIO_METHOD *bz_tls_wire_method(void);
BIO *bz_tls_wire_new(blitz_tls *tls);

/* The outcome of a call of OpenSSL. */
enum bz_tls_went { BZ_TLS_DONE, BZ_TLS_NEEDS_INPUT, BZ_TLS_IS_OVER, BZ_TLS_FAILED };

int bz_tls_engine_new(blitz_tls *tls);
enum bz_tls_went bz_tls_engine_handshake(blitz_tls *tls);
enum bz_tls_went bz_tls_engine_read(blitz_tls *tls, void *data, size_t bytes, size_t *got);
enum bz_tls_went bz_tls_engine_write(blitz_tls *tls, const void *data, size_t bytes, size_t *put);
enum bz_tls_went bz_tls_engine_end(blitz_tls *tls);
unsigned char *bz_tls_engine_room(blitz_tls *tls, size_t *bytes);
void bz_tls_engine_filled(blitz_tls *tls, size_t bytes);
bool bz_tls_engine_output(blitz_tls *tls);
bool bz_tls_engine_owes_tickets(blitz_tls *tls);
void bz_tls_engine_trim(blitz_tls *tls);
void bz_tls_engine_dies(blitz_tls *tls, int err, const char *text);
void bz_tls_engine_deaf(blitz_tls *tls, int err, const char *text);
int bz_tls_engine_dead(blitz_tls *tls);
int bz_tls_engine_error(blitz_tls *tls, bool is_writing, bool is_ready_needed);
void bz_tls_engine_unstick(blitz_tls *tls);

/* ---- operations ---- */

enum bz_tls_kind {
    BZ_TLS_HANDSHAKE,
    BZ_TLS_READ,
    BZ_TLS_READ_EXACT,
    BZ_TLS_WRITE,
    BZ_TLS_WRITE_ALL,
    BZ_TLS_FLUSH,
    BZ_TLS_END
};

/* The next need of an operation. A driver does it, and tells the outcome with the next step. */
enum bz_tls_need {
    BZ_TLS_NOTHING,    /* over: the result is there */
    BZ_TLS_READ_TURN,  /* a permit of `reading`: 0, or an error */
    BZ_TLS_WRITE_TURN, /* a permit of `writing`: 0, or an error */
    BZ_TLS_PROGRESS,   /* a notification of `progress`: 0, or an error */
    BZ_TLS_INPUT,      /* a read from the stream to op->data: the number of bytes, 0, an error */
    BZ_TLS_OUTPUT      /* a write from op->data to the stream: the number of bytes, an error */
};

struct bz_tls_op {
    blitz_tls *tls;
    int64_t result;
    size_t done;
    char *user; /* the caller's data */
    size_t user_bytes;
    unsigned char *data; /* for BZ_TLS_INPUT and BZ_TLS_OUTPUT */
    size_t bytes;
    int verdict; /* of a handshake that has yet to send its last bytes */
    uint8_t kind, need;
    bool has_read_turn, has_write_turn, has_verdict;
};

void bz_tls_op_init(struct bz_tls_op *op, enum bz_tls_kind kind, blitz_tls *tls, void *data,
                    size_t bytes);
enum bz_tls_need bz_tls_op_step(struct bz_tls_op *op, int64_t got);

/* ---- messages and errors ---- */

void bz_tls_begin(void);
int bz_tls_fault(blitz_tls_text *why, const char *doing);
void bz_tls_say(blitz_tls_text *why, const char *format, ...) BLITZ_PRINTF(2, 3);
const char *bz_tls_cause(int err);
int bz_tls_refuse(int ok, X509_STORE_CTX *at);
void bz_tls_subject(X509 *cert, char *out, size_t bytes);

#endif
