/* sched/runq.h: the run ring, step by step. Its races are in tests/stress and tests/model. */
#include "harness.h"

#include "sched/runq.h"
#include "support/death.h"

static struct bz_runq mine, yours;
static bz_entry spilled[BZ_RUNQ_SPILL];
static unsigned spilled_count;

static void given_two_rings(void)
{
    bz_runq_init(&mine);
    bz_runq_init(&yours);
}

static enum bz_pushed push(bz_entry e)
{
    return bz_runq_push(&mine, e, spilled, &spilled_count);
}

static void push_all(bz_entry first, bz_entry last)
{
    for (bz_entry e = first; e <= last; e++)
        CHECK_EQ((int)push(e), (int)BZ_PUSHED);
}

TEST(runq, gives_back_in_order)
{
    given_two_rings();
    CHECK_EQ(bz_runq_take(&mine), 0u);
    for (int lap = 0; lap < 5; lap++) {
        push_all(1, 200);
        CHECK_EQ(bz_runq_count(&mine), 200u);
        bz_runq_check(&mine);
        for (bz_entry e = 1; e <= 200; e++)
            CHECK_EQ(bz_runq_take(&mine), e);
        CHECK_EQ(bz_runq_take(&mine), 0u);
    }
}

/* A full ring gives up its older half, in order, and the new entry behind it. */
TEST(runq, overflow_spills_the_older_half_and_the_new_one)
{
    given_two_rings();
    push_all(1, BZ_RUNQ_CAP);
    CHECK_EQ((int)push(999), (int)BZ_PUSH_SPILL);
    CHECK_EQ(spilled_count, BZ_RUNQ_CAP / 2 + 1);
    for (unsigned i = 0; i < BZ_RUNQ_CAP / 2; i++)
        CHECK_EQ(spilled[i], i + 1u);
    CHECK_EQ(spilled[BZ_RUNQ_CAP / 2], 999u);
    bz_runq_check(&mine);
    for (bz_entry e = BZ_RUNQ_CAP / 2 + 1; e <= BZ_RUNQ_CAP; e++)
        CHECK_EQ(bz_runq_take(&mine), e);
    CHECK_EQ(bz_runq_take(&mine), 0u);
}

/* For every fill: the thief gets half, rounded up; the newest of it in hand, the rest queued. */
TEST(runq, a_steal_takes_half_and_hands_over_the_newest)
{
    for (bz_entry n = 1; n <= BZ_RUNQ_CAP; n++) {
        given_two_rings();
        push_all(1, n);
        bz_entry half = n - n / 2;

        CHECK_EQ(bz_runq_steal(&mine, &yours), half);

        bz_runq_check(&mine);
        bz_runq_check(&yours);
        CHECK_EQ(bz_runq_count(&yours), half - 1);
        CHECK_EQ(bz_runq_count(&mine), n / 2);
        for (bz_entry e = 1; e < half; e++)
            CHECK_EQ(bz_runq_take(&yours), e);
        for (bz_entry e = half + 1; e <= n; e++)
            CHECK_EQ(bz_runq_take(&mine), e);
    }
}

TEST(runq, nothing_to_steal_is_zero)
{
    given_two_rings();
    CHECK_EQ(bz_runq_steal(&mine, &yours), 0u);
    push_all(1, 1);
    CHECK_EQ(bz_runq_steal(&mine, &yours), 1u);
    CHECK_EQ(bz_runq_steal(&mine, &yours), 0u);
}

/* Half of a full ring must always fit into what the thief has left. */
TEST(runq, a_thief_with_more_than_half_full_steals_nothing)
{
    given_two_rings();
    push_all(1, BZ_RUNQ_CAP);
    for (unsigned i = 0; i <= BZ_RUNQ_CAP / 2; i++)
        CHECK_EQ((int)bz_runq_push(&yours, 1000 + i, spilled, &spilled_count), (int)BZ_PUSHED);
    CHECK_EQ(bz_runq_steal(&mine, &yours), 0u);
    CHECK_EQ(bz_runq_take(&yours), 1000u);
    CHECK_EQ(bz_runq_steal(&mine, &yours), (bz_entry)BZ_RUNQ_CAP / 2);
    bz_runq_check(&yours);
}

/* A thief stopped between claim and release, built by hand. */
static void given_a_thief_at_work(uint32_t steal, uint32_t real)
{
    bz_store_relaxed(&mine.head, (uint64_t)steal << 32 | real);
}

TEST(runq, while_a_thief_copies_the_owner_goes_on_behind_it)
{
    given_two_rings();
    push_all(1, 8);
    given_a_thief_at_work(0, 4);

    CHECK_EQ(bz_runq_count(&mine), 4u);
    CHECK_EQ(bz_runq_take(&mine), 5u);
    CHECK_EQ(bz_runq_steal(&mine, &yours), 0u); /* one thief at a time */
    push_all(9, 9);
    for (bz_entry e = 6; e <= 9; e++)
        CHECK_EQ(bz_runq_take(&mine), e);
    CHECK_EQ(bz_runq_take(&mine), 0u);
}

TEST(runq, what_is_being_copied_is_not_overwritten)
{
    given_two_rings();
    push_all(1, BZ_RUNQ_CAP);
    given_a_thief_at_work(0, BZ_RUNQ_CAP / 2);

    CHECK_EQ((int)push(999), (int)BZ_PUSH_BUSY);

    bz_store_relaxed(&mine.head, (uint64_t)BZ_RUNQ_CAP / 2 << 32 | BZ_RUNQ_CAP / 2);
    CHECK_EQ((int)push(999), (int)BZ_PUSHED);
    bz_runq_check(&mine);
}

/* Bug class 2: indices wrap. Start just below it and go through, pushing, taking, stealing. */
TEST(runq, bug_02_indices_that_wrap_lose_nothing)
{
    given_two_rings();
    uint32_t start = UINT32_MAX - 300;
    bz_store_relaxed(&mine.head, (uint64_t)start << 32 | start);
    bz_store_relaxed(&mine.tail, start);
    bz_entry in = 0, out = 0;
    while (in < 3000) {
        for (int i = 0; i < 50; i++)
            CHECK_EQ((int)push(++in), (int)BZ_PUSHED);
        bz_entry newest = bz_runq_steal(&mine, &yours);
        for (bz_entry e; (e = bz_runq_take(&yours)) != 0;)
            CHECK_EQ(e, ++out);
        CHECK_EQ(newest, ++out);
        for (bz_entry e; (e = bz_runq_take(&mine)) != 0;)
            CHECK_EQ(e, ++out);
        CHECK_EQ(in, out);
        bz_runq_check(&mine);
    }
    CHECK_LT(bz_load_relaxed(&mine.tail), start); /* it did wrap */
}

TEST(runq, check_names_what_is_wrong)
{
    given_two_rings();
    push_all(1, 4);
    DIES("steal 0, real 2", given_a_thief_at_work(0, 2); bz_runq_check(&mine));
    DIES("from 9 to 4", given_a_thief_at_work(9, 9); bz_runq_check(&mine));
    DIES("slot 1 is empty", bz_set(&mine.slot[1], 0); bz_runq_check(&mine));
}
