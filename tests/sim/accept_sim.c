/*
 * Requirements for the scheduler, as scenes in virtual time: computation takes no time, a burning
 * task sets its time. So "soon" is a number and "the other worker ran it" is a fact.
 */
#include "runtime/runtime.h"
#include "support/event.h"
#include "support/sched_sim.h"

enum {
    HOG_NS = 20 * 1000 * 1000, /* how long a hog burns */
    SOON_NS = 2 * 1000 * 1000  /* the monitor's look, and what the delay points add */
};

/* ---- a hog hides nothing ---- */

struct note {
    uint64_t ran_ns;
    unsigned proc;
};
static struct note note[128];

static int sign(void *arg)
{
    struct note *n = arg;
    n->ran_ns = blitz_now();
    n->proc = sim_proc();
    return 0;
}

/* Spawn them from here, then burn. They must run meanwhile. */
static int spawn_then_burn(void *arg)
{
    int n = (int)(intptr_t)arg;
    blitz_task *t[128];
    uint64_t begin = blitz_now();
    for (int i = 0; i < n; i++)
        CHECK_EQ(blitz_spawn(sign, &note[i], NULL, &t[i]), 0);
    bz_sim_burn(HOG_NS);
    for (int i = 0; i < n; i++) {
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
        CHECK_LT(note[i].ran_ns - begin, SOON_NS);
    }
    return 0;
}

/* It is in the next slot and rouses no worker; the monitor finds it there. */
TEST(accept, bug_05_one_spawned_before_a_burn_is_run_within_a_look_of_the_monitor)
{
    sim_on_procs(spawn_then_burn, (void *)(intptr_t)1, 0, 300, 2, 4);
}

TEST(accept, two_spawned_before_a_burn_are_run_by_the_other_worker)
{
    sim_on_procs(spawn_then_burn, (void *)(intptr_t)2, 0, 300, 2, 4);
}

TEST(accept, a_hundred_spawned_before_a_burn_are_run_by_the_other_worker)
{
    sim_on_procs(spawn_then_burn, (void *)(intptr_t)100, 0, 60, 2, 4);
}

static int burn(void *arg)
{
    (void)arg;
    bz_sim_burn(HOG_NS);
    return 0;
}

/* The hog is the first queued task, and the spawner waits. */
static int first_burns(void *arg)
{
    int n = (int)(intptr_t)arg;
    blitz_task *hog, *t[128];
    CHECK_EQ(blitz_spawn(burn, NULL, NULL, &hog), 0);
    uint64_t begin = blitz_now();
    for (int i = 0; i < n; i++)
        CHECK_EQ(blitz_spawn(sign, &note[i], NULL, &t[i]), 0);
    for (int i = 0; i < n; i++) {
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
        CHECK_LT(note[i].ran_ns - begin, SOON_NS);
    }
    return blitz_task_join(hog, NULL, BLITZ_FOREVER);
}

TEST(accept, the_other_worker_runs_tasks_queued_behind_a_hog)
{
    sim_on_procs(first_burns, (void *)(intptr_t)1, 0, 150, 2, 4);
    sim_on_procs(first_burns, (void *)(intptr_t)5, 0, 150, 2, 4);
    sim_on_procs(first_burns, (void *)(intptr_t)100, 0, 40, 2, 4);
}

