/*
 * net.h - what the files of the network share: how operations on streams are begun, on a stack
 * (tcp.c) and in a future (future.c), what goes beside the bytes, and how connections are taken and made.
 */
#ifndef BZ_NET_NET_H
#define BZ_NET_NET_H

#include "blitz/unix.h"
#include "net/socket.h"

/* Bad arguments, or the other half: a negative errno. Else 0. */
BZ_MUST_USE int bz_stream_refuses(struct bz_socket *s, unsigned may, const void *data,
                                  size_t bytes);
/* RECV or SEND. */
void bz_stream_op(struct bz_socket *s, struct bz_op *op, enum bz_op_code code, const void *data,
                  size_t bytes);
/* Wait for one side. Returns 0, -EINVAL, -EBADF. */
BZ_MUST_USE int bz_stream_wait_op(struct bz_socket *s, struct bz_op *op, unsigned what);

/*
 * The pieces of a stream as one message: tcp.c.
 * Returns: 1, and *out is to be handed in; 0: there is nothing to do; -EINVAL, -EBADF.
 */
BZ_MUST_USE int bz_stream_pieces(struct bz_socket *s, enum bz_op_code code,
                                 const blitz_piece *pieces, size_t count, struct msghdr *out);

/* Descriptors beside the bytes of a message: unix.c. */
union bz_cargo {
    struct cmsghdr header; /* for its alignment */
    char bytes[CMSG_SPACE(BLITZ_UNIX_FDS_MAX * sizeof(int))];
};
/* Bad arguments of a message with descriptors: a negative errno. Else 0. */
BZ_MUST_USE int bz_cargo_refuses(struct bz_socket *s, unsigned may, const void *data, size_t bytes,
                                 const int *fds, size_t fd_count);
/* Put them with a message that is to be sent. */
void bz_cargo_load(struct msghdr *message, union bz_cargo *cargo, const int *fds, size_t fd_count);
/* Take out of a message those that came; what there is no room for is closed. Returns how many. */
size_t bz_cargo_unload(struct msghdr *message, int *fds, size_t room);

/* What to do about an accept's result that is no connection: listen.c. */
enum bz_accept_step { BZ_ACCEPT_FAILS, BZ_ACCEPT_AGAIN, BZ_ACCEPT_NAPS };
enum bz_accept_step bz_accept_after(int64_t result);
/* How long after a nap of so much; 0: the first. */
uint64_t bz_accept_nap_ns(uint64_t last_ns);

/*
 * Begin to connect: connect.c.
 * Returns: 0 (connected), -EINPROGRESS (wait until it is writable, then bz_connect_end); -EAGAIN (a
 *          Unix listener whose line is full: later); else an error, and *out is not written.
 */
BZ_MUST_USE int bz_connect_begin(const blitz_addr *to, struct bz_socket **out);
/* How it went, once writable. */
BZ_MUST_USE int bz_connect_end(struct bz_socket *s);

/* A file for somebody else's descriptor: fd.c. A copy, if the keeper knows the number already. */
BZ_MUST_USE int bz_fd_open(blitz_fd fd, bool is_copy, struct bz_file **out);
/* Of which nobody waits any more. */
void bz_fd_close(struct bz_file *file, bool is_copy);
/* The events of blitz/fd.h in a poll's result. */
int bz_fd_events(int64_t result);

#endif
