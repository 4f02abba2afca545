/* Join sets on real threads: each member comes out once. */
#include "harness.h"

#include "support/set_program.h"

TEST_LIMIT(join_set, random_programs_on_real_threads, 300)
{
    uint64_t n = t_scaled(600);
    for (uint64_t i = 0; i < n; i++) {
        uint64_t seed = t_random();
        unsigned procs = 1 + (unsigned)(seed % 4);
        t_watch("seed 0x%llx, %u procs", (unsigned long long)seed, procs);
        set_play(&bz_os_system, seed, procs);
    }
    t_note("%llu programs", (unsigned long long)n);
}
