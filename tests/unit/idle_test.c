/* sched/idle.h: who is roused, step by step. Its races are in tests/model. */
#include "harness.h"

#include "sched/idle.h"
#include "support/death.h"

static struct bz_idle idle;

TEST(idle, nobody_asleep_means_nobody_roused)
{
    bz_idle_init(&idle, 4);
    CHECK_EQ(bz_idle_published(&idle), BZ_NOBODY);
    CHECK_EQ(bz_idle_searching(&idle), 0u);
    bz_idle_check(&idle);
}

TEST(idle, work_rouses_one_sleeper_who_then_counts_as_searching)
{
    bz_idle_init(&idle, 4);
    bz_idle_announce(&idle, 2, false);
    CHECK_EQ(bz_idle_sleeping(&idle), 1u);

    CHECK_EQ(bz_idle_published(&idle), 2);

    CHECK_EQ(bz_idle_sleeping(&idle), 0u);
    CHECK_EQ(bz_idle_searching(&idle), 1u);
    bz_idle_check(&idle);
}

/* One searcher answers for all: the second push rouses nobody. */
TEST(idle, while_somebody_searches_nobody_else_is_roused)
{
    bz_idle_init(&idle, 4);
    bz_idle_announce(&idle, 1, false);
    bz_idle_announce(&idle, 3, false);
    CHECK_EQ(bz_idle_published(&idle), 1);
    CHECK_EQ(bz_idle_published(&idle), BZ_NOBODY);
    CHECK_EQ(bz_idle_sleeping(&idle), 1u);
}

/* ... and when it has found work it passes the duty on. */
TEST(idle, the_last_searcher_that_finds_work_sends_another)
{
    bz_idle_init(&idle, 4);
    bz_idle_announce(&idle, 1, false);
    bz_idle_announce(&idle, 3, false);
    CHECK_EQ(bz_idle_published(&idle), 1);
    CHECK_EQ(bz_idle_found(&idle), 3);
    CHECK_EQ(bz_idle_found(&idle), BZ_NOBODY);
    CHECK_EQ(bz_idle_searching(&idle), 0u);
}

TEST(idle, a_searcher_that_is_not_the_last_sends_nobody)
{
    bz_idle_init(&idle, 8);
    bz_idle_announce(&idle, 5, false);
    CHECK(bz_idle_search(&idle));
    CHECK(bz_idle_search(&idle));
    CHECK_EQ(bz_idle_found(&idle), BZ_NOBODY);
    CHECK_EQ(bz_idle_found(&idle), 5);
}

TEST(idle, at_most_half_search_but_always_one_may)
{
    for (unsigned procs = 1; procs <= 9; procs++) {
        unsigned searching = 0;
        bz_idle_init(&idle, procs);
        while (bz_idle_search(&idle))
            searching++;
        CHECK_EQ(searching, (procs + 1) / 2);
    }
}

TEST(idle, whoever_announces_stops_searching)
{
    bz_idle_init(&idle, 4);
    CHECK(bz_idle_search(&idle));
    bz_idle_announce(&idle, 0, true);
    CHECK_EQ(bz_idle_searching(&idle), 0u);
    CHECK_EQ(bz_idle_published(&idle), 0);
}

TEST(idle, staying_takes_the_announcement_back_once)
{
    bz_idle_init(&idle, 4);
    bz_idle_announce(&idle, 0, false);
    CHECK(bz_idle_stay(&idle, 0));
    CHECK_EQ(bz_idle_published(&idle), BZ_NOBODY);

    bz_idle_announce(&idle, 0, false);
    CHECK_EQ(bz_idle_published(&idle), 0);
    CHECK(!bz_idle_stay(&idle, 0)); /* roused already: it counts as searching */
    CHECK_EQ(bz_idle_searching(&idle), 1u);
}

TEST(idle, more_procs_than_a_word_has_bits)
{
    bz_idle_init(&idle, 200);
    for (unsigned p = 0; p < 200; p++)
        bz_idle_announce(&idle, p, false);
    bz_idle_check(&idle);
    CHECK_EQ(bz_idle_published(&idle), 0);
    for (int p = 1; p < 200; p++)
        CHECK_EQ(bz_idle_found(&idle), p); /* each finds work and sends the next */
    CHECK_EQ(bz_idle_found(&idle), BZ_NOBODY);
    CHECK_EQ(bz_idle_sleeping(&idle), 0u);
    bz_idle_check(&idle);
}

TEST(idle, check_names_what_is_wrong)
{
    bz_idle_init(&idle, 4);
    bz_idle_announce(&idle, 1, false);
    DIES("1 bits, says 2", bz_store_relaxed(&idle.sleeping, 2); bz_idle_check(&idle));
    DIES("9 of 4 procs search", bz_store_relaxed(&idle.searching, 9); bz_idle_check(&idle));
    DIES("0 procs", bz_idle_init(&idle, 0));
    DIES("procs", bz_idle_init(&idle, BZ_PROCS_MAX + 1));
}
