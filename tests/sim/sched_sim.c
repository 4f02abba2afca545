/*
 * The whole scheduler in virtual time, from seeds: what holds must hold in every order of events
 * the seeds can find, with every delay point a choice.
 */
#include "runtime/runtime.h"
#include "support/event.h"
#include "support/sched_sim.h"

/* ---- scenes ---- */

static int give_back(void *arg)
{
    return (int)(intptr_t)arg;
}

static int tree(void *arg)
{
    intptr_t depth = (intptr_t)arg;
    blitz_task *child[2];
    int sum = 0;
    if (depth == 0)
        return 1;
    for (int i = 0; i < 2; i++)
        CHECK_EQ(blitz_spawn(tree, (void *)(depth - 1), NULL, &child[i]), 0);
    for (int i = 0; i < 2; i++) {
        int result = 0;
        CHECK_EQ(blitz_task_join(child[i], &result, BLITZ_FOREVER), 0);
        sum += result;
    }
    return sum;
}

/* Every spawn, steal, park and wake of a join tree. A lost wake-up is a deadlock, and reported. */
TEST(sched, bug_01_a_tree_of_joins_always_ends)
{
    sim_on_seeds(tree, (void *)(intptr_t)4, 16, 400);
}

static int yields(void *arg)
{
    for (int i = 0; i < 10; i++)
        blitz_yield();
    return (int)(intptr_t)arg;
}

static int many_yield(void *arg)
{
    enum { N = 12 };
    blitz_task *t[N];
    (void)arg;
    for (int i = 0; i < N; i++)
        CHECK_EQ(blitz_spawn(yields, (void *)(intptr_t)i, NULL, &t[i]), 0);
    for (int i = 0; i < N; i++) {
        int result = -1;
        CHECK_EQ(blitz_task_join(t[i], &result, BLITZ_FOREVER), 0);
        CHECK_EQ(result, i);
    }
    return 0;
}

TEST(sched, fibers_that_yield_and_migrate_all_end)
{
    sim_on_seeds(many_yield, NULL, 0, 200);
}

static int sleeps(void *arg)
{
    uint64_t until = blitz_after((uint64_t)(intptr_t)arg * BLITZ_MS);
    int err = blitz_sleep_until(until);
    if (err == 0)
        CHECK_GE(blitz_now(), until);
    return err;
}

static int many_sleep(void *arg)
{
    enum { N = 8 };
    blitz_task *t[N];
    (void)arg;
    for (int i = 0; i < N; i++)
        CHECK_EQ(blitz_spawn(sleeps, (void *)(intptr_t)(i * 7 % N), NULL, &t[i]), 0);
    for (int i = 0; i < N; i++) {
        int result = -1;
        CHECK_EQ(blitz_task_join(t[i], &result, BLITZ_FOREVER), 0);
        CHECK_EQ(result, 0);
    }
    return 0;
}

TEST(sched, sleepers_wake_and_never_early)
{
    sim_on_seeds(many_sleep, NULL, 0, 300);
}

struct order {
    int count, woken[8];
};
static struct order order;

static int sleeps_and_signs(void *arg)
{
    int me = (int)(intptr_t)arg;
    CHECK_EQ(blitz_sleep((uint64_t)me * 300 * BLITZ_US), 0);
    order.woken[order.count++] = me;
    return 0;
}

static int sign_in_order(void *arg)
{
    enum { N = 8 };
    blitz_task *t[N];
    (void)arg;
    order.count = 0;
    for (int i = 0; i < N; i++)
        CHECK_EQ(blitz_spawn(sleeps_and_signs, (void *)(intptr_t)(1 + i * 3 % N), NULL, &t[i]), 0);
    for (int i = 0; i < N; i++)
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
    for (int i = 0; i < N; i++)
        CHECK_EQ(order.woken[i], i + 1);
    return 0;
}

/* On one proc: in virtual time all fall asleep at nearly the same moment. */
TEST(sched, sleepers_wake_in_the_order_of_their_deadlines)
{
    for (uint64_t i = 0, n = sim_seeds(200); i < n; i++) {
        uint64_t seed = sim_next_seed();
        struct sim_scene s = {1, sign_in_order, NULL, 0};
        t_watch("simulation seed 0x%llx", (unsigned long long)seed);
        CHECK_EQ(bz_sim_run(&(struct bz_sim_config){.seed = seed}, sim_play, &s, NULL), 0);
    }
}

static int waits_for_ever(void *arg)
{
    (void)arg;
    return blitz_sleep_until(BLITZ_FOREVER);
}

