/*
 * buffered.c - readers and writers with a buffer.
 *
 * A reader's buffer holds the bytes read and not yet consumed: room[at..end). They move to the
 * front only when there is no room behind them, so that peeked bytes stay in place until the next
 * call that reads. A search for the end of a line continues where the last one stopped.
 *
 * A writer's buffer holds the bytes accepted and not yet written. A write larger than the buffer
 * bypasses it, once it is empty. After an error the rest stays in the buffer, so the caller can
 * flush again; the call reports how many of its own bytes were accepted.
 */
#include <errno.h>
#include <string.h>

#include "blitz/stream.h"
#include "stream/shortcuts.h"

/* ---- reading ---- */

int blitz_buffered_reader_init(blitz_buffered_reader *b, blitz_reader from, void *room,
                               size_t bytes)
{
    if (room == NULL || bytes == 0 || from.ops == NULL)
        return -EINVAL;
    *b = (blitz_buffered_reader){.from = from, .room = room, .room_bytes = bytes};
    return 0;
}

static size_t held(const blitz_buffered_reader *b)
{
    return b->end - b->at;
}

/* Read more bytes behind the buffered ones. Returns as a read. */
static int64_t fill(blitz_buffered_reader *b, blitz_deadline until)
{
    if (b->is_over)
        return 0;
    if (b->end == b->room_bytes && b->at > 0) {
        memmove(b->room, b->room + b->at, held(b));
        b->end -= b->at;
        b->at = 0;
    }
    if (b->end == b->room_bytes)
        return -EMSGSIZE;
    int64_t n = blitz_reader_read(b->from, b->room + b->end, b->room_bytes - b->end, until);
    if (n > 0)
        b->end += (size_t)n;
    b->is_over = n == 0;
    return n;
}

int64_t blitz_buffered_peek(blitz_buffered_reader *b, size_t want, const char **data,
                            blitz_deadline until)
{
    while (held(b) < want) {
        int64_t n = fill(b, until);
        if (n < 0)
            return n;
        if (n == 0)
            break;
    }
    *data = b->room + b->at;
    return (int64_t)held(b);
}

void blitz_buffered_take(blitz_buffered_reader *b, size_t bytes)
{
    b->at += bytes < held(b) ? bytes : held(b);
    if (b->at == b->end)
        b->at = b->end = 0;
}

/* The number of bytes up to and including `stop`, searching from `seen`; 0 if not found. */
static size_t find(const blitz_buffered_reader *b, char stop, size_t seen)
{
    const char *from = b->room + b->at + seen;
    const char *at = held(b) > seen ? memchr(from, stop, held(b) - seen) : NULL;
    return at != NULL ? (size_t)(at - (b->room + b->at)) + 1 : 0;
}

/* Advance `at` past the bytes, which stay in place until the next read. */
static int64_t take_first(blitz_buffered_reader *b, size_t bytes, const char **data)
{
    *data = b->room + b->at;
    b->at += bytes;
    return (int64_t)bytes;
}

int64_t blitz_buffered_until(blitz_buffered_reader *b, char stop, size_t max, const char **data,
                             blitz_deadline until)
{
    size_t seen = 0;
    if (b->at == b->end)
        b->at = b->end = 0;
    for (;;) {
        size_t bytes = find(b, stop, seen);
        if (bytes > max || (bytes == 0 && held(b) >= max))
            return -EMSGSIZE;
        if (bytes > 0)
            return take_first(b, bytes, data);
        seen = held(b);
        int64_t n = fill(b, until);
        if (n < 0)
            return n;
        if (n == 0)
            return take_first(b, held(b), data);
    }
}

int64_t blitz_buffered_line(blitz_buffered_reader *b, size_t max, const char **line,
                            blitz_deadline until)
{
    int64_t n = blitz_buffered_until(b, '\n', max, line, until);
    if (n <= 0)
        return n < 0 ? n : -ENODATA;
    if ((*line)[n - 1] == '\n')
        n--;
    else
        return n; /* the last line has no newline */
    if (n > 0 && (*line)[n - 1] == '\r')
        n--;
    return n;
}

/* Search a delimiter of several bytes. A part of it may be at the end of the bytes that were searched before. */
static bool find_all(const blitz_buffered_reader *b, const char *stop, size_t stop_bytes,
                     size_t seen, size_t *before)
{
    const char *data = b->room + b->at;
    size_t i = seen >= stop_bytes ? seen - stop_bytes + 1 : 0;
    while (i + stop_bytes <= held(b)) {
        const char *at = memchr(data + i, stop[0], held(b) - stop_bytes - i + 1);
        if (at == NULL)
            return false;
        i = (size_t)(at - data);
        if (memcmp(at, stop, stop_bytes) == 0) {
            *before = i;
            return true;
        }
        i++;
    }
    return false;
}

