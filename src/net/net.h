/*
 * net.h - shared by the files of the network: starting stream operations from a blocking call
 * (tcp.c) and a future (net_future.c), addresses and descriptors, accepting and connecting.
 */
#ifndef BZ_NET_NET_H
#define BZ_NET_NET_H

#include <assert.h>
#include <errno.h>

#include "blitz/unix.h"
#include "io/rights.h"
#include "net/socket.h"

/* Check the arguments and the direction of a half. Returns 0 or a negative errno. */
BZ_MUST_USE static inline int bz_stream_refuses(struct bz_socket *s, unsigned may, const void *data,
                                                size_t bytes)
{
    if (s == NULL || (data == NULL && bytes > 0) || bytes > INT64_MAX)
        return -EINVAL;
    return bz_socket_is(s, may) ? 0 : -EBADF;
}
/* Set up a RECV or SEND. */
void bz_stream_op(struct bz_socket *s, struct bz_op *op, enum bz_op_code code, const void *data,
                  size_t bytes);
/*
 * Count the result of one RECV or SEND of several (read_exact, write_all), and move its buffer on.
 * Returns: 1: more is left, start it again; 0: all is done; -ENODATA (the stream has ended); or the error n.
 */
BZ_MUST_USE static inline int bz_stream_after(struct bz_op *op, int64_t n, size_t *done)
{
    if (n <= 0)
        return n == 0 ? -ENODATA : (int)n;
    *done += (size_t)n;
    op->buffer.data = (char *)op->buffer.data + n;
    op->buffer.bytes -= (size_t)n;
    return op->buffer.bytes > 0;
}
/* Wait for one side. Returns 0, -EINVAL, -EBADF. */
BZ_MUST_USE int bz_stream_wait_op(struct bz_socket *s, struct bz_op *op, unsigned what);

/*
 * Set up a message for several buffers of a stream: tcp.c.
 * Returns: 1: submit *out; 0: nothing to do; -EINVAL, -EBADF.
 */
BZ_MUST_USE int bz_stream_pieces(struct bz_socket *s, enum bz_op_code code,
                                 const blitz_piece *pieces, size_t count, struct bz_msg *out);

static_assert((int)BLITZ_UNIX_FDS_MAX == (int)BZ_RIGHTS_MAX, "a message has room for them");
/* A message of one buffer with an address or descriptors. It must not move once it is set up. */
struct bz_message {
    struct bz_msg header;
    blitz_piece piece;
    union {
        struct bz_sockname name;
        struct bz_rights rights;
    } beside;
};
/* Check the arguments and set up a message: udp.c, and unix.c. Returns 0 or a negative errno. */
BZ_MUST_USE int bz_message_to_recv_from(struct bz_message *m, struct bz_socket *s, void *data,
                                        size_t bytes);
BZ_MUST_USE int bz_message_to_send_to(struct bz_message *m, struct bz_socket *s, const void *data,
                                      size_t bytes, const blitz_addr *to);
BZ_MUST_USE int bz_message_to_send_fds(struct bz_message *m, struct bz_socket *s, const void *data,
                                       size_t bytes, const blitz_fd *fds, size_t fd_count);
BZ_MUST_USE int bz_message_to_recv_fds(struct bz_message *m, struct bz_socket *s, void *data,
                                       size_t bytes, const blitz_fd *fds, size_t room);

/* Classify an accept error: listen.c. */
enum bz_accept_step { BZ_ACCEPT_FAILS, BZ_ACCEPT_AGAIN, BZ_ACCEPT_NAPS };
enum bz_accept_step bz_accept_after(int64_t result);
/* The duration of the next sleep after one of `ns`; 0: the first. */
uint64_t bz_accept_nap_ns(uint64_t last_ns);

/*
 * Start a connect: connect.c. opts may be NULL.
 * Returns: 0 (connected), -EINPROGRESS (wait until it is writable, then bz_connect_end); -EAGAIN (a
 *          Unix listener whose backlog is full: retry later); else an error, and *out is not
 *          written.
 */
BZ_MUST_USE int bz_connect_begin(const blitz_addr *to, const blitz_connect_opts *opts,
                                 struct bz_socket **out);
/* The result of a connect, once writable. */
BZ_MUST_USE int bz_connect_end(struct bz_socket *s);

/* Make a file for a foreign descriptor: fd.c. Uses a duplicate if the backend already watches the
 * number. */
BZ_MUST_USE int bz_fd_open(blitz_fd fd, bool is_copy, struct bz_file **out);
/* Close it after the wait. */
void bz_fd_close(struct bz_file *file, bool is_copy);
/* Convert a poll's result to events of blitz/fd.h. */
int bz_fd_events(int64_t result);

#endif
