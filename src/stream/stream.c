/*
 * stream.c - the simple streams: exact reads and full writes, connections, memory, limits and tees.
 *
 * A reader returns at least one byte, so an exact read is a loop; everything here is small. Only
 * the tee needs an explanation: it has two sides that can fail one after the other. A byte is read
 * once. If it cannot be written to the second side, it must be neither returned nor lost. So it
 * stays in the tee's room until both sides have it.
 */
#include "blitz/stream.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "net/socket.h"
#include "stream/shortcuts.h"

/* ---- using them ---- */

int64_t blitz_reader_read(blitz_reader r, void *data, size_t bytes, blitz_deadline until)
{
    if (r.ops == NULL || (data == NULL && bytes > 0))
        return -EINVAL;
    return bytes > 0 ? r.ops->read(r.ctx, data, bytes, until) : 0;
}

int64_t blitz_writer_write(blitz_writer w, const void *data, size_t bytes, blitz_deadline until)
{
    if (w.ops == NULL || (data == NULL && bytes > 0))
        return -EINVAL;
    return bytes > 0 ? w.ops->write(w.ctx, data, bytes, until) : 0;
}

int blitz_reader_read_exact(blitz_reader r, void *data, size_t bytes, size_t *done,
                            blitz_deadline until)
{
    size_t have = 0;
    int64_t n = r.ops != NULL ? 0 : -EINVAL;
    while (n >= 0 && have < bytes) {
        n = blitz_reader_read(r, (char *)data + have, bytes - have, until);
        if (n == 0)
            n = -EPIPE;
        else if (n > 0)
            have += (size_t)n;
    }
    if (done != NULL)
        *done = have;
    return n < 0 ? (int)n : 0;
}

int blitz_writer_write_all(blitz_writer w, const void *data, size_t bytes, size_t *done,
                           blitz_deadline until)
{
    size_t have = 0;
    int64_t n = w.ops != NULL ? 0 : -EINVAL;
    while (n >= 0 && have < bytes) {
        n = blitz_writer_write(w, (const char *)data + have, bytes - have, until);
        if (n > 0)
            have += (size_t)n;
    }
    if (done != NULL)
        *done = have;
    return n < 0 ? (int)n : 0;
}

int blitz_writer_end(blitz_writer w, blitz_deadline until)
{
    if (w.ops == NULL)
        return -EINVAL;
    return w.ops->end != NULL ? w.ops->end(w.ctx, until) : 0;
}

/* ---- connections ---- */

static int64_t tcp_read(void *ctx, void *data, size_t bytes, blitz_deadline until)
{
    return blitz_tcp_read(ctx, data, bytes, until);
}

static int64_t tcp_write(void *ctx, const void *data, size_t bytes, blitz_deadline until)
{
    return blitz_tcp_write(ctx, data, bytes, until);
}

static int tcp_end(void *ctx, blitz_deadline until)
{
    (void)until;
    return blitz_tcp_shutdown(ctx, BLITZ_WRITABLE);
}

/* Copy between the connection and another descriptor without the memory of the process. */
static int64_t tcp_move(blitz_tcp *t, enum bz_op_code code, unsigned may, blitz_fd fd, size_t bytes,
                        blitz_deadline until)
{
    struct bz_op op;
    if (!bz_socket_is(&t->s, may))
        return -EBADF;
    if (bz_io_completes(t->s.file))
        return -EOPNOTSUPP; /* the descriptor is blocking, so the call would block */
    bz_socket_op(&t->s, &op, code);
    op.from.fd = fd;
    op.from.bytes = bytes;
    return bz_io_run(&op, code == BZ_OP_SPLICE_IN ? "tcp read" : "tcp write", until);
}

static int64_t tcp_take_file(void *ctx, blitz_fd fd, size_t bytes, blitz_deadline until)
{
    return tcp_move(ctx, BZ_OP_SENDFILE, BZ_SOCKET_WRITES, fd, bytes, until);
}

static int64_t tcp_to_pipe(void *ctx, blitz_fd pipe, size_t bytes, blitz_deadline until)
{
    return tcp_move(ctx, BZ_OP_SPLICE_IN, BZ_SOCKET_READS, pipe, bytes, until);
}

static int64_t tcp_from_pipe(void *ctx, blitz_fd pipe, size_t bytes, blitz_deadline until)
{
    return tcp_move(ctx, BZ_OP_SPLICE_OUT, BZ_SOCKET_WRITES, pipe, bytes, until);
}

static const struct blitz_shortcuts_ tcp_shortcuts = {
    .to_pipe = tcp_to_pipe, .from_pipe = tcp_from_pipe, .take_file = tcp_take_file};

blitz_reader blitz_tcp_reader(blitz_tcp *t)
{
    static const blitz_reader_ops ops = {.name = "tcp", .read = tcp_read, .inside = &tcp_shortcuts};
    return (blitz_reader){&ops, t};
}

blitz_writer blitz_tcp_writer(blitz_tcp *t)
{
    static const blitz_writer_ops ops = {
        .name = "tcp", .write = tcp_write, .end = tcp_end, .inside = &tcp_shortcuts};
    return (blitz_writer){&ops, t};
}

blitz_stream blitz_tcp_stream(blitz_tcp *t)
{
    return (blitz_stream){blitz_tcp_reader(t), blitz_tcp_writer(t)};
}

/* ---- memory ---- */

