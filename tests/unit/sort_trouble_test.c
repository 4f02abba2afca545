/* Sorting when things go wrong: no memory, a cancel in the middle, a small stack. */
#include "support/on_each.h"
#include "support/sorts.h"

#include <errno.h>

#include "base/alloc.h"
#include "base/bz_atomic.h"

/* ---- no memory ---- */

/* An allocator that fails once, at the n-th call from when it was told to. */
static bz_atomic(uint64_t) fails_in; /* 0: never */
static bz_atomic(uint64_t) blocks;

static void *alloc_or_fail(void *ctx, size_t size, size_t align)
{
    (void)ctx; /* relaxed: a countdown; who fetches 1 is the one */
    if (bz_load_relaxed(&fails_in) != 0 && bz_fetch_sub_relaxed(&fails_in, 1) == 1)
        return NULL;
    bz_fetch_add_relaxed(&blocks, 1); /* relaxed: a count */
    return bz_alloc(&bz_allocator_libc, size, align);
}
static void free_it(void *ctx, void *memory, size_t size)
{
    (void)ctx;
    bz_fetch_sub_relaxed(&blocks, 1); /* relaxed: a count */
    bz_free(&bz_allocator_libc, memory, size);
}
static const blitz_allocator failing = {alloc_or_fail, free_it, NULL};

enum { N_MAX = 135000 }; /* numbers take several rounds */

static bool can_fail(const struct sorts_row *row)
{
    return strstr(row->name, "stable") != NULL || strstr(row->name, "cached") != NULL;
}

/* With its n-th allocation failing. False: it has none. */
static bool sort_failing(const struct sorts_row *row, uint64_t nth, bool is_alone, struct t_rng *r)
{
    size_t n = row->sort == blitz_sort_uint64 ? N_MAX : N_MAX / 10;
    uint64_t *v = malloc(n * sizeof *v), *was = malloc(n * sizeof *v);
    sorts_fill(v, n, SORTS_CLUSTERED, r);
    memcpy(was, v, n * sizeof *v);
    t_watch("%s, allocation %llu", row->name, (unsigned long long)nth);
    bz_store_relaxed(&fails_in, nth); /* relaxed: likewise */
    int err = row->sort(v, n);
    bool has_failed = bz_load_relaxed(&fails_in) == 0; /* relaxed: all is joined */
    bz_store_relaxed(&fails_in, 0);                    /* relaxed: likewise */
    if (is_alone || err != 0) /* a worker that takes a job may be the one that got no memory */
        CHECK_EQ(err, has_failed && can_fail(row) ? -ENOMEM : 0);
    if (err == -ENOMEM)
        CHECK_MEM_EQ(v, was, n * sizeof *v);
    CHECK_EQ(sorts_sum(v, n), sorts_sum(was, n));
    for (size_t i = 1; i < n && err == 0; i++)
        CHECK_LE(v[i - 1], v[i]);
    free(v);
    free(was);
    return has_failed;
}

static int fail_each(struct t_rng *r, bool is_alone)
{
    for (size_t k = 0; k < BZ_ARRAY_LEN(sorts_all); k++) {
        uint64_t nth = 1;
        while (sort_failing(&sorts_all[k], nth, is_alone, r))
            nth++;
        if (is_alone)
            CHECK_EQ(nth > 1, can_fail(&sorts_all[k]) || k == 6); /* the others allocate nothing */
        CHECK_LT(nth, 20);
    }
    return 0;
}

static int fail_each_alone(void *arg)
{
    return fail_each(arg, true);
}
static int fail_each_in_company(void *arg)
{
    return fail_each(arg, false);
}

TEST(sort, without_memory_it_says_so_or_does_without)
{
    struct t_rng r = t_rng_of(1);
    blitz_runtime_opts config = {.procs = 1, .allocator = &failing};
    CHECK_EQ(blitz_run(fail_each_alone, &r, &config), 0);
    config.procs = 2;
    CHECK_EQ(blitz_run(fail_each_in_company, &r, &config), 0);
    CHECK_EQ(bz_load_relaxed(&blocks), 0); /* relaxed: no task runs */
}

static int sort_strings_without(void *arg)
{
    char b[] = "b", a[] = "a", second[] = "abcdefgh2", first[] = "abcdefgh1", empty[] = "";
    char *v[] = {b, a, second, first, empty};
    (void)arg;
    bz_store_relaxed(&fails_in, 1); /* relaxed: likewise */
    CHECK_EQ(blitz_sort_strings(v, 5), 0);
    CHECK_EQ(bz_load_relaxed(&fails_in), 0); /* relaxed: likewise */
    CHECK_STR_EQ(v[0], "");
    CHECK_STR_EQ(v[1], "a");
    CHECK_STR_EQ(v[2], "abcdefgh1");
    CHECK_STR_EQ(v[3], "abcdefgh2");
    CHECK_STR_EQ(v[4], "b");
    return 0;
}

TEST(sort, strings_without_memory)
{
    CHECK_EQ(blitz_run(sort_strings_without, NULL,
                       &(blitz_runtime_opts){.procs = 1, .allocator = &failing}),
             0);
}

/* ---- a cancel ---- */

enum { CANCELLED = 70000 };

struct victim {
    bz_atomic(blitz_task *) task;
    bz_atomic(uint64_t) left; /* comparisons until it is cancelled */
    size_t how;
    uint64_t *v;
};

