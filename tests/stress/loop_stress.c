/*
 * Loops on real threads that are delayed where the order of events matters, mainly at steals, and
 * with each allocation failing in turn. One delay point in n delays, by seed; release builds have
 * none in the scheduler, but the bodies do.
 */
#include "support/loop_scenes.h"

#include "sim/fault.h"
#include "runtime/runtime.h"

struct held_up {
    struct loop_dice dice;
    uint64_t rounds;
};

static int twins(void *arg)
{
    struct held_up *h = arg;
    for (uint64_t i = 0; i < h->rounds; i++) {
        loop_check_for(&h->dice);
        loop_check_2d(&h->dice);
        loop_check_reduce(&h->dice);
        loop_check_scan(&h->dice);
        loop_check_scan_values(&h->dice);
        loop_check_pipeline(&h->dice);
        loop_check_workers();
    }
    return 0;
}

static void run_on(struct bz_fault *fault, unsigned procs, int (*fn)(void *), void *arg, int *out)
{
    struct bz_runtime *rt;
    blitz_runtime_opts config = {.procs = procs, .allocator = &fault->allocator};
    *out = bz_runtime_new(&fault->os, &config, &rt);
    if (*out != 0)
        return;
    *out = blitz_runtime_block_on((blitz_runtime *)rt, fn, arg);
    CHECK_EQ(blitz_runtime_shutdown((blitz_runtime *)rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref((blitz_runtime *)rt), 0);
}

TEST(loop, twins_on_threads_that_are_held_up)
{
    for (unsigned procs = 1; procs <= 8; procs++) {
        uint64_t seed = t_random();
        struct bz_fault_plan plan = {.delay_one_in = 20, .delay_ns_max = 20000, .seed = seed};
        struct held_up h = {{seed, 100 * 1000, 64}, t_scaled(6)};
        struct bz_fault fault;
        int err;
        t_watch("seed 0x%llx, %u procs", (unsigned long long)seed, procs);
        bz_fault_init(&fault, &bz_os_system, NULL, &plan);
        run_on(&fault, procs, twins, &h, &err);
        CHECK_EQ(err, 0);
    }
}

/* ---- without memory ---- */

static void reduce_large(int is_ordered)
{
    struct loop_spelling s = {1000, 8};
    blitz_reduction how = loop_reduction(s.bytes);
    blitz_par_opts opts = {.grain = is_ordered ? 50 : 0, .chunk_max = 7, .is_ordered = is_ordered};
    static char memory[1000] BZ_ALIGNED(16);
    struct loop_word *got = (struct loop_word *)memory;
    int err = blitz_reduce(500, &how, &s, got, &opts);
    CHECK(err == 0 || (err == -ENOMEM && is_ordered));
    if (err == 0)
        CHECK_EQ(got->count, 500u);
}

static int count_call(unsigned worker, void *arg)
{
    (void)worker;
    bz_fetch_add_relaxed((bz_atomic(unsigned) *)arg, 1);
    return 0;
}

/* A call that may fail returns -ENOMEM without a partial effect; a call that may not fail uses less
 * memory. */
static int fed_little(void *arg)
{
    struct loop_dice d = {7, 2000, 64};
    bz_atomic(unsigned) called = 0;
    struct loop_pipe p = {.n = 50};
    blitz_stage stage = {BLITZ_STAGE_ORDERED, loop_pipe_parallel, &p};
    blitz_pipeline_opts opts = {5, loop_pipe_drop, &p};
    (void)arg;
    loop_check_for(&d);
    loop_check_scan(&d);
    reduce_large(0);
    reduce_large(1);
    int err = blitz_pipeline(loop_pipe_source, &p, &stage, 1, &opts);
    CHECK(err == 0 || err == -ENOMEM);
    CHECK_EQ(p.made, err == 0 ? 50u : 0u);
    CHECK_EQ(bz_load_relaxed(&p.alive), 0u);
    err = blitz_on_each_worker(count_call, &called);
    CHECK(err == 0 || err == -ENOMEM);
    if (err == 0)
        CHECK_EQ(bz_load_relaxed(&called), blitz_worker_count());
    return 0;
}

TEST(loop, each_allocation_that_fails)
{
    for (uint64_t nth = 1;; nth++) {
        struct bz_fault_plan plan = {.kind = BZ_FAULT_MEMORY, .nth = nth};
        struct bz_fault fault;
        int err;
        t_watch("allocation %llu fails", (unsigned long long)nth);
        bz_fault_init(&fault, &bz_os_system, NULL, &plan);
        run_on(&fault, 3, fed_little, NULL, &err);
        struct bz_fault_books left = bz_fault_books(&fault);
        CHECK_EQ(left.blocks, 0);
        CHECK_EQ(left.threads, 0);
        if (bz_fault_failed(&fault) == BZ_FAULT_NONE) {
            CHECK_EQ(err, 0);
            CHECK_GT(nth, 5u);
            return;
        }
        CHECK(err == 0 || err == -ENOMEM);
    }
}
