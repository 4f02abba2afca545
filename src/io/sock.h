/*
 * sock.h - sockets: making them, naming them, and what can be set. None of it waits.
 *
 * What waits are operations (op.h); these are the calls around them, so that the layers above see no
 * header of a system. All of them give 0 or a negative errno, or the descriptor or number they are
 * asked for, and can be made to fail by a test (io/attempt.h). Descriptors they make are not
 * inherited and do not block.
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
    BZ_SOCK_TTL, /* these differ by family */
    BZ_SOCK_MULTICAST_TTL,
    BZ_SOCK_MULTICAST_LOOP,
    BZ_SOCK_OPTIONS
};

/* For the kind of that address. Returns the descriptor. */
BZ_MUST_USE int bz_sock_open(const blitz_addr *of, bool is_stream);
BZ_MUST_USE int bz_sock_pair(bool is_stream, int fd[2]);
BZ_MUST_USE int bz_sock_bind(int fd, const blitz_addr *at);
BZ_MUST_USE int bz_sock_listen(int fd, int backlog);
/* Of a datagram socket: whom it talks to. NULL: anybody again. */
BZ_MUST_USE int bz_sock_connect(int fd, const blitz_addr *to);
int bz_sock_shutdown(int fd, bool in, bool out);
void bz_sock_close(int fd);

/* Is it a socket of that type? If so it does not block any more, nor is it inherited. */
BZ_MUST_USE int bz_sock_adopt(int fd, bool is_stream);
int bz_sock_unblock(int fd);
/* Of this host only: descriptors may travel with its bytes. */
bool bz_sock_is_unix(int fd);
/* Another descriptor of the same. */
BZ_MUST_USE int bz_sock_dup(int fd);

BZ_MUST_USE int bz_sock_local(int fd, blitz_addr *out);
BZ_MUST_USE int bz_sock_peer(int fd, blitz_addr *out);

int bz_sock_set(int fd, enum bz_sock_option option, int value);
BZ_MUST_USE int bz_sock_get(int fd, enum bz_sock_option option, int *value);
/* seconds < 0: off. */
BZ_MUST_USE int bz_sock_linger(int fd, int seconds);
/* A group; interface 0: the system chooses. */
BZ_MUST_USE int bz_sock_group(int fd, const blitz_addr *group, uint32_t interface, bool is_joined);
/* Where what is sent to groups goes out. */
BZ_MUST_USE int bz_sock_group_out(int fd, uint32_t interface);
BZ_MUST_USE int bz_sock_peer_is(int fd, int64_t *pid, uint32_t *uid, uint32_t *gid);

/* A BZ_OP_POLL for these sides. One that is a hint takes the keeper's word for it: no call. */
void bz_sock_poll(struct bz_op *op, bool in, bool out, bool is_hint);
/* What the result of one that was no hint means. */
struct bz_sock_events {
    bool in, out, is_failed, is_hung_up, is_bad;
};
struct bz_sock_events bz_sock_polled(int64_t result);

#endif
