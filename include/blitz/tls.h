/*
 * blitz/tls.h - encrypted, authenticated connections: TLS 1.2 and 1.3 over any stream. In libblitz-tls.
 *
 *     cc ... -lblitz-tls -lblitz         (pkg-config blitz-tls, CMake component `tls`, target blitz::tls)
 *
 * A client:
 *
 *     blitz_tls_config *config;                                  // once: it verifies against the system's store
 *     blitz_tls_config_new(BLITZ_TLS_CLIENT, NULL, &text, &config);
 *
 *     blitz_tls *tls;
 *     blitz_tls_new(config, blitz_tcp_stream(tcp), "server.test", &tls);
 *     if (blitz_tls_handshake(tls, blitz_after(10 * BLITZ_S)) != 0)
 *         puts(blitz_tls_error(tls, &text));                     // which certificate, what is wrong, what to do
 *     blitz_tls_write_all(tls, "GET / ...", n, NULL, until);
 *     while ((n = blitz_tls_read(tls, buffer, sizeof buffer, until)) > 0) ...
 *     blitz_tls_end(tls, until);
 *     blitz_tls_unref(tls);
 *     blitz_tcp_close(tcp);
 *
 * A server gives certificates to its configuration and NULL for the host. blitz_tls_stream() makes a connection a
 * stream (blitz/stream.h), for buffers, copies and adapters.
 *
 * Verification is on by default. A client checks the chain, the dates, the purpose and the host's name or address. A
 * handshake that fails such a check returns -EACCES. Versions below TLS 1.2, compression and renegotiation are off.
 *
 * Deadlines and cancels lose no byte, and break no connection. A read that ends early has read nothing. A handshake that
 * ends early continues with the next call. A write that ends early returns the number of bytes that it accepted: their
 * record may be sent in part. The rest of that record is kept, and the next write, flush or end sends it first. So after
 * a write that ended early, call blitz_tls_flush() before you wait for an answer. If a read of the stream below fails
 * with another error, or a record is forged, the connection is dead: every later call returns the same error. If a write
 * to the stream below fails, writes are over, and reads continue.
 *
 * The end of the peer's data is its close_notify: then a read returns 0. If the stream below ends without it, a read
 * returns -ECONNABORTED: the data may be cut short by an attacker. blitz_tls_end() sends ours.
 *
 * One task may read while another one writes. Several readers, or several writers, take turns. Tasks, stackless tasks
 * and plain threads may share a connection. OpenSSL runs only between two waits, so no call of it blocks a thread, and
 * none spans a switch of tasks. A handshake computes for about a millisecond.
 */
#ifndef BLITZ_TLS_H
#define BLITZ_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "blitz/api.h"
#include "blitz/future.h"
#include "blitz/stream.h"
#include "blitz/time.h"

BLITZ_BEGIN_DECLS

typedef struct blitz_tls blitz_tls;
typedef struct blitz_tls_config blitz_tls_config;

/* A message for people: one line, in English. */
typedef struct blitz_tls_text {
    char text[640];
} blitz_tls_text;

/* ---- configurations ---- */

typedef enum blitz_tls_side { BLITZ_TLS_CLIENT = 0, BLITZ_TLS_SERVER = 1 } blitz_tls_side;

typedef enum blitz_tls_verify {
    BLITZ_TLS_VERIFY_DEFAULT =
        0, /* a client verifies its server; a server asks for no certificate */
    BLITZ_TLS_VERIFY_REQUEST =
        1, /* server: ask for a certificate; a client may have none, but no bad one */
    BLITZ_TLS_VERIFY_REQUIRE = 2, /* server: a client without a good certificate is turned away */
    BLITZ_TLS_VERIFY_NEVER = 3 /* insecure: an attacker in between can read and change everything */
} blitz_tls_verify;

typedef enum blitz_tls_version {
    BLITZ_TLS_VERSION_DEFAULT = 0, /* TLS 1.2 */
    BLITZ_TLS_VERSION_1_2 = 0x0303,
    BLITZ_TLS_VERSION_1_3 = 0x0304
} blitz_tls_version;

/* A certificate of ours with its chain, and its key: PEM, in files or in memory. */
typedef struct blitz_tls_cert {
    const char *cert_file; /* the certificate first, then those that lead to the root */
    const char *key_file;  /* NULL: in cert_file */
    const char *cert_pem;  /* the same as text; used if cert_file is NULL */
    const char *key_pem;   /* NULL: in cert_pem */
} blitz_tls_cert;

