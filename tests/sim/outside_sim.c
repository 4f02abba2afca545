/*
 * Plain threads run computations, in virtual time and from seeds: on any schedule of their jobs and
 * tasks every call returns the result of its function.
 */
#include "support/sched_sim.h"

#include "runtime/runtime.h"
#include "support/outside.h"

enum { GUESTS = 3, CALLS = 4 };

struct guest {
    struct bz_os_thread thread;
    blitz_runtime *rt;
    uint64_t dice;
};

static void guest_main(void *arg)
{
    struct guest *g = arg;
    for (int i = 0; i < CALLS; i++) {
        int v = (int)(g->dice >> (8 * i) & 63);
        CHECK_EQ(blitz_par_run(g->rt, t_visits[v % T_VISITS], (void *)(intptr_t)v), v);
    }
}

static void guests_play(const struct bz_os *os, void *arg)
{
    struct bz_runtime *rt;
    struct guest g[GUESTS];
    uint64_t seed = *(uint64_t *)arg;
    struct bz_os_thread_opts opts = {.name = "guest"};
    CHECK_EQ(bz_runtime_new(os, &(blitz_runtime_opts){.procs = 1 + (unsigned)(seed % 4)}, &rt), 0);
    for (int i = 0; i < GUESTS; i++) {
        g[i].rt = (blitz_runtime *)rt;
        g[i].dice = seed * (2 * (uint64_t)i + 1) >> 7;
        CHECK_EQ(bz_os_thread_start(os, &g[i].thread, &opts, guest_main, &g[i]), 0);
    }
    for (int i = 0; i < GUESTS; i++)
        CHECK_EQ(bz_os_thread_join(os, &g[i].thread), 0);
    CHECK_EQ(blitz_runtime_shutdown((blitz_runtime *)rt, BLITZ_FOREVER), 0);
    for (unsigned i = 0; i < bz_machines_count(rt); i++)
        bz_deque_check(&bz_machines_at(rt, i)->deque);
    CHECK_EQ(blitz_runtime_unref((blitz_runtime *)rt), 0);
}

static void on_seeds(uint64_t count, t_scenario fn)
{
    for (uint64_t n = sim_seeds(count); n > 0; n--) {
        uint64_t seed = sim_next_seed();
        t_watch("simulation seed 0x%llx", (unsigned long long)seed);
        CHECK_EQ(bz_sim_run(&(struct bz_sim_config){.seed = seed}, fn, &seed, NULL), 0);
    }
}

TEST(outside_sim, guests_come_and_go)
{
    on_seeds(300, guests_play);
}

/* ---- a runtime that ends beneath them ---- */

static int sleeps_on(void *arg)
{
    int v = t_visit_sleeps(arg);
    blitz_job job;
    blitz_fork(&job, t_visit_returns, arg);
    (void)!blitz_sleep(50 * BLITZ_US); /* a cancel may come before, meanwhile or never */
    return v + blitz_join(&job);
}

static int tolerant(void *arg)
{
    (void)!blitz_sleep(10 * BLITZ_US);
    (void)arg;
    return 4;
}

static void late_guest(void *arg)
{
    struct guest *g = arg;
    for (int i = 0; i < CALLS; i++)
        CHECK_EQ(blitz_par_run(g->rt, tolerant, NULL), 4);
}

/* The thread that ends it lets it go only when the others cannot call any more; what they have begun
 * is cancelled, and what they begin later runs on their own stacks. */
static void end_plays(const struct bz_os *os, void *arg)
{
    struct bz_runtime *rt;
    struct guest g[GUESTS];
    uint64_t seed = *(uint64_t *)arg;
    struct bz_os_thread_opts opts = {.name = "guest"};
    CHECK_EQ(bz_runtime_new(os, &(blitz_runtime_opts){.procs = 1 + (unsigned)(seed % 3)}, &rt), 0);
    for (int i = 0; i < GUESTS; i++) {
        g[i].rt = (blitz_runtime *)rt;
        CHECK_EQ(bz_os_thread_start(os, &g[i].thread, &opts, late_guest, &g[i]), 0);
    }
    CHECK_EQ(blitz_par_run((blitz_runtime *)rt, sleeps_on, (void *)2), 4);
    CHECK_EQ(blitz_runtime_shutdown((blitz_runtime *)rt, BLITZ_FOREVER), 0);
    for (int i = 0; i < GUESTS; i++)
        CHECK_EQ(bz_os_thread_join(os, &g[i].thread), 0);
    CHECK_EQ(blitz_runtime_unref((blitz_runtime *)rt), 0);
}

TEST(outside_sim, a_shutdown_meets_guests_at_any_moment)
{
    on_seeds(200, end_plays);
}

/* The same, and the runtime is destroyed while the last guest is leaving. */
static void gone_plays(const struct bz_os *os, void *arg)
{
    struct bz_runtime *rt;
    struct guest g;
    uint64_t seed = *(uint64_t *)arg;
    struct bz_os_thread_opts opts = {.name = "guest"};
    bool has_come = false;
    CHECK_EQ(bz_runtime_new(os, &(blitz_runtime_opts){.procs = 1 + (unsigned)(seed % 2)}, &rt), 0);
    g = (struct guest){.rt = (blitz_runtime *)rt};
    CHECK_EQ(bz_os_thread_start(os, &g.thread, &opts, late_guest, &g), 0);
    while (!has_come) {
        has_come = bz_live_spawned(&rt->tasks.live) >= CALLS; /* its last call has begun */
        bz_os_relax(os, 20);
    }
    CHECK_EQ(blitz_runtime_shutdown((blitz_runtime *)rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref((blitz_runtime *)rt), 0);
    CHECK_EQ(bz_os_thread_join(os, &g.thread), 0);
}

TEST(outside_sim, a_runtime_that_goes_waits_for_a_guest_on_its_way_out)
{
    on_seeds(200, gone_plays);
}

/* ---- a single job while all workers sleep ---- */

typedef bz_atomic(uint64_t) moment;

static int says_when(void *arg)
{
    bz_store_relaxed((moment *)arg, blitz_now()); /* relaxed: a number */
    return 0;
}

static int forks_and_burns(void *arg)
{
    moment when = 0;
    blitz_job job;
    (void)arg;
    uint64_t began = blitz_now();
    blitz_fork(&job, says_when, &when);
    bz_sim_burn(20 * BLITZ_MS);
    uint64_t ran = bz_load_relaxed(&when); /* relaxed: a number */
    CHECK(ran != 0);                       /* while we burned, so on a worker */
    CHECK_LT(ran - began, BLITZ_MS);
    return blitz_join(&job);
}

static void burn_plays(const struct bz_os *os, void *arg)
{
    struct bz_runtime *rt;
    uint64_t seed = *(uint64_t *)arg;
    CHECK_EQ(bz_runtime_new(os, &(blitz_runtime_opts){.procs = 1 + (unsigned)(seed % 3)}, &rt), 0);
    bool is_hopeless = bz_is_plain(rt) && rt->proc_count == 1; /* it has the only proc then */
    for (int i = is_hopeless ? 2 : 0; i < 2; i++) {
        CHECK_EQ(blitz_par_run((blitz_runtime *)rt, forks_and_burns, NULL), 0);
        bz_sim_burn(seed % 2 ? 100 * BLITZ_MS : 1); /* the monitor has dozed off, or not */
    }
    CHECK_EQ(blitz_runtime_shutdown((blitz_runtime *)rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref((blitz_runtime *)rt), 0);
}

TEST(outside_sim, a_lone_job_of_a_guest_is_run_within_two_looks)
{
    on_seeds(150, burn_plays);
}
