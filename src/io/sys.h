/*
 * sys.h - the system calls of the driver, as a table.
 *
 * All system calls of src/io for descriptors and sockets go through bz_sys: the real calls, or those
 * of a simulated kernel (sim/network.h). Epoll sets and rings have tables of their own, with the
 * same rules: sys_sets.h, sys_rings.h. In a simulation the backends, the driver and the
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

#if defined(_WIN32)
#include "io/sys_windows.h"
#else

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>

#include "arch/direct.h"
#include "io/msg.h"

/* Our messages, addresses and flags as the system's. */
static_assert(sizeof(struct bz_msg) == sizeof(struct msghdr), "one layout");
static_assert(offsetof(struct bz_msg, name) == offsetof(struct msghdr, msg_name), "likewise");
static_assert(offsetof(struct bz_msg, name_bytes) == offsetof(struct msghdr, msg_namelen),
              "likewise");
static_assert(offsetof(struct bz_msg, pieces) == offsetof(struct msghdr, msg_iov), "likewise");
static_assert(offsetof(struct bz_msg, piece_count) == offsetof(struct msghdr, msg_iovlen),
              "likewise");
static_assert(offsetof(struct bz_msg, beside) == offsetof(struct msghdr, msg_control), "likewise");
static_assert(offsetof(struct bz_msg, beside_bytes) == offsetof(struct msghdr, msg_controllen),
              "likewise");
static_assert(offsetof(struct bz_msg, flags) == offsetof(struct msghdr, msg_flags), "likewise");
static_assert(sizeof(struct bz_msg_of_many) == sizeof(struct mmsghdr), "likewise");
static_assert(offsetof(struct bz_msg_of_many, bytes) == offsetof(struct mmsghdr, msg_len),
              "likewise");
static_assert(sizeof(blitz_piece) == sizeof(struct iovec), "a piece is what the system takes");
static_assert(offsetof(blitz_piece, data) == offsetof(struct iovec, iov_base), "likewise");
static_assert(offsetof(blitz_piece, bytes) == offsetof(struct iovec, iov_len), "likewise");
static_assert(sizeof(struct bz_sockname) >= sizeof(struct sockaddr_storage), "every address fits");
static_assert(_Alignof(struct bz_sockname) >= _Alignof(struct sockaddr_storage), "likewise");
static_assert(sizeof(socklen_t) == sizeof(uint32_t), "lengths of names");

static inline struct msghdr *bz_sys_msg(struct bz_msg *msg)
{
    return (struct msghdr *)msg;
}

static inline struct mmsghdr *bz_sys_msgs(struct bz_msg_of_many *msgs)
{
    return (struct mmsghdr *)msgs;
}

static inline struct sockaddr *bz_sys_name(struct bz_sockname *name)
{
    return (struct sockaddr *)name;
}

static BZ_ALWAYS_INLINE int bz_sys_flags(int flags)
{
    static_assert((int)BZ_MSG_PEEK == (int)MSG_PEEK && (int)BZ_MSG_TRUNC == (int)MSG_TRUNC,
                  "a translation is due");
    return flags;
}

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
};

/* The real system calls. */
extern BZ_HIDDEN const struct bz_sys bz_sys_system;

/* The calls in use: the real ones, unless a simulation replaces them. Changed only while no call is
 * in progress. */
extern BZ_HIDDEN const struct bz_sys *bz_sys;

/* ---- the hot calls: the result, or a negative errno ---- */

/* True if bz_sys_recv and bz_sys_send are instructions, or if they are never instructions on this system. A fast path that
 * asks first calls no function, and saves no registers. */
static BZ_ALWAYS_INLINE bool bz_sys_is_usual(void)
{
#if BZ_HAS_DIRECT
    return BZ_LIKELY(bz_sys == &bz_sys_system);
#else
    return true;
#endif
}

static BZ_ALWAYS_INLINE int64_t bz_sys_recv(int fd, void *data, size_t bytes, int flags)
{
#if BZ_HAS_DIRECT
    if (BZ_LIKELY(bz_sys == &bz_sys_system))
        return bz_direct_call(SYS_recvfrom, fd, data, bytes, flags);
#endif
    ssize_t n = bz_sys->recv(fd, data, bytes, flags);
    return n >= 0 ? n : -errno;
}

static BZ_ALWAYS_INLINE int64_t bz_sys_send(int fd, const void *data, size_t bytes, int flags)
{
#if BZ_HAS_DIRECT
    if (BZ_LIKELY(bz_sys == &bz_sys_system))
        return bz_direct_call(SYS_sendto, fd, data, bytes, flags);
#endif
    ssize_t n = bz_sys->send(fd, data, bytes, flags);
    return n >= 0 ? n : -errno;
}

#endif
#endif
