/*
 * Fibers, stackless tasks and plain threads on the same channels, in virtual time, from seeds:
 * support/chan_mix.h says what they do and what must hold.
 */
#include "support/sched_sim.h"

#include "support/chan_mix.h"

enum { NAPS_MAX = 500, STEPS_MAX = 400 * 1000 };

static void play(const struct bz_os *os, void *arg)
{
    static struct mix w;
    uint64_t seed = *(uint64_t *)arg;
    struct sim_scene s = {1 + (unsigned)(seed % 3), mix_main, &w, 0};
    memset(&w, 0, sizeof w);
    w.os = os;
    w.seed = seed;
    w.naps_max = NAPS_MAX;
    sim_play(os, &s);
}

/* Bug classes 21, 41 and 51. */
TEST_LIMIT(chan_mix, bug_41_parties_of_all_forms_make_progress_and_lose_nothing, 240)
{
    for (uint64_t i = 0, n = sim_seeds(4000); i < n; i++) {
        uint64_t seed = sim_next_seed();
        struct bz_sim_config config = {
            .seed = seed, .steps_max = STEPS_MAX, .has_no_barrier = seed / 4 % 4 == 0};
        t_watch("simulation seed 0x%llx", (unsigned long long)seed);
        CHECK_EQ(bz_sim_run(&config, play, &seed, NULL), 0);
    }
}
