/*
 * copy.c - copy from a reader to a writer until the end.
 *
 * Data goes through a buffer, or bypasses it. A writer that can send from a file implements
 * take_file, and a reader of a file returns its descriptor and position (fd). The first piece shows
 * whether it works. A reader in front of a file forwards these calls. A limit reports how much may
 * be taken (fd_most) and learns how much was taken (fd_took). A buffered reader has no descriptor
 * until its buffer is empty. So the copy tries again after each piece that went through memory.
 *
 * Between connections splice through a pipe bypasses the buffer: it moves pages without a copy. On
 * a loopback that takes 250 us of CPU a megabyte instead of 305 (docs/networking.md); it costs two
 * descriptors and a few system calls to set up. So the first bytes go through the buffer, and a
 * pipe is made after much data and with large reads. If the system refuses (another kind of socket,
 * no descriptors, a backend whose descriptors block), the copy continues through the buffer. No
 * data is lost: the bytes in the pipe are read back. A piece is no larger than the buffer, so a
 * failed write loses no more than without a pipe.
 *
 * A copy in both directions is two tasks in a scope, so that the first error or a cancel ends both.
 * They share the time of the last byte in either direction: an active download keeps the silent
 * other direction alive. The deadline of each wait is the time at which the pair would be idle. A
 * wait that reaches it checks whether the other direction has moved data meanwhile, and if so waits
 * again.
 */
#include <errno.h>

#include "base/alloc.h"
#include "base/bz_atomic.h"
#include "blitz/scope.h"
#include "blitz/stream.h"
#include "io/raw.h"
#include "stream/shortcuts.h"

enum { ROOM = 64 << 10, PIECE = 1 << 20 };

/* A pipe is worth its two descriptors after this many bytes, with reads of this size. */
enum { LONG = 256 << 10, LARGE = 16 << 10 };

/* When a pair of copies last moved a byte. */
struct activity {
    uint64_t idle_ns; /* constant */
    bz_atomic(uint64_t) last;
};

struct copying {
    blitz_reader from;
    blitz_writer to;
    blitz_deadline until;
    struct activity *activity; /* NULL: no idle timeout */
    uint64_t copied;
    char *room;
};

/* ---- time ---- */

static blitz_deadline idle_at(const struct copying *c)
{
    /* relaxed: a timestamp, it orders nothing */
    return blitz_time_add(bz_load_relaxed(&c->activity->last), c->activity->idle_ns);
}

/* The deadline of the next wait. */
static blitz_deadline deadline_of(const struct copying *c)
{
    if (c->activity == NULL)
        return c->until;
    blitz_deadline idle = idle_at(c);
    return idle < c->until ? idle : c->until;
}

static void touch(struct copying *c)
{
    if (c->activity != NULL)
        bz_store_relaxed(&c->activity->last, blitz_now()); /* relaxed: as above */
}

/* A wait returned n. True if it reached the idle deadline but the pair is not idle: wait again. */
static bool is_early(const struct copying *c, int64_t n)
{
    if (n != -ETIMEDOUT || c->activity == NULL)
        return false;
    uint64_t now = blitz_now();
    return now < c->until && now < idle_at(c);
}

/* ---- from a file ---- */

/* The number of bytes that may be taken from the reader's descriptor, at most a piece. */
static size_t piece_of(const struct copying *c)
{
    uint64_t most =
        c->from.ops->fd_most != NULL ? c->from.ops->fd_most(c->from.ctx) : (uint64_t)PIECE;
    return most < PIECE ? (size_t)most : PIECE;
}

/* Returns 0 at the end; -EOPNOTSUPP: not supported, and this call copied nothing. */
static int copy_file(struct copying *c)
{
    blitz_fd fd = bz_reader_fd(c->from);
    if (fd == BLITZ_NO_FD || !bz_writer_takes_files(c->to))
        return -EOPNOTSUPP;
    for (size_t piece; (piece = piece_of(c)) > 0;) {
        int64_t n;
        do
            n = c->to.ops->inside->take_file(c->to.ctx, fd, piece, deadline_of(c));
        while (is_early(c, n));
        if (n <= 0)
            return (int)n;
        touch(c);
        c->copied += (uint64_t)n;
        if (c->from.ops->fd_took != NULL)
            c->from.ops->fd_took(c->from.ctx, (uint64_t)n);
    }
    return 0;
}

static int write_all(struct copying *c, size_t bytes)
{
    size_t at = 0;
    int err;
    do {
        size_t done = 0;
        err = blitz_writer_write_all(c->to, c->room + at, bytes - at, &done, deadline_of(c));
        if (done > 0)
            touch(c);
        at += done;
    } while (is_early(c, err));
    c->copied += at;
    return err;
}

/* ---- through a pipe ---- */

static bool is_refused(int64_t n)
{
    return n == -EOPNOTSUPP || n == -EINVAL;
}

/* Move the bytes in the pipe through the buffer. */
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