/* A zeroed struct means the defaults. */
typedef struct blitz_tls_opts {
    /* Server: at least one. The first whose names match the name that the client asks for (SNI) is used; the first
     * of all if none matches. Client: at most one, shown to servers that ask. */
    const blitz_tls_cert *certs;
    size_t cert_count;
    bool is_name_required; /* server: turn clients away whose name matches no certificate */

    /* The trusted issuers. None given: the system's store (SSL_CERT_FILE and SSL_CERT_DIR are heeded). */
    const char *ca_file;    /* a file of certificates, PEM */
    const char *ca_dir;     /* a directory of such files; all of them are read now */
    const char *ca_pem;     /* such certificates as text */
    bool is_system_trusted; /* the system's store as well */

    /* Revoked certificates. If there is one of these, the peer's certificate needs a valid list of its issuer. */
    const char *crl_file;
    const char *crl_pem;

    blitz_tls_verify verify;
    blitz_tls_version version_min;
    const char *ciphers; /* of TLS 1.2, in OpenSSL's form; NULL: OpenSSL's choice */

    /* Protocols (ALPN), the preferred one first: "h2", "http/1.1". A server turns clients away that offer none of
     * them. */
    const char *const *alpn;
    size_t alpn_count;

    bool is_resumption_off; /* no session is kept and no ticket given out */
    unsigned sessions_max;  /* client: sessions that are kept to resume, one a host; 0: 256 */
} blitz_tls_opts;

/*
 * Make a configuration, to be shared by any number of connections. Files are read on a thread of the pool.
 * Owns:     the caller holds the first reference. Copies the options; NULL: none. *why (may be NULL) says on error what
 *           is wrong with which file, and what to do.
 * Suspends: until the files are read; a cancel does not end it. Call from anywhere; a plain thread reads them itself.
 * Returns:  0; -EINVAL (bad options, a bad certificate or key), -ENOENT and -EACCES (a file cannot be read), -ENOMEM.
 *           *out is written only on 0.
 */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int blitz_tls_config_new(blitz_tls_side side,
                                                                 const blitz_tls_opts *opts,
                                                                 blitz_tls_text *why,
                                                                 blitz_tls_config **out);

/*
 * Replace the certificates and all other options. Connections that exist keep the old ones, and new ones get the new
 * ones. On error all stays as it is. A client forgets its sessions. A server that verifies clients gives its tickets up,
 * another one keeps them.
 * Owns:     as blitz_tls_config_new().
 * Suspends: as blitz_tls_config_new().
 * Returns:  as blitz_tls_config_new().
 */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int
blitz_tls_config_reload(blitz_tls_config *config, const blitz_tls_opts *opts, blitz_tls_text *why);

/*
 * Add or release a reference. Connections have references of their own. NULL is ignored.
 * Owns:     ref: the result is a reference of its own. unref takes one.
 * Suspends: never. Call from any thread.
 * Returns:  ref: the configuration.
 */
BLITZ_API blitz_tls_config *blitz_tls_config_ref(blitz_tls_config *config);
BLITZ_API void blitz_tls_config_unref(blitz_tls_config *config);

/* ---- connections ---- */

/*
 * Make a connection over a stream. No byte is sent before the handshake.
 * Owns:     the caller holds the first reference. Shares the configuration, copies `host`. Borrows the objects behind the
 *           stream until the last reference is released, and never ends or closes them.
 *           host: client: the name or IP address that the server must prove, and, if it is a name, asks for (SNI).
 *           NULL only with BLITZ_TLS_VERIFY_NEVER. Server: NULL.
 * Suspends: never. Call from any thread.
 * Returns:  0, -EINVAL (no stream, a bad host, no host), -ENOMEM. *out is written only on 0.
 */
BLITZ_API BLITZ_MUST_USE int blitz_tls_new(blitz_tls_config *config, blitz_stream over,
                                           const char *host, blitz_tls **out);

/*
 * Add or release a reference. The last release frees the connection: bytes that were accepted and not sent are lost.
 * NULL is ignored.
 * Owns:     ref: the result is a reference of its own. unref takes one.
 * Suspends: never. Call from any thread.
 * Returns:  ref: the connection.
 */
BLITZ_API blitz_tls *blitz_tls_ref(blitz_tls *tls);
BLITZ_API void blitz_tls_unref(blitz_tls *tls);

/*
 * Agree on keys and verify the peer. Needed once, before reads and writes; a second call returns 0.
 * Owns:     borrows the connection until it returns.
 * Suspends: until it is done, `until`, or a cancel; then it can be called again, and continues. Call from anywhere.
 * Returns:  0; -EACCES (the peer's certificate is refused), -EPROTO (the peer refuses, or speaks no TLS that we accept),
 *           -ECONNABORTED (the stream ended), -ETIMEDOUT, -ECANCELED, -ENOMEM; errors of the stream.
 *           blitz_tls_error() says more.
 */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int blitz_tls_handshake(blitz_tls *tls,
                                                                blitz_deadline until);

/*
 * Read some bytes, at least one; or exactly `bytes` bytes.
 * Owns:     borrows `data` until it returns. *done (may be NULL) is how many bytes were read in any case.
 * Suspends: until they are there, the end, `until`, or a cancel. Call from anywhere.
 * Returns:  read: the number of bytes; 0: the peer has ended its data (or `bytes` is 0). exact: 0; -EPIPE: the end came
 *           before. Both: -ECONNABORTED (the stream ended without close_notify), -ENOTCONN (no handshake yet),
 *           -EPROTO (a forged or broken record), -ETIMEDOUT, -ECANCELED, -EINVAL, -ENOMEM; errors of the stream.
 */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int64_t blitz_tls_read(blitz_tls *tls, void *data,
                                                               size_t bytes, blitz_deadline until);
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int
blitz_tls_read_exact(blitz_tls *tls, void *data, size_t bytes, size_t *done, blitz_deadline until);

