/* queue/runq.h: the run ring, step by step. Its races are in tests/stress and tests/model. */
#include "harness.h"

#include "queue/runq.h"
#include "support/death.h"

static struct bz_runq mine, yours;

static void given_two_rings(void)
{
    bz_runq_init(&mine, false);
    bz_runq_init(&yours, false);
}

static void given_indices_at(uint64_t start)
{
    bz_store_relaxed(&mine.head, start);
    bz_store_relaxed(&mine.tail, start);
}

static void push_all(bz_entry first, bz_entry last)
{
    for (bz_entry e = first; e <= last; e++)
        CHECK(bz_runq_try_push(&mine, e));
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

/* A full ring spills its oldest entries in order; then there is room. */
TEST(runq, a_full_ring_takes_no_more_until_its_oldest_are_taken_out)
{
    static bz_entry spilled[BZ_RUNQ_CAP];
    given_two_rings();
    push_all(1, BZ_RUNQ_CAP);
    CHECK(!bz_runq_try_push(&mine, BZ_RUNQ_CAP + 1));
    CHECK_EQ(bz_runq_take_some(&mine, spilled, BZ_RUNQ_CAP / 2), BZ_RUNQ_CAP / 2);
    for (unsigned i = 0; i < BZ_RUNQ_CAP / 2; i++)
        CHECK_EQ(spilled[i], i + 1u);
    push_all(BZ_RUNQ_CAP + 1, BZ_RUNQ_CAP + BZ_RUNQ_CAP / 2);
    CHECK(!bz_runq_try_push(&mine, 1));
    bz_runq_check(&mine);
    for (bz_entry e = BZ_RUNQ_CAP / 2 + 1; e <= BZ_RUNQ_CAP + BZ_RUNQ_CAP / 2; e++)
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
        CHECK(bz_runq_try_push(&yours, 1000 + i));
    CHECK_EQ(bz_runq_steal(&mine, &yours), 0u);
    CHECK_EQ(bz_runq_take(&yours), 1000u);
    CHECK_EQ(bz_runq_steal(&mine, &yours), (bz_entry)BZ_RUNQ_CAP / 2);
    bz_runq_check(&yours);
}

/* A thief stopped between claim and release, built by hand. */
static void given_a_thief_at_work(uint64_t steal, uint64_t real)
{
    bz_store_relaxed(&mine.head, bz_runq_pack(real - steal, real));
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

/* Likewise what another thief has claimed in the thief's own ring: those slots are not free yet. */
TEST(runq, a_thief_that_is_a_victim_counts_slots_being_copied)
{
    given_two_rings();
    push_all(1, BZ_RUNQ_CAP / 2 + 1);
    given_a_thief_at_work(0, BZ_RUNQ_CAP / 4);
    for (unsigned i = 0; i < BZ_RUNQ_CAP / 2; i++)
        CHECK(bz_runq_try_push(&yours, 1000 + i));
    CHECK_EQ(bz_runq_steal(&yours, &mine), 0u);
    given_a_thief_at_work(BZ_RUNQ_CAP / 4, BZ_RUNQ_CAP / 4); /* it is through */
    CHECK_EQ(bz_runq_steal(&yours, &mine), 1000u + BZ_RUNQ_CAP / 4 - 1);
}

TEST(runq, slots_being_copied_are_not_overwritten)
{
    given_two_rings();
    push_all(1, BZ_RUNQ_CAP);
    given_a_thief_at_work(0, BZ_RUNQ_CAP / 2);

    CHECK(!bz_runq_try_push(&mine, 999));
    CHECK_EQ(bz_runq_take(&mine), (bz_entry)BZ_RUNQ_CAP / 2 + 1); /* behind it: not free either */
    CHECK(!bz_runq_try_push(&mine, 999));

    bz_store_relaxed(&mine.head, BZ_RUNQ_CAP / 2 + 1); /* it releases */
    CHECK(bz_runq_try_push(&mine, 999));
    bz_runq_check(&mine);
}

/* ---- the hand ---- */

static bz_entry batch[BZ_RUNQ_CAP];

/* The oldest, in order, and never more than half and one of what others could steal. */
TEST(runq, a_hand_takes_half_and_one_at_most)
{
    for (unsigned n = 0; n <= BZ_RUNQ_CAP; n++)
        for (unsigned max = 0; max <= 9; max++) {
            given_two_rings();
            push_all(1, n);
            unsigned want = n == 0 ? 0 : n / 2 + 1;
            want = want < max ? want : max;

            CHECK_EQ(bz_runq_take_some(&mine, batch, max), want);

            for (unsigned i = 0; i < want; i++)
                CHECK_EQ(batch[i], i + 1u);
            CHECK_EQ(bz_runq_count(&mine), n - want);
            bz_runq_check(&mine);
        }
}

TEST(runq, a_hand_is_filled_behind_a_thief_that_copies)
{
    given_two_rings();
    push_all(1, 8);
    given_a_thief_at_work(0, 4);
    CHECK_EQ(bz_runq_take_some(&mine, batch, 8), 3u);
    CHECK_EQ(batch[0], 5u);
    CHECK_EQ(batch[2], 7u);
    CHECK_EQ(bz_runq_real(bz_load_relaxed(&mine.head)), 7u);
    CHECK_EQ(bz_runq_claimed(bz_load_relaxed(&mine.head)), 7u); /* steal is the thief's to move */
}

/* ---- alone ---- */

TEST(runq, a_lone_ring_does_all_that_a_shared_one_does)
{
    bz_runq_init(&mine, true);
    CHECK_EQ(bz_runq_take(&mine), 0u);
    bz_entry in = 0, out = 0;
    for (int lap = 0; lap < 5; lap++) {
        push_all(in + 1, in + BZ_RUNQ_CAP);
        in += BZ_RUNQ_CAP;
        CHECK(!bz_runq_try_push(&mine, in + 1));
        CHECK_EQ(bz_runq_take(&mine), ++out);
        unsigned left = BZ_RUNQ_CAP - 1;
        CHECK_EQ(bz_runq_take_some(&mine, batch, BZ_RUNQ_CAP), left); /* there is no other worker */
        for (unsigned i = 0; i < left; i++)
            CHECK_EQ(batch[i], ++out);
        bz_runq_check(&mine);
    }
}

/* A yield on the only proc takes the oldest and queues itself in one step, also when the ring is full. */
TEST(runq, a_lone_ring_rotates)
{
    struct bz_runq *q = &mine;
    bz_runq_init(q, true);
    for (bz_entry e = 1; e <= BZ_RUNQ_CAP; e++)
        CHECK(bz_runq_try_push(q, e * 4));

    for (bz_entry e = 1; e <= 3 * BZ_RUNQ_CAP; e++) {
        struct bz_runq_ends is = bz_runq_ends_lone(q);
        bz_entry oldest = bz_get(bz_runq_slot(q, is.head));
        CHECK_EQ(oldest, ((e - 1) % BZ_RUNQ_CAP + 1) * 4);
        CHECK(bz_runq_may_rotate(is));
        bz_runq_rotate_lone(q, is, oldest);
    }

    bz_runq_check(q);
    CHECK_EQ(bz_runq_count(q), BZ_RUNQ_CAP);
}

/* A rotation has no masks, because the owner rebases the ring long before its indices wrap. The head is at half of its
 * range or above it then, and so is the tail. */
TEST(runq, a_lone_ring_is_rebased_with_its_entries_in_place)
{
    const uint64_t half = BZ_RUNQ_CLAIM_ONE / 2;
    static const uint64_t from_half[] = {
        0, 1, 5, BZ_RUNQ_CAP - 1, BZ_RUNQ_CAP, 3 * BZ_RUNQ_CAP + 7};
    struct bz_runq *q = &mine;
    for (size_t i = 0; i < BZ_ARRAY_LEN(from_half); i++) {
        bz_runq_init(q, true);
        bz_store_relaxed(&q->head, half + from_half[i]); /* relaxed: one thread */
        bz_store_relaxed(&q->tail, half + from_half[i]); /* relaxed: one thread */
        for (bz_entry e = 1; e <= 3; e++)
            CHECK(bz_runq_try_push(q, e * 4));
        uint32_t taken = bz_runq_taken(q);

        bz_runq_rebase_lone(q);

        CHECK_EQ(bz_load_relaxed(&q->head), from_half[i]);     /* relaxed: one thread */
        CHECK_EQ(bz_load_relaxed(&q->tail), from_half[i] + 3); /* relaxed: one thread */
        CHECK_EQ(bz_runq_taken(q), taken);
        bz_runq_check(q);
        for (bz_entry e = 1; e <= 3; e++)
            CHECK_EQ(bz_runq_take(q), e * 4);
    }
}

/* Until then nothing changes; a ring that is rotated on passes the border and comes back. */
TEST(runq, a_lone_ring_that_is_rotated_and_rebased_keeps_its_order)
{
    const uint64_t half = BZ_RUNQ_CLAIM_ONE / 2;
    struct bz_runq *q = &mine;
    bz_runq_init(q, true);
    bz_store_relaxed(&q->head, half - 40); /* relaxed: one thread */
    bz_store_relaxed(&q->tail, half - 40); /* relaxed: one thread */
    for (bz_entry e = 1; e <= 3; e++)
        CHECK(bz_runq_try_push(q, e * 4));

    for (bz_entry e = 0; e < 200; e++) {
        struct bz_runq_ends is = bz_runq_ends_lone(q);
        bz_entry oldest = bz_get(bz_runq_slot(q, is.head));
        CHECK_EQ(oldest, (e % 3 + 1) * 4);
        CHECK(bz_runq_may_rotate(is));
        bz_runq_rotate_lone(q, is, oldest);
        if (e % 32 == 0)
            bz_runq_rebase_lone(q);
        CHECK_LT(bz_load_relaxed(&q->tail), half + 40); /* relaxed: one thread */
        bz_runq_check(q);
        CHECK_EQ(bz_runq_count(q), 3u);
    }
}

/* The fast path of a switch leaves to the long way what is not a single task that goes on. */
TEST(runq, take_few_refuses_tags_and_long_rings)
{
    struct bz_runq *q = &mine;
    bz_runq_init(q, false);
    CHECK_EQ(bz_runq_take_few(q, 2), 0u);
    CHECK(bz_runq_try_push(q, 4));
    CHECK(bz_runq_try_push(q, 8 | BZ_ENTRY_FIRST));
    CHECK(bz_runq_try_push(q, 12));

    CHECK_EQ(bz_runq_take_few(q, 2), 0u); /* three */
    CHECK_EQ(bz_runq_take_few(q, 3), 4u);
    CHECK_EQ(bz_runq_take_few(q, 2), 0u); /* it has a tag */
    CHECK_EQ(bz_runq_take(q), 8u | BZ_ENTRY_FIRST);
    CHECK_EQ(bz_runq_take_few(q, 2), 12u);
    CHECK_EQ(bz_runq_take_few(q, 2), 0u);
    bz_runq_check(q);
}

#if defined(BZ_DEBUG)
TEST(runq, a_lone_ring_has_no_thieves)
{
    bz_runq_init(&mine, true);
    bz_runq_init(&yours, false);
    push_all(1, 4);
    DIES("is_lone", bz_runq_steal(&mine, &yours));
}
#endif

/* Bug class 2: indices wrap. Start just below it and go through, pushing, taking, stealing. */
TEST(runq, bug_02_indices_that_wrap_lose_nothing)
{
    given_two_rings();
    uint64_t start = BZ_RUNQ_MASK - 300;
    given_indices_at(start);
    bz_entry in = 0, out = 0;
    while (in < 3000) {
        for (int i = 0; i < 50; i++)
            CHECK(bz_runq_try_push(&mine, ++in));
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

TEST(runq, check_reports_each_broken_invariant)
{
    given_two_rings();
    push_all(1, 4);
    DIES("2 claimed before 2", given_a_thief_at_work(0, 2); bz_runq_check(&mine));
    DIES("from 9 to 4", given_a_thief_at_work(9, 9); bz_runq_check(&mine));
    DIES("slot 1 is empty", bz_set(&mine.slot[1], 0); bz_runq_check(&mine));
}
