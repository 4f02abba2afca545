/*
 * scan.c - parallel prefix sums.
 *
 * A sequential scan needs one pass. A worker that starts in the middle must first know the sum of
 * everything to its left. So the middle needs two passes: one to add up (map), and one to write
 * (emit). With w workers there are three ranges:
 *
 *        head        |            middle            |        tail
 *        1 / (w+1)   |          (w-1) / (w+1)       |        1 / (w+1)
 *     1  written         added up, block by block
 *     2                  written, block by block              written
 *
 * In each of the two phases w ranges of equal length are processed at the same time. This takes 2 /
 * (w + 1) of the sequential time; two passes over everything would take 2 / w. With two workers the
 * former gains a third, the latter nothing.
 *
 * First a small part is written and timed: if the rest will take only a few microseconds, the
 * caller does it alone. With one worker the scan is sequential as well.
 *
 * Rejected: parts chosen by stealing, as in split.c, so that only stolen parts need two passes. The
 *           sum of a part is known at its join, so late that no other work is left to run beside
 *           its second pass. Also chained blocks that wait for the sum of their left neighbour (1.5
 *           passes on GPUs): a worker would wait for another worker that the system may not run.
 *
 * I1  before[b] covers [0, begin of block b) when phase 2 begins.
 */
#include <errno.h>
#include <string.h>

#include "blitz/par.h"
#include "blitz/task.h"
#include "par/split.h"
#include "proc/state.h"

enum {
    STEPS = 64,              /* checks for cancels in a sequential range, */
    STEP_MIN = 64,           /* each with at least this many indexes */
    BLOCKS_EACH = 16,        /* blocks of the middle for each worker, */
    BLOCKS = 128,            /* and in all: each has two accumulators */
    STRAIGHT_NS = 40 * 1000, /* a shorter scan is not split */
    FIRST_MAX = 64           /* indexes of the timed first part */
};

struct scan {
    struct bz_loop loop; /* for its flag, its shield and its grain */
    const blitz_reduction *how;
    blitz_emit_fn *emit;
    void *arg;
    size_t n;
    void *total;
    const blitz_par_opts *opts;
    size_t head, tail; /* the middle is [head, tail) */
    size_t block;      /* indexes in a block of it */
    size_t blocks;
    size_t stride; /* distance of two accumulators in bytes */
    char *sums;    /* an accumulator for each block; then */
    char *before;  /* the same */
};

/* Map or emit ranges one after the other. */
static int go_through(struct scan *s, blitz_emit_fn *fn, void *acc, size_t from, size_t to)
{
    size_t step = (to - from) / STEPS > STEP_MIN ? (to - from) / STEPS : STEP_MIN;
    int err;
    step = step < s->loop.chunk_max ? step : s->loop.chunk_max;
    while (from < to) {
        size_t end = to - from > step ? from + step : to;
        if (!bz_loop_may_continue(&s->loop, &err))
            return err;
        err = fn(acc, from, end, s->arg);
        if (err != 0) {
            bz_loop_stop(&s->loop);
            return err;
        }
        from = end;
        bz_par_checkpoint(false, false);
    }
    return 0;
}

/* ---- the two phases ---- */

static size_t block_end(const struct scan *s, size_t b)
{
    size_t from = s->head + b * s->block;
    return s->tail - from > s->block ? from + s->block : s->tail;
}

static int add_blocks(size_t from, size_t to, void *arg)
{
    struct scan *s = arg;
    int err = 0;
    for (size_t b = from; b < to && err == 0; b++) {
        void *sum = s->sums + b * s->stride;
        s->how->init(sum, s->arg);
        err = go_through(s, s->how->map, sum, s->head + b * s->block, block_end(s, b));
    }
    return err;
}

static int emit_blocks(size_t from, size_t to, void *arg)
{
    struct scan *s = arg;
    int err = 0;
    for (size_t b = from; b < to && err == 0; b++) {
        void *before = s->before + b * s->stride;
        err = go_through(s, s->emit, before, s->head + b * s->block, block_end(s, b));
    }
    return err;
}

/* I1; acc covers the head, and then all up to the tail. */
static void add_up(struct scan *s, void *acc)
{
    for (size_t b = 0; b < s->blocks; b++) {
        void *before = s->before + b * s->stride;
        s->how->init(before, s->arg);
        s->how->combine(before, acc, s->arg);
        s->how->combine(acc, s->sums + b * s->stride, s->arg);
    }
}

/* Process head or tail while other workers process the middle. */
struct stretch {
    struct scan *s;
    void *acc;
    size_t from, to;
};

static int stretch_main(void *arg)
{
    struct stretch *st = arg;
    bool is_ours = bz_loop_shield(&st->s->loop);
    int err = go_through(st->s, st->s->emit, st->acc, st->from, st->to);
    if (is_ours)
        blitz_unshield();
    return err;
}

/* One phase: head or tail, and the blocks. Of two errors the left one counts. */
static int phase(struct scan *s, struct stretch *st, blitz_range_fn *blocks)
{
    blitz_job job;
    bool is_left = st->to == s->head;
    blitz_fork(&job, stretch_main, st);
    int theirs = blitz_for(s->blocks, blocks, s, NULL);
    if (theirs != 0)
        bz_loop_stop(&s->loop);
    int err = blitz_join(&job);
    if (is_left)
        return err != 0 ? err : theirs;
    return theirs != 0 ? theirs : err;
}

static int scan_wide(struct scan *s, void *acc, size_t from)
{
    struct stretch head = {s, acc, from, s->head}, tail = {s, acc, s->tail, s->n};
    int err = phase(s, &head, add_blocks);
    if (err != 0)
        return err;
    add_up(s, acc);
    return phase(s, &tail, emit_blocks);
}

/* ---- which way ---- */