/* Write the bytes in the pipe. Returns 0; -EOPNOTSUPP: they were written, but splice cannot be used
 * any more. */
static int write_from_pipe(struct copying *c, int pipe, size_t bytes)
{
    while (bytes > 0) {
        int64_t n = c->to.ops->inside->from_pipe(c->to.ctx, pipe, bytes, deadline_of(c));
        if (is_early(c, n))
            continue;
        if (is_refused(n)) {
            int err = empty_pipe(c, pipe, bytes);
            return err != 0 ? err : -EOPNOTSUPP;
        }
        if (n < 0)
            return (int)n;
        touch(c);
        bytes -= (size_t)n;
        c->copied += (uint64_t)n;
    }
    return 0;
}

/* Returns 0 at the end; -EOPNOTSUPP: copy the rest in another way. */
static int copy_by_pipe(struct copying *c)
{
    int pipe[2], err = 0;
    bool is_over = false;
    if (!bz_reader_has_to_pipe(c->from) || !bz_writer_has_from_pipe(c->to) ||
        bz_raw_pipe(pipe) != 0)
        return -EOPNOTSUPP;
    while (err == 0 && !is_over) {
        int64_t n = c->from.ops->inside->to_pipe(c->from.ctx, pipe[1], ROOM, deadline_of(c));
        if (is_early(c, n))
            continue;
        if (n > 0)
            touch(c);
        is_over = n == 0;
        err = n > 0 ? write_from_pipe(c, pipe[0], (size_t)n) : is_refused(n) ? -EOPNOTSUPP : (int)n;
    }
    bz_raw_close(pipe[0]);
    bz_raw_close(pipe[1]);
    return err;
}

/* ---- through a buffer ---- */

static int64_t read_some(struct copying *c)
{
    int64_t n;
    do
        n = blitz_reader_read(c->from, c->room, ROOM, deadline_of(c));
    while (is_early(c, n));
    if (n > 0)
        touch(c);
    return n;
}

/* Copy the rest without the buffer, if possible; `came` is the size of the last read. Returns as
 * copy_file(). */
static int copy_past(struct copying *c, bool *may_pipe, int64_t came)
{
    int err = copy_file(c);
    if (err != -EOPNOTSUPP || !*may_pipe || came < LARGE || c->copied < LONG)
        return err;
    *may_pipe = false;
    return copy_by_pipe(c);
}

static int copy_bytes(struct copying *c)
{
    bool may_pipe = true;
    int64_t n;
    while ((n = read_some(c)) > 0) {
        int err = write_all(c, (size_t)n);
        if (err == 0)
            err = copy_past(c, &may_pipe, n);
        else
            return err;
        if (err != -EOPNOTSUPP)
            return err;
    }
    return (int)n;
}

static int copy(struct copying *c)
{
    if (c->from.ops == NULL || c->to.ops == NULL)
        return -EINVAL;
    int err = copy_file(c);
    if (err != -EOPNOTSUPP)
        return err;
    c->room = bz_alloc(&bz_allocator_libc, ROOM, 1);
    if (c->room == NULL)
        return -ENOMEM;
    err = copy_bytes(c);
    bz_free(&bz_allocator_libc, c->room, ROOM);
    return err;
}

int blitz_stream_copy(blitz_reader from, blitz_writer to, uint64_t *copied, blitz_deadline until)
{
    struct copying c = {.from = from, .to = to, .until = until};
    int err = copy(&c);
    if (copied != NULL)
        *copied = c.copied;
    return err;
}

/* ---- both ways ---- */

static int copy_way(void *arg)
{
    struct copying *c = arg;
    int err = copy(c);
    if (err != 0)
        return err;
    err = blitz_writer_end(c->to, deadline_of(c));
    return err == -ENOTCONN || err == -EPIPE ? 0 : err; /* it has ended already */
}

int blitz_stream_copy_both(blitz_stream a, blitz_stream b, uint64_t idle_ns, uint64_t *to_b,
                           uint64_t *to_a, blitz_deadline until)
{
    struct activity activity = {.idle_ns = idle_ns};
    bool is_timed = idle_ns != 0 && idle_ns != BLITZ_FOREVER;
    struct copying ways[2] = {{.from = a.in, .to = b.out}, {.from = b.in, .to = a.out}};
    blitz_scope scope;
    bz_atomic_init(&activity.last, is_timed ? blitz_now() : 0);
    int err = blitz_scope_open(&scope, NULL, BLITZ_FOREVER);
    if (err != 0)
        return err;
    for (int i = 0; i < 2 && err == 0; i++) {
        ways[i].until = until;
        ways[i].activity = is_timed ? &activity : NULL;
        err = blitz_scope_spawn(&scope, copy_way, &ways[i], NULL);
    }
    if (err != 0)
        blitz_scope_cancel(&scope);
    int closed = blitz_scope_close(&scope);
    if (to_b != NULL)
        *to_b = ways[0].copied;
    if (to_a != NULL)
        *to_a = ways[1].copied;
    return err != 0 ? err : closed;
}
