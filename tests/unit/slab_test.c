/* slab.h: owners, chunks, batches; one thread at a time. Its races are in stress and model. */
#include "harness.h"

#include "base/poison.h"
#include "base/slab.h"
#include "support/death.h"
#include "support/slab_end.h"
#include "support/test_alloc.h"

static struct test_alloc memory = TEST_ALLOC;
static struct bz_slab_class kind;
static struct bz_slab mine, yours;

static void given_two_slabs_of(size_t size)
{
    blitz_allocator from = test_allocator(&memory);
    CHECK_EQ(bz_slab_class_init(&kind, "thing", size, 0, &from), 0);
    bz_slab_init(&mine, &kind);
    bz_slab_init(&yours, &kind);
}

static void then_nothing_is_left(void)
{
    bz_slab_flush(&mine);
    bz_slab_flush(&yours);
    CHECK_EQ(t_slab_fini(&mine), 0u);
    CHECK_EQ(t_slab_fini(&yours), 0u);
    CHECK_EQ(memory.live, 0u);
}

TEST(slab, an_unused_slab_takes_no_memory)
{
    given_two_slabs_of(48);
    bz_slab_check(&mine);
    CHECK_EQ(memory.calls, 0u);
    then_nothing_is_left();
}

TEST(slab, objects_are_apart_aligned_and_all_ones_own)
{
    static const size_t sizes[] = {1, 8, 16, 17, 48, 100, 1000, 4096, BZ_SLAB_CHUNK / 4};
    for (size_t k = 0; k < BZ_ARRAY_LEN(sizes); k++) {
        enum { N = 64 };
        unsigned char *object[N];
        given_two_slabs_of(sizes[k]);
        for (int i = 0; i < N; i++) {
            object[i] = bz_slab_alloc(&mine);
            CHECK_NOT_NULL(object[i]);
            CHECK_EQ((uintptr_t)object[i] % 16, 0u);
            memset(object[i], i, sizes[k]);
        }
        bz_slab_check(&mine);
        for (int i = 0; i < N; i++) {
            CHECK_EQ(object[i][0], i);
            CHECK_EQ(object[i][sizes[k] - 1], i);
            bz_slab_free(&mine, object[i]);
        }
        bz_slab_check(&mine);
        then_nothing_is_left();
    }
}

TEST(slab, alignment_is_kept_up_to_a_quarter_of_a_chunk)
{
    blitz_allocator from = test_allocator(&memory);
    for (size_t align = 1; align <= BZ_SLAB_CHUNK / 4; align *= 2) {
        CHECK_EQ(bz_slab_class_init(&kind, "aligned", 24, align, &from), 0);
        bz_slab_init(&mine, &kind);
        void *a = bz_slab_alloc(&mine), *b = bz_slab_alloc(&mine), *c = bz_slab_alloc(&mine);
        CHECK_EQ((uintptr_t)a % align, 0u);
        CHECK_EQ((uintptr_t)b % align, 0u);
        CHECK_EQ((uintptr_t)c % align, 0u);
        bz_slab_free(&mine, a);
        bz_slab_free(&mine, b);
        bz_slab_free(&mine, c);
        CHECK_EQ(t_slab_fini(&mine), 0u);
    }
    CHECK_EQ(memory.live, 0u);
}

TEST(slab, classes_that_cannot_work_are_refused)
{
    blitz_allocator from = test_allocator(&memory);
    CHECK_EQ(bz_slab_class_init(&kind, "none", 0, 0, &from), -EINVAL);
    CHECK_EQ(bz_slab_class_init(&kind, "huge", BZ_SLAB_CHUNK / 4 + 1, 0, &from), -EINVAL);
    CHECK_EQ(bz_slab_class_init(&kind, "odd", 16, 24, &from), -EINVAL);
    CHECK_EQ(bz_slab_class_init(&kind, "wide", 16, BZ_SLAB_CHUNK / 2, &from), -EINVAL);
}

