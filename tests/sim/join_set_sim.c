/* Join sets in virtual time, from seeds: each member comes out once. */
#include "support/sched_sim.h"

#include "support/set_program.h"

struct play {
    uint64_t seed;
    unsigned procs;
};

static void play(const struct bz_os *os, void *arg)
{
    const struct play *p = arg;
    set_play(os, p->seed, p->procs);
}

TEST_LIMIT(join_set, random_programs_take_each_member_out_once, 300)
{
    uint64_t n = sim_seeds(1000);
    for (uint64_t i = 0; i < n; i++) {
        uint64_t seed = sim_next_seed();
        struct play p = {seed, 1 + (unsigned)(seed % 4)};
        t_watch("simulation seed 0x%llx, %u procs", (unsigned long long)seed, p.procs);
        CHECK_EQ(bz_sim_run(&(struct bz_sim_config){.seed = seed}, play, &p, NULL), 0);
    }
    t_note("%llu programs", (unsigned long long)n);
}
