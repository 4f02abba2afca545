/* wheel.c: the ways in which timers have broken elsewhere, rows 10 to 12 of docs/bug-classes.md. */
#include "support/wheel_world.h"

/* One to each side of every level's edge, seen from before, from at and from behind an edge. */
TEST(wheel, bug_10_one_to_each_side_of_every_edge)
{
    const int64_t by[] = {-(int64_t)MS - 1, -(int64_t)MS, -1, 0, 1, (int64_t)MS, (int64_t)MS + 1};
    for (unsigned from = 0; from < 7; from++)
        for (unsigned level = 0; level <= BZ_WHEEL_LEVELS + 1; level++)
            for (uint64_t laps = 1; laps <= 65; laps += 31) {
                struct world o;
                world_init(&o, 3 * slot_ns(BZ_WHEEL_LEVELS + 1) + (uint64_t)by[from]);
                uint64_t edge = (o.now / slot_ns(level) + laps) * slot_ns(level);
                for (int i = 0; i < 7; i++)
                    world_arm(&o, i, edge + (uint64_t)by[(i * 3) % 7]);
                for (int i = 0; i < 7; i++) /* stop at each, from both sides */
                    for (int64_t side = -1; side <= 1; side++)
                        if (edge + (uint64_t)(by[i] + side) > o.now)
                            world_expire(&o, edge + (uint64_t)(by[i] + side));
                CHECK_EQ(world_count(&o), 0u);
            }
}

/* The digits of the wheel come round every 12.4 days; the overflow list must not. */
TEST(wheel, bug_10_a_timer_of_a_later_lap_does_not_fire_in_this_one)
{
    uint64_t lap = slot_ns(BZ_WHEEL_LEVELS);
    struct world o;
    world_init(&o, 7 * lap + 5 * MS);
    for (int i = 0; i < 60; i++)
        world_arm(&o, i, o.now + 9 * MS + (uint64_t)i * lap);
    uint64_t start = o.now;
    for (int i = 0; i < 60; i++) {
        CHECK_EQ(world_expire(&o, start + 9 * MS + (uint64_t)i * lap - 1), 0u);
        CHECK_EQ(bz_wheel_next(&o.wheel), start + 9 * MS + (uint64_t)i * lap);
        CHECK_EQ(world_expire(&o, start + 9 * MS + (uint64_t)i * lap), 1u);
    }
}

TEST(wheel, bug_10_a_hundred_years_and_the_largest_number)
{
    const uint64_t starts[] = {0, 1, YEAR, BZ_WHEEL_NEVER - 200 * YEAR, BZ_WHEEL_NEVER - 2 * MS};
    for (unsigned s = 0; s < 5; s++) {
        struct world o;
        world_init(&o, starts[s]);
        world_arm(&o, 0, BZ_WHEEL_NEVER - 1);
        world_arm(&o, 1, add(starts[s], 100 * YEAR));
        world_arm(&o, 2, add(starts[s], 100 * YEAR));
        world_arm(&o, 3, BZ_WHEEL_NEVER - 2);
        world_arm(&o, 4, BZ_WHEEL_NEVER - 1 - MS);
        world_check(&o);
        if (100 * YEAR < BZ_WHEEL_NEVER - 1 - MS - starts[s]) {
            CHECK_EQ(world_expire(&o, starts[s] + 100 * YEAR - 1), 0u);
            CHECK_EQ(world_expire(&o, starts[s] + 100 * YEAR), 2u);
        }
        CHECK_EQ(bz_wheel_next(&o.wheel), BZ_WHEEL_NEVER - 1 - MS);
        world_expire(&o, BZ_WHEEL_NEVER - 2);
        CHECK_EQ(bz_wheel_next(&o.wheel), BZ_WHEEL_NEVER - 1);
        world_expire(&o, BZ_WHEEL_NEVER);
        CHECK_EQ(world_count(&o), 0u);
    }
}

/* Far timers that are disarmed leave no moment behind that is never reached. */
TEST(wheel, bug_10_the_overflow_list_forgets_disarmed_timers)
{
    struct world o;
    world_init(&o, 0);
    world_arm(&o, 0, 20 * DAY);
    world_arm(&o, 1, 300 * DAY);
    world_disarm(&o, 0);
    CHECK_EQ(world_expire(&o, 13 * DAY), 0u);
    CHECK_LE(world_run_down(&o), 2u);
    world_arm(&o, 0, add(o.now, YEAR));
    world_disarm(&o, 0);
    world_check(&o);
}

/*
 * Those that are due have been moved to a list, and one by one they fire. Between any two, every
 * timer is in turn disarmed or armed anew: sooner, later, or far away.
 */
static void meddle(struct world *o, int victim, int how)
{
    if (how == 0)
        world_disarm(o, victim);
    else if (how == 1)
        world_arm(o, victim, o->now - MS);
    else if (how == 2)
        world_arm(o, victim, o->now + 1);
    else
        world_arm(o, victim, o->now + 30 * DAY);
}

