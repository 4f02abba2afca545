/* Cargo in virtual time, from seeds: the scene of binary_scene.h. */
#include "support/sched_sim.h"

#include "support/binary_scene.h"

struct play {
    struct cargo_scene scene;
    unsigned procs;
};

static void play(const struct bz_os *os, void *arg)
{
    struct play *p = arg;
    struct sim_scene scene = {p->procs, cargo_play, &p->scene, 0};
    sim_play(os, &scene);
}

TEST_LIMIT(binary_sim, bug_39_all_cargo_is_freed_once_though_actors_die_at_any_time, 300)
{
    uint64_t n = sim_seeds(2000);
    for (uint64_t i = 0; i < n; i++) {
        uint64_t seed = sim_next_seed();
        struct play p = {{seed, 40}, 1 + (unsigned)(seed % 4)};
        t_watch("simulation seed 0x%llx, %u procs", (unsigned long long)seed, p.procs);
        CHECK_EQ(bz_sim_run(&(struct bz_sim_config){.seed = seed}, play, &p, NULL), 0);
    }
    t_note("%llu runs", (unsigned long long)n);
}
