/*
 * copy.c - from a reader to a writer, until the end.
 *
 * Through a buffer, or past it. A writer that can take a file as it is says so (take_file), and a reader
 * that is a file at a certain place says which; whether it works is asked with the first piece.
 *
 * From connection to connection there is a way past the buffer, too: through a pipe, by splice, which moves
 * pages and copies nothing. On a loopback that is 250 us of CPU a megabyte instead of 305
 * (docs/networking.md); it costs two descriptors and a few calls to begin with. So the first bytes go
 * through the buffer, and a pipe is made when much has gone over and large pieces come. Where it is refused
 * (another kind of socket, no descriptors, a keeper whose descriptors block) the copy goes on through the
 * buffer: nothing is lost, what was in the pipe is taken out of it. A piece is no larger than the buffer,
 * so as much is lost by a failed write as without a pipe.
 *
 * Both ways is two tasks in a scope, so that the first error ends both, and a cancel, too.
 */
#include <errno.h>

#include "base/alloc.h"
#include "blitz/scope.h"
#include "blitz/stream.h"
#include "io/raw.h"

enum { ROOM = 64 << 10, PIECE = 1 << 20 };

/* When a pipe is worth its two descriptors: so much went over, and so much came at once. */
enum { LONG = 256 << 10, LARGE = 16 << 10 };

struct copying {
    blitz_reader from;
    blitz_writer to;
    blitz_deadline until;
    uint64_t copied;
    char *room;
};

/* Returns 0 at the end; -ENOTSUP: not this way, nothing has been copied. */
static int copy_file(struct copying *c)
{
    int fd = c->from.ops->fd != NULL ? c->from.ops->fd(c->from.ctx) : -1;
    if (fd < 0 || c->to.ops->take_file == NULL)
        return -ENOTSUP;
    for (;;) {
        int64_t n = c->to.ops->take_file(c->to.ctx, fd, PIECE, c->until);
        if (n <= 0)
            return (int)n;
        c->copied += (uint64_t)n;
    }
}

static int write_all(struct copying *c, size_t bytes)
{
    size_t done = 0;
    int err = blitz_writer_write_all(c->to, c->room, bytes, c->until, &done);
    c->copied += done;
    return err;
}

/* ---- through a pipe ---- */

static bool is_refused(int64_t n)
{
    return n == -ENOTSUP || n == -EINVAL;
}

/* What is in the pipe cannot go over as it is: through the buffer, then. */
static int empty_pipe(struct copying *c, int pipe, size_t bytes)
{
    int err = 0;
    while (bytes > 0 && err == 0) {
        int64_t n = bz_raw_read(pipe, c->room, bytes < ROOM ? bytes : ROOM);
        err = n > 0 ? write_all(c, (size_t)n) : n == 0 ? -EPIPE : (int)n;
        bytes -= n > 0 ? (size_t)n : 0;
    }
    return err;
}

/* So much is in the pipe. 0; -ENOTSUP: it went over, but no more will this way. */
static int pass_on(struct copying *c, int pipe, size_t bytes)
{
    while (bytes > 0) {
        int64_t n = c->to.ops->from_pipe(c->to.ctx, pipe, bytes, c->until);
        if (is_refused(n)) {
            int err = empty_pipe(c, pipe, bytes);
            return err != 0 ? err : -ENOTSUP;
        }
        if (n < 0)
            return (int)n;
        bytes -= (size_t)n;
        c->copied += (uint64_t)n;
    }
    return 0;
}

/* 0 at the end; -ENOTSUP: the rest goes another way. */
static int copy_by_pipe(struct copying *c)
{
    int pipe[2], err = 0;
    bool is_over = false;
    if (c->from.ops->to_pipe == NULL || c->to.ops->from_pipe == NULL || bz_raw_pipe(pipe) != 0)
        return -ENOTSUP;
    while (err == 0 && !is_over) {
        int64_t n = c->from.ops->to_pipe(c->from.ctx, pipe[1], ROOM, c->until);
        is_over = n == 0;
        err = n > 0 ? pass_on(c, pipe[0], (size_t)n) : is_refused(n) ? -ENOTSUP : (int)n;
    }
    bz_raw_close(pipe[0]);
    bz_raw_close(pipe[1]);
    return err;
}

/* ---- through a buffer ---- */

static int copy_bytes(struct copying *c)
{
    bool may_pipe = true;
    int64_t n;
    while ((n = blitz_reader_read(c->from, c->room, ROOM, c->until)) > 0) {
        int err = write_all(c, (size_t)n);
        if (err != 0)
            return err;
        if (!may_pipe || n < LARGE || c->copied < LONG)
            continue;
        err = copy_by_pipe(c);
        if (err != -ENOTSUP)
            return err;
        may_pipe = false;
    }
    return (int)n;
}

int blitz_stream_copy(blitz_reader from, blitz_writer to, blitz_deadline until, uint64_t *copied)
{
    struct copying c = {.from = from, .to = to, .until = until};
    if (from.ops == NULL || to.ops == NULL)
        return -EINVAL;
    int err = copy_file(&c);
    if (err == -ENOTSUP && c.copied == 0) {
        c.room = bz_alloc(&bz_allocator_libc, ROOM, 0);
        err = c.room != NULL ? copy_bytes(&c) : -ENOMEM;
        if (c.room != NULL)
            bz_free(&bz_allocator_libc, c.room, ROOM);
    }
    if (copied != NULL)
        *copied = c.copied;
    return err;
}

/* ---- both ways ---- */

struct one_way {
    blitz_reader from;
    blitz_writer to;
    blitz_deadline until;
    uint64_t copied;
};

static int copy_way(void *arg)
{
    struct one_way *w = arg;
    int err = blitz_stream_copy(w->from, w->to, w->until, &w->copied);
    if (err != 0)
        return err;
    err = blitz_writer_end(w->to, w->until);
    return err == -ENOTCONN || err == -EPIPE ? 0 : err; /* it is gone already */
}

int blitz_stream_copy_both(blitz_stream a, blitz_stream b, blitz_deadline until, uint64_t *to_b,
                           uint64_t *to_a)
{
    struct one_way ways[2] = {{a.in, b.out, until, 0}, {b.in, a.out, until, 0}};
    blitz_scope scope;
    int err = blitz_scope_open(&scope, BLITZ_FOREVER, NULL);
    if (err != 0)
        return err;
    for (int i = 0; i < 2 && err == 0; i++)
        err = blitz_scope_spawn(&scope, copy_way, &ways[i], NULL);
    if (err != 0)
        blitz_scope_cancel(&scope);
    int closed = blitz_scope_close(&scope);
    if (to_b != NULL)
        *to_b = ways[0].copied;
    if (to_a != NULL)
        *to_a = ways[1].copied;
    return err != 0 ? err : closed;
}
