/*
 * sort_wide.c - parallel steps of a sort.
 *
 * A parallel partition: the array is divided into chunks, and the workers split the chunks in
 * place. Then the elements on the wrong side of the common border are swapped across it, also in
 * parallel. With a pivot in the middle these are a quarter of the elements, moved as whole
 * segments: a few percent of the cost of the split. Rejected: workers that take blocks from both
 * ends and swap as they go. They move less, but share two counters and need a sequential clean-up,
 * and the schedule decides where elements end. Here the result depends only on the input and the
 * number of chunks.
 *
 * W1  front[i] elements of chunk i belong to the front; they are at its beginning. border = their
 *     sum.
 * W2  As many front elements are behind the border as other elements are before it; both lists, in
 *     address order, are swapped pairwise. This holds for any front[i] <= the chunk's length, so
 *     for any results of the comparison.
 * W3  has_broken is a hint: a worker that finds a break sets it, and the others read it to stop
 *     early. It publishes nothing; the results are read after the joins.
 */
#include "par/sort.h"

#include <string.h>

#include "base/bz_atomic.h"

/* ---- passes ---- */

size_t bz_sort_chunks(size_t n)
{
    size_t most = 8 * (size_t)bz_sort_procs(), chunks = bz_sort_pieces(n);
    if (most > BZ_SORT_CHUNKS_MAX)
        most = BZ_SORT_CHUNKS_MAX;
    return chunks < most ? chunks : most;
}

size_t bz_sort_pieces(size_t n)
{
    if (bz_sort_procs() == 1)
        return 1; /* no other worker */
    return n < 2 * BZ_SORT_CHUNK_MIN ? 1 : n / BZ_SORT_CHUNK_MIN;
}

struct each {
    int (*fn)(size_t i, void *arg);
    void *arg;
    size_t from, to;
};

static int run_each(void *arg)
{
    struct each *e = arg;
    if (e->to - e->from == 1)
        return e->fn(e->from, e->arg);
    size_t middle = e->from + (e->to - e->from) / 2;
    struct each left = {e->fn, e->arg, e->from, middle}, right = {e->fn, e->arg, middle, e->to};
    blitz_job job;
    blitz_fork(&job, run_each, &right);
    int err = run_each(&left);
    int other = blitz_join(&job);
    return err != 0 ? err : other;
}

int bz_sort_each(size_t count, int (*fn)(size_t i, void *arg), void *arg)
{
    struct each all = {fn, arg, 0, count};
    return count > 0 ? run_each(&all) : 0;
}

/* Make a pass over [0, n) in `parts` parts, with elements of `size` bytes. */
struct pass {
    unsigned char *v;
    const unsigned char *from;
    size_t n, size, parts;
};

static int copy_part(size_t i, void *arg)
{
    const struct pass *p = arg;
    size_t at = bz_sort_part(p->n, p->parts, i), end = bz_sort_part(p->n, p->parts, i + 1);
    memcpy(p->v + at, p->from + at, end - at);
    return 0;
}

void bz_sort_copy(void *to, const void *from, size_t bytes)
{
    struct pass p = {to, from, bytes, 1, bz_sort_pieces(bytes / 8)};
    if (bytes > 0)
        (void)!bz_sort_each(p.parts, copy_part, &p); /* always returns 0 */
}

/* Swap v[i] with v[n - 1 - i]; common sizes are compile-time constants. */
static BZ_ALWAYS_INLINE void turn(const struct pass *p, size_t i, size_t end, size_t size)
{
    for (; i < end; i++)
        blitz_sort_swap_(p->v + i * size, p->v + (p->n - 1 - i) * size, size);
}

static int reverse_part(size_t i, void *arg)
{
    const struct pass *p = arg;
    size_t half = p->n / 2;
    size_t at = bz_sort_part(half, p->parts, i), end = bz_sort_part(half, p->parts, i + 1);
    switch (p->size) {
    case 4:
        turn(p, at, end, 4);
        break;
    case 8:
        turn(p, at, end, 8);
        break;
    case 16:
        turn(p, at, end, 16);
        break;
    default:
        turn(p, at, end, p->size);
        break;
    }
    return 0;
}

void bz_sort_reverse(void *v, size_t n, size_t size)
{
    struct pass p = {v, NULL, n, size, bz_sort_pieces(n)};
    (void)!bz_sort_each(p.parts, reverse_part, &p); /* always returns 0 */
}

/* ---- search for a run ---- */

enum { LOOK = 256, STRETCH = 16384 };

struct scan {
    const struct blitz_sort_kernel_ *k;
    const unsigned char *v;
    size_t n, parts;
    int falls;
    void *ctx;
    bz_atomic(uint32_t) has_broken;
};

/* Each part also checks the first element of the next part. */
static int scan_part(size_t i, void *arg)
{
    struct scan *s = arg;
    size_t at = bz_sort_part(s->n, s->parts, i), end = bz_sort_part(s->n, s->parts, i + 1);
    while (at < end && bz_load_relaxed(&s->has_broken) == 0) { /* relaxed: W3 */
        size_t more = end - at < STRETCH ? end - at : STRETCH;
        size_t look = more + (at + more < s->n);
        if (s->k->run(s->v + at * s->k->size, look, s->falls, s->ctx) < look)
            bz_store_relaxed(&s->has_broken, 1); /* relaxed: W3 */
        at += more;
    }
    return 0;
}

