/* Sorting with comparisons that lie, that know the worst, and that find all in order. */
#include "harness.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bz_atomic.h"
#include "base/compiler.h"
#include "blitz.h"

/* ---- comparisons that lie ---- */

enum lie { LIE_RANDOM, LIE_MINUS, LIE_PLUS, LIE_ZERO, LIE_CYCLE, LIE_SOMETIMES, LIE_PLACE, LIES };

struct liar {
    enum lie lie;
    bz_atomic(uint64_t) calls;
};

static int lies(const void *a, const void *b, void *arg)
{
    struct liar *l = arg;
    uint64_t x = *(const uint8_t *)a, y = *(const uint8_t *)b;
    uint64_t dice = bz_fetch_add_relaxed(&l->calls, 1) * UINT64_C(0x9e3779b97f4a7c15);
    switch (l->lie) { /* relaxed above: a count */
    case LIE_RANDOM:
        return (int)(dice >> 40) % 3 - 1;
    case LIE_MINUS:
        return -1;
    case LIE_PLUS:
        return 1;
    case LIE_ZERO:
        return 0;
    case LIE_CYCLE: /* paper, scissors, stone */
        return (int)((x - y + 3000) % 3) - 1;
    case LIE_SOMETIMES:
        return dice >> 59 == 0 ? -1 : (x > y) - (x < y);
    default:
        return ((uintptr_t)a > (uintptr_t)b) - ((uintptr_t)a < (uintptr_t)b);
    }
}

static int compare_whole(const void *a, const void *b, void *arg)
{
    return memcmp(a, b, *(size_t *)arg);
}

/* The same elements? By a sort that is not under test. */
static void check_permutation(unsigned char *v, unsigned char *was, size_t n, size_t size)
{
    if (n == 0)
        return;
    qsort_r(v, n, size, compare_whole, &size);
    qsort_r(was, n, size, compare_whole, &size);
    CHECK_MEM_EQ(v, was, n * size);
}

static void sort_with_liar(enum lie lie, size_t n, size_t size, bool is_stable, struct t_rng *r)
{
    unsigned char *v = malloc(n * size + 1), *was = malloc(n * size + 1);
    struct liar l = {lie, 0};
    t_watch("lie %d, n %zu, size %zu, stable %d", (int)lie, n, size, is_stable);
    for (size_t i = 0; i < n * size; i++)
        v[i] = (unsigned char)t_rng_next(r);
    memcpy(was, v, n * size);
    if (is_stable)
        CHECK_EQ(blitz_sort_stable(v, n, size, lies, &l), 0);
    else
        CHECK_EQ(blitz_sort(v, n, size, lies, &l), 0);
    uint64_t calls = bz_load_relaxed(&l.calls), levels = 1; /* relaxed: all is joined */
    while (n >> levels != 0)
        levels++;
    CHECK_LE(calls, 16 * n * levels);
    check_permutation(v, was, n, size);
    free(v);
    free(was);
}

static int sort_with_liars(void *arg)
{
    static const size_t sizes[] = {4, 8, 16, 24, 32, 1, 7, 40, 200};
    struct t_rng *r = arg;
    for (uint64_t round = 0; round < t_scaled(6); round++)
        for (int lie = 0; lie < LIES; lie++)
            for (size_t i = 0; i < BZ_ARRAY_LEN(sizes); i++) {
                size_t n = t_rng_below(r, round % 6 == 0 && i < 3 ? 20000 : 400);
                sort_with_liar((enum lie)lie, n, sizes[i], (round + i) % 2 == 0, r);
            }
    return 0;
}

/* In bounds (the sanitizer sees), in n log n, and nothing lost. */
TEST(sort, a_comparison_that_lies_gets_a_permutation)
{
    struct t_rng r = t_rng_of(10);
    CHECK_EQ(blitz_run(sort_with_liars, &r, &(blitz_runtime_opts){.procs = 1}), 0);
    CHECK_EQ(blitz_run(sort_with_liars, &r, &(blitz_runtime_opts){.procs = 3}), 0);
}

