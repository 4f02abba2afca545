/*
 * windows_absent.c - what Windows does not have, and what blitz does not have there yet, of src/io.
 *
 *   backends        epoll, poll and rings: iocp.c is the only one
 *   descriptors     files, pipes and terminals as streams (raw.h), a descriptor that other poll loops wait for (readable.h)
 *   rights          descriptors beside the bytes of a Unix socket
 *   small files     the resolver's: the system's own resolver is asked
 */
#include <errno.h>
#include <stddef.h>

#include "io/poll.h"
#include "io/raw.h"
#include "io/readable.h"
#include "io/rights.h"
#include "io/small_file.h"

bool bz_poll_epoll_is_there(void)
{
    return false;
}

void bz_poll_epoll_init(struct bz_poll *poll, const struct bz_os *os, struct bz_files *files)
{
    (void)files;
    bz_poll_null_init(poll, os);
}

bool bz_poll_posix_is_there(void)
{
    return false;
}

void bz_poll_posix_init(struct bz_poll *poll, const struct bz_os *os, struct bz_files *files)
{
    (void)files;
    bz_poll_null_init(poll, os);
}

int bz_poll_uring_init(struct bz_poll *poll, const struct bz_os *os, struct bz_files *files)
{
    (void)poll;
    (void)os;
    (void)files;
    return -ENOSYS;
}

/* ---- descriptors ---- */

int bz_raw_take_up(int fd, bool *is_disk)
{
    (void)fd;
    (void)is_disk;
    return -EOPNOTSUPP;
}

int64_t bz_raw_read(int fd, void *data, size_t bytes)
{
    (void)fd;
    (void)data;
    (void)bytes;
    return -EOPNOTSUPP;
}

int64_t bz_raw_write(int fd, const void *data, size_t bytes)
{
    (void)fd;
    (void)data;
    (void)bytes;
    return -EOPNOTSUPP;
}

int bz_raw_pipe(int fd[2])
{
    (void)fd;
    return -EOPNOTSUPP;
}

void bz_raw_close(int fd)
{
    (void)fd;
}

int bz_readable_open(void)
{
    return -EOPNOTSUPP;
}

void bz_readable_close(int fd)
{
    (void)fd;
}

bool bz_readable_set(int fd, bool is_readable)
{
    (void)fd;
    (void)is_readable;
    return false;
}

/* ---- rights ---- */

void bz_rights_attach(struct bz_msg *msg, struct bz_rights *room, const blitz_fd *fds,
                      size_t fd_count)
{
    (void)room;
    (void)fds;
    (void)fd_count;
    msg->beside = NULL;
    msg->beside_bytes = 0;
}

size_t bz_rights_detach(struct bz_msg *msg, blitz_fd *fds, size_t room)
{
    (void)msg;
    (void)fds;
    (void)room;
    return 0;
}

/* ---- small files ---- */

void bz_small_file_stamp(const char *path, struct bz_file_stamp *out)
{
    (void)path;
    *out = (struct bz_file_stamp){.error = -ENOENT};
}

bool bz_file_stamp_is(const struct bz_file_stamp *a, const struct bz_file_stamp *b)
{
    return a->error == b->error;
}

int bz_small_file_read(const char *path, size_t max, const blitz_allocator *alloc, char **data,
                       size_t *bytes, struct bz_file_stamp *stamp)
{
    (void)max;
    (void)alloc;
    (void)data;
    (void)bytes;
    bz_small_file_stamp(path, stamp);
    return -ENOENT;
}
