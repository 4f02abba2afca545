/* Waits for quiet actors in virtual time, from seeds: the scene of quiet_scene.h. */
#include "support/sched_sim.h"

#include "support/quiet_scene.h"

struct play {
    struct quiet_scene scene;
    unsigned procs;
};

static void play(const struct bz_os *os, void *arg)
{
    struct play *p = arg;
    struct sim_scene scene = {p->procs, quiet_play, &p->scene, 0};
    sim_play(os, &scene);
}

TEST_LIMIT(quiet_sim, bug_37_quiet_comes_when_all_messages_are_handled_and_not_before, 300)
{
    uint64_t n = sim_seeds(1000);
    for (uint64_t i = 0; i < n; i++) {
        uint64_t seed = sim_next_seed();
        struct play p = {{.seed = seed, .rounds = 8}, 1 + (unsigned)(seed % 4)};
        t_watch("simulation seed 0x%llx, %u procs", (unsigned long long)seed, p.procs);
        CHECK_EQ(bz_sim_run(&(struct bz_sim_config){.seed = seed}, play, &p, NULL), 0);
    }
    t_note("%llu runs", (unsigned long long)n);
}
