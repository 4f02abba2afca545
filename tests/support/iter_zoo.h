/*
 * iter_zoo.h - every iterator of blitz/iter.h beside its sequential twin.
 *
 *     struct zoo *z = zoo_new(100000);
 *     zoo_fill(z, &rng, n);                  other elements, another cut, another k
 *     z->opts.grain = 16;
 *     int err = zoo_visit(z);                in a task or on a thread; 0, or a check has failed
 *
 * A file may define ZOO_WAVER() before it includes this: it is called in bodies, so that a
 * simulation has something to choose at.
 */
#ifndef T_ITER_ZOO_H
#define T_ITER_ZOO_H

#include <stdlib.h>
#include <string.h>

#include "harness.h"

#include "base/compiler.h"
#include "blitz.h"
#include "blitz/iter.h"

#ifndef ZOO_WAVER
#define ZOO_WAVER() ((void)0)
#endif

struct item {
    int key;
    unsigned tag; /* below 256; and no padding: they are compared as bytes */
};

struct zoo {
    size_t room, n;
    size_t cut; /* a chain: a[0..cut), then a[cut..n) */
    size_t k;   /* of chunks and windows */
    int limit;  /* bodies ask whether an element is it: rare, or nowhere */
    int *a, *b, *out, *want;
    double *x, *y;
    struct item *items, *items_out, *items_want;
    size_t *perm, *sizes, *sizes_want; /* n + 1 */
    long *longs;
    const int **rows;
    blitz_par_opts opts;
};

static inline struct zoo *zoo_new(size_t room)
{
    struct zoo *z = calloc(1, sizeof *z);
    size_t n = room + 1;
    CHECK_NOT_NULL(z);
    z->room = room;
    z->a = calloc(n, sizeof *z->a), z->b = calloc(n, sizeof *z->b);
    z->out = calloc(n, sizeof *z->out), z->want = calloc(n, sizeof *z->want);
    z->x = calloc(n, sizeof *z->x), z->y = calloc(n, sizeof *z->y);
    z->items = calloc(n, sizeof *z->items), z->items_out = calloc(n, sizeof *z->items);
    z->items_want = calloc(n, sizeof *z->items), z->perm = calloc(n, sizeof *z->perm);
    z->sizes = calloc(n, sizeof *z->sizes), z->sizes_want = calloc(n, sizeof *z->sizes);
    z->rows = calloc(n, sizeof *z->rows), z->longs = calloc(n, sizeof *z->longs);
    CHECK(z->a && z->b && z->out && z->want && z->x && z->y && z->items && z->items_out);
    CHECK(z->items_want && z->perm && z->sizes && z->sizes_want && z->rows && z->longs);
    return z;
}

static inline void zoo_free(struct zoo *z)
{
    free(z->a), free(z->b), free(z->out), free(z->want), free(z->x), free(z->y);
    free(z->items), free(z->items_out), free(z->items_want), free(z->perm);
    free(z->sizes), free(z->sizes_want), free((void *)z->rows), free(z->longs), free(z);
}

static inline void zoo_fill(struct zoo *z, size_t n)
{
    CHECK_LE(n, z->room);
    z->n = n;
    z->cut = (size_t)t_random_below(n + 1);
    z->k = 1 + (size_t)t_random_below(t_random_below(4) == 0 ? n + 2 : 9);
    z->limit = (int)t_random_below(3) == 0 ? -1 : (int)t_random_below(2 * (n + 1));
    for (size_t i = 0; i < n; i++) {
        z->a[i] = (int)t_random_below(n + 1), z->b[i] = (int)t_random_below(7);
        z->x[i] = (double)z->a[i], z->y[i] = (double)z->b[i];
        z->items[i] = (struct item){(int)t_random_below(n / 2 + 1), (unsigned)(i % 251)};
        z->perm[i] = i;
    }
    for (size_t i = n; i > 1; i--) {
        size_t j = (size_t)t_random_below(i), was = z->perm[i - 1];
        z->perm[i - 1] = z->perm[j], z->perm[j] = was;
    }
}

