/*
 * Condition, notify, barrier, once and the gates in the whole runtime, in virtual time, from seeds:
 * the scenes of support/sync_scenes.h.
 */
#include "support/sched_sim.h"

#include "support/sync_scenes.h"

static void on_seeds(int (*scene)(void *), uint64_t full)
{
    for (uint64_t i = 0, n = sim_seeds(full); i < n; i++) {
        struct scene_seed seed = {sim_next_seed()};
        struct sim_scene s = {1 + (unsigned)(seed.seed % 3), scene, &seed, 0};
        sim_one(seed.seed, &s);
    }
}

TEST(sync_scenes, bug_22_a_notification_is_not_lost_to_a_leaving_waiter)
{
    on_seeds(scene_notify, 400);
}

TEST(sync_scenes, no_signal_is_missed_between_the_unlock_and_the_wait)
{
    on_seeds(scene_condition, 400);
}

TEST(sync_scenes, bug_22_a_cancelled_waiter_has_not_arrived_at_the_barrier)
{
    on_seeds(scene_barrier, 400);
}

TEST(sync_scenes, bug_22_a_value_is_made_by_one_and_a_failure_lets_the_next_try)
{
    on_seeds(scene_once, 400);
}

TEST(sync_scenes, a_released_waiter_may_free_the_group)
{
    on_seeds(scene_group, 400);
}
