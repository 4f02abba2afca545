/*
 * raw.c - read and write foreign descriptors.
 *
 * Regular files are always ready but may be slow. Other descriptors are made non-blocking. That is
 * a property of the open file description, not of the descriptor: other processes that share it see
 * it, too (documented in blitz/stream.h).
 */
#include "base/error.h"
#include "io/raw.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "io/attempt.h"
#include "io/quiet.h"
#include "io/sys.h"

int bz_raw_take_up(int fd, bool *is_disk)
{
    struct stat st;
    int flags = bz_sys->fcntl(fd, F_GETFL, 0);
    if (flags < 0 || fstat(fd, &st) != 0)
        return -EBADF;
    *is_disk = S_ISREG(st.st_mode) || S_ISBLK(st.st_mode);
    if (!*is_disk && !(flags & O_NONBLOCK))
        (void)bz_sys->fcntl(fd, F_SETFL, flags | O_NONBLOCK);
    return 0;
}

int64_t bz_raw_read(int fd, void *data, size_t bytes)
{
    ssize_t n;
    do {
        n = bz_sys->read(fd, data, bytes);
    } while (n < 0 && errno == EINTR);
    return n >= 0 ? n : -bz_error_of(errno);
}

int64_t bz_raw_write(int fd, const void *data, size_t bytes)
{
    struct bz_quiet quiet;
    ssize_t n;
    bz_quiet_begin(&quiet);
    do {
        n = bz_sys->write(fd, data, bytes);
    } while (n < 0 && errno == EINTR);
    bz_quiet_end(&quiet, n == (ssize_t)bytes);
    return n >= 0 ? n : -bz_error_of(errno);
}

int bz_raw_pipe(int fd[2])
{
    int fault = bz_io_fault_of("pipe2");
    if (fault != 0)
        return -fault;
    return bz_sys->pipe2(fd, O_CLOEXEC | O_NONBLOCK) == 0 ? 0 : -errno;
}

void bz_raw_close(int fd)
{
    bz_sys->close(fd);
}
