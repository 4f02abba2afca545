/* Iterators: each beside its sequential twin (support/iter_zoo.h), and what is true of them all. */
#include "support/alone.h"
#include "support/faults.h"
#include "support/iter_zoo.h"
#include "support/on_each.h"

#include "base/bz_atomic.h"
#include "proc/state.h"
#include "runtime/runtime.h"

enum { ROOM = 100000 };

/* ---- twins ---- */

static void visit_with(struct zoo *z, size_t n, unsigned procs)
{
    static const size_t grains[] = {0, 0, 1, 7, 64, 1000, 50000};
    z->opts = (blitz_par_opts){.grain = grains[t_random_below(BZ_ARRAY_LEN(grains))],
                               .chunk_max = t_random_below(3) == 0 ? 1 + t_random_below(500) : 0};
    z->opts.is_ordered = t_random_below(4) == 0;
    t_watch("%zu elements, %u procs, grain %zu, at most %zu", n, procs, z->opts.grain,
            z->opts.chunk_max);
    zoo_fill(z, n);
    CHECK_EQ(blitz_run(zoo_visit, z, &(blitz_runtime_opts){.procs = procs}), 0);
}

TEST(iter, every_operation_is_as_its_sequential_twin)
{
    struct zoo *z = zoo_new(ROOM);
    for (uint64_t round = 0, rounds = t_scaled(5); round < rounds; round++)
        for (unsigned procs = 1; procs <= 8; procs++)
            visit_with(z, (size_t)t_random_below(ROOM + 1), procs);
    zoo_free(z);
}

/* Blocks, strides and lanes have edges. */
TEST(iter, and_so_it_is_for_a_few_elements)
{
    static const size_t sizes[] = {64, 65, 127, 128, 129, 2047, 2048, 2049, 4095, 4097};
    struct zoo *z = zoo_new(ROOM);
    for (size_t n = 0; n < 20; n++)
        visit_with(z, n, 1 + (unsigned)t_random_below(8));
    for (size_t i = 0; i < BZ_ARRAY_LEN(sizes); i++)
        visit_with(z, sizes[i], 1 + (unsigned)t_random_below(8));
    zoo_free(z);
}

TEST(iter, and_on_a_plain_thread)
{
    struct zoo *z = zoo_new(ROOM);
    zoo_fill(z, 3000);
    CHECK_EQ(zoo_visit(z), 0);
    zoo_free(z);
    CHECK_EQ(blitz_par_end(), 0); /* no thread is left behind */
}

/* ---- nothing, and nonsense ---- */

static int nothing(void *arg)
{
    size_t at = 5;
    double sum = 1;
    (void)arg;
    CHECK_EQ(zoo_map(NULL, 0, NULL, NULL), 0);
    CHECK_EQ(zoo_filter(NULL, 0, NULL, NULL, &at, NULL), 0);
    CHECK_EQ(at, 0);
    at = 5;
    CHECK_EQ(zoo_offsets(NULL, 0, &at, NULL), 0);
    CHECK_EQ(at, 0);
    CHECK_EQ(zoo_flatten(NULL, 0, &at, NULL, NULL), 0);
    CHECK_EQ(zoo_dot(NULL, NULL, 0, &sum, NULL), 0);
    CHECK(sum == 0);
    CHECK_EQ(zoo_any(NULL, 0, 1, NULL), 0);
    CHECK_EQ(zoo_all(NULL, 0, NULL, 0, 1, NULL), 1);
    CHECK_EQ(zoo_find_last(NULL, 0, 1, &at, NULL), -ENOENT);
    CHECK_EQ(blitz_copy(NULL, NULL, 0, 8, NULL), 0);
    CHECK_EQ(blitz_fill(NULL, 0, NULL, 8, NULL), 0);
    return 0;
}

TEST(iter, of_nothing_there_is_nothing)
{
    t_on_each(nothing, NULL, 0);
}

TEST(iter, chunks_and_windows_of_nothing_are_refused)
{
    int in[3] = {1, 2, 3}, out[3];
    CHECK_EQ(zoo_map_chunks(in, 3, 0, out, NULL), -EINVAL);
    CHECK_EQ(zoo_map_windows(in, 3, 0, out, NULL), -EINVAL);
    CHECK_EQ(blitz_copy(out, in, 3, 0, NULL), -EINVAL);
    CHECK_EQ(blitz_copy(out, in, SIZE_MAX / 2, 4, NULL), -EINVAL);
    CHECK_EQ(blitz_fill(out, SIZE_MAX / 2, in, 4, NULL), -EINVAL);
}

