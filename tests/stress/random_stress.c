/*
 * Random programs on the whole scheduler, on real threads that are held up where the order of
 * events decides: a delay point in so many lingers for a while, by seed. (Release builds have no
 * delay points; there it is plain stress.) support/random_program.h describes the programs.
 */
#include "support/random_program.h"

#include "sim/fault.h"

static void program_burn(uint64_t ns)
{
    uint64_t until = bz_os_now(&bz_os_system) + ns;
    while (bz_os_now(&bz_os_system) < until)
        bz_os_relax(&bz_os_system, 0);
}

static void run_program(uint64_t seed, unsigned one_in, unsigned ns_max)
{
    static const unsigned procs[] = {1, 2, 3, 8};
    struct program p = {seed, procs[seed % BZ_ARRAY_LEN(procs)], (int)(seed >> 4 & 1)};
    struct bz_fault_plan plan = {.delay_one_in = one_in, .delay_ns_max = ns_max, .seed = seed};
    struct bz_fault fault;
    t_watch("program 0x%llx, %u procs, %d outsiders", (unsigned long long)seed, p.procs,
            p.outsiders);
    bz_fault_init(&fault, &bz_os_system, NULL, &plan);
    play_program(&fault.os, &p);
}

TEST(random, programs_on_threads_that_are_held_up_now_and_then)
{
    for (uint64_t i = 0, n = t_scaled(400); i < n; i++)
        run_program(t_random(), 20, 20000);
}

/* Rarely, but then for a long time. */
TEST(random, programs_on_threads_that_are_held_up_for_long)
{
    for (uint64_t i = 0, n = t_scaled(200); i < n; i++)
        run_program(t_random(), 300, 1000000);
}
