/*
 * blitz/tcp.h - streams of bytes over the network: listen, accept, connect, read, write.
 *
 *     static int serve(void *arg)                             // a fiber for each connection
 *     {
 *         blitz_tcp *t = arg;
 *         char buffer[4096];
 *         int64_t n;
 *         while ((n = blitz_tcp_read(t, buffer, sizeof buffer, blitz_after(60 * BLITZ_S))) > 0)
 *             if (blitz_tcp_write_all(t, buffer, (size_t)n, NULL, BLITZ_FOREVER) != 0)
 *                 break;
 *         blitz_tcp_close(t);
 *         return 0;
 *     }
 *
 *     while (blitz_tcp_accept(listener, &t, NULL, BLITZ_FOREVER) == 0)
 *         blitz_spawn(serve, t, NULL, NULL);
 *
 * The address decides the kind of stream. With a Unix address all of this is a Unix stream socket; blitz/unix.h has the
 * further functions of those. TCP options then return -EOPNOTSUPP.
 *
 * Every call that waits takes a deadline and can be cancelled, and neither loses a byte. A read that ends with
 * -ETIMEDOUT or -ECANCELED has read nothing, and a write has written nothing. Calls of several steps (read_exact,
 * write_all) return how many bytes were done. A call that can be done at once is done, for any deadline; 0 is a valid
 * deadline, too.
 *
 * A handle is reference-counted. It belongs to the runtime in which it was made, which must still exist when the handle
 * is released. Any number of tasks, also of other runtimes, and plain threads may use one at the same time. Readers and
 * writers do not disturb each other; several readers share the bytes among them. *Close* ends the socket for all
 * holders: calls that wait on it get -EBADF, and so does every later call. The descriptor is closed when the last call
 * has returned. Each holder still releases its reference. A close takes the closer's reference. So a task that returns
 * to the handle, in a loop of accepts or reads, holds a reference of its own (blitz_tcp_ref(),
 * blitz_tcp_listener_ref()). Otherwise the handle may be freed while it is used.
 *
 * If the peer has gone, calls return -EPIPE or -ECONNRESET. There is never a signal.
 *
 * The same calls as futures: blitz/net_future.h.
 */
#ifndef BLITZ_TCP_H
#define BLITZ_TCP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "blitz/addr.h"
#include "blitz/api.h"
#include "blitz/net_future.h"
#include "blitz/piece.h"
#include "blitz/time.h"

BLITZ_BEGIN_DECLS

typedef struct blitz_tcp blitz_tcp;
typedef struct blitz_tcp_listener blitz_tcp_listener;

/* ---- listening ---- */

typedef struct blitz_tcp_listen_opts {
    int backlog;            /* connections that may wait to be accepted; 0: the system's maximum */
    bool is_port_shared;    /* several listeners may share the address and its connections */
    bool is_v6_only;        /* at [::]: no IPv4. Otherwise it accepts both */
    bool is_addr_exclusive; /* refuse an address on which old connections still linger */
} blitz_tcp_listen_opts;

/*
 * Listen at an address. Port 0: any free port; blitz_tcp_listener_local() returns it. The address ":80" is every
 * address of this host, both families; on a host without IPv6 it is those of IPv4.
 * Owns:     the caller holds the first reference. Borrows the rest until it returns; opts may be NULL.
 * Suspends: never. Call from a task.
 * Returns:  0, -EADDRINUSE, -EADDRNOTAVAIL, -EACCES, -EMFILE, -ENFILE, -ENOMEM, -EINVAL, -EOPNOTSUPP
 *           (not in a task), other errors of the system. *out is written only on 0.
 */
BLITZ_API BLITZ_MUST_USE int
blitz_tcp_listen(const blitz_addr *at, const blitz_tcp_listen_opts *opts, blitz_tcp_listener **out);

/*
 * Accept the next connection. A connection that was aborted before is skipped. If descriptors have run out (-EMFILE and
 * the like), the call waits, for 5 ms at first and a second at most, and tries again. Connections stay in the backlog
 * until then.
 * Owns:     *out is the caller's: blitz_tcp_close(). `peer` may be NULL.
 * Suspends: until there is one, `until`, a cancel or a close (during a wait for descriptors, a close is seen at its
 *           end). Call from a task.
 * Returns:  0, -ETIMEDOUT, -ECANCELED: none was taken; -EBADF (closed); -ENOMEM (one was taken, and
 *           had to be dropped); -EINVAL, -EOPNOTSUPP (not in a task). *out is written only on 0.
 */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int
