/*
 * winsock.c - sockets on Windows: creation, names, options, addresses (io/sock.h, io/sockaddr.h), and the few calls of sys.h.
 *
 * The library of sockets is started when blitz is loaded, and never stopped. A socket is not inherited, is non-blocking for the
 * calls that do not wait, and can be used with a completion port: that does not depend on the mode.
 *
 * Not there: Unix addresses, pairs, descriptors as cargo, the options of Linux alone. They return -EOPNOTSUPP.
 */
#include "io/winsock.h"

#include <errno.h>
#include <string.h>

#include "io/attempt.h"
#include "io/sock.h"
#include "io/sockaddr.h"

__attribute__((constructor)) static void start_sockets(void)
{
    WSADATA unused;
    (void)WSAStartup(MAKEWORD(2, 2), &unused); /* without it the first socket fails */
}

int bz_winsock_error(int error)
{
    static const struct {
        int theirs, ours;
    } errors[] = {{WSAEWOULDBLOCK, EAGAIN},
                  {WSAEINPROGRESS, EINPROGRESS},
                  {WSAEALREADY, EALREADY},
                  {WSAENOTSOCK, ENOTSOCK},
                  {WSAEDESTADDRREQ, EDESTADDRREQ},
                  {WSAEMSGSIZE, EMSGSIZE},
                  {WSAEPROTOTYPE, EPROTOTYPE},
                  {WSAENOPROTOOPT, ENOPROTOOPT},
                  {WSAEOPNOTSUPP, EOPNOTSUPP},
                  {WSAEAFNOSUPPORT, EAFNOSUPPORT},
                  {WSAEADDRINUSE, EADDRINUSE},
                  {WSAEADDRNOTAVAIL, EADDRNOTAVAIL},
                  {WSAENETDOWN, ENETDOWN},
                  {WSAENETUNREACH, ENETUNREACH},
                  {WSAENETRESET, ENETRESET},
                  {WSAECONNABORTED, ECONNABORTED},
                  {WSAECONNRESET, ECONNRESET},
                  {ERROR_NETNAME_DELETED, ECONNRESET},
                  {ERROR_PORT_UNREACHABLE, ECONNREFUSED},
                  {ERROR_CONNECTION_REFUSED, ECONNREFUSED},
                  {ERROR_CONNECTION_ABORTED, ECONNABORTED},
                  {WSAENOBUFS, ENOBUFS},
                  {WSAEISCONN, EISCONN},
                  {WSAENOTCONN, ENOTCONN},
                  {WSAESHUTDOWN, EPIPE},
                  {WSAETIMEDOUT, ETIMEDOUT},
                  {ERROR_SEM_TIMEOUT, ETIMEDOUT},
                  {WSAECONNREFUSED, ECONNREFUSED},
                  {WSAEHOSTUNREACH, EHOSTUNREACH},
                  {ERROR_HOST_UNREACHABLE, EHOSTUNREACH},
                  {ERROR_NETWORK_UNREACHABLE, ENETUNREACH},
                  {WSAEACCES, EACCES},
                  {WSAEFAULT, EFAULT},
                  {WSAEINVAL, EINVAL},
                  {WSAEMFILE, EMFILE},
                  {WSAEBADF, EBADF},
                  {ERROR_INVALID_HANDLE, EBADF},
                  {ERROR_NOT_ENOUGH_MEMORY, ENOMEM},
                  {ERROR_OPERATION_ABORTED, ECANCELED}};
    for (size_t i = 0; i < BZ_ARRAY_LEN(errors); i++)
        if (errors[i].theirs == error)
            return errors[i].ours;
    return EIO;
}

int bz_winsock_failed(void)
{
    return -bz_winsock_error(WSAGetLastError());
}

static int outcome(int result)
{
    return result != 0 ? bz_winsock_failed() : 0;
}

/* ---- addresses ---- */