bool bz_sort_is_run(const struct blitz_sort_kernel_ *k, const void *v, size_t n, int falls,
                    void *ctx)
{
    size_t look = n < LOOK ? n : LOOK;
    if (k->run(v, look, falls, ctx) < look)
        return false;
    struct scan s = {k, v, n, bz_sort_pieces(n), falls, ctx, 0};
    if (look < n)
        (void)!bz_sort_each(s.parts, scan_part, &s); /* always returns 0 */
    return bz_load_relaxed(&s.has_broken) == 0;      /* relaxed: all parts are joined */
}

/* ---- partition ---- */

struct wide {
    const struct blitz_sort_kernel_ *k;
    void *ctx;
    unsigned char *v;
    size_t n;
    const void *pivot;
    int are_equal;
    size_t chunks;
    size_t border;                    /* W1; when all chunks are split */
    size_t wrong, movers;             /* pairs to swap, and by how many jobs */
    size_t front[BZ_SORT_CHUNKS_MAX]; /* each written by its chunk's job */
};

static int split_chunk(size_t i, void *arg)
{
    struct wide *w = arg;
    size_t at = bz_sort_part(w->n, w->chunks, i), end = bz_sort_part(w->n, w->chunks, i + 1);
    w->front[i] = w->k->split(w->v + at * w->k->size, end - at, w->pivot, w->are_equal, w->ctx);
    return 0;
}

/* Walks the elements on the wrong side of the border, segment by segment. */
struct stray {
    const struct wide *w;
    bool is_behind; /* elements that belong to the front */
    size_t chunk;   /* the next one */
    size_t at, end; /* the rest of the segment */
};

static void stray_next(struct stray *s)
{
    const struct wide *w = s->w;
    while (s->at >= s->end && s->chunk < w->chunks) {
        size_t from = bz_sort_part(w->n, w->chunks, s->chunk);
        size_t to = bz_sort_part(w->n, w->chunks, s->chunk + 1), middle = from + w->front[s->chunk];
        s->at = !s->is_behind ? middle : from < w->border ? w->border : from;
        s->end = s->is_behind ? middle : to < w->border ? to : w->border;
        s->chunk++;
    }
}

static void stray_skip(struct stray *s, size_t count)
{
    while (stray_next(s), count > 0) {
        size_t here = s->end - s->at < count ? s->end - s->at : count;
        s->at += here;
        count -= here;
    }
}

static void swap_segments(unsigned char *a, unsigned char *b, size_t bytes)
{
    unsigned char t[256];
    for (size_t now; bytes > 0; a += now, b += now, bytes -= now) {
        now = bytes < sizeof t ? bytes : sizeof t;
        memcpy(t, a, now);
        memcpy(a, b, now);
        memcpy(b, t, now);
    }
}

static int move_part(size_t i, void *arg)
{
    const struct wide *w = arg;
    size_t at = bz_sort_part(w->wrong, w->movers, i);
    size_t left = bz_sort_part(w->wrong, w->movers, i + 1) - at, size = w->k->size;
    struct stray before = {w, false, 0, 0, 0}, behind = {w, true, 0, 0, 0};
    stray_skip(&before, at);
    stray_skip(&behind, at);
    for (size_t now; left > 0; left -= now) {
        now = before.end - before.at < behind.end - behind.at ? before.end - before.at
                                                              : behind.end - behind.at;
        now = now < left ? now : left;
        swap_segments(w->v + before.at * size, w->v + behind.at * size, now * size);
        stray_skip(&before, now);
        stray_skip(&behind, now);
    }
    return 0;
}

/* W2: the number of wrong elements before the border. */
static size_t count_wrong(const struct wide *w)
{
    size_t wrong = 0;
    for (size_t i = 0; i < w->chunks; i++) {
        size_t from = bz_sort_part(w->n, w->chunks, i), to = bz_sort_part(w->n, w->chunks, i + 1);
        size_t end = to < w->border ? to : w->border;
        wrong += from + w->front[i] < end ? end - (from + w->front[i]) : 0;
    }
    return wrong;
}

size_t bz_sort_split(const struct blitz_sort_kernel_ *k, void *v, size_t n, const void *pivot,
                     int are_equal, void *ctx)
{
    struct wide w = {.k = k, .ctx = ctx, .v = v, .n = n, .pivot = pivot, .are_equal = are_equal};
    w.chunks = bz_sort_chunks(n);
    (void)!bz_sort_each(w.chunks, split_chunk, &w); /* always returns 0 */
    for (size_t i = 0; i < w.chunks; i++)
        w.border += w.front[i];
    w.wrong = count_wrong(&w);
    w.movers = bz_sort_chunks(w.wrong);
    if (w.wrong > 0)
        (void)!bz_sort_each(w.movers, move_part, &w); /* likewise */
    return w.border;
}
