/* Proc hints: where a task begins. */
#include "harness.h"
#include "support/on_each.h"
#include "support/sim.h"

#include <pthread.h>

#include "base/bz_atomic.h"
#include "sim/fault.h"
#include "sim/sim.h"
#include "proc/place.h"
#include "proc/state.h"
#include "runtime/runtime.h"
#include "wait/wait.h"

static unsigned proc_here(void)
{
    return bz_machine_self()->last->index;
}

static int where_am_i(void *arg)
{
    (void)arg;
    return (int)proc_here();
}

static void *where_am_i_ptr(void *arg)
{
    *(int *)arg = (int)proc_here();
    return NULL;
}

static blitz_poll where_am_i_poll(void *state, blitz_cx *cx)
{
    (void)state;
    cx->result = (int)proc_here();
    return BLITZ_READY;
}

static unsigned procs_here(void)
{
    return bz_machine_self()->rt->proc_count;
}

/* Check that a task began on the proc it asked for. The monitor shares the inbox of a proc that runs one task for a
 * second, as a stopped machine seems to. So as many tasks as it has shared may begin elsewhere: `elsewhere` counts them. */
static void check_where(struct bz_runtime *rt, int got, unsigned asked, unsigned *elsewhere)
{
    if (got == (int)asked)
        return;
    t_note("began on proc %d, asked for %u", got, asked);
    CHECK_LE(++*elsewhere, bz_load_relaxed(&rt->monitor.shared)); /* relaxed: the join orders it */
}

static int one_on_each(void *arg)
{
    struct bz_runtime *rt = bz_machine_self()->rt;
    unsigned elsewhere = 0;
    (void)arg;
    for (int round = 0; round < 20; round++)
        for (unsigned p = 0; p < procs_here(); p++) {
            blitz_spawn_opts opts = {.proc = BLITZ_ON_PROC(p)};
            blitz_task *t;
            int result = -1, seen = -1;
            CHECK_EQ(blitz_spawn(where_am_i, NULL, &opts, &t), 0);
            CHECK_EQ(blitz_task_join(t, &result, BLITZ_FOREVER), 0); /* not claimed */
            check_where(rt, result, p, &elsewhere);
            CHECK_EQ(blitz_spawn_poll(where_am_i_poll, NULL, 0, &opts, &t), 0);
            CHECK_EQ(blitz_task_join(t, &result, BLITZ_FOREVER), 0);
            check_where(rt, result, p, &elsewhere);
            CHECK_EQ(blitz_spawn_ptr(where_am_i_ptr, &seen, &opts, &t), 0);
            CHECK_EQ(blitz_task_join(t, NULL, BLITZ_FOREVER), 0);
            check_where(rt, seen, p, &elsewhere);
        }
    return 0;
}

/* Each proc in turn, most of which have no thread yet the first time. */
TEST(on_proc, a_task_begins_where_it_was_asked_to)
{
    t_on_each(one_on_each, NULL, 0);
}

static int many_on_each(void *arg)
{
    enum { N = 400 };
    static blitz_task *t[N];
    struct bz_runtime *rt = bz_machine_self()->rt;
    unsigned elsewhere = 0;
    (void)arg;
    for (unsigned i = 0; i < N; i++) {
        blitz_spawn_opts opts = {.proc = BLITZ_ON_PROC(i % procs_here())};
        CHECK_EQ(blitz_spawn(where_am_i, NULL, &opts, &t[i]), 0);
    }
    for (unsigned i = 0; i < N; i++) {
        int result = -1;
        CHECK_EQ(blitz_task_join(t[i], &result, BLITZ_FOREVER), 0);
        check_where(rt, result, i % procs_here(), &elsewhere);
    }
    return 0;
}

/* While other workers search and steal: only its proc takes from an inbox. */
TEST(on_proc, hundreds_at_once_all_begin_where_they_should)
{
    t_on_each(many_on_each, NULL, 0);
}

static int no_such_proc(void *arg)
{
    blitz_spawn_opts opts = {.proc = BLITZ_ON_PROC(procs_here())};
    blitz_task *t = NULL;
    (void)arg;
    CHECK_EQ(blitz_spawn(where_am_i, NULL, &opts, &t), -EINVAL);
    CHECK_EQ(blitz_spawn_ptr(where_am_i_ptr, NULL, &opts, &t), -EINVAL);
    CHECK_EQ(blitz_spawn_poll(where_am_i_poll, NULL, 0, &opts, &t), -EINVAL);
    CHECK_NULL(t);
    return 0;
}

