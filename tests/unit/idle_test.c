/* queue/idle.h: which worker is roused, step by step. Its races are in tests/model. */
#include "harness.h"

#include "sim/sim.h"
#include "queue/idle.h"
#include "support/death.h"

static struct bz_idle idle;
static struct bz_barrier barrier;

static void given(unsigned procs)
{
    bz_barrier_init(&barrier, &bz_os_system);
    bz_idle_init(&idle, procs, procs, &barrier, bz_os_barrier_register(&bz_os_system) == 0);
}

/* Announce, whether or not a last look is owed. */
static void sleeps(unsigned proc, bool was_searching)
{
    (void)!bz_idle_announce(&idle, proc, was_searching);
}

TEST(idle, without_sleepers_no_worker_is_roused)
{
    given(4);
    CHECK_EQ(bz_idle_published(&idle), BZ_NOBODY);
    CHECK_EQ(bz_idle_searching(&idle), 0u);
    bz_idle_check(&idle);
}

TEST(idle, work_rouses_one_sleeper_which_then_counts_as_searching)
{
    given(4);
    sleeps(2, false);
    CHECK_EQ(bz_idle_sleeping(&idle), 1u);

    CHECK_EQ(bz_idle_published(&idle), 2);

    CHECK_EQ(bz_idle_sleeping(&idle), 0u);
    CHECK_EQ(bz_idle_searching(&idle), 1u);
    bz_idle_check(&idle);
}

/* One searcher is enough: the second push rouses no worker. */
TEST(idle, while_a_worker_searches_no_other_is_roused)
{
    given(4);
    sleeps(1, false);
    sleeps(3, false);
    CHECK_EQ(bz_idle_published(&idle), 1);
    CHECK_EQ(bz_idle_published(&idle), BZ_NOBODY);
    CHECK_EQ(bz_idle_sleeping(&idle), 1u);
}

/* ... and when it has found work it passes the duty on. */
TEST(idle, the_last_searcher_that_finds_work_sends_another)
{
    given(4);
    sleeps(1, false);
    sleeps(3, false);
    CHECK_EQ(bz_idle_published(&idle), 1);
    CHECK_EQ(bz_idle_found(&idle), 3);
    CHECK_EQ(bz_idle_found(&idle), BZ_NOBODY);
    CHECK_EQ(bz_idle_searching(&idle), 0u);
}

/* A searcher that sees no work for others rouses no proc; if it was the last it looks once more. */
TEST(idle, the_last_searcher_that_leaves_must_look_again)
{
    given(4);
    sleeps(1, false);
    CHECK(bz_idle_search(&idle));
    CHECK(bz_idle_search(&idle));
    CHECK(!bz_idle_leave(&idle)); /* the other one answers */
    CHECK(bz_idle_leave(&idle));
    CHECK_EQ(bz_idle_searching(&idle), 0u);
    CHECK_EQ(bz_idle_sleeping(&idle), 1u);
}

TEST(idle, a_searcher_that_leaves_while_no_proc_sleeps_need_not_look)
{
    given(4);
    CHECK(bz_idle_search(&idle));
    CHECK(!bz_idle_leave(&idle));
    CHECK_EQ(bz_idle_searching(&idle), 0u);
}

TEST(idle, a_searcher_that_is_not_the_last_rouses_no_worker)
{
    given(8);
    sleeps(5, false);
    CHECK(bz_idle_search(&idle));
    CHECK(bz_idle_search(&idle));
    CHECK_EQ(bz_idle_found(&idle), BZ_NOBODY);
    CHECK_EQ(bz_idle_found(&idle), 5);
}

TEST(idle, at_most_half_search_but_always_one_may)
{
    for (unsigned procs = 1; procs <= 8; procs++) {
        unsigned searching = 0;
        given(procs);
        while (bz_idle_search(&idle))
            searching++;
        CHECK_EQ(searching, (procs + 1) / 2);
    }
}

/* On many procs a crowd of searchers would fight for the counts. */
TEST(idle, on_many_procs_four_search)
{
    unsigned searching = 0;
    given(64);
    while (bz_idle_search(&idle))
        searching++;
    CHECK_EQ(searching, 4u);
}

TEST(idle, announcing_sleep_ends_the_search)
{
    given(4);
    CHECK(bz_idle_search(&idle));
    sleeps(0, true);
    CHECK_EQ(bz_idle_searching(&idle), 0u);
    CHECK_EQ(bz_idle_published(&idle), 0);
}

