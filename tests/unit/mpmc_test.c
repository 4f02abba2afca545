/* mpmc.h: the bounded ring, step by step. Its races are in tests/stress and tests/model. */
#include "harness.h"

#include "support/mpmc.h"
#include "support/death.h"
#include "support/test_alloc.h"

static struct test_alloc memory = TEST_ALLOC;
static blitz_allocator from;
static struct bz_mpmc ring;

static void given_a_ring_of(size_t capacity)
{
    from = test_allocator(&memory);
    CHECK_EQ(bz_mpmc_init(&ring, capacity, &from), 0);
}

static void *pointer(uintptr_t n)
{
    return (void *)(n + 1);
}

static uintptr_t take(void)
{
    void *p = NULL;
    return bz_mpmc_take(&ring, &p) ? (uintptr_t)p - 1 : UINTPTR_MAX;
}

TEST(mpmc, holds_exactly_its_capacity)
{
    for (size_t capacity = 1; capacity <= 64; capacity++) {
        size_t room = capacity < 2 ? 2 : (size_t)1 << (64 - __builtin_clzll(capacity - 1));
        given_a_ring_of(capacity);
        for (size_t i = 0; i < room; i++) {
            CHECK_EQ(bz_mpmc_count(&ring), i);
            CHECK(bz_mpmc_push(&ring, pointer(i)));
        }
        CHECK(!bz_mpmc_push(&ring, pointer(0)));
        CHECK_EQ(bz_mpmc_count(&ring), room);
        bz_mpmc_check(&ring);
        for (size_t i = 0; i < room; i++)
            CHECK_EQ(take(), i);
        CHECK_EQ(take(), UINTPTR_MAX);
        bz_mpmc_fini(&ring);
    }
    CHECK_EQ(memory.live, 0u);
}

/* Every position of a lap has a cell of its own, and the next lap comes by the same cells. */
TEST(mpmc, every_position_has_its_cell)
{
    for (size_t capacity = 2; capacity <= 1024; capacity *= 2) {
        given_a_ring_of(capacity);
        unsigned char seen[1024] = {0};
        for (size_t p = 0; p < capacity; p++) {
            size_t index = (size_t)(mpmc_cell_of(&ring, p) - ring.cells);
            CHECK_LT(index, capacity);
            CHECK_EQ(seen[index]++, 0);
            CHECK_EQ(mpmc_cell_of(&ring, p + capacity), &ring.cells[index]);
        }
        bz_mpmc_fini(&ring);
    }
}

TEST(mpmc, any_mix_keeps_the_order_over_many_laps)
{
    given_a_ring_of(4);
    uintptr_t in = 0, out = 0;
    for (int step = 0; step < 50000; step++) {
        if (t_random() % 2) {
            CHECK_EQ(bz_mpmc_push(&ring, pointer(in)), in - out < 4);
            in += in - out < 4;
        } else {
            CHECK_EQ(take(), in == out ? UINTPTR_MAX : out);
            out += in != out;
        }
        CHECK_EQ(bz_mpmc_count(&ring), in - out);
        bz_mpmc_check(&ring);
    }
    bz_mpmc_fini(&ring);
}

/* Bug class 2: positions are 64 bits wide; put them before the wrap and go through it. */
TEST(mpmc, bug_02_positions_that_wrap_keep_every_item)
{
    given_a_ring_of(4);
    uint64_t start = UINT64_MAX - 9; /* a multiple of nothing: the wrap falls inside a lap */
    bz_store_relaxed(&ring.push_at, start);
    bz_store_relaxed(&ring.take_at, start);
    for (uint64_t i = 0; i < 4; i++)
        bz_store_relaxed(&mpmc_cell_of(&ring, start + i)->turn, start + i);
    bz_mpmc_check(&ring);

    for (uintptr_t i = 0; i < 40; i += 2) {
        CHECK(bz_mpmc_push(&ring, pointer(i)));
        CHECK(bz_mpmc_push(&ring, pointer(i + 1)));
        CHECK_EQ(bz_mpmc_count(&ring), 2u);
        CHECK_EQ(take(), i);
        CHECK_EQ(take(), i + 1);
        bz_mpmc_check(&ring);
    }
    CHECK_LT(bz_load_relaxed(&ring.push_at), start); /* it did wrap */
    bz_mpmc_fini(&ring);
}

/* A taker stopped between claim and release, built by hand: the ring reads as full, not broken. */
TEST(mpmc, a_cell_still_being_emptied_counts_as_full)
{
    given_a_ring_of(2);
    CHECK(bz_mpmc_push(&ring, pointer(0)));
    CHECK(bz_mpmc_push(&ring, pointer(1)));
    bz_store_relaxed(&ring.take_at, 1); /* half a take: claimed, the turn not yet passed on */

    CHECK_EQ(bz_mpmc_count(&ring), 1u);
    CHECK(!bz_mpmc_push(&ring, pointer(2)));

    bz_store_release(&mpmc_cell_of(&ring, 0)->turn, 2); /* the other half */
    CHECK(bz_mpmc_push(&ring, pointer(2)));
    CHECK_EQ(take(), 1u);
    CHECK_EQ(take(), 2u);
    bz_mpmc_fini(&ring);
}

TEST(mpmc, bad_sizes_and_no_memory_return_errors)
{
    from = test_allocator(&memory);
    CHECK_EQ(bz_mpmc_init(&ring, 0, &from), -EINVAL);
    CHECK_EQ(bz_mpmc_init(&ring, SIZE_MAX, &from), -EINVAL);
    memory.fail_at = 1;
    CHECK_EQ(bz_mpmc_init(&ring, 8, &from), -ENOMEM);
    CHECK_EQ(memory.live, 0u);
}

/* A guess read while positions move: never more than fits, never negative. */
TEST(mpmc, count_stays_between_0_and_the_capacity)
{
    given_a_ring_of(4);
    bz_store_relaxed(&ring.take_at, 3); /* read before a push_at that was read later */
    CHECK_EQ(bz_mpmc_count(&ring), 0u);
    bz_store_relaxed(&ring.take_at, 0);
    bz_store_relaxed(&ring.push_at, 9);
    CHECK_EQ(bz_mpmc_count(&ring), 4u);
    bz_mpmc_fini(&ring);
}

TEST(mpmc, check_reports_each_broken_invariant)
{
    given_a_ring_of(4);
    CHECK(bz_mpmc_push(&ring, pointer(0)));
    DIES("has turn 7", bz_store_relaxed(&mpmc_cell_of(&ring, 2)->turn, 7); bz_mpmc_check(&ring));
    DIES("9 of 4", bz_store_relaxed(&ring.push_at, 9); bz_mpmc_check(&ring));
    bz_mpmc_fini(&ring);
}