/* The hottest object is in the cache: last freed, first allocated. */
TEST(slab, the_last_freed_is_the_next_allocated)
{
    given_two_slabs_of(64);
    void *a = bz_slab_alloc(&mine), *b = bz_slab_alloc(&mine);
    bz_slab_free(&mine, a);
    bz_slab_free(&mine, b);
    CHECK_EQ(bz_slab_alloc(&mine), b);
    CHECK_EQ(bz_slab_alloc(&mine), a);
    bz_slab_free(&mine, a);
    bz_slab_free(&mine, b);
    then_nothing_is_left();
}

TEST(slab, null_is_ignored)
{
    given_two_slabs_of(64);
    bz_slab_free(&mine, NULL);
    bz_slab_free_outside(NULL);
    then_nothing_is_left();
}

/* After a burst the memory goes back, all but what a lone object needs. */
TEST(slab, empty_chunks_go_back_to_the_allocator)
{
    enum { N = 1000 };
    void *object[N];
    given_two_slabs_of(1024);
    for (int i = 0; i < N; i++)
        object[i] = bz_slab_alloc(&mine);
    CHECK_GE(memory.live, 15u);
    for (int i = 0; i < N; i++)
        bz_slab_free(&mine, object[i]);
    bz_slab_check(&mine);
    CHECK_LE(memory.live, 2u);
    then_nothing_is_left();
}

/* One object that comes and goes must not drag a chunk in and out of the allocator each time. */
TEST(slab, a_lone_object_costs_one_chunk_once)
{
    given_two_slabs_of(64);
    for (int i = 0; i < 1000; i++)
        bz_slab_free(&mine, bz_slab_alloc(&mine));
    CHECK_EQ(memory.calls, 1u);
    then_nothing_is_left();
}

/* An object that sits on the edge of a chunk: the worst place to come and go. */
TEST(slab, the_edge_of_a_chunk_does_not_thrash_either)
{
    given_two_slabs_of(4096);
    void *object[64];
    unsigned n = kind.per_chunk;
    for (unsigned i = 0; i < n; i++)
        object[i] = bz_slab_alloc(&mine);
    for (int i = 0; i < 1000; i++)
        bz_slab_free(&mine, bz_slab_alloc(&mine));
    CHECK_LE(memory.calls, 2u);
    for (unsigned i = 0; i < n; i++)
        bz_slab_free(&mine, object[i]);
    then_nothing_is_left();
}

TEST(slab, foreign_objects_go_home_in_batches)
{
    enum { N = BZ_SLAB_BATCH * 3 };
    void *object[N];
    given_two_slabs_of(64);
    for (int i = 0; i < N; i++)
        object[i] = bz_slab_alloc(&mine);

    for (int i = 0; i < BZ_SLAB_BATCH - 1; i++)
        bz_slab_free(&yours, object[i]);
    CHECK_NULL(bz_load_relaxed(&mine.inbox));
    bz_slab_free(&yours, object[BZ_SLAB_BATCH - 1]);
    CHECK_NOT_NULL(bz_load_relaxed(&mine.inbox));
    CHECK_EQ(mine.used, (size_t)N); /* I3: not heard of yet */

    bz_slab_collect(&mine);
    CHECK_EQ(mine.used, (size_t)(N - BZ_SLAB_BATCH));
    bz_slab_check(&mine);
    bz_slab_check(&yours);

    for (int i = BZ_SLAB_BATCH; i < N; i++)
        bz_slab_free(&yours, object[i]);
    then_nothing_is_left();
}

TEST(slab, a_flush_sends_partial_batches)
{
    given_two_slabs_of(64);
    void *a = bz_slab_alloc(&mine), *b = bz_slab_alloc(&mine);
    bz_slab_free(&yours, a);
    bz_slab_flush(&yours);
    bz_slab_flush(&yours); /* nothing left: no harm */
    bz_slab_free_outside(b);

    bz_slab_collect(&mine);

    CHECK_EQ(mine.used, 0u);
    then_nothing_is_left();
}

