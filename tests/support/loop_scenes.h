/*
 * loop_scenes.h - loops held against their sequential twins, for threads and for simulations.
 *
 *     static int scene(void *arg) { struct loop_dice d = ...; loop_check_for(&d, n); ... }
 *
 * Each loop_check_* draws a size up to `n_max` and options from the dice, runs the loop in the calling
 * task and checks the result. Bodies waver: some stand at a delay point, some yield, some sleep.
 */
#ifndef T_LOOP_SCENES_H
#define T_LOOP_SCENES_H

#include <stdlib.h>
#include <string.h>

#include "harness.h"

#include "base/bz_atomic.h"
#include "blitz.h"
#include "proc/state.h"

struct loop_dice {
    uint64_t state;
    size_t n_max;
    unsigned wavers; /* one index in so many does; 0: none */
};

static inline uint64_t loop_mix(uint64_t x)
{
    x = (x ^ (x >> 31)) * UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 29)) * UINT64_C(0xbf58476d1ce4e5b9);
    return x ^ (x >> 32);
}

static inline uint64_t loop_roll(struct loop_dice *d, uint64_t below)
{
    d->state += UINT64_C(0x9e3779b97f4a7c15);
    return loop_mix(d->state) % below;
}

/* 0, 1 and 2 often; the rest evenly over the orders of magnitude. */
static inline size_t loop_size(struct loop_dice *d)
{
    if (loop_roll(d, 8) == 0)
        return (size_t)loop_roll(d, 3);
    size_t most = (size_t)1 << loop_roll(d, 18);
    return (size_t)loop_roll(d, 1 + (most < d->n_max ? most : d->n_max));
}

static inline blitz_par_opts loop_opts(struct loop_dice *d, size_t n)
{
    blitz_par_opts o = {0, 0, 0};
    if (loop_roll(d, 2) == 0)
        o.grain = (size_t)loop_roll(d, 2 + n / 4);
    if (loop_roll(d, 2) == 0)
        o.chunk_max = 1 + (size_t)loop_roll(d, 1 + n / (1 + (size_t)loop_roll(d, 64)));
    return o;
}

/* Inside a body: let the seed, or the system, choose the next thread. */
static inline void loop_waver(unsigned wavers, size_t i)
{
    uint64_t dice = loop_mix(i + 77);
    struct bz_machine *m = bz_machine_self();
    if (wavers == 0 || m == NULL || dice % wavers != 0)
        return;
    dice /= wavers;
    if (dice % 16 == 0)
        CHECK_EQ(blitz_sleep(1 + dice % BLITZ_US), 0);
    else if (dice % 4 == 0)
        blitz_yield();
    else
        bz_os_delay_here(m->rt->os, BZ_OS_AT_PUBLISH);
}

/* ---- loops: every index once, and chunks as they were asked for ---- */

typedef bz_atomic(uint8_t) loop_mark;

struct loop_marks {
    loop_mark *mark;
    size_t n, columns; /* of a table: cells and its width */
    blitz_par_opts opts;
    unsigned wavers;
};

static inline void loop_visit(struct loop_marks *m, size_t i)
{
    loop_waver(m->wavers, i);
    CHECK_LT(i, m->n);
    bz_fetch_add_relaxed(&m->mark[i], 1);
}

/* A chunk of that many cells of all: is it what the options allow? */
static inline void loop_check_chunk(const struct loop_marks *m, size_t cells)
{
    size_t grain = m->opts.grain > 0 ? m->opts.grain : 1, most = m->opts.chunk_max;
    CHECK_GT(cells, 0u);
    CHECK_GE(cells, grain < m->n ? grain : m->n);
    if (most > 0 && cells > most)
        CHECK_LT(cells, 2 * grain);
}

static inline int loop_range_body(size_t from, size_t to, void *arg)
{
    struct loop_marks *m = arg;
    loop_check_chunk(m, to - from);
    if (m->opts.grain > 0)
        CHECK_EQ(from % m->opts.grain, 0u);
    for (size_t i = from; i < to; i++)
        loop_visit(m, i);
    return 0;
}

static inline int loop_index_body(size_t i, void *arg)
{
    loop_visit(arg, i);
    return 0;
}