blitz_tcp_accept(blitz_tcp_listener *l, blitz_tcp **out, blitz_addr *peer, blitz_deadline until);

/*
 * blitz_tcp_accept() as a future. With result 0, f->tcp is the connection.
 * Owns:     borrows the listener until the future is ready or cancelled.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_tcp_accept_future_init(blitz_net_future *f, blitz_tcp_listener *l);

/*
 * Return the address at which it listens.
 * Owns:     borrows the listener until it returns.
 * Suspends: never. Call from any thread.
 * Returns:  0, -EBADF (closed), -EINVAL. *out is written only on 0.
 */
BLITZ_API int blitz_tcp_listener_local(blitz_tcp_listener *l, blitz_addr *out);

/*
 * Add a reference, release one, or close for all holders. Releasing the last reference also closes. Connections that
 * were not accepted are reset. ref returns its argument. NULL is ignored.
 * Owns:     ref: the result is a reference of its own. unref and close take one.
 * Suspends: never. Call from any thread.
 * Returns:  ref: the listener.
 */
BLITZ_API blitz_tcp_listener *blitz_tcp_listener_ref(blitz_tcp_listener *l);
BLITZ_API void blitz_tcp_listener_unref(blitz_tcp_listener *l);
BLITZ_API void blitz_tcp_listener_close(blitz_tcp_listener *l);

/* ---- connecting ---- */

/*
 * Connect to an address.
 * Owns:     *out is the caller's: blitz_tcp_close(). Borrows the address until it returns.
 * Suspends: until it is connected or refused, `until`, or a cancel. Call from a task.
 * Returns:  0, -ECONNREFUSED, -ENETUNREACH, -EHOSTUNREACH, -ETIMEDOUT (also the system's own), -ECANCELED, -EMFILE,
 *           -ENOMEM, -EINVAL, -EOPNOTSUPP (not in a task), other errors of the system. On error nothing is left open,
 *           and *out is not written.
 */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int blitz_tcp_connect(const blitz_addr *to, blitz_tcp **out,
                                                              blitz_deadline until);

/*
 * blitz_tcp_connect() as a future. With result 0, f->tcp is the connection.
 * Owns:     borrows the address until the future is ready or cancelled.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_tcp_connect_future_init(blitz_net_future *f, const blitz_addr *to);

struct blitz_resolver;

/* The options of a connect. A zero field, or NULL for the whole struct, means the default. */
typedef struct blitz_connect_opts {
    /* Connect from this address, of the same family. Port 0: any. NULL: the system chooses */
    const blitz_addr *local;
    /* Called with the socket before it is bound and connected, to set options that blitz has no call for. It must not
     * suspend or close the socket. A negative errno ends the connect. NULL: none */
    int (*before)(blitz_fd fd, void *ctx);
    void *ctx; /* passed to it */
    /* By name only (blitz/resolve.h) */
    struct blitz_resolver *resolver; /* looks the name up; NULL: that of the process */
    uint64_t delay_ns;               /* between two attempts that run at the same time; 0: 250 ms */
} blitz_connect_opts;

/*
 * blitz_tcp_connect() with options.
 * Owns:     *out is the caller's. Borrows the address and the options until it returns. opts NULL: none.
 * Suspends: as blitz_tcp_connect().
 * Returns:  as blitz_tcp_connect(); -EADDRINUSE, -EADDRNOTAVAIL (the local address); the error of `before`.
 */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int blitz_tcp_connect_with(const blitz_addr *to,
                                                                   const blitz_connect_opts *opts,
                                                                   blitz_tcp **out,
                                                                   blitz_deadline until);

/*
 * blitz_tcp_connect_with() as a future. With result 0, f->tcp is the connection.
 * Owns:     borrows the address and the options until the future is ready or cancelled.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_tcp_connect_with_future_init(blitz_net_future *f, const blitz_addr *to,
                                                  const blitz_connect_opts *opts);

/*
 * Connect to the first of `count` addresses that answers, tried in turn. Each address gets its share of the remaining
 * time, but at least two seconds.
 * Owns:     borrows the addresses. errors[i], if not NULL, gets the outcome of address i: 0 connected, -EINPROGRESS not
 *           tried, else the error. *out is the caller's.
 * Suspends: as blitz_tcp_connect().
 * Returns:  the index of the address; -ETIMEDOUT, -ECANCELED; else the error of the first; -EINVAL (no addresses). *out
 *           is written only on success.
 */