/* Plan the rest, starting at `from`. Return false if it is not worth splitting, or there is no
 * memory. */
static bool lay_out(struct scan *s, size_t from, unsigned workers)
{
    size_t left = s->n - from, stretch = left / (workers + 1), middle = left - 2 * stretch;
    if (workers < 2 || stretch < s->loop.grain || middle / 2 < s->loop.grain)
        return false;
    s->head = from + stretch;
    s->tail = s->n - stretch;
    size_t most = workers < BLOCKS / BLOCKS_EACH ? workers * BLOCKS_EACH : BLOCKS;
    s->block = middle / most + 1 > s->loop.grain ? middle / most + 1 : s->loop.grain;
    s->blocks = (middle - 1) / s->block + 1;
    s->stride =
        (s->how->bytes + _Alignof(max_align_t) - 1) / _Alignof(max_align_t) * _Alignof(max_align_t);
    if (s->how->bytes > SIZE_MAX / 4 / BLOCKS)
        return false;
    s->sums = bz_par_alloc(2 * s->blocks * s->stride);
    s->before = s->sums != NULL ? s->sums + s->blocks * s->stride : NULL;
    return s->sums != NULL;
}

/* Process a first part and time it. Return its end, and an estimate for the rest. */
static int begin(struct scan *s, void *acc, size_t *from, double *left_ns)
{
    size_t first = s->n / STEPS < FIRST_MAX ? s->n / STEPS : FIRST_MAX;
    first = first > s->loop.grain ? first : s->loop.grain;
    *from = first < s->n ? first : s->n;
    uint64_t since = blitz_now();
    int err = go_through(s, s->emit, acc, 0, *from);
    *left_ns = (double)(blitz_now() - since) / (double)*from * (double)(s->n - *from);
    return err;
}

static int scan_inside(void *arg)
{
    struct scan *s = arg;
    void *acc = s->total;
    size_t from;
    double left_ns;
    bz_loop_init(&s->loop, s->n, s->opts);
    s->how->init(acc, s->arg);
    if (s->n == 0)
        return 0;
    int err = begin(s, acc, &from, &left_ns);
    if (err != 0)
        return err;
    bool is_short = left_ns < STRAIGHT_NS && s->loop.chunk_max == SIZE_MAX;
    if (is_short || !lay_out(s, from, blitz_worker_count()))
        return go_through(s, s->emit, acc, from, s->n);
    err = scan_wide(s, acc, from);
    bz_par_free(s->sums, 2 * s->blocks * s->stride);
    return err;
}

int blitz_scan(size_t n, const blitz_reduction *how, blitz_emit_fn *emit, void *arg, void *total,
               const blitz_par_opts *opts)
{
    struct scan s = {.how = how, .emit = emit, .arg = arg, .n = n, .total = total, .opts = opts};
    if (how == NULL || how->init == NULL || how->map == NULL || how->combine == NULL ||
        how->bytes == 0 || emit == NULL || total == NULL)
        return -EINVAL;
    return blitz_par_call_(scan_inside, &s);
}

/* ---- arrays ---- */

struct values {
    const blitz_reduction *how;
    void *arg;
    const char *in;
    char *out;
};

static void values_init(void *acc, void *arg)
{
    struct values *v = arg;
    v->how->init(acc, v->arg);
}

static void values_combine(void *acc, const void *right, void *arg)
{
    struct values *v = arg;
    v->how->combine(acc, right, v->arg);
}

static int values_map(void *acc, size_t from, size_t to, void *arg)
{
    struct values *v = arg;
    for (size_t i = from; i < to; i++)
        v->how->combine(acc, v->in + i * v->how->bytes, v->arg);
    return 0;
}

static int values_after(void *acc, size_t from, size_t to, void *arg)
{
    struct values *v = arg;
    size_t bytes = v->how->bytes;
    for (size_t i = from; i < to; i++) {
        v->how->combine(acc, v->in + i * bytes, v->arg);
        memcpy(v->out + i * bytes, acc, bytes);
    }
    return 0;
}

static int values_before(void *acc, size_t from, size_t to, void *arg)
{
    struct values *v = arg;
    size_t bytes = v->how->bytes;
    struct bz_acc kept; /* in[i], which may be the same memory as out[i] */
    if (!bz_acc_begin(&kept, bytes))
        return -ENOMEM;
    for (size_t i = from; i < to; i++) {
        memcpy(kept.at, v->in + i * bytes, bytes);
        memcpy(v->out + i * bytes, acc, bytes);
        v->how->combine(acc, kept.at, v->arg);
    }
    bz_acc_end(&kept, bytes);
    return 0;
}

static int scan_values(struct values *v, size_t n, blitz_emit_fn *emit, const blitz_par_opts *opts)
{
    struct bz_acc total;
    if (v->how == NULL || v->how->init == NULL || v->how->combine == NULL || v->how->bytes == 0 ||
        (n > 0 && (v->in == NULL || v->out == NULL)))
        return -EINVAL;
    blitz_reduction how = {v->how->bytes, values_init, values_map, values_combine};
    if (!bz_acc_begin(&total, how.bytes))
        return -ENOMEM;
    int err = blitz_scan(n, &how, emit, v, total.at, opts);
    bz_acc_end(&total, how.bytes);
    return err;
}

int blitz_scan_inclusive(size_t n, const void *in, void *out, const blitz_reduction *how, void *arg,
                         const blitz_par_opts *opts)
{
    return scan_values(&(struct values){how, arg, in, out}, n, values_after, opts);
}

int blitz_scan_exclusive(size_t n, const void *in, void *out, const blitz_reduction *how, void *arg,
                         const blitz_par_opts *opts)
{
    return scan_values(&(struct values){how, arg, in, out}, n, values_before, opts);
}
