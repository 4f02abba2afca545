/*
 * sys.h - the system calls of the driver, as a table.
 *
 * All system calls of src/io for sockets, epoll sets and rings go through bz_sys: the real calls,
 * or those of a simulated kernel (sim/network.h). On the latter the backends, the driver and the
 * network run unchanged, in virtual time, from a seed. So simulations test the real code, down to
 * the arguments of its calls.
 *
 * The cost is a load and a well-predicted indirect call for each system call; for the two hot calls, a load and a
 * compare.
 *
 * The calls are the system's, arguments, results and errno. Regular files are not here: calls on them
 * run on pool threads and are not simulated.
 */
#ifndef BZ_IO_SYS_H
#define BZ_IO_SYS_H

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>

#include "arch/direct.h"

struct bz_uring_params;

struct bz_sys {
    bool is_simulated;

    /* Descriptors. */
    int (*close)(int fd);
    ssize_t (*read)(int fd, void *data, size_t bytes);
    ssize_t (*write)(int fd, const void *data, size_t bytes);
    int (*fcntl)(int fd, int what, int value);
    int (*poll)(struct pollfd *list, nfds_t count, int ms);
    int (*pipe2)(int fd[2], int flags);
    int (*eventfd)(unsigned count, int flags);

    /* Sockets. */
    int (*socket)(int family, int type, int protocol);
    int (*socketpair)(int family, int type, int protocol, int fd[2]);
    int (*bind)(int fd, const struct sockaddr *name, socklen_t bytes);
    int (*listen)(int fd, int backlog);
    int (*accept4)(int fd, struct sockaddr *name, socklen_t *bytes, int flags);
    int (*connect)(int fd, const struct sockaddr *name, socklen_t bytes);
    int (*shutdown)(int fd, int how);
    ssize_t (*recv)(int fd, void *data, size_t bytes, int flags);
    ssize_t (*send)(int fd, const void *data, size_t bytes, int flags);
    ssize_t (*recvmsg)(int fd, struct msghdr *message, int flags);
    ssize_t (*sendmsg)(int fd, const struct msghdr *message, int flags);
    int (*recvmmsg)(int fd, struct mmsghdr *messages, unsigned count, int flags,
                    struct timespec *left);
    int (*sendmmsg)(int fd, struct mmsghdr *messages, unsigned count, int flags);
    ssize_t (*sendfile)(int to, int from, off_t *at, size_t bytes);
    ssize_t (*splice)(int from, int to, size_t bytes); /* never waits; NULL: not available */
    int (*getsockopt)(int fd, int level, int name, void *value, socklen_t *bytes);
    int (*setsockopt)(int fd, int level, int name, const void *value, socklen_t bytes);
    int (*getsockname)(int fd, struct sockaddr *name, socklen_t *bytes);
    int (*getpeername)(int fd, struct sockaddr *name, socklen_t *bytes);

    /* Epoll sets. left NULL: no timeout. -1 with ENOSYS: the system has only millisecond
     * timeouts. */
    int (*epoll_create1)(int flags);
    int (*epoll_ctl)(int set, int what, int fd, struct epoll_event *event);
    int (*epoll_wait)(int set, struct epoll_event *events, int room, int ms);
    int (*epoll_pwait2)(int set, struct epoll_event *events, int room, const struct timespec *left);

    /* Rings. */
    int (*ring_setup)(unsigned entries, struct bz_uring_params *p);
    int (*ring_enter)(int fd, unsigned submit, unsigned min, unsigned flags, const void *arg,
                      size_t bytes);
    int (*ring_register)(int fd, unsigned what, void *arg, unsigned count);
    void *(*ring_map)(int fd, size_t bytes, uint64_t at); /* NULL: errno */
    void (*ring_unmap)(void *start, size_t bytes);
};

/* The real system calls. */
extern const struct bz_sys bz_sys_linux;

/* The calls in use: the real ones, unless a simulation replaces them. Changed only while no call is
 * in progress. */
extern const struct bz_sys *bz_sys;

/* ---- the hot calls: the result, or a negative errno ---- */

static BZ_ALWAYS_INLINE int64_t bz_sys_recv(int fd, void *data, size_t bytes, int flags)
{
#if BZ_HAS_DIRECT
    if (BZ_LIKELY(bz_sys == &bz_sys_linux))
        return bz_direct_call(SYS_recvfrom, fd, data, bytes, flags);
#endif
    ssize_t n = bz_sys->recv(fd, data, bytes, flags);
    return n >= 0 ? n : -errno;
}

static BZ_ALWAYS_INLINE int64_t bz_sys_send(int fd, const void *data, size_t bytes, int flags)
{
#if BZ_HAS_DIRECT
    if (BZ_LIKELY(bz_sys == &bz_sys_linux))
        return bz_direct_call(SYS_sendto, fd, data, bytes, flags);
#endif
    ssize_t n = bz_sys->send(fd, data, bytes, flags);
    return n >= 0 ? n : -errno;
}

#endif
