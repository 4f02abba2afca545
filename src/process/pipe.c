/*
 * pipe.c - our ends of a child's pipes, as streams.
 *
 * An end is a descriptor that does not block, and a file of the driver to wait for it. A call is tried first; on
 * EAGAIN it waits for readiness with a poll, on every backend: the kernel never has a buffer of the caller. The file
 * is foreign to the driver, which must not make the descriptor blocking.
 *
 * The other end of a terminal that its last process has closed gives EIO: that is the end of the stream.
 */
#include <errno.h>

#include "io/raw.h"
#include "io/sock.h"
#include "process/process.h"

int bz_pipe_end_open(struct bz_pipe_end *e, int target, int fd, bool is_pty)
{
    int err = bz_io_open(fd, BZ_FILE_FOREIGN, &e->file);
    if (err != 0)
        return err;
    e->target = target;
    e->fd = fd;
    e->is_pty = is_pty;
    return 0;
}

void bz_pipe_end_close(struct bz_pipe_end *e)
{
    if (e->fd < 0)
        return;
    bz_io_close(e->file);
    bz_raw_close(e->fd);
    e->fd = -1;
}

struct bz_pipe_end *bz_process_end(blitz_process *p, int target)
{
    for (unsigned i = 0; i < p->end_count; i++)
        if (p->ends[i].target == target)
            return &p->ends[i];
    return NULL;
}

int64_t bz_pipe_end_read(struct bz_pipe_end *e, void *data, size_t bytes)
{
    int64_t n = bz_raw_read(e->fd, data, bytes);
    return n == -EIO && e->is_pty ? 0 : n;
}

/* Returns 0 when a try is worthwhile. */
static int wait_for(struct bz_pipe_end *e, bool is_read, blitz_deadline until)
{
    struct bz_op op;
    bz_op_init(&op, e->file, BZ_OP_POLL);
    bz_sock_poll(&op, is_read, !is_read, false);
    int64_t events = bz_io_run(&op, is_read ? "pipe readable" : "pipe writable", until);
    return events < 0 ? (int)events : 0;
}

static int64_t end_read(void *ctx, void *data, size_t bytes, blitz_deadline until)
{
    struct bz_pipe_end *e = ctx;
    for (;;) {
        if (e->fd < 0)
            return -EBADF;
        int64_t n = bz_pipe_end_read(e, data, bytes);
        if (n != -EAGAIN)
            return n;
        int err = wait_for(e, true, until);
        if (err != 0)
            return err;
    }
}

static int64_t end_write(void *ctx, const void *data, size_t bytes, blitz_deadline until)
{
    struct bz_pipe_end *e = ctx;
    for (;;) {
        if (e->fd < 0)
            return -EBADF;
        int64_t n = bz_raw_write(e->fd, data, bytes);
        if (n != -EAGAIN)
            return n;
        int err = wait_for(e, false, until);
        if (err != 0)
            return err;
    }
}

static int end_end(void *ctx, blitz_deadline until)
{
    (void)until;
    bz_pipe_end_close(ctx);
    return 0;
}

/* For a target without a pipe. */
static struct bz_pipe_end no_end = {.target = -1, .fd = -1};

static struct bz_pipe_end *end_or_none(blitz_process *p, int target)
{
    struct bz_pipe_end *e = bz_process_end(p, target);
    return e != NULL ? e : &no_end;
}

blitz_reader blitz_process_reader(blitz_process *p, int target)
{
    static const blitz_reader_ops ops = {.name = "process", .read = end_read};
    return (blitz_reader){&ops, end_or_none(p, target)};
}

blitz_writer blitz_process_writer(blitz_process *p, int target)
{
    static const blitz_writer_ops ops = {.name = "process", .write = end_write, .end = end_end};
    return (blitz_writer){&ops, end_or_none(p, target)};
}

int blitz_process_fd(blitz_process *p, int target, blitz_fd *out)
{
    struct bz_pipe_end *e = end_or_none(p, target);
    if (e->fd < 0)
        return -EBADF;
    *out = e->fd;
    return 0;
}

void blitz_process_close(blitz_process *p, int target)
{
    bz_pipe_end_close(end_or_none(p, target));
}

int blitz_process_resize(blitz_process *p, unsigned rows, unsigned columns)
{
    struct bz_pipe_end *e = end_or_none(p, 0);
    return e->fd < 0 || !e->is_pty ? -EBADF : bz_pty_resize(e->fd, rows, columns);
}