TEST(idle, staying_takes_the_announcement_back_once)
{
    given(4);
    sleeps(0, false);
    CHECK(!bz_idle_stay(&idle, 0, false));
    CHECK_EQ(bz_idle_published(&idle), BZ_NOBODY);

    sleeps(0, false);
    CHECK_EQ(bz_idle_published(&idle), 0);
    CHECK(bz_idle_stay(&idle, 0, false)); /* roused already: it counts as searching */
    CHECK_EQ(bz_idle_searching(&idle), 1u);
}

TEST(idle, more_procs_than_a_word_has_bits)
{
    given(200);
    for (unsigned p = 0; p < 200; p++)
        sleeps(p, false);
    bz_idle_check(&idle);
    CHECK_EQ(bz_idle_published(&idle), 0);
    for (int p = 1; p < 200; p++)
        CHECK_EQ(bz_idle_found(&idle), p); /* each finds work and sends the next */
    CHECK_EQ(bz_idle_found(&idle), BZ_NOBODY);
    CHECK_EQ(bz_idle_sleeping(&idle), 0u);
    bz_idle_check(&idle);
}

/* Some procs are started and awake from the beginning; the bits of the others are in several words. */
TEST(idle, at_the_start_those_sleep_that_were_not_started)
{
    static struct bz_idle fresh;
    given(4);
    for (unsigned awake = 0; awake <= 200; awake += 25) {
        bz_idle_init(&fresh, 200, awake, idle.barrier, idle.has_barrier);
        CHECK_EQ(bz_idle_sleeping(&fresh), 200 - awake);
        for (unsigned p = 0; p < 200; p++) {
            uint64_t word = bz_load_relaxed(&fresh.sleeper[p / 64]); /* relaxed: one thread */
            CHECK_EQ(word >> p % 64 & 1, (uint64_t)(p >= awake));
        }
    }
}

/* The check of every push, one load: is there a worker that may have to be roused? */
TEST(idle, a_push_stops_unless_a_worker_sleeps_and_none_searches)
{
    given(4);
    if (!idle.has_barrier)
        t_skip("this system has no barriers: every push asks");
    CHECK(!bz_idle_may_rouse(&idle)); /* all are at work */
    sleeps(1, false);
    CHECK(bz_idle_may_rouse(&idle));
    CHECK(bz_idle_search(&idle));
    CHECK(!bz_idle_may_rouse(&idle)); /* the searcher answers */
    CHECK_EQ(bz_idle_found(&idle), 1);
    CHECK(!bz_idle_may_rouse(&idle)); /* now the roused one does */
}

/* Only the last searcher pays; the others' sleep costs neither a barrier nor a look. */
TEST(idle, only_the_last_searcher_makes_the_last_check)
{
    given(8);
    CHECK(bz_idle_search(&idle));
    CHECK(bz_idle_search(&idle));
    CHECK(!bz_idle_announce(&idle, 0, true));
    CHECK(!bz_idle_announce(&idle, 1, false));
    CHECK_EQ(bz_load_relaxed(&barrier.ended), 0u);
    CHECK(bz_idle_announce(&idle, 2, true));
    CHECK(bz_idle_announce(&idle, 3, false));
    CHECK_EQ(bz_load_relaxed(&barrier.ended), idle.has_barrier ? 2u : 0u);
}

/* A worker that finds work at its last check continues as a searcher: there may be more than it can
 * run. */
TEST(idle, a_searcher_that_stays_for_work_rouses_another_when_it_has_it)
{
    given(4);
    sleeps(3, false);
    CHECK(bz_idle_announce(&idle, 0, false));
    CHECK(bz_idle_stay(&idle, 0, true));
    CHECK_EQ(bz_idle_searching(&idle), 1u);
    CHECK_EQ(bz_idle_found(&idle), 3);
}

/* The single worker cannot push while it goes to sleep, and all others fence. */
TEST(idle, a_single_proc_never_pays_for_a_barrier)
{
    given(1);
    CHECK(bz_idle_announce(&idle, 0, false));
    CHECK_EQ(bz_idle_published(&idle), 0);
    CHECK(bz_idle_stay(&idle, 0, false));
    CHECK_EQ(bz_idle_found(&idle), BZ_NOBODY);
    bz_idle_go_back(&idle);
    CHECK(bz_idle_announce(&idle, 0, false));
    CHECK_EQ(bz_load_relaxed(&barrier.ended), 0u);
}

