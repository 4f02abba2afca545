/*
 * Fork and join in virtual time, from seeds: on any schedule of steals and suspensions a job runs
 * once and its join returns.
 */
#include "support/sched_sim.h"

#include <stdlib.h>

/* Let the seed choose the next thread: a job has no other decision point. */
static void waver(void)
{
    bz_os_delay_here(bz_machine_self()->rt->os, BZ_OS_AT_PUBLISH);
}

static int fib(void *arg)
{
    intptr_t n = (intptr_t)arg;
    blitz_job job;
    waver();
    if (n < 2)
        return (int)n;
    blitz_fork(&job, fib, (void *)(n - 2));
    int left = fib((void *)(n - 1));
    return left + blitz_join(&job);
}

TEST(par_sim, a_tree_of_forks_adds_up)
{
    sim_on_seeds(fib, (void *)(intptr_t)8, 21, 400);
}

/* Frames that are left with jobs pending, in jobs that were stolen or left themselves. */
static int fib_that_waits(void *arg)
{
    intptr_t n = (intptr_t)arg;
    blitz_job job;
    if (n < 2)
        return (int)n;
    blitz_fork(&job, fib_that_waits, (void *)(n - 2));
    if (n % 3 == 0)
        blitz_yield();
    int left = fib_that_waits((void *)(n - 1));
    if (n % 4 == 1)
        CHECK_EQ(blitz_sleep(BLITZ_US), 0);
    return left + blitz_join(&job);
}

/* Several, so that a suspended task finds its machine busy, and continues elsewhere. */
static int three_that_wait(void *arg)
{
    blitz_task *t[3];
    for (int i = 0; i < 3; i++)
        CHECK_EQ(blitz_spawn(fib_that_waits, arg, NULL, &t[i]), 0);
    for (int i = 0; i < 3; i++) {
        int result = 0;
        CHECK_EQ(blitz_task_join(t[i], &result, blitz_after(BLITZ_S)), 0);
        CHECK_EQ(result, 8);
    }
    return 0;
}

TEST(par_sim, frames_left_with_pending_jobs_find_them_done)
{
    sim_on_seeds(fib_that_waits, (void *)(intptr_t)8, 21, 200);
    sim_on_seeds(three_that_wait, (void *)(intptr_t)6, 0, 300);
}

static int spawn_and_fork(void *arg)
{
    intptr_t depth = (intptr_t)arg;
    blitz_job job;
    blitz_task *t;
    int mine = 0;
    if (depth == 0)
        return 1;
    blitz_fork(&job, spawn_and_fork, (void *)(depth - 1));
    CHECK_EQ(blitz_spawn(spawn_and_fork, (void *)(depth - 1), NULL, &t), 0);
    CHECK_EQ(blitz_task_join(t, &mine, BLITZ_FOREVER), 0);
    return mine + blitz_join(&job);
}

TEST(par_sim, spawns_and_forks_mix)
{
    sim_on_seeds(spawn_and_fork, (void *)(intptr_t)4, 16, 300);
}

static int waits_for_ever(void *arg)
{
    (void)arg;
    return blitz_sleep_until(BLITZ_FOREVER);
}

static int forks_waiters(void *arg)
{
    blitz_job a, b;
    (void)arg;
    blitz_fork(&a, waits_for_ever, NULL);
    blitz_fork(&b, waits_for_ever, NULL);
    waver();
    int err = blitz_join(&b);
    CHECK_EQ(blitz_join(&a), -ECANCELED);
    return err;
}

static int cancel_forkers(void *arg)
{
    blitz_task *t[3];
    (void)arg;
    for (int i = 0; i < 3; i++)
        CHECK_EQ(blitz_spawn(forks_waiters, NULL, NULL, &t[i]), 0);
    for (int i = 0; i < 3; i++) {
        int result = 0;
        if (i == 1)
            blitz_yield();
        blitz_task_cancel(t[i]);
        CHECK_EQ(blitz_task_join(t[i], &result, BLITZ_FOREVER), 0);
        CHECK_EQ(result, -ECANCELED);
    }
    return 0;
}

