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
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "arch/notes.h"
#include "io/uring_abi.h"

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

static int sys_epoll_pwait2(int set, struct epoll_event *events, int room,
                            const struct timespec *left)
{
#if defined(SYS_epoll_pwait2)
    return (int)syscall(SYS_epoll_pwait2, set, events, room, left, NULL, 0);
#else
    (void)set;
    (void)events;
    (void)room;
    (void)left;
    errno = ENOSYS;
    return -1;
#endif
}

static int sys_ring_setup(unsigned entries, struct bz_uring_params *p)
{
    return (int)syscall(BZ_SYS_URING_SETUP, entries, p);
}

static int sys_ring_enter(int fd, unsigned submit, unsigned min, unsigned flags, const void *arg,
                          size_t bytes)
{
    return (int)syscall(BZ_SYS_URING_ENTER, fd, submit, min, flags, arg, bytes);
}

static int sys_ring_register(int fd, unsigned what, void *arg, unsigned count)
{
    return (int)syscall(BZ_SYS_URING_REGISTER, fd, what, arg, count);
}

static void *sys_ring_map(int fd, size_t bytes, uint64_t at)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, (off_t)at);
    return p != MAP_FAILED ? p : NULL;
}

static void sys_ring_unmap(void *start, size_t bytes)
{
    munmap(start, bytes);
}

static ssize_t sys_splice(int from, int to, size_t bytes)
{
    return splice(from, NULL, to, NULL, bytes, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
}

const struct bz_sys bz_sys_linux = {
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
    .recvmmsg = recvmmsg,
    .sendmmsg = sendmmsg,
    .sendfile = sendfile,
    .splice = sys_splice,
    .getsockopt = getsockopt,
    .setsockopt = setsockopt,
    .getsockname = getsockname,
    .getpeername = getpeername,
    .epoll_create1 = epoll_create1,
    .epoll_ctl = epoll_ctl,
    .epoll_wait = epoll_wait,
    .epoll_pwait2 = sys_epoll_pwait2,
    .ring_setup = sys_ring_setup,
    .ring_enter = sys_ring_enter,
    .ring_register = sys_ring_register,
    .ring_map = sys_ring_map,
    .ring_unmap = sys_ring_unmap,
};

const struct bz_sys *bz_sys = &bz_sys_linux;
