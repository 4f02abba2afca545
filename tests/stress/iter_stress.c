/*
 * Iterators on threads that are delayed where the order of events matters, mainly at steals: each
 * result equals that of the sequential version, on any schedule. (Release builds have no delay
 * points.)
 */
#include "support/iter_zoo.h"

#include "sim/fault.h"
#include "proc/state.h"
#include "runtime/runtime.h"

enum { ROOM = 20000 };

static void visit_on(const struct bz_os *os, struct zoo *z, unsigned procs)
{
    struct bz_runtime *rt;
    CHECK_EQ(bz_runtime_new(os, &(blitz_runtime_opts){.procs = procs}, &rt), 0);
    CHECK_EQ(blitz_runtime_block_on((blitz_runtime *)rt, zoo_visit, z), 0);
    CHECK_EQ(blitz_runtime_shutdown((blitz_runtime *)rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref((blitz_runtime *)rt), 0);
}

static void visit_with_delays(uint64_t rounds, unsigned one_in, unsigned ns_max)
{
    struct zoo *z = zoo_new(ROOM);
    for (uint64_t i = 0; i < rounds; i++) {
        uint64_t seed = t_random();
        struct bz_fault_plan plan = {.delay_one_in = one_in, .delay_ns_max = ns_max, .seed = seed};
        struct bz_fault fault;
        bz_fault_init(&fault, &bz_os_system, NULL, &plan);
        zoo_fill(z, (size_t)t_random_below(ROOM + 1));
        z->opts = (blitz_par_opts){.grain = (size_t)t_random_below(100)};
        z->opts.chunk_max = 1 + (size_t)t_random_below(2000);
        t_watch("%zu elements, %u procs", z->n, 1 + (unsigned)(seed % 8));
        visit_on(&fault.os, z, 1 + (unsigned)(seed % 8));
    }
    zoo_free(z);
}

TEST(iter_stress, twins_on_threads_that_are_held_up_now_and_then)
{
    visit_with_delays(t_scaled(40), 20, 20000);
}

TEST(iter_stress, twins_on_threads_that_are_held_up_for_long)
{
    visit_with_delays(t_scaled(20), 300, 1000000);
}

/* Several at once, on one runtime: searches and scratch are each call's own. */
static int four_at_once(void *arg)
{
    struct zoo **z = arg;
    blitz_job job[3];
    for (int i = 0; i < 3; i++)
        blitz_fork(&job[i], zoo_visit, z[i]);
    CHECK_EQ(zoo_visit(z[3]), 0);
    for (int i = 3; i-- > 0;)
        CHECK_EQ(blitz_join(&job[i]), 0);
    return 0;
}

TEST(iter_stress, several_at_once)
{
    struct zoo *z[4];
    for (int i = 0; i < 4; i++)
        z[i] = zoo_new(ROOM);
    for (uint64_t round = 0, n = t_scaled(10); round < n; round++) {
        for (int i = 0; i < 4; i++)
            zoo_fill(z[i], (size_t)t_random_below(ROOM + 1));
        CHECK_EQ(
            blitz_run(four_at_once, z, &(blitz_runtime_opts){.procs = 1 + (unsigned)(round % 8)}),
            0);
    }
    for (int i = 0; i < 4; i++)
        zoo_free(z[i]);
}
