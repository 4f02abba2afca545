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
 * The address says what kind of stream it is: with a Unix address all of this is a Unix stream
 * socket (blitz/unix.h has what only those can do); options of TCP then say -EOPNOTSUPP.
 *
 * Whatever waits takes a deadline and can be cancelled, and no byte is lost by either: a read that
 * ends with -ETIMEDOUT or -ECANCELED has read nothing, a write nothing written, and those that
 * take several steps (read_exact, write_all) say how many bytes were done. What can be done at once
 * is done, whatever the deadline says; 0 is a deadline, too.
 *
 * A handle is counted, and belongs to the runtime it was made in, which must still be there when it
 * is given up. Any number of tasks, of other runtimes as well, and plain threads may use one at the
 * same time; the halves do not disturb each other, several readers share the bytes among them. *Close*
 * ends the socket for everybody: who waits on it gets -EBADF, so does every later call, and the
 * descriptor is closed when the last call is out. Each holder still gives its reference up.
 * A close takes the closer's reference: a task that comes back to the handle, in a loop of accepts or reads,
 * holds one of its own (blitz_tcp_ref(), blitz_tcp_listener_ref()), or the handle may be gone under it.
 *
 * A peer that is gone is -EPIPE or -ECONNRESET, never a signal.
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
#include "blitz/time.h"

BLITZ_BEGIN_DECLS

typedef struct blitz_tcp blitz_tcp;
typedef struct blitz_tcp_listener blitz_tcp_listener;

/* A piece of memory among several. */
typedef struct blitz_piece {
    void *data;
    size_t bytes;
} blitz_piece;

/* So many pieces go into one call. */
#define BLITZ_PIECES_MAX 64

/* ---- listening ---- */

typedef struct blitz_tcp_listen_opts {
    int backlog; /* connections that may wait to be accepted; 0: as many as the system has */
    bool is_port_shared;    /* several may listen at the address: the system spreads connections */
    bool is_v6_only;        /* at [::]: no IPv4. Otherwise both come in by it */
    bool is_addr_exclusive; /* refuse an address on which old connections still linger */
} blitz_tcp_listen_opts;

/*
 * Listen at an address. Port 0: any that is free, blitz_tcp_listener_local() tells which. The address
 * ":80" is every address of this host, both families; on a host without IPv6 it is those of IPv4.
 * Owns:     the caller holds the first reference. Borrows the rest until it returns; opts may be NULL.
 * Suspends: never. Call from a task.
 * Returns:  0, -EADDRINUSE, -EADDRNOTAVAIL, -EACCES, -EMFILE, -ENFILE, -ENOMEM, -EINVAL, -EOPNOTSUPP
 *           (not in a task), whatever else the system says. *out is written only on 0.
 */
BLITZ_API BLITZ_MUST_USE int
blitz_tcp_listen(const blitz_addr *at, const blitz_tcp_listen_opts *opts, blitz_tcp_listener **out);

/*
 * Take the next connection. A connection that was broken off before is passed over. When descriptors
 * have run out (-EMFILE and the like) the call waits, for 5 ms at first and a second at most, and
 * tries again: connections stay where they are until there is room for them.
 * Owns:     *out is the caller's: blitz_tcp_close(). `peer` may be NULL.
 * Suspends: until there is one, `until`, a cancel or a close (which such a wait sees when it is over).
 *           Call from a task.
 * Returns:  0, -ETIMEDOUT, -ECANCELED: none was taken; -EBADF (closed); -ENOMEM (one was taken, and
 *           had to be dropped); -EINVAL, -EOPNOTSUPP (not in a task). *out is written only on 0.
 */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int
blitz_tcp_accept(blitz_tcp_listener *l, blitz_tcp **out, blitz_addr *peer, blitz_deadline until);

/*
 * blitz_tcp_accept() as a future. With result 0, f->tcp is the connection.
 * Owns:     borrows the listener until the future was ready or cancelled.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_tcp_accept_future_init(blitz_net_future *f, blitz_tcp_listener *l);

/*
 * Where it listens.
 * Owns:     borrows the listener until it returns.
 * Suspends: never. Call from any thread.
 * Returns:  0, -EBADF (closed), -EINVAL. *out is written only on 0.
 */
BLITZ_API int blitz_tcp_listener_local(blitz_tcp_listener *l, blitz_addr *out);

/*
 * One more holder; one less; and an end for all. The last holder to go closes it, too. Connections
 * that nobody has accepted are reset. ref returns its argument; NULL is let pass.
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
 * Returns:  0, -ECONNREFUSED, -ENETUNREACH, -EHOSTUNREACH, -ETIMEDOUT (also the system's own),
 *           -ECANCELED, -EMFILE, -ENOMEM, -EINVAL, -EOPNOTSUPP (not in a task), whatever else the
 *           system says. On error nothing is left open, and *out is not written.
 */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int blitz_tcp_connect(const blitz_addr *to, blitz_tcp **out,
                                                              blitz_deadline until);