BLITZ_API BLITZ_SUSPENDS int blitz_tcp_connect_first(const blitz_addr *to, size_t count,
                                                     int *errors, blitz_tcp **out,
                                                     blitz_deadline until);

typedef struct blitz_connect_first_future {
    blitz_future future; /* to be awaited; its output is `result` */
    int result;          /* when ready or cancelled: what the call would have returned */
    blitz_tcp *tcp;      /* with a result of 0 or more the connection, yours; else NULL */
    uint64_t inside[48];
} blitz_connect_first_future;

/*
 * blitz_tcp_connect_first() as a future. The shares are shares of the time until `until`; then it is ready with
 * -ETIMEDOUT. *Pinned*: after a cancel it has left nothing open, or it has connected and its result shows that.
 * Owns:     borrows the addresses and `errors` until the future is ready, or the cancel has completed.
 * Suspends: never. Call from any thread; poll it in a task.
 */
BLITZ_API void blitz_tcp_connect_first_future_init(blitz_connect_first_future *f,
                                                   const blitz_addr *to, size_t count, int *errors,
                                                   blitz_deadline until);

/* ---- reading and writing ---- */

/*
 * Read the bytes that are there, at least one.
 * Owns:     borrows `data` until it returns.
 * Suspends: until there is something, the end of the stream, `until`, a cancel or a close. Call from
 *           anywhere; a plain thread sleeps.
 * Returns:  the number of bytes; 0: the peer has shut down its sending half (or `bytes` is 0); -ETIMEDOUT,
 *           -ECANCELED: nothing was read; -ECONNRESET; -EBADF (closed, or the writing half); -EINVAL.
 */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int64_t blitz_tcp_read(blitz_tcp *t, void *data,
                                                               size_t bytes, blitz_deadline until);

/* Read into several pieces, one after the other.
 * Owns:     borrows the pieces until it returns.
 * Suspends: as blitz_tcp_read().
 * Returns:  as blitz_tcp_read(). */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int64_t blitz_tcp_readv(blitz_tcp *t,
                                                                const blitz_piece *pieces,
                                                                size_t count, blitz_deadline until);

/* Read without consuming the bytes: the next read gets them again.
 * Owns:     borrows `data` until it returns.
 * Suspends: as blitz_tcp_read().
 * Returns:  as blitz_tcp_read(). */
BLITZ_API BLITZ_SUSPENDS int64_t blitz_tcp_peek(blitz_tcp *t, void *data, size_t bytes,
                                                blitz_deadline until);

/*
 * Write as many bytes as there is room for, at least one.
 * Owns:     borrows `data` until it returns.
 * Suspends: until there is room, `until`, a cancel or a close. Call from anywhere; a plain thread
 *           sleeps.
 * Returns:  the number of bytes, perhaps fewer than `bytes`; -ETIMEDOUT, -ECANCELED: nothing was written;
 *           -EPIPE, -ECONNRESET; -EBADF (closed, or the reading half); -EINVAL.
 */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int64_t blitz_tcp_write(blitz_tcp *t, const void *data,
                                                                size_t bytes, blitz_deadline until);

/* Write from several pieces, one after the other.
 * Owns:     borrows the pieces until it returns.
 * Suspends: as blitz_tcp_write().
 * Returns:  as blitz_tcp_write(). */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int64_t blitz_tcp_writev(blitz_tcp *t,
                                                                 const blitz_piece *pieces,
                                                                 size_t count,
                                                                 blitz_deadline until);

/*
 * Read exactly `bytes` bytes, or write all of them.
 * Owns:     borrows `data` until it returns. *done, if not NULL, gets how many bytes were read or written, also on
 *           error: those are consumed from the stream, or sent.
 * Suspends: until all of it is done, `until`, a cancel or a close. Call from anywhere; a plain thread
 *           sleeps.
 * Returns:  0; -ENODATA (read_exact: the stream ended before that); else as read and write.
 */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int
blitz_tcp_read_exact(blitz_tcp *t, void *data, size_t bytes, size_t *done, blitz_deadline until);
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int blitz_tcp_write_all(blitz_tcp *t, const void *data,
                                                                size_t bytes, size_t *done,
                                                                blitz_deadline until);

