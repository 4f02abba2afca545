/*
 * kernel_sock.c - the simulated network: the calls on sockets.
 *
 * kernel_stream.c implements them; this file adds descriptors, errno, and waiting for blocking
 * descriptors.
 */
#include <errno.h>
#include <netinet/in.h>

#include "sim/kernel.h"

static int sim_socket(int family, int type, int protocol)
{
    (void)protocol;
    bz_sim_call();
    if ((type & ~(SOCK_CLOEXEC | SOCK_NONBLOCK)) != SOCK_STREAM)
        return (int)bz_sim_outcome(-EPROTONOSUPPORT);
    struct sim_file *f = bz_sim_file_new(SIM_SOCKET);
    bz_sim_socket_init(f);
    f->blocks = !(type & SOCK_NONBLOCK);
    f->socket.family = family;
    return (int)bz_sim_outcome(bz_sim_fd_new(f));
}

static int sim_socketpair(int family, int type, int protocol, int fd[2])
{
    struct sim_file *f[2];
    (void)protocol;
    bz_sim_call();
    if ((type & ~(SOCK_CLOEXEC | SOCK_NONBLOCK)) != SOCK_STREAM)
        return (int)bz_sim_outcome(-EPROTONOSUPPORT);
    for (int i = 0; i < 2; i++) {
        f[i] = bz_sim_file_new(SIM_SOCKET);
        bz_sim_socket_init(f[i]);
        f[i]->blocks = !(type & SOCK_NONBLOCK);
        f[i]->socket.family = family;
        bz_sim_name_it(&f[i]->socket);
    }
    bz_sim_be_peers(f[0], f[1]);
    fd[0] = bz_sim_fd_new(f[0]);
    fd[1] = fd[0] >= 0 ? bz_sim_fd_new(f[1]) : -EMFILE;
    if (fd[0] < 0) {
        bz_sim_file_unref(f[1]);
    } else if (fd[1] < 0) {
        bz_sim_fd_drop(fd[0]);
    }
    return (int)bz_sim_outcome(fd[1] < 0 ? -EMFILE : 0);
}

static int sim_bind(int fd, const struct sockaddr *name, socklen_t bytes)
{
    bz_sim_call();
    struct sim_file *f = bz_sim_file_of(fd, SIM_SOCKET);
    struct sim_socket *s = &f->socket;
    bz_sim_copy(&s->name, name, bytes);
    s->name_bytes = bytes;
    struct sockaddr_in *in = (void *)&s->name; /* IPv6 has the port at the same place */
    if (s->family != AF_UNIX && in->sin_port == 0)
        in->sin_port = htons(bz_sim_kernel->port++);
    return (int)bz_sim_outcome(bz_sim_is_taken(&s->name, bytes) ? -EADDRINUSE : 0);
}

static int sim_listen(int fd, int backlog)
{
    bz_sim_call();
    struct sim_file *f = bz_sim_file_of(fd, SIM_SOCKET);
    bz_sim_name_it(&f->socket);
    f->socket.state = SIM_LISTENS;
    f->socket.line_room = backlog >= 1 && backlog < SIM_LINE ? (unsigned)backlog : SIM_LINE;
    return (int)bz_sim_outcome(0);
}

static int sim_accept4(int fd, struct sockaddr *name, socklen_t *bytes, int flags)
{
    bz_sim_call();
    struct sim_file *f = bz_sim_file_of(fd, SIM_SOCKET);
    f->refs++;
    int64_t result;
    for (;;) {
        uint32_t was = bz_sim_changes();
        result = bz_sim_accept(f, name, bytes, !(flags & SOCK_NONBLOCK));
        if (result != -EAGAIN || !f->blocks)
            break;
        bz_sim_sleep(was, BZ_OS_FOREVER);
    }
    bz_sim_file_unref(f);
    return (int)bz_sim_outcome(result);
}

static int sim_connect(int fd, const struct sockaddr *name, socklen_t bytes)
{
    bz_sim_call();
    return (int)bz_sim_outcome(bz_sim_connect(bz_sim_file_of(fd, SIM_SOCKET), name, bytes));
}

static int sim_shutdown(int fd, int how)
{
    bz_sim_call();
    struct sim_file *f = bz_sim_file_of(fd, SIM_SOCKET);
    if (f->socket.state != SIM_CONNECTED)
        return (int)bz_sim_outcome(-ENOTCONN);
    if (how != SHUT_RD)
        bz_sim_say_end(f);
    if (how != SHUT_WR)
        f->socket.is_deaf = true;
    bz_sim_edge_soon(f, SIM_EDGE_BOTH);
    return (int)bz_sim_outcome(0);
}

