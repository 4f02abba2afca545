/*
 * tcp_options.c - names and settings of streams: one system call each, none of which waits.
 *
 * They hold the descriptor (bz_socket_enter), so that a concurrent close cannot make the number
 * refer to another socket. TCP options on a Unix stream always return the same error, independent
 * of the system.
 */
#include <errno.h>
#include <limits.h>

#include "blitz/tcp.h"
#include "net/net.h"

static struct bz_socket *of(blitz_tcp *t)
{
    return t != NULL ? &t->s : NULL;
}

int blitz_tcp_local(blitz_tcp *t, blitz_addr *out)
{
    return bz_socket_local(of(t), out);
}

int blitz_tcp_peer(blitz_tcp *t, blitz_addr *out)
{
    return bz_socket_peer(of(t), out);
}

int blitz_tcp_error(blitz_tcp *t)
{
    int error = 0;
    int err = bz_socket_get(of(t), BZ_SOCK_ERROR, &error);
    return err != 0 ? err : -error;
}

int blitz_tcp_shutdown(blitz_tcp *t, unsigned what)
{
    struct bz_op op;
    if (t == NULL || what == 0 || (what & ~(unsigned)BZ_SOCKET_BOTH) != 0)
        return -EINVAL;
    if (!bz_socket_is(&t->s, what))
        return -EBADF;
    int fd = bz_socket_enter(&t->s, &op);
    if (fd < 0)
        return fd;
    int err = bz_sock_shutdown(fd, what & BLITZ_READABLE, what & BLITZ_WRITABLE);
    bz_socket_leave(&t->s, &op);
    return err;
}

/* An option that streams of another kind do not have. */
static int set_tcp(blitz_tcp *t, enum bz_sock_option option, int value)
{
    int err = bz_socket_set(of(t), option, value);
    return err == -ENOPROTOOPT ? -EOPNOTSUPP : err;
}

int blitz_tcp_set_nodelay(blitz_tcp *t, bool is_on)
{
    return set_tcp(t, BZ_SOCK_NODELAY, is_on);
}

int blitz_tcp_set_keepalive(blitz_tcp *t, unsigned idle_s, unsigned interval_s, unsigned count)
{
    if (idle_s > SHRT_MAX || interval_s > SHRT_MAX || count > SCHAR_MAX)
        return -EINVAL;
    int err = 0;
    if (idle_s > 0)
        err = set_tcp(t, BZ_SOCK_KEEP_IDLE, (int)idle_s);
    if (err == 0 && idle_s > 0 && interval_s > 0)
        err = set_tcp(t, BZ_SOCK_KEEP_INTERVAL, (int)interval_s);
    if (err == 0 && idle_s > 0 && count > 0)
        err = set_tcp(t, BZ_SOCK_KEEP_COUNT, (int)count);
    return err != 0 ? err : set_tcp(t, BZ_SOCK_KEEPALIVE, idle_s > 0);
}

int blitz_tcp_set_linger(blitz_tcp *t, int seconds)
{
    struct bz_op op;
    if (t == NULL || seconds > 0)
        return -EINVAL;
    int fd = bz_socket_enter(&t->s, &op);
    if (fd < 0)
        return fd;
    int err = bz_sock_linger(fd, seconds);
    bz_socket_leave(&t->s, &op);
    return err;
}

int blitz_tcp_set_buffers(blitz_tcp *t, size_t send_bytes, size_t recv_bytes)
{
    if (t == NULL || send_bytes > INT_MAX / 2 || recv_bytes > INT_MAX / 2)
        return -EINVAL;
    int err = 0;
    if (send_bytes > 0)
        err = bz_socket_set(&t->s, BZ_SOCK_SEND_BYTES, (int)send_bytes);
    if (err == 0 && recv_bytes > 0)
        err = bz_socket_set(&t->s, BZ_SOCK_RECV_BYTES, (int)recv_bytes);
    return err;
}

int blitz_tcp_set_ttl(blitz_tcp *t, int hops)
{
    if (t == NULL || hops < 1 || hops > 255)
        return -EINVAL;
    return set_tcp(t, BZ_SOCK_TTL, hops);
}

int blitz_tcp_set_tos(blitz_tcp *t, int tos)
{
    if (t == NULL || tos < 0 || tos > 255)
        return -EINVAL;
    return set_tcp(t, BZ_SOCK_TOS, tos);
}

int blitz_tcp_set_quickack(blitz_tcp *t, bool is_on)
{
    return set_tcp(t, BZ_SOCK_QUICKACK, is_on);
}