static void count_down(struct victim *c)
{
    if (bz_fetch_sub_relaxed(&c->left, 1) == 1)       /* relaxed: a countdown */
        blitz_task_cancel(bz_load_relaxed(&c->task)); /* relaxed: seen before the sort */
}
static int compare_then_cancel(const void *a, const void *b, void *arg)
{
    count_down(arg);
    return sorts_compare(a, b);
}
static uint64_t key_then_cancel(const void *element, void *arg)
{
    count_down(arg);
    return *(const uint64_t *)element;
}

static int sort_until_cancelled(void *arg)
{
    struct victim *c = arg;
    while (bz_load_acquire(&c->task) ==
           NULL) /* until the handle is known; pairs with the release */
        blitz_yield();
    switch (c->how) {
    case 0:
        return blitz_sort(c->v, CANCELLED, 8, compare_then_cancel, c);
    case 1:
        return blitz_sort_stable(c->v, CANCELLED, 8, compare_then_cancel, c);
    case 2:
        return blitz_sort_by_key(c->v, CANCELLED, 8, key_then_cancel, c);
    case 3:
        return blitz_sort_by_cached_key(c->v, CANCELLED, 8, key_then_cancel, c);
    default:
        blitz_task_cancel(bz_load_relaxed(&c->task)); /* relaxed: as above */
        return c->how == 4 ? blitz_sort_uint64(c->v, CANCELLED) : sorts_defined(c->v, CANCELLED);
    }
}

static void cancel_one(size_t how, uint64_t after, struct t_rng *r)
{
    uint64_t *was = malloc(CANCELLED * sizeof *was);
    struct victim c = {NULL, after, how, malloc(CANCELLED * sizeof *was)};
    int result = 0;
    t_watch("sort %zu cancelled after %llu", how, (unsigned long long)after);
    sorts_fill(c.v, CANCELLED, SORTS_CLUSTERED, r);
    memcpy(was, c.v, CANCELLED * sizeof *was);
    blitz_task *t;
    CHECK_EQ(blitz_spawn(sort_until_cancelled, &c, NULL, &t), 0);
    bz_store_release(&c.task, t); /* pairs with the acquire in the task */
    CHECK_EQ(blitz_task_join(t, &result, BLITZ_FOREVER), 0);
    CHECK_EQ(result, -ECANCELED);
    CHECK_EQ(sorts_sum(c.v, CANCELLED), sorts_sum(was, CANCELLED));
    free(c.v);
    free(was);
}

static int cancel_each(void *arg)
{
    struct t_rng *r = arg;
    for (size_t how = 0; how < 6; how++)
        for (int round = 0; round < 2; round++)
            cancel_one(how, 1 + t_rng_below(r, how == 3 ? CANCELLED / 2 : 4 * CANCELLED), r);
    return 0;
}

TEST(sort, a_cancel_stops_it_and_nothing_is_lost)
{
    struct t_rng r = t_rng_of(2);
    CHECK_EQ(blitz_run(cancel_each, &r, &(blitz_runtime_opts){.procs = 1}), 0);
    CHECK_EQ(blitz_run(cancel_each, &r, &(blitz_runtime_opts){.procs = 3}), 0);
}

/* ---- a shield ---- */

static int sort_shielded(void *arg)
{
    struct t_rng *r = arg;
    char **texts = malloc(CANCELLED * sizeof *texts), *bytes = malloc(CANCELLED * 20);
    blitz_task_cancel(blitz_task_current());
    CHECK(blitz_is_cancelled());
    blitz_shield();
    for (size_t k = 0; k < BZ_ARRAY_LEN(sorts_all); k++)
        sorts_check(&sorts_all[k], SORTS_RANDOM, CANCELLED, r);
    for (size_t i = 0; i < CANCELLED; i++) {
        texts[i] = bytes + 20 * i;
        snprintf(texts[i], 20, "common %u", (unsigned)t_rng_below(r, 1000000));
    }
    CHECK_EQ(blitz_sort_strings(texts, CANCELLED), 0);
    for (size_t i = 1; i < CANCELLED; i++)
        CHECK_LE(strcmp(texts[i - 1], texts[i]), 0);
    free(texts);
    free(bytes);
    blitz_unshield();
    return 0;
}

/* Also the parts that others have taken. */
TEST(sort, a_shielded_task_sorts_on)
{
    struct t_rng r = t_rng_of(4);
    t_on_each(sort_shielded, &r, 0);
}

/* ---- a small stack ---- */

static int sort_deeply(void *arg)
{
    enum { MANY = 100000 };
    struct t_rng *r = arg;
    for (size_t k = 0; k < BZ_ARRAY_LEN(sorts_all); k++) {
        sorts_check(&sorts_all[k], k % 2 == 0 ? SORTS_RANDOM : SORTS_SAWTOOTH, MANY, r);
    }
    sorts_check(&sorts_all[0], SORTS_RANDOM, t_scaled(1000000), r);
    sorts_check(&sorts_all[6], SORTS_RANDOM, t_scaled(1000000), r);
    return 0;
}

TEST(sort, bug_28_a_million_elements_on_a_stack_of_64_kib)
{
    struct t_rng r = t_rng_of(3);
    CHECK_EQ(blitz_run(sort_deeply, &r, &(blitz_runtime_opts){.procs = 2, .stack_bytes = 65536}),
             0);
}