/*
 * blitz_tcp_connect() as a future. With result 0, f->tcp is the connection.
 * Owns:     borrows the address until the future was ready or cancelled.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_tcp_connect_future_init(blitz_net_future *f, const blitz_addr *to);

/*
 * Connect to the first of `count` addresses that answers, tried in turn. Each is given its share of
 * the time that is left, but at least two seconds.
 * Owns:     borrows the addresses. errors[i], if not NULL, gets what became of address i: 0 connected,
 *           -EINPROGRESS not tried, else why not. *out is the caller's.
 * Suspends: as blitz_tcp_connect().
 * Returns:  the number of the address; -ETIMEDOUT, -ECANCELED; else the error of the first;
 *           -EINVAL (none given). *out is written only on success.
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
 * blitz_tcp_connect_first() as a future. `until` is what the shares are of: at that time it is ready, with
 * -ETIMEDOUT. *Pinned*; cancelled it has left nothing open, or it has connected and says so.
 * Owns:     borrows the addresses and `errors` until the future was ready, or the cancel was answered.
 * Suspends: never. Call from any thread; poll it in a task.
 */
BLITZ_API void blitz_tcp_connect_first_future_init(blitz_connect_first_future *f,
                                                   const blitz_addr *to, size_t count, int *errors,
                                                   blitz_deadline until);

/* ---- reading and writing ---- */

/*
 * Read what there is, at least a byte.
 * Owns:     borrows `data` until it returns.
 * Suspends: until there is something, the end of the stream, `until`, a cancel or a close. Call from
 *           anywhere; a plain thread sleeps.
 * Returns:  how many bytes; 0: the other side has ended its half (or `bytes` is 0); -ETIMEDOUT,
 *           -ECANCELED: nothing was read; -ECONNRESET; -EBADF (closed, or the writing half); -EINVAL.
 */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int64_t blitz_tcp_read(blitz_tcp *t, void *data,
                                                               size_t bytes, blitz_deadline until);

/* The same into up to BLITZ_PIECES_MAX pieces, one after the other.
 * Owns:     borrows the pieces until it returns.
 * Suspends: as blitz_tcp_read().
 * Returns:  as blitz_tcp_read(); -EINVAL also for too many. */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int64_t blitz_tcp_readv(blitz_tcp *t,
                                                                const blitz_piece *pieces,
                                                                size_t count, blitz_deadline until);

/* The same, and the bytes stay: the next read gets them again.
 * Owns:     borrows `data` until it returns.
 * Suspends: as blitz_tcp_read().
 * Returns:  as blitz_tcp_read(). */
BLITZ_API BLITZ_SUSPENDS int64_t blitz_tcp_peek(blitz_tcp *t, void *data, size_t bytes,
                                                blitz_deadline until);

/*
 * Write what there is room for, at least a byte.
 * Owns:     borrows `data` until it returns.
 * Suspends: until there is room, `until`, a cancel or a close. Call from anywhere; a plain thread
 *           sleeps.
 * Returns:  how many bytes, perhaps fewer than `bytes`; -ETIMEDOUT, -ECANCELED: nothing was written;
 *           -EPIPE, -ECONNRESET; -EBADF (closed, or the reading half); -EINVAL.
 */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int64_t blitz_tcp_write(blitz_tcp *t, const void *data,
                                                                size_t bytes, blitz_deadline until);

/* The same from up to BLITZ_PIECES_MAX pieces, one after the other.
 * Owns:     borrows the pieces until it returns.
 * Suspends: as blitz_tcp_write().
 * Returns:  as blitz_tcp_write(); -EINVAL also for too many. */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int64_t blitz_tcp_writev(blitz_tcp *t,
                                                                 const blitz_piece *pieces,
                                                                 size_t count,
                                                                 blitz_deadline until);

/*
 * Read exactly so many bytes, or write all of them.
 * Owns:     borrows `data` until it returns. *done, if not NULL, gets how many bytes were read or
 *           written, also on error: those are gone from the stream, or on their way.
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
 * Read or write, but do not wait: what a server does that lends one buffer to thousands of idle
 * connections (see blitz_tcp_wait()).
 * Owns:     borrows `data` until it returns.
 * Suspends: never. Call from any thread.
 * Returns:  as blitz_tcp_read() and blitz_tcp_write(); -EAGAIN: it would have to wait.
 */
BLITZ_API int64_t blitz_tcp_try_read(blitz_tcp *t, void *data, size_t bytes);
BLITZ_API int64_t blitz_tcp_try_write(blitz_tcp *t, const void *data, size_t bytes);

/* What to wait for. */
enum { BLITZ_READABLE = 1, BLITZ_WRITABLE = 2 };

/*
 * Wait until a try is worth while. Nothing is read, no buffer is needed meanwhile. Somebody
 * else may be faster then: try, and wait again after -EAGAIN. Without a try in between it returns at
 * once.
 * Owns:     borrows the handle until it returns.
 * Suspends: until bytes or the end have come (BLITZ_READABLE), or there is room (BLITZ_WRITABLE),
 *           `until`, a cancel or a close. Call from anywhere; a plain thread sleeps.
 * Returns:  0, -ETIMEDOUT, -ECANCELED, -EBADF (closed), -EINVAL (not one of the two).
 */