static ssize_t receive(int fd, const struct iovec *vector, size_t count, int flags)
{
    bz_sim_call();
    struct sim_file *f = bz_sim_file_of(fd, SIM_SOCKET);
    if (bz_sim_odd(64))
        return (ssize_t)bz_sim_outcome(-EINTR);
    f->refs++;
    int64_t result;
    for (;;) {
        uint32_t was = bz_sim_changes();
        result = bz_sim_recv(f, vector, count, flags);
        if (result != -EAGAIN || !f->blocks || (flags & MSG_DONTWAIT))
            break;
        bz_sim_sleep(was, BZ_OS_FOREVER);
    }
    bz_sim_file_unref(f);
    return (ssize_t)bz_sim_outcome(result);
}

static ssize_t transmit(int fd, const struct iovec *vector, size_t count, int flags)
{
    bz_sim_call();
    struct sim_file *f = bz_sim_file_of(fd, SIM_SOCKET);
    if (bz_sim_odd(64))
        return (ssize_t)bz_sim_outcome(-EINTR);
    f->refs++;
    int64_t result;
    for (;;) {
        uint32_t was = bz_sim_changes();
        result = bz_sim_send(f, vector, count);
        if (result != -EAGAIN || !f->blocks || (flags & MSG_DONTWAIT))
            break;
        bz_sim_sleep(was, BZ_OS_FOREVER);
    }
    bz_sim_file_unref(f);
    return (ssize_t)bz_sim_outcome(result);
}

static ssize_t sim_recv(int fd, void *data, size_t bytes, int flags)
{
    struct iovec piece = {data, bytes};
    return receive(fd, &piece, 1, flags);
}

static ssize_t sim_send(int fd, const void *data, size_t bytes, int flags)
{
    struct iovec piece = {(void *)(uintptr_t)data, bytes}; /* it is only read */
    return transmit(fd, &piece, 1, flags);
}

static ssize_t sim_recvmsg(int fd, struct msghdr *message, int flags)
{
    message->msg_controllen = 0;
    message->msg_flags = 0;
    return receive(fd, message->msg_iov, message->msg_iovlen, flags);
}

static ssize_t sim_sendmsg(int fd, const struct msghdr *message, int flags)
{
    return transmit(fd, message->msg_iov, message->msg_iovlen, flags);
}

/* NOLINTNEXTLINE(readability-non-const-parameter): the system's */
static int sim_getsockopt(int fd, int level, int name, void *value, socklen_t *bytes)
{
    bz_sim_call();
    struct sim_file *f = bz_sim_file_of(fd, SIM_SOCKET);
    int is = 0;
    if (level == SOL_SOCKET && name == SO_ERROR)
        is = bz_sim_error_of(f);
    else if (level == SOL_SOCKET && name == SO_TYPE)
        is = SOCK_STREAM;
    else if (level == SOL_SOCKET && name == SO_DOMAIN)
        is = f->socket.family;
    if (*bytes != sizeof is)
        return (int)bz_sim_outcome(-EINVAL);
    bz_sim_copy(value, &is, sizeof is);
    return (int)bz_sim_outcome(0);
}

static int sim_setsockopt(int fd, int level, int name, const void *value, socklen_t bytes)
{
    struct linger how;
    bz_sim_call();
    struct sim_file *f = bz_sim_file_of(fd, SIM_SOCKET);
    if (level == SOL_SOCKET && name == SO_LINGER && bytes == sizeof how) {
        bz_sim_copy(&how, value, sizeof how);
        f->socket.resets_at_close = how.l_onoff && how.l_linger == 0;
    }
    return (int)bz_sim_outcome(0);
}

static int give_name(const struct sockaddr_storage *is, socklen_t have, struct sockaddr *name,
                     socklen_t *bytes)
{
    bz_sim_copy(name, is, have < *bytes ? have : *bytes);
    *bytes = have;
    return (int)bz_sim_outcome(0);
}

static int sim_getsockname(int fd, struct sockaddr *name, socklen_t *bytes)
{
    bz_sim_call();
    const struct sim_socket *s = &bz_sim_file_of(fd, SIM_SOCKET)->socket;
    return give_name(&s->name, s->name_bytes, name, bytes);
}

static int sim_getpeername(int fd, struct sockaddr *name, socklen_t *bytes)
{
    bz_sim_call();
    const struct sim_socket *s = &bz_sim_file_of(fd, SIM_SOCKET)->socket;
    if (s->state != SIM_CONNECTED || s->is_dead)
        return (int)bz_sim_outcome(-ENOTCONN);
    return give_name(&s->peer_name, s->peer_name_bytes, name, bytes);
}

void bz_sim_sock_calls(struct bz_sys *out)
{
    out->socket = sim_socket;
    out->socketpair = sim_socketpair;
    out->bind = sim_bind;
    out->listen = sim_listen;
    out->accept4 = sim_accept4;
    out->connect = sim_connect;
    out->shutdown = sim_shutdown;
    out->recv = sim_recv;
    out->send = sim_send;
    out->recvmsg = sim_recvmsg;
    out->sendmsg = sim_sendmsg;
    out->getsockopt = sim_getsockopt;
    out->setsockopt = sim_setsockopt;
    out->getsockname = sim_getsockname;
    out->getpeername = sim_getpeername;
}
