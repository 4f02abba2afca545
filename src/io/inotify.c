/*
 * inotify.c - the system's queue of changes in the file system.
 *
 * The system takes paths from the working directory only. A path below an open directory is reached through the
 * directory's name in the proc file system.
 */
#include "io/inotify.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/error.h"
#include "io/attempt.h"

static const struct {
    uint32_t theirs, ours;
} names[] = {
    {IN_CREATE, BLITZ_FS_CREATED},       {IN_DELETE, BLITZ_FS_REMOVED},
    {IN_MODIFY, BLITZ_FS_MODIFIED},      {IN_CLOSE_WRITE, BLITZ_FS_WRITTEN},
    {IN_MOVED_FROM, BLITZ_FS_MOVED_OUT}, {IN_MOVED_TO, BLITZ_FS_MOVED_IN},
    {IN_ATTRIB, BLITZ_FS_FACTS},         {IN_DELETE_SELF, BLITZ_FS_SELF},
    {IN_MOVE_SELF, BLITZ_FS_SELF},       {IN_Q_OVERFLOW, BLITZ_FS_OVERFLOW},
    {IN_IGNORED, BLITZ_FS_GONE},         {IN_UNMOUNT, BLITZ_FS_UNMOUNTED},
};

int bz_inotify_open(void)
{
    int fault = bz_io_fault_of("inotify_init1");
    if (fault != 0)
        return -fault;
    int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    return fd >= 0 ? fd : -bz_error_of(errno);
}

int bz_inotify_add(int fd, int at, const char *path, uint32_t what)
{
    char whole[PATH_MAX + 32];
    uint32_t mask = 0;
    for (size_t i = 0; i < BZ_ARRAY_LEN(names); i++)
        mask |= (what & BLITZ_FS_ANY & names[i].ours) ? names[i].theirs : 0;
    if (at != AT_FDCWD && path[0] != '/') {
        int n = snprintf(whole, sizeof whole, "/proc/self/fd/%d/%s", at, path);
        if (n < 0 || (size_t)n >= sizeof whole)
            return -ENAMETOOLONG;
        path = whole;
    }
    int fault = bz_io_fault_of("inotify_add_watch");
    if (fault != 0)
        return -fault;
    int id = inotify_add_watch(fd, path, mask);
    return id >= 0 ? id : -bz_error_of(errno);
}

int bz_inotify_remove(int fd, int id)
{
    return inotify_rm_watch(fd, id) == 0 ? 0 : -bz_error_of(errno);
}

int64_t bz_inotify_read(int fd, void *events, size_t bytes)
{
    ssize_t n;
    do {
        int fault = bz_io_fault_of("inotify read");
        errno = fault;
        n = fault != 0 ? -1 : read(fd, events, bytes);
    } while (n < 0 && errno == EINTR);
    return n >= 0 ? n : -bz_error_of(errno);
}

size_t bz_inotify_event(const void *events, blitz_fs_event *out)
{
    struct inotify_event e;
    memcpy(&e, events, sizeof e);
    *out = (blitz_fs_event){.id = e.wd, .move = e.cookie, .is_dir = (e.mask & IN_ISDIR) != 0};
    for (size_t i = 0; i < BZ_ARRAY_LEN(names); i++)
        out->what |= (e.mask & names[i].theirs) ? names[i].ours : 0;
    if (e.len > 0)
        snprintf(out->name, sizeof out->name, "%s", (const char *)events + sizeof e);
    return sizeof e + e.len;
}

void bz_inotify_sleep(int fd, int ms)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    (void)poll(&p, 1, ms);
}
