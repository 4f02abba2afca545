/*
 * socket.h - handles of sockets: counted, closed once, and never another socket's. socket.c has the
 * rules.
 */
#ifndef BZ_NET_SOCKET_H
#define BZ_NET_SOCKET_H

#include "base/compiler.h"
#include "io/sock.h"
#include "sched/io.h"

enum { BZ_SOCKET_READS = 1, BZ_SOCKET_WRITES = 2, BZ_SOCKET_BOTH = 3 };

struct bz_socket {
    struct bz_file *file;         /* constant, as is */
    uint32_t generation;          /* of the file, while it is this socket's */
    bz_atomic(uint32_t) refs;     /* holders */
    bz_atomic(uint32_t) is_ended; /* somebody has closed it */
    uint32_t may;                 /* constant, as is */
    struct bz_socket *whole;      /* a half: of that one, by a reference; else NULL */
};

struct blitz_tcp {
    struct bz_socket s;
};
struct blitz_tcp_listener {
    struct bz_socket s;
};
struct blitz_udp {
    struct bz_socket s;
};

/*
 * A handle for a descriptor that does not block. flags: enum bz_file_flags.
 * Owns:    takes `fd` on success. The caller holds the first reference.
 * Returns: 0, -ENOMEM, -EMFILE, -EOPNOTSUPP.
 */
BZ_MUST_USE int bz_socket_new(int fd, unsigned flags, struct bz_socket **out);
/* The same; on error `fd` is closed. */
BZ_MUST_USE int bz_socket_take(int fd, unsigned flags, struct bz_socket **out);
/* A handle of one direction. On success the reference to `s` is its own. */
BZ_MUST_USE int bz_socket_half(struct bz_socket *s, unsigned may, struct bz_socket **out);

struct bz_socket *bz_socket_ref(struct bz_socket *s);
void bz_socket_unref(struct bz_socket *s);
/* End it for all, and one holder less. */
void bz_socket_close(struct bz_socket *s);

/* Begin an operation; its arguments are then the caller's to fill in. */
static inline void bz_socket_op(struct bz_socket *s, struct bz_op *op, enum bz_op_code code)
{
    bz_op_init(op, s->file, code);
    op->next = s;
    op->generation = BZ_BROKEN(152) ? 0 : s->generation;
}

static inline bool bz_socket_is(const struct bz_socket *s, unsigned may)
{
    return (s->may & may) == may;
}

/*
 * For a system call that is not an operation: its descriptor, which is not closed before
 * bz_socket_leave().
 * Returns: the descriptor; -EBADF (closed): do not leave.
 */
BZ_MUST_USE int bz_socket_enter(struct bz_socket *s, struct bz_op *op);
void bz_socket_leave(struct bz_socket *s, struct bz_op *op);

/* Those that need nothing but the descriptor. -EINVAL: no handle. */
int bz_socket_local(struct bz_socket *s, blitz_addr *out);
int bz_socket_peer(struct bz_socket *s, blitz_addr *out);
int bz_socket_set(struct bz_socket *s, enum bz_sock_option option, int value);
BZ_MUST_USE int bz_socket_get(struct bz_socket *s, enum bz_sock_option option, int *value);
/* A descriptor of the caller's own; the handle is closed. */
BZ_MUST_USE int bz_socket_release(struct bz_socket *s, blitz_fd *out);

#endif
