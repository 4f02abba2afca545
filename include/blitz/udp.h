/*
 * blitz/udp.h - datagrams: packets that arrive whole, or not at all.
 *
 *     blitz_udp *u;
 *     blitz_addr at = blitz_addr_any_v4(5000), from;
 *     blitz_udp_bind(&at, NULL, &u);
 *     int64_t n = blitz_udp_recv_from(u, packet, sizeof packet, &from, BLITZ_FOREVER);
 *     blitz_udp_send_to(u, packet, (size_t)n, &from, BLITZ_FOREVER);
 *
 * The address decides the kind: with a Unix address all of this is a Unix datagram socket. Handles are counted and
 * closed as those of blitz/tcp.h, and deadlines and cancels mean the same. A receive that ends with -ETIMEDOUT or
 * -ECANCELED has taken no datagram, a send has sent none.
 *
 * A datagram that is longer than the buffer is cut, and the call returns its full length, which is more than the
 * buffer. If the socket is connected and there is no receiver at the peer, a later call returns -ECONNREFUSED.
 */
#ifndef BLITZ_UDP_H
#define BLITZ_UDP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "blitz/addr.h"
#include "blitz/api.h"
#include "blitz/net_future.h"
#include "blitz/time.h"

BLITZ_BEGIN_DECLS

typedef struct blitz_udp blitz_udp;

typedef struct blitz_udp_opts {
    bool is_port_shared; /* several sockets may share the address and its datagrams */
    bool is_v6_only;     /* at [::]: no IPv4. Otherwise it receives both */
    bool is_addr_shared; /* as is_port_shared; each socket gets a copy of group datagrams */
} blitz_udp_opts;

/*
 * Make a socket at an address. Port 0: any free port; blitz_udp_local() returns it.
 * Owns:     the caller holds the first reference. Borrows the rest until it returns; opts may be NULL.
 * Suspends: never. Call from a task.
 * Returns:  0, -EADDRINUSE, -EADDRNOTAVAIL, -EACCES, -EMFILE, -ENFILE, -ENOMEM, -EINVAL, -EOPNOTSUPP
 *           (not in a task), other errors of the system. *out is written only on 0.
 */
BLITZ_API BLITZ_MUST_USE int blitz_udp_bind(const blitz_addr *at, const blitz_udp_opts *opts,
                                            blitz_udp **out);

/*
 * Connect to one address: send goes there, and only datagrams from there are received. Call it again for another
 * address; NULL removes the connection.
 * Owns:     borrows the address until it returns.
 * Suspends: never. Call from any thread.
 * Returns:  0, -EINVAL, -EBADF (closed), other errors of the system.
 */
BLITZ_API int blitz_udp_connect(blitz_udp *u, const blitz_addr *to);

/*
 * Receive a datagram; recv_from also returns the sender's address.
 * Owns:     borrows `data` until it returns. `from` may be NULL.
 * Suspends: until there is one, `until`, a cancel or a close. Call from anywhere; a plain thread sleeps.
 * Returns:  its length, which may be 0, and is more than `bytes` if the datagram was cut; -ETIMEDOUT,
 *           -ECANCELED: none was taken; -ECONNREFUSED (see above); -EBADF (closed), -EINVAL.
 */
BLITZ_API BLITZ_SUSPENDS int64_t blitz_udp_recv(blitz_udp *u, void *data, size_t bytes,
                                                blitz_deadline until);
BLITZ_API BLITZ_SUSPENDS int64_t blitz_udp_recv_from(blitz_udp *u, void *data, size_t bytes,
                                                     blitz_addr *from, blitz_deadline until);

/*
 * Look at the next datagram without taking it: the next receive gets it again. peek_from also returns the sender's
 * address.
 * Owns:     borrows `data` until it returns. `from` may be NULL.
 * Suspends: until there is one, `until`, a cancel or a close. Call from anywhere; a plain thread sleeps.
 * Returns:  as blitz_udp_recv().
 */
BLITZ_API BLITZ_SUSPENDS int64_t blitz_udp_peek(blitz_udp *u, void *data, size_t bytes,
                                                blitz_deadline until);
BLITZ_API BLITZ_SUSPENDS int64_t blitz_udp_peek_from(blitz_udp *u, void *data, size_t bytes,
                                                     blitz_addr *from, blitz_deadline until);

