/* The pause before a restart, in virtual time: it doubles up to its limit, and begins anew after a calm period. */
#include "support/sched_sim.h"

#include <errno.h>

enum { FAILURES = 9 };

static blitz_instant begun[FAILURES + 1];
static int count;

/* Fails at once, but for the seventh start, which lives for a minute. */
static int sickly_init(void *state)
{
    (void)state;
    CHECK(count <= FAILURES);
    begun[count++] = blitz_now();
    if (count == FAILURES + 1)
        return 0;
    if (count == 7)
        CHECK_EQ(blitz_sleep(60 * BLITZ_S), 0);
    return -EIO;
}

static const blitz_behaviour sickly = {.name = "sickly", .state_bytes = 1, .init = sickly_init};

static int backs_off(void *arg)
{
    static const blitz_child_spec one = {.id = "a", .behaviour = &sickly};
    blitz_supervisor_plan plan = {.strategy = *(blitz_strategy *)arg,
                                  .intensity = 1000,
                                  .period = 10 * BLITZ_S,
                                  .backoff = 100 * BLITZ_MS,
                                  .backoff_max = BLITZ_S,
                                  .children = &one,
                                  .child_count = 1};
    static const unsigned want_ms[FAILURES] = {100, 200, 400, 800, 1000, 1000, 60100, 200, 400};
    blitz_actor_id sup;
    count = 0;
    CHECK_EQ(blitz_supervisor_spawn(&plan, NULL, &sup), 0);
    while (count <= FAILURES)
        CHECK_EQ(blitz_sleep(BLITZ_S), 0);
    for (int i = 0; i < FAILURES; i++) {
        blitz_duration gap = begun[i + 1] - begun[i];
        CHECK_GE(gap, want_ms[i] * BLITZ_MS);
        CHECK_LT(gap, (want_ms[i] + 50) * BLITZ_MS);
    }
    return 0;
}

static void play(const struct bz_os *os, void *arg)
{
    struct sim_scene scene = {1, backs_off, arg, 0};
    sim_play(os, &scene);
}

TEST_LIMIT(backoff_sim, the_pause_doubles_up_to_its_limit_and_begins_anew, 120)
{
    uint64_t n = sim_seeds(60);
    for (uint64_t i = 0; i < n; i++) {
        uint64_t seed = sim_next_seed();
        blitz_strategy strategy = (blitz_strategy)(seed % 4);
        t_watch("simulation seed 0x%llx, strategy %d", (unsigned long long)seed, (int)strategy);
        CHECK_EQ(bz_sim_run(&(struct bz_sim_config){.seed = seed}, play, &strategy, NULL), 0);
    }
    t_note("%llu runs", (unsigned long long)n);
}
