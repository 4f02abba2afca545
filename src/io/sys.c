/*
 * sys.c - the real system calls of the driver.
 *
 * recv and send, the hot calls, usually do not come here: bz_sys_recv and bz_sys_send (sys.h) make them directly. Elsewhere
 * they bypass the C library too, which makes each a cancellation point with two locked instructions;
 * threads of the runtime are never cancelled by pthread_cancel. Sanitizer builds use the library's
 * functions, which tell the sanitizer about the bytes.
 */
#include "io/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "arch/notes.h"

#if defined(SYS_recvfrom) && defined(SYS_sendto) && !BZ_ASAN && !BZ_TSAN
static ssize_t sys_recv(int fd, void *data, size_t bytes, int flags)
{
    return syscall(SYS_recvfrom, fd, data, bytes, flags, NULL, NULL);
}

static ssize_t sys_send(int fd, const void *data, size_t bytes, int flags)
{
    return syscall(SYS_sendto, fd, data, bytes, flags, NULL, 0);
}
#else
static ssize_t sys_recv(int fd, void *data, size_t bytes, int flags)
{
    return recv(fd, data, bytes, flags);
}

static ssize_t sys_send(int fd, const void *data, size_t bytes, int flags)
{
    return send(fd, data, bytes, flags);
}
#endif

static int sys_fcntl(int fd, int what, int value)
{
    return fcntl(fd, what, value);
}

/* C libraries differ in the types of `count` and `flags`. */
static int sys_recvmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags,
                        struct timespec *left)
{
    return recvmmsg(fd, messages, count, flags, left);
}

static int sys_sendmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags)
{
    return sendmmsg(fd, messages, count, flags);
}

static ssize_t sys_splice(int from, int to, size_t bytes)
{
    return splice(from, NULL, to, NULL, bytes, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
}

const struct bz_sys bz_sys_system = {
    .close = close,
    .read = read,
    .write = write,
    .fcntl = sys_fcntl,
    .poll = poll,
    .pipe2 = pipe2,
    .eventfd = eventfd,
    .socket = socket,
    .socketpair = socketpair,
    .bind = bind,
    .listen = listen,
    .accept4 = accept4,
    .connect = connect,
    .shutdown = shutdown,
    .recv = sys_recv,
    .send = sys_send,
    .recvmsg = recvmsg,
    .sendmsg = sendmsg,
    .recvmmsg = sys_recvmmsg,
    .sendmmsg = sys_sendmmsg,
    .sendfile = sendfile,
    .splice = sys_splice,
    .getsockopt = getsockopt,
    .setsockopt = setsockopt,
    .getsockname = getsockname,
    .getpeername = getpeername,
};

const struct bz_sys *bz_sys = &bz_sys_system;
