/*
 * sys_sets.c - the real system calls on epoll sets.
 *
 * epoll_pwait2 goes by its number: C libraries have it since glibc 2.35 only.
 */
#define _GNU_SOURCE 1
#include "io/sys_sets.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

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

const struct bz_sys_sets bz_sys_sets_system = {
    .epoll_create1 = epoll_create1,
    .epoll_ctl = epoll_ctl,
    .epoll_wait = epoll_wait,
    .epoll_pwait2 = sys_epoll_pwait2,
};

const struct bz_sys_sets *bz_sys_sets = &bz_sys_sets_system;
