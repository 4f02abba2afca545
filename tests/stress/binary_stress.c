/* Cargo on real threads, as in the simulation; and no memory is left. */
#include "harness.h"

#include "support/binary_scene.h"
#include "support/counted.h"

TEST_LIMIT(binary_stress, bug_39_all_cargo_is_freed_once_though_actors_die_at_any_time, 120)
{
    for (uint64_t i = 0; i < 8; i++) {
        struct cargo_scene s = {t_seed() + i, 400};
        unsigned procs = 1 + (unsigned)(i % 4);
        t_watch("seed %llu, %u procs", (unsigned long long)s.seed, procs);
        CHECK_EQ(
            blitz_run(cargo_play, &s, &(blitz_runtime_opts){.procs = procs, .allocator = &counted}),
            0);
        CHECK_EQ(counted_blocks(), 0);
    }
}