#define ZOO_SAME(got, want, count)                            \
    do {                                                      \
        if ((count) > 0)                                      \
            CHECK_MEM_EQ(got, want, (count) * sizeof *(got)); \
    } while (0)

/* ---- map and its kin, over every source ---- */

static inline int zoo_twice(int x)
{
    ZOO_WAVER();
    return 2 * x;
}

BLITZ_MAP_DEFINE(zoo_map, int, BLITZ_EACH(int, x), zoo_twice(x) + (int)(i % 3));
BLITZ_MAP_DEFINE(zoo_map_range, int, BLITZ_RANGE, a[i] - b[i], (const int *, a), (const int *, b));
BLITZ_MAP_DEFINE(zoo_map_at, int, BLITZ_EACH_AT(const struct item, it), it->key + (int)it->tag);
BLITZ_MAP_DEFINE(zoo_map_zip, int, BLITZ_ZIP(int, p, double, q), p - (int)q);
BLITZ_MAP_DEFINE(zoo_map_zip3, int, BLITZ_ZIP3(int, p, double, q, struct item, r),
                 p - (int)q + r.key * by, (int, by));
BLITZ_MAP_DEFINE(zoo_map_chain, int, BLITZ_CHAIN(int, x), x + (int)(i % 5));
BLITZ_MAP_DEFINE(zoo_map_chunks, int, BLITZ_CHUNKS(const int, c, k), c[0] + c[c_n - 1] + (int)c_n,
                 (size_t, k));
BLITZ_MAP_DEFINE(zoo_map_windows, int, BLITZ_WINDOWS(const int, w, k), w[0] - w[k - 1],
                 (size_t, k));

BLITZ_MAP_DEFINE(zoo_map_rev, int, BLITZ_REV(int, x), zoo_twice(x) + (int)(i % 3));
BLITZ_MAP_DEFINE(zoo_map_step, int, BLITZ_STEP(int, x, k), x + (int)(i % 5), (size_t, k));
BLITZ_MAP_DEFINE(zoo_map_interleave, int, BLITZ_INTERLEAVE(int, x), x + (int)(i % 5));
BLITZ_FILTER_DEFINE(zoo_filter_rev, BLITZ_REV(int, x), x % 3 == 0);
BLITZ_FILTER_DEFINE(zoo_filter_step, BLITZ_STEP(int, x, k), x % 3 == 0, (size_t, k));
BLITZ_PARTITION_DEFINE(zoo_partition_interleave, BLITZ_INTERLEAVE(int, x), x % 3 == 0);
BLITZ_SUM_DEFINE(zoo_sum_step, double, BLITZ_STEP(double, x, k), x, (size_t, k));
BLITZ_FIND_FIRST_DEFINE(zoo_find_first_rev, BLITZ_REV(int, x), x == limit, (int, limit));
BLITZ_FIND_LAST_DEFINE(zoo_find_last_interleave, BLITZ_INTERLEAVE(int, x), x == limit,
                       (int, limit));

/* z->want: the two parts of a, in turn, then the rest of the longer one. */
static inline void zoo_interleave(struct zoo *z)
{
    size_t first = 0, second = z->cut;
    for (size_t i = 0; i < z->n; i++) {
        bool is_first = second == z->n || (first < z->cut && i % 2 == 0);
        z->want[i] = is_first ? z->a[first++] : z->a[second++];
    }
}