int bz_sockaddr_of(const blitz_addr *a, struct bz_sockname *out)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(a->port)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(a->port)};
    switch (a->kind) {
    case BLITZ_ADDR_V4:
        memcpy(&v4.sin_addr, a->is.ip, 4);
        memcpy(out, &v4, sizeof v4);
        return sizeof v4;
    case BLITZ_ADDR_V6:
        v6.sin6_scope_id = a->scope;
        memcpy(&v6.sin6_addr, a->is.ip, 16);
        memcpy(out, &v6, sizeof v6);
        return sizeof v6;
    case BLITZ_ADDR_UNIX:
        return -EOPNOTSUPP;
    default:
        return -EINVAL;
    }
}

int bz_sockaddr_family(const blitz_addr *a)
{
    switch (a->kind) {
    case BLITZ_ADDR_V4:
        return AF_INET;
    case BLITZ_ADDR_V6:
        return AF_INET6;
    case BLITZ_ADDR_UNIX:
        return -EOPNOTSUPP;
    default:
        return -EINVAL;
    }
}

void bz_sockaddr_to(const struct bz_sockname *from, uint32_t bytes, blitz_addr *out)
{
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    memcpy(&v4, from, sizeof v4);
    memcpy(&v6, from, sizeof v6);
    memset(out, 0, sizeof *out);
    if (bytes >= sizeof v4 && v4.sin_family == AF_INET) {
        *out = blitz_addr_v4(0, 0, 0, 0, ntohs(v4.sin_port));
        memcpy(out->is.ip, &v4.sin_addr, 4);
    } else if (bytes >= sizeof v6 && v6.sin6_family == AF_INET6) {
        *out = blitz_addr_v6(v6.sin6_addr.s6_addr, ntohs(v6.sin6_port), v6.sin6_scope_id);
    }
}

/* ---- making ---- */

int bz_sock_open(const blitz_addr *of, bool is_stream)
{
    int family = bz_sockaddr_family(of);
    if (family < 0)
        return family;
    SOCKET s = WSASocketW(family, is_stream ? SOCK_STREAM : SOCK_DGRAM, 0, NULL, 0,
                          WSA_FLAG_OVERLAPPED | WSA_FLAG_NO_HANDLE_INHERIT);
    if (s == INVALID_SOCKET)
        return bz_winsock_failed();
    int err = bz_sock_unblock((int)s);
    if (err == 0)
        return (int)s; /* handles fit: the system uses 32 bits of them */
    closesocket(s);
    return err;
}

int bz_sock_pair(bool is_stream, int fd[2])
{
    (void)is_stream;
    (void)fd;
    return -EOPNOTSUPP;
}

int bz_sock_bind(int fd, const blitz_addr *at)
{
    struct bz_sockname name;
    int bytes = bz_sockaddr_of(at, &name);
    if (bytes < 0)
        return bytes;
    return outcome(bind((SOCKET)fd, (struct sockaddr *)&name, bytes));
}

int bz_sock_listen(int fd, int backlog)
{
    return outcome(listen((SOCKET)fd, backlog > 0 ? backlog : SOMAXCONN));
}

int bz_sock_connect(int fd, const blitz_addr *to)
{
    struct bz_sockname name = {.bytes = {AF_UNSPEC}};
    int bytes = to != NULL ? bz_sockaddr_of(to, &name) : (int)sizeof(struct sockaddr_in);
    if (bytes < 0)
        return bytes;
    int err = outcome(connect((SOCKET)fd, (struct sockaddr *)&name, bytes));
    return err == -EAGAIN ? -EINPROGRESS : err;
}

int bz_sock_shutdown(int fd, bool in, bool out)
{
    return outcome(shutdown((SOCKET)fd, in && out ? SD_BOTH : in ? SD_RECEIVE : SD_SEND));
}

void bz_sock_close(int fd)
{
    closesocket((SOCKET)fd);
}

/* A second handle would stay bound to the port of the first. */
int bz_sock_dup(int fd)
{
    (void)fd;
    return -EOPNOTSUPP;
}

