/*
 * Everything that can be waited for, with the event or the cancel at every point of a run.
 *
 * The same play (support/inject.h) runs again and again; the k-th time the event, or the cancel of the
 * first waiter, comes at the k-th point of choice. Builds with delay points have one before and after
 * each locked section, so the points of a first poll are among them.
 */
#include "support/sched_sim.h"

#include "support/inject.h"

static bz_os_word poked;

struct run {
    const struct inj_plan *plan;
    unsigned procs;
};

static void play(const struct bz_os *os, void *arg)
{
    const struct run *r = arg;
    inj_play(os, r->plan, r->procs, &poked, false);
}

/* One run with the poke at point k. Returns how many points it had. */
static uint64_t play_with_poke_at(const struct inj_plan *plan, uint64_t seed, uint64_t k)
{
    struct run r = {plan, 1 + (unsigned)(seed % 4)};
    struct bz_sim_result result;
    bz_store_relaxed(&poked, 0); /* relaxed: no thread runs */
    t_watch("simulation seed 0x%llx, %u procs, %s, %u waiters, poke at %llu",
            (unsigned long long)seed, r.procs, plan->kind->name, plan->waiters,
            (unsigned long long)k);
    struct bz_sim_config config = {.seed = seed, .poke = &poked, .poke_at = k};
    CHECK_EQ(bz_sim_run(&config, play, &r, &result), 0);
    return result.steps;
}

/* Some points of each of many plays. The kinds that have one waiter have few plays: more points each. */
TEST_LIMIT(inject, bug_50_52_54_an_event_or_a_cancel_at_any_point_loses_nothing, 600)
{
    enum { POINTS = 12, POINTS_ALONE = 60 };
    uint64_t runs = 0;
    for (uint64_t i = 0, n = sim_seeds(300); i < n; i++) {
        uint64_t seed = sim_next_seed();
        struct inj_plan plan = inj_plan_of(seed);
        struct bz_rng rng;
        bz_rng_init(&rng, seed);
        int points = plan.kind->waiters_max == 1 ? POINTS_ALONE : POINTS;
        uint64_t steps = play_with_poke_at(&plan, seed, UINT64_MAX);
        for (int k = 0; k < points; k++, runs++)
            (void)play_with_poke_at(&plan, seed, 1 + bz_rng_next(&rng) % steps);
    }
    t_note("%llu runs", (unsigned long long)runs);
}
