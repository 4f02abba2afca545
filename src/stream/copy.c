/*
 * copy.c - from a reader to a writer, until the end.
 *
 * Through a buffer, or past it: a writer that can take a file as it is says so (take_file), and a reader
 * that is a file at a certain place says which. Whether it can is asked with the first piece; once bytes
 * have gone through the buffer they all do.
 *
 * Both ways is two tasks in a scope, so that the first error ends both, and a cancel, too.
 */
#include <errno.h>

#include "base/alloc.h"
#include "blitz/scope.h"
#include "blitz/stream.h"

enum { ROOM = 64 << 10, PIECE = 1 << 20 };

/* Returns 0 at the end; -ENOTSUP: not this way, nothing has been copied. */
static int copy_file(blitz_reader from, blitz_writer to, blitz_deadline until, uint64_t *copied)
{
    int fd = from.ops->fd != NULL ? from.ops->fd(from.ctx) : -1;
    if (fd < 0 || to.ops->take_file == NULL)
        return -ENOTSUP;
    for (;;) {
        int64_t n = to.ops->take_file(to.ctx, fd, PIECE, until);
        if (n <= 0)
            return (int)n;
        *copied += (uint64_t)n;
    }
}

static int copy_bytes(blitz_reader from, blitz_writer to, blitz_deadline until, uint64_t *copied)
{
    char *room = bz_alloc(&bz_allocator_libc, ROOM, 0);
    int err = room != NULL ? 0 : -ENOMEM;
    while (err == 0) {
        size_t done = 0;
        int64_t n = blitz_reader_read(from, room, ROOM, until);
        if (n <= 0) {
            err = (int)n;
            break;
        }
        err = blitz_writer_write_all(to, room, (size_t)n, until, &done);
        *copied += done;
    }
    if (room != NULL)
        bz_free(&bz_allocator_libc, room, ROOM);
    return err;
}

int blitz_stream_copy(blitz_reader from, blitz_writer to, blitz_deadline until, uint64_t *copied)
{
    uint64_t count = 0;
    if (from.ops == NULL || to.ops == NULL)
        return -EINVAL;
    int err = copy_file(from, to, until, &count);
    if (err == -ENOTSUP && count == 0)
        err = copy_bytes(from, to, until, &count);
    if (copied != NULL)
        *copied = count;
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