/* More homes than batches: some are evicted early, none is lost. */
TEST(slab, objects_of_many_homes_all_find_theirs)
{
    enum { HOMES = 16, EACH = 20 };
    static struct bz_slab home[HOMES];
    void *object[HOMES][EACH];
    given_two_slabs_of(64);
    for (int h = 0; h < HOMES; h++) {
        bz_slab_init(&home[h], &kind);
        for (int i = 0; i < EACH; i++)
            object[h][i] = bz_slab_alloc(&home[h]);
    }
    for (int i = 0; i < EACH; i++)
        for (int h = 0; h < HOMES; h++)
            bz_slab_free(&mine, object[h][i]);
    bz_slab_flush(&mine);
    for (int h = 0; h < HOMES; h++) {
        CHECK_EQ(t_slab_fini(&home[h]), 0u);
    }
    then_nothing_is_left();
}

/* A producer whose objects all die elsewhere lives on what comes home, not on new memory. */
TEST(slab, allocation_collects_the_inbox_before_it_asks_for_memory)
{
    given_two_slabs_of(1024);
    for (int round = 0; round < 10000; round++)
        bz_slab_free(&yours, bz_slab_alloc(&mine));
    CHECK_LE(memory.calls, 3u);
    bz_slab_flush(&yours);
    bz_slab_check(&mine);
    then_nothing_is_left();
}

/* Every allocation of a chunk may fail, and the slab continues to work. */
TEST(slab, a_failed_chunk_is_null_and_nothing_is_lost)
{
    enum { N = 200 };
    for (size_t n = 1; n < 6; n++) {
        void *object[N];
        int got = 0;
        memory.calls = 0;
        memory.fail_at = n;
        given_two_slabs_of(1024);
        while (got < N && (object[got] = bz_slab_alloc(&mine)) != NULL)
            got++;
        if (n < 4) {
            CHECK_LT(got, N);
            bz_slab_check(&mine);
            CHECK_NOT_NULL(object[got] = bz_slab_alloc(&mine)); /* memory is back: so are we */
            got++;
        }
        bz_slab_check(&mine);
        while (got > 0)
            bz_slab_free(&mine, object[--got]);
        then_nothing_is_left();
    }
}

/* Without memory, objects returned by other threads are still reused. */
TEST(slab, without_memory_the_inbox_still_serves)
{
    given_two_slabs_of(4096);
    void *object[64];
    unsigned n = kind.per_chunk;
    for (unsigned i = 0; i < n; i++)
        object[i] = bz_slab_alloc(&mine);
    memory.fail_at = memory.calls + 1;
    CHECK_NULL(bz_slab_alloc(&mine));
    bz_slab_free_outside(object[3]);
    memory.fail_at = memory.calls + 1;
    CHECK_EQ(bz_slab_alloc(&mine), object[3]);
    memory.fail_at = 0;
    for (unsigned i = 0; i < n; i++)
        bz_slab_free(&mine, object[i]);
    then_nothing_is_left();
}

TEST(slab, random_frees_from_two_owners_keep_the_books)
{
    enum { N = 3000 };
    static void *object[2][N];
    struct bz_slab *slab[2] = {&mine, &yours};
    int count[2] = {0, 0};
    given_two_slabs_of(200);
    for (int step = 0; step < 40000; step++) {
        int home = (int)t_random_below(2), by = (int)t_random_below(2);
        if (count[home] < N && t_random_below(100) < 51) {
            void *o = bz_slab_alloc(slab[home]);
            CHECK_NOT_NULL(o);
            object[home][count[home]++] = o;
        } else if (count[home] > 0) {
            int pick = (int)t_random_below((uint64_t)count[home]);
            bz_slab_free(slab[by], object[home][pick]);
            object[home][pick] = object[home][--count[home]];
        }
        if (step % 1000 == 0) {
            bz_slab_check(&mine);
            bz_slab_check(&yours);
        }
    }
    for (int home = 0; home < 2; home++)
        while (count[home] > 0)
            bz_slab_free(&mine, object[home][--count[home]]);
    then_nothing_is_left();
}

/* A fresh page costs more than what is made in it: a tide keeps its chunks. */
TEST(slab, a_hoarding_class_keeps_chunks_that_the_next_burst_needs)
{
    static void *o[4000];
    given_two_slabs_of(64);
    bz_slab_class_hoard(&kind);
    size_t asked[3];
    for (int tide = 0; tide < 3; tide++) {
        for (int i = 0; i < 4000; i++)
            o[i] = bz_slab_alloc(&mine);
        asked[tide] = memory.live;
        for (int i = 0; i < 4000; i++)
            bz_slab_free(&mine, o[i]);
        CHECK(memory.live > asked[tide] * 3 / 4);
        bz_slab_check(&mine);
    }
    CHECK_EQ(asked[2], asked[0]);
    CHECK_EQ(t_slab_fini(&mine), 0u);
    CHECK_EQ(memory.live, 0u);
}