/*
 * Send a datagram: to the connected address, or to a given one.
 * Owns:     borrows `data` and the address until it returns.
 * Suspends: until there is room, `until`, a cancel or a close. Call from anywhere; a plain thread
 *           sleeps.
 * Returns:  `bytes`; -ETIMEDOUT, -ECANCELED: it was not sent; -EMSGSIZE (too long), -EDESTADDRREQ
 *           (send: not connected), -ECONNREFUSED, -EBADF (closed), -EINVAL, other errors of the system.
 */
BLITZ_API BLITZ_SUSPENDS int64_t blitz_udp_send(blitz_udp *u, const void *data, size_t bytes,
                                                blitz_deadline until);
BLITZ_API BLITZ_SUSPENDS int64_t blitz_udp_send_to(blitz_udp *u, const void *data, size_t bytes,
                                                   const blitz_addr *to, blitz_deadline until);

/* One datagram of several. */
typedef struct blitz_datagram {
    void *data;
    size_t bytes;    /* its length; receiving: the room, then its (full) length */
    blitz_addr addr; /* the receiver, BLITZ_ADDR_NONE: the connected one; or the sender */
} blitz_datagram;

/* The most datagrams in one call. */
#define BLITZ_DATAGRAMS_MAX 64

/*
 * Receive or send several datagrams, at least one, with one system call.
 * Owns:     borrows the array and the data until it returns.
 * Suspends: until the first can be received or sent; it does not wait for more. Call from anywhere.
 * Returns:  how many of them, from the first on; -ENOMEM; else as recv and send: then none was received or sent.
 */
BLITZ_API BLITZ_SUSPENDS int blitz_udp_recv_many(blitz_udp *u, blitz_datagram *datagrams,
                                                 size_t count, blitz_deadline until);
BLITZ_API BLITZ_SUSPENDS int blitz_udp_send_many(blitz_udp *u, const blitz_datagram *datagrams,
                                                 size_t count, blitz_deadline until);

/*
 * Wait until the socket can be read (BLITZ_READABLE) or written (BLITZ_WRITABLE). Then make one of the calls above with
 * a deadline of 0. If another caller was faster, that call returns -ETIMEDOUT.
 * Owns:     borrows the handle until it returns.
 * Suspends: until then, `until`, a cancel or a close. Call from anywhere; a plain thread sleeps.
 * Returns:  0, -ETIMEDOUT, -ECANCELED, -EBADF (closed), -EINVAL (not one of the two).
 */
BLITZ_API BLITZ_SUSPENDS int blitz_udp_wait(blitz_udp *u, unsigned what, blitz_deadline until);

/*
 * The calls above as futures. recv_many and send_many allocate memory for the system's form of the datagrams while they
 * run. If there is none, their result is -ENOMEM.
 * Owns:     borrows the handle, the data, the array and `from` (may be NULL) until the future was ready
 *           or cancelled. Copies `to`.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_udp_recv_future_init(blitz_net_future *f, blitz_udp *u, void *data,
                                          size_t bytes);
BLITZ_API void blitz_udp_peek_future_init(blitz_net_future *f, blitz_udp *u, void *data,
                                          size_t bytes);
BLITZ_API void blitz_udp_peek_from_future_init(blitz_message_future *f, blitz_udp *u, void *data,
                                               size_t bytes, blitz_addr *from);
BLITZ_API void blitz_udp_send_future_init(blitz_net_future *f, blitz_udp *u, const void *data,
                                          size_t bytes);
BLITZ_API void blitz_udp_recv_from_future_init(blitz_message_future *f, blitz_udp *u, void *data,
                                               size_t bytes, blitz_addr *from);
BLITZ_API void blitz_udp_send_to_future_init(blitz_message_future *f, blitz_udp *u,
                                             const void *data, size_t bytes, const blitz_addr *to);
BLITZ_API void blitz_udp_recv_many_future_init(blitz_net_future *f, blitz_udp *u,
                                               blitz_datagram *datagrams, size_t count);
BLITZ_API void blitz_udp_send_many_future_init(blitz_net_future *f, blitz_udp *u,
                                               const blitz_datagram *datagrams, size_t count);
BLITZ_API void blitz_udp_wait_future_init(blitz_net_future *f, blitz_udp *u, unsigned what);

/* ---- multicast groups and broadcast ---- */

