/*
 * sort_stable.c - the stable merge sort.
 *
 * An array above BZ_SORT_LEAF is divided into quarters, which are sorted in place, each by a job.
 * Two merges write the halves to a second array of the same size, and one more merges them back:
 * two levels at a time, so that no copy is needed without a merge. Quarters that are already in
 * order stay in place, and so does any part that is a run: a sorted array costs n comparisons and
 * no moves. A leaf is sorted by merging between the two arrays, from pieces of 32 made by the small
 * sort of blitz/sort_core.h, which is stable, too.
 *
 * A long merge is split at the middle of its longer side and the matching position in the other
 * side; the halves are jobs.
 *
 * Rejected: merging in place without the second array (several times the moves). Also a stack of
 *           runs as in timsort and powersort: the next merge depends on earlier runs, so they are
 *           hard to parallelise. Fixed splits that skip ordered parts are as good on sorted,
 *           reversed and appended-to arrays, though not on many runs of odd lengths.
 *
 * M1  For any results of the comparison, a merge copies each element of both sides once.
 * M2  The array is a permutation whenever `quarters` decides to stop: then both merges have not
 *     begun, or the last one has ended.
 */
#include "par/sort.h"

#include <errno.h>
#include <string.h>

#include "blitz/task.h"
#include "blitz/yield.h"

typedef unsigned char byte;

enum { MERGE_LEAF = 8192 };

/* The functions inlined for a size. */
struct of {
    size_t size;
    size_t few_max;
    bool is_shielded; /* the call's */
    void (*few)(void *v, size_t n, void *ctx);
    void (*merge)(const byte *a, size_t a_n, const byte *b, size_t b_n, byte *to, void *ctx);
    size_t (*run)(const void *v, size_t n, int falls, void *ctx);
};

/* True if an element of b comes before one of a: only if it is less, which makes the sort
 * stable. */
static BZ_ALWAYS_INLINE size_t is_right_first(const byte *a, const byte *b, void *ctx)
{
    return (size_t)bz_compare_less(b, a, ctx);
}

/* The remaining parts of both sides of a merge, as byte offsets, and the output. */
struct sides {
    size_t a, a_end, b, b_end;
    byte *to;
};

static BZ_ALWAYS_INLINE void merge_rest(const byte *a, const byte *b, struct sides s, size_t size,
                                        void *ctx)
{
    while (s.a < s.a_end && s.b < s.b_end) {
        size_t c = is_right_first(a + s.a, b + s.b, ctx);
        uintptr_t from = blitz_sort_choose_((int)c, (uintptr_t)(b + s.b), (uintptr_t)(a + s.a));
        memcpy(s.to, (const byte *)from, size);
        s.to += size;
        s.b += c * size;
        s.a += (c ^ 1) * size;
    }
    if (s.a < s.a_end)
        memcpy(s.to, a + s.a, s.a_end - s.a);
    else if (s.b < s.b_end)
        memcpy(s.to, b + s.b, s.b_end - s.b);
}

/*
 * Each step waits for the one before it. So two merges run interleaved, from the front and from the
 * back, for as many steps as the shorter side has elements: neither can run out. If the comparisons
 * contradict each other the two may have met; then the merge is repeated from the front alone (M1).
 */
static BZ_ALWAYS_INLINE void merge(const byte *a, size_t a_n, const byte *b, size_t b_n, byte *to,
                                   size_t size, void *ctx)
{
    const struct sides all = {0, a_n * size, 0, b_n * size, to};
    struct sides s = all;
    byte *back = to + (a_n + b_n) * size;
    for (size_t steps = a_n < b_n ? a_n : b_n; steps > 0; steps--) {
        size_t c = is_right_first(a + s.a, b + s.b, ctx);
        uintptr_t from = blitz_sort_choose_((int)c, (uintptr_t)(b + s.b), (uintptr_t)(a + s.a));
        memcpy(s.to, (const byte *)from, size);
        s.to += size;
        s.b += c * size;
        s.a += (c ^ 1) * size;
        c = is_right_first(a + s.a_end - size, b + s.b_end - size, ctx); /* then the left is last */
        from = blitz_sort_choose_((int)c, (uintptr_t)(a + s.a_end), (uintptr_t)(b + s.b_end));
        back -= size;
        memcpy(back, (const byte *)from - size, size);
        s.a_end -= c * size;
        s.b_end -= (c ^ 1) * size;
    }
    merge_rest(a, b, s.a <= s.a_end && s.b <= s.b_end ? s : all, size, ctx);
}