int64_t blitz_buffered_split(blitz_buffered_reader *b, const void *stop, size_t stop_bytes,
                             size_t max, const char **data, blitz_deadline until)
{
    size_t seen = 0, before = 0;
    if (stop == NULL || stop_bytes == 0)
        return -EINVAL;
    if (b->at == b->end)
        b->at = b->end = 0;
    for (;;) {
        bool is_there = find_all(b, stop, stop_bytes, seen, &before);
        if (is_there ? before + stop_bytes > max : held(b) >= max)
            return -EMSGSIZE;
        if (is_there) {
            (void)take_first(b, before + stop_bytes, data);
            return (int64_t)before;
        }
        seen = held(b);
        int64_t n = fill(b, until);
        if (n < 0)
            return n;
        if (n == 0)
            return held(b) > 0 ? take_first(b, held(b), data) : -ENODATA;
    }
}

int blitz_buffered_skip(blitz_buffered_reader *b, char stop, uint64_t *skipped,
                        blitz_deadline until)
{
    uint64_t sum = 0;
    int64_t n = 1;
    bool is_there = false;
    while (!is_there && n > 0) {
        size_t bytes = find(b, stop, 0);
        is_there = bytes > 0;
        bytes = is_there ? bytes : held(b);
        sum += bytes;
        blitz_buffered_take(b, bytes);
        n = is_there ? 0 : fill(b, until);
    }
    if (skipped != NULL)
        *skipped = sum;
    return is_there ? 0 : n < 0 ? (int)n : -ENODATA;
}

static int64_t reader_read(void *ctx, void *data, size_t bytes, blitz_deadline until)
{
    blitz_buffered_reader *b = ctx;
    if (held(b) == 0 && bytes >= b->room_bytes && !b->is_over)
        return blitz_reader_read(b->from, data, bytes, until); /* bypass the buffer */
    int64_t n = held(b) == 0 ? fill(b, until) : 0;
    if (n < 0)
        return n;
    size_t some = held(b) < bytes ? held(b) : bytes;
    memcpy(data, b->room + b->at, some);
    blitz_buffered_take(b, some);
    return (int64_t)some;
}

/* Once the buffer is empty the rest comes from the source's descriptor. */
static int reader_fd(void *ctx, blitz_fd *out)
{
    blitz_buffered_reader *b = ctx;
    if (held(b) > 0 || b->is_over || b->from.ops->fd == NULL)
        return -EOPNOTSUPP;
    return b->from.ops->fd(b->from.ctx, out);
}

static uint64_t reader_fd_most(void *ctx)
{
    blitz_buffered_reader *b = ctx;
    return b->from.ops->fd_most != NULL ? b->from.ops->fd_most(b->from.ctx) : UINT64_MAX;
}

static void reader_fd_took(void *ctx, uint64_t bytes)
{
    blitz_buffered_reader *b = ctx;
    if (b->from.ops->fd_took != NULL)
        b->from.ops->fd_took(b->from.ctx, bytes);
}

static int64_t reader_to_pipe(void *ctx, blitz_fd pipe, size_t bytes, blitz_deadline until)
{
    blitz_buffered_reader *b = ctx;
    if (held(b) > 0 || b->is_over || !bz_reader_has_to_pipe(b->from))
        return -EOPNOTSUPP;
    return b->from.ops->inside->to_pipe(b->from.ctx, pipe, bytes, until);
}

blitz_reader blitz_buffered_as_reader(blitz_buffered_reader *b)
{
    static const struct blitz_shortcuts_ shortcuts = {.to_pipe = reader_to_pipe};
    static const blitz_reader_ops ops = {.name = "buffered",
                                         .read = reader_read,
                                         .fd = reader_fd,
                                         .inside = &shortcuts,
                                         .fd_most = reader_fd_most,
                                         .fd_took = reader_fd_took};
    return (blitz_reader){&ops, b};
}

/* ---- writing ---- */

int blitz_buffered_writer_init(blitz_buffered_writer *b, blitz_writer to, void *room, size_t bytes)
{
    if (room == NULL || bytes == 0 || to.ops == NULL)
        return -EINVAL;
    *b = (blitz_buffered_writer){.to = to, .room = room, .room_bytes = bytes};
    return 0;
}

int blitz_buffered_flush(blitz_buffered_writer *b, blitz_deadline until)
{
    size_t done = 0;
    int err = blitz_writer_write_all(b->to, b->room + b->at, b->end - b->at, &done, until);
    b->at += done;
    if (b->at == b->end)
        b->at = b->end = 0;
    return err;
}

static int64_t writer_write(void *ctx, const void *data, size_t bytes, blitz_deadline until)
{
    blitz_buffered_writer *b = ctx;
    if (b->end > 0 && b->room_bytes - b->end < bytes) {
        int err = blitz_buffered_flush(b, until);
        if (err != 0)
            return err;
    }
    if (b->end == 0 && bytes >= b->room_bytes)
        return blitz_writer_write(b->to, data, bytes, until); /* bypass the buffer */
    memcpy(b->room + b->end, data, bytes);
    b->end += bytes;
    return (int64_t)bytes;
}

static int writer_end(void *ctx, blitz_deadline until)
{
    blitz_buffered_writer *b = ctx;
    int err = blitz_buffered_flush(b, until);
    return err != 0 ? err : blitz_writer_end(b->to, until);
}

blitz_writer blitz_buffered_as_writer(blitz_buffered_writer *b)
{
    static const blitz_writer_ops ops = {
        .name = "buffered", .write = writer_write, .end = writer_end};
    return (blitz_writer){&ops, b};
}
