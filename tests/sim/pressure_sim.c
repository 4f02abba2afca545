/* Overloaded actors in virtual time, from seeds: cycles, mutes, sends that wait, deaths. */
#include "support/sched_sim.h"

#include "support/pressure_graph.h"

struct play {
    struct flow flow;
    unsigned procs;
};

static void play(const struct bz_os *os, void *arg)
{
    struct play *p = arg;
    struct sim_scene scene = {p->procs, flow_play, &p->flow, 0};
    sim_play(os, &scene);
}

TEST_LIMIT(pressure_sim, bug_39_overloaded_graphs_with_cycles_make_progress, 300)
{
    uint64_t n = sim_seeds(400);
    for (uint64_t i = 0; i < n; i++) {
        uint64_t seed = sim_next_seed();
        struct play p = {{seed, 4 + (uint32_t)(seed % 8), (seed >> 8) % 2 == 0},
                         1 + (unsigned)(seed % 4)};
        t_watch("simulation seed 0x%llx, %u procs", (unsigned long long)seed, p.procs);
        flow_prepare(&p.flow);
        CHECK_EQ(bz_sim_run(&(struct bz_sim_config){.seed = seed}, play, &p, NULL), 0);
    }
    t_note("%llu graphs", (unsigned long long)n);
}
