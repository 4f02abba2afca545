/*
 * unix.c - socket pairs, descriptor passing, and peer credentials.
 *
 * Descriptors are attached to the bytes of a message. On a stream the system keeps them with the
 * first byte they were sent with. A plain read of this byte loses them, so a receiver that expects
 * descriptors must use blitz_unix_recv_fds() only. The buffer here is large enough for any message
 * that blitz sends; the system closes descriptors beyond that. io/rights.c packs and unpacks them.
 */
#include "blitz/unix.h"

#include <errno.h>

#include "net/net.h"

/* ---- pairs ---- */

static int pair(bool is_stream, struct bz_socket *out[2])
{
    int fd[2];
    unsigned flags = is_stream ? BZ_FILE_STREAM : 0;
    if (out == NULL)
        return -EINVAL;
    int err = bz_sock_pair(is_stream, fd);
    if (err != 0)
        return err;
    err = bz_socket_take(fd[0], flags, &out[0]);
    if (err != 0) {
        bz_sock_close(fd[1]);
        return err;
    }
    err = bz_socket_take(fd[1], flags, &out[1]);
    if (err != 0)
        bz_socket_close(out[0]);
    return err;
}

int blitz_unix_pair(blitz_tcp *out[2])
{
    return pair(true, (struct bz_socket **)out);
}

int blitz_unix_datagram_pair(blitz_udp *out[2])
{
    return pair(false, (struct bz_socket **)out);
}

/* ---- descriptors ---- */

/* Returns 0 or a negative errno. */
static int check(struct bz_socket *s, unsigned may, const void *data, size_t bytes,
                 const blitz_fd *fds, size_t fd_count)
{
    int err = bz_stream_refuses(s, may, data, bytes);
    if (err != 0)
        return err;
    return bytes == 0 || (fds == NULL && fd_count > 0) ? -EINVAL : 0;
}

int bz_message_to_send_fds(struct bz_message *m, struct bz_socket *s, const void *data,
                           size_t bytes, const blitz_fd *fds, size_t fd_count)
{
    int err = check(s, BZ_SOCKET_WRITES, data, bytes, fds, fd_count);
    if (err != 0 || fd_count > BLITZ_UNIX_FDS_MAX)
        return err != 0 ? err : -EINVAL;
    m->piece = (blitz_piece){(void *)data, bytes}; /* a send only reads it */
    m->header = (struct bz_msg){.pieces = &m->piece, .piece_count = 1};
    bz_rights_attach(&m->header, &m->beside.rights, fds, fd_count);
    return 0;
}

int64_t blitz_unix_send_fds(blitz_tcp *t, const void *data, size_t bytes, const blitz_fd *fds,
                            size_t fd_count, blitz_deadline until)
{
    struct bz_op op;
    struct bz_message m;
    if (t == NULL)
        return -EINVAL;
    int err = bz_message_to_send_fds(&m, &t->s, data, bytes, fds, fd_count);
    if (err != 0)
        return err;
    bz_socket_op(&t->s, &op, BZ_OP_SENDMSG);
    op.msg.header = &m.header;
    return bz_io_run(&op, "unix send", until);
}

int bz_message_to_recv_fds(struct bz_message *m, struct bz_socket *s, void *data, size_t bytes,
                           const blitz_fd *fds, size_t room)
{
    int err = check(s, BZ_SOCKET_READS, data, bytes, fds, room);
    if (err != 0)
        return err;
    m->piece = (blitz_piece){data, bytes};
    m->header = (struct bz_msg){.pieces = &m->piece,
                                .piece_count = 1,
                                .beside = &m->beside.rights,
                                .beside_bytes = sizeof m->beside.rights};
    return 0;
}

int64_t blitz_unix_recv_fds(blitz_tcp *t, void *data, size_t bytes, blitz_fd *fds, size_t *fd_count,
                            blitz_deadline until)
{
    struct bz_op op;
    struct bz_message m;
    if (t == NULL || fd_count == NULL)
        return -EINVAL;
    int err = bz_message_to_recv_fds(&m, &t->s, data, bytes, fds, *fd_count);
    if (err != 0)
        return err;
    bz_socket_op(&t->s, &op, BZ_OP_RECVMSG);
    op.msg.header = &m.header;
    int64_t n = bz_io_run(&op, "unix receive", until);
    *fd_count = n >= 0 ? bz_rights_detach(&m.header, fds, *fd_count) : 0;
    return n;
}

/* ---- peer credentials ---- */

int blitz_unix_peer_of(blitz_tcp *t, blitz_unix_peer *out)
{
    struct bz_op op;
    blitz_addr local;
    if (t == NULL || out == NULL)
        return -EINVAL;
    int fd = bz_socket_enter(&t->s, &op);
    if (fd < 0)
        return fd;
    int err = bz_sock_local(fd, &local);
    if (err == 0 && !blitz_addr_is_unix(&local))
        err = -EOPNOTSUPP;
    if (err == 0)
        err = bz_sock_peer_is(fd, &out->pid, &out->uid, &out->gid);
    bz_socket_leave(&t->s, &op);
    return err;
}