/* A cancel comes before a job is taken, while it is adopted, while it waits, while its join waits. */
TEST(par_sim, a_cancel_at_any_moment_reaches_the_jobs)
{
    sim_on_seeds(cancel_forkers, NULL, 0, 400);
}

/* ---- a lone job behind a computation ---- */

enum { BURN_NS = 20 * 1000 * 1000, LOOKS_NS = 1000 * 1000 };

typedef bz_atomic(uint64_t) moment;

static int says_when(void *arg)
{
    bz_store_relaxed((moment *)arg, blitz_now()); /* relaxed: a number */
    return 0;
}

static int fork_one_then_burn(void *arg)
{
    CHECK_EQ(blitz_sleep(5 * BLITZ_MS), 0); /* all the others have gone to sleep */
    uint64_t began = blitz_now();
    moment when = 0;
    blitz_job job;
    blitz_fork(&job, says_when, &when);
    bz_sim_burn(BURN_NS);
    uint64_t ran = bz_load_relaxed(&when); /* relaxed: a number */
    CHECK(ran != 0);                       /* while we burned, so on another worker */
    CHECK_LT(ran - began, LOOKS_NS);
    CHECK_EQ(blitz_join(&job), 0);
    (void)arg;
    return 0;
}

/* No worker is roused for it at once; the monitor notices that it stays. */
TEST(par_sim, a_lone_job_before_a_burn_is_run_within_two_looks)
{
    sim_on_procs(fork_one_then_burn, NULL, 0, 200, 2, 4);
}

static int fork_two_then_burn(void *arg)
{
    moment when[2] = {0, 0};
    blitz_job job[2];
    CHECK_EQ(blitz_sleep(5 * BLITZ_MS), 0); /* all the others have gone to sleep */
    uint64_t began = blitz_now();
    for (int i = 0; i < 2; i++)
        blitz_fork(&job[i], says_when, &when[i]);
    for (int i = 0; i < 20; i++) {
        bz_sim_burn(BLITZ_MS);
        blitz_share();
    }
    for (int i = 0; i < 2; i++) {
        uint64_t ran = bz_load_relaxed(&when[i]); /* relaxed: a number */
        CHECK(ran != 0);
        CHECK_LT(ran - began, 3 * BLITZ_MS);
    }
    CHECK_EQ(blitz_join(&job[1]), 0);
    CHECK_EQ(blitz_join(&job[0]), 0);
    (void)arg;
    return 0;
}

/* The second one is private until the burning frame polls. */
TEST(par_sim, jobs_behind_a_computation_that_looks_up_are_run_meanwhile)
{
    sim_on_procs(fork_two_then_burn, NULL, 0, 200, 2, 4);
}

/* ---- jobs behind a computation that never polls ---- */

enum { THREE = 3, FEW_MS = 3 };

static int fork_three_then_burn(void *arg)
{
    moment when[THREE] = {0};
    blitz_job job[THREE];
    bool is_late = arg != NULL; /* no worker slept when they were forked */
    if (!is_late)
        CHECK_EQ(blitz_sleep(5 * BLITZ_MS), 0); /* all the others have gone to sleep */
    uint64_t began = blitz_now();
    for (int i = 0; i < THREE; i++)
        blitz_fork(&job[i], says_when, &when[i]);
    bz_sim_burn(100 * BLITZ_MS);
    for (int i = 0; i < THREE; i++) {
        uint64_t ran = bz_load_relaxed(&when[i]); /* relaxed: a number */
        CHECK(ran != 0);                          /* while we burned, so on another worker */
        if (!is_late)
            CHECK_LT(ran - began, FEW_MS * BLITZ_MS);
    }
    for (int i = THREE; i-- > 0;)
        CHECK_EQ(blitz_join(&job[i]), 0);
    return 0;
}

/* The monitor fetches what the frame keeps to itself. */
TEST(par_sim, three_jobs_before_a_burn_are_run_within_milliseconds)
{
    sim_on_procs(fork_three_then_burn, NULL, 0, 150, 2, 4);
}

