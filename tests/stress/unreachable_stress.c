/* Random graphs of actors that hold each other, on real threads: the scene of the simulation. */
#include "harness.h"

#include "support/unreachable_scene.h"

static void play(unsigned procs)
{
    for (uint64_t i = t_scaled(60); i > 0; i--) {
        struct reach_scene scene = {t_random(), 200};
        t_watch("seed 0x%llx, %u procs", (unsigned long long)scene.seed, procs);
        CHECK_EQ(blitz_run(reach_play, &scene, &(blitz_runtime_opts){.procs = procs}), 0);
    }
}

TEST_LIMIT(unreachable_stress, two_procs, 300)
{
    play(2);
}

TEST_LIMIT(unreachable_stress, more_procs_than_cpus, 300)
{
    play(8);
}