static inline int loop_tile_body(size_t row, size_t row_end, size_t column, size_t column_end,
                                 void *arg)
{
    struct loop_marks *m = arg;
    CHECK_LT(row, row_end);
    CHECK_LT(column, column_end);
    CHECK_LE(column_end, m->columns);
    size_t cells = (row_end - row) * (column_end - column);
    size_t grain = m->opts.grain > 0 ? m->opts.grain : 1;
    CHECK_GE(cells, grain < m->n ? grain : m->n);
    for (size_t r = row; r < row_end; r++)
        for (size_t c = column; c < column_end; c++)
            loop_visit(m, r * m->columns + c);
    return 0;
}

static inline struct loop_marks loop_marks_of(struct loop_dice *d, size_t n)
{
    struct loop_marks m = {calloc(n + 1, 1), n, 1, loop_opts(d, n), d->wavers};
    CHECK_NOT_NULL(m.mark);
    return m;
}

static inline void loop_marks_check(struct loop_marks *m)
{
    for (size_t i = 0; i < m->n; i++)
        CHECK_EQ(bz_load_relaxed(&m->mark[i]), 1);
    free(m->mark);
}

static inline void loop_check_for(struct loop_dice *d)
{
    struct loop_marks m = loop_marks_of(d, loop_size(d));
    CHECK_EQ(blitz_for(m.n, loop_range_body, &m, &m.opts), 0);
    loop_marks_check(&m);
    m = loop_marks_of(d, loop_size(d));
    CHECK_EQ(blitz_for_each(m.n, loop_index_body, &m, &m.opts), 0);
    loop_marks_check(&m);
}

static inline void loop_check_2d(struct loop_dice *d)
{
    size_t n = loop_size(d), columns = 1 + (size_t)loop_roll(d, 1 + n);
    size_t rows = n / columns + (size_t)loop_roll(d, 2);
    struct loop_marks m = loop_marks_of(d, rows * columns);
    m.columns = columns;
    CHECK_EQ(blitz_for_2d(rows, columns, loop_tile_body, &m, &m.opts), 0);
    loop_marks_check(&m);
}

/* ---- reductions: a product in which the order counts ---- */

/* The word that the indexes spell, as a polynomial; `filler` makes it large. */
struct loop_word {
    uint64_t value, power, count;
    unsigned char filler[];
};

struct loop_spelling {
    size_t bytes;
    unsigned wavers;
};

static inline void loop_word_init(void *acc, void *arg)
{
    const struct loop_spelling *s = arg;
    struct loop_word *w = acc;
    CHECK_EQ((uintptr_t)acc % _Alignof(max_align_t), 0u);
    *w = (struct loop_word){0, 1, 0};
    memset(w->filler, 0xa5, s->bytes - sizeof *w);
}

static inline void loop_word_add(struct loop_word *w, uint64_t letter)
{
    w->value = w->value * UINT64_C(1000003) + letter;
    w->power *= UINT64_C(1000003);
    w->count++;
}

static inline int loop_word_map(void *acc, size_t from, size_t to, void *arg)
{
    const struct loop_spelling *s = arg;
    for (size_t i = from; i < to; i++) {
        loop_waver(s->wavers, i);
        loop_word_add(acc, loop_mix(i));
    }
    return 0;
}

static inline void loop_word_combine(void *acc, const void *right, void *arg)
{
    const struct loop_spelling *s = arg;
    struct loop_word *l = acc;
    const struct loop_word *r = right;
    l->value = l->value * r->power + r->value;
    l->power *= r->power;
    l->count += r->count;
    for (size_t i = 0; i < s->bytes - sizeof *r; i++)
        CHECK_EQ(r->filler[i], 0xa5);
}

/* Small, just small enough, large. */
static inline size_t loop_word_bytes(struct loop_dice *d)
{
    static const size_t bytes[] = {sizeof(struct loop_word), 64, 80, 1000};
    return bytes[loop_roll(d, 4)];
}

static inline blitz_reduction loop_reduction(size_t bytes)
{
    return (blitz_reduction){bytes, loop_word_init, loop_word_map, loop_word_combine};
}

static inline void loop_check_reduce(struct loop_dice *d)
{
    size_t n = loop_size(d);
    struct loop_spelling s = {loop_word_bytes(d), d->wavers};
    blitz_reduction how = loop_reduction(s.bytes);
    blitz_par_opts opts = loop_opts(d, n);
    struct loop_word *got = malloc(s.bytes), want = {0, 1, 0};
    opts.is_ordered = loop_roll(d, 3) == 0;
    CHECK_NOT_NULL(got);
    for (size_t i = 0; i < n; i++)
        loop_word_add(&want, loop_mix(i));
    CHECK_EQ(blitz_reduce(n, &how, &s, got, &opts), 0);
    CHECK_EQ(got->count, n);
    CHECK_EQ(got->value, want.value);
    CHECK_EQ(got->power, want.power);
    free(got);
}