int bz_sock_unblock(int fd)
{
    u_long is_on = 1;
    return outcome(ioctlsocket((SOCKET)fd, (long)FIONBIO, &is_on));
}

int bz_sock_adopt(int fd, bool is_stream)
{
    int type = 0, bytes = sizeof type;
    if (getsockopt((SOCKET)fd, SOL_SOCKET, SO_TYPE, (char *)&type, &bytes) != 0)
        return WSAGetLastError() == WSAENOTSOCK ? -EINVAL : bz_winsock_failed();
    return (type == SOCK_STREAM) == is_stream ? bz_sock_unblock(fd) : -EINVAL;
}

bool bz_sock_is_unix(int fd)
{
    (void)fd;
    return false;
}

/* ---- names ---- */

typedef int WSAAPI naming_fn(SOCKET s, struct sockaddr *name, int *bytes);

static int name_of(int fd, naming_fn *ask, blitz_addr *out)
{
    struct bz_sockname name;
    int bytes = sizeof name;
    if (ask((SOCKET)fd, (struct sockaddr *)&name, &bytes) != 0)
        return bz_winsock_failed();
    bz_sockaddr_to(&name, (uint32_t)bytes, out);
    return 0;
}

int bz_sock_local(int fd, blitz_addr *out)
{
    return name_of(fd, getsockname, out);
}

int bz_sock_peer(int fd, blitz_addr *out)
{
    return name_of(fd, getpeername, out);
}

int bz_sock_peer_is(int fd, int64_t *pid, uint32_t *uid, uint32_t *gid)
{
    (void)fd;
    (void)pid;
    (void)uid;
    (void)gid;
    return -EOPNOTSUPP;
}

/* ---- options ---- */

/* SO_REUSEADDR lets a second socket take the address of a listener here, which it does not elsewhere: it is not set. */
enum { NOTHING = -1 };
static const struct {
    int level, name; /* level 0 and name 0: not there. name NOTHING: it has no effect */
} options[BZ_SOCK_OPTIONS] = {
    [BZ_SOCK_REUSE_ADDR] = {SOL_SOCKET, NOTHING},
    [BZ_SOCK_V6_ONLY] = {IPPROTO_IPV6, IPV6_V6ONLY},
    [BZ_SOCK_NODELAY] = {IPPROTO_TCP, TCP_NODELAY},
    [BZ_SOCK_KEEPALIVE] = {SOL_SOCKET, SO_KEEPALIVE},
    [BZ_SOCK_SEND_BYTES] = {SOL_SOCKET, SO_SNDBUF},
    [BZ_SOCK_RECV_BYTES] = {SOL_SOCKET, SO_RCVBUF},
    [BZ_SOCK_ERROR] = {SOL_SOCKET, SO_ERROR},
    [BZ_SOCK_BROADCAST] = {SOL_SOCKET, SO_BROADCAST},
    [BZ_SOCK_BIND_NO_PORT] = {SOL_SOCKET, NOTHING},
    [BZ_SOCK_QUICKACK] = {SOL_SOCKET, NOTHING},
};

int bz_sock_set(int fd, enum bz_sock_option o, int value)
{
    if (options[o].level == 0)
        return -EOPNOTSUPP;
    if (options[o].name == NOTHING)
        return 0;
    return outcome(setsockopt((SOCKET)fd, options[o].level, options[o].name, (const char *)&value,
                              sizeof value));
}

int bz_sock_get(int fd, enum bz_sock_option o, int *value)
{
    int bytes = sizeof *value;
    *value = 0;
    if (options[o].level == 0 || options[o].name == NOTHING)
        return -EOPNOTSUPP;
    int err =
        outcome(getsockopt((SOCKET)fd, options[o].level, options[o].name, (char *)value, &bytes));
    if (err == 0 && o == BZ_SOCK_ERROR && *value != 0)
        *value = bz_winsock_error(*value);
    return err;
}

