/*
 * sock.c - sockets: creation, names and options.
 *
 * Thin wrappers: one system call each, with its error returned; all decisions are in the layers
 * above. The options are a table. Options that differ between IPv4 and IPv6 have two entries, and
 * the family is queried from the socket itself, because an adopted handle does not know it.
 *
 * On a dual-stack socket the IPv4 option applies to IPv4 packets: it is set as well, and a failure
 * is ignored.
 */
#define _GNU_SOURCE 1
#include "io/sock.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "io/attempt.h"
#include "io/sockaddr.h"
#include "io/sys.h"

/* True if a test makes this call fail. */
static bool is_denied(const char *call)
{
    int fault = bz_io_fault_of(call);
    if (fault != 0)
        errno = fault;
    return fault != 0;
}

static int outcome(int result)
{
    return result < 0 ? -errno : result;
}

/* ---- making ---- */

static int type_of(bool is_stream)
{
    return (is_stream ? SOCK_STREAM : SOCK_DGRAM) | SOCK_CLOEXEC | SOCK_NONBLOCK;
}

int bz_sock_open(const blitz_addr *of, bool is_stream)
{
    int family = bz_sockaddr_family(of);
    if (family < 0)
        return family;
    return outcome(is_denied("socket") ? -1 : bz_sys->socket(family, type_of(is_stream), 0));
}

int bz_sock_pair(bool is_stream, int fd[2])
{
    return outcome(
        is_denied("socketpair") ? -1 : bz_sys->socketpair(AF_UNIX, type_of(is_stream), 0, fd));
}

int bz_sock_bind(int fd, const blitz_addr *at)
{
    struct bz_sockname name;
    int bytes = bz_sockaddr_of(at, &name);
    if (bytes < 0)
        return bytes;
    return outcome(is_denied("bind") ? -1 : bz_sys->bind(fd, bz_sys_name(&name), (socklen_t)bytes));
}

int bz_sock_listen(int fd, int backlog)
{
    return outcome(is_denied("listen") ? -1
                                       : bz_sys->listen(fd, backlog > 0 ? backlog : SOMAXCONN));
}

int bz_sock_connect(int fd, const blitz_addr *to)
{
    struct bz_sockname name = {.bytes = {AF_UNSPEC}};
    int bytes = to != NULL ? bz_sockaddr_of(to, &name) : (int)sizeof(struct sockaddr);
    if (bytes < 0)
        return bytes;
    return outcome(
        is_denied("connect") ? -1 : bz_sys->connect(fd, bz_sys_name(&name), (socklen_t)bytes));
}

int bz_sock_shutdown(int fd, bool in, bool out)
{
    int how = in && out ? SHUT_RDWR : in ? SHUT_RD : SHUT_WR;
    return outcome(is_denied("shutdown") ? -1 : bz_sys->shutdown(fd, how));
}

void bz_sock_close(int fd)
{
    (void)bz_sys->close(fd); /* ignore errors: the number is free in any case */
}

int bz_sock_dup(int fd)
{
    return outcome(is_denied("dup") ? -1 : bz_sys->fcntl(fd, F_DUPFD_CLOEXEC, 0));
}

int bz_sock_unblock(int fd)
{
    int flags = is_denied("fcntl") ? -1 : bz_sys->fcntl(fd, F_GETFL, 0);
    return outcome(flags < 0 ? -1 : bz_sys->fcntl(fd, F_SETFL, flags | O_NONBLOCK));
}

int bz_sock_adopt(int fd, bool is_stream)
{
    int type;
    socklen_t bytes = sizeof type;
    if (bz_sys->getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &bytes) != 0)
        return errno == ENOTSOCK ? -EINVAL : -errno;
    if ((type == SOCK_STREAM) != is_stream)
        return -EINVAL;
    int err = bz_sock_unblock(fd);
    return err != 0 ? err : outcome(bz_sys->fcntl(fd, F_SETFD, FD_CLOEXEC));
}

bool bz_sock_is_unix(int fd)
{
    int family = AF_UNSPEC;
    socklen_t bytes = sizeof family;
    return bz_sys->getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &bytes) == 0 && family == AF_UNIX;
}

/* ---- names ---- */

typedef int naming_fn(int fd, struct sockaddr *name, socklen_t *bytes);

static int name_of(int fd, naming_fn *ask, const char *call, blitz_addr *out)
{
    struct bz_sockname name;
    socklen_t bytes = sizeof name;
    if (is_denied(call) || ask(fd, bz_sys_name(&name), &bytes) != 0)
        return -errno;
    bz_sockaddr_to(&name, bytes, out);
    return 0;
}

int bz_sock_local(int fd, blitz_addr *out)
{
    return name_of(fd, bz_sys->getsockname, "getsockname", out);
}

int bz_sock_peer(int fd, blitz_addr *out)
{
    return name_of(fd, bz_sys->getpeername, "getpeername", out);
}

int bz_sock_peer_is(int fd, int64_t *pid, uint32_t *uid, uint32_t *gid)
{
    struct ucred who;
    socklen_t bytes = sizeof who;
    if (is_denied("getsockopt") ||
        bz_sys->getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &bytes) != 0)
        return -errno;
    *pid = who.pid;
    *uid = who.uid;
    *gid = who.gid;
    return 0;
}

/* ---- options ---- */