/* Elements are any type: this one is larger than a lane, a line or a page would like. */
struct large {
    int key;
    char rest[196];
};
BLITZ_FILTER_DEFINE(large_odd, BLITZ_EACH(struct large, x), x.key % 2);
BLITZ_MAX_BY_KEY_DEFINE(large_most, int, BLITZ_EACH(struct large, x), x.key);

static int large_elements(void *arg)
{
    enum { N = 3000 };
    struct large *in = calloc(N, sizeof *in), *out = calloc(N, sizeof *out);
    size_t kept = 0, at = 0;
    (void)arg;
    for (int i = 0; i < N; i++) {
        in[i].key = i * 7 % N;
        memset(in[i].rest, i, sizeof in[i].rest);
    }
    CHECK_EQ(large_odd(in, N, out, &kept, NULL), 0);
    for (size_t i = 0, k = 0; i < N; i++)
        if (in[i].key % 2)
            CHECK_MEM_EQ(&out[k++], &in[i], sizeof *in);
    CHECK_EQ(kept, N / 2);
    CHECK_EQ(large_most(in, N, &at, NULL), 0);
    CHECK_EQ(in[at].key, N - 1);
    free(in), free(out);
    return 0;
}

TEST(iter, elements_are_of_any_size)
{
    t_on_each(large_elements, NULL, 0);
}

/* ---- early ends ---- */

/* A later higher index changes nothing. */
TEST(iter, the_lowest_index_that_was_found_stays)
{
    struct blitz_first_ first = {UINTPTR_MAX};
    blitz_first_found_(&first, 20);
    blitz_first_found_(&first, 10);
    blitz_first_found_(&first, 15);
    CHECK_EQ(blitz_first_peek_(&first), 10);
}

struct eyes {
    size_t hit;
    bz_atomic(size_t) looked;
};

static inline int look(size_t i, struct eyes *e)
{
    bz_fetch_add_relaxed(&e->looked, 1); /* relaxed: a number */
    return i == e->hit;
}
BLITZ_ANY_DEFINE(look_any, BLITZ_RANGE, look(i, e), (struct eyes *, e));
BLITZ_FIND_ANY_DEFINE(look_find_any, BLITZ_RANGE, look(i, e), (struct eyes *, e));
BLITZ_FIND_FIRST_DEFINE(look_first, BLITZ_RANGE, look(i, e), (struct eyes *, e));
BLITZ_FIND_LAST_DEFINE(look_last, BLITZ_RANGE, look(i, e), (struct eyes *, e));
BLITZ_TRY_FOR_EACH_DEFINE(look_try, BLITZ_RANGE, look(i, e) ? -EIO : 0, (struct eyes *, e));

static size_t looked(struct eyes *e)
{
    return bz_xchg_relaxed(&e->looked, 0); /* relaxed: all have been joined */
}

/* With one worker, exactly the elements of the sequential loop are visited. */
static int alone(void *arg)
{
    enum { N = 1000000, HIT = 4321 };
    struct eyes e = {.hit = HIT};
    size_t at = 0;
    (void)arg;
    CHECK_EQ(look_any(N, &e, NULL), 1);
    CHECK_EQ(looked(&e), HIT + 1);
    CHECK_EQ(look_find_any(N, &e, &at, NULL), 0);
    CHECK_EQ(looked(&e), HIT + 1);
    CHECK_EQ(look_first(N, &e, &at, NULL), 0);
    CHECK_EQ(looked(&e), HIT + 1);
    CHECK_EQ(at, HIT);
    e.hit = N - 1 - HIT;
    CHECK_EQ(look_last(N, &e, &at, NULL), 0);
    CHECK_EQ(looked(&e), HIT + 1);
    CHECK_EQ(at, e.hit);
    return 0;
}

TEST(iter, an_early_end_looks_at_no_more_than_the_plain_loop)
{
    CHECK_EQ(t_run_alone(alone, NULL), 0);
}

/* The error comes back by itself; that nothing behind it is begun needs the word. */
static int fail_alone(void *arg)
{
    enum { N = 1000000, HIT = 4321 };
    struct eyes e = {.hit = HIT};
    blitz_par_opts in_order = {.is_ordered = 1}; /* each chunk has an accumulator of its own */
    (void)arg;
    CHECK_EQ(look_try(N, &e, NULL), -EIO);
    CHECK_EQ(looked(&e), HIT + 1);
    CHECK_EQ(look_try(N, &e, &in_order), -EIO);
    CHECK_EQ(looked(&e), HIT + 1);
    return 0;
}

TEST(iter, a_failure_stops_the_parts_behind_it)
{
    CHECK_EQ(t_run_alone(fail_alone, NULL), 0);
}

/* ---- floating point ---- */

struct series {
    enum { SERIES = 50000 } n;
    double x[SERIES];
    double sum;
};
BLITZ_SUM_DEFINE(series_sum, double, BLITZ_EACH(double, x), x);

