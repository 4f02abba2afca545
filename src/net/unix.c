/*
 * unix.c - socket pairs, descriptor passing, and peer credentials.
 *
 * Descriptors are attached to the bytes of a message. On a stream the system keeps them with the
 * first byte they were sent with. A plain read of this byte loses them, so a receiver that expects
 * descriptors must use blitz_unix_recv_fds() only. The buffer here is large enough for any message
 * that blitz sends; the system closes descriptors beyond that. Received descriptors that do not fit
 * into the caller's array are closed: an unknown descriptor would be a leak, and perhaps a security
 * hole.
 */
#include "blitz/unix.h"

#include <errno.h>
#include <string.h>

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

static void attach(struct msghdr *message, struct bz_fds_control *control, const blitz_fd *fds,
                   size_t fd_count)
{
    if (fd_count == 0)
        return;
    memset(control, 0, sizeof *control);
    message->msg_control = control;
    message->msg_controllen = CMSG_SPACE(fd_count * sizeof(int));
    struct cmsghdr *c = CMSG_FIRSTHDR(message);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(fd_count * sizeof(int));
    memcpy(CMSG_DATA(c), fds, fd_count * sizeof(int));
}

int bz_message_to_send_fds(struct bz_message *m, struct bz_socket *s, const void *data,
                           size_t bytes, const blitz_fd *fds, size_t fd_count)
{
    int err = check(s, BZ_SOCKET_WRITES, data, bytes, fds, fd_count);
    if (err != 0 || fd_count > BLITZ_UNIX_FDS_MAX)
        return err != 0 ? err : -EINVAL;
    m->piece = (struct iovec){(void *)data, bytes}; /* a send only reads it */
    m->header = (struct msghdr){.msg_iov = &m->piece, .msg_iovlen = 1};
    attach(&m->header, &m->beside.control, fds, fd_count);
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

/* Unpack one control message; close descriptors that do not fit. */
static void unload(const struct cmsghdr *c, blitz_fd *fds, size_t room, size_t *count)
{
    size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < n; i++) {
        int fd;
        memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
        if (*count < room)
            fds[*count] = fd;
        else
            bz_sock_close(fd);
        ++*count;
    }
}

size_t bz_fds_detach(struct msghdr *message, blitz_fd *fds, size_t room)
{
    size_t count = 0;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c != NULL; c = CMSG_NXTHDR(message, c))
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
            unload(c, fds, room, &count);
    return count;
}

int bz_message_to_recv_fds(struct bz_message *m, struct bz_socket *s, void *data, size_t bytes,
                           const blitz_fd *fds, size_t room)
{
    int err = check(s, BZ_SOCKET_READS, data, bytes, fds, room);
    if (err != 0)
        return err;
    m->piece = (struct iovec){data, bytes};
    m->header = (struct msghdr){.msg_iov = &m->piece,
                                .msg_iovlen = 1,
                                .msg_control = &m->beside.control,
                                .msg_controllen = sizeof m->beside.control};
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
    *fd_count = n >= 0 ? bz_fds_detach(&m.header, fds, *fd_count) : 0;
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
