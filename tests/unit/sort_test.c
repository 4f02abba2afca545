/* Sorting as users see it: every order, every size, comparisons that lie, memory that is not there. */
#include "support/on_each.h"
#include "support/sorts.h"

#include <errno.h>
#include <math.h>

#include "base/bz_atomic.h"

/* ---- against the twin ---- */

static int every_order(void *arg)
{
    static const size_t sizes[] = {0, 1, 2, 3, 7, 8, 15, 16, 33, 100, 1023, 1024, 5000, 20000};
    struct t_rng *r = arg;
    for (size_t k = 0; k < BZ_ARRAY_LEN(sorts_all); k++)
        for (int order = 0; order < SORTS_ORDERS; order++)
            for (size_t i = 0; i < BZ_ARRAY_LEN(sizes); i++)
                sorts_check(&sorts_all[k], (enum sorts_order)order, sizes[i], r);
    return 0;
}

TEST(sort, every_order_of_every_size_as_qsort_does)
{
    struct t_rng r = t_rng_of(1);
    CHECK_EQ(blitz_run(every_order, &r, &(blitz_runtime_opts){.procs = 2}), 0);
}

/* Numbers that all but one have the upper half in common: a bucket as large as the whole. */
static int large_ones(void *arg)
{
    struct t_rng *r = arg;
    for (int order = 0; order < SORTS_ORDERS; order++)
        sorts_check(&sorts_all[6], (enum sorts_order)order, 200000, r);
    sorts_check(&sorts_all[0], SORTS_RANDOM, 200000, r);
    sorts_check(&sorts_all[5], SORTS_FEW, 200000, r);
    sorts_check(&sorts_all[1], SORTS_APPENDED, 200000, r);
    return 0;
}

TEST(sort, arrays_that_take_several_rounds)
{
    struct t_rng r = t_rng_of(3);
    CHECK_EQ(blitz_run(large_ones, &r, &(blitz_runtime_opts){.procs = 1}), 0);
    CHECK_EQ(blitz_run(large_ones, &r, &(blitz_runtime_opts){.procs = 2}), 0);
}

/* No runtime is asked for: a plain thread can sort as well, with the workers for such threads. */
TEST(sort, on_a_plain_thread_too)
{
    struct t_rng r = t_rng_of(2);
    CHECK_EQ(every_order(&r), 0);
    CHECK_EQ(large_ones(&r), 0);
    CHECK_EQ(blitz_par_end(), 0);
}

/* ---- other numbers ---- */

