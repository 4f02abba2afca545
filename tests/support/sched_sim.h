/*
 * sched_sim.h - whole runtimes on the simulated OS backend.
 *
 *     sim_on_seeds(scene, arg, 0, 400);
 *
 * runs scene(arg) as the first task of a runtime, under 400 seeds (scaled), with a number of procs
 * that the seed picks; the seed and the number are shown on a failure.
 */
#ifndef T_SCHED_SIM_H
#define T_SCHED_SIM_H

#include <stdatomic.h>

#include "blitz.h"
#include "proc/state.h"
#include "runtime/runtime.h"
#include "support/sanitizers.h"
#include "support/sim.h"

struct sim_scene {
    unsigned procs;
    int (*fn)(void *);
    void *arg;
    int want;
};

/* Blocks of memory that the runtime has. Its threads take turns, but TSan sees threads. */
static atomic_int sim_blocks;

static inline void *sim_alloc(void *ctx, size_t size, size_t align)
{
    void *block = bz_alloc(&bz_allocator_libc, size, align);
    (void)ctx;
    atomic_fetch_add(&sim_blocks, block != NULL);
    return block;
}

static inline void sim_free(void *ctx, void *block, size_t size)
{
    (void)ctx;
    atomic_fetch_sub(&sim_blocks, 1);
    bz_free(&bz_allocator_libc, block, size);
}

static const blitz_allocator sim_counted = {sim_alloc, sim_free, NULL};

/* A runtime whose memory is counted, and its end: no block is left. */
static inline struct bz_runtime *sim_begin(const struct bz_os *os, unsigned procs)
{
    struct bz_runtime *rt;
    sim_blocks = 0; /* a run that ended badly has left some */
    CHECK_EQ(
        bz_runtime_new(os, &(blitz_runtime_opts){.procs = procs, .allocator = &sim_counted}, &rt),
        0);
    return rt;
}

static inline void sim_end(struct bz_runtime *rt)
{
    CHECK_EQ(blitz_runtime_shutdown((blitz_runtime *)rt, BLITZ_FOREVER), 0);
    for (unsigned i = 0; i < bz_machines_count(rt); i++) {
        bz_deque_check(&bz_machines_at(rt, i)->deque);
#if !T_TSAN                                            /* its thread may be on its way out */
        CHECK_EQ(bz_machines_at(rt, i)->holds_on, 0u); /* none keeps its proc for ever */
#endif
    }
    CHECK_EQ(blitz_runtime_unref((blitz_runtime *)rt), 0);
    CHECK_EQ(sim_blocks, 0); /* a leaked header would keep the runtime */
}

static inline void sim_play(const struct bz_os *os, void *arg)
{
    const struct sim_scene *s = arg;
    struct bz_runtime *rt = sim_begin(os, s->procs);
    CHECK_EQ(blitz_runtime_block_on((blitz_runtime *)rt, s->fn, s->arg), s->want);
    sim_end(rt);
}

/* One seed, which must end well. */
static inline void sim_one(uint64_t seed, struct sim_scene *s)
{
    t_watch("simulation seed 0x%llx, %u procs", (unsigned long long)seed, s->procs);
    CHECK_EQ(bz_sim_run(&(struct bz_sim_config){.seed = seed}, sim_play, s, NULL), 0);
}

/* The next seed: a new one, or the one to repeat. */
static inline uint64_t sim_next_seed(void)
{
    const char *again = getenv("BLITZ_SIM_SEED"); /* as a failure printed it */
    return again != NULL && *again != '\0' ? strtoull(again, NULL, 0) : t_random();
}

/* A simulation takes its time in every build; what check-all asks for is a number of seeds. */
static inline uint64_t sim_seeds(uint64_t full)
{
    const char *asked = getenv("BLITZ_SIM_SEEDS"); /* seeds a case, in spite of all scaling */
    return asked != NULL && *asked != '\0' ? strtoull(asked, NULL, 0) : t_scaled(full);
}

/* From `least` to `most` procs, as the seed says. */
static inline void sim_on_procs(int (*fn)(void *), void *arg, int want, uint64_t seeds,
                                unsigned least, unsigned most)
{
    for (uint64_t i = 0, n = sim_seeds(seeds); i < n; i++) {
        uint64_t seed = sim_next_seed();
        struct sim_scene s = {least + (unsigned)(seed % (most - least + 1)), fn, arg, want};
        sim_one(seed, &s);
    }
}

/* The next seed alone, on 1 to 4 procs: for scenes with dice of their own. */
static inline void sim_on_next(int (*fn)(void *), void *arg, int want)
{
    uint64_t seed = sim_next_seed();
    struct sim_scene s = {1 + (unsigned)(seed % 4), fn, arg, want};
    sim_one(seed, &s);
}

static inline void sim_on_seeds(int (*fn)(void *), void *arg, int want, uint64_t seeds)
{
    sim_on_procs(fn, arg, want, seeds, 1, 4);
}

/* The proc the caller runs on. */
static inline unsigned sim_proc(void)
{
    return bz_machine_self()->last->index;
}

#endif
