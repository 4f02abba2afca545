/*
 * Random programs with many hogs, on real threads: as support/random_program.h, but a burning task
 * may burn long enough to lose its proc, a few times in a row. The next actions of the task then
 * run without a proc. The invariants are the same: every spawned task runs once, every local is
 * destroyed once, and the program ends.
 */
#include "support/random_program.h"

#include "sim/fault.h"

enum { LONGER = 100 }; /* from 0 to 30 ms instead of 0 to 0.3 */

static bz_atomic(uint64_t) burned_ns;

static void program_burn(uint64_t ns)
{
    uint64_t until = bz_os_now(&bz_os_system) + ns * LONGER;
    while (bz_os_now(&bz_os_system) < until)
        bz_os_relax(&bz_os_system, 0);
    bz_fetch_add_relaxed(&burned_ns, ns * LONGER); /* relaxed: statistics */
}

static void run_program(uint64_t seed, unsigned procs, unsigned one_in, unsigned ns_max)
{
    struct program p = {seed, procs, (int)(seed >> 4 & 1)};
    struct bz_fault_plan plan = {.delay_one_in = one_in, .delay_ns_max = ns_max, .seed = seed};
    struct bz_fault fault;
    t_watch("program 0x%llx, %u procs, %d outsiders", (unsigned long long)seed, p.procs,
            p.outsiders);
    bz_fault_init(&fault, &bz_os_system, NULL, &plan);
    play_program(&fault.os, &p);
}

static void run_programs(unsigned procs, uint64_t count, unsigned one_in, unsigned ns_max)
{
    bz_store_relaxed(&burned_ns, 0); /* relaxed: no task runs */
    for (uint64_t i = 0, n = t_scaled(count); i < n; i++)
        run_program(t_random(), procs, one_in, ns_max);
    t_note("%llu ms of hogs", (unsigned long long)(bz_load_relaxed(&burned_ns) / BLITZ_MS));
}

TEST(fair, random_programs_with_hogs_on_one_proc)
{
    run_programs(1, 50, 20, 20000);
}

TEST(fair, random_programs_with_hogs_on_two_procs)
{
    run_programs(2, 50, 20, 20000);
}

TEST(fair, random_programs_with_hogs_on_eight_procs)
{
    run_programs(8, 50, 20, 20000);
}

/* Held up seldom, and then for so long that the monitor comes by in the middle of a step. */
TEST(fair, random_programs_with_hogs_on_threads_that_are_held_up_for_long)
{
    run_programs(1, 8, 300, 2000000);
    run_programs(2, 8, 300, 2000000);
}
