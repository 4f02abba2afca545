/*
 * sock.h - sockets: creation, names and options. Nothing here waits.
 *
 * Waiting calls are operations (op.h); these are the other calls, so that the layers above need no
 * system header. All of them return 0 or a negative errno, or the requested descriptor or number,
 * and a test can make them fail (io/attempt.h). New descriptors are close-on-exec and non-blocking.
 */
#ifndef BZ_IO_SOCK_H
#define BZ_IO_SOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "blitz/addr.h"
#include "io/op.h"

enum bz_sock_option {
    BZ_SOCK_REUSE_ADDR,
    BZ_SOCK_REUSE_PORT,
    BZ_SOCK_V6_ONLY,
    BZ_SOCK_NODELAY,
    BZ_SOCK_KEEPALIVE,
    BZ_SOCK_KEEP_IDLE,
    BZ_SOCK_KEEP_INTERVAL,
    BZ_SOCK_KEEP_COUNT,
    BZ_SOCK_SEND_BYTES,
    BZ_SOCK_RECV_BYTES,
    BZ_SOCK_ERROR,
    BZ_SOCK_BROADCAST,
    BZ_SOCK_BIND_NO_PORT,
    BZ_SOCK_QUICKACK,
    BZ_SOCK_TTL, /* these differ by family */
    BZ_SOCK_MULTICAST_TTL,
    BZ_SOCK_MULTICAST_LOOP,
    BZ_SOCK_TOS,
    BZ_SOCK_OPTIONS
};

/* Make a socket for the family of this address. Returns the descriptor. */
BZ_MUST_USE int bz_sock_open(const blitz_addr *of, bool is_stream);
BZ_MUST_USE int bz_sock_pair(bool is_stream, int fd[2]);
BZ_MUST_USE int bz_sock_bind(int fd, const blitz_addr *at);
/* backlog 0: as many as the system takes. */
BZ_MUST_USE int bz_sock_listen(int fd, int backlog);
/* Set the peer of a datagram socket. NULL: no peer. */
BZ_MUST_USE int bz_sock_connect(int fd, const blitz_addr *to);
int bz_sock_shutdown(int fd, bool in, bool out);
void bz_sock_close(int fd);

/* Check that it is a socket of this type, and make it non-blocking and close-on-exec. */
BZ_MUST_USE int bz_sock_adopt(int fd, bool is_stream);
int bz_sock_unblock(int fd);
/* True for a Unix socket: its bytes may carry descriptors. */
bool bz_sock_is_unix(int fd);
/* Duplicate the descriptor. */
BZ_MUST_USE int bz_sock_dup(int fd);

BZ_MUST_USE int bz_sock_local(int fd, blitz_addr *out);
BZ_MUST_USE int bz_sock_peer(int fd, blitz_addr *out);

int bz_sock_set(int fd, enum bz_sock_option option, int value);
BZ_MUST_USE int bz_sock_get(int fd, enum bz_sock_option option, int *value);
/* seconds < 0: off. */
BZ_MUST_USE int bz_sock_linger(int fd, int seconds);
/* Join or leave a group; interface 0: the system chooses. */
BZ_MUST_USE int bz_sock_group(int fd, const blitz_addr *group, uint32_t interface, bool is_joined);
/* The interface for packets sent to groups. */
BZ_MUST_USE int bz_sock_group_out(int fd, uint32_t interface);
BZ_MUST_USE int bz_sock_peer_is(int fd, int64_t *pid, uint32_t *uid, uint32_t *gid);

/* Make a BZ_OP_POLL for these sides. As a hint it trusts the backend's event and makes no call. */
void bz_sock_poll(struct bz_op *op, bool in, bool out, bool is_hint);
/* Convert the result of a poll that was not a hint. */
struct bz_sock_events {
    bool in, out, is_failed, is_hung_up, is_bad;
};
struct bz_sock_events bz_sock_polled(int64_t result);

#endif
