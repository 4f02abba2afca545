/*
 * The rounds of support/mix on one OS thread, in virtual time, from seeds: every point at which another
 * thread could go on is a choice of the seed. A lost wake-up is a deadlock of the simulation, and a
 * failing seed repeats bit for bit.
 */
#include "support/sched_sim.h"

struct mix_thread {
    struct bz_os_thread thread;
};

#include "runtime/runtime.h"
#include "sim/sim_signals.h"
#include "support/mix/play.h"

static const struct bz_os *mix_os;
static struct mix_round mix_now;

static void mix_thread_start(struct mix_thread *t, void (*fn)(void *arg), void *arg)
{
    CHECK_EQ(bz_os_thread_start(mix_os, &t->thread, &(struct bz_os_thread_opts){.name = "thread"},
                                fn, arg),
             0);
}

static void mix_thread_join(struct mix_thread *t)
{
    CHECK_EQ(bz_os_thread_join(mix_os, &t->thread), 0);
}

static blitz_runtime *mix_runtime_new(unsigned procs)
{
    struct bz_runtime *rt;
    CHECK_EQ(bz_runtime_new(mix_os, &(blitz_runtime_opts){.procs = procs, .name = "other"}, &rt),
             0);
    return (blitz_runtime *)rt;
}

static void report(void)
{
    if (mix_now.scene == NULL)
        return; /* no round was made: there is no scene of that name */
    mix_report(&mix_now);
    fprintf(
        stderr,
        "that round again: BLITZ_MIX_SCENE=%s BLITZ_SIM_SEEDS=1 BLITZ_SIM_SEED=0x%llx sim_mix\n",
        mix_now.scene->name, (unsigned long long)mix_now.seed);
}

static void play_round(const struct bz_os *os, void *arg)
{
    uint64_t seed = *(uint64_t *)arg;
    struct bz_runtime *rt;
    unsigned procs = 1 + (unsigned)(seed % 4);
    mix_os = os;
    bz_sim_signals_begin();
    CHECK_EQ(bz_runtime_new(os, &(blitz_runtime_opts){.procs = procs}, &rt), 0);
    mix_play(&mix_now, (blitz_runtime *)rt, procs, seed);
    CHECK_EQ(blitz_runtime_shutdown((blitz_runtime *)rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref((blitz_runtime *)rt), 0);
    CHECK_EQ(bz_sim_signals_end(), 0);
}

/* Bug classes 41 and 50 to 54. */
TEST_LIMIT(mix_sim, random_parties_lose_nothing_and_go_on, 600)
{
    uint64_t n = sim_seeds(2000);
    t_at_failure(report);
    CHECK_EQ(blitz_log_set(mix_log, NULL, BLITZ_LOG_ERROR), 0);
    for (uint64_t i = 0; i < n; i++) {
        uint64_t seed = sim_next_seed();
        struct bz_sim_config config = {.seed = seed, .steps_max = 2000000};
        t_watch("simulation seed 0x%llx, round %llu", (unsigned long long)seed,
                (unsigned long long)i);
        int err = bz_sim_run(&config, play_round, &seed, NULL);
        if (err != 0)
            FAIL("the simulation ended with error %d", err);
    }
    t_note("%llu rounds", (unsigned long long)n);
}
