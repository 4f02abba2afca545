/* mpmc.h on real threads: every item exactly once, in rings from tiny to roomy. */
#include "harness.h"

#include <sched.h>

#include "support/mpmc.h"

enum { SIDE = 3 };
static struct bz_mpmc ring;
static uint64_t each;
static unsigned char *seen;
static bz_atomic(uint64_t) taken;

struct item { /* plain memory, handed over by the ring */
    uint64_t number, twice;
};
static struct item *items;

static void push_all(int pusher)
{
    for (uint64_t i = 0; i < each; i++) {
        struct item *it = &items[(uint64_t)pusher * each + i];
        it->number = (uint64_t)pusher * each + i;
        it->twice = it->number * 2;
        while (!bz_mpmc_push(&ring, it))
            sched_yield();
    }
}

static void take_some(void)
{
    while (bz_load_relaxed(&taken) < SIDE * each) {
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
        push_all(index);
    else
        take_some();
}

static void exactly_once_through(size_t capacity)
{
    each = t_scaled(60000);
    bz_store_relaxed(&taken, 0);
    CHECK_NOT_NULL(items = calloc(SIDE * each, sizeof *items));
    CHECK_NOT_NULL(seen = calloc(SIDE * each, 1));
    CHECK_EQ(bz_mpmc_init(&ring, capacity, &bz_allocator_libc), 0);
    t_threads(2 * SIDE, both_sides, NULL);
    bz_mpmc_check(&ring);
    CHECK_EQ(bz_mpmc_count(&ring), 0u);
    for (uint64_t i = 0; i < SIDE * each; i++)
        CHECK_EQ(seen[i], 1);
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