static int burns_a_little(void *arg)
{
    (void)arg;
    bz_sim_burn(30 * BLITZ_MS);
    return 0;
}

/* Every worker has something to do when the jobs are forked, and has done it while the frame burns. */
static int fork_among_the_busy(void *arg)
{
    blitz_task *t[3];
    (void)arg;
    for (int i = 0; i < 3; i++)
        CHECK_EQ(blitz_spawn(burns_a_little, NULL, NULL, &t[i]), 0);
    CHECK_EQ(blitz_sleep(BLITZ_MS), 0); /* they have begun */
    CHECK_EQ(fork_three_then_burn(&t), 0);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
    return 0;
}

TEST(par_sim, jobs_forked_while_all_were_busy_are_fetched_later)
{
    sim_on_procs(fork_among_the_busy, NULL, 0, 100, 2, 4);
}

/* The frame forks, joins, waits and computes while the monitor is at its jobs. */
static int fork_and_burn_at_random(void *arg)
{
    enum { N = 12 };
    blitz_job job[N];
    moment when[N];
    uint64_t dice = (uint64_t)(uintptr_t)arg;
    int pending = 0;
    for (int step = 0; step < 60; step++) {
        dice = dice * UINT64_C(6364136223846793005) + 1442695040888963407;
        unsigned die = (unsigned)(dice >> 60);
        if (die < 6 && pending < N) {
            bz_store_relaxed(&when[pending], 0);
            blitz_fork(&job[pending], die < 3 ? says_when : fib,
                       die < 3 ? (void *)&when[pending] : (void *)4);
            pending++;
        } else if (die < 11 && pending > 0) {
            int result = blitz_join(&job[--pending]);
            CHECK(result == 0 || result == 3);
        } else if (die < 15) {
            bz_sim_burn(100 * BLITZ_US * (1 + die % 4));
        } else {
            blitz_yield();
        }
    }
    while (pending > 0)
        (void)blitz_join(&job[--pending]);
    return 0;
}

static int some_that_burn(void *arg)
{
    blitz_task *t[2];
    for (uintptr_t i = 0; i < 2; i++)
        CHECK_EQ(blitz_spawn(fork_and_burn_at_random, (void *)((uintptr_t)arg + i), NULL, &t[i]),
                 0);
    for (int i = 0; i < 2; i++)
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
    return fork_and_burn_at_random((void *)((uintptr_t)arg + 7));
}

TEST(par_sim, a_frame_whose_jobs_are_fetched_joins_each_once)
{
    for (uint64_t n = sim_seeds(200); n > 0; n--) {
        uint64_t seed = sim_next_seed();
        struct sim_scene s = {2 + (unsigned)(seed % 3), some_that_burn, (void *)(uintptr_t)seed, 0};
        sim_one(seed, &s);
    }
}

/* ---- counters ---- */

static int sleeps_a_while(void *arg)
{
    CHECK_EQ(blitz_sleep(BLITZ_MS), 0);
    return (int)(intptr_t)arg;
}

static int one_that_waits(void *arg)
{
    blitz_job job;
    blitz_stats before, after, proc;
    uint64_t joins = 0;
    (void)arg;
    CHECK_EQ(blitz_stats_read(NULL, &before), 0);
    blitz_fork(&job, sleeps_a_while, (void *)8);
    CHECK_EQ(blitz_sleep(10 * BLITZ_US), 0); /* it leaves with the frame, and is begun */
    CHECK_EQ(blitz_join(&job), 8);
    CHECK_EQ(blitz_stats_read(NULL, &after), 0);
    CHECK_EQ(after.jobs_evacuated + after.jobs_stolen - before.jobs_evacuated - before.jobs_stolen,
             1u);
    CHECK_EQ(after.joins_suspended - before.joins_suspended, 1u);
    for (unsigned i = 0; i < after.procs; i++) {
        CHECK_EQ(blitz_stats_read_proc(NULL, i, &proc), 0);
        joins += proc.joins_suspended;
    }
    CHECK_EQ(joins, after.joins_suspended);
    return 0;
}

TEST(par_sim, joins_that_wait_are_counted_where_they_wait)
{
    sim_on_seeds(one_that_waits, NULL, 0, 100);
}