/*
 * Read or write without waiting, for a server that uses one buffer for thousands of idle connections (see
 * blitz_tcp_wait()).
 * Owns:     borrows `data` until it returns.
 * Suspends: never. Call from any thread.
 * Returns:  as blitz_tcp_read() and blitz_tcp_write(); -EAGAIN: it would have to wait.
 */
BLITZ_API int64_t blitz_tcp_try_read(blitz_tcp *t, void *data, size_t bytes);
BLITZ_API int64_t blitz_tcp_try_write(blitz_tcp *t, const void *data, size_t bytes);

/* The events to wait for. */
enum { BLITZ_READABLE = 1, BLITZ_WRITABLE = 2 };

/*
 * Wait until a blitz_tcp_try_read() or blitz_tcp_try_write() may succeed. Nothing is read, and no buffer is needed
 * meanwhile. Another caller may be faster: try, and wait again after -EAGAIN. A wait without a try in between returns
 * at once.
 * Owns:     borrows the handle until it returns.
 * Suspends: until bytes or the end have come (BLITZ_READABLE), or there is room (BLITZ_WRITABLE),
 *           `until`, a cancel or a close. Call from anywhere; a plain thread sleeps.
 * Returns:  0, -ETIMEDOUT, -ECANCELED, -EBADF (closed), -EINVAL (not one of the two).
 */
BLITZ_API BLITZ_SUSPENDS int blitz_tcp_wait(blitz_tcp *t, unsigned what, blitz_deadline until);

/*
 * The calls above as futures.
 * Owns:     borrows the handle, the data and the pieces until the future is ready or cancelled.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_tcp_read_future_init(blitz_net_future *f, blitz_tcp *t, void *data,
                                          size_t bytes);
BLITZ_API void blitz_tcp_peek_future_init(blitz_net_future *f, blitz_tcp *t, void *data,
                                          size_t bytes);
BLITZ_API void blitz_tcp_read_exact_future_init(blitz_net_future *f, blitz_tcp *t, void *data,
                                                size_t bytes);
BLITZ_API void blitz_tcp_write_future_init(blitz_net_future *f, blitz_tcp *t, const void *data,
                                           size_t bytes);
BLITZ_API void blitz_tcp_write_all_future_init(blitz_net_future *f, blitz_tcp *t, const void *data,
                                               size_t bytes);
BLITZ_API void blitz_tcp_wait_future_init(blitz_net_future *f, blitz_tcp *t, unsigned what);
BLITZ_API void blitz_tcp_readv_future_init(blitz_pieces_future *f, blitz_tcp *t,
                                           const blitz_piece *pieces, size_t count);
BLITZ_API void blitz_tcp_writev_future_init(blitz_pieces_future *f, blitz_tcp *t,
                                            const blitz_piece *pieces, size_t count);

/* ---- ending, sharing ---- */

/*
 * Shut down one direction, or both. After BLITZ_WRITABLE the peer reads the end of the stream once it has read all
 * bytes. After BLITZ_READABLE reads here return 0. Calls that wait continue.
 * Owns:     borrows the handle until it returns.
 * Suspends: never. Call from any thread.
 * Returns:  0, -ENOTCONN (the other side is gone), -EBADF (closed), -EINVAL (neither).
 */
BLITZ_API int blitz_tcp_shutdown(blitz_tcp *t, unsigned what);

/*
 * Add a reference, release one, or close for all holders, see above. Releasing the last reference also closes. ref
 * returns its argument. NULL is ignored.
 * Owns:     ref: the result is a reference of its own. unref and close take one.
 * Suspends: never. Call from any thread.
 * Returns:  ref: the handle.
 */
BLITZ_API blitz_tcp *blitz_tcp_ref(blitz_tcp *t);
BLITZ_API void blitz_tcp_unref(blitz_tcp *t);
BLITZ_API void blitz_tcp_close(blitz_tcp *t);

/*
 * Split a connection into a handle to read and a handle to write, for two tasks that need not know of each other.
 * Closing the writer shuts that direction down (the peer reads the end); closing the reader shuts nothing down. When
 * both are closed, the connection is closed.
 * Owns:     takes `t` on success. The halves are handles of their own, each reference-counted.
 * Suspends: never. Call from any thread.
 * Returns:  0, -ENOMEM, -EINVAL (a half already).
 */