static const struct {
    int level, name;
    int level_v6, name_v6; /* 0: the same */
} options[BZ_SOCK_OPTIONS] = {
    [BZ_SOCK_REUSE_ADDR] = {SOL_SOCKET, SO_REUSEADDR, 0, 0},
    [BZ_SOCK_REUSE_PORT] = {SOL_SOCKET, SO_REUSEPORT, 0, 0},
    [BZ_SOCK_V6_ONLY] = {IPPROTO_IPV6, IPV6_V6ONLY, 0, 0},
    [BZ_SOCK_NODELAY] = {IPPROTO_TCP, TCP_NODELAY, 0, 0},
    [BZ_SOCK_KEEPALIVE] = {SOL_SOCKET, SO_KEEPALIVE, 0, 0},
    [BZ_SOCK_KEEP_IDLE] = {IPPROTO_TCP, TCP_KEEPIDLE, 0, 0},
    [BZ_SOCK_KEEP_INTERVAL] = {IPPROTO_TCP, TCP_KEEPINTVL, 0, 0},
    [BZ_SOCK_KEEP_COUNT] = {IPPROTO_TCP, TCP_KEEPCNT, 0, 0},
    [BZ_SOCK_SEND_BYTES] = {SOL_SOCKET, SO_SNDBUF, 0, 0},
    [BZ_SOCK_RECV_BYTES] = {SOL_SOCKET, SO_RCVBUF, 0, 0},
    [BZ_SOCK_ERROR] = {SOL_SOCKET, SO_ERROR, 0, 0},
    [BZ_SOCK_BROADCAST] = {SOL_SOCKET, SO_BROADCAST, 0, 0},
    [BZ_SOCK_BIND_NO_PORT] = {IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 0, 0},
    [BZ_SOCK_QUICKACK] = {IPPROTO_TCP, TCP_QUICKACK, 0, 0},
    [BZ_SOCK_TTL] = {IPPROTO_IP, IP_TTL, IPPROTO_IPV6, IPV6_UNICAST_HOPS},
    [BZ_SOCK_MULTICAST_TTL] = {IPPROTO_IP, IP_MULTICAST_TTL, IPPROTO_IPV6, IPV6_MULTICAST_HOPS},
    [BZ_SOCK_MULTICAST_LOOP] = {IPPROTO_IP, IP_MULTICAST_LOOP, IPPROTO_IPV6, IPV6_MULTICAST_LOOP},
    [BZ_SOCK_TOS] = {IPPROTO_IP, IP_TOS, IPPROTO_IPV6, IPV6_TCLASS},
};

static bool is_v6(int fd)
{
    int family;
    socklen_t bytes = sizeof family;
    return bz_sys->getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &bytes) == 0 &&
           family == AF_INET6;
}

int bz_sock_set(int fd, enum bz_sock_option o, int value)
{
    if (is_denied("setsockopt"))
        return -errno;
    int result = 0;
    bool has_two = options[o].name_v6 != 0 && is_v6(fd);
    if (has_two)
        result =
            bz_sys->setsockopt(fd, options[o].level_v6, options[o].name_v6, &value, sizeof value);
    if (result != 0)
        return -errno;
    result = bz_sys->setsockopt(fd, options[o].level, options[o].name, &value, sizeof value);
    return has_two ? 0 : outcome(result); /* the IPv4 side of a dual-stack socket, if any */
}

int bz_sock_get(int fd, enum bz_sock_option o, int *value)
{
    socklen_t bytes = sizeof *value;
    bool is_other = options[o].name_v6 != 0 && is_v6(fd);
    if (is_denied("getsockopt"))
        return -errno;
    return outcome(bz_sys->getsockopt(fd, is_other ? options[o].level_v6 : options[o].level,
                                      is_other ? options[o].name_v6 : options[o].name, value,
                                      &bytes));
}

int bz_sock_linger(int fd, int seconds)
{
    struct linger how = {.l_onoff = seconds >= 0, .l_linger = seconds >= 0 ? seconds : 0};
    return outcome(is_denied("setsockopt")
                       ? -1
                       : bz_sys->setsockopt(fd, SOL_SOCKET, SO_LINGER, &how, sizeof how));
}

/* ---- groups ---- */

int bz_sock_group(int fd, const blitz_addr *group, uint32_t interface, bool is_joined)
{
    struct group_req want = {.gr_interface = interface};
    struct bz_sockname to;
    int bytes = bz_sockaddr_of(group, &to);
    if (bytes < 0 || !blitz_addr_is_multicast(group))
        return -EINVAL;
    memcpy(&want.gr_group, &to, (size_t)bytes);
    if (is_denied("setsockopt"))
        return -errno;
    int level = blitz_addr_is_v6(group) ? IPPROTO_IPV6 : IPPROTO_IP;
    return outcome(bz_sys->setsockopt(fd, level, is_joined ? MCAST_JOIN_GROUP : MCAST_LEAVE_GROUP,
                                      &want, sizeof want));
}

int bz_sock_group_out(int fd, uint32_t interface)
{
    struct ip_mreqn v4 = {.imr_ifindex = (int)interface};
    if (is_denied("setsockopt"))
        return -errno;
    if (!is_v6(fd))
        return outcome(bz_sys->setsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF, &v4, sizeof v4));
    return outcome(
        bz_sys->setsockopt(fd, IPPROTO_IPV6, IPV6_MULTICAST_IF, &interface, sizeof interface));
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
    return (struct bz_sock_events){.in = result & POLLIN,
                                   .out = result & POLLOUT,
                                   .is_failed = result & POLLERR,
                                   .is_hung_up = result & POLLHUP,
                                   .is_bad = result & POLLNVAL};
}
