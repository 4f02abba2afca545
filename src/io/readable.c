/*
 * readable.c - a descriptor that is readable or not, by an eventfd.
 *
 * A write of 1 makes it readable and a read takes that away. Neither waits: the count is 0 or 1. A pipe would need two
 * descriptors.
 */
#include "io/readable.h"

#include <errno.h>
#include <stdint.h>
#include <sys/eventfd.h>

#include "io/sys.h"

int bz_readable_open(void)
{
    int fd = bz_sys->eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return fd >= 0 ? fd : -errno;
}

void bz_readable_close(int fd)
{
    (void)bz_sys->close(fd);
}

bool bz_readable_set(int fd, bool is_readable)
{
    uint64_t count = 1;
    ssize_t done = is_readable ? bz_sys->write(fd, &count, sizeof count)
                               : bz_sys->read(fd, &count, sizeof count);
    return done == (ssize_t)sizeof count;
}
