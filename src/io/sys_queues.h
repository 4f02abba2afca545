/*
 * sys_queues.h - the system calls on queues of kevents, as a table: io/sys.h has the reasons. Only the kqueue backend needs
 * them.
 *
 * The systems that have kqueue differ in its types and numbers. So the struct and the constants are our own, and the table
 * translates (kqueue_calls.c). The backend compiles on every system, and the simulated kernel (sim/kernel_queue.c) fills
 * the same table.
 *
 * The table keeps these rules of all such systems:
 *
 *   - A queue has one registration for each descriptor and filter. To add a second one replaces `key` in the first, and
 *     no error tells.
 *   - The close of a descriptor removes its registrations.
 *   - With BZ_EV_CLEAR an event is returned once, to one caller, until the filter changes again.
 *   - Changes are made in order. Without room for events the first that fails ends the call, with its errno.
 */
#ifndef BZ_IO_SYS_QUEUES_H
#define BZ_IO_SYS_QUEUES_H

#include <stdint.h>
#include <time.h>

#include "base/compiler.h"

enum bz_filter {
    BZ_FILTER_READ = 1, /* bytes, a connection to accept, or the end */
    BZ_FILTER_WRITE,    /* room, or no reader any more */
    BZ_FILTER_USER      /* triggered by a call; `fd` is only a name */
};

enum {
    /* of a change */
    BZ_EV_ADD = 1,
    BZ_EV_DELETE = 2, /* -1 with ENOENT: there is none */
    BZ_EV_CLEAR = 4,
    BZ_EV_TRIGGER = 8, /* alone: a BZ_FILTER_USER happens */
    /* of an event */
    BZ_EV_EOF = 16,   /* that side has ended; bytes may be left, and `error` is the socket's */
    BZ_EV_URGENT = 32 /* urgent data has come, on systems that say it here */
};

struct bz_kevent {
    uint64_t key; /* comes back with the event */
    int64_t data; /* of an event: bytes, room, connections */
    int fd;
    int error; /* of an event with BZ_EV_EOF; 0: none */
    uint16_t filter, flags;
};

struct bz_sys_queues {
    /* Close-on-exec. */
    int (*kqueue)(void);
    /* left NULL: no timeout. Returns the number of events; -1: errno. */
    int (*kevent)(int queue, const struct bz_kevent *changes, int change_count,
                  struct bz_kevent *events, int room, const struct timespec *left);
};

/* The calls in use; NULL: the system has none. Changed only while no call is in progress. */
extern BZ_HIDDEN const struct bz_sys_queues *bz_sys_queues;

#endif
