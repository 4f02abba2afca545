/*
 * Every sort against its twin, on real threads: random lengths up to 100,000, every order, 1 to 8
 * procs, threads held up where they publish and steal; and several sorts at once.
 */
#include "support/sorts.h"

#include "sim/fault.h"
#include "proc/state.h"
#include "runtime/runtime.h"

struct plan {
    uint64_t rounds, index;
};

static int sort_at_random(void *arg)
{
    const struct plan *p = arg;
    struct t_rng r = t_rng_of(p->index);
    for (uint64_t i = 0; i < p->rounds; i++) {
        size_t n = t_rng_below(&r, i % 3 == 0 ? 3000 : 100001);
        const struct sorts_row *row = &sorts_all[t_rng_below(&r, BZ_ARRAY_LEN(sorts_all))];
        sorts_check(row, (enum sorts_order)t_rng_below(&r, SORTS_ORDERS), n, &r);
    }
    return 0;
}

static void on_procs(unsigned procs, int (*fn)(void *), void *arg)
{
    struct bz_fault_plan delays = {.delay_one_in = 20, .delay_ns_max = 20000, .seed = t_random()};
    struct bz_fault fault;
    struct bz_runtime *rt;
    t_watch("%u procs", procs);
    bz_fault_init(&fault, &bz_os_system, NULL, &delays);
    CHECK_EQ(bz_runtime_new(&fault.os, &(blitz_runtime_opts){.procs = procs}, &rt), 0);
    CHECK_EQ(blitz_runtime_block_on((blitz_runtime *)rt, fn, arg), 0);
    CHECK_EQ(blitz_runtime_shutdown((blitz_runtime *)rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref((blitz_runtime *)rt), 0);
}

TEST(sort, random_arrays_on_1_to_8_procs)
{
    for (unsigned procs = 1; procs <= 8; procs++) {
        struct plan p = {t_scaled(40), procs};
        on_procs(procs, sort_at_random, &p);
    }
}

static int sort_at_once(void *arg)
{
    struct plan plans[4];
    blitz_task *t[4];
    for (uint64_t i = 0; i < 4; i++) {
        plans[i] = (struct plan){((const struct plan *)arg)->rounds, 100 + i};
        CHECK_EQ(blitz_spawn(sort_at_random, &plans[i], NULL, &t[i]), 0);
    }
    for (int i = 0; i < 4; i++)
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
    return 0;
}

TEST(sort, four_tasks_sort_at_once)
{
    struct plan p = {t_scaled(20), 0};
    on_procs(1, sort_at_once, &p);
    on_procs(3, sort_at_once, &p);
}