static inline void zoo_orders(struct zoo *z)
{
    size_t n = z->n, k = z->k, count = 0, kept = 0, at = n, last = n;
    double sum = 0, got = -1;
    int limit = z->limit, *second = z->a + z->cut;
    for (size_t i = 0; i < n; i++)
        z->want[i] = 2 * z->a[n - 1 - i] + (int)(i % 3);
    CHECK_EQ(zoo_map_rev(z->a, n, z->out, &z->opts), 0);
    ZOO_SAME(z->out, z->want, n);
    for (size_t i = 0; i < n; i += k, count++) {
        z->want[count] = z->a[i] + (int)(count % 5);
        sum += z->x[i];
    }
    CHECK_EQ(zoo_map_step(z->a, n, k, z->out, &z->opts), 0);
    ZOO_SAME(z->out, z->want, count);
    CHECK_EQ(zoo_map_step(z->a, n, 0, z->out, &z->opts), -EINVAL);
    CHECK_EQ(zoo_sum_step(z->x, n, k, &got, &z->opts), 0);
    CHECK(got == sum); /* small whole numbers: exact in any order */
    count = 0;
    for (size_t i = n; i-- > 0;)
        if (z->a[i] % 3 == 0)
            z->want[count++] = z->a[i];
    CHECK_EQ(zoo_filter_rev(z->a, n, z->out, &kept, &z->opts), 0);
    CHECK_EQ(kept, count);
    ZOO_SAME(z->out, z->want, count);
    count = 0;
    for (size_t i = 0; i < n; i += k)
        if (z->a[i] % 3 == 0)
            z->want[count++] = z->a[i];
    CHECK_EQ(zoo_filter_step(z->a, n, k, z->out, &kept, &z->opts), 0);
    CHECK_EQ(kept, count);
    ZOO_SAME(z->out, z->want, count);
    for (size_t i = 0; i < n; i++)
        last = z->a[i] == limit ? n - 1 - i : last;
    CHECK_EQ(zoo_find_first_rev(z->a, n, limit, &at, &z->opts), last < n ? 0 : -ENOENT);
    CHECK_EQ(at, last);

    zoo_interleave(z);
    for (size_t i = last = 0; i < n; i++)
        last = z->want[i] == limit ? i + 1 : last;
    at = n;
    CHECK_EQ(zoo_find_last_interleave(z->a, z->cut, second, n - z->cut, limit, &at, &z->opts),
             last > 0 ? 0 : -ENOENT);
    CHECK_EQ(at, last > 0 ? last - 1 : n);
    count = 0;
    for (size_t i = 0; i < n; i++)
        count += z->want[i] % 3 == 0;
    CHECK_EQ(zoo_partition_interleave(z->a, z->cut, second, n - z->cut, z->out, &kept, &z->opts),
             0);
    CHECK_EQ(kept, count);
    for (size_t i = 0, yes = 0, no = count; i < n; i++)
        CHECK_EQ(z->out[z->want[i] % 3 == 0 ? yes++ : no++], z->want[i]);
    for (size_t i = 0; i < n; i++)
        z->want[i] += (int)(i % 5);
    CHECK_EQ(zoo_map_interleave(z->a, z->cut, second, n - z->cut, z->out, &z->opts), 0);
    ZOO_SAME(z->out, z->want, n);
}

static inline void zoo_maps(struct zoo *z)
{
    size_t n = z->n, k = z->k;
    for (size_t i = 0; i < n; i++)
        z->want[i] = 2 * z->a[i] + (int)(i % 3);
    CHECK_EQ(zoo_map(z->a, n, z->out, &z->opts), 0);
    ZOO_SAME(z->out, z->want, n);
    for (size_t i = 0; i < n; i++)
        z->want[i] = z->a[i] - z->b[i];
    CHECK_EQ(zoo_map_range(n, z->a, z->b, z->out, &z->opts), 0);
    ZOO_SAME(z->out, z->want, n);
    CHECK_EQ(zoo_map_zip(z->a, z->y, n, z->out, &z->opts), 0);
    ZOO_SAME(z->out, z->want, n);
    for (size_t i = 0; i < n; i++)
        z->want[i] = z->items[i].key + (int)z->items[i].tag;
    CHECK_EQ(zoo_map_at(z->items, n, z->out, &z->opts), 0);
    ZOO_SAME(z->out, z->want, n);
    for (size_t i = 0; i < n; i++)
        z->want[i] = z->a[i] - z->b[i] + z->items[i].key * 3;
    CHECK_EQ(zoo_map_zip3(z->a, z->y, z->items, n, 3, z->out, &z->opts), 0);
    ZOO_SAME(z->out, z->want, n);
    for (size_t i = 0; i < n; i++)
        z->want[i] = z->a[i] + (int)(i % 5);
    CHECK_EQ(zoo_map_chain(z->a, z->cut, z->a + z->cut, n - z->cut, z->out, &z->opts), 0);
    ZOO_SAME(z->out, z->want, n);

    size_t chunks = 0, windows = 0;
    for (size_t from = 0; from < n; from += k) {
        size_t to = n - from < k ? n : from + k;
        z->want[chunks++] = z->a[from] + z->a[to - 1] + (int)(to - from);
    }
    CHECK_EQ(zoo_map_chunks(z->a, n, k, z->out, &z->opts), 0);
    ZOO_SAME(z->out, z->want, chunks);
    for (; windows + k <= n; windows++)
        z->want[windows] = z->a[windows] - z->a[windows + k - 1];
    CHECK_EQ(zoo_map_windows(z->a, n, k, z->out, &z->opts), 0);
    ZOO_SAME(z->out, z->want, windows);
}

