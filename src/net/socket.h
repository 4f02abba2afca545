/*
 * socket.h - handles of sockets: reference-counted and safe against reused descriptors. socket.c
 * has the rules.
 */
#ifndef BZ_NET_SOCKET_H
#define BZ_NET_SOCKET_H

#include "base/compiler.h"
#include "block/io.h"
#include "io/sock.h"

enum { BZ_SOCKET_READS = 1, BZ_SOCKET_WRITES = 2, BZ_SOCKET_BOTH = 3 };

struct bz_socket {
    struct bz_file *file;         /* constant, like */
    uint32_t generation;          /* of the file, while this socket uses it */
    bz_atomic(uint32_t) refs;     /* holders */
    bz_atomic(uint32_t) is_ended; /* it was closed */
    uint32_t may;                 /* constant, like */
    struct bz_socket *whole;      /* a half: a reference to the whole; else NULL */
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
 * Make a handle for a non-blocking descriptor. flags: enum bz_file_flags.
 * Owns:    takes `fd` on success. The caller holds the first reference.
 * Returns: 0, -ENOMEM, -EMFILE, -EOPNOTSUPP.
 */
BZ_MUST_USE int bz_socket_new(int fd, unsigned flags, struct bz_socket **out);
/* The same; on error `fd` is closed. */
BZ_MUST_USE int bz_socket_take(int fd, unsigned flags, struct bz_socket **out);
/*
 * Join both halves to the whole again. Takes both references on success.
 * Returns: 0; -EINVAL (not the two halves of one socket), -EBUSY (a half has another holder).
 */
BZ_MUST_USE int bz_socket_reunite(struct bz_socket *a, struct bz_socket *b, struct bz_socket **out);
/* Make a handle of one direction. On success it takes the reference to `s`. */
BZ_MUST_USE int bz_socket_half(struct bz_socket *s, unsigned may, struct bz_socket **out);

struct bz_socket *bz_socket_ref(struct bz_socket *s);
void bz_socket_unref(struct bz_socket *s);
/* Close it for all holders, and drop one reference. */
void bz_socket_close(struct bz_socket *s);

/* Initialise an operation; the caller then fills in its arguments. */
static inline void bz_socket_op(struct bz_socket *s, struct bz_op *op, enum bz_op_code code)
{
    bz_op_init(op, s->file, code);
    op->next = s;
    op->generation = s->generation;
}

static inline bool bz_socket_is(const struct bz_socket *s, unsigned may)
{
    return (s->may & may) == may;
}

/*
 * Get the descriptor for a system call that is not an operation. It is not closed before
 * bz_socket_leave().
 * Returns: the descriptor; -EBADF (closed): do not leave.
 */
BZ_MUST_USE int bz_socket_enter(struct bz_socket *s, struct bz_op *op);
void bz_socket_leave(struct bz_socket *s, struct bz_op *op);

/* Calls that need only the descriptor. -EINVAL: no handle. */
int bz_socket_local(struct bz_socket *s, blitz_addr *out);
int bz_socket_peer(struct bz_socket *s, blitz_addr *out);
int bz_socket_set(struct bz_socket *s, enum bz_sock_option option, int value);
BZ_MUST_USE int bz_socket_get(struct bz_socket *s, enum bz_sock_option option, int *value);
/* Give the descriptor to the caller; the handle is closed. */
BZ_MUST_USE int bz_socket_release(struct bz_socket *s, blitz_fd *out);

#endif
