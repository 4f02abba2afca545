/*
 * Random programs with many hogs in virtual time, on one to four procs and fewer CPUs: as
 * support/random_program.h, but a burning task may burn for 30 ms and so lose its proc. In watch
 * builds with all checks: locks in order and none held across a suspension (bug class 7), no task
 * on two machines (4), nothing runnable while all sleep (1).
 */
#include "support/sched_sim.h"

#include "sim/fault.h"
#include "support/random_program.h"

enum { LONGER = 100 };

static void program_burn(uint64_t ns)
{
    bz_sim_burn(ns * LONGER);
}

static uint64_t programs, tasks;

/* The n-th allocation or thread fails, if the seed says so. */
static struct bz_fault_plan plan_of(uint64_t seed)
{
    return (struct bz_fault_plan){.kind = BZ_FAULT_THREAD, .nth = 3 + (seed >> 20) % 4};
}

static void play_with_faults(const struct bz_os *os, void *arg)
{
    const struct program *p = arg;
    struct bz_fault f;
    struct bz_fault_plan plan = plan_of(p->seed);
    bz_fault_init(&f, os, NULL, &plan);
    play_program(&f.os, arg);
}

static void run_program(uint64_t seed, bool has_no_barrier, int outsiders, bool has_faults)
{
    struct program p = {seed, 1 + (unsigned)(seed % 4), outsiders};
    struct bz_sim_config config = {
        .seed = seed, .has_no_barrier = has_no_barrier, .cpus = 1 + (int)(seed >> 12 & 3)};
    t_watch("simulation seed 0x%llx, %u procs%s, %d outsiders", (unsigned long long)seed, p.procs,
            has_no_barrier ? " without barriers" : "", outsiders);
    CHECK_EQ(bz_sim_run(&config, has_faults ? play_with_faults : play_program, &p, NULL), 0);
    programs++;
    tasks += (uint64_t)bz_load_relaxed(&ended); /* relaxed: no thread is left */
}

static void say_how_many(void)
{
    t_note("%llu programs, %llu tasks", (unsigned long long)programs, (unsigned long long)tasks);
}

/* Bug class 7: no suspension with a lock held, and locks in one order, wherever procs are lost. */
TEST_LIMIT(fair_random, bug_07_random_programs_with_hogs_keep_locks_in_order, 300)
{
    for (uint64_t i = 0, n = sim_seeds(300); i < n; i++)
        run_program(sim_next_seed(), false, 0, false);
    say_how_many();
}

/* Bug class 4: a task that has lost its proc is not run by the new holder of the proc. */
TEST_LIMIT(fair_random, bug_04_with_hogs_every_task_runs_once, 300)
{
    for (uint64_t i = 0, n = sim_seeds(300); i < n; i++) {
        uint64_t seed = sim_next_seed();
        run_program(seed, false, 1 + (int)(seed >> 4 & 1), false);
    }
    say_how_many();
}

TEST_LIMIT(fair_random, without_barriers_as_well, 300)
{
    for (uint64_t i = 0, n = sim_seeds(200); i < n; i++)
        run_program(sim_next_seed(), true, 1, false);
    say_how_many();
}

/* Bug class 30: a thread that cannot be had for a proc that moves. */
TEST_LIMIT(fair_random, bug_30_and_with_a_thread_that_cannot_be_started, 300)
{
    for (uint64_t i = 0, n = sim_seeds(200); i < n; i++)
        run_program(sim_next_seed(), false, 0, true);
    say_how_many();
}