BLITZ_FOR_EACH_DEFINE(
    zoo_for_each, BLITZ_EACH_AT(struct item, it),
    {
        ZOO_WAVER();
        it->key += by;
        it->tag ^= (unsigned)i % 256;
    },
    (int, by));
BLITZ_MAP_IN_PLACE_DEFINE(zoo_in_place, int, x, x *by + b[i], (int, by), (const int *, b));
BLITZ_SCATTER_DEFINE(zoo_scatter, int, BLITZ_ZIP(size_t, to, int, x), to, x + (int)i);

static inline void zoo_writes(struct zoo *z)
{
    size_t n = z->n;
    for (size_t i = 0; i < n; i++) {
        z->items_want[i] = z->items_out[i] = z->items[i];
        z->items_want[i].key += 9, z->items_want[i].tag ^= (unsigned)i % 256;
    }
    CHECK_EQ(zoo_for_each(z->items_out, n, 9, &z->opts), 0);
    ZOO_SAME(z->items_out, z->items_want, n);
    for (size_t i = 0; i < n; i++)
        z->want[i] = z->a[i] * 3 + z->b[i];
    CHECK_EQ(blitz_copy(z->out, z->a, n, sizeof *z->a, NULL), 0);
    ZOO_SAME(z->out, z->a, n);
    CHECK_EQ(zoo_in_place(z->out, n, 3, z->b, &z->opts), 0);
    ZOO_SAME(z->out, z->want, n);
    for (size_t i = 0; i < n; i++)
        z->want[z->perm[i]] = z->a[i] + (int)i;
    CHECK_EQ(zoo_scatter(z->perm, z->a, n, z->out, n, &z->opts), 0);
    ZOO_SAME(z->out, z->want, n);
    if (n > 0)
        CHECK_EQ(zoo_scatter(z->perm, z->a, n, z->out, n - 1, &z->opts), -ERANGE);
    struct item one = {42, 7};
    for (size_t i = 0; i < n; i++)
        z->items_want[i] = one;
    CHECK_EQ(blitz_fill(z->items_out, n, &one, sizeof one, NULL), 0);
    ZOO_SAME(z->items_out, z->items_want, n);
}

/* ---- other shapes ---- */

static inline int zoo_is_small(int x, int b)
{
    ZOO_WAVER();
    return x % 7 < b;
}

BLITZ_FILTER_DEFINE(zoo_filter, BLITZ_EACH(int, x), zoo_is_small(x, b[i]), (const int *, b));
BLITZ_FILTER_DEFINE(zoo_filter_chain, BLITZ_CHAIN(int, x), zoo_is_small(x, b[i]), (const int *, b));
BLITZ_FILTER_DEFINE(zoo_filter_range, BLITZ_RANGE, a[i] % 2, (const int *, a));
BLITZ_FILTER_MAP_DEFINE(zoo_filter_map, int, BLITZ_EACH(int, x), x != 0, 1000000 / x);
BLITZ_FILTER_MAP_DEFINE(zoo_filter_windows, int, BLITZ_WINDOWS(const int, w, 2), w[0] < w[1],
                        (int)i);
