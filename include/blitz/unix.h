/*
 * blitz/unix.h - functions for Unix sockets only: pairs, descriptor passing, and the identity of the peer.
 *
 * A system without one of these returns -EOPNOTSUPP: docs/platforms.md.
 *
 * Streams and datagrams over Unix addresses are those of blitz/tcp.h and blitz/udp.h: listen,
 * connect or bind at an address of blitz_addr_unix() or blitz_addr_abstract(). A socket that listens at a path leaves
 * its file behind when it is closed. Unlink the file before the next bind, which otherwise fails with -EADDRINUSE.
 */
#ifndef BLITZ_UNIX_H
#define BLITZ_UNIX_H

#include <stddef.h>
#include <stdint.h>

#include "blitz/api.h"
#include "blitz/tcp.h"
#include "blitz/time.h"
#include "blitz/udp.h"

BLITZ_BEGIN_DECLS

/*
 * Make two sockets that are connected to each other.
 * Owns:     both are the caller's: close each.
 * Suspends: never. Call from a task.
 * Returns:  0, -EMFILE, -ENFILE, -ENOMEM, -EINVAL, -EOPNOTSUPP (not in a task). On error no socket was made.
 */
BLITZ_API int blitz_unix_pair(blitz_tcp *out[2]);
BLITZ_API int blitz_unix_datagram_pair(blitz_udp *out[2]);

/* The most descriptors in one message. */
#define BLITZ_UNIX_FDS_MAX 32

/*
 * Send bytes over a Unix stream, at least one, and open descriptors with them.
 * Owns:     borrows all of it until it returns; the receiver gets descriptors of its own.
 * Suspends: until there is room, `until`, a cancel or a close. Call from anywhere.
 * Returns:  the number of bytes, perhaps fewer than `bytes`: the descriptors went with the first. -ETIMEDOUT,
 *           -ECANCELED: nothing was sent; -EINVAL (no bytes, or too many descriptors); else as blitz_tcp_write().
 */
BLITZ_API BLITZ_SUSPENDS int64_t blitz_unix_send_fds(blitz_tcp *t, const void *data, size_t bytes,
                                                     const blitz_fd *fds, size_t fd_count,
                                                     blitz_deadline until);

/*
 * Receive bytes, and the descriptors that came with them. Child processes do not inherit them.
 * Owns:     the descriptors are the caller's to close. *fd_count is the room before the call, and the number that came
 *           after it. If more came than there is room for, the rest were closed.
 * Suspends: until there is something, the end, `until`, a cancel or a close. Call from anywhere.
 * Returns:  the number of bytes, 0 at the end; -EINVAL; else as blitz_tcp_read(). On error nothing was received.
 */
BLITZ_API BLITZ_SUSPENDS int64_t blitz_unix_recv_fds(blitz_tcp *t, void *data, size_t bytes,
                                                     blitz_fd *fds, size_t *fd_count,
                                                     blitz_deadline until);

/*
 * Both calls as futures. `room` is the number of descriptors that fit; f->fd_count is the number that came. After a
 * cancel, either nothing was transferred, or both bytes and descriptors were and the result says so. Received
 * descriptors are yours to close then, too.
 * Owns:     borrows the handle, the data and `fds` until the future is ready or cancelled. send copies the numbers;
 *           keep the descriptors open that long.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_unix_send_fds_future_init(blitz_message_future *f, blitz_tcp *t,
                                               const void *data, size_t bytes, const blitz_fd *fds,
                                               size_t fd_count);
BLITZ_API void blitz_unix_recv_fds_future_init(blitz_message_future *f, blitz_tcp *t, void *data,
                                               size_t bytes, blitz_fd *fds, size_t room);

typedef struct blitz_unix_peer {
    int64_t pid;
    uint32_t uid, gid;
} blitz_unix_peer;

/*
 * Return the identity of the peer, as it was when it connected, listened or made the pair.
 * Owns:     borrows the handle until it returns.
 * Suspends: never. Call from any thread.
 * Returns:  0, -EBADF (closed), -EINVAL, -EOPNOTSUPP (not a Unix stream).
 */
BLITZ_API int blitz_unix_peer_of(blitz_tcp *t, blitz_unix_peer *out);

BLITZ_END_DECLS

#endif
