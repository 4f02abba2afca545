/*
 * duplex.c - a pair of connected streams in memory.
 *
 * There is a ring of bytes for each direction, one mutex for both, and two conditions for each
 * direction: not empty and not full. All are from blitz/sync.h, so a duplex works between fibers,
 * stackless tasks and plain threads, with deadlines and cancels.
 */
#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "blitz/condition.h"
#include "blitz/mutex.h"
#include "blitz/stream.h"
#include "blitz/task.h"

struct way {
    struct blitz_duplex *duplex;
    char *ring;
    size_t at, count;       /* bytes in the ring; guarded by the mutex, like the next two */
    bool is_ended;          /* the writer has closed */
    bool is_closed;         /* the reader has closed */
    blitz_condition filled; /* not empty, or closed */
    blitz_condition drained;
};

struct blitz_duplex {
    blitz_mutex mutex;
    size_t room;
    struct way way[2]; /* way[i]: written by end i, read by the other end */
};

/* ---- reading ---- */

static size_t take_out(struct way *w, char *data, size_t bytes)
{
    size_t room = w->duplex->room, n = w->count < bytes ? w->count : bytes;
    size_t first = room - w->at < n ? room - w->at : n;
    memcpy(data, w->ring + w->at, first);
    memcpy(data + first, w->ring, n - first);
    w->at = (w->at + n) % room;
    w->count -= n;
    return n;
}

static int64_t way_read(void *ctx, void *data, size_t bytes, blitz_deadline until)
{
    struct way *w = ctx;
    int err = blitz_mutex_lock(&w->duplex->mutex, until);
    if (err != 0)
        return err;
    while (err == 0 && w->count == 0 && !w->is_ended && !w->is_closed)
        err = blitz_condition_wait(&w->filled, &w->duplex->mutex, until);
    int64_t n = w->is_closed ? -EBADF : err;
    if (w->count > 0 && !w->is_closed) {
        n = (int64_t)take_out(w, data, bytes);
        blitz_condition_broadcast(&w->drained);
    } else if (w->is_ended && !w->is_closed) {
        n = 0;
    }
    blitz_mutex_unlock(&w->duplex->mutex);
    return n;
}

/* ---- writing ---- */

static size_t put_in(struct way *w, const char *data, size_t bytes)
{
    size_t room = w->duplex->room, left = room - w->count, n = left < bytes ? left : bytes;
    size_t to = (w->at + w->count) % room, first = room - to < n ? room - to : n;
    memcpy(w->ring + to, data, first);
    memcpy(w->ring, data + first, n - first);
    w->count += n;
    return n;
}

static int64_t way_write(void *ctx, const void *data, size_t bytes, blitz_deadline until)
{
    struct way *w = ctx;
    int err = blitz_mutex_lock(&w->duplex->mutex, until);
    if (err != 0)
        return err;
    while (err == 0 && w->count == w->duplex->room && !w->is_ended && !w->is_closed)
        err = blitz_condition_wait(&w->drained, &w->duplex->mutex, until);
    int64_t n = w->is_ended ? -EBADF : w->is_closed ? -EPIPE : err;
    if (w->count < w->duplex->room && !w->is_ended && !w->is_closed) {
        n = (int64_t)put_in(w, data, bytes);
        blitz_condition_broadcast(&w->filled);
    }
    blitz_mutex_unlock(&w->duplex->mutex);
    return n;
}

static int way_end(void *ctx, blitz_deadline until)
{
    struct way *w = ctx;
    int err = blitz_mutex_lock(&w->duplex->mutex, until);
    if (err != 0)
        return err;
    w->is_ended = true;
    blitz_condition_broadcast(&w->filled);
    blitz_condition_broadcast(&w->drained);
    blitz_mutex_unlock(&w->duplex->mutex);
    return 0;
}

/* ---- making ---- */

static const blitz_reader_ops reader_ops = {.name = "duplex", .read = way_read};
static const blitz_writer_ops writer_ops = {.name = "duplex", .write = way_write, .end = way_end};

static size_t bytes_for(size_t room)
{
    return sizeof(blitz_duplex) + 2 * room;
}

/* NOLINTNEXTLINE(readability-non-const-parameter): it is written to */
static void way_init(struct way *w, blitz_duplex *d, char *ring)
{
    *w = (struct way){.duplex = d, .ring = ring};
    blitz_condition_init(&w->filled);
    blitz_condition_init(&w->drained);
}

int blitz_duplex_new(size_t bytes, blitz_stream ends[2], blitz_duplex **out)
{
    if (bytes == 0 || bytes > (SIZE_MAX - sizeof(blitz_duplex)) / 2)
        return -EINVAL;
    blitz_duplex *d = bz_alloc(&bz_allocator_libc, bytes_for(bytes), _Alignof(blitz_duplex));
    if (d == NULL)
        return -ENOMEM;
    blitz_mutex_init(&d->mutex);
    d->room = bytes;
    for (int i = 0; i < 2; i++)
        way_init(&d->way[i], d, (char *)(d + 1) + (size_t)i * bytes);
    for (int i = 0; i < 2; i++)
        ends[i] = (blitz_stream){{&reader_ops, &d->way[1 - i]}, {&writer_ops, &d->way[i]}};
    *out = d;
    return 0;
}

void blitz_duplex_close(blitz_duplex *d, int end)
{
    blitz_shield(); /* the other end must not wait forever because of a cancel */
    (void)!blitz_mutex_lock(&d->mutex, BLITZ_FOREVER); /* nothing else ends its wait */
    d->way[end].is_ended = true;
    d->way[1 - end].is_closed = true;
    for (int i = 0; i < 2; i++) {
        blitz_condition_broadcast(&d->way[i].filled);
        blitz_condition_broadcast(&d->way[i].drained);
    }
    blitz_mutex_unlock(&d->mutex);
    blitz_unshield();
}

void blitz_duplex_unref(blitz_duplex *d)
{
    if (d != NULL)
        bz_free(&bz_allocator_libc, d, bytes_for(d->room));
}
