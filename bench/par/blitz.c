/*
 * Ours. A case runs in the first task of a runtime with the given number of procs. Cases of small
 * loops from outside, and of latency beside loops, run on a plain thread. par/cases.h and
 * par/beside.h describe the cases. Only public headers.
 */
#include <blitz.h>

#include "par/beside.h"
#include "par/cases.h"
#include "par/fork.h"
#include "par/loops.h"
#include "par/sorts.h"
#include "par/steals.h"
#include "tasks/ours.h"

/* ---- on a plain thread ---- */

static blitz_runtime *world;

static void spawn_in_world(int (*fn)(void *))
{
    blitz_spawn_opts opts = {.runtime = world};
    must(blitz_spawn(fn, NULL, &opts, NULL), "spawn");
}

static double beside_loops_run(int (*first)(void *), int (*second)(void *))
{
    blitz_runtime_opts config = {.procs = tasks_procs};
    must(blitz_runtime_new(&config, &world), "runtime");
    must(blitz_chan_new(sizeof(int), 0, NULL, &beside.ask), "channel");
    must(blitz_chan_new(sizeof(int), 0, NULL, &beside.answer), "channel");
    beside.start_ns = bench_now_ns() + 20 * BLITZ_MS;
    for (unsigned i = 0; i < tasks_procs; i++)
        spawn_in_world(beside_loops);
    spawn_in_world(first);
    if (second != NULL)
        spawn_in_world(second);
    double p99 = beside_close();
    must(blitz_runtime_shutdown(world, blitz_after(5 * BLITZ_S)), "shutdown");
    must(blitz_runtime_unref(world), "unref");
    blitz_chan_unref(beside.ask);
    blitz_chan_unref(beside.answer);
    return p99;
}

static double case_beside_ticker(uint64_t ops)
{
    (void)ops;
    return beside_loops_run(beside_ticker, NULL);
}

static double case_beside_echo(uint64_t ops)
{
    (void)ops;
    return beside_loops_run(beside_echo, beside_client);
}

static const struct tasks_case outside[] = {
    {"tiny-outside", TASKS_PACED, case_tiny, 0},
    {"tiny-idle", TASKS_ONCE, case_tiny_idle, 1},
    {"beside-ticker", TASKS_ONCE, case_beside_ticker, 1},
    {"beside-echo", TASKS_ONCE, case_beside_echo, 1},
};

static void start_outside(const struct tasks_case *c, const char *name)
{
    char procs[16];
    snprintf(procs, sizeof procs, "%u", tasks_procs);
    setenv("BLITZ_PROCS", procs, 1); /* of the runtime that loops from outside go to */
    tasks_measure(c, name);
}

/* ---- in a task ---- */

static const struct tasks_case inside[] = {
    {"fork", TASKS_PACED, case_fork_nested, 0},
    {"fib", TASKS_FIXED, case_fib, 1},
    {"queens", TASKS_FIXED, case_queens, 1},
    {"sum", TASKS_FIXED, case_sum, 1},
    {"orbit", TASKS_FIXED, case_orbit, 1},
    {"sort-random", TASKS_FIXED, case_sort_random, 1},
    {"sort-sorted", TASKS_FIXED, case_sort_sorted, 1},
    {"sort-few", TASKS_FIXED, case_sort_few, 1},
    {"compare-random", TASKS_FIXED, case_compare_random, 1},
    {"compare-sorted", TASKS_FIXED, case_compare_sorted, 1},
    {"compare-few", TASKS_FIXED, case_compare_few, 1},
    {"tiny-inside", TASKS_PACED, case_tiny, 0},
    {"steal", TASKS_PACED, case_steal, 0},
    {"stolen-join", TASKS_PACED, case_stolen_join, 0},
};

int main(int argc, char **argv)
{
    const char *word = argc > 1 ? argv[1] : "";
    for (size_t i = 0; i < sizeof outside / sizeof outside[0]; i++)
        if (strncmp(word, outside[i].name, strlen(outside[i].name)) == 0)
            return tasks_main(argc, argv, outside, sizeof outside / sizeof outside[0],
                              start_outside);
    return tasks_main(argc, argv, inside, sizeof inside / sizeof inside[0], ours_start);
}
