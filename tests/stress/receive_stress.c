/* Tasks that receive on real threads, as in the simulation; and no memory is left. */
#include "harness.h"

#include "support/receive_scene.h"
#include "support/relate_scene.h"
#include "support/counted.h"

TEST_LIMIT(receive_stress, bug_39_tasks_that_receive_end_with_their_ids_at_any_time, 120)
{
    for (uint64_t i = 0; i < 8; i++) {
        struct receive_scene s = {t_seed() + i, 60};
        unsigned procs = 1 + (unsigned)(i % 4);
        t_watch("seed %llu, %u procs", (unsigned long long)s.seed, procs);
        CHECK_EQ(blitz_run(receive_play, &s,
                           &(blitz_runtime_opts){.procs = procs, .allocator = &counted}),
                 0);
        CHECK_EQ(counted_blocks(), 0);
    }
}

TEST_LIMIT(receive_stress, bug_39_links_and_monitors_of_tasks_are_told_once_or_given_up, 120)
{
    uint64_t downs = 0, given_up = 0;
    for (uint64_t i = 0; i < 12; i++) {
        struct relate_scene s = {.seed = t_seed() + i, .rounds = (uint32_t)t_scaled(400)};
        unsigned procs = 1 + (unsigned)(i % 4);
        t_watch("seed %llu, %u procs", (unsigned long long)s.seed, procs);
        CHECK_EQ(blitz_run(relate_play, &s,
                           &(blitz_runtime_opts){.procs = procs, .allocator = &counted}),
                 0);
        CHECK_EQ(counted_blocks(), 0);
        downs += s.downs;
        given_up += s.given_up;
    }
    CHECK_GT(downs, 0); /* over all seeds: under a sanitizer one has few rounds */
    CHECK_GT(given_up, 0);
}
