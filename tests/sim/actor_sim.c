/* Actors in virtual time, from seeds: random graphs with cycles, calls inside behaviours, crashes and kills. */
#include "support/sched_sim.h"

#include "support/actor_graph.h"

struct play {
    struct graph graph;
    unsigned procs;
};

static void play(const struct bz_os *os, void *arg)
{
    struct play *p = arg;
    struct sim_scene scene = {p->procs, graph_play, &p->graph, 0};
    sim_play(os, &scene);
}

TEST_LIMIT(actor_sim, bug_39_random_graphs_make_progress_and_tell_each_end_once, 300)
{
    uint64_t n = sim_seeds(1000);
    for (uint64_t i = 0; i < n; i++) {
        uint64_t seed = sim_next_seed();
        struct play p = {{seed, 10 + (uint32_t)(seed % 30)}, 1 + (unsigned)(seed % 4)};
        t_watch("simulation seed 0x%llx, %u procs", (unsigned long long)seed, p.procs);
        CHECK_EQ(bz_sim_run(&(struct bz_sim_config){.seed = seed}, play, &p, NULL), 0);
    }
    t_note("%llu graphs", (unsigned long long)n);
}
