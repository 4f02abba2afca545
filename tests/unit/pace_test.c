/* queue/pace.h: the number of runs between two checks of the injector, in virtual time. */
#include "harness.h"

#include "base/compiler.h"
#include "queue/pace.h"
#include "support/death.h"

static struct bz_pace pace;
static uint32_t tick;
static uint64_t now;

static void given_a_fresh_proc(void)
{
    tick = 1;
    now = 5000;
    bz_pace_init(&pace, tick, now);
}

/* Runs of `each` ns until the next look, which is `looks` looks away. */
static void run(uint64_t each_ns, int looks)
{
    while (looks > 0) {
        tick++;
        now += each_ns;
        if (bz_pace_is_due(&pace, tick)) {
            bz_pace_look(&pace, tick, now);
            bz_pace_check(&pace);
            looks--;
        }
    }
}

TEST(pace, a_fresh_proc_takes_its_runs_for_50_us)
{
    given_a_fresh_proc();
    for (int i = 1; i < 20; i++)
        CHECK(!bz_pace_is_due(&pace, ++tick));
    CHECK(bz_pace_is_due(&pace, ++tick));
}

/* About once a millisecond, but every 8 to 255 runs. */
TEST(pace, it_settles_at_a_millisecond_of_runs)
{
    static const struct {
        uint64_t each_ns;
        uint32_t every;
    } rows[] = {{0, 255},    {1, 255},     {1000, 255}, {5000, 200},  {10000, 100},
                {50000, 20}, {100000, 10}, {125000, 8}, {1000000, 8}, {5000000000, 8}};
    for (size_t i = 0; i < BZ_ARRAY_LEN(rows); i++) {
        given_a_fresh_proc();
        run(rows[i].each_ns, 60);
        CHECK_EQ(pace.every, rows[i].every);
    }
}

/* Each run counts a tenth: after a look's worth of them little is left of what came before. */
TEST(pace, it_learns_a_change_by_the_first_look)
{
    given_a_fresh_proc();
    run(10, 5);
    CHECK_EQ(pace.every, 255u);
    run(100000, 1);
    CHECK_LE(pace.every, 11u);
    run(10, 8);
    CHECK_EQ(pace.every, 255u);
}

/* A run of a second is no reason to look every 8 runs for the next thousands. */
TEST(pace, one_hog_is_forgotten_soon)
{
    given_a_fresh_proc();
    run(1000, 20);
    CHECK_EQ(pace.every, 255u);
    now += 1000000000; /* within one of the runs */
    run(1000, 1);
    CHECK_GE(pace.every, 8u);
    run(1000, 5);
    CHECK_GE(pace.every, 200u);
}

TEST(pace, an_average_is_the_textbook_one)
{
    given_a_fresh_proc();
    double average = 1e6 / 20;
    for (int i = 0; i < 1000; i++) {
        uint32_t runs = 1 + (uint32_t)t_random_below(300);
        uint64_t each_ns = t_random_below(200000);
        for (uint32_t k = 0; k < runs; k++)
            average = 0.9 * average + 0.1 * (double)each_ns;
        tick += runs;
        now += runs * each_ns;
        bz_pace_look(&pace, tick, now);
        double error = (double)pace.average / 256 - average;
        CHECK_LE(error < 0 ? -error : error, 1 + average / 10000);
    }
}

TEST(pace, idle_time_is_not_run_time)
{
    given_a_fresh_proc();
    run(2000, 20);
    uint64_t before = pace.average;
    now += 3600 * UINT64_C(1000000000);
    bz_pace_restart(&pace, tick, now);
    CHECK_EQ(pace.average, before);
    run(2000, 1);
    CHECK_LE(pace.average, before + before / 100);
}

TEST(pace, ticks_that_wrap_and_a_clock_that_stands_still_do_no_harm)
{
    bz_pace_init(&pace, UINT32_MAX - 3, 100);
    CHECK(!bz_pace_is_due(&pace, 15));
    CHECK(bz_pace_is_due(&pace, 16));
    bz_pace_look(&pace, 57, 100);
    bz_pace_check(&pace);
    bz_pace_look(&pace, 57, 100); /* no run since */
    bz_pace_look(&pace, 58, 99);  /* nor a clock that goes back */
    bz_pace_look(&pace, 59, UINT64_MAX);
    bz_pace_check(&pace);
    CHECK_GE(pace.every, 8u);
}

TEST(pace, check_reports_each_broken_invariant)
{
    given_a_fresh_proc();
    DIES("every 7 runs", pace.every = 7; bz_pace_check(&pace));
    DIES("average 9", pace.average = 9; bz_pace_check(&pace));
}

/* Something urgent waits in the injector: the next run is followed by a look, and then all is as before. */
TEST(pace, a_hurried_proc_looks_after_one_run_and_learns_nothing_from_it)
{
    given_a_fresh_proc();
    run(50000, 3);
    uint32_t every = pace.every;
    bz_pace_hurry(&pace);
    tick++;
    now += 50000;
    CHECK(bz_pace_is_due(&pace, tick));
    bz_pace_look(&pace, tick, now);
    bz_pace_check(&pace);
    CHECK_EQ(pace.every, every);
    CHECK(!bz_pace_is_due(&pace, tick + 1));
}
