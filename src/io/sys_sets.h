/*
 * sys_sets.h - the system calls on epoll sets, as a table: io/sys.h has the reasons. Only the epoll backend needs them.
 */
#ifndef BZ_IO_SYS_SETS_H
#define BZ_IO_SYS_SETS_H

#include <sys/epoll.h>
#include <time.h>

#include "base/compiler.h"

/* left NULL: no timeout. -1 with ENOSYS: the system has only millisecond timeouts. */
struct bz_sys_sets {
    int (*epoll_create1)(int flags);
    int (*epoll_ctl)(int set, int what, int fd, struct epoll_event *event);
    int (*epoll_wait)(int set, struct epoll_event *events, int room, int ms);
    int (*epoll_pwait2)(int set, struct epoll_event *events, int room, const struct timespec *left);
};

/* The real system calls. */
extern BZ_HIDDEN const struct bz_sys_sets bz_sys_sets_system;

/* The calls in use, as bz_sys. */
extern BZ_HIDDEN const struct bz_sys_sets *bz_sys_sets;

#endif