/* But a height that was reached once is not kept for ever. */
TEST(slab, a_hoarding_class_lets_go_in_the_course_of_its_work)
{
    static void *o[4000];
    given_two_slabs_of(64);
    bz_slab_class_hoard(&kind);
    for (int i = 0; i < 4000; i++)
        o[i] = bz_slab_alloc(&mine);
    size_t height = memory.live;
    for (int i = 0; i < 4000; i++)
        bz_slab_free(&mine, o[i]);
    for (int round = 0; round < 1000; round++) { /* two chunks come and go */
        for (int i = 0; i < 1200; i++)
            o[i] = bz_slab_alloc(&mine);
        for (int i = 0; i < 1200; i++)
            bz_slab_free(&mine, o[i]);
    }
    CHECK(memory.live < height);
    CHECK(memory.live <= 4);
    bz_slab_trim(&mine);
    CHECK(memory.live <= 2); /* the current one, and one that is spare */
    CHECK_EQ(t_slab_fini(&mine), 0u);
}

TEST(slab, fini_counts_objects_in_use)
{
    given_two_slabs_of(64);
    void *kept = bz_slab_alloc(&mine);
    bz_slab_free(&mine, bz_slab_alloc(&mine));
    CHECK_EQ(t_slab_fini(&mine), 1u);
    CHECK_EQ(memory.live, 1u); /* its chunk is left to it */
    bz_free(&kind.from, (void *)((uintptr_t)kept & ~(uintptr_t)(BZ_SLAB_CHUNK - 1)),
            BZ_SLAB_CHUNK_BYTES);
}

TEST(slab, fini_without_a_flush_is_named)
{
    given_two_slabs_of(64);
    void *a = bz_slab_alloc(&mine);
    bz_slab_free(&yours, a);
    DIES("slab of thing not flushed", t_slab_fini(&yours));
    then_nothing_is_left();
}

#if defined(BZ_DEBUG) && !BZ_ASAN
TEST(slab, debug_a_second_free_is_named)
{
    given_two_slabs_of(64);
    void *a = bz_slab_alloc(&mine);
    bz_slab_free(&mine, a);
    DIES("freed twice", bz_slab_free(&mine, a));
    DIES("freed twice", bz_slab_free(&yours, a));
    DIES("freed twice", bz_slab_free_outside(a));
}

TEST(slab, debug_a_write_after_free_is_named)
{
    given_two_slabs_of(64);
    char *a = bz_slab_alloc(&mine);
    bz_slab_free(&mine, a);
    DIES("byte 40 written after free", a[40] = 1; bz_slab_alloc(&mine));
    DIES("written after free", a[8] ^= 1; bz_slab_alloc(&mine));
}

TEST(slab, debug_objects_of_another_class_are_refused)
{
    blitz_allocator from = test_allocator(&memory);
    struct bz_slab_class other_kind;
    struct bz_slab other;
    given_two_slabs_of(64);
    CHECK_EQ(bz_slab_class_init(&other_kind, "other", 64, 0, &from), 0);
    bz_slab_init(&other, &other_kind);
    void *a = bz_slab_alloc(&mine);
    DIES("home->kind == s->kind", bz_slab_free(&other, a));
}
#endif

TEST(slab, check_reports_each_broken_invariant)
{
    given_two_slabs_of(64);
    void *a = bz_slab_alloc(&mine), *b = bz_slab_alloc(&mine);
    bz_slab_free(&mine, a);
    DIES("used, says", mine.used = 7; bz_slab_check(&mine));
    DIES("chunks, says", bz_store_relaxed(&mine.chunk_count, 7); bz_slab_check(&mine));
    DIES("empty, says", mine.empty_count = 7; bz_slab_check(&mine));
    bz_slab_free(&mine, b);
    then_nothing_is_left();
}