/* ---- the adversary ---- */

/* McIlroy's: values are made up as they are compared, so that every pivot turns out to be small. */
struct adversary {
    uint32_t *value; /* of each item; `gas` if it is not yet decided */
    uint32_t gas, solid, candidate;
    uint64_t calls;
};

static int adversary_compares(const void *a, const void *b, void *arg)
{
    struct adversary *ad = arg;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    ad->calls++;
    if (ad->value[x] == ad->gas && ad->value[y] == ad->gas)
        ad->value[x == ad->candidate ? x : y] = ad->solid++;
    if (ad->value[x] == ad->gas)
        ad->candidate = x;
    else if (ad->value[y] == ad->gas)
        ad->candidate = y;
    return (ad->value[x] > ad->value[y]) - (ad->value[x] < ad->value[y]);
}

static int count_compare(const void *a, const void *b, void *arg)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    ++*(uint64_t *)arg;
    return (x > y) - (x < y);
}

static void meet_adversary(size_t n, bool is_stable)
{
    uint32_t *v = malloc(n * sizeof *v), *value = malloc(n * sizeof *value);
    struct adversary ad = {value, (uint32_t)n, 0, 0, 0};
    uint64_t again = 0, levels = 1;
    while (n >> levels != 0)
        levels++;
    for (size_t i = 0; i < n; i++)
        v[i] = (uint32_t)i, value[i] = ad.gas;
    value[0] = 1, value[1] = 0, value[2] = 2; /* or it would have no better than a run to offer */
    ad.solid = 3;
    CHECK_EQ((is_stable ? blitz_sort_stable : blitz_sort)(v, n, sizeof *v, adversary_compares, &ad),
             0);
    for (size_t i = 1; i < n; i++)
        CHECK_LE(value[v[i - 1]], value[v[i]]);
    /* The generated order is the worst case for this sort: sort it again, as numbers. */
    CHECK_EQ(
        (is_stable ? blitz_sort_stable : blitz_sort)(value, n, sizeof *v, count_compare, &again),
        0);
    t_note("%s n %zu: %.2f and %.2f n log2 n", is_stable ? "stable" : "unstable", n,
           (double)ad.calls / (double)(n * levels), (double)again / (double)(n * levels));
    CHECK_LE(ad.calls, 4 * n * levels);
    CHECK_LE(again, 4 * n * levels);
    free(v);
    free(value);
}

static int meet_adversaries(void *arg)
{
    (void)arg;
    for (size_t n = 100; n <= 20000; n *= 12)
        meet_adversary(n, false);
    meet_adversary(t_scaled(200000) + 6000, false);
    meet_adversary(20000, true);
    return 0;
}

TEST(sort, the_adversary_gets_n_log_n_comparisons)
{
    CHECK_EQ(blitz_run(meet_adversaries, NULL, &(blitz_runtime_opts){.procs = 1}), 0);
}

/* ---- sorted input ---- */

static int count_calls(void *arg)
{
    enum { N = 100000 };
    uint32_t *v = malloc(N * sizeof *v);
    (void)arg;
    for (int is_stable = 0; is_stable < 2; is_stable++)
        for (int falls = 0; falls < 2; falls++) {
            uint64_t calls = 0;
            for (uint32_t i = 0; i < N; i++)
                v[i] = falls ? N - i : i;
            CHECK_EQ((is_stable ? blitz_sort_stable : blitz_sort)(v, N, 4, count_compare, &calls),
                     0);
            CHECK_LE(calls, 2 * N);
            for (uint32_t i = 1; i < N; i++)
                CHECK_LT(v[i - 1], v[i]);
        }
    free(v);
    return 0;
}

TEST(sort, a_run_is_found_out_in_n_comparisons)
{
    CHECK_EQ(blitz_run(count_calls, NULL, &(blitz_runtime_opts){.procs = 1}), 0);
}