BLITZ_PARTITION_DEFINE(zoo_partition, BLITZ_EACH(struct item, it), it.key < limit, (int, limit));
BLITZ_PARTITION_DEFINE(zoo_partition_chain, BLITZ_CHAIN(int, x), x % 3 == 0);

static inline void zoo_filters(struct zoo *z)
{
    size_t n = z->n, kept = 0, want = 0;
    for (size_t i = 0; i < n; i++)
        if (z->a[i] % 7 < z->b[i])
            z->want[want++] = z->a[i];
    CHECK_EQ(zoo_filter(z->a, n, z->b, z->out, &kept, &z->opts), 0);
    CHECK_EQ(kept, want);
    ZOO_SAME(z->out, z->want, want);
    memset(z->out, 0, n * sizeof *z->out);
    CHECK_EQ(
        zoo_filter_chain(z->a, z->cut, z->a + z->cut, n - z->cut, z->b, z->out, &kept, &z->opts),
        0);
    CHECK_EQ(kept, want);
    ZOO_SAME(z->out, z->want, want);
    want = 0;
    for (size_t i = 0; i < n; i++)
        if (z->a[i] % 2)
            z->sizes_want[want++] = i;
    CHECK_EQ(zoo_filter_range(n, z->a, z->sizes, &kept, &z->opts), 0);
    CHECK_EQ(kept, want);
    ZOO_SAME(z->sizes, z->sizes_want, want);
    want = 0;
    for (size_t i = 0; i < n; i++)
        if (z->a[i] != 0)
            z->want[want++] = 1000000 / z->a[i];
    CHECK_EQ(zoo_filter_map(z->a, n, z->out, &kept, &z->opts), 0);
    CHECK_EQ(kept, want);
    ZOO_SAME(z->out, z->want, want);
    want = 0;
    for (size_t i = 0; i + 1 < n; i++)
        if (z->a[i] < z->a[i + 1])
            z->want[want++] = (int)i;
    CHECK_EQ(zoo_filter_windows(z->a, n, z->out, &kept, &z->opts), 0);
    CHECK_EQ(kept, want);
    ZOO_SAME(z->out, z->want, want);
}

static inline void zoo_partitions(struct zoo *z)
{
    size_t n = z->n, kept = 0, want = 0;
    int limit = (int)(n / 4);
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0, at = want; i < n; i++)
            if ((z->items[i].key < limit) == (pass == 0)) {
                z->items_want[at++] = z->items[i];
                want += pass == 0;
            }
    CHECK_EQ(zoo_partition(z->items, n, limit, z->items_out, &kept, &z->opts), 0);
    CHECK_EQ(kept, want);
    ZOO_SAME(z->items_out, z->items_want, n);
    want = 0;
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0, at = want; i < n; i++)
            if ((z->a[i] % 3 == 0) == (pass == 0)) {
                z->want[at++] = z->a[i];
                want += pass == 0;
            }
    CHECK_EQ(zoo_partition_chain(z->a, z->cut, z->a + z->cut, n - z->cut, z->out, &kept, &z->opts),
             0);
    CHECK_EQ(kept, want);
    ZOO_SAME(z->out, z->want, n);
}

BLITZ_OFFSETS_DEFINE(zoo_offsets, BLITZ_EACH(int, x), (size_t)x);
BLITZ_FLATTEN_DEFINE(zoo_flatten, int, BLITZ_EACH(const int *, row), row);
BLITZ_FLATTEN_DEFINE(zoo_flatten_chain, int, BLITZ_CHAIN(const int *, row), row);