static int add_in_order(void *arg)
{
    struct series *s = arg;
    blitz_par_opts opts = {.is_ordered = 1};
    double sum = 0;
    CHECK_EQ(series_sum(s->x, SERIES, &sum, &opts), 0);
    if (s->sum == 0)
        s->sum = sum;
    CHECK_MEM_EQ(&sum, &s->sum, sizeof sum);
    return 0;
}

TEST(iter, ordered_sums_are_the_same_to_the_last_bit)
{
    struct series *s = calloc(1, sizeof *s);
    for (int i = 0; i < SERIES; i++)
        s->x[i] = 1.0 / (1.0 + (double)t_random_below(1000000));
    for (int round = 0; round < 3; round++)
        t_on_each(add_in_order, s, 0);
    free(s);
}

/* ---- cancels ---- */

static int cancelled(void *arg)
{
    struct zoo *z = arg;
    size_t got = 77;
    CHECK_EQ(blitz_sleep_until(BLITZ_FOREVER), -ECANCELED);
    CHECK_EQ(zoo_map(z->a, z->n, z->out, &z->opts), -ECANCELED);
    CHECK_EQ(zoo_filter(z->a, z->n, z->b, z->out, &got, &z->opts), -ECANCELED);
    CHECK_EQ(zoo_count(z->a, z->n, &got, &z->opts), -ECANCELED);
    CHECK_EQ(zoo_find_first(z->a, z->n, 1, &got, &z->opts), -ECANCELED);
    CHECK_EQ(zoo_try(z->a, z->n, -1, z->longs, &z->opts), -ECANCELED);
    CHECK_EQ(got, 77); /* no result is written */
    return 0;
}

static int cancel_one(void *arg)
{
    blitz_task *t;
    int result = -1;
    CHECK_EQ(blitz_spawn(cancelled, arg, NULL, &t), 0);
    blitz_task_cancel(t);
    CHECK_EQ(blitz_task_join(t, &result, BLITZ_FOREVER), 0);
    return result;
}

TEST(iter, a_cancel_ends_them)
{
    struct zoo *z = zoo_new(5000);
    zoo_fill(z, 5000);
    t_on_each(cancel_one, z, 0);
    zoo_free(z);
}

/* ---- no memory ---- */

struct scarce {
    struct zoo *z;
    int *copy; /* of z->a */
    int want;
};

static int filter_once(void *arg)
{
    struct scarce *s = arg;
    struct zoo *z = s->z;
    size_t kept = 77;
    int err = zoo_filter(z->a, z->n, z->b, z->out, &kept, &z->opts);
    if (err == 0)
        err = zoo_partition(z->items, z->n, 3, z->items_out, &kept, &z->opts);
    if (err == 0)
        err = zoo_offsets(z->b, z->n, z->sizes, &z->opts);
    CHECK(err == 0 || err == -ENOMEM);
    CHECK_MEM_EQ(z->a, s->copy, z->n * sizeof *z->a); /* the input is intact */
    return err;
}

static int filter_in_a_runtime(const struct bz_os *os, const blitz_allocator *memory, void *arg)
{
    struct bz_runtime *rt;
    int err = bz_runtime_new(os, &(blitz_runtime_opts){.procs = 2, .allocator = memory}, &rt);
    if (err != 0)
        return err;
    err = blitz_runtime_block_on((blitz_runtime *)rt, filter_once, arg);
    CHECK_EQ(blitz_runtime_shutdown((blitz_runtime *)rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref((blitz_runtime *)rt), 0);
    return err;
}

/* Every failure is reported, leaks nothing and leaves the input unchanged. */
TEST(iter, scratch_that_is_not_to_be_had_is_an_error_and_nothing_else)
{
    struct zoo *z = zoo_new(1000);
    zoo_fill(z, 1000);
    struct scarce s = {.z = z, .copy = calloc(1000, sizeof *s.copy)};
    memcpy(s.copy, z->a, 1000 * sizeof *s.copy);
    bool was_refused = false;
    for (uint64_t nth = 1;; nth++) {
        struct bz_fault fault;
        struct bz_fault_plan plan = {.kind = BZ_FAULT_MEMORY, .nth = nth};
        bz_fault_init(&fault, &bz_os_system, NULL, &plan);
        int err = filter_in_a_runtime(&fault.os, &fault.allocator, &s);
        bool has_failed = bz_fault_failed(&fault) != BZ_FAULT_NONE;
        was_refused |= err == -ENOMEM;
        CHECK_EQ(bz_fault_books(&fault).blocks, 0);
        if (!has_failed) {
            CHECK_EQ(err, 0);
            break;
        }
    }
    CHECK(was_refused);
    free(s.copy);
    zoo_free(z);
}