/* ---- scans ---- */

/* Letters in, the value of the word so far out, over them. */
struct loop_scan {
    struct loop_spelling s;
    uint64_t *at;
    bool is_exclusive;
};

static inline void loop_scan_init(void *acc, void *arg)
{
    loop_word_init(acc, &((struct loop_scan *)arg)->s);
}

static inline void loop_scan_combine(void *acc, const void *right, void *arg)
{
    loop_word_combine(acc, right, &((struct loop_scan *)arg)->s);
}

static inline int loop_scan_map(void *acc, size_t from, size_t to, void *arg)
{
    struct loop_scan *s = arg;
    for (size_t i = from; i < to; i++) {
        loop_waver(s->s.wavers, i);
        loop_word_add(acc, s->at[i]);
    }
    return 0;
}

static inline int loop_scan_emit(void *acc, size_t from, size_t to, void *arg)
{
    struct loop_scan *s = arg;
    struct loop_word *w = acc;
    for (size_t i = from; i < to; i++) {
        uint64_t before = w->value;
        loop_waver(s->s.wavers, i + 1);
        loop_word_add(w, s->at[i]);
        s->at[i] = s->is_exclusive ? before : w->value;
    }
    return 0;
}

static inline void loop_check_scan(struct loop_dice *d)
{
    size_t n = loop_size(d);
    struct loop_scan s = {{loop_word_bytes(d), d->wavers}, malloc((n + 1) * 8), loop_roll(d, 2)};
    blitz_reduction how = {s.s.bytes, loop_scan_init, loop_scan_map, loop_scan_combine};
    blitz_par_opts opts = loop_opts(d, n);
    struct loop_word *total = malloc(s.s.bytes), want = {0, 1, 0};
    for (size_t i = 0; i < n; i++)
        s.at[i] = loop_mix(i);
    CHECK_EQ(blitz_scan(n, &how, loop_scan_emit, &s, total, &opts), 0);
    for (size_t i = 0; i < n; i++) {
        uint64_t before = want.value;
        loop_word_add(&want, loop_mix(i));
        CHECK_EQ(s.at[i], s.is_exclusive ? before : want.value);
    }
    CHECK_EQ(total->value, want.value);
    CHECK_EQ(total->count, n);
    free(total);
    free(s.at);
}

/* An array of words, scanned onto itself or into another. */
static inline void loop_check_scan_values(struct loop_dice *d)
{
    size_t n = loop_size(d) % 5000, bytes = loop_word_bytes(d);
    struct loop_spelling s = {bytes, 0};
    blitz_reduction how = loop_reduction(bytes);
    blitz_par_opts opts = loop_opts(d, n);
    bool is_exclusive = loop_roll(d, 2), is_in_place = loop_roll(d, 2);
    char *in = calloc(n + 1, bytes), *out = is_in_place ? in : calloc(n + 1, bytes);
    for (size_t i = 0; i < n; i++) {
        memset(in + i * bytes, 0xa5, bytes);
        *(struct loop_word *)(in + i * bytes) = (struct loop_word){0, 1, 0};
        loop_word_add((struct loop_word *)(in + i * bytes), loop_mix(i));
    }
    int err = is_exclusive ? blitz_scan_exclusive(n, in, out, &how, &s, &opts)
                           : blitz_scan_inclusive(n, in, out, &how, &s, &opts);
    CHECK_EQ(err, 0);
    struct loop_word want = {0, 1, 0};
    for (size_t i = 0; i < n; i++) {
        uint64_t before = want.value;
        loop_word_add(&want, loop_mix(i));
        const struct loop_word *got = (const struct loop_word *)(out + i * bytes);
        CHECK_EQ(got->value, is_exclusive ? before : want.value);
    }
    if (!is_in_place)
        free(out);
    free(in);
}

/* ---- pipelines ---- */

struct loop_pipe {
    size_t n, made, dropped; /* by the source; likewise counted where one at a time is there */
    bz_atomic(size_t) alive, at_once, most, parallel;
    size_t in_order, serial;
    unsigned wavers;
};

struct loop_item {
    size_t number;
    unsigned steps;
};

