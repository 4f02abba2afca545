/*
 * copy.c - from a reader to a writer, until the end.
 *
 * Through a buffer, or past it. A writer that can take a file as it is says so (take_file), and a reader
 * that is a file at a certain place says which (fd). Whether it works is asked with the first piece. A
 * reader that stands before a file passes the question on: a limit says how much may be taken (fd_most)
 * and is told how much was (fd_took); a buffer has no descriptor until it is empty. So the question is
 * asked again after each piece that went through memory.
 *
 * From connection to connection there is a way past the buffer, too: through a pipe, by splice, which moves
 * pages and copies nothing. On a loopback that is 250 us of CPU a megabyte instead of 305
 * (docs/networking.md); it costs two descriptors and a few calls to begin with. So the first bytes go
 * through the buffer, and a pipe is made when much has gone over and large pieces come. Where it is refused
 * (another kind of socket, no descriptors, a keeper whose descriptors block) the copy goes on through the
 * buffer: nothing is lost, what was in the pipe is taken out of it. A piece is no larger than the buffer,
 * so as much is lost by a failed write as without a pipe.
 *
 * Both ways is two tasks in a scope, so that the first error ends both, and a cancel, too. They share the
 * time of the last byte in either direction: a download that is under way keeps the silent other direction
 * alive. Each wait has the deadline at which the pair would be idle. A wait that reaches it looks whether
 * the other direction has moved meanwhile, and if so waits on.
 */
#include <errno.h>

#include "base/alloc.h"
#include "base/bz_atomic.h"
#include "blitz/scope.h"
#include "blitz/stream.h"
#include "io/raw.h"

enum { ROOM = 64 << 10, PIECE = 1 << 20 };

/* When a pipe is worth its two descriptors: so much went over, and so much came at once. */
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
    struct activity *activity; /* NULL: it may be idle for ever */
    uint64_t copied;
    char *room;
};

/* ---- time ---- */

static blitz_deadline idle_at(const struct copying *c)
{
    /* relaxed: a moment on a clock, it orders nothing */
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

/* A wait came to n. True if that was the deadline for an idle pair and the pair is not idle: wait again. */
static bool is_early(const struct copying *c, int64_t n)
{
    if (n != -ETIMEDOUT || c->activity == NULL)
        return false;
    uint64_t now = blitz_now();
    return now < c->until && now < idle_at(c);
}

/* ---- from a file ---- */

/* How much of the descriptor the reader may be asked for, at most a piece. */
static size_t piece_of(const struct copying *c)
{
    uint64_t most =
        c->from.ops->fd_most != NULL ? c->from.ops->fd_most(c->from.ctx) : (uint64_t)PIECE;
    return most < PIECE ? (size_t)most : PIECE;
}

/* Returns 0 at the end; -ENOTSUP: not this way, and nothing was copied by this call. */
static int copy_file(struct copying *c)
{
    int fd = c->from.ops->fd != NULL ? c->from.ops->fd(c->from.ctx) : -1;
    if (fd < 0 || c->to.ops->take_file == NULL)
        return -ENOTSUP;
    for (size_t piece; (piece = piece_of(c)) > 0;) {
        int64_t n;
        do
            n = c->to.ops->take_file(c->to.ctx, fd, piece, deadline_of(c));
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
        int64_t n = c->to.ops->from_pipe(c->to.ctx, pipe, bytes, deadline_of(c));
        if (is_early(c, n))
            continue;
        if (is_refused(n)) {
            int err = empty_pipe(c, pipe, bytes);
            return err != 0 ? err : -ENOTSUP;
        }
        if (n < 0)
            return (int)n;
        touch(c);
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
        int64_t n = c->from.ops->to_pipe(c->from.ctx, pipe[1], ROOM, deadline_of(c));
        if (is_early(c, n))
            continue;
        if (n > 0)
            touch(c);
        is_over = n == 0;
        err = n > 0 ? pass_on(c, pipe[0], (size_t)n) : is_refused(n) ? -ENOTSUP : (int)n;
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

/* The rest past the buffer, if that is possible by now; `came` is what came last. As copy_file(). */
static int copy_past(struct copying *c, bool *may_pipe, int64_t came)
{
    int err = copy_file(c);
    if (err != -ENOTSUP || !*may_pipe || came < LARGE || c->copied < LONG)
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
        if (err != -ENOTSUP)
            return err;
    }
    return (int)n;
}

static int copy(struct copying *c)
{
    if (c->from.ops == NULL || c->to.ops == NULL)
        return -EINVAL;
    int err = copy_file(c);
    if (err != -ENOTSUP)
        return err;
    c->room = bz_alloc(&bz_allocator_libc, ROOM, 0);
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
    return err == -ENOTCONN || err == -EPIPE ? 0 : err; /* it is gone already */
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