BLITZ_API BLITZ_SUSPENDS int blitz_tcp_wait(blitz_tcp *t, unsigned what, blitz_deadline until);

/*
 * The calls above as futures.
 * Owns:     borrows the handle, the data and the pieces until the future was ready or cancelled.
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
 * End one direction, or both: after BLITZ_WRITABLE the other side reads the end of the stream once it
 * has read all; after BLITZ_READABLE reads here say 0. Who waits goes on.
 * Owns:     borrows the handle until it returns.
 * Suspends: never. Call from any thread.
 * Returns:  0, -ENOTCONN (the other side is gone), -EBADF (closed), -EINVAL (neither).
 */
BLITZ_API int blitz_tcp_shutdown(blitz_tcp *t, unsigned what);

/*
 * One more holder; one less; and an end for all, see above. The last holder to go closes it, too. ref
 * returns its argument; NULL is let pass.
 * Owns:     ref: the result is a reference of its own. unref and close take one.
 * Suspends: never. Call from any thread.
 * Returns:  ref: the handle.
 */
BLITZ_API blitz_tcp *blitz_tcp_ref(blitz_tcp *t);
BLITZ_API void blitz_tcp_unref(blitz_tcp *t);
BLITZ_API void blitz_tcp_close(blitz_tcp *t);

/*
 * One handle to read by and one to write by, for two tasks that need not know of each other. Closing
 * the writer ends that direction (the other side reads the end); closing the reader ends nothing.
 * With both closed the connection is.
 * Owns:     takes `t` on success. The halves are handles of their own, counted each for itself.
 * Suspends: never. Call from any thread.
 * Returns:  0, -ENOMEM, -EINVAL (a half already).
 */
BLITZ_API int blitz_tcp_split(blitz_tcp *t, blitz_tcp **reader, blitz_tcp **writer);

/*
 * A stream socket that other code has made, and giving one up to such code. adopt sets it not to
 * block and not to be inherited.
 * Owns:     adopt takes `fd` on success: close it by the handle. release gives the caller a descriptor
 *           of the same connection, which does not block, and takes the reference as
 *           blitz_tcp_close() does: who still waits on it gets -EBADF.
 * Suspends: never. adopt: call from a task; release: from any thread.
 * Returns:  adopt: 0, -EINVAL (not a stream socket), -EBADF, -ENOMEM, -EOPNOTSUPP (not in a task).
 *           release: 0 and *out; -EBADF (closed), -EMFILE, -EINVAL, -EOPNOTSUPP (the system does not let go of a
 *           socket): the reference is still the caller's, and *out is not written.
 */
BLITZ_API int blitz_tcp_adopt(blitz_fd fd, blitz_tcp **out);
BLITZ_API int blitz_tcp_release(blitz_tcp *t, blitz_fd *out);

/* ---- names and options ---- */

/*
 * The two ends.
 * Owns:     borrows the handle until it returns.
 * Suspends: never. Call from any thread.
 * Returns:  0, -ENOTCONN (peer: gone), -EBADF (closed), -EINVAL. *out is written only on 0.
 */
BLITZ_API int blitz_tcp_local(blitz_tcp *t, blitz_addr *out);
BLITZ_API int blitz_tcp_peer(blitz_tcp *t, blitz_addr *out);

/*
 * The error the connection has run into and nobody was told of yet. Asking takes it away.
 * Owns:     borrows the handle until it returns.
 * Suspends: never. Call from any thread.
 * Returns:  0: none; that error; -EBADF (closed).
 */
BLITZ_API int blitz_tcp_error(blitz_tcp *t);

/*
 * What can be set.
 *   nodelay     small writes go out at once, instead of waiting for an answer to the last
 *   keepalive   ask a silent peer: after idle_s seconds, every interval_s, `count` times, then
 *               -ETIMEDOUT. idle_s 0: do not ask. interval_s, count 0: as the system has it
 *   linger      what a close does with bytes that are still to go: seconds < 0 they are sent in the
 *               background (so it begins); 0 they are thrown away and the peer is reset. More is
 *               refused: the close would block
 *   buffers     how much the system keeps for this socket to send and to receive; 0: leave it
 *   ttl         how many hops packets may go: 1 to 255
 * Owns:     borrows the handle until it returns.
 * Suspends: never. Call from any thread.
 * Returns:  0, -EINVAL, -EOPNOTSUPP (not of TCP), -EBADF (closed).
 */
BLITZ_API int blitz_tcp_set_nodelay(blitz_tcp *t, bool is_on);
BLITZ_API int blitz_tcp_set_keepalive(blitz_tcp *t, unsigned idle_s, unsigned interval_s,
                                      unsigned count);
BLITZ_API int blitz_tcp_set_linger(blitz_tcp *t, int seconds);
BLITZ_API int blitz_tcp_set_buffers(blitz_tcp *t, size_t send_bytes, size_t recv_bytes);
BLITZ_API int blitz_tcp_set_ttl(blitz_tcp *t, int hops);

BLITZ_END_DECLS

#endif
