/* Actors on real threads: random graphs, as in the simulation. */
#include "harness.h"

#include "support/actor_graph.h"

TEST_LIMIT(actor_stress, bug_39_random_graphs_make_progress_and_tell_each_end_once, 120)
{
    for (uint64_t i = 0; i < 20; i++) {
        struct graph g = {t_seed() + i, 300};
        unsigned procs = 1 + (unsigned)(i % 4);
        t_watch("graph %llu, %u procs", (unsigned long long)g.seed, procs);
        CHECK_EQ(blitz_run(graph_play, &g, &(blitz_runtime_opts){.procs = procs}), 0);
    }
}
