/*
 * Stacks (src/task/stack.c, stack_pool.c): what a taken one is, how warm ones come back, how depth is
 * noticed and given back, and what happens to slabs.
 */
#include "support/stacks.h"
#include "support/coro.h"

enum { KEPT_PAGES = 4, DEEP_USES = 8, HOT = 8 }; /* as stack.c has them */

static size_t page_bytes(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

static void work_to(struct bz_coro *c, void *arg)
{
    volatile char *deepest = __builtin_frame_address(0);
    *(ptrdiff_t *)arg = (char *)deepest - (char *)c;
    bz_coro_yield(c);
    *(ptrdiff_t *)arg = 42;
}

/* ---- a taken stack ---------------------------------------------------------------------------- */

TEST(stack, of_every_class_is_usable_from_top_to_low)
{
    static const size_t nominal[] = {64 << 10, 256 << 10, 1 << 20, 8 << 20};
    struct t_stacks t;
    t_stacks_init(&t, (struct bz_stack_config){0});
    for (int class = 0; class < BZ_STACK_CLASSES; class ++) {
        struct bz_stack *s = t_stack_take(&t, (enum bz_stack_class) class);
        CHECK_EQ((uintptr_t)bz_stack_top(s) % 16, 0u);
        CHECK_EQ((uintptr_t)s->low % page_bytes(), 0u);
        CHECK_LT(bz_stack_bytes(s), nominal[class]);
        CHECK_GT(bz_stack_bytes(s), nominal[class] / 16 * 14);
        CHECK_EQ(s->class, class);
        CHECK_STR_EQ(s->name, "");
        memset(s->low, 0x5a, bz_stack_bytes(s));
        bz_stack_give(&t.cache, s);
    }
    t_stacks_fini(&t);
}

/* The promise of a million fibers in four gigabytes. */
TEST(stack, costs_one_page_until_its_user_goes_deeper)
{
    struct t_stacks t;
    ptrdiff_t seen = 0;
    t_stacks_init(&t, (struct bz_stack_config){0});
    for (int i = 0; i < 2 * BZ_STACK_COLOURS; i++) {
        struct bz_stack *s = t_stack_take(&t, BZ_STACK_256K);
        struct bz_coro *c = (struct bz_coro *)bz_stack_top(s) - 1;
        bz_coro_init(c, s->low, (void *)((uintptr_t)c & ~(uintptr_t)15), work_to, &seen);
        CHECK(bz_coro_resume(c));
        CHECK_EQ(t_stack_resident(s), BZ_ASAN || BZ_TSAN ? t_stack_resident(s) : 1);
        CHECK(!bz_coro_resume(c));
        bz_coro_fini(c);
        if (i % 2)
            bz_stack_give(&t.cache, s); /* the others differ in colour */
        else
            t.cache.warm[BZ_STACK_256K].entry[t.cache.warm[BZ_STACK_256K].count++] = (uintptr_t)s;
    }
    CHECK_EQ(seen, 42);
    t_stacks_fini(&t);
}

TEST(stack, refuses_a_class_there_is_not)
{
    struct t_stacks t;
    struct bz_stack *s = NULL;
    t_stacks_init(&t, (struct bz_stack_config){0});
    CHECK_EQ(bz_stack_take(&t.cache, BZ_STACK_CLASSES, &s), -EINVAL);
    CHECK_EQ(bz_stack_take(&t.cache, (enum bz_stack_class) - 1, &s), -EINVAL);
    CHECK_NULL(s);
    t_stacks_fini(&t);
}

TEST(stack, a_pool_of_unknown_guards_is_refused)
{
    struct bz_stack_pool p;
    struct bz_stack_config c = {.guards = (enum bz_stack_guards)7};
    CHECK_EQ(bz_stack_pool_init(&p, &c), -EINVAL);
}

TEST(stack, a_name_is_cut_where_the_room_ends_and_does_not_outlive_the_use)
{
    struct t_stacks t;
    t_stacks_init(&t, (struct bz_stack_config){0});
    struct bz_stack *s = t_stack_take(&t, BZ_STACK_64K);
    bz_stack_name(s, "0123456789012345678901234567890123456789");
    CHECK_STR_EQ(s->name, "0123456789012345678901234567890");
    bz_stack_name(s, "short");
    CHECK_STR_EQ(s->name, "short");
    bz_stack_name(s, NULL);
    CHECK_STR_EQ(s->name, "");
    bz_stack_name(s, "gone");
    bz_stack_give(&t.cache, s);
    CHECK_EQ(t_stack_take(&t, BZ_STACK_64K), s);
    CHECK_STR_EQ(s->name, "");
    bz_stack_give(&t.cache, s);
    t_stacks_fini(&t);
}

/* ---- the cache -------------------------------------------------------------------------------- */

TEST(stack, the_last_given_is_the_first_taken)
{
    struct t_stacks t;
    struct bz_stack *s[BZ_STACK_CACHE_MAX];
    t_stacks_init(&t, (struct bz_stack_config){0});
    for (int i = 0; i < BZ_STACK_CACHE_MAX; i++)
        s[i] = t_stack_take(&t, BZ_STACK_64K);
    for (int i = 0; i < BZ_STACK_CACHE_MAX; i++)
        bz_stack_give(&t.cache, s[i]);
    for (int i = BZ_STACK_CACHE_MAX; i-- > 0;)
        CHECK_EQ(t_stack_take(&t, BZ_STACK_64K), s[i]);
    for (int i = 0; i < BZ_STACK_CACHE_MAX; i++)
        bz_stack_give(&t.cache, s[i]);
    t_stacks_fini(&t);
}

/* The caller may run on the stack it gives; a stack in the pool may be taken by another thread at
 * once. */
TEST(stack, the_last_given_stack_stays_in_an_overflowing_cache)
{
    struct t_stacks t;
    struct bz_stack *s[BZ_STACK_CACHE_MAX + 1];
    t_stacks_init(&t, (struct bz_stack_config){0});
    for (int i = 0; i <= BZ_STACK_CACHE_MAX; i++)
        s[i] = t_stack_take(&t, BZ_STACK_64K);
    for (int i = 0; i <= BZ_STACK_CACHE_MAX; i++)
        bz_stack_give(&t.cache, s[i]);
    CHECK_EQ(t.pool.kind[BZ_STACK_64K].idle, BZ_STACK_CACHE_MAX / 2);
    CHECK_EQ(t_stack_take(&t, BZ_STACK_64K), s[BZ_STACK_CACHE_MAX]);
    CHECK_EQ(t_stack_take(&t, BZ_STACK_64K), s[BZ_STACK_CACHE_MAX - 1]);
    bz_stack_give(&t.cache, s[BZ_STACK_CACHE_MAX]);
    bz_stack_give(&t.cache, s[BZ_STACK_CACHE_MAX - 1]);
    t_stacks_fini(&t);
}

TEST(stack, an_empty_cache_is_filled_from_the_idle_ones_of_the_pool)
{
    struct t_stacks t;
    struct bz_stack_cache other;
    struct bz_stack *s[BZ_STACK_CACHE_MAX];
    t_stacks_init(&t, (struct bz_stack_config){0});
    bz_stack_cache_init(&other, &t.pool);
    for (int i = 0; i < BZ_STACK_CACHE_MAX; i++)
        s[i] = t_stack_take(&t, BZ_STACK_64K);
    for (int i = 0; i < BZ_STACK_CACHE_MAX; i++)
        bz_stack_give(&t.cache, s[i]);
    bz_stack_cache_fini(&t.cache);
    CHECK_EQ(t.pool.kind[BZ_STACK_64K].idle, BZ_STACK_CACHE_MAX);

    CHECK_EQ(bz_stack_take(&other, BZ_STACK_64K, &s[0]), 0);

    CHECK_EQ(other.warm[BZ_STACK_64K].count, BZ_STACK_CACHE_MAX / 2);
    CHECK_EQ(t.pool.kind[BZ_STACK_64K].idle, BZ_STACK_CACHE_MAX / 2 - 1);
    bz_stack_pool_check(&t.pool);
    bz_stack_give(&other, s[0]);
    bz_stack_cache_fini(&other);
    t_stacks_fini(&t);
}

/* Against a model: a stack is held by one at a time, and what is written on it stays. */
TEST(stack, taken_and_given_at_random_every_stack_has_one_holder)
{
    enum { HELD_MAX = 600 };
    static struct {
        struct bz_stack *stack;
        uint64_t tag;
    } held[HELD_MAX];
    struct t_stacks t;
    int count = 0;
    t_stacks_init(&t, (struct bz_stack_config){.idle_max = 40});
    for (uint64_t n = t_scaled(40000); n > 0; n--) {
        if (count < HELD_MAX && t_random_below(1000) < (n / 1000 % 2 ? 700 : 300)) {
            struct bz_stack *s = t_stack_take(&t, (enum bz_stack_class)t_random_below(3));
            uint64_t tag = t_random();
            memcpy(s->low, &tag, sizeof tag);
            memcpy((char *)bz_stack_top(s) - 64, &tag, sizeof tag);
            held[count].stack = s;
            held[count++].tag = tag;
        } else if (count > 0) {
            int i = (int)t_random_below((uint64_t)count);
            struct bz_stack *s = held[i].stack;
            CHECK_MEM_EQ(s->low, &held[i].tag, 8);
            CHECK_MEM_EQ((char *)bz_stack_top(s) - 64, &held[i].tag, 8);
            bz_stack_give(&t.cache, s);
            held[i] = held[--count];
        }
        if (n % 1000 == 0)
            bz_stack_pool_check(&t.pool);
    }
    while (count > 0)
        bz_stack_give(&t.cache, held[--count].stack);
    t_stacks_fini(&t);
}

/* ---- depth ------------------------------------------------------------------------------------ */

static void use_deep(struct t_stacks *t, struct bz_stack *s)
{
    CHECK_EQ(t_stack_take(t, BZ_STACK_256K), s);
    t_stack_dirty(s, 200 << 10);
    bz_stack_give(&t->cache, s);
}
static void use_shallow(struct t_stacks *t, struct bz_stack *s)
{
    CHECK_EQ(t_stack_take(t, BZ_STACK_256K), s);
    t_stack_dirty(s, 1000);
    bz_stack_give(&t->cache, s);
}

TEST(stack, deep_pages_go_back_when_shallow_users_follow)
{
    struct t_stacks t;
    t_stacks_init(&t, (struct bz_stack_config){0});
    struct bz_stack *s = t_stack_take(&t, BZ_STACK_256K);
    bz_stack_give(&t.cache, s);

    use_deep(&t, s);
    CHECK_GE(t_stack_resident(s), 50);
    for (int i = 0; i < DEEP_USES - 1; i++)
        use_shallow(&t, s);
    CHECK_GE(t_stack_resident(s), 50); /* one more chance */
    use_shallow(&t, s);
    CHECK_LE(t_stack_resident(s), KEPT_PAGES);

    use_deep(&t, s); /* and once more, now that the mark lies deeper */
    CHECK_GE(t_stack_resident(s), 50);
    for (int i = 0; i < DEEP_USES; i++)
        use_shallow(&t, s);
    CHECK_LE(t_stack_resident(s), KEPT_PAGES);
    t_stacks_fini(&t);
}

/* Giving pages back between two deep uses would cost more than either. */
TEST(stack, users_that_all_go_deep_keep_their_pages)
{
    struct t_stacks t;
    t_stacks_init(&t, (struct bz_stack_config){0});
    struct bz_stack *s = t_stack_take(&t, BZ_STACK_256K);
    bz_stack_give(&t.cache, s);
    for (int i = 0; i < 100; i++) {
        use_deep(&t, s);
        for (int k = 0; k < DEEP_USES - 1; k++)
            use_shallow(&t, s);
        CHECK_GE(t_stack_resident(s), 50);
    }
    t_stacks_fini(&t);
}

/* Users of a few pages, as most are, must not cost a system call now and then. */
TEST(stack, pages_of_the_kept_zone_stay)
{
    struct t_stacks t;
    t_stacks_init(&t, (struct bz_stack_config){0});
    struct bz_stack *s = t_stack_take(&t, BZ_STACK_256K);
    bz_stack_give(&t.cache, s);
    for (int i = 0; i < 50; i++) {
        CHECK_EQ(t_stack_take(&t, BZ_STACK_256K), s);
        t_stack_dirty(s, 3 * page_bytes() - 1024);
        bz_stack_give(&t.cache, s);
        CHECK_GE(t_stack_resident(s), 3);
        CHECK_LE(t_stack_resident(s), KEPT_PAGES);
    }
    t_stacks_fini(&t);
}

TEST(stack, one_that_sinks_in_the_cache_gives_its_deep_pages_back_at_once)
{
    struct t_stacks t;
    struct bz_stack *s[HOT + 1];
    t_stacks_init(&t, (struct bz_stack_config){0});
    for (int i = 0; i <= HOT; i++)
        s[i] = t_stack_take(&t, BZ_STACK_256K);
    t_stack_dirty(s[0], 200 << 10);
    for (int i = 0; i < HOT; i++)
        bz_stack_give(&t.cache, s[i]);
    CHECK_GE(t_stack_resident(s[0]), 50);
    bz_stack_give(&t.cache, s[HOT]);
    CHECK_LE(t_stack_resident(s[0]), KEPT_PAGES);
    t_stacks_fini(&t);
}

TEST(stack, an_owner_that_rests_gives_back_the_deep_pages_of_all_it_keeps)
{
    struct t_stacks t;
    t_stacks_init(&t, (struct bz_stack_config){0});
    struct bz_stack *s = t_stack_take(&t, BZ_STACK_1M);
    t_stack_dirty(s, 900 << 10);
    bz_stack_give(&t.cache, s);
    CHECK_GE(t_stack_resident(s), 200);
    bz_stack_cache_trim(&t.cache);
    CHECK_LE(t_stack_resident(s), KEPT_PAGES);
    bz_stack_cache_trim(&t.cache);
    t_stacks_fini(&t);
}

struct deep_park {
    struct bz_stack *stack;
    int resident;
};

static BZ_NOINLINE void park_in_the_deep(struct bz_coro *c, struct bz_stack *s)
{
    volatile char frame[100 << 10];
    for (size_t i = 0; i < sizeof frame; i++)
        frame[i] = (char)i;
    for (int i = 0; i < 3 * DEEP_USES; i++) {
        bz_stack_trim(s);
        bz_coro_yield(c);
    }
    for (size_t i = 0; i < sizeof frame; i++)
        CHECK_EQ(frame[i], (char)i);
}
static void park_deep_then_shallow(struct bz_coro *c, void *arg)
{
    struct deep_park *d = arg;
    park_in_the_deep(c, d->stack);
    for (int i = 0; i < DEEP_USES + 2; i++) { /* found wide, mark planted, then counted down */
        bz_stack_trim(d->stack);
        bz_coro_yield(c);
    }
    d->resident = t_stack_resident(d->stack);
}

/* Live data is never touched, however often a task parks; unused pages are freed. */
TEST(stack, parking_in_the_deep_keeps_the_frames_and_parking_shallow_gives_pages_back)
{
    struct t_stacks t;
    struct bz_coro c;
    t_stacks_init(&t, (struct bz_stack_config){0});
    struct deep_park d = {t_stack_take(&t, BZ_STACK_256K), -1};
    bz_coro_init(&c, d.stack->low, bz_stack_top(d.stack), park_deep_then_shallow, &d);
    while (bz_coro_resume(&c))
        ;
    CHECK_GE(d.resident, 1);
    if (!BZ_ASAN && !BZ_TSAN)
        CHECK_LE(d.resident, KEPT_PAGES);
    bz_coro_fini(&c);
    bz_stack_give(&t.cache, d.stack);
    t_stacks_fini(&t);
}

/* ---- slabs ------------------------------------------------------------------------------------ */

static struct bz_stack *many[5000];

static void take_many(struct t_stacks *t, int n)
{
    for (int i = 0; i < n; i++)
        many[i] = t_stack_take(t, BZ_STACK_64K);
}
static void give_many(struct t_stacks *t, int n)
{
    for (int i = 0; i < n; i++)
        bz_stack_give(&t->cache, many[i]);
}

TEST(stack, slabs_grow_with_the_demand_and_empty_ones_are_returned)
{
    struct t_stacks t;
    t_stacks_init(&t, (struct bz_stack_config){.idle_max = 64});
    take_many(&t, 5000);
    CHECK_GE(t.pool.kind[BZ_STACK_64K].slabs, 5u);
    CHECK_LE(t.pool.kind[BZ_STACK_64K].slabs, 12u); /* 32 + 64 + ... + 1024 ... */
    bz_stack_pool_check(&t.pool);

    give_many(&t, 5000);

    bz_stack_pool_check(&t.pool);
    CHECK_LE(t.pool.kind[BZ_STACK_64K].slabs, 4u); /* those of the cached and the idle ones */
    t_stacks_fini(&t);
}

TEST(stack, the_pool_keeps_no_more_idle_stacks_than_it_may)
{
    struct t_stacks t;
    t_stacks_init(&t, (struct bz_stack_config){.idle_max = 100});
    take_many(&t, 2000);
    for (int i = 0; i < 2000; i += 2)
        bz_stack_give(&t.cache, many[i]); /* every other one: no slab empties */
    CHECK_LE(t.pool.kind[BZ_STACK_64K].idle, 100u);
    bz_stack_pool_check(&t.pool);

    struct bz_stack *again[900]; /* swept stacks are as good as new */
    for (int i = 0; i < 900; i++) {
        again[i] = t_stack_take(&t, BZ_STACK_64K);
        t_stack_dirty(again[i], bz_stack_bytes(again[i]) / 2);
    }
    for (int i = 0; i < 900; i++)
        bz_stack_give(&t.cache, again[i]);
    for (int i = 1; i < 2000; i += 2)
        bz_stack_give(&t.cache, many[i]);
    t_stacks_fini(&t);
}

TEST(stack, a_trimmed_pool_holds_no_memory_but_for_stacks_in_use)
{
    struct t_stacks t;
    t_stacks_init(&t, (struct bz_stack_config){0});
    take_many(&t, 500);
    for (int i = 0; i < 499; i++)
        bz_stack_give(&t.cache, many[i]);
    bz_stack_cache_fini(&t.cache);
    CHECK_EQ(t.pool.kind[BZ_STACK_64K].idle, 499u);

    bz_stack_pool_trim(&t.pool);

    CHECK_EQ(t.pool.kind[BZ_STACK_64K].idle, 0u);
    CHECK_LE(t.pool.kind[BZ_STACK_64K].slabs, 2u);
    bz_stack_pool_check(&t.pool);
    bz_stack_give(&t.cache, many[499]);
    t_stacks_fini(&t);
}

TEST(stack, neighbours_do_not_start_in_the_same_cache_sets)
{
    struct t_stacks t;
    uint64_t seen = 0;
    t_stacks_init(&t, (struct bz_stack_config){0});
    for (int i = 0; i < BZ_STACK_COLOURS; i++) {
        many[i] = t_stack_take(&t, BZ_STACK_64K);
        seen |= UINT64_C(1) << ((uintptr_t)many[i] % page_bytes() / 64 % 64);
    }
    CHECK_EQ(__builtin_popcountll(seen), BZ_STACK_COLOURS);
    give_many(&t, BZ_STACK_COLOURS);
    t_stacks_fini(&t);
}

TEST(stack, is_found_by_any_address_of_it_and_only_while_it_is_in_use)
{
    struct t_stacks t;
    char *guard = NULL;
    t_stacks_init(&t, (struct bz_stack_config){0});
    struct bz_stack *a = t_stack_take(&t, BZ_STACK_64K), *b = t_stack_take(&t, BZ_STACK_256K);
    CHECK_EQ(bz_stack_pool_find(&t.pool, a->low, &guard), a);
    CHECK_LT(guard, a->low);
    CHECK_EQ(bz_stack_pool_find(&t.pool, guard, &guard), a);
    CHECK_EQ(bz_stack_pool_find(&t.pool, a->low - 1, &guard), a);
    CHECK_EQ(bz_stack_pool_find(&t.pool, a, &guard), a);
    CHECK_EQ(bz_stack_pool_find(&t.pool, b->low + 5, &guard), b);
    CHECK_NULL(bz_stack_pool_find(&t.pool, guard - 1, &guard)); /* another slab, or none */
    CHECK_NULL(bz_stack_pool_find(&t.pool, &t, &guard));
    CHECK_NULL(
        bz_stack_pool_find(&t.pool, a->low + (64 << 10), &guard)); /* its untouched neighbour */
    bz_lock_take(&t.pool.lock, t.pool.os); /* as if the crash came in the middle of the pool */
    CHECK_NULL(bz_stack_pool_find(&t.pool, a->low, &guard));
    bz_lock_drop(&t.pool.lock, t.pool.os);
    bz_stack_give(&t.cache, a);
    bz_stack_give(&t.cache, b);
    t_stacks_fini(&t);
}

static void end_too_early(void *arg)
{
    struct t_stacks t;
    (void)arg;
    t_stacks_init(&t, (struct bz_stack_config){0});
    t_stack_take(&t, BZ_STACK_64K);
    bz_stack_pool_fini(&t.pool);
}

TEST(stack, a_pool_that_ends_with_stacks_out_aborts_and_says_how_many)
{
    CHECK_ABORTS(end_too_early, NULL, "1 stacks of class 0 are still in use");
}