static int compare_int32(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}
static int compare_uint32(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}
static int compare_int64(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* IEEE's total order, written out from its definition rather than as the sort does it. */
static int compare_double(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    bool x_minus = signbit(x), y_minus = signbit(y);
    uint64_t x_bits, y_bits;
    memcpy(&x_bits, a, sizeof x_bits);
    memcpy(&y_bits, b, sizeof y_bits);
    if (x_minus != y_minus)
        return x_minus ? -1 : 1;
    if (!isnan(x) && !isnan(y) && x != y)
        return x < y ? -1 : 1;
    if (isnan(x) != isnan(y))
        return isnan(x) == x_minus ? -1 : 1;
    return x_bits == y_bits ? 0 : (x_bits < y_bits) != x_minus ? -1 : 1;
}
static int compare_float(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    bool x_minus = signbit(x), y_minus = signbit(y);
    uint32_t x_bits, y_bits;
    memcpy(&x_bits, a, sizeof x_bits);
    memcpy(&y_bits, b, sizeof y_bits);
    if (x_minus != y_minus)
        return x_minus ? -1 : 1;
    if (!isnan(x) && !isnan(y) && x != y)
        return x < y ? -1 : 1;
    if (isnan(x) != isnan(y))
        return isnan(x) == x_minus ? -1 : 1;
    return x_bits == y_bits ? 0 : (x_bits < y_bits) != x_minus ? -1 : 1;
}

static int by_int32(void *v, size_t n)
{
    return blitz_sort_int32(v, n);
}
static int by_uint32(void *v, size_t n)
{
    return blitz_sort_uint32(v, n);
}
static int by_int64(void *v, size_t n)
{
    return blitz_sort_int64(v, n);
}
static int by_float(void *v, size_t n)
{
    return blitz_sort_float(v, n);
}
static int by_double(void *v, size_t n)
{
    return blitz_sort_double(v, n);
}

static const struct {
    int (*sort)(void *v, size_t n);
    int (*twin)(const void *a, const void *b);
    size_t size;
} numbers[] = {
    {by_int32, compare_int32, 4},   {by_uint32, compare_uint32, 4}, {by_int64, compare_int64, 8},
    {by_double, compare_double, 8}, {by_float, compare_float, 4},
};

/* Random bits are numbers of every kind: NaNs of both signs, subnormals, infinities. */
static void fill_bits(void *v, size_t bytes, struct t_rng *r)
{
    static const double odd_doubles[] = {0.0, -0.0, INFINITY, -INFINITY, 1.0, -1.0};
    static const float odd_floats[] = {0.0f, -0.0f, INFINITY, -INFINITY, 1.0f, -1.0f};
    uint64_t *words = v;
    for (size_t i = 0; i < bytes / 8; i++) {
        words[i] = t_rng_next(r);
        if (i % 16 == 3)
            memcpy(&words[i], &odd_doubles[words[i] % 6], 8);
        if (i % 16 == 7)
            memcpy(&words[i], &odd_floats[words[i] % 6], 4);
        if (i % 16 == 11)
            words[i] |= UINT64_C(0x7ff000007f800000);
    }
}

static int every_number(void *arg)
{
    static const size_t sizes[] = {2, 50, 1000, 3000, 70000};
    struct t_rng *r = arg;
    for (size_t k = 0; k < BZ_ARRAY_LEN(numbers); k++)
        for (size_t i = 0; i < BZ_ARRAY_LEN(sizes); i++) {
            size_t n = sizes[i], bytes = n * numbers[k].size;
            void *v = malloc(bytes), *want = malloc(bytes);
            t_watch("numbers %zu, n %zu", k, n);
            fill_bits(v, bytes, r);
            memcpy(want, v, bytes);
            qsort(want, n, numbers[k].size, numbers[k].twin);
            CHECK_EQ(numbers[k].sort(v, n), 0);
            CHECK_MEM_EQ(v, want, bytes);
            CHECK_EQ(numbers[k].sort(v, n), 0); /* in order, and backwards */
            CHECK_MEM_EQ(v, want, bytes);
            free(v);
            free(want);
        }
    return 0;
}

TEST(sort, numbers_of_every_type_nans_and_zeros_in_total_order)
{
    struct t_rng r = t_rng_of(4);
    CHECK_EQ(blitz_run(every_number, &r, &(blitz_runtime_opts){.procs = 2}), 0);
}

TEST(sort, doubles_sort_in_the_documented_total_order)
{
    double v[] = {(double)NAN, 1.0, 0.0, -0.0, -INFINITY, INFINITY, -(double)NAN, -1.0};
    CHECK_EQ(blitz_sort_double(v, 8), 0);
    CHECK(isnan(v[0]) && signbit(v[0]));
    CHECK(isinf(v[1]) && v[1] < 0);
    CHECK(v[2] == -1.0);
    CHECK(v[3] == 0.0 && signbit(v[3]));
    CHECK(v[4] == 0.0 && !signbit(v[4]));
    CHECK(v[5] == 1.0);
    CHECK(isinf(v[6]) && v[6] > 0);
    CHECK(isnan(v[7]) && !signbit(v[7]));
}

TEST(sort, keys_of_other_numbers_have_their_order)
{
    CHECK_LT(blitz_key_int64(INT64_MIN), blitz_key_int64(-1));
    CHECK_LT(blitz_key_int64(-1), blitz_key_int64(0));
    CHECK_LT(blitz_key_int64(0), blitz_key_int64(INT64_MAX));
    CHECK_LT(blitz_key_double(-INFINITY), blitz_key_double(-2.5));
    CHECK_LT(blitz_key_double(-2.5), blitz_key_double(-0.0));
    CHECK_LT(blitz_key_double(-0.0), blitz_key_double(0.0));
    CHECK_LT(blitz_key_double(0.0), blitz_key_double(1e300));
    CHECK_LT(blitz_key_double(INFINITY), blitz_key_double((double)NAN));
}

/* ---- strings ---- */

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Strings that agree in 0 to 30 bytes, and some that are each other's beginning. */
static char *odd_string(struct t_rng *r)
{
    size_t same = t_rng_below(r, 31), more = t_rng_below(r, 6);
    char *s = malloc(same + more + 1);
    CHECK_NOT_NULL(s);
    memset(s, "ab\xc3"[t_rng_below(r, 3)], same);
    for (size_t i = 0; i < more; i++)
        s[same + i] = (char)(1 + t_rng_below(r, 255));
    s[same + more] = '\0';
    return s;
}

static int sort_texts(void *arg)
{
    static const size_t sizes[] = {0, 1, 2, 20, 3000, 50000};
    struct t_rng *r = arg;
    for (size_t i = 0; i < BZ_ARRAY_LEN(sizes); i++) {
        size_t n = sizes[i];
        char **v = malloc((n + 1) * sizeof *v), **want = malloc((n + 1) * sizeof *v);
        for (size_t k = 0; k < n; k++)
            v[k] = odd_string(r);
        memcpy(want, v, n * sizeof *v);
        qsort(want, n, sizeof *want, compare_texts);
        CHECK_EQ(blitz_sort_strings(v, n), 0);
        for (size_t k = 0; k < n; k++)
            CHECK_STR_EQ(v[k], want[k]);
        for (size_t k = 0; k < n; k++)
            free(v[k]);
        free(v);
        free(want);
    }
    return 0;
}

/* Each the beginning of the next: as many bytes in common as there can be. */
static int sort_ladder(void *arg)
{
    enum { RUNGS = 2500 };
    char *text = malloc(RUNGS * 9 + 1), **v = malloc(RUNGS * sizeof *v);
    (void)arg;
    memset(text, 'x', RUNGS * 9);
    text[RUNGS * 9] = '\0';
    for (size_t i = 0; i < RUNGS; i++)
        v[i] = text + 9 * (i * 1009 % RUNGS);
    CHECK_EQ(blitz_sort_strings(v, RUNGS), 0);
    for (size_t i = 0; i < RUNGS; i++)
        CHECK_EQ(strlen(v[i]), 9 * (i + 1));
    free(v);
    free(text);
    return 0;
}

TEST(sort, strings_that_are_each_other_s_beginning_on_a_small_stack)
{
    CHECK_EQ(blitz_run(sort_ladder, NULL, &(blitz_runtime_opts){.procs = 2, .stack_bytes = 65536}),
             0);
}

TEST(sort, strings_with_equal_beginnings_as_strcmp_orders_them)
{
    struct t_rng r = t_rng_of(5);
    CHECK_EQ(blitz_run(sort_texts, &r, &(blitz_runtime_opts){.procs = 2}), 0);
    CHECK_EQ(sort_texts(&r), 0);
    CHECK_EQ(blitz_par_end(), 0);
}

/* ---- elements of any size ---- */

static int compare_bytes(const void *a, const void *b, void *arg)
{
    return memcmp(a, b, *(size_t *)arg);
}

static int sort_sizes(void *arg)
{
    struct t_rng *r = arg;
    for (size_t size = 1; size <= 200; size += size < 40 ? 1 : 13) {
        size_t n = size % 8 == 0 ? 6000 : 1500;
        unsigned char *v = malloc(n * size), *other = malloc(n * size);
        t_watch("elements of %zu bytes", size);
        for (size_t i = 0; i < n * size; i++)
            v[i] = (unsigned char)t_rng_below(r, 7);
        memcpy(other, v, n * size);
        CHECK_EQ(blitz_sort(v, n, size, compare_bytes, &size), 0);
        CHECK_EQ(blitz_sort_stable(other, n, size, compare_bytes, &size), 0);
        bool is_sorted = false;
        CHECK_EQ(blitz_sort_check(v, n, size, compare_bytes, &size, &is_sorted), 0);
        CHECK(is_sorted);
        CHECK_MEM_EQ(v, other, n * size); /* equal ones cannot be told apart */
        free(v);
        free(other);
    }
    return 0;
}

TEST(sort, elements_of_1_to_200_bytes)
{
    struct t_rng r = t_rng_of(6);
    CHECK_EQ(blitz_run(sort_sizes, &r, &(blitz_runtime_opts){.procs = 2}), 0);
}

struct wide_one {
    _Alignas(64) uint32_t key;
    uint32_t more[15];
};
struct triple {
    uint32_t key, a, b;
};
#define KEY_LESS(x, y) ((x)->key < (y)->key)
BLITZ_SORT_DEFINE(sort_wide_ones, struct wide_one, KEY_LESS);
BLITZ_SORT_DEFINE(sort_triples, struct triple, KEY_LESS);

static int sort_structs(void *arg)
{
    enum { N = 30000 };
    struct t_rng *r = arg;
    struct wide_one *v = aligned_alloc(64, N * sizeof *v);
    struct triple *t = malloc(N * sizeof *t);
    for (size_t i = 0; i < N; i++) {
        uint32_t key = (uint32_t)t_rng_below(r, N);
        v[i].key = t[i].key = key;
        memset(v[i].more, (int)key, sizeof v[i].more);
        t[i].a = key * 3, t[i].b = key ^ 5;
    }
    CHECK_EQ(sort_wide_ones(v, N), 0);
    CHECK_EQ(sort_triples(t, N), 0);
    for (size_t i = 0; i < N; i++) {
        CHECK(i == 0 || v[i - 1].key <= v[i].key);
        CHECK_EQ(v[i].key, t[i].key);
        CHECK_EQ(t[i].a, t[i].key * 3);
        CHECK_EQ(t[i].b, t[i].key ^ 5);
        CHECK_EQ((unsigned char)v[i].more[14], (unsigned char)v[i].key);
    }
    free(v);
    free(t);
    return 0;
}

TEST(sort, structs_by_an_inlined_comparison)
{
    struct t_rng r = t_rng_of(7);
    t_on_each(sort_structs, &r, 0);
}

/* ---- stability ---- */

struct ranked {
    uint32_t key, was;
};

static int compare_ranked(const void *a, const void *b, void *arg)
{
    uint32_t x = ((const struct ranked *)a)->key, y = ((const struct ranked *)b)->key;
    (void)arg;
    return (x > y) - (x < y);
}
static uint64_t key_of_ranked(const void *element, void *arg)
{
    (void)arg;
    return ((const struct ranked *)element)->key;
}

static void check_stable(const struct ranked *v, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        CHECK_LE(v[i - 1].key, v[i].key);
        CHECK(v[i - 1].key < v[i].key || v[i - 1].was < v[i].was);
    }
}