/* ---- others beside parallel computations ---- */

enum { BESIDE_NS = 400 * 1000 * 1000, LATE_MAX = 512 };

static int burns_an_index(size_t i, void *arg)
{
    (void)i;
    (void)arg;
    bz_sim_burn(50 * BLITZ_US);
    return 0;
}

static int loops_for_long(void *arg)
{
    uint64_t until = blitz_now() + BESIDE_NS;
    (void)arg;
    while (blitz_now() < until)
        CHECK_EQ(blitz_for_each(500, burns_an_index, NULL, NULL), 0);
    return 0;
}

struct lateness {
    uint64_t ns[LATE_MAX];
    unsigned count;
    blitz_chan *there, *back;
};

static int by_size(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static uint64_t p99(struct lateness *l)
{
    CHECK_GT(l->count, 10u);
    qsort(l->ns, l->count, sizeof l->ns[0], by_size);
    return l->ns[(l->count - 1) * 99 / 100];
}

static int ticks(void *arg)
{
    struct lateness *l = arg;
    uint64_t until = blitz_now() + BESIDE_NS;
    while (blitz_now() < until && l->count < LATE_MAX) {
        uint64_t due = blitz_now() + BLITZ_MS;
        CHECK_EQ(blitz_sleep_until(due), 0);
        l->ns[l->count++] = blitz_now() - due;
    }
    return 0;
}

static int echoes(void *arg)
{
    struct lateness *l = arg;
    int value;
    while (blitz_chan_recv(l->there, &value, BLITZ_FOREVER) == 0)
        CHECK_EQ(blitz_chan_send(l->back, &value, BLITZ_FOREVER), 0);
    return 0;
}

static int calls(void *arg)
{
    struct lateness *l = arg;
    uint64_t until = blitz_now() + BESIDE_NS;
    for (int i = 0, got; blitz_now() < until && l->count < LATE_MAX; i++) {
        uint64_t began = blitz_now();
        CHECK_EQ(blitz_chan_send(l->there, &i, BLITZ_FOREVER), 0);
        CHECK_EQ(blitz_chan_recv(l->back, &got, BLITZ_FOREVER), 0);
        CHECK_EQ(got, i);
        l->ns[l->count++] = blitz_now() - began;
        CHECK_EQ(blitz_sleep(BLITZ_MS), 0);
    }
    blitz_chan_close(l->there);
    return 0;
}

static int beside_loops(void *arg)
{
    static struct lateness ticker, echo;
    int (*const fn[])(void *) = {ticks, echoes, calls};
    void *of[] = {&ticker, &echo, &echo};
    blitz_task *t[3 + 4];
    unsigned procs = bz_machine_self()->rt->proc_count, n = 0;
    (void)arg;
    ticker.count = echo.count = 0;
    CHECK_EQ(blitz_chan_new(sizeof(int), 1, NULL, &echo.there), 0);
    CHECK_EQ(blitz_chan_new(sizeof(int), 1, NULL, &echo.back), 0);
    for (; n < 3; n++)
        CHECK_EQ(blitz_spawn(fn[n], of[n], NULL, &t[n]), 0);
    for (; n < 3 + procs; n++)
        CHECK_EQ(blitz_spawn(loops_for_long, NULL, NULL, &t[n]), 0);
    while (n > 0)
        CHECK_EQ(blitz_task_join(t[--n], NULL, BLITZ_FOREVER), 0);
    blitz_chan_unref(echo.there);
    blitz_chan_unref(echo.back);
    /* The plain form has no next slot: a woken task goes to the end of the ring. */
    uint64_t most = (bz_is_plain(bz_machine_self()->rt) ? 60 : 15) * BLITZ_MS;
    CHECK_LT(p99(&ticker), most);
    CHECK_LT(p99(&echo), most);
    return 0;
}

/* All workers compute, for half a second each; other tasks still run. */
TEST(par_sim, beside_parallel_loops_timers_and_channels_are_in_time)
{
    sim_on_procs(beside_loops, NULL, 0, 20, 1, 4);
}
