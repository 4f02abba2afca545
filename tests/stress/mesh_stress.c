/* Actors on real threads that link and watch each other and give it up at once; and no memory is left. */
#include "harness.h"

#include "support/counted.h"
#include "support/mesh_scene.h"

TEST_LIMIT(mesh_stress, bug_39_a_request_that_is_taken_back_is_not_heard_and_no_end_is_told_twice,
           120)
{
    uint64_t downs = 0, given_up = 0;
    for (uint64_t i = 0; i < 12; i++) {
        struct mesh_scene s = {
            .seed = t_seed() + i, .lives = (uint32_t)t_scaled(100), .steps = 300};
        unsigned procs = 1 + (unsigned)(i % 4);
        t_watch("seed %llu, %u procs", (unsigned long long)s.seed, procs);
        CHECK_EQ(
            blitz_run(mesh_play, &s, &(blitz_runtime_opts){.procs = procs, .allocator = &counted}),
            0);
        CHECK_EQ(counted_blocks(), 0);
        downs += s.downs;
        given_up += s.given_up;
    }
    CHECK_GT(downs, 0); /* over all seeds: under a sanitizer one has few rounds */
    CHECK_GT(given_up, 0);
}