TEST(on_proc, a_proc_that_does_not_exist_is_refused)
{
    t_on_each(no_such_proc, NULL, 0);
}

struct outside {
    blitz_runtime *rt;
    unsigned proc;
};

static void *spawn_outside(void *arg)
{
    struct outside *o = arg;
    unsigned elsewhere = 0;
    blitz_spawn_opts opts = {.runtime = o->rt, .proc = BLITZ_ON_PROC(o->proc)};
    for (int i = 0; i < 100; i++) {
        blitz_task *t;
        int result = -1;
        CHECK_EQ(blitz_spawn(where_am_i, NULL, &opts, &t), 0);
        CHECK_EQ(blitz_task_join(t, &result, BLITZ_FOREVER), 0);
        check_where((struct bz_runtime *)o->rt, result, o->proc, &elsewhere);
    }
    return NULL;
}

/* Against procs that go to sleep after each: a rouse that is lost is a hang. */
TEST(on_proc, plain_threads_reach_each_proc)
{
    enum { PROCS = 3 };
    blitz_runtime *rt;
    pthread_t thread[PROCS];
    struct outside o[PROCS];
    CHECK_EQ(blitz_runtime_new(&(blitz_runtime_opts){.procs = PROCS}, &rt), 0);
    for (unsigned i = 0; i < PROCS; i++) {
        o[i] = (struct outside){rt, i};
        CHECK_EQ(pthread_create(&thread[i], NULL, spawn_outside, &o[i]), 0);
    }
    for (unsigned i = 0; i < PROCS; i++)
        CHECK_EQ(pthread_join(thread[i], NULL), 0);
    CHECK_EQ(blitz_runtime_shutdown(rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref(rt), 0);
}

/* ---- a proc that gets no thread ---- */

static int on_the_dead(void *arg)
{
    blitz_task *t[4];
    (void)arg;
    for (int i = 0; i < 4; i++) {
        blitz_spawn_opts opts = {.proc = BLITZ_ON_PROC(1)};
        CHECK_EQ(blitz_spawn(where_am_i, NULL, &opts, &t[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        int result = -1;
        CHECK_EQ(blitz_task_join(t[i], &result, BLITZ_FOREVER), 0);
        CHECK(result == 0 || result == 1); /* 1 if it was another thread that failed */
    }
    return 0;
}

static void run_with_a_dead_proc(const struct bz_os *os, void *arg)
{
    struct bz_fault fault;
    struct bz_runtime *rt;
    bz_fault_init(&fault, os, NULL, arg);
    CHECK_EQ(bz_runtime_new(&fault.os, &(blitz_runtime_opts){.procs = 2}, &rt), 0);
    CHECK_EQ(blitz_runtime_block_on((blitz_runtime *)rt, on_the_dead, NULL), 0);
    CHECK_EQ(blitz_runtime_shutdown((blitz_runtime *)rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref((blitz_runtime *)rt), 0);
}

/* A hint is not worth a task: it begins elsewhere. The first thread is proc 0's; the second or the
 * third is proc 1's. */
TEST(on_proc, bug_30_a_proc_that_gets_no_thread_loses_no_task)
{
    for (unsigned i = 0; i < 200; i++) {
        struct bz_fault_plan plan = {.kind = BZ_FAULT_THREAD, .nth = 2 + i % 2};
        uint64_t seed = t_random();
        if (i % 10 == 0)
            run_with_a_dead_proc(&bz_os_system, &plan);
        t_watch("simulation seed 0x%llx", (unsigned long long)seed);
        CHECK_EQ(
            bz_sim_run(&(struct bz_sim_config){.seed = seed}, run_with_a_dead_proc, &plan, NULL),
            0);
    }
}

/* ---- a proc that is busy ---- */

static int begin_and_say_where(void *has_begun)
{
    bz_store_relaxed((bz_atomic(int) *)has_begun,
                     1); /* relaxed: the simulator runs one thread at a time */
    return (int)proc_here();
}

static int spawn_here_and_burn(void *arg)
{
    bz_atomic(int) has_begun;
    (void)arg;
    for (int round = 0; round < 3; round++) {
        unsigned here = proc_here();
        blitz_spawn_opts opts = {.proc = BLITZ_ON_PROC(here)};
        blitz_task *t;
        int result = -1;
        bz_atomic_init(&has_begun, 0);
        CHECK_EQ(blitz_spawn(begin_and_say_where, &has_begun, &opts, &t), 0);
        t_burn(60 * BLITZ_MS);
        CHECK_EQ(bz_load_relaxed(&has_begun), 1); /* relaxed: as above */
        CHECK_EQ(blitz_task_join(t, &result, BLITZ_FOREVER), 0);
        CHECK_EQ(result, here);
    }
    return 0;
}

/* ---- an inbox that its machine does not come to ---- */

struct woken {
    struct bz_wait wait;
    bz_atomic(int) is_parked, has_gone_on; /* relaxed accesses: the simulator runs one thread */
};

static bool say_parked(struct bz_wait *w, void *arg)
{
    bool waits = bz_wait_publish(w);
    bz_store_relaxed(&((struct woken *)arg)->is_parked, 1); /* relaxed: see there */
    return waits;
}

static int parks(void *arg)
{
    struct woken *w = arg;
    bz_wait_begin(&w->wait, bz_machine_self()->rt->os, "test", BLITZ_FOREVER);
    CHECK_EQ(bz_wait_park(&w->wait, say_parked, w), (uint32_t)BZ_WAIT_WOKEN);
    bz_store_relaxed(&w->has_gone_on, 1); /* relaxed: see there */
    return 0;
}

/* Queue it for this proc, as a machine does that hears of I/O for the home of all files: sched/reap.c. */
static int wake_here_and_burn(void *arg)
{
    struct bz_runtime *rt = bz_machine_self()->rt;
    (void)arg;
    for (unsigned round = 1; round <= 3; round++) {
        struct woken w;
        struct bz_wake wake;
        blitz_task *t;
        bz_atomic_init(&w.is_parked, 0);
        bz_atomic_init(&w.has_gone_on, 0);
        CHECK_EQ(blitz_spawn(parks, &w, NULL, &t), 0);
        while (!bz_load_relaxed(&w.is_parked)) /* relaxed: see there */
            CHECK_EQ(blitz_sleep(BLITZ_MS), 0);
        CHECK(bz_wait_claim(&w.wait, BZ_WAIT_WOKEN, &wake));
        bz_place_on(rt, proc_here(), bz_entry_resumed((struct bz_task *)t));
        t_burn(60 * BLITZ_MS);
        CHECK_EQ(bz_load_relaxed(&w.has_gone_on), 1);          /* relaxed: see there */
        CHECK_EQ(bz_load_relaxed(&rt->monitor.shared), round); /* relaxed: likewise */
        CHECK_EQ(blitz_task_join(t, NULL, BLITZ_FOREVER), 0);
    }
    return 0;
}

static void play_with(const struct bz_os *os, unsigned procs, unsigned burning_max,
                      int (*fn)(void *))
{
    struct bz_runtime *rt;
    blitz_runtime_opts opts = {.procs = procs, .burning_max = burning_max};
    CHECK_EQ(bz_runtime_new(os, &opts, &rt), 0);
    for (unsigned i = 0; i < rt->proc_count; i++)
        rt->procs[i].seen.was_home = true; /* then woken tasks in its inbox wait for 2 ms only */
    CHECK_EQ(blitz_runtime_block_on((blitz_runtime *)rt, fn, NULL), 0);
    CHECK_EQ(blitz_runtime_shutdown((blitz_runtime *)rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref((blitz_runtime *)rt), 0);
}

static void play_and_burn(const struct bz_os *os, void *procs)
{
    play_with(os, *(unsigned *)procs, 0, spawn_here_and_burn);
}

static void play_and_wake(const struct bz_os *os, void *procs)
{
    play_with(os, *(unsigned *)procs, 0, wake_here_and_burn);
}

static void on_seeds(void (*play)(const struct bz_os *os, void *procs), uint64_t seeds,
                     unsigned least)
{
    for (uint64_t i = 0, n = t_scaled(seeds); i < n; i++) {
        uint64_t seed = t_random();
        unsigned procs = least + (unsigned)(seed % (5 - least));
        t_watch("simulation seed 0x%llx, %u procs", (unsigned long long)seed, procs);
        CHECK_EQ(bz_sim_run(&(struct bz_sim_config){.seed = seed}, play, &procs, NULL), 0);
    }
}

/* The proc moves to another machine after 10 ms, and the task begins there: on its proc. */
TEST(on_proc, a_task_begins_on_its_proc_while_another_burns_there)
{
    on_seeds(play_and_burn, 200, 1);
}

/* A task that was woken may go on anywhere: the monitor takes it out of the inbox long before the proc moves. */
TEST(on_proc, a_woken_task_in_the_inbox_of_a_busy_proc_goes_on_elsewhere)
{
#if defined(BZ_PLAIN)
    t_skip("in the plain form a woken task is queued by its state word");
#endif
    on_seeds(play_and_wake, 100, 2);
}

static int burns_three_seconds(void *arg)
{
    bz_store_relaxed((bz_atomic(int) *)arg, 1); /* relaxed: the simulator runs one thread */
    t_burn(3 * BLITZ_S);
    return 0;
}

static int says_when(void *when)
{
    bz_store_relaxed((bz_atomic(uint64_t) *)when, blitz_now()); /* relaxed: likewise */
    return (int)proc_here();
}

/* One hog may burn, so the second keeps its proc. */
static int spawn_here_beside_a_hog_and_burn(void *arg)
{
    bz_atomic(int) is_burning;
    bz_atomic(uint64_t) when;
    blitz_task *hog, *t;
    int result = -1;
    (void)arg;
    bz_atomic_init(&is_burning, 0);
    bz_atomic_init(&when, 0);
    CHECK_EQ(blitz_spawn(burns_three_seconds, &is_burning, NULL, &hog), 0);
    while (!bz_load_relaxed(&is_burning)) /* relaxed: as above */
        CHECK_EQ(blitz_sleep(BLITZ_MS), 0);
    CHECK_EQ(blitz_sleep(30 * BLITZ_MS), 0); /* it is a hog now */
    unsigned here = proc_here();
    uint64_t began = blitz_now();
    CHECK_EQ(blitz_spawn(says_when, &when, &(blitz_spawn_opts){.proc = BLITZ_ON_PROC(here)}, &t),
             0);
    t_burn(2 * BLITZ_S);
    CHECK_GE(bz_load_relaxed(&when), began + 900 * BLITZ_MS); /* relaxed: as above */
    CHECK_EQ(blitz_task_join(t, &result, BLITZ_FOREVER), 0);
    CHECK_NE(result, (int)here);
    CHECK_EQ(blitz_task_join(hog, NULL, BLITZ_FOREVER), 0);
    return 0;
}

static void play_beside_a_hog(const struct bz_os *os, void *procs)
{
    play_with(os, *(unsigned *)procs, 1, spawn_here_beside_a_hog_and_burn);
}

/* A task with a proc hint waits for that proc for a second. Then it is better off elsewhere. */
TEST(on_proc, a_task_whose_proc_stays_busy_begins_elsewhere_after_a_second)
{
    on_seeds(play_beside_a_hog, 40, 3);
}

/* ---- from seeds ---- */

static int scatter(void *arg)
{
    enum { N = 12 };
    blitz_task *t[N];
    struct bz_runtime *rt = bz_machine_self()->rt;
    unsigned elsewhere = 0;
    (void)arg;
    for (unsigned i = 0; i < N; i++) {
        blitz_spawn_opts opts = {.proc = BLITZ_ON_PROC(i * 5 % procs_here())};
        CHECK_EQ(blitz_spawn(where_am_i, NULL, &opts, &t[i]), 0);
        if (i % 4 == 3)
            CHECK_EQ(blitz_sleep(20 * BLITZ_US), 0); /* so that they fall asleep in between */
    }
    for (unsigned i = 0; i < N; i++) {
        int result = -1;
        CHECK_EQ(blitz_task_join(t[i], &result, BLITZ_FOREVER), 0);
        check_where(rt, result, i * 5 % procs_here(), &elsewhere);
    }
    return 0;
}

static void play(const struct bz_os *os, void *procs)
{
    struct bz_runtime *rt;
    CHECK_EQ(bz_runtime_new(os, &(blitz_runtime_opts){.procs = *(unsigned *)procs}, &rt), 0);
    CHECK_EQ(blitz_runtime_block_on((blitz_runtime *)rt, scatter, NULL), 0);
    CHECK_EQ(blitz_runtime_shutdown((blitz_runtime *)rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref((blitz_runtime *)rt), 0);
}

/* An inbox against a proc that goes to sleep, in every order the seeds find. */
TEST(on_proc, bug_01_a_proc_that_falls_asleep_misses_nothing)
{
    on_seeds(play, 500, 1);
}