static inline int loop_pipe_source(void **item, void *arg)
{
    struct loop_pipe *p = arg;
    if (p->made == p->n)
        return 0;
    struct loop_item *it = malloc(sizeof *it);
    CHECK_NOT_NULL(it);
    *it = (struct loop_item){p->made++, 0};
    bz_fetch_add_relaxed(&p->alive, 1);
    size_t now = bz_fetch_add_relaxed(&p->at_once, 1) + 1;
    if (now > bz_load_relaxed(&p->most)) /* relaxed: one source at a time */
        bz_store_relaxed(&p->most, now); /* relaxed: likewise */
    *item = it;
    return 0;
}

static inline int loop_pipe_parallel(void **item, void *arg)
{
    struct loop_pipe *p = arg;
    struct loop_item *it = *item;
    loop_waver(p->wavers, it->number);
    it->steps++;
    bz_fetch_add_relaxed(&p->parallel, 1);
    return 0;
}

/* Every seventh ends here. */
static inline int loop_pipe_filter(void **item, void *arg)
{
    struct loop_pipe *p = arg;
    struct loop_item *it = *item;
    it->steps++;
    if (it->number % 7 != 6)
        return 0;
    free(it);
    *item = NULL;
    bz_fetch_sub_relaxed(&p->alive, 1);
    bz_fetch_sub_relaxed(&p->at_once, 1);
    return 0;
}

static inline int loop_pipe_serial(void **item, void *arg)
{
    struct loop_pipe *p = arg;
    struct loop_item *it = *item;
    size_t was = p->serial;
    loop_waver(p->wavers, it->number + 3);
    p->serial = was + 1;
    it->steps++;
    return 0;
}

static inline int loop_pipe_ordered(void **item, void *arg)
{
    struct loop_pipe *p = arg;
    struct loop_item *it = *item;
    if (p->in_order % 7 == 6)
        p->in_order++;
    CHECK_EQ(it->number, p->in_order);
    loop_waver(p->wavers, it->number + 5);
    CHECK_EQ(it->number, p->in_order);
    p->in_order++;
    it->steps++;
    return 0;
}

static inline void loop_pipe_drop(void *item, void *arg)
{
    struct loop_pipe *p = arg;
    free(item);
    bz_fetch_sub_relaxed(&p->alive, 1);
    bz_fetch_sub_relaxed(&p->at_once, 1);
}

static inline void loop_check_pipeline(struct loop_dice *d)
{
    struct loop_pipe p = {.n = loop_size(d) % 300, .wavers = d->wavers};
    blitz_stage stages[] = {{BLITZ_STAGE_PARALLEL, loop_pipe_filter, &p},
                            {BLITZ_STAGE_PARALLEL, loop_pipe_parallel, &p},
                            {BLITZ_STAGE_SERIAL, loop_pipe_serial, &p},
                            {BLITZ_STAGE_ORDERED, loop_pipe_ordered, &p},
                            {BLITZ_STAGE_PARALLEL, loop_pipe_parallel, &p}};
    blitz_pipeline_opts opts = {loop_roll(d, 12), loop_pipe_drop, &p};
    CHECK_EQ(blitz_pipeline(loop_pipe_source, &p, stages, 5, &opts), 0);
    size_t kept = p.n - p.n / 7;
    CHECK_EQ(p.made, p.n);
    CHECK_EQ(p.serial, kept);
    CHECK_EQ(bz_load_relaxed(&p.parallel), 2 * kept);
    CHECK_EQ(bz_load_relaxed(&p.alive), 0u);
    CHECK_LE(bz_load_relaxed(&p.most),
             opts.in_flight > 0 ? opts.in_flight : 4 * (size_t)blitz_worker_count());
}

/* ---- workers ---- */

static inline int loop_worker_body(unsigned worker, void *arg)
{
    bz_atomic(unsigned) *called = arg;
    CHECK_EQ(worker, bz_machine_self()->last->index);
    bz_fetch_add_relaxed(&called[worker], 1);
    return worker == 1 ? 17 : 0;
}

static inline void loop_check_workers(void)
{
    bz_atomic(unsigned) called[64] = {0};
    unsigned count = blitz_worker_count();
    CHECK_LE(count, 64u);
    CHECK_EQ(blitz_on_each_worker(loop_worker_body, called), count > 1 ? 17 : 0);
    for (unsigned i = 0; i < 64; i++)
        CHECK_EQ(bz_load_relaxed(&called[i]), i < count ? 1u : 0u);
}

#endif