int bz_sock_linger(int fd, int seconds)
{
    struct linger how = {.l_onoff = seconds >= 0,
                         .l_linger = (u_short)(seconds >= 0 ? seconds : 0)};
    return outcome(setsockopt((SOCKET)fd, SOL_SOCKET, SO_LINGER, (const char *)&how, sizeof how));
}

int bz_sock_group(int fd, const blitz_addr *group, uint32_t card, bool is_joined)
{
    (void)fd;
    (void)group;
    (void)card;
    (void)is_joined;
    return -EOPNOTSUPP;
}

int bz_sock_group_out(int fd, uint32_t card)
{
    (void)fd;
    (void)card;
    return -EOPNOTSUPP;
}

/* ---- readiness ---- */

void bz_sock_poll(struct bz_op *op, bool in, bool out, bool is_hint)
{
    op->events = (short)((in ? POLLIN : 0) | (out ? POLLOUT : 0));
    op->side = in ? BZ_SIDE_IN : BZ_SIDE_OUT;
    op->flags = is_hint ? BZ_POLL_HINT : 0;
}

struct bz_sock_events bz_sock_polled(int64_t result)
{
    return (struct bz_sock_events){.in = (result & POLLIN) != 0,
                                   .out = (result & POLLOUT) != 0,
                                   .is_failed = (result & POLLERR) != 0,
                                   .is_hung_up = (result & POLLHUP) != 0,
                                   .is_bad = (result & POLLNVAL) != 0};
}

/* ---- the calls that do not wait ---- */

int (*bz_io_fault)(const char *call);

static int close_socket(blitz_fd fd)
{
    return closesocket((SOCKET)fd);
}

const struct bz_sys bz_sys_system = {.close = close_socket};
const struct bz_sys *bz_sys = &bz_sys_system;

static int part_of(size_t bytes)
{
    return bytes < 1u << 30 ? (int)bytes : 1 << 30;
}

int64_t bz_sys_recv(blitz_fd fd, void *data, size_t bytes, int flags)
{
    int n = recv((SOCKET)fd, data, part_of(bytes), flags & BZ_MSG_PEEK ? MSG_PEEK : 0);
    return n >= 0 ? n : bz_winsock_failed();
}

int64_t bz_sys_send(blitz_fd fd, const void *data, size_t bytes, int flags)
{
    (void)flags;
    int n = send((SOCKET)fd, data, part_of(bytes), 0);
    return n >= 0 ? n : bz_winsock_failed();
}

int64_t bz_attempt(struct bz_op *op)
{
    blitz_fd fd = op->file->fd;
    int bytes = sizeof *op->name.address;
    switch (op->code) {
    case BZ_OP_RECV:
        return bz_sys_recv(fd, op->buffer.data, op->buffer.bytes, op->flags);
    case BZ_OP_SEND:
        return bz_sys_send(fd, op->buffer.data, op->buffer.bytes, op->flags);
    case BZ_OP_ACCEPT: {
        SOCKET s = accept((SOCKET)fd, (struct sockaddr *)op->name.address,
                          op->name.address != NULL ? &bytes : NULL);
        op->name.bytes = (uint32_t)bytes;
        return s != INVALID_SOCKET ? (int64_t)s
                                   : bz_winsock_failed(); /* non-blocking as the listener */
    }
    case BZ_OP_POLL: {
        WSAPOLLFD one = {.fd = (SOCKET)fd, .events = op->events};
        int n = WSAPoll(&one, 1, 0);
        return n > 0 ? one.revents : n == 0 ? -EAGAIN : bz_winsock_failed();
    }
    default:
        return -EOPNOTSUPP;
    }
}

int64_t bz_attempt_if_ready(struct bz_op *op)
{
    return bz_attempt(op);
}

bool bz_attempt_left_more_in_full(const struct bz_op *op, int64_t result)
{
    (void)op;
    (void)result;
    return true;
}

/* Our sockets stay non-blocking: a call that waits is an operation of the port. */
void bz_let_block(blitz_fd fd)
{
    (void)fd;
}