/* The first `due` timers are due. `after` have fired when `victim` is changed. */
static void fire_and_meddle(int due, int after, int victim, int how)
{
    struct world o;
    world_init(&o, DAY);
    for (int i = 0; i < 6; i++)
        world_arm(&o, i,
                  i < due ? DAY + (uint64_t)(i + 1) * 3 * MS / 2 : DAY + 20 * MS + (uint64_t)i);
    o.now = DAY + 10 * MS;
    CHECK_EQ(bz_wheel_expire(&o.wheel, o.now, &o.due), (size_t)due);
    for (int i = 0; i < after; i++)
        CHECK_EQ(world_take(&o), i);

    bool was_due = victim >= after && victim < due;
    meddle(&o, victim, how);
    bz_wheel_check(&o.wheel);

    CHECK_EQ(bz_list_check(&o.due), (size_t)(due - after - was_due));
    for (int i = after; i < due; i++)
        if (i != victim) {
            CHECK_EQ(bz_wheel_take(&o.due), &o.timer[i]);
            o.is_armed[i] = false;
        }
    CHECK_NULL(bz_wheel_take(&o.due));
    world_check(&o);
    CHECK_EQ(world_expire(&o, o.now), how == 1 ? 1u : 0u); /* the past fires now, not in the list */
    world_run_down(&o);
}

TEST(wheel, bug_11_disarmed_or_moved_at_every_point_of_firing)
{
    for (int due = 0; due <= 6; due++)
        for (int after = 0; after <= due; after++)
            for (int victim = 0; victim < 6; victim++)
                for (int how = 0; how < 4; how++)
                    fire_and_meddle(due, after, victim, how);
}

/* The same at random, many at a time: every timer armed at the end fires once, on time. */
TEST(wheel, bug_11_a_storm_while_firing_loses_and_doubles_nothing)
{
    int rounds = (int)t_scaled(2000);
    struct world o;
    world_init(&o, 3 * DAY);
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < N; i++)
            if (!o.is_armed[i])
                world_arm(&o, i, o.now + t_random_below(8) * MS / 2);
        o.now += t_random_below(5) * MS;
        bz_wheel_expire(&o.wheel, o.now, &o.due);
        for (struct bz_wheel_timer *t; (t = bz_wheel_take(&o.due)) != NULL;) {
            int i = (int)(t - o.timer);
            CHECK(o.is_armed[i]);
            CHECK_LE(o.deadline[i], o.now);
            o.is_armed[i] = false;
            world_arm(&o, i, o.now + span_random(24));
            meddle(&o, (int)t_random_below(N), (int)t_random_below(4));
        }
        world_expire(&o, o.now);
    }
    world_run_down(&o);
}

/* A timer that re-arms itself for a past time must not keep expire busy forever. */
TEST(wheel, bug_11_a_timer_that_is_always_late_fires_once_an_expire)
{
    struct world o;
    world_init(&o, DAY);
    world_arm(&o, 0, 0);
    for (int turn = 0; turn < 100; turn++) {
        CHECK_EQ(world_expire(&o, DAY + (uint64_t)turn * MS / 3), 1u);
        world_arm(&o, 0, (uint64_t)turn);
    }
    CHECK_EQ(world_run_down(&o), 1u);
}

/* Suspended over the weekend, frozen in a debugger: everything that came due fires, in order. */
TEST(wheel, bug_12_a_leap_fires_all_that_it_passes_in_order)
{
    for (unsigned bits = 18; bits < 63; bits++) {
        struct world o;
        world_init(&o, DAY + t_random_below(DAY));
        for (int i = 0; i < N; i++)
            world_arm(&o, i, add(o.now, span_random(bits + 1)));
        world_expire(&o, o.now + (UINT64_C(1) << bits));
        world_arm(&o, 0, o.now + 1); /* and the wheel is as good as new */
        world_arm(&o, 1, o.now + MS);
        world_run_down(&o);
    }
}

/* The processors' clocks may differ by a little: time that steps back turns nothing back. */
TEST(wheel, bug_12_time_that_steps_back_loses_nothing)
{
    int rounds = (int)t_scaled(500);
    struct world o;
    world_init(&o, DAY);
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < N; i++)
            if (!o.is_armed[i])
                world_arm(&o, i, o.now + t_random_below(8 * MS));
        uint64_t now = o.now + t_random_below(2 * MS);
        world_expire(&o, now);
        world_expire(&o,
                     now - t_random_below(3 * MS)); /* asserts that none is early by that clock */
        o.now = now;
    }
    world_run_down(&o);
}

/* A leap costs what is due and not what has passed: a step a level for an empty month. */
TEST(wheel, bug_12_a_leap_over_nothing_costs_nothing)
{
    struct world o;
    world_init(&o, 0);
    world_arm(&o, 0, BZ_WHEEL_NEVER - 1);
    uint64_t leaps = t_scaled(2000000);
    for (uint64_t i = 1; i <= leaps; i++) /* each by some two hours, 500 years in all */
        CHECK_EQ(bz_wheel_expire(&o.wheel, i * (BZ_WHEEL_NEVER / leaps - 1), &o.due), 0u);
    world_run_down(&o);
}