/* A cancel at any moment: before the start, while it parks, while it is woken, at its deadline. */
static int cancel_some(void *arg)
{
    enum { N = 6 };
    blitz_task *t[N];
    (void)arg;
    for (int i = 0; i < N; i++)
        CHECK_EQ(
            blitz_spawn(i % 2 ? waits_for_ever : sleeps, (void *)(intptr_t)(i / 2), NULL, &t[i]),
            0);
    for (int i = 0; i < N; i++) {
        if (i % 3 == 0)
            blitz_yield();
        blitz_task_cancel(t[i]);
    }
    for (int i = 0; i < N; i++) {
        int result = 1;
        CHECK_EQ(blitz_task_join(t[i], &result, BLITZ_FOREVER), 0);
        CHECK(result == -ECANCELED || (result == 0 && i % 2 == 0));
    }
    return 0;
}

TEST(sched, a_cancel_at_any_moment_is_heard)
{
    sim_on_seeds(cancel_some, NULL, 0, 400);
}

/* A join whose deadline comes as the task ends: one of the two answers, and no dangling node. */
static int join_at_the_edge(void *arg)
{
    blitz_task *t;
    (void)arg;
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(blitz_spawn(sleeps, (void *)(intptr_t)1, NULL, &t), 0);
        int err = blitz_task_join(t, NULL, blitz_after(BLITZ_MS));
        CHECK(err == 0 || err == -ETIMEDOUT);
        if (err != 0)
            CHECK_EQ(blitz_task_join(t, NULL, BLITZ_FOREVER), 0);
    }
    return 0;
}

TEST(sched, a_join_at_the_edge_of_its_deadline_has_one_answer)
{
    sim_on_seeds(join_at_the_edge, NULL, 0, 300);
}

static int leave_behind(void *arg)
{
    (void)arg;
    for (int i = 0; i < 5; i++)
        CHECK_EQ(blitz_spawn(i % 2 ? waits_for_ever : yields, NULL, NULL, NULL), 0);
    return 3;
}

/* Bug class 37: shutdown comes upon tasks in every state. */
TEST(sched, bug_37_shutdown_ends_in_any_state)
{
    sim_on_seeds(leave_behind, NULL, 3, 400);
}

/* ---- plain threads ---- */

struct outside {
    const struct bz_os *os;
    struct bz_runtime *rt;
};

static void spawn_from_outside(void *arg)
{
    struct outside *o = arg;
    blitz_spawn_opts opts = {.runtime = (blitz_runtime *)o->rt};
    for (int i = 0; i < 3; i++) {
        blitz_task *t;
        int result = -1;
        CHECK_EQ(blitz_spawn(give_back, (void *)(intptr_t)i, &opts, &t), 0);
        CHECK_EQ(blitz_task_join(t, &result, BLITZ_FOREVER), 0);
        CHECK_EQ(result, i);
    }
}

static void threads_outside(const struct bz_os *os, void *arg)
{
    enum { THREADS = 3 };
    struct outside o = {.os = os};
    struct bz_os_thread t[THREADS];
    CHECK_EQ(bz_runtime_new(os, &(blitz_runtime_opts){.procs = *(unsigned *)arg}, &o.rt), 0);
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(bz_os_thread_start(os, &t[i], NULL, spawn_from_outside, &o), 0);
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(bz_os_thread_join(os, &t[i]), 0);
    CHECK_EQ(blitz_runtime_shutdown((blitz_runtime *)o.rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref((blitz_runtime *)o.rt), 0);
}

/* The injector against machines that go to sleep: where a hang was once seen. */
TEST(sched, bug_01_threads_that_spawn_from_outside_are_served)
{
    for (uint64_t i = 0, n = sim_seeds(500); i < n; i++) {
        uint64_t seed = sim_next_seed();
        unsigned procs = 1 + (unsigned)(seed % 3);
        t_watch("simulation seed 0x%llx, %u procs", (unsigned long long)seed, procs);
        CHECK_EQ(bz_sim_run(&(struct bz_sim_config){.seed = seed}, threads_outside, &procs, NULL),
                 0);
    }
}

/* ---- one seed, one run ---- */

TEST(sched, the_same_seed_runs_the_same_schedule)
{
    struct sim_scene s = {3, many_yield, NULL, 0};
    struct bz_sim_result a, b, c;
    uint64_t seed = sim_next_seed();
    CHECK_EQ(bz_sim_run(&(struct bz_sim_config){.seed = seed}, sim_play, &s, &a), 0);
    CHECK_EQ(bz_sim_run(&(struct bz_sim_config){.seed = seed}, sim_play, &s, &b), 0);
    CHECK_EQ(bz_sim_run(&(struct bz_sim_config){.seed = seed + 1}, sim_play, &s, &c), 0);
    CHECK_EQ(a.hash, b.hash);
    CHECK_NE(a.hash, c.hash);
}
