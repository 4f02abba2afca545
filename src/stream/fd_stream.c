/*
 * fd_stream.c - descriptors as streams: files, pipes, terminals.
 *
 * A regular file is always ready but may be slow: it is read and written on a pool thread. Other
 * descriptors are tried first, and waited for on EAGAIN. So they must be non-blocking. A terminal
 * that other processes have open, too, then becomes non-blocking for them as well; the header
 * documents this.
 */
#include <errno.h>

#include "blitz/blocking.h"
#include "blitz/fd.h"
#include "blitz/stream.h"
#include "io/raw.h"

int blitz_fd_stream_init(blitz_fd_stream *s, blitz_fd fd)
{
    s->fd = fd;
    return bz_raw_take_up(fd, &s->is_disk);
}

/* ---- on the pool ---- */

struct call {
    blitz_fd fd;
    void *in;        /* NULL: a write */
    const void *out; /* for a write */
    size_t bytes;
    int64_t result;
};

static int make_call(void *arg)
{
    struct call *c = arg;
    c->result =
        c->in != NULL ? bz_raw_read(c->fd, c->in, c->bytes) : bz_raw_write(c->fd, c->out, c->bytes);
    return 0;
}

/* The deadline is checked before the call: a started call is waited for. */
static int64_t on_pool(struct call *c, blitz_deadline until)
{
    if (until != BLITZ_FOREVER && blitz_now() >= until)
        return -ETIMEDOUT;
    (void)!blitz_blocking(make_call, c); /* the future has a function */
    return c->result;
}

/* ---- with waiting ---- */

static int64_t when_ready(struct call *c, unsigned event, blitz_deadline until)
{
    for (;;) {
        make_call(c);
        if (c->result != -EAGAIN)
            return c->result;
        int err = blitz_fd_wait(c->fd, event, until);
        if (err < 0)
            return err;
    }
}

static int64_t fd_read(void *ctx, void *data, size_t bytes, blitz_deadline until)
{
    blitz_fd_stream *s = ctx;
    struct call c = {.fd = s->fd, .in = data, .bytes = bytes};
    return s->is_disk ? on_pool(&c, until) : when_ready(&c, BLITZ_FD_READ, until);
}

static int64_t fd_write(void *ctx, const void *data, size_t bytes, blitz_deadline until)
{
    blitz_fd_stream *s = ctx;
    struct call c = {.fd = s->fd, .out = data, .bytes = bytes};
    return s->is_disk ? on_pool(&c, until) : when_ready(&c, BLITZ_FD_WRITE, until);
}

static int fd_of(void *ctx, blitz_fd *out)
{
    blitz_fd_stream *s = ctx;
    if (!s->is_disk)
        return -EOPNOTSUPP;
    *out = s->fd;
    return 0;
}

blitz_reader blitz_fd_reader(blitz_fd_stream *s)
{
    static const blitz_reader_ops ops = {.name = "fd", .read = fd_read, .fd = fd_of};
    return (blitz_reader){&ops, s};
}

blitz_writer blitz_fd_writer(blitz_fd_stream *s)
{
    static const blitz_writer_ops ops = {.name = "fd", .write = fd_write};
    return (blitz_writer){&ops, s};
}
