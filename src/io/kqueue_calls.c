/*
 * kqueue_calls.c - the real calls on queues of kevents: macOS, FreeBSD, NetBSD, OpenBSD.
 *
 * The build takes this file on these systems, and no_kqueue.c elsewhere. It translates the struct and the constants, which
 * differ: `udata` is a pointer or a number, filters are negative or not. Changes are one or two, events up to EVENTS_MAX,
 * so both are on the stack.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/event.h>
#include <sys/time.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/check.h"
#include "io/poll.h"
#include "io/sys_queues.h"

enum { CHANGES_MAX = 2, EVENTS_MAX = 32 };

static int calls_kqueue(void)
{
    int fd = kqueue();
    if (fd < 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) == 0)
        return fd;
    int err = errno;
    (void)close(fd);
    errno = err;
    return -1;
}

static void to_system(const struct bz_kevent *from, struct kevent *to)
{
    bool is_user = from->filter == BZ_FILTER_USER;
    unsigned flags = ((from->flags & BZ_EV_ADD) ? EV_ADD : 0) |
                     ((from->flags & BZ_EV_DELETE) ? EV_DELETE : 0) |
                     ((from->flags & BZ_EV_CLEAR) ? EV_CLEAR : 0);
    EV_SET(to, (uintptr_t)from->fd,
           is_user                          ? EVFILT_USER
           : from->filter == BZ_FILTER_READ ? EVFILT_READ
                                            : EVFILT_WRITE,
           flags, (from->flags & BZ_EV_TRIGGER) ? NOTE_TRIGGER : 0, 0, 0);
    static_assert(sizeof to->udata == sizeof from->key, "a key has room");
    to->udata = (__typeof__(to->udata))from->key;
}

static void from_system(const struct kevent *from, struct bz_kevent *to)
{
    unsigned flags = (from->flags & EV_EOF) ? BZ_EV_EOF : 0;
#if defined(EV_OOBAND)
    flags |= (from->flags & EV_OOBAND) ? BZ_EV_URGENT : 0;
#endif
    *to = (struct bz_kevent){.key = (uint64_t)(uintptr_t)from->udata,
                             .data = (int64_t)from->data,
                             .fd = (int)from->ident,
                             .error = (from->flags & EV_EOF) ? (int)from->fflags : 0,
                             .filter = from->filter == EVFILT_USER   ? BZ_FILTER_USER
                                       : from->filter == EVFILT_READ ? BZ_FILTER_READ
                                                                     : BZ_FILTER_WRITE,
                             .flags = (uint16_t)flags};
}

static int calls_kevent(int queue, const struct bz_kevent *changes, int change_count,
                        struct bz_kevent *events, int room, const struct timespec *left)
{
    struct kevent change[CHANGES_MAX], event[EVENTS_MAX];
    BZ_CHECK(change_count <= CHANGES_MAX && room <= EVENTS_MAX, "%d changes, %d events",
             change_count, room);
    for (int i = 0; i < change_count; i++)
        to_system(&changes[i], &change[i]);
    int n = kevent(queue, change, change_count, event, room, left);
    for (int i = 0; i < n; i++)
        from_system(&event[i], &events[i]);
    return n;
}

static const struct bz_sys_queues system_queues = {.kqueue = calls_kqueue, .kevent = calls_kevent};

const struct bz_sys_queues *bz_sys_queues = &system_queues;
const struct bz_poll_maker *bz_poll_kqueue = &bz_poll_kqueue_maker;