/*
 * Join a multicast group, or leave it. `interface` is the number of a network interface; 0: the
 * system chooses. The socket must be bound to the group's port.
 * Owns:     borrows the address until it returns.
 * Suspends: never. Call from any thread.
 * Returns:  0, -EINVAL (not a group), -EADDRINUSE (joined already), -EADDRNOTAVAIL (not joined),
 *           -ENODEV (no such interface), -EBADF (closed), other errors of the system.
 */
BLITZ_API int blitz_udp_join(blitz_udp *u, const blitz_addr *group, uint32_t interface);
BLITZ_API int blitz_udp_leave(blitz_udp *u, const blitz_addr *group, uint32_t interface);

/*
 * Set an option.
 *   broadcast         allow broadcasts to all hosts of a link (IPv4)
 *   group_interface   the network interface for datagrams to groups; 0: the system chooses
 *   group_ttl         the maximum number of hops of datagrams to groups: 0 to 255; 1 by default
 *   group_loop        whether this host receives its own datagrams to groups; on by default
 *   ttl               the maximum number of hops of all other datagrams: 1 to 255
 *   tos               the type of service: 0 to 255. A DSCP is four times its number
 *   buffers           the sizes of the system's buffers for this socket; 0: unchanged
 * Owns:     borrows the handle until it returns.
 * Suspends: never. Call from any thread.
 * Returns:  0, -EINVAL, -EBADF (closed), other errors of the system.
 */
BLITZ_API int blitz_udp_set_broadcast(blitz_udp *u, bool is_allowed);
BLITZ_API int blitz_udp_set_group_interface(blitz_udp *u, uint32_t interface);
BLITZ_API int blitz_udp_set_group_ttl(blitz_udp *u, int hops);
BLITZ_API int blitz_udp_set_group_loop(blitz_udp *u, bool is_on);
BLITZ_API int blitz_udp_set_ttl(blitz_udp *u, int hops);
BLITZ_API int blitz_udp_set_tos(blitz_udp *u, int tos);
BLITZ_API int blitz_udp_set_buffers(blitz_udp *u, size_t send_bytes, size_t recv_bytes);

/* ---- names, sharing, ending ---- */

/*
 * Return the local address, or that of the peer.
 * Owns:     borrows the handle until it returns.
 * Suspends: never. Call from any thread.
 * Returns:  0, -ENOTCONN (peer: not connected), -EBADF (closed), -EINVAL. *out is written only on 0.
 */
BLITZ_API int blitz_udp_local(blitz_udp *u, blitz_addr *out);
BLITZ_API int blitz_udp_peer(blitz_udp *u, blitz_addr *out);

/*
 * Return the pending error of the socket, and clear it.
 * Owns:     borrows the handle until it returns.
 * Suspends: never. Call from any thread.
 * Returns:  0: none; the error; -EBADF (closed).
 */
BLITZ_API int blitz_udp_error(blitz_udp *u);

/*
 * Add a reference, release one, or close for all holders, as with blitz_tcp_close().
 * Owns:     ref: the result is a reference of its own. unref and close take one.
 * Suspends: never. Call from any thread.
 * Returns:  ref: the handle.
 */
BLITZ_API blitz_udp *blitz_udp_ref(blitz_udp *u);
BLITZ_API void blitz_udp_unref(blitz_udp *u);
BLITZ_API void blitz_udp_close(blitz_udp *u);

/*
 * Adopt a datagram socket that other code has made, or release one, as blitz_tcp_adopt() and blitz_tcp_release().
 * Owns:     adopt takes `fd` on success. release gives the caller a descriptor and takes the reference.
 * Suspends: never. adopt: call from a task; release: from any thread.
 * Returns:  adopt: 0, -EINVAL (not a datagram socket), -EBADF, -ENOMEM, -EOPNOTSUPP (not in a task).
 *           release: 0 and *out; as blitz_tcp_release().
 */
BLITZ_API int blitz_udp_adopt(blitz_fd fd, blitz_udp **out);
BLITZ_API int blitz_udp_release(blitz_udp *u, blitz_fd *out);

BLITZ_END_DECLS

#endif
