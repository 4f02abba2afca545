/*
 * Stackless tasks, pointer results and locals when there is no memory: every call that asks for
 * some fails in turn. Every failure is reported, the rest continues, and nothing is left behind.
 */
#include "harness.h"

#include <stdlib.h>

#include "blitz.h"
#include "sim/fault.h"
#include "sim/sim.h"
#include "proc/state.h"
#include "runtime/runtime.h"

static blitz_poll ready(void *state, blitz_cx *cx)
{
    cx->result = *(unsigned char *)state;
    return BLITZ_READY;
}

static void drop(void *state, void *ctx)
{
    (void)ctx;
    CHECK_EQ(*(unsigned char *)state, 9);
}

static void *pointer(void *arg)
{
    return arg;
}

static void free_pointer(void *p, void *ctx)
{
    (void)ctx;
    CHECK_EQ(*(int *)p, 4);
}

static const blitz_local_key keys[9]; /* more than the first table holds */

static int sets_locals(void *arg)
{
    int err = 0, set = 0;
    for (size_t i = 0; i < BZ_ARRAY_LEN(keys); i++) {
        err = blitz_local_set(&keys[i], arg);
        CHECK(err == 0 || err == -ENOMEM);
        set += err == 0;
        CHECK(blitz_local_get(&keys[i]) == (err == 0 ? arg : NULL));
    }
    return set;
}

static int is_told(int err, blitz_task **t)
{
    CHECK(err == 0 || err == -ENOMEM);
    if (err != 0)
        return 1;
    CHECK_EQ(blitz_task_join(*t, NULL, BLITZ_FOREVER), 0);
    return 0;
}

static int use_everything(void *arg)
{
    static unsigned char near[40], far[5000];
    static int four = 4;
    blitz_spawn_opts opts = {.drop_state = drop, .drop_result = free_pointer};
    blitz_task *t = NULL;
    int refused = 0;
    (void)arg;
    memset(near, 9, sizeof near);
    memset(far, 9, sizeof far);
    for (int i = 0; i < 3; i++) {
        refused += is_told(blitz_spawn_poll(ready, near, sizeof near, &opts, &t), &t);
        refused += is_told(blitz_spawn_poll(ready, far, sizeof far, &opts, &t), &t);
        refused += is_told(blitz_spawn_ptr(pointer, &four, &opts, &t), &t);
        refused += is_told(blitz_spawn(sets_locals, &four, NULL, &t), &t);
    }
    return refused;
}

struct faulty {
    struct bz_fault_plan plan;
    enum bz_fault_kind failed;
};

static void run_faulty(const struct bz_os *os, void *arg)
{
    struct faulty *f = arg;
    struct bz_fault fault;
    struct bz_runtime *rt;
    bz_fault_init(&fault, os, NULL, &f->plan);
    blitz_runtime_opts config = {.procs = 2, .allocator = &fault.allocator};
    int err = bz_runtime_new(&fault.os, &config, &rt);
    if (err == 0) {
        int refused = blitz_runtime_block_on((blitz_runtime *)rt, use_everything, NULL);
        CHECK(refused == -ENOMEM || refused == 0 || refused == 1);
        CHECK_EQ(blitz_runtime_shutdown((blitz_runtime *)rt, BLITZ_FOREVER), 0);
        CHECK_EQ(blitz_runtime_unref((blitz_runtime *)rt), 0);
    }
    f->failed = bz_fault_failed(&fault);
    CHECK_EQ(bz_fault_books(&fault).blocks, 0);
    CHECK_EQ(bz_fault_books(&fault).slabs, 0);
}

TEST(poll_fault, every_failed_allocation_returns_an_error_and_nothing_leaks)
{
    for (uint64_t n = 1;; n++) {
        struct faulty f = {.plan = {.kind = BZ_FAULT_MEMORY, .nth = n}};
        uint64_t seed = t_random();
        t_watch("simulation seed 0x%llx, allocation %llu fails", (unsigned long long)seed,
                (unsigned long long)n);
        CHECK_EQ(bz_sim_run(&(struct bz_sim_config){.seed = seed}, run_faulty, &f, NULL), 0);
        run_faulty(&bz_os_system, &f);
        if (f.failed == BZ_FAULT_NONE) {
            CHECK_GT(n, 8u); /* there was something to fail */
            return;
        }
    }
}
