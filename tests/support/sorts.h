/*
 * sorts.h - arrays in the orders that sorts go wrong on, and every sort of blitz as a sort of numbers.
 *
 * Each row of sorts_all puts n uint64_t into ascending order; its result is compared with qsort.
 */
#ifndef T_SORTS_H
#define T_SORTS_H

#include <stdlib.h>
#include <string.h>

#include "harness.h"

#include "base/compiler.h"
#include "blitz.h"
#include "blitz/sort.h"

enum sorts_order {
    SORTS_RANDOM,
    SORTS_SORTED,
    SORTS_REVERSED,
    SORTS_EQUAL,
    SORTS_FEW,
    SORTS_ORGAN_PIPE,
    SORTS_SAWTOOTH,
    SORTS_NEARLY,
    SORTS_APPENDED,
    SORTS_CLUSTERED,
    SORTS_NARROW,
    SORTS_ORDERS
};

static inline uint64_t sorts_number(enum sorts_order order, size_t i, size_t n, struct t_rng *r)
{
    switch (order) {
    case SORTS_SORTED:
        return i * 3;
    case SORTS_REVERSED:
        return (n - i) * 5;
    case SORTS_EQUAL:
        return 7;
    case SORTS_FEW:
        return t_rng_below(r, 10);
    case SORTS_ORGAN_PIPE:
        return i < n / 2 ? i : n - i;
    case SORTS_SAWTOOTH:
        return i % (1 + n / 7);
    case SORTS_NEARLY:
        return t_rng_below(r, 50) == 0 ? t_rng_below(r, n) : i;
    case SORTS_APPENDED:
        return i < n - n / 10 ? i : t_rng_below(r, n);
    case SORTS_CLUSTERED: /* one outlier, and the rest in a few far corners */
        return i == n / 3 ? UINT64_MAX : (t_rng_next(r) & 0xffff) << (16 * (t_rng_next(r) % 3));
    case SORTS_NARROW:
        return UINT64_C(0x123456789abc0000) + t_rng_below(r, 3000);
    default:
        return t_rng_next(r);
    }
}

static inline void sorts_fill(uint64_t *v, size_t n, enum sorts_order order, struct t_rng *r)
{
    for (size_t i = 0; i < n; i++)
        v[i] = sorts_number(order, i, n, r);
}

/* The twin. */
static inline int sorts_compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static inline void sorts_twin(uint64_t *v, size_t n)
{
    if (n > 0)
        qsort(v, n, sizeof *v, sorts_compare);
}

/* ---- every sort as a sort of uint64_t ---- */

static inline int sorts_compare_arg(const void *a, const void *b, void *arg)
{
    (void)arg;
    return sorts_compare(a, b);
}

static inline uint64_t sorts_key(const void *element, void *arg)
{
    (void)arg;
    return *(const uint64_t *)element;
}

static inline int sorts_less(const uint64_t *a, const uint64_t *b)
{
    return *a < *b;
}
BLITZ_SORT_DEFINE(sorts_defined, uint64_t, sorts_less);

static inline int sorts_by_compare(uint64_t *v, size_t n)
{
    return blitz_sort(v, n, sizeof *v, sorts_compare_arg, NULL);
}
static inline int sorts_stable(uint64_t *v, size_t n)
{
    return blitz_sort_stable(v, n, sizeof *v, sorts_compare_arg, NULL);
}
static inline int sorts_by_key(uint64_t *v, size_t n)
{
    return blitz_sort_by_key(v, n, sizeof *v, sorts_key, NULL);
}
static inline int sorts_stable_by_key(uint64_t *v, size_t n)
{
    return blitz_sort_stable_by_key(v, n, sizeof *v, sorts_key, NULL);
}
static inline int sorts_by_cached_key(uint64_t *v, size_t n)
{
    return blitz_sort_by_cached_key(v, n, sizeof *v, sorts_key, NULL);
}

struct sorts_row {
    const char *name;
    int (*sort)(uint64_t *v, size_t n);
};

static const struct sorts_row sorts_all[] = {
    {"blitz_sort", sorts_by_compare},
    {"blitz_sort_stable", sorts_stable},
    {"blitz_sort_by_key", sorts_by_key},
    {"blitz_sort_stable_by_key", sorts_stable_by_key},
    {"blitz_sort_by_cached_key", sorts_by_cached_key},
    {"BLITZ_SORT_DEFINE", sorts_defined},
    {"blitz_sort_uint64", blitz_sort_uint64},
};

/* A number that depends on which elements there are, and not on their order. */
static inline uint64_t sorts_sum(const uint64_t *v, size_t n)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t x = (v[i] ^ v[i] >> 29) * UINT64_C(0xbf58476d1ce4e5b9);
        sum += (x ^ x >> 32) * UINT64_C(0x94d049bb133111eb);
    }
    return sum;
}

/* One array by one sort, and its twin; a long one by what makes it sorted, which is quicker. */
static inline void sorts_check(const struct sorts_row *row, enum sorts_order order, size_t n,
                               struct t_rng *r)
{
    enum { LONG = 30000 };
    uint64_t *v = malloc((n + 2) * sizeof *v), *want = malloc((n + 2) * sizeof *v);
    CHECK_NOT_NULL(v);
    CHECK_NOT_NULL(want);
    t_watch("%s, order %d, n %zu", row->name, (int)order, n);
    v[0] = v[n + 1] = UINT64_C(0xfeedfeedfeedfeed); /* neighbours must stay unchanged */
    sorts_fill(v + 1, n, order, r);
    memcpy(want, v, (n + 2) * sizeof *v);
    CHECK_EQ(row->sort(v + 1, n), 0);
    CHECK_EQ(sorts_sum(v, n + 2), sorts_sum(want, n + 2));
    for (size_t i = 2; i <= n; i++)
        CHECK_LE(v[i - 1], v[i]);
    sorts_twin(want + 1, n < LONG ? n : 0);
    CHECK_MEM_EQ(v, want, (n < LONG ? n + 2 : 1) * sizeof *v);
    CHECK_EQ(v[n + 1], want[n + 1]);
    free(v);
    free(want);
}

#endif
