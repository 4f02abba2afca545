/*
 * The monitor in virtual time: private work of a busy machine is taken within a few checks, and an
 * idle runtime has no checks at all.
 */
#include <stdatomic.h>

#include "support/sched_sim.h"

#include "sim/fault.h"

enum {
    HOG_NS = 20 * 1000 * 1000,
#if defined(BZ_DELAY) || defined(BZ_DEBUG) /* every lock may linger, which takes time */
    LOOKS_NS = 500 * 1000,
#else
    LOOKS_NS = 300 * 1000, /* two looks 50 us apart, and a wake or two that come late */
#endif
    TIMERS_NS = 2500 * 1000 /* a nap of the monitor, and two looks */
};

static struct bz_monitor *monitor(void)
{
    return &bz_machine_self()->rt->monitor;
}

/* ---- a lone task ---- */

typedef bz_atomic(uint64_t) moment;

static int says_when(void *arg)
{
    bz_store_relaxed((moment *)arg, blitz_now()); /* relaxed: a number */
    return 0;
}

static int spawn_one_then_burn(void *arg)
{
    uint64_t began = blitz_now();
    moment when = 0;
    blitz_task *t;
    CHECK_EQ(blitz_spawn(says_when, &when, NULL, &t), 0);
    bz_sim_burn(HOG_NS);
    uint64_t ran = bz_load_relaxed(&when); /* relaxed: a number */
    CHECK(ran != 0);                       /* while we burned, so on another worker */
    CHECK_LT(ran - began, (uint64_t)(intptr_t)arg);
    return blitz_task_join(t, NULL, BLITZ_FOREVER);
}

/* It is in the next slot of a burning machine: no worker was roused for it, and none can steal
 * it. */
TEST(monitor, a_lone_task_spawned_before_a_burn_is_run_within_two_looks)
{
    sim_on_procs(spawn_one_then_burn, (void *)(intptr_t)LOOKS_NS, 0, 400, 2, 4);
}

static int spawn_again_and_again(void *arg)
{
    for (int i = 0; i < 5; i++)
        CHECK_EQ(spawn_one_then_burn(arg), 0);
    return 0;
}

TEST(monitor, and_so_is_the_next_one)
{
    sim_on_procs(spawn_again_and_again, (void *)(intptr_t)LOOKS_NS, 0, 100, 2, 3);
}

static int rest_then_spawn(void *arg)
{
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(blitz_sleep(300 * BLITZ_MS), 0); /* long enough for the monitor to doze off */
        CHECK_EQ(spawn_one_then_burn(arg), 0);
    }
    return 0;
}

TEST(monitor, it_runs_again_after_all_workers_slept)
{
    sim_on_procs(rest_then_spawn, (void *)(intptr_t)LOOKS_NS, 0, 100, 2, 3);
}

/* ---- timers ---- */

static int sleeps_and_says_when(void *arg)
{
    CHECK_EQ(blitz_sleep(BLITZ_MS), 0);
    return says_when(arg);
}

static int sleepers_beside_hogs(void *arg)
{
    enum { N = 6 };
    uint64_t began = blitz_now();
    moment ran[N];
    blitz_task *t[N];
    (void)arg;
    for (int i = 0; i < N; i++)
        CHECK_EQ(blitz_spawn(sleeps_and_says_when, &ran[i], NULL, &t[i]), 0);
    blitz_yield(); /* they go to sleep, most of them here */
    bz_sim_burn(HOG_NS);
    for (int i = 0; i < N; i++)
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
    for (int i = 0; i < N; i++) /* its own start may have waited for two looks, too */
        CHECK_LT(bz_load_relaxed(&ran[i]) - began, BLITZ_MS + TIMERS_NS); /* relaxed: joined */
    return 0;
}

/* Bug class 6: a hog does not hold up the timers of its proc while another worker is free. */
TEST(monitor, bug_06_timers_of_a_proc_that_burns_are_fired)
{
    sim_on_procs(sleepers_beside_hogs, NULL, 0, 200, 2, 4);
}

/* ---- the hand ---- */

struct crowd {
    bz_atomic(int) begun;
    uint64_t burn_ns[24];
};

static struct crowd crowd;

static int burns(void *arg)
{
    int me = bz_fetch_add_relaxed(&crowd.begun, 1); /* relaxed: a number for each */
    (void)arg;
    bz_sim_burn(crowd.burn_ns[me]);
    return 0;
}