/* The same out of the injector, whose batches move the tasks from one queue to another. */
static void first_injected_burns(const struct bz_os *os, void *arg)
{
    enum { N = 4 };
    blitz_task *hog, *t[N];
    struct bz_runtime *rt;
    CHECK_EQ(bz_runtime_new(os, &(blitz_runtime_opts){.procs = *(unsigned *)arg}, &rt), 0);
    blitz_spawn_opts opts = {.runtime = (blitz_runtime *)rt};
    CHECK_EQ(blitz_spawn(burn, NULL, &opts, &hog), 0);
    uint64_t begin = bz_os_now(os);
    for (int i = 0; i < N; i++)
        CHECK_EQ(blitz_spawn(sign, &note[i], &opts, &t[i]), 0);
    for (int i = 0; i < N; i++) {
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
        CHECK_LT(note[i].ran_ns - begin, SOON_NS);
    }
    CHECK_EQ(blitz_task_join(hog, NULL, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_shutdown((blitz_runtime *)rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref((blitz_runtime *)rt), 0);
}

TEST(accept, the_other_worker_runs_tasks_injected_behind_a_hog)
{
    for (uint64_t i = 0, n = sim_seeds(1000); i < n; i++) {
        uint64_t seed = sim_next_seed();
        unsigned procs = 2 + (unsigned)(seed % 3);
        t_watch("simulation seed 0x%llx, %u procs", (unsigned long long)seed, procs);
        CHECK_EQ(
            bz_sim_run(&(struct bz_sim_config){.seed = seed}, first_injected_burns, &procs, NULL),
            0);
    }
}

/* ---- shares ---- */

static bz_atomic(unsigned) home, moved; /* atomic for readers: one thread runs at a time */

static int burn_a_little(void *arg)
{
    (void)arg;
    bz_fetch_add_relaxed(&moved, sim_proc() != bz_load_relaxed(&home));
    bz_sim_burn(100 * BLITZ_US);
    return 0;
}

static int put_a_hundred_here(void *arg)
{
    enum { N = 100 };
    blitz_task *t[N];
    (void)arg;
    bz_store_relaxed(&home, sim_proc());
    bz_store_relaxed(&moved, 0);
    for (int i = 0; i < N; i++)
        CHECK_EQ(blitz_spawn(burn_a_little, NULL, NULL, &t[i]), 0);
    for (int i = 0; i < N; i++)
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
    CHECK_GE(bz_load_relaxed(&moved), 40u);
    CHECK_LE(bz_load_relaxed(&moved), 60u);
    return 0;
}

TEST(accept, of_a_hundred_tasks_put_on_one_proc_of_two_40_to_60_move)
{
    sim_on_procs(put_a_hundred_here, NULL, 0, 100, 2, 2);
}

/* ---- searching ---- */

static bz_atomic(unsigned) most_searching;

static int look_who_searches(void *arg)
{
    struct bz_runtime *rt = bz_machine_self()->rt;
    (void)arg;
    for (int i = 0; i < 20; i++) {
        unsigned now = bz_idle_searching(&rt->idle);
        if (now > bz_load_relaxed(&most_searching))
            bz_store_relaxed(&most_searching, now);
        bz_sim_burn(t_random_below(3) * BLITZ_US);
        blitz_yield();
    }
    return 0;
}

static int many_look(void *arg)
{
    enum { N = 12 };
    blitz_task *t[N];
    (void)arg;
    for (int i = 0; i < N; i++)
        CHECK_EQ(blitz_spawn(look_who_searches, NULL, NULL, &t[i]), 0);
    for (int i = 0; i < N; i++)
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
    CHECK_LE(bz_load_relaxed(&most_searching), bz_machine_self()->rt->proc_count / 2);
    return 0;
}

TEST(accept, at_most_half_of_the_procs_search)
{
    bz_store_relaxed(&most_searching, 0);
    sim_on_procs(many_look, NULL, 0, 60, 8, 8);
    CHECK_GE(bz_load_relaxed(&most_searching), 1u);
}

/* ---- waking ---- */

static const struct bz_os *scene_os(void)
{
    return bz_machine_self()->rt->os;
}

struct wait_scene {
    struct t_event event;
    bool is_awake;
};

static int wait_for_it(void *arg)
{
    struct wait_scene *w = arg;
    t_event_await(&w->event);
    w->is_awake = true;
    return 0;
}

/* The wake comes before, while and after the waiter parks: wherever the seed puts it. */
static int wake_the_running(void *arg)
{
    struct wait_scene w = {.is_awake = false};
    blitz_task *t;
    (void)arg;
    t_event_init(&w.event, scene_os());
    CHECK_EQ(blitz_spawn(wait_for_it, &w, NULL, &t), 0);
    for (int i = (int)t_random_below(3); i > 0; i--)
        blitz_yield();
    t_event_set(&w.event);
    CHECK_EQ(blitz_task_join(t, NULL, BLITZ_FOREVER), 0);
    CHECK(w.is_awake);
    return 0;
}

TEST(accept, a_wake_of_a_running_task_is_not_lost)
{
    sim_on_seeds(wake_the_running, NULL, 0, 1000);
}

static struct wait_scene sleeper;
static unsigned woken_on;

static int wait_and_say_where(void *arg)
{
    (void)arg;
    t_event_await(&sleeper.event);
    woken_on = sim_proc();
    return 0;
}

static int wake_beside_a_full_ring(void *arg)
{
    enum { N = 20 };
    unsigned *near = arg;
    blitz_task *t[N], *waiter;
    t_event_init(&sleeper.event, scene_os());
    CHECK_EQ(blitz_spawn(wait_and_say_where, NULL, NULL, &waiter), 0);
    CHECK_EQ(blitz_sleep(5 * BLITZ_MS), 0); /* it waits by now */
    for (int i = 0; i < N; i++)
        CHECK_EQ(blitz_spawn(burn_a_little, NULL, NULL, &t[i]), 0);
    unsigned here = sim_proc();
    uint64_t begin = blitz_now();
    t_event_set(&sleeper.event);
    CHECK_EQ(blitz_task_join(waiter, NULL, BLITZ_FOREVER), 0);
    CHECK_LT(blitz_now() - begin, SOON_NS); /* not behind what is queued */
    *near += woken_on == here;
    for (int i = 0; i < N; i++)
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
    return 0;
}

/* Its data is in that CPU's cache. */
TEST(accept, a_woken_task_runs_soon_and_near_its_waker)
{
    unsigned near = 0;
    uint64_t rounds = sim_seeds(100);
    sim_on_procs(wake_beside_a_full_ring, &near, 0, 100, 2, 3);
    t_note("%u of %llu near their waker", near, (unsigned long long)rounds);
#if !defined(BZ_PLAIN) /* it has no next slot: another proc may take the task */
    CHECK_GE(near * 10, rounds * 8);
#endif
}

/* ---- local before global ---- */

static bz_atomic(int) runs, global_place;

static int take_a_place(void *arg)
{
    int place = bz_fetch_add_relaxed(&runs, 1);
    if (arg != NULL)
        bz_store_relaxed(&global_place, place);
    return 0;
}

static void inject_one(void *rt)
{
    blitz_spawn_opts opts = {.runtime = rt};
    CHECK_EQ(blitz_spawn(take_a_place, rt, &opts, NULL), 0);
}

/* From a plain thread, while this worker is blocked. */
static void inject(void)
{
    struct bz_os_thread thread;
    CHECK_EQ(bz_os_thread_start(scene_os(), &thread, NULL, inject_one, bz_machine_self()->rt), 0);
    CHECK_EQ(bz_os_thread_join(scene_os(), &thread), 0);
}

static int six_runs(void *arg)
{
    enum { LOCAL = 5 };
    unsigned *early = arg;
    blitz_task *t[LOCAL];
    bz_store_relaxed(&runs, 0);
    inject();
    for (int i = 0; i < LOCAL; i++)
        CHECK_EQ(blitz_spawn(take_a_place, NULL, NULL, &t[i]), 0);
    while (bz_load_relaxed(&runs) < LOCAL + 1)
        blitz_yield();
    for (int i = 0; i < LOCAL; i++)
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
    *early += bz_load_relaxed(&global_place) < LOCAL;
    return 0;
}

static int rounds_of_six(void *arg)
{
    for (int i = 0; i < 100; i++)
        six_runs(arg);
    return 0;
}

/* The task injected first runs last, except for the rounds that check the injector: runs are short,
 * so that these are rare. */
TEST(accept, local_tasks_run_before_global_ones)
{
    unsigned early = 0;
    uint64_t seeds = sim_seeds(20);
    sim_on_procs(rounds_of_six, &early, 0, 20, 1, 1);
    t_note("in %u rounds of %llu it was the injector's turn", early,
           (unsigned long long)(100 * seeds));
    CHECK_LE(early, 25 * seeds);
}