static int64_t memory_read(void *ctx, void *data, size_t bytes, blitz_deadline until)
{
    blitz_memory *m = ctx;
    size_t n = m->bytes - m->at < bytes ? m->bytes - m->at : bytes;
    (void)until;
    if (n > 0)
        memcpy(data, m->data + m->at, n);
    m->at += n;
    return (int64_t)n;
}

static bool grow(blitz_memory *m, size_t bytes)
{
    size_t room = m->room < 64 ? 64 : m->room;
    while (room - m->bytes < bytes && room <= SIZE_MAX / 2)
        room *= 2;
    bool fits = room - m->bytes >= bytes;
    char *data = fits ? realloc(m->data, room) : NULL; /* lint: allow allocator: the caller frees */
    if (data == NULL)
        return false;
    m->data = data;
    m->room = room;
    return true;
}

static int64_t memory_write(void *ctx, const void *data, size_t bytes, blitz_deadline until)
{
    blitz_memory *m = ctx;
    size_t n = m->room - m->bytes;
    (void)until;
    if (m->is_growing && n < bytes) {
        if (!grow(m, bytes))
            return -ENOMEM;
        n = bytes;
    }
    if (n == 0)
        return -ENOSPC;
    n = n < bytes ? n : bytes;
    memcpy(m->data + m->bytes, data, n);
    m->bytes += n;
    return (int64_t)n;
}

blitz_reader blitz_memory_reader(blitz_memory *m)
{
    static const blitz_reader_ops ops = {.name = "memory", .read = memory_read};
    return (blitz_reader){&ops, m};
}

blitz_writer blitz_memory_writer(blitz_memory *m)
{
    static const blitz_writer_ops ops = {.name = "memory", .write = memory_write};
    return (blitz_writer){&ops, m};
}

/* ---- limits ---- */

static int64_t limited_read(void *ctx, void *data, size_t bytes, blitz_deadline until)
{
    blitz_limited *l = ctx;
    size_t most = l->left < bytes ? (size_t)l->left : bytes;
    int64_t n = blitz_reader_read(l->from, data, most, until);
    if (n > 0)
        l->left -= (uint64_t)n;
    return n;
}

static int limited_fd(void *ctx, blitz_fd *out)
{
    blitz_limited *l = ctx;
    if (l->from.ops == NULL || l->from.ops->fd == NULL)
        return -EOPNOTSUPP;
    return l->from.ops->fd(l->from.ctx, out);
}

static uint64_t limited_fd_most(void *ctx)
{
    blitz_limited *l = ctx;
    uint64_t most = l->from.ops->fd_most != NULL ? l->from.ops->fd_most(l->from.ctx) : UINT64_MAX;
    return most < l->left ? most : l->left;
}

static void limited_fd_took(void *ctx, uint64_t bytes)
{
    blitz_limited *l = ctx;
    l->left -= bytes;
    if (l->from.ops->fd_took != NULL)
        l->from.ops->fd_took(l->from.ctx, bytes);
}

static int64_t limited_to_pipe(void *ctx, blitz_fd pipe, size_t bytes, blitz_deadline until)
{
    blitz_limited *l = ctx;
    size_t most = l->left < bytes ? (size_t)l->left : bytes;
    if (l->from.ops == NULL || !bz_reader_has_to_pipe(l->from))
        return -EOPNOTSUPP;
    int64_t n = most > 0 ? l->from.ops->inside->to_pipe(l->from.ctx, pipe, most, until) : 0;
    if (n > 0)
        l->left -= (uint64_t)n;
    return n;
}

blitz_reader blitz_limited_reader(blitz_limited *l)
{
    static const struct blitz_shortcuts_ shortcuts = {.to_pipe = limited_to_pipe};
    static const blitz_reader_ops ops = {.name = "limited",
                                         .read = limited_read,
                                         .fd = limited_fd,
                                         .inside = &shortcuts,
                                         .fd_most = limited_fd_most,
                                         .fd_took = limited_fd_took};
    return (blitz_reader){&ops, l};
}

/* ---- tees ---- */

/* Write room[at..] to the second side. */
static int tee_write(blitz_tee *t, blitz_deadline until)
{
    size_t done = 0;
    int err = blitz_writer_write_all(t->to, t->room + t->at, t->end - t->at, &done, until);
    t->at += done;
    return err;
}

/* Both sides have room[0..at); the reader gets bytes from the front. */
static int64_t tee_read(void *ctx, void *data, size_t bytes, blitz_deadline until)
{
    blitz_tee *t = ctx;
    if (t->room == NULL || t->room_bytes == 0)
        return -EINVAL;
    if (t->end == 0) {
        int64_t n = blitz_reader_read(t->from, t->room, t->room_bytes, until);
        if (n <= 0)
            return n;
        t->end = (size_t)n;
        t->at = 0;
    }
    int err = t->at < t->end ? tee_write(t, until) : 0;
    if (err != 0)
        return err; /* the bytes are kept for the next read */
    size_t n = t->end < bytes ? t->end : bytes;
    memcpy(data, t->room, n);
    memmove(t->room, t->room + n, t->end - n);
    t->end -= n;
    t->at = t->end; /* the rest has been written to the second side */
    return (int64_t)n;
}

blitz_reader blitz_tee_reader(blitz_tee *t)
{
    static const blitz_reader_ops ops = {.name = "tee", .read = tee_read};
    return (blitz_reader){&ops, t};
}