TEST(idle, procs_that_were_never_started_count_as_asleep)
{
    bz_barrier_init(&barrier, &bz_os_system);
    bz_idle_init(&idle, 70, 1, &barrier, false);
    bz_idle_check(&idle);
    CHECK_EQ(bz_idle_sleeping(&idle), 69u);
    CHECK_EQ(bz_idle_published(&idle), 1);
}

/* ---- fences instead of barriers ---- */

TEST(idle, without_barriers_every_push_fences_for_good)
{
    bz_barrier_init(&barrier, &bz_os_system);
    bz_idle_init(&idle, 4, 4, &barrier, false);
    CHECK(bz_idle_may_rouse(&idle));
    CHECK_EQ(bz_idle_published(&idle), BZ_NOBODY);
    bz_idle_go_back(&idle);
    CHECK(bz_idle_has_fences(&idle));
    CHECK(bz_idle_announce(&idle, 0, false));
    CHECK_EQ(bz_load_relaxed(&barrier.ended), 0u);
}

TEST(idle, gone_over_to_fences_a_last_look_costs_no_barrier_and_back_it_does)
{
    given(4);
    if (!idle.has_barrier)
        t_skip("this system has no barriers");
    bz_idle_go_over(&idle);
    bz_idle_go_over(&idle); /* there already */
    CHECK(bz_idle_may_rouse(&idle));
    uint64_t paid = bz_load_relaxed(&barrier.ended);
    CHECK_EQ(paid, 1u);
    CHECK(bz_idle_announce(&idle, 0, false));
    CHECK_EQ(bz_load_relaxed(&barrier.ended), paid);

    bz_idle_go_back(&idle);

    CHECK(bz_idle_announce(&idle, 1, false));
    CHECK_EQ(bz_load_relaxed(&barrier.ended), paid + 1);
    bz_idle_check(&idle);
}

/* Virtual time: `looks` last looks, `ns` apart. */
struct pace {
    unsigned looks;
    uint64_t ns;
    bool has_fences, had_fences;
};

static void look_and_look(const struct bz_os *os, void *arg)
{
    struct pace *p = arg;
    bz_os_word never = 0;
    bz_barrier_init(&barrier, os);
    bz_idle_init(&idle, 4, 4, &barrier, true);
    if (p->had_fences)
        bz_idle_go_over(&idle);
    for (unsigned i = 0; i < p->looks; i++) {
        uint64_t until = bz_os_now(os) + p->ns;
        CHECK(bz_idle_announce(&idle, 0, false));
        CHECK(!bz_idle_stay(&idle, 0, false));
        while (bz_os_wait(os, &never, 0, until) != -ETIMEDOUT)
            ;
    }
    p->has_fences = bz_idle_has_fences(&idle);
}

TEST(idle, frequent_last_looks_bring_fences_and_rare_ones_barriers)
{
    struct pace paces[] = {
        {.looks = 200, .ns = 100000, .has_fences = true},
        {.looks = 200, .ns = 1000000, .has_fences = false},
        {.looks = 200, .ns = 1000000, .had_fences = true, .has_fences = true}, /* in between */
        {.looks = 200, .ns = 3000000, .had_fences = true, .has_fences = false},
    };
    for (unsigned i = 0; i < BZ_ARRAY_LEN(paces); i++) {
        struct pace p = paces[i];
        CHECK_EQ(bz_sim_run(&(struct bz_sim_config){.seed = t_random()}, look_and_look, &p, NULL),
                 0);
        CHECK_EQ(p.has_fences, paces[i].has_fences);
    }
}

TEST(idle, fences_end_when_no_worker_goes_to_sleep_any_more)
{
    given(4);
    if (!idle.has_barrier)
        t_skip("this system has no barriers");
    bz_idle_go_over(&idle);
    bz_store_relaxed(&idle.window_ns, 1000);
    bz_idle_review(&idle, 1000 + 100000000);
    CHECK(bz_idle_has_fences(&idle));
    bz_idle_review(&idle, 1000 + 200000000);
    CHECK(!bz_idle_has_fences(&idle));
}

TEST(idle, check_reports_each_broken_invariant)
{
    given(4);
    sleeps(1, false);
    DIES("1 bits, says 2", bz_store_relaxed(&idle.counts, 2 * BZ_IDLE_SLEEPER);
         bz_idle_check(&idle));
    DIES("9 of 4 procs search", bz_store_relaxed(&idle.counts, BZ_IDLE_SLEEPER + 9);
         bz_idle_check(&idle));
    DIES("0 procs", given(0));
    DIES("procs", given(BZ_PROCS_MAX + 1));
}