/* Both workers busy, so that each takes a handful; then one of them is long at its first. */
static int crowd_with_a_hog(void *arg)
{
    enum { N = 24 };
    blitz_task *t[N];
    uint64_t began = blitz_now();
    (void)arg;
    bz_store_relaxed(&crowd.begun, 0); /* relaxed: no task runs yet */
    for (int i = 0; i < N; i++)
        crowd.burn_ns[i] = i == 5 ? HOG_NS : 20 * BLITZ_US;
    for (int i = 0; i < N; i++)
        CHECK_EQ(blitz_spawn(burns, NULL, NULL, &t[i]), 0);
    while (bz_load_relaxed(&crowd.begun) < N) /* relaxed: a count */
        CHECK_EQ(blitz_sleep(100 * BLITZ_US), 0);
    CHECK_LT(blitz_now() - began, (uint64_t)HOG_NS); /* before the hog was done */
    for (int i = 0; i < N; i++)
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
    return 0;
}

TEST(monitor, other_workers_run_the_batch_of_a_hog)
{
    sim_on_procs(crowd_with_a_hog, NULL, 0, 200, 2, 3);
}

/* ---- when there is nothing to do ---- */

static int rest_for_an_hour(void *arg)
{
    struct bz_monitor *mon = monitor();
    blitz_task *t;
    CHECK_EQ(blitz_spawn(says_when, arg, NULL, &t), 0); /* raises it */
    CHECK_EQ(blitz_task_join(t, NULL, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_sleep(BLITZ_S), 0);
    uint64_t looks = bz_load_relaxed(&mon->looks); /* relaxed: statistics */
    CHECK_EQ(blitz_sleep(3600 * BLITZ_S), 0);
    CHECK_LE(bz_load_relaxed(&mon->looks) - looks, 10u); /* relaxed: statistics */
    return 0;
}

/* Asleep while nothing runs: an hour costs no more looks than a moment. */
TEST(monitor, an_idle_runtime_is_not_looked_at)
{
    moment ran;
    sim_on_procs(rest_for_an_hour, &ran, 0, 50, 2, 4);
}

static int spawn_then_rest(void *arg)
{
    blitz_task *t;
    CHECK_EQ(blitz_spawn(says_when, arg, NULL, &t), 0); /* raises it */
    CHECK_EQ(blitz_task_join(t, NULL, BLITZ_FOREVER), 0);
    return blitz_sleep(10 * BLITZ_S);
}

static void watch_it_doze(const struct bz_os *os, void *arg)
{
    struct bz_runtime *rt = sim_begin(os, *(unsigned *)arg);
    moment ran;
    bz_os_word never;
    blitz_task *t;
    int result = -1;
    bz_atomic_init(&never, 0);
    CHECK_EQ(
        blitz_spawn(spawn_then_rest, &ran, &(blitz_spawn_opts){.runtime = (blitz_runtime *)rt}, &t),
        0);
    for (uint64_t until = bz_os_now(os) + 5 * BLITZ_S; bz_os_now(os) < until;)
        (void)bz_os_wait(os, &never, 0, until);                      /* it may end early */
    CHECK_EQ(bz_load_relaxed(&rt->monitor.state), BZ_MONITOR_DOZES); /* relaxed: one thread runs */
    CHECK_EQ(blitz_task_join(t, &result, BLITZ_FOREVER), 0);
    CHECK_EQ(result, 0);
    sim_end(rt);
}

/* It says that it dozes before it looks whether all sleep: a worker that begins just then must know whom to raise. */
TEST(monitor, it_says_that_it_dozes)
{
    for (uint64_t i = 0, n = sim_seeds(20); i < n; i++) {
        uint64_t seed = sim_next_seed();
        unsigned procs = 2 + (unsigned)(seed % 3);
        t_watch("simulation seed 0x%llx, %u procs", (unsigned long long)seed, procs);
        CHECK_EQ(bz_sim_run(&(struct bz_sim_config){.seed = seed}, watch_it_doze, &procs, NULL), 0);
    }
}

static int burn_alone(void *arg)
{
    (void)arg;
    bz_sim_burn(HOG_NS);
    CHECK_EQ(bz_load_relaxed(&monitor()->looks), 0u); /* relaxed: statistics */
    return 0;
}

/* A task that has never spawned or woken another has nothing that could be kept waiting. */
TEST(monitor, a_lone_task_of_one_proc_needs_none)
{
    struct sim_scene s = {1, burn_alone, NULL, 0};
    struct bz_sim_result r;
    CHECK_EQ(bz_sim_run(&(struct bz_sim_config){.seed = t_random()}, sim_play, &s, &r), 0);
    CHECK_EQ(r.threads, 2u); /* ours and the worker */
}

/* ---- the handshake ---- */

/* A system whose barrier checks whether a machine has been asked (queue/retake.h). */
static struct {
    int (*barrier)(const struct bz_os *os);
    _Atomic(struct bz_runtime *) rt; /* TSan sees threads where a simulation has turns */
    atomic_uint asked;               /* barriers that were paid for while one was */
    uint64_t rescued; /* entries that the monitor has taken out of machines, in all runs */
} watched;

static int watched_barrier(const struct bz_os *os)
{
    bool is_asked = false;
    struct bz_runtime *rt = watched.rt;
    for (unsigned i = 0; rt != NULL && i < bz_machines_count(rt); i++) {
        struct bz_retake *taken = &bz_machines_at(rt, i)->taken;
        is_asked |=
            bz_load_relaxed(&taken->retake) == BZ_TAKING_ASKED; /* relaxed: one thread runs */
    }
    watched.asked += is_asked;
    return watched.barrier(os);
}

static int take_and_count(void *arg)
{
    watched.rt = bz_machine_self()->rt;
    CHECK_EQ(spawn_again_and_again(arg), 0);
    uint64_t rescued = bz_load_relaxed(&monitor()->rescued); /* relaxed: statistics */
    CHECK(rescued == 0 || watched.asked > 0);
    watched.rescued += rescued;
    watched.rt = NULL;
    return 0;
}

static void on_a_watched_system(const struct bz_os *os, void *arg)
{
    struct bz_os *mine = (struct bz_os *)os; /* of this run alone */
    watched.barrier = mine->barrier;
    watched.asked = 0;
    mine->barrier = watched_barrier;
    sim_play(os, arg);
    mine->barrier = watched.barrier;
}

/* Asked first, then the barrier, then taken: a machine that comes back meanwhile waits. */
TEST(monitor, it_asks_a_machine_before_it_takes_from_it)
{
#if defined(BZ_PLAIN)
    t_skip("in the plain form machines keep nothing to themselves");
#endif
    for (uint64_t i = 0, n = sim_seeds(50); i < n; i++) {
        uint64_t seed = sim_next_seed();
        struct sim_scene s = {2, take_and_count, (void *)(intptr_t)LOOKS_NS, 0};
        t_watch("simulation seed 0x%llx", (unsigned long long)seed);
        CHECK_EQ(bz_sim_run(&(struct bz_sim_config){.seed = seed}, on_a_watched_system, &s, NULL),
                 0);
    }
    CHECK_GT(watched.rescued, 0u);
}

/* ---- when it cannot be ---- */

/* The n-th thread cannot be started: with n = 2 that is the monitor, or the other worker. */
static void refused(const struct bz_os *os, void *arg)
{
    struct bz_fault f;
    struct sim_scene s = {3, spawn_one_then_burn, (void *)(intptr_t)LOOKS_NS, 0};
    bz_fault_init(&f, os, NULL,
                  &(struct bz_fault_plan){.kind = BZ_FAULT_THREAD, .nth = *(uint64_t *)arg});
    sim_play(&f.os, &s);
    CHECK_EQ(bz_fault_failed(&f), BZ_FAULT_THREAD);
}

TEST(monitor, without_a_monitor_thread_a_single_task_rouses_a_worker_at_once)
{
    for (uint64_t i = 0, n = sim_seeds(100); i < n; i++) {
        uint64_t seed = t_random(), nth = 2;
        t_watch("simulation seed 0x%llx", (unsigned long long)seed);
        CHECK_EQ(bz_sim_run(&(struct bz_sim_config){.seed = seed}, refused, &nth, NULL), 0);
    }
}

/* Without barriers nothing is kept private: the other form of everything. */
TEST(monitor, without_barriers_a_lone_task_is_run_as_well)
{
    for (uint64_t i = 0, n = sim_seeds(100); i < n; i++) {
        uint64_t seed = t_random();
        struct sim_scene s = {2 + (unsigned)(seed % 3), spawn_one_then_burn,
                              (void *)(intptr_t)LOOKS_NS, 0};
        struct bz_sim_config config = {.seed = seed, .has_no_barrier = true};
        t_watch("simulation seed 0x%llx, %u procs", (unsigned long long)seed, s.procs);
        CHECK_EQ(bz_sim_run(&config, sim_play, &s, NULL), 0);
    }
}