/* Rows of 0 to 6 elements of a, and one that is as long as all that are left. */
static inline void zoo_rows(struct zoo *z)
{
    size_t n = z->n, rows = n / 4, at = 0, total = 0;
    for (size_t i = 0; i < rows; i++) {
        size_t size = (size_t)z->b[i];
        if (i == rows / 2)
            size = n / 3;
        size = size < n - at ? size : n - at;
        z->out[i] = (int)size; /* the source of the offsets */
        z->rows[i] = size > 0 ? z->a + (size_t)z->b[i] % (n - size + 1) : NULL;
        z->sizes_want[i] = at;
        at += size;
    }
    z->sizes_want[rows] = total = at;
    for (size_t i = 0; i < rows; i++)
        for (size_t j = z->sizes_want[i]; j < z->sizes_want[i + 1]; j++)
            z->want[j] = z->rows[i][j - z->sizes_want[i]];
    CHECK_EQ(zoo_offsets(z->out, rows, z->sizes, &z->opts), 0);
    ZOO_SAME(z->sizes, z->sizes_want, rows + 1);
    CHECK_EQ(zoo_flatten(z->rows, rows, z->sizes, z->out, &z->opts), 0);
    ZOO_SAME(z->out, z->want, total);
    memset(z->out, 0, total * sizeof *z->out);
    CHECK_EQ(zoo_flatten_chain(z->rows, rows / 3, z->rows + rows / 3, rows - rows / 3, z->sizes,
                               z->out, &z->opts),
             0);
    ZOO_SAME(z->out, z->want, total);
}

/* ---- one value of all ---- */

struct
    affine { /* x -> m * x + c, modulo a prime; one after the other is associative, not commutative */
    uint32_t m, c;
};
enum { ZOO_PRIME = 65521 };

static inline struct affine zoo_then(struct affine f, struct affine g)
{
    struct affine h = {f.m * g.m % ZOO_PRIME, (g.m * f.c + g.c) % ZOO_PRIME};
    return h;
}
static inline struct affine zoo_affine(int m, int c)
{
    struct affine f = {(uint32_t)(m % ZOO_PRIME), (uint32_t)c};
    ZOO_WAVER();
    return f;
}
struct counts {
    size_t of[256];
};
static inline void zoo_counts_add(struct counts *to, const struct counts *from)
{
    for (int i = 0; i < 256; i++)
        to->of[i] += from->of[i];
}

BLITZ_SUM_DEFINE(zoo_sum, long, BLITZ_EACH(int, x), x *by, (long, by));
BLITZ_SUM_DEFINE(zoo_sum_chain, double, BLITZ_CHAIN(double, x), x);
BLITZ_DOT_DEFINE(zoo_dot, double);
BLITZ_COUNT_DEFINE(zoo_count, BLITZ_WINDOWS(const int, w, 2), w[0] < w[1]);
BLITZ_MIN_DEFINE(zoo_min, int, BLITZ_ZIP(int, p, int, q), p - q);
BLITZ_MAX_DEFINE(zoo_max, double, BLITZ_CHAIN(double, x), x);
BLITZ_MIN_BY_DEFINE(zoo_min_by, struct item, p, q, p.key < q.key);
BLITZ_MAX_BY_DEFINE(zoo_max_by, struct item, p, q, p.key < q.key);
BLITZ_MIN_BY_KEY_DEFINE(zoo_min_by_key, int, BLITZ_CHAIN(struct item, it), it.key + by, (int, by));
BLITZ_MAX_BY_KEY_DEFINE(zoo_max_by_key, int, BLITZ_EACH_AT(const struct item, it), it->key);
BLITZ_REDUCE_DEFINE(zoo_reduce, struct affine, zoo_affine(1, 0), BLITZ_ZIP(int, m, int, c),
                    zoo_affine(m, c), f, g, zoo_then(f, g));
BLITZ_FOLD_DEFINE(zoo_fold, struct counts, acc, memset(acc, 0, sizeof *acc),
                  BLITZ_EACH_AT(const struct item, it), acc->of[it->tag]++, right,
                  zoo_counts_add(acc, right));

