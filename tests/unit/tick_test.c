/* proc/tick.h: the count of runs, and the duty that comes after so many of them. */
#include "harness.h"

#include "proc/tick.h"

static bz_tick tick;

/* A count that has run `ran` times, and whose next duty comes before run `ran` + `more`. */
static void given(uint32_t ran, uint32_t more)
{
    bz_atomic_init(&tick, (uint64_t)(ran + more) << 32 | more);
}

/* A new proc looks at its timers and queues before its first task. */
TEST(tick, the_first_run_of_a_proc_does_its_duties)
{
    bz_tick_init(&tick);

    CHECK_EQ(bz_tick_now(&tick), 0u);
    CHECK(bz_tick_is_due(&tick));
    CHECK(bz_tick_step(&tick));
    CHECK_EQ(bz_tick_now(&tick), 1u);
}

/* A duty that came a run late would let a busy ring starve the injector by that much. */
TEST(tick, a_duty_is_due_before_its_run_and_not_earlier)
{
    given(7, 1);
    bz_tick_set_duty(&tick, 7 + 32);

    for (uint32_t run = 1; run < 32; run++) {
        CHECK(!bz_tick_is_due(&tick));
        CHECK(!bz_tick_step(&tick));
        CHECK_EQ(bz_tick_now(&tick), 7 + run);
    }
    CHECK(bz_tick_is_due(&tick));
    CHECK(bz_tick_step(&tick));
    CHECK_EQ(bz_tick_now(&tick), 7u + 32);
}

/* A duty stays due until it is done: the fast paths refuse, and count nothing. */
TEST(tick, a_duty_stays_due_and_a_run_that_was_none_is_not_counted)
{
    given(100, 2);
    CHECK(!bz_tick_step(&tick));

    for (int i = 0; i < 3; i++) {
        CHECK(bz_tick_step(&tick));
        bz_tick_step_back(&tick);
        CHECK_EQ(bz_tick_now(&tick), 101u);
    }
    CHECK(bz_tick_step(&tick));
    CHECK(bz_tick_step(&tick)); /* also when a run has passed it by */
    CHECK_EQ(bz_tick_now(&tick), 103u);
}

TEST(tick, a_hurry_makes_a_duty_due_and_keeps_the_count)
{
    given(55, 30);
    CHECK(!bz_tick_is_due(&tick));

    bz_tick_hurry(&tick);

    CHECK(bz_tick_is_due(&tick));
    CHECK_EQ(bz_tick_now(&tick), 55u);
    CHECK(bz_tick_step(&tick));
    CHECK_EQ(bz_tick_now(&tick), 56u);
}

/* Bug class 2: the count wraps after four billion runs, and so does the tick of the duty. */
TEST(tick, bug_02_the_count_and_its_duty_wrap)
{
    given(UINT32_MAX - 2, 1);
    bz_tick_set_duty(&tick, 5); /* in eight runs */

    for (int run = 0; run < 7; run++)
        CHECK(!bz_tick_step(&tick));
    CHECK_EQ(bz_tick_now(&tick), 4u);
    CHECK(bz_tick_step(&tick));
    CHECK_EQ(bz_tick_now(&tick), 5u);
}