static int sort_stably(void *arg)
{
    struct t_rng *r = arg;
    for (int round = 0; round < 12; round++) {
        size_t n = round < 6 ? t_rng_below(r, 300) : t_rng_below(r, 50000);
        uint64_t values = 1 + t_rng_below(r, round % 2 == 0 ? 5 : 1000);
        struct ranked *v = malloc((n + 1) * sizeof *v), *w = malloc((n + 1) * sizeof *v);
        struct ranked *x = malloc((n + 1) * sizeof *v);
        t_watch("n %zu, %llu values", n, (unsigned long long)values);
        for (size_t i = 0; i < n; i++)
            v[i] = (struct ranked){(uint32_t)t_rng_below(r, values), (uint32_t)i};
        memcpy(w, v, n * sizeof *v);
        memcpy(x, v, n * sizeof *v);
        CHECK_EQ(blitz_sort_stable(v, n, sizeof *v, compare_ranked, NULL), 0);
        check_stable(v, n);
        CHECK_EQ(blitz_sort_by_cached_key(w, n, sizeof *w, key_of_ranked, NULL), 0);
        check_stable(w, n);
        CHECK_EQ(blitz_sort_stable_by_key(x, n, sizeof *x, key_of_ranked, NULL), 0);
        check_stable(x, n);
        free(v);
        free(w);
        free(x);
    }
    return 0;
}