/*
 * Write some bytes, at most 64 KiB; or all of them.
 * Owns:     borrows `data` until it returns. *done (may be NULL) is how many bytes were accepted in any case.
 * Suspends: until their records are written to the stream, `until`, or a cancel. Call from anywhere.
 * Returns:  write: the number of bytes that were accepted, also if the wait for their records ended early. all: 0. Both:
 *           -ETIMEDOUT, -ECANCELED (write: nothing was accepted), -EPIPE (after blitz_tls_end()), -ENOTCONN (no
 *           handshake yet), -EPROTO, -EINVAL, -ENOMEM; errors of the stream.
 */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int64_t blitz_tls_write(blitz_tls *tls, const void *data,
                                                                size_t bytes, blitz_deadline until);
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int blitz_tls_write_all(blitz_tls *tls, const void *data,
                                                                size_t bytes, size_t *done,
                                                                blitz_deadline until);

/*
 * Send the rest of what a write that ended early has accepted; or end our data: send close_notify. The peer's read
 * then returns 0, and ours continue. The stream below is not ended.
 * Owns:     borrows the connection until it returns.
 * Suspends: until it is written to the stream, `until`, or a cancel; then it can be called again. Call from anywhere.
 * Returns:  0; -ETIMEDOUT, -ECANCELED, -ENOTCONN (no handshake yet), -EPROTO, -ENOMEM; errors of the stream.
 */
BLITZ_API BLITZ_SUSPENDS int blitz_tls_flush(blitz_tls *tls, blitz_deadline until);
BLITZ_API BLITZ_SUSPENDS int blitz_tls_end(blitz_tls *tls, blitz_deadline until);

/*
 * Return the connection as a stream. Ending its writer is blitz_tls_end().
 * Owns:     borrows the connection for as long as the stream is used.
 * Suspends: never. Call from any thread.
 * Returns:  the stream.
 */
BLITZ_API blitz_stream blitz_tls_stream(blitz_tls *tls);

/* ---- errors and information ---- */

/*
 * Say why the connection failed: which certificate, what is wrong, what to do.
 * Owns:     writes *text, the caller's.
 * Suspends: never. Call from any thread.
 * Returns:  text->text; "no error" if there was none.
 */
BLITZ_API const char *blitz_tls_error(blitz_tls *tls, blitz_tls_text *text);

typedef struct blitz_tls_info {
    char version[16];      /* "TLSv1.3" */
    char cipher[64];       /* "TLS_AES_256_GCM_SHA384" */
    char alpn[256];        /* the protocol that was agreed on; "": none */
    char server_name[256]; /* the name that the client asked for; "": none */
    char peer[256];        /* the subject of the peer's certificate; "": it has shown none */
    bool is_peer_verified; /* the peer's certificate was checked and is good */
    bool is_resumed;       /* an earlier session was resumed */
} blitz_tls_info;

/*
 * Describe the connection.
 * Owns:     writes *info, the caller's.
 * Suspends: never. Call from any thread.
 * Returns:  0, -ENOTCONN (no handshake yet).
 */
BLITZ_API int blitz_tls_info_read(blitz_tls *tls, blitz_tls_info *info);

/* ---- futures ---- */

typedef struct blitz_tls_future {
    blitz_future future; /* to be awaited; its output is `result`, or INT_MAX if that is more */
    int64_t result;      /* when ready or cancelled: what the call would have returned */
    size_t done;         /* read_exact, write_all, write: the bytes that were done, also on error */
    uint64_t inside[52];
} blitz_tls_future;

/*
 * The calls above as futures. All are pinned (blitz/future.h): after a cancel `result` and `done` say what was done.
 * With epoll and poll a cancelled future completes at once. Over a connection (blitz_tcp_stream()) they wait without a
 * stack. Over any other stream a fiber waits in their stead, so only a task may poll them; elsewhere they return -EINVAL.
 * Owns:     borrows the connection and the data until the future is ready.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_tls_handshake_future_init(blitz_tls_future *f, blitz_tls *tls);
BLITZ_API void blitz_tls_read_future_init(blitz_tls_future *f, blitz_tls *tls, void *data,
                                          size_t bytes);
BLITZ_API void blitz_tls_read_exact_future_init(blitz_tls_future *f, blitz_tls *tls, void *data,
                                                size_t bytes);
BLITZ_API void blitz_tls_write_future_init(blitz_tls_future *f, blitz_tls *tls, const void *data,
                                           size_t bytes);
BLITZ_API void blitz_tls_write_all_future_init(blitz_tls_future *f, blitz_tls *tls,
                                               const void *data, size_t bytes);
BLITZ_API void blitz_tls_flush_future_init(blitz_tls_future *f, blitz_tls *tls);
BLITZ_API void blitz_tls_end_future_init(blitz_tls_future *f, blitz_tls *tls);

BLITZ_END_DECLS

#endif