#define OF(name, bytes, is_small)                                                            \
    static void name##_few(void *v, size_t n, void *ctx)                                     \
    {                                                                                        \
        blitz_sort_small_(v, n, bytes, is_small, bz_compare_less, ctx);                      \
    }                                                                                        \
    static void name##_merge(const byte *a, size_t a_n, const byte *b, size_t b_n, byte *to, \
                             void *ctx)                                                      \
    {                                                                                        \
        merge(a, a_n, b, b_n, to, bytes, ctx);                                               \
    }                                                                                        \
    static size_t name##_run(const void *v, size_t n, int falls, void *ctx)                  \
    {                                                                                        \
        return blitz_sort_run_(v, n, falls, bytes, bz_compare_less, ctx);                    \
    }
OF(of_4, 4, 1)
OF(of_8, 8, 1)
OF(of_16, 16, 1)
OF(of_24, 24, 1)
OF(of_32, 32, 1)
OF(of_any, ((const struct bz_compare *)ctx)->size, 0)

#define ROW(name, bytes, few_max)                                   \
    {                                                               \
        bytes, few_max, false, name##_few, name##_merge, name##_run \
    }
static struct of of_size(size_t size)
{
    static const struct of known[] = {
        ROW(of_4, 4, BLITZ_SORT_SMALL_), ROW(of_8, 8, BLITZ_SORT_SMALL_),
        ROW(of_16, 16, BLITZ_SORT_SMALL_), ROW(of_24, 24, BLITZ_SORT_SMALL_),
        ROW(of_32, 32, BLITZ_SORT_SMALL_)};
    for (size_t i = 0; i < BZ_ARRAY_LEN(known); i++)
        if (known[i].size == size)
            return known[i];
    return (struct of)ROW(of_any, size, 16);
}

/* ---- a merge, in parallel ---- */

struct merging {
    const struct of *k;
    void *ctx;
    const byte *a, *b;
    size_t a_n, b_n;
    byte *to;
};

/* The number of the n sorted elements that come before x; with or_equal, also those equal to it. */
static size_t rank(const struct merging *m, const byte *v, size_t n, const byte *x, bool or_equal)
{
    size_t from = 0, size = m->k->size;
    while (n > 0) {
        const byte *middle = v + (from + n / 2) * size;
        bool is_before =
            or_equal ? !bz_compare_less(x, middle, m->ctx) : bz_compare_less(middle, x, m->ctx);
        from += is_before ? n / 2 + 1 : 0;
        n = is_before ? n - n / 2 - 1 : n / 2;
    }
    return from;
}

static int run_merge(void *arg)
{
    struct merging *m = arg;
    const struct of *k = m->k;
    if (m->a_n + m->b_n <= MERGE_LEAF) {
        k->merge(m->a, m->a_n, m->b, m->b_n, m->to, m->ctx);
        return 0;
    }
    size_t i = m->a_n / 2, j = m->b_n / 2;
    if (m->a_n >= m->b_n)
        j = rank(m, m->b, m->b_n, m->a + i * k->size, false);
    else
        i = rank(m, m->a, m->a_n, m->b + j * k->size, true);
    struct merging left = *m, right = *m;
    left.a_n = i, left.b_n = j;
    right.a += i * k->size, right.a_n -= i;
    right.b += j * k->size, right.b_n -= j;
    right.to += (i + j) * k->size;
    blitz_job job;
    blitz_fork(&job, run_merge, &right);
    (void)!run_merge(&left); /* always returns 0 */
    return blitz_join(&job);
}

/* ---- sorting ---- */

struct part {
    const struct of *k;
    void *ctx;
    byte *v, *other;
    size_t n;
};

/* Sort v, into v or into `other`. */
static void sort_leaf(const struct of *k, byte *v, byte *other, size_t n, bool to_other, void *ctx)
{
    if (n <= k->few_max) {
        k->few(v, n, ctx);
        if (to_other)
            memcpy(other, v, n * k->size);
        return;
    }
    size_t half = n / 2, bytes = half * k->size;
    sort_leaf(k, v, other, half, !to_other, ctx);
    sort_leaf(k, v + bytes, other + bytes, n - half, !to_other, ctx);
    if (to_other)
        k->merge(v, half, v + bytes, n - half, other, ctx);
    else
        k->merge(other, half, other + bytes, n - half, v, ctx);
}