TEST(sort, the_stable_ones_keep_the_order_of_equals)
{
    struct t_rng r = t_rng_of(8);
    t_on_each(sort_stably, &r, 0);
}

static uint64_t counts_calls(const void *element, void *arg)
{
    bz_fetch_add_relaxed((bz_atomic(size_t) *)arg, 1); /* relaxed: a count */
    return *(const uint64_t *)element;
}

static int sort_cached(void *arg)
{
    enum { N = 20000 };
    uint64_t *v = malloc(N * sizeof *v);
    bz_atomic(size_t) calls = 0;
    sorts_fill(v, N, SORTS_RANDOM, arg);
    CHECK_EQ(blitz_sort_by_cached_key(v, N, sizeof *v, counts_calls, (void *)&calls), 0);
    CHECK_EQ(bz_load_relaxed(&calls), N); /* relaxed: all is joined */
    free(v);
    return 0;
}

TEST(sort, a_cached_key_is_taken_once)
{
    struct t_rng r = t_rng_of(9);
    t_on_each(sort_cached, &r, 0);
}

/* ---- bad arguments ---- */

TEST(sort, bad_arguments_are_refused)
{
    uint64_t v[2] = {2, 1};
    CHECK_EQ(blitz_sort(v, 2, 0, sorts_compare_arg, NULL), -EINVAL);
    CHECK_EQ(blitz_sort(v, 2, 8, NULL, NULL), -EINVAL);
    CHECK_EQ(blitz_sort(NULL, 2, 8, sorts_compare_arg, NULL), -EINVAL);
    CHECK_EQ(blitz_sort(v, SIZE_MAX / 4, 8, sorts_compare_arg, NULL), -EINVAL);
    CHECK_EQ(blitz_sort(NULL, 0, 8, sorts_compare_arg, NULL), 0);
    CHECK_EQ(blitz_sort_stable(v, 2, 0, sorts_compare_arg, NULL), -EINVAL);
    CHECK_EQ(blitz_sort_stable(v, 2, 8, NULL, NULL), -EINVAL);
    CHECK_EQ(blitz_sort_by_key(v, 2, 8, NULL, NULL), -EINVAL);
    CHECK_EQ(blitz_sort_stable_by_key(v, 2, 8, NULL, NULL), -EINVAL);
    CHECK_EQ(blitz_sort_by_cached_key(v, 2, 8, NULL, NULL), -EINVAL);
    CHECK_EQ(blitz_sort_by_cached_key(v, SIZE_MAX / 4, 1, sorts_key, NULL), -EINVAL);
    CHECK_EQ(blitz_sort_uint64(NULL, 1), -EINVAL);
    CHECK_EQ(blitz_sort_float(NULL, 1), -EINVAL);
    CHECK_EQ(blitz_sort_strings(NULL, 1), -EINVAL);
    CHECK_EQ(sorts_defined(NULL, 1), -EINVAL);
    bool is_sorted = true;
    CHECK_EQ(blitz_sort_check(v, 2, 8, NULL, NULL, &is_sorted), -EINVAL);
    CHECK(is_sorted); /* not written */
    CHECK_EQ(blitz_sort_check(v, 2, 8, sorts_compare_arg, NULL, &is_sorted), 0);
    CHECK(!is_sorted);
    CHECK_EQ(v[0], 2); /* nothing was done */
    CHECK_EQ(blitz_sort_uint64(NULL, 0), 0);
}
