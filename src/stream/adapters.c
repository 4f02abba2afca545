/*
 * adapters.c - small adapters: counts, limits and tees of writers, and streams without bytes.
 *
 * The tee of writers has two sides that can fail one after the other, as the tee of readers (stream.c) has. A write must
 * take a byte for both sides or for none. So the bytes go to the room first, and from there to both sides. If a side
 * fails, the room keeps what it lacks, the write has taken the bytes, and the next call reports the failure if it stays.
 *
 * I1  room[0..end) are the bytes of the tee that were taken; side i has room[0..at[i]) of them.
 */
#include <errno.h>
#include <string.h>

#include "blitz/stream.h"
#include "stream/shortcuts.h"

/* ---- counts ---- */

static int64_t counted_read(void *ctx, void *data, size_t bytes, blitz_deadline until)
{
    blitz_counted *c = ctx;
    int64_t n = blitz_reader_read(c->from, data, bytes, until);
    c->bytes += n > 0 ? (uint64_t)n : 0;
    return n;
}

static int counted_fd(void *ctx, blitz_fd *out)
{
    blitz_counted *c = ctx;
    if (c->from.ops == NULL || c->from.ops->fd == NULL)
        return -EOPNOTSUPP;
    return c->from.ops->fd(c->from.ctx, out);
}

static uint64_t counted_fd_most(void *ctx)
{
    blitz_counted *c = ctx;
    return c->from.ops->fd_most != NULL ? c->from.ops->fd_most(c->from.ctx) : UINT64_MAX;
}

static void counted_fd_took(void *ctx, uint64_t bytes)
{
    blitz_counted *c = ctx;
    c->bytes += bytes;
    if (c->from.ops->fd_took != NULL)
        c->from.ops->fd_took(c->from.ctx, bytes);
}

blitz_reader blitz_counted_reader(blitz_counted *c)
{
    static const blitz_reader_ops ops = {.name = "counted",
                                         .read = counted_read,
                                         .fd = counted_fd,
                                         .fd_most = counted_fd_most,
                                         .fd_took = counted_fd_took};
    return (blitz_reader){&ops, c};
}

static int64_t counted_write(void *ctx, const void *data, size_t bytes, blitz_deadline until)
{
    blitz_counted_out *c = ctx;
    int64_t n = blitz_writer_write(c->to, data, bytes, until);
    c->bytes += n > 0 ? (uint64_t)n : 0;
    return n;
}

static int counted_end(void *ctx, blitz_deadline until)
{
    return blitz_writer_end(((blitz_counted_out *)ctx)->to, until);
}

blitz_writer blitz_counted_writer(blitz_counted_out *c)
{
    static const blitz_writer_ops ops = {
        .name = "counted", .write = counted_write, .end = counted_end};
    return (blitz_writer){&ops, c};
}

/* ---- nothing ---- */

static int64_t null_read(void *ctx, void *data, size_t bytes, blitz_deadline until)
{
    (void)ctx;
    (void)data;
    (void)bytes;
    (void)until;
    return 0;
}

static int64_t null_write(void *ctx, const void *data, size_t bytes, blitz_deadline until)
{
    (void)ctx;
    (void)data;
    (void)until;
    return bytes < INT64_MAX ? (int64_t)bytes : INT64_MAX;
}

blitz_reader blitz_null_reader(void)
{
    static const blitz_reader_ops ops = {.name = "null", .read = null_read};
    return (blitz_reader){&ops, NULL};
}

blitz_writer blitz_null_writer(void)
{
    static const blitz_writer_ops ops = {.name = "null", .write = null_write};
    return (blitz_writer){&ops, NULL};
}

/* ---- limits ---- */

static int64_t limited_write(void *ctx, const void *data, size_t bytes, blitz_deadline until)
{
    blitz_limited_out *l = ctx;
    size_t most = l->left < bytes ? (size_t)l->left : bytes;
    int64_t n = most > 0 ? blitz_writer_write(l->to, data, most, until) : -ENOSPC;
    l->left -= n > 0 ? (uint64_t)n : 0;
    return n;
}

static int limited_end(void *ctx, blitz_deadline until)
{
    return blitz_writer_end(((blitz_limited_out *)ctx)->to, until);
}

blitz_writer blitz_limited_writer(blitz_limited_out *l)
{
    static const blitz_writer_ops ops = {
        .name = "limited", .write = limited_write, .end = limited_end};
    return (blitz_writer){&ops, l};
}

/* ---- tees ---- */

/* Write the rest of the room to both sides. Returns 0, or the first error: the sides may differ in progress. */
static int tee_flush(blitz_tee_out *t, blitz_deadline until)
{
    int first = 0;
    for (unsigned i = 0; i < 2; i++) {
        size_t done = 0;
        int err =
            blitz_writer_write_all(t->to[i], t->room + t->at[i], t->end - t->at[i], &done, until);
        t->at[i] += done; /* I1 */
        first = first != 0 ? first : err;
    }
    if (t->at[0] == t->end && t->at[1] == t->end)
        t->at[0] = t->at[1] = t->end = 0;
    return first;
}

static int64_t tee_write(void *ctx, const void *data, size_t bytes, blitz_deadline until)
{
    blitz_tee_out *t = ctx;
    if (t->room == NULL || t->room_bytes == 0)
        return -EINVAL;
    int err = t->end > 0 ? tee_flush(t, until) : 0;
    if (err != 0)
        return err;
    size_t n = bytes < t->room_bytes ? bytes : t->room_bytes;
    memcpy(t->room, data, n);
    t->end = n;
    (void)tee_flush(
        t, until); /* the bytes are taken: a failure that stays is reported by the next call */
    return (int64_t)n;
}

static int tee_end(void *ctx, blitz_deadline until)
{
    blitz_tee_out *t = ctx;
    int err = t->end > 0 ? tee_flush(t, until) : 0;
    for (unsigned i = 0; i < 2 && err == 0; i++)
        err = blitz_writer_end(t->to[i], until);
    return err;
}

blitz_writer blitz_tee_writer(blitz_tee_out *t)
{
    static const blitz_writer_ops ops = {.name = "tee", .write = tee_write, .end = tee_end};
    return (blitz_writer){&ops, t};
}
