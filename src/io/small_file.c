/*
 * small_file.c - configuration files: one stat, or an open and a few reads.
 *
 * A stamp is what stat says about a file: device, inode, size and time of the last change. A program that writes the
 * file in place changes size or time; one that renames a new file to the path changes the inode.
 */
#define _GNU_SOURCE 1
#include "io/small_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/attempt.h"

static void stamp_of(int err, const struct stat *s, struct bz_file_stamp *out)
{
    *out = (struct bz_file_stamp){.error = err};
    if (err != 0)
        return;
    out->device = s->st_dev;
    out->inode = s->st_ino;
    out->bytes = (uint64_t)s->st_size;
    out->changed_s = s->st_mtim.tv_sec;
    out->changed_ns = s->st_mtim.tv_nsec;
}

void bz_small_file_stamp(const char *path, struct bz_file_stamp *out)
{
    struct stat s = {0};
    int fault = bz_io_fault_of("stat");
    stamp_of(fault != 0 ? -fault : stat(path, &s) == 0 ? 0 : -errno, &s, out);
}

bool bz_file_stamp_is(const struct bz_file_stamp *a, const struct bz_file_stamp *b)
{
    return a->device == b->device && a->inode == b->inode && a->bytes == b->bytes &&
           a->changed_s == b->changed_s && a->changed_ns == b->changed_ns && a->error == b->error;
}

/* Read up to `room` bytes. Returns their number, or a negative errno. */
static int64_t read_all(int fd, char *data, size_t room)
{
    size_t n = 0;
    while (n < room) {
        int fault = bz_io_fault_of("read");
        ssize_t got = fault != 0 ? -1 : read(fd, data + n, room - n);
        int err = fault != 0 ? fault : errno;
        if (got == 0)
            break;
        if (got < 0 && err != EINTR)
            return -err;
        n += got > 0 ? (size_t)got : 0;
    }
    return (int64_t)n;
}

/* Read an open file. A file of /proc says that it has no bytes: read up to `max` of them. */
static int read_open(int fd, size_t max, const blitz_allocator *alloc, char **data, size_t *bytes)
{
    char *all = bz_alloc(alloc, max + 1, 1);
    if (all == NULL)
        return -ENOMEM;
    int64_t n = read_all(fd, all, max + 1);
    char *fit = n >= 0 && (size_t)n <= max ? bz_alloc(alloc, (size_t)n + 1, 1) : NULL;
    if (fit != NULL) {
        __builtin_memcpy(fit, all, (size_t)n);
        fit[n] = '\0';
        *data = fit;
        *bytes = (size_t)n;
    }
    bz_free(alloc, all, max + 1);
    return n < 0 ? (int)n : (size_t)n > max ? -EOVERFLOW : fit == NULL ? -ENOMEM : 0;
}

int bz_small_file_read(const char *path, size_t max, const blitz_allocator *alloc, char **data,
                       size_t *bytes, struct bz_file_stamp *stamp)
{
    struct stat s = {0};
    int fault = bz_io_fault_of("open");
    int fd = fault != 0 ? -1 : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    int err = fd < 0 ? -(fault != 0 ? fault : errno) : fstat(fd, &s) == 0 ? 0 : -errno;
    stamp_of(err, &s, stamp);
    if (err == 0 && s.st_size > 0 && (uint64_t)s.st_size > max)
        err = -EOVERFLOW;
    if (err == 0)
        err = read_open(fd,
                        s.st_size > 0 ? (size_t)s.st_size + 1
                        : max < 4096  ? max
                                      : 4096,
                        alloc, data, bytes);
    if (fd >= 0)
        (void)close(fd);
    return err;
}