BLITZ_API int blitz_tcp_split(blitz_tcp *t, blitz_tcp **reader, blitz_tcp **writer);

/*
 * Join the two halves of a connection again. Nothing is shut down.
 * Owns:     takes both halves on success. *out is the caller's: blitz_tcp_close().
 * Suspends: never. Call from any thread.
 * Returns:  0, -EBUSY (a half has another reference), -EINVAL (not the two halves of one connection). *out is written
 *           only on 0.
 */
BLITZ_API int blitz_tcp_reunite(blitz_tcp *reader, blitz_tcp *writer, blitz_tcp **out);

/*
 * Adopt a stream socket that other code has made, or release one to such code. adopt makes it non-blocking and
 * not inheritable.
 * Owns:     adopt takes `fd` on success: close it by the handle. release gives the caller a descriptor of the same
 *           connection, which does not block. It takes the reference as blitz_tcp_close() does: calls that still wait
 *           on it get -EBADF.
 * Suspends: never. adopt: call from a task; release: from any thread.
 * Returns:  adopt: 0, -EINVAL (not a stream socket), -EBADF, -ENOMEM, -EOPNOTSUPP (not in a task).
 *           release: 0 and *out; -EBADF (closed), -EMFILE, -EINVAL, -EOPNOTSUPP (the system cannot release a socket).
 *           On error the reference is still the caller's, and *out is not written.
 */
BLITZ_API int blitz_tcp_adopt(blitz_fd fd, blitz_tcp **out);
BLITZ_API int blitz_tcp_release(blitz_tcp *t, blitz_fd *out);

/* ---- names and options ---- */

/*
 * Return the local address, or that of the peer.
 * Owns:     borrows the handle until it returns.
 * Suspends: never. Call from any thread.
 * Returns:  0, -ENOTCONN (peer: gone), -EBADF (closed), -EINVAL. *out is written only on 0.
 */
BLITZ_API int blitz_tcp_local(blitz_tcp *t, blitz_addr *out);
BLITZ_API int blitz_tcp_peer(blitz_tcp *t, blitz_addr *out);

/*
 * Return the pending error of the connection, and clear it.
 * Owns:     borrows the handle until it returns.
 * Suspends: never. Call from any thread.
 * Returns:  0: none; the error; -EBADF (closed).
 */
BLITZ_API int blitz_tcp_error(blitz_tcp *t);

/*
 * Set an option.
 *   nodelay     send small writes at once, instead of waiting for an acknowledgement
 *   keepalive   probe a silent peer: after idle_s seconds, every interval_s, `count` times, then -ETIMEDOUT. If idle_s
 *               is 0, there are no probes. interval_s, count 0: the system's default
 *   linger      what a close does with unsent bytes. seconds < 0: send them in the background (the default). 0: discard
 *               them and reset the peer. More is refused, because the close would block
 *   buffers     the sizes of the system's send and receive buffers; 0: unchanged
 *   ttl         the maximum number of hops: 1 to 255
 *   tos         the type of service of its packets: 0 to 255. A DSCP is four times its number: 46 * 4 is "expedited"
 *   quickack    acknowledge at once what comes next. The system goes back to delayed acknowledgements by itself: set it
 *               again after reads that should have it
 * Owns:     borrows the handle until it returns.
 * Suspends: never. Call from any thread.
 * Returns:  0, -EINVAL, -EOPNOTSUPP (not TCP), -EBADF (closed).
 */
BLITZ_API int blitz_tcp_set_nodelay(blitz_tcp *t, bool is_on);
BLITZ_API int blitz_tcp_set_keepalive(blitz_tcp *t, unsigned idle_s, unsigned interval_s,
                                      unsigned count);
BLITZ_API int blitz_tcp_set_linger(blitz_tcp *t, int seconds);
BLITZ_API int blitz_tcp_set_buffers(blitz_tcp *t, size_t send_bytes, size_t recv_bytes);
BLITZ_API int blitz_tcp_set_ttl(blitz_tcp *t, int hops);
BLITZ_API int blitz_tcp_set_tos(blitz_tcp *t, int tos);
BLITZ_API int blitz_tcp_set_quickack(blitz_tcp *t, bool is_on);

BLITZ_END_DECLS

#endif
