/*
 * mpmc.h on real threads: every item exactly once, in rings from tiny to roomy.
 *
 * A thread that finds the ring full or empty yields. Beside burning processes each yield costs a slice of a few
 * milliseconds, so pushers stop after some seconds with the items that they have pushed by then.
 */
#include "harness.h"

#include <sched.h>
#include <time.h>

#include "support/mpmc.h"

enum { SIDE = 3, LIMIT_S = 5 };
static struct bz_mpmc ring;
static uint64_t each;
static unsigned char *seen;
static bz_atomic(uint64_t) taken;
static bz_atomic(unsigned) pushers; /* that have not ended */
static bz_atomic(uint64_t) pushed;  /* by those that have */
static time_t limit;

struct item { /* plain memory, handed over by the ring */
    uint64_t number, twice;
};
static struct item *items;

static time_t seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec;
}

static void push_some(int pusher)
{
    uint64_t i = 0;
    for (; i < each && (i % 64 != 0 || seconds() < limit); i++) {
        struct item *it = &items[(uint64_t)pusher * each + i];
        it->number = (uint64_t)pusher * each + i;
        it->twice = it->number * 2;
        while (!bz_mpmc_push(&ring, it))
            sched_yield();
    }
    bz_fetch_add_relaxed(&pushed, i);
    bz_fetch_sub_release(&pushers, 1); /* is_all_taken: with it the sum is complete */
}

static bool is_all_taken(void)
{
    return bz_load_acquire(&pushers) == 0 && /* push_some */
           bz_load_relaxed(&taken) == bz_load_relaxed(&pushed);
}

static void take_some(void)
{
    while (!is_all_taken()) {
        void *p;
        if (!bz_mpmc_take(&ring, &p)) {
            sched_yield();
            continue;
        }
        struct item *it = p;
        CHECK_EQ(it->twice, it->number * 2);
        CHECK_EQ(seen[it->number]++, 0); /* plain: the owner of the item owns its mark */
        bz_fetch_add_relaxed(&taken, 1);
    }
}

static void both_sides(void *arg, int index)
{
    (void)arg;
    if (index < SIDE)
        push_some(index);
    else
        take_some();
}

static void exactly_once_through(size_t capacity)
{
    each = t_scaled(60000);
    limit = seconds() + LIMIT_S;
    bz_store_relaxed(&taken, 0);
    bz_store_relaxed(&pushed, 0);
    bz_store_relaxed(&pushers, SIDE);
    CHECK_NOT_NULL(items = calloc(SIDE * each, sizeof *items));
    CHECK_NOT_NULL(seen = calloc(SIDE * each, 1));
    CHECK_EQ(bz_mpmc_init(&ring, capacity, &bz_allocator_libc), 0);
    t_threads(2 * SIDE, both_sides, NULL);
    bz_mpmc_check(&ring);
    CHECK_EQ(bz_mpmc_count(&ring), 0u);
    uint64_t count = 0;
    for (uint64_t i = 0; i < SIDE * each; i++)
        count += seen[i];
    CHECK_EQ(count, bz_load_relaxed(&pushed));
    CHECK_GT(count, 0u);
    bz_mpmc_fini(&ring);
    free(items);
    free(seen);
}

TEST(mpmc, a_ring_of_two_passes_each_item_once)
{
    exactly_once_through(2);
}
TEST(mpmc, a_ring_of_sixteen_passes_each_item_once)
{
    exactly_once_through(16);
}
TEST(mpmc, a_roomy_ring_passes_each_item_once)
{
    exactly_once_through(1024);
}
