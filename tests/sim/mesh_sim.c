/* Actors in virtual time, from seeds, that link and watch each other and give it up at once: mesh_scene.h. */
#include "support/sched_sim.h"

#include "support/mesh_scene.h"

struct play {
    struct mesh_scene mesh;
    unsigned procs;
};

static void play(const struct bz_os *os, void *arg)
{
    struct play *p = arg;
    struct sim_scene scene = {p->procs, mesh_play, &p->mesh, 0};
    sim_play(os, &scene);
}

TEST_LIMIT(mesh_sim, bug_39_a_request_that_is_taken_back_is_not_heard_and_no_end_is_told_twice, 300)
{
    uint64_t n = sim_seeds(2000), downs = 0, given_up = 0;
    for (uint64_t i = 0; i < n; i++) {
        uint64_t seed = sim_next_seed();
        struct play p = {{.seed = seed, .lives = 4, .steps = 5 + (uint32_t)(seed % 20)},
                         1 + (unsigned)(seed % 4)};
        t_watch("simulation seed 0x%llx, %u procs", (unsigned long long)seed, p.procs);
        CHECK_EQ(bz_sim_run(&(struct bz_sim_config){.seed = seed}, play, &p, NULL), 0);
        downs += p.mesh.downs;
        given_up += p.mesh.given_up;
    }
    CHECK_GT(downs, 0);
    CHECK_GT(given_up, 0);
    t_note("%llu meshes, %llu ends told", (unsigned long long)n, (unsigned long long)downs);
}
