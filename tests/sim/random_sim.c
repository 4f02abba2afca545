/*
 * Random programs on the whole scheduler, in virtual time and from seeds: with and without the
 * system's barriers, on one to four procs. support/random_program.h says what they do.
 */
#include "support/sched_sim.h"

#include "support/random_program.h"

static void program_burn(uint64_t ns)
{
    bz_sim_burn(ns);
}

static uint64_t programs, tasks;

static void run_program(uint64_t seed, bool has_no_barrier, int outsiders)
{
    struct program p = {seed, 1 + (unsigned)(seed % 4), outsiders};
    struct bz_sim_config config = {.seed = seed, .has_no_barrier = has_no_barrier};
    t_watch("simulation seed 0x%llx, %u procs%s, %d outsiders", (unsigned long long)seed, p.procs,
            has_no_barrier ? " without barriers" : "", outsiders);
    CHECK_EQ(bz_sim_run(&config, play_program, &p, NULL), 0);
    programs++;
    tasks += (uint64_t)bz_load_relaxed(&ended);
}

static void say_how_many(void)
{
    t_note("%llu programs, %llu tasks", (unsigned long long)programs, (unsigned long long)tasks);
}

/* Bug classes 1 and 4: nothing is lost, nothing runs twice. */
TEST_LIMIT(random, bug_04_every_task_of_a_random_program_runs_once, 300)
{
    for (uint64_t i = 0, n = sim_seeds(400); i < n; i++)
        run_program(sim_next_seed(), false, 0);
    say_how_many();
}

TEST_LIMIT(random, bug_01_threads_from_outside_take_part, 300)
{
    for (uint64_t i = 0, n = sim_seeds(400); i < n; i++) {
        uint64_t seed = sim_next_seed();
        run_program(seed, false, 1 + (int)(seed >> 4 & 1));
    }
    say_how_many();
}

/* The other form of every protocol, chosen at run time. */
TEST_LIMIT(random, programs_run_as_well_without_barriers, 300)
{
    for (uint64_t i = 0, n = sim_seeds(200); i < n; i++) {
        uint64_t seed = sim_next_seed();
        run_program(seed, true, (int)(seed >> 4 & 1));
    }
    say_how_many();
}