static inline void zoo_folds(struct zoo *z)
{
    size_t n = z->n, rising = 0, got_n = 0;
    long sum = 0, got_sum = -1;
    double dot = 0, of_chain = 0, got = -1;
    struct affine f = {1, 0}, got_f = {0, 0};
    struct counts *counts = calloc(2, sizeof *counts);
    CHECK_NOT_NULL(counts);
    for (size_t i = 0; i < n; i++) {
        sum += z->a[i] * 3L, dot += z->x[i] * z->y[i], of_chain += z->x[i];
        rising += i + 1 < n && z->a[i] < z->a[i + 1];
        f = zoo_then(f, zoo_affine(z->a[i], z->b[i]));
        counts[0].of[z->items[i].tag]++;
    }
    CHECK_EQ(zoo_sum(z->a, n, 3, &got_sum, &z->opts), 0);
    CHECK_EQ(got_sum, sum);
    CHECK_EQ(zoo_sum_chain(z->x, z->cut, z->x + z->cut, n - z->cut, &got, &z->opts), 0);
    CHECK(got == of_chain); /* small whole numbers: exact in any order */
    CHECK_EQ(zoo_dot(z->x, z->y, n, &got, &z->opts), 0);
    CHECK(got == dot);
    CHECK_EQ(zoo_count(z->a, n, &got_n, &z->opts), 0);
    CHECK_EQ(got_n, rising);
    CHECK_EQ(zoo_reduce(z->a, z->b, n, &got_f, &z->opts), 0);
    CHECK_EQ(got_f.m, f.m);
    CHECK_EQ(got_f.c, f.c);
    CHECK_EQ(zoo_fold(z->items, n, &counts[1], &z->opts), 0);
    CHECK_MEM_EQ(&counts[1], &counts[0], sizeof *counts);
    free(counts);
}

static inline void zoo_bests(struct zoo *z)
{
    size_t n = z->n, least_at = 0, most_at = 0, at = 77;
    int least = 0, got = 0, want = n > 0 ? 0 : -ENOENT;
    double most = 0, got_x = 0;
    for (size_t i = 0; i < n; i++) {
        least = i == 0 || z->a[i] - z->b[i] < least ? z->a[i] - z->b[i] : least;
        most = i == 0 || z->x[i] > most ? z->x[i] : most;
        least_at = z->items[i].key < z->items[least_at].key ? i : least_at;
        most_at = z->items[i].key > z->items[most_at].key ? i : most_at;
    }
    CHECK_EQ(zoo_min(z->a, z->b, n, &got, &z->opts), want);
    CHECK_EQ(got, least);
    CHECK_EQ(zoo_max(z->x, z->cut, z->x + z->cut, n - z->cut, &got_x, &z->opts), want);
    CHECK(got_x == most);
    CHECK_EQ(zoo_min_by(z->items, n, &at, &z->opts), want);
    CHECK_EQ(at, n > 0 ? least_at : 77);
    CHECK_EQ(zoo_max_by(z->items, n, &at, &z->opts), want);
    CHECK_EQ(at, n > 0 ? most_at : 77);
    CHECK_EQ(zoo_min_by_key(z->items, z->cut, z->items + z->cut, n - z->cut, -5, &at, &z->opts),
             want);
    CHECK_EQ(at, n > 0 ? least_at : 77);
    CHECK_EQ(zoo_max_by_key(z->items, n, &at, &z->opts), want);
    CHECK_EQ(at, n > 0 ? most_at : 77);
}

/* ---- early ends ---- */

static inline int zoo_is(int x, int limit)
{
    ZOO_WAVER();
    return x == limit;
}
static inline int zoo_check(int x, int limit, size_t i, long *v)
{
    ZOO_WAVER();
    *v = x;
    return x == limit ? (int)(i % 1000) + 1 : 0;
}

