/*
 * sim_faults.h - a whole runtime in virtual time, on a system that refuses something.
 *
 *     CHECK_GE(sim_each_fault(BZ_FAULT_THREAD, false, scene), 3u);
 *
 * runs scene(NULL) as the first task of a runtime of two procs, once for each n = 1, 2, 3, ... The
 * n-th call of that kind fails (and all later ones, if is_for_good). It stops when no call failed,
 * and returns that n. The runtime may refuse to begin; what begins, ends, and leaves nothing
 * behind.
 */
#ifndef T_SIM_FAULTS_H
#define T_SIM_FAULTS_H

#include "sim/fault.h"
#include "runtime/runtime.h"
#include "support/sched_sim.h"

struct sim_faulty {
    struct bz_fault_plan plan;
    int (*scene)(void *);
    bool has_failed;
};

static inline void sim_run_faulty(const struct bz_os *os, void *arg)
{
    struct sim_faulty *f = arg;
    struct bz_fault fault;
    struct bz_runtime *rt;
    bz_fault_init(&fault, os, NULL, &f->plan);
    int err = bz_runtime_new(&fault.os,
                             &(blitz_runtime_opts){.procs = 2, .allocator = &fault.allocator}, &rt);
    if (err == 0) {
        err = blitz_runtime_block_on((blitz_runtime *)rt, f->scene, NULL);
        CHECK_EQ(blitz_runtime_shutdown((blitz_runtime *)rt, BLITZ_FOREVER), 0);
        CHECK_EQ(blitz_runtime_unref((blitz_runtime *)rt), 0);
    }
    CHECK(err == 0 || err == -ENOMEM || err == -EAGAIN);
    f->has_failed = bz_fault_failed(&fault) != BZ_FAULT_NONE;
    struct bz_fault_books left = bz_fault_books(&fault);
    CHECK_EQ(left.threads, 0);
    CHECK_EQ(left.slabs, 0);
    CHECK_EQ(left.blocks, 0);
}

static inline uint64_t sim_each_fault(enum bz_fault_kind kind, bool for_good, int (*scene)(void *))
{
    for (uint64_t n = 1;; n++) {
        struct sim_faulty f = {
            .plan = {.kind = kind, .nth = n, .for_good = for_good}, scene, false};
        uint64_t seed = sim_next_seed();
        t_watch("seed 0x%llx, call %llu of kind %d fails, for good: %d", (unsigned long long)seed,
                (unsigned long long)n, (int)kind, for_good);
        CHECK_EQ(t_sim(seed, sim_run_faulty, &f), 0);
        if (!f.has_failed)
            return n;
    }
}

#endif
