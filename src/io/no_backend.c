/*
 * no_backend.c - the place of the I/O backends on Windows, where there is none yet.
 *
 * A runtime sleeps in the null backend, and its io is "none": files and sockets are refused with -EOPNOTSUPP before they get
 * here. So the calls below are never made; they are here for the linker.
 */
#include <errno.h>
#include <stddef.h>

#include "io/attempt.h"
#include "io/poll.h"

int (*bz_io_fault)(const char *call);

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

/* ---- calls ---- */

static int refuse_close(blitz_fd fd)
{
    (void)fd;
    return -1;
}

const struct bz_sys bz_sys_system = {.close = refuse_close};
const struct bz_sys *bz_sys = &bz_sys_system;

int64_t bz_sys_recv(blitz_fd fd, void *data, size_t bytes, int flags)
{
    (void)fd;
    (void)data;
    (void)bytes;
    (void)flags;
    return -EOPNOTSUPP;
}

int64_t bz_sys_send(blitz_fd fd, const void *data, size_t bytes, int flags)
{
    (void)fd;
    (void)data;
    (void)bytes;
    (void)flags;
    return -EOPNOTSUPP;
}

int64_t bz_attempt(struct bz_op *op)
{
    (void)op;
    return -EOPNOTSUPP;
}

int64_t bz_attempt_if_ready(struct bz_op *op)
{
    (void)op;
    return -EOPNOTSUPP;
}

bool bz_attempt_left_more_in_full(const struct bz_op *op, int64_t result)
{
    (void)op;
    (void)result;
    return true;
}

void bz_let_block(blitz_fd fd)
{
    (void)fd;
}