/* ---- watched classes ---- */

struct watched {
    bz_atomic(uint64_t) word;
    char rest[56];
};

static void given_watched_slabs(void)
{
    blitz_allocator from = test_allocator(&memory);
    CHECK_EQ(bz_slab_class_init(&kind, "watched", sizeof(struct watched), 64, &from), 0);
    bz_slab_class_watch(&kind);
    bz_slab_init(&mine, &kind);
    bz_slab_init(&yours, &kind);
}

/* How many objects of `mine` a walk shows, and how many of them say that they are alive. */
static unsigned walk(unsigned *alive)
{
    struct bz_slab_walk w;
    unsigned seen = 0;
    *alive = 0;
    CHECK(bz_slab_walk_begin(&w, &mine));
    for (struct watched *o; (o = bz_slab_walk_next(&w)) != NULL; seen++)
        *alive += bz_load_relaxed(&o->word) != 0; /* relaxed: one thread */
    bz_slab_walk_end(&w);
    return seen;
}

/* A free object keeps what its user left in the word, wherever it is: list, batch or inbox. */
TEST(slab, a_walk_tells_the_living_from_the_free)
{
    enum { N = 3000 };
    static struct watched *object[N];
    unsigned alive;
    given_watched_slabs();
    CHECK_EQ(walk(&alive), 0u);
    for (int i = 0; i < N; i++) {
        object[i] = bz_slab_alloc(&mine);
        CHECK_EQ(bz_load_relaxed(&object[i]->word), 0u);     /* relaxed: one thread */
        bz_store_relaxed(&object[i]->word, (uint64_t)i + 1); /* relaxed: one thread */
        memset(object[i]->rest, 0xff, sizeof object[i]->rest);
    }
    CHECK_EQ(walk(&alive), N);
    CHECK_EQ(alive, N);
    for (int i = 0; i < N; i++) {
        bz_store_relaxed(&object[i]->word, 0); /* relaxed: one thread */
        if (i % 3 == 0)
            bz_slab_free(&mine, object[i]);
        else if (i % 3 == 1)
            bz_slab_free(&yours, object[i]);
        else
            CHECK(bz_slab_free_outside(object[i]));
        if (i % 100 == 0) {
            CHECK_EQ(walk(&alive), N);
            CHECK_EQ(alive, N - i - 1);
        }
    }
    bz_slab_check(&mine);
    then_nothing_is_left();
}

/* No chunk goes back under a walker's feet; afterwards they do. */
TEST(slab, a_walk_keeps_chunks_and_the_next_collect_gives_them_back)
{
    enum { N = 5000 };
    static struct watched *object[N];
    struct bz_slab_walk w;
    unsigned seen = 0;
    given_watched_slabs();
    for (int i = 0; i < N; i++) {
        object[i] = bz_slab_alloc(&mine);
        bz_store_relaxed(&object[i]->word, 0); /* relaxed: one thread */
    }
    size_t chunks = memory.live;
    CHECK(bz_slab_walk_begin(&w, &mine));
    CHECK_NOT_NULL(bz_slab_walk_next(&w));
    for (int i = 0; i < N; i++)
        bz_slab_free(&mine, object[i]);
    CHECK_EQ(memory.live, chunks);
    while (bz_slab_walk_next(&w) != NULL)
        seen++;
    CHECK_EQ(seen, N - 1);
    bz_slab_walk_end(&w);
    bz_slab_check(&mine);
    bz_slab_collect(&mine);
    CHECK_LE(memory.live, 2u); /* the current one and a spare */
    bz_slab_check(&mine);
    then_nothing_is_left();
}

/* The thread that frees an object that outlived its slab's owner counts it. */
TEST(slab, a_free_to_a_closed_slab_is_reported)
{
    given_watched_slabs();
    void *a = bz_slab_alloc(&mine), *b = bz_slab_alloc(&mine), *c = bz_slab_alloc(&mine);
    CHECK(bz_slab_free_outside(a));
    CHECK_EQ(bz_slab_close(&mine), 2u);
    CHECK(!bz_slab_free_outside(b));
    CHECK(!bz_slab_free_outside(c));
    bz_slab_release(&mine);
    then_nothing_is_left();
}
