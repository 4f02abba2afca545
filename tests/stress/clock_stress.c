/* A virtual clock on real threads: the programs of tests/sim/clock_sim.c, for the sanitizers. */
#include "support/clock_program.h"

static unsigned rounds(unsigned full)
{
    return (unsigned)t_scaled(full);
}

TEST(clock_stress, each_wait_ends_at_its_moment)
{
    static const unsigned procs[] = {1, 2, 3, 8};
    for (unsigned i = 0; i < rounds(200); i++) {
        uint64_t seed = t_random();
        blitz_runtime_opts opts = {.procs = procs[i % 4], .clock = BLITZ_CLOCK_AUTO};
        t_watch("seed 0x%llx, %u procs", (unsigned long long)seed, opts.procs);
        CHECK_EQ(blitz_run(clock_program, &seed, &opts), 0);
    }
}

TEST(clock_stress, a_caller_sees_all_that_was_due)
{
    static const unsigned procs[] = {1, 2, 3, 8};
    for (unsigned i = 0; i < rounds(200); i++) {
        uint64_t seed = t_random();
        blitz_runtime *rt;
        blitz_runtime_opts opts = {.procs = procs[i % 4], .clock = BLITZ_CLOCK_MANUAL};
        t_watch("seed 0x%llx, %u procs", (unsigned long long)seed, opts.procs);
        CHECK_EQ(blitz_runtime_new(&opts, &rt), 0);
        for (int k = 0; k < 5; k++)
            clock_drive(rt, seed + (unsigned)k, 6);
        CHECK_EQ(blitz_runtime_shutdown(rt, BLITZ_FOREVER), 0);
        CHECK_EQ(blitz_runtime_unref(rt), 0);
    }
}