static bool are_in_order(const struct part *p, const size_t border[5])
{
    for (int i = 1; i < 4; i++) {
        const byte *at = p->v + border[i] * p->k->size;
        if (bz_compare_less(at, at - p->k->size, p->ctx))
            return false;
    }
    return true;
}

static void merge_quarters(const struct part *p, const size_t border[5])
{
    size_t size = p->k->size, half = border[2];
    struct merging m[2];
    blitz_job job;
    for (int i = 0; i < 2; i++) {
        const size_t *b = &border[2 * (size_t)i];
        m[i] = (struct merging){.k = p->k, .ctx = p->ctx, .a = p->v + b[0] * size};
        m[i].a_n = b[1] - b[0];
        m[i].b = p->v + b[1] * size;
        m[i].b_n = b[2] - b[1];
        m[i].to = p->other + b[0] * size;
    }
    blitz_fork(&job, run_merge, &m[1]);
    (void)!run_merge(&m[0]); /* both always return 0 */
    (void)!blitz_join(&job);
    struct merging last = {p->k, p->ctx, p->other, p->other + half * size, half, p->n - half, p->v};
    (void)!run_merge(&last);
}

static int sort_part(void *arg)
{
    struct part *p = arg, quarter[4];
    size_t border[5] = {0}, size = p->k->size;
    blitz_job job[3];
    int err;
    if (p->n <= BZ_SORT_LEAF) {
        if (p->k->run(p->v, p->n, 0, p->ctx) < p->n)
            sort_leaf(p->k, p->v, p->other, p->n, false, p->ctx);
        return 0;
    }
    if (bz_sort_is_stopped(p->k->is_shielded))
        return -ECANCELED;
    BLITZ_POLL();
    for (size_t i = 0; i < 4; i++) {
        border[i + 1] = bz_sort_part(p->n, 4, i + 1);
        quarter[i] = (struct part){p->k, p->ctx, p->v + border[i] * size,
                                   p->other + border[i] * size, border[i + 1] - border[i]};
    }
    for (size_t i = 0; i < 3; i++)
        blitz_fork(&job[i], sort_part, &quarter[i]);
    err = sort_part(&quarter[3]);
    for (size_t i = 3; i-- > 0;) {
        int other = blitz_join(&job[i]);
        err = other != 0 ? other : err;
    }
    if (err == 0 && !are_in_order(p, border))
        merge_quarters(p, border);
    return err;
}

static int sort_with_memory(const struct of *k, void *base, size_t n, struct bz_compare *c)
{
    const blitz_allocator *memory = bz_sort_allocator();
    void *other = bz_alloc(memory, n * c->size, 16);
    if (other == NULL)
        return -ENOMEM;
    struct part p = {k, c, base, other, n};
    int err = sort_part(&p);
    bz_free(memory, other, n * c->size);
    return err;
}

struct call {
    void *base;
    size_t n;
    struct bz_compare compare;
};

static int sort_stable(void *arg)
{
    struct call *c = arg;
    struct of k = of_size(c->compare.size);
    k.is_shielded = bz_par_is_shielded();
    struct blitz_sort_kernel_ looks = {.size = k.size, .run = k.run};
    if (c->n <= k.few_max) {
        k.few(c->base, c->n, &c->compare);
        return 0;
    }
    if (bz_sort_is_run(&looks, c->base, c->n, 0, &c->compare))
        return 0;
    if (bz_sort_is_run(&looks, c->base, c->n, 1, &c->compare)) {
        bz_sort_reverse(c->base, c->n, k.size);
        return 0;
    }
    return sort_with_memory(&k, c->base, c->n, &c->compare);
}

int blitz_sort_stable(void *base, size_t n, size_t size, blitz_compare_fn *compare, void *arg)
{
    struct call c = {base, n, {compare, arg, size}};
    int err = compare == NULL ? -EINVAL : bz_sort_check(base, n, size);
    return err != 0 || n < 2 ? err : bz_sort_call(n, sort_stable, &c);
}