BLITZ_ANY_DEFINE(zoo_any, BLITZ_EACH(int, x), zoo_is(x, limit), (int, limit));
BLITZ_ALL_DEFINE(zoo_all, BLITZ_CHAIN(int, x), x != limit, (int, limit));
BLITZ_FIND_ANY_DEFINE(zoo_find_any, BLITZ_EACH(int, x), zoo_is(x, limit), (int, limit));
BLITZ_FIND_FIRST_DEFINE(zoo_find_first, BLITZ_EACH(int, x), zoo_is(x, limit), (int, limit));
BLITZ_FIND_FIRST_DEFINE(zoo_find_first_chain, BLITZ_CHAIN(int, x), x == limit, (int, limit));
BLITZ_FIND_LAST_DEFINE(zoo_find_last, BLITZ_EACH(int, x), zoo_is(x, limit), (int, limit));
BLITZ_FIND_LAST_DEFINE(zoo_find_last_chain, BLITZ_CHAIN(int, x), x == limit, (int, limit));
BLITZ_POSITION_DEFINE(zoo_position, int);
BLITZ_TRY_FOR_EACH_DEFINE(zoo_try, BLITZ_EACH(int, x), zoo_check(x, limit, i, &out[i]),
                          (int, limit), (long *, out));
BLITZ_TRY_REDUCE_DEFINE(zoo_try_sum, long, 0, BLITZ_CHAIN(int, x), v, zoo_check(x, limit, i, v), p,
                        q, p + q, (int, limit));

static inline void zoo_finds(struct zoo *z)
{
    size_t n = z->n, first = n, last = n, at = 0;
    int limit = z->limit;
    for (size_t i = 0; i < n; i++)
        if (z->a[i] == limit) {
            first = first == n ? i : first;
            last = i;
        }
    int want = first < n ? 0 : -ENOENT;
    CHECK_EQ(zoo_any(z->a, n, limit, &z->opts), first < n);
    CHECK_EQ(zoo_all(z->a, z->cut, z->a + z->cut, n - z->cut, limit, &z->opts), first == n);
    CHECK_EQ(zoo_find_any(z->a, n, limit, &at, &z->opts), want);
    CHECK(want != 0 || z->a[at] == limit);
    at = n;
    CHECK_EQ(zoo_find_first(z->a, n, limit, &at, &z->opts), want);
    CHECK_EQ(at, first);
    CHECK_EQ(zoo_find_first_chain(z->a, z->cut, z->a + z->cut, n - z->cut, limit, &at, &z->opts),
             want);
    CHECK_EQ(at, first);
    CHECK_EQ(zoo_position(z->a, n, limit, &at, &z->opts), want);
    CHECK_EQ(at, first);
    CHECK_EQ(zoo_find_last(z->a, n, limit, &at, &z->opts), want);
    CHECK_EQ(at, last);
    CHECK_EQ(zoo_find_last_chain(z->a, z->cut, z->a + z->cut, n - z->cut, limit, &at, &z->opts),
             want);
    CHECK_EQ(at, last);
}

static inline void zoo_tries(struct zoo *z)
{
    size_t n = z->n;
    int want = 0;
    long sum = 0, got = -1, *out = z->longs;
    for (size_t i = n; i-- > 0;)
        want = z->a[i] == z->limit ? (int)(i % 1000) + 1 : want;
    for (size_t i = 0; i < n; i++)
        sum += z->a[i];
    CHECK_EQ(zoo_try(z->a, n, z->limit, out, &z->opts), want);
    for (size_t i = 0; i < n; i++) { /* all before the one that failed were done */
        CHECK_EQ(out[i], z->a[i]);
        if (z->a[i] == z->limit)
            break;
    }
    CHECK_EQ(zoo_try_sum(z->a, z->cut, z->a + z->cut, n - z->cut, z->limit, &got, &z->opts), want);
    CHECK_EQ(got, want == 0 ? sum : -1);
}

static inline int zoo_visit(void *arg)
{
    struct zoo *z = arg;
    zoo_maps(z);
    zoo_orders(z);
    zoo_writes(z);
    zoo_filters(z);
    zoo_partitions(z);
    zoo_rows(z);
    zoo_folds(z);
    zoo_bests(z);
    zoo_finds(z);
    zoo_tries(z);
    return 0;
}

#endif
