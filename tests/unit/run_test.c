/* The scheduler from outside: start, spawn, join, yield, sleep, cancel, stop. */
#include "support/alone.h"
#include "support/on_each.h"

#include <pthread.h>
#include <unistd.h>

#include "blitz.h"
#include "base/bz_atomic.h"
#include "base/compiler.h"

/* ---- start and stop ---- */

static int count_and_seven(void *arg)
{
    *(int *)arg += 1;
    return 7;
}

TEST(run, main_runs_once_and_its_result_comes_back)
{
    int calls = 0;
    CHECK_EQ(blitz_run(count_and_seven, &calls, NULL), 7);
    CHECK_EQ(calls, 1);
}

TEST(run, bad_configs_are_refused_with_a_message)
{
    int calls = 0;
    CHECK_EQ(blitz_run(count_and_seven, &calls, &(blitz_runtime_opts){.procs = 100000}), -EINVAL);
    CHECK_EQ(blitz_run(count_and_seven, &calls, &(blitz_runtime_opts){.stack_bytes = 1 << 30}),
             -EINVAL);
    CHECK_EQ(calls, 0);
}

TEST(run, the_environment_sets_options_that_the_config_leaves_open)
{
    int calls = 0;
    setenv("BLITZ_PROCS", "3", 1);
    setenv("BLITZ_STACK", "64K", 1);
    CHECK_EQ(blitz_run(count_and_seven, &calls, NULL), 7);
    static const char *const bad[] = {"0", "-1", "x", "3x", "99999999999999999999"};
    for (size_t i = 0; i < BZ_ARRAY_LEN(bad); i++) {
        setenv("BLITZ_PROCS", bad[i], 1);
        CHECK_EQ(blitz_run(count_and_seven, &calls, NULL), -EINVAL);
        CHECK_EQ(t_run_alone(count_and_seven, &calls), 7);
    }
}

static int run_inside(void *arg)
{
    return blitz_run(count_and_seven, arg, NULL);
}

TEST(run, a_runtime_inside_a_task_is_refused)
{
    int calls = 0;
    CHECK_EQ(blitz_run(run_inside, &calls, NULL), -EBUSY);
    CHECK_EQ(calls, 0);
}

TEST(run, a_thousand_rounds_of_start_and_stop)
{
    int calls = 0, rounds = (int)t_scaled(1000);
    for (int i = 0; i < rounds; i++)
        CHECK_EQ(blitz_run(count_and_seven, &calls, &(blitz_runtime_opts){.procs = 2}), 7);
    CHECK_EQ(calls, rounds);
}

/* ---- spawn and join ---- */

static int give_back(void *arg)
{
    return (int)(intptr_t)arg;
}

static int join_in_order(void *arg)
{
    enum { N = 3000 };
    static blitz_task *t[N];
    (void)arg;
    for (int i = 0; i < N; i++)
        CHECK_EQ(blitz_spawn(give_back, (void *)(intptr_t)i, NULL, &t[i]), 0);
    for (int i = 0; i < N; i++) {
        int result = -1;
        CHECK_EQ(blitz_task_join(t[i], &result, BLITZ_FOREVER), 0);
        CHECK_EQ(result, i);
    }
    return 0;
}

/* More than a ring holds, so some spill into the injector. */
TEST(run, thousands_of_children_all_run)
{
    t_on_each(join_in_order, NULL, 0);
}

static int tree(void *arg)
{
    intptr_t depth = (intptr_t)arg;
    blitz_task *left, *right;
    int a = 0, b = 0;
    if (depth == 0)
        return 1;
    CHECK_EQ(blitz_spawn(tree, (void *)(depth - 1), NULL, &left), 0);
    CHECK_EQ(blitz_spawn(tree, (void *)(depth - 1), NULL, &right), 0);
    CHECK_EQ(blitz_task_join(left, &a, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_task_join(right, &b, BLITZ_FOREVER), 0);
    return a + b;
}

TEST(run, a_tree_of_tasks_counts_its_leaves)
{
    t_on_each(tree, (void *)(intptr_t)10, 1024);
}

static int join_self(void *arg)
{
    blitz_task **me = arg;
    while (*(blitz_task *volatile *)me == NULL)
        blitz_yield();
    return blitz_task_join(*me, NULL, BLITZ_FOREVER);
}

static int one_joins_itself(void *arg)
{
    blitz_task *t = NULL, *seen = NULL;
    int result = 0;
    (void)arg;
    CHECK_EQ(blitz_spawn(join_self, &seen, NULL, &t), 0);
    *(blitz_task *volatile *)&seen = t;
    CHECK_EQ(blitz_task_join(t, &result, BLITZ_FOREVER), 0);
    return result;
}

TEST(run, a_task_that_joins_itself_gets_an_error)
{
    CHECK_EQ(t_run_alone(one_joins_itself, NULL), -EDEADLK);
}

static int until_cancelled(void *arg)
{
    int err = blitz_sleep_until(BLITZ_FOREVER);
    *(int *)arg = err;
    return 5;
}

static int join_with_deadline(void *arg)
{
    int err = 0, result = 0;
    blitz_task *t;
    (void)arg;
    CHECK_EQ(blitz_spawn(until_cancelled, &err, NULL, &t), 0);
    CHECK_EQ(blitz_task_join(t, NULL, 0), -ETIMEDOUT);
    CHECK_EQ(blitz_task_join(t, NULL, blitz_after(BLITZ_MS)), -ETIMEDOUT);
    CHECK(!blitz_task_is_done(t));
    blitz_task_cancel(t);
    CHECK_EQ(blitz_task_join(t, &result, BLITZ_FOREVER), 0);
    CHECK_EQ(err, -ECANCELED);
    return result;
}

TEST(run, a_join_gives_up_at_its_deadline_and_can_be_tried_again)
{
    t_on_each(join_with_deadline, NULL, 5);
}

static int two_join(void *arg)
{
    return blitz_task_join(arg, NULL, BLITZ_FOREVER);
}

static int slow(void *arg)
{
    (void)arg;
    return blitz_sleep(2 * BLITZ_MS);
}

/* Two tasks wait for the same one: each needs a handle of its own; here one only looks. */
static int looker_and_joiner(void *arg)
{
    blitz_task *t, *joiner;
    (void)arg;
    CHECK_EQ(blitz_spawn(slow, NULL, NULL, &t), 0);
    CHECK_EQ(blitz_spawn(two_join, t, NULL, &joiner), 0);
    CHECK_EQ(blitz_task_join(joiner, NULL, BLITZ_FOREVER), 0);
    return 0;
}

TEST(run, a_handle_can_be_passed_on)
{
    t_on_each(looker_and_joiner, NULL, 0);
}

static int ids(void *arg)
{
    blitz_task *t;
    (void)arg;
    uint64_t mine = blitz_task_id(NULL);
    CHECK_NE(mine, 0u);
    CHECK_EQ(blitz_spawn(give_back, NULL, NULL, &t), 0);
    CHECK_GT(blitz_task_id(t), mine);
    CHECK_EQ(blitz_task_join(t, NULL, BLITZ_FOREVER), 0);
    return 0;
}

TEST(run, ids_are_never_used_twice)
{
    CHECK_EQ(blitz_task_id(NULL), 0u);
    t_on_each(ids, NULL, 0);
}

/* ---- yield ---- */

static int yield_a_lot(void *arg)
{
    for (int i = 0; i < 1000; i++)
        blitz_yield();
    return (int)(intptr_t)arg;
}

static int hundred_yield(void *arg)
{
    enum { N = 100 };
    blitz_task *t[N];
    (void)arg;
    for (int i = 0; i < N; i++)
        CHECK_EQ(blitz_spawn(yield_a_lot, (void *)(intptr_t)i, NULL, &t[i]), 0);
    for (int i = 0; i < N; i++) {
        int result = -1;
        CHECK_EQ(blitz_task_join(t[i], &result, BLITZ_FOREVER), 0);
        CHECK_EQ(result, i);
    }
    return 0;
}

TEST(run, a_hundred_fibers_take_turns)
{
    blitz_yield(); /* on a plain thread: nothing */
    t_on_each(hundred_yield, NULL, 0);
}

struct turns {
    int count, order[64];
};

static int note_turns(void *arg)
{
    struct turns *o = ((struct turns **)arg)[0];
    int me = (int)(intptr_t)((void **)arg)[1];
    for (int i = 0; i < 3; i++) {
        o->order[o->count++] = me;
        blitz_yield();
    }
    return 0;
}

static int strict_turns(void *arg)
{
    struct turns *o = arg;
    void *args[4][2];
    blitz_task *t[4];
    for (int i = 0; i < 4; i++) {
        args[i][0] = o;
        args[i][1] = (void *)(intptr_t)i;
        CHECK_EQ(blitz_spawn(note_turns, args[i], NULL, &t[i]), 0);
    }
    for (int i = 0; i < 4; i++)
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
    return 0;
}

/* On one proc a yield goes behind all ready tasks: all have run before one runs twice. */
TEST(run, a_yield_lets_all_other_tasks_run_first)
{
    static struct turns o;
    CHECK_EQ(t_run_alone(strict_turns, &o), 0);
    CHECK_EQ(o.count, 12);
    for (int turn = 0; turn < 12; turn += 4) {
        unsigned seen = 0;
        for (int i = 0; i < 4; i++)
            seen |= 1u << o.order[turn + i];
        CHECK_EQ(seen, 15u);
    }
}

/* ---- time ---- */

static int sleep_and_look(void *arg)
{
    (void)arg;
    uint64_t until = blitz_after(2 * BLITZ_MS);
    CHECK_EQ(blitz_sleep_until(until), 0);
    CHECK_GE(blitz_now(), until);
    CHECK_EQ(blitz_sleep_until(0), 0); /* the past: at once */
    return 0;
}

TEST(run, no_task_wakes_before_its_deadline)
{
    t_on_each(sleep_and_look, NULL, 0);
    CHECK_EQ(sleep_and_look(NULL), 0); /* a plain thread too */
    CHECK_EQ(blitz_after(UINT64_MAX), BLITZ_FOREVER);
}

/* ---- cancel ---- */

static int cancel_before_it_starts(void *arg)
{
    int err = 0;
    blitz_task *t;
    (void)arg;
    CHECK_EQ(blitz_spawn(until_cancelled, &err, NULL, &t), 0);
    blitz_task_cancel(t);
    CHECK_EQ(blitz_task_join(t, NULL, BLITZ_FOREVER), 0);
    return err;
}

TEST(run, a_cancel_before_the_first_wait_ends_that_wait)
{
    t_on_each(cancel_before_it_starts, NULL, -ECANCELED);
}

static bz_atomic(int) is_asked; /* the cancel has been sent */

static int shielded(void *arg)
{
    int *seen = arg;
    blitz_shield();
    seen[0] = 0;
    while (!bz_load_acquire(&is_asked)) /* the cancel comes in here, and waits */
        seen[0] |= blitz_sleep(100 * BLITZ_US);
    seen[0] |= blitz_sleep(100 * BLITZ_US);
    seen[1] = blitz_is_cancelled();
    blitz_unshield();
    seen[2] = blitz_is_cancelled();
    seen[3] = blitz_sleep(BLITZ_MS);
    return 0;
}

static int cancel_the_shielded(void *arg)
{
    blitz_task *t;
    bz_store_relaxed(&is_asked, 0);
    CHECK_EQ(blitz_spawn(shielded, arg, NULL, &t), 0);
    blitz_yield();
    blitz_task_cancel(t);
    bz_store_release(&is_asked, 1);
    return blitz_task_join(t, NULL, BLITZ_FOREVER);
}

TEST(run, a_shield_holds_a_cancel_off)
{
    int seen[4] = {-1, -1, -1, -1};
    t_on_each(cancel_the_shielded, seen, 0);
    CHECK_EQ(seen[0], 0);
    CHECK_EQ(seen[1], 0);
    CHECK_EQ(seen[2], 1);
    CHECK_EQ(seen[3], -ECANCELED);
}

static int parent_of(void *arg)
{
    blitz_task *child;
    CHECK_EQ(blitz_spawn(until_cancelled, arg, NULL, &child), 0);
    return blitz_task_join(child, NULL, BLITZ_FOREVER);
}

static int cancel_the_parent(void *arg)
{
    int err = 0, result = -1;
    blitz_task *parent;
    (void)arg;
    CHECK_EQ(blitz_spawn(parent_of, &err, NULL, &parent), 0);
    CHECK_EQ(blitz_sleep(BLITZ_MS), 0);
    blitz_task_cancel(parent);
    CHECK_EQ(blitz_task_join(parent, &result, BLITZ_FOREVER), 0);
    CHECK_EQ(result, 0); /* the join succeeded: the child has ended */
    return err;
}

TEST(run, a_cancel_is_passed_on_through_a_join)
{
    t_on_each(cancel_the_parent, NULL, -ECANCELED);
}

/* ---- stopping ---- */

static int leave_some_behind(void *arg)
{
    static int err[10];
    (void)arg;
    for (int i = 0; i < 10; i++)
        CHECK_EQ(blitz_spawn(until_cancelled, &err[i], NULL, NULL), 0);
    return 3;
}

TEST(run, tasks_left_by_main_are_cancelled_and_joined)
{
    t_on_each(leave_some_behind, NULL, 3);
}

static bz_atomic(int) may_end;

static int stubborn(void *arg)
{
    (void)arg;
    blitz_shield();
    while (!bz_load_acquire(&may_end))
        blitz_yield();
    blitz_unshield();
    return 0;
}

static int last_words;
static void count_words(void *ctx, blitz_log_level level, const char *message)
{
    (void)level;
    last_words += strstr(message, ctx) != NULL;
}

TEST(run, shutdown_keeps_its_deadline_and_names_the_remaining_tasks)
{
    static char words[] = "(mule) has not ended";
    blitz_runtime *rt;
    CHECK_EQ(blitz_log_set(count_words, words, BLITZ_LOG_WARN), 0);
    CHECK_EQ(blitz_runtime_new(&(blitz_runtime_opts){.procs = 2}, &rt), 0);
    blitz_spawn_opts opts = {.runtime = rt, .name = "mule"};
    CHECK_EQ(blitz_spawn(stubborn, NULL, &opts, NULL), 0);

    CHECK_EQ(blitz_runtime_shutdown(rt, blitz_after(5 * BLITZ_MS)), -ETIMEDOUT);
    CHECK_EQ(last_words, 1);
    CHECK_EQ(blitz_runtime_unref(rt), -EBUSY);
    CHECK_EQ(blitz_spawn(give_back, NULL, &opts, NULL), -ESHUTDOWN);
    CHECK_EQ(blitz_runtime_block_on(rt, give_back, NULL), -ESHUTDOWN);

    bz_store_release(&may_end, 1);
    CHECK_EQ(blitz_runtime_shutdown(rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref(rt), 0);
    CHECK_EQ(blitz_runtime_unref(NULL), 0);
}

TEST(run, a_handle_outlives_its_runtime)
{
    blitz_runtime *rt;
    blitz_task *t;
    int result = 0;
    CHECK_EQ(blitz_runtime_new(&(blitz_runtime_opts){.procs = 2}, &rt), 0);
    blitz_spawn_opts opts = {.runtime = rt};
    CHECK_EQ(blitz_spawn(give_back, (void *)(intptr_t)9, &opts, &t), 0);
    CHECK_EQ(blitz_runtime_shutdown(rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref(rt), 0);
    CHECK(blitz_task_is_done(t));
    blitz_task_cancel(t);
    CHECK_EQ(blitz_task_join(t, &result, BLITZ_FOREVER), 0);
    CHECK_EQ(result, 9);
}

/* ---- from outside ---- */

static blitz_runtime *shared_rt;
static bz_atomic(int) ran;

static int count_one(void *arg)
{
    (void)arg;
    bz_fetch_add_relaxed(&ran, 1);
    return 0;
}

static void spawn_from_outside(void *arg, int index)
{
    blitz_spawn_opts opts = {.runtime = shared_rt};
    (void)arg;
    (void)index;
    for (uint64_t i = 0; i < t_scaled(2000); i++) {
        blitz_task *t;
        CHECK_EQ(blitz_spawn(count_one, NULL, &opts, &t), 0);
        if (i % 3 == 0)
            blitz_task_detach(t);
        else
            CHECK_EQ(blitz_task_join(t, NULL, BLITZ_FOREVER), 0);
    }
}

TEST(run, plain_threads_spawn_and_join)
{
    CHECK_EQ(blitz_spawn(count_one, NULL, NULL, NULL), -EINVAL); /* no runtime to spawn into */
    CHECK_EQ(blitz_runtime_new(&(blitz_runtime_opts){.procs = 2}, &shared_rt), 0);
    t_threads(3, spawn_from_outside, NULL);
    CHECK_EQ(blitz_runtime_shutdown(shared_rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref(shared_rt), 0);
    CHECK_EQ((uint64_t)bz_load_relaxed(&ran), 3 * t_scaled(2000));
}

static int in_the_other(void *arg)
{
    blitz_spawn_opts opts = {.runtime = shared_rt};
    blitz_task *t;
    int result = 0;
    CHECK_EQ(blitz_spawn(give_back, arg, &opts, &t), 0);
    CHECK_EQ(blitz_task_join(t, &result, BLITZ_FOREVER), 0);
    return result;
}

TEST(run, a_task_joins_one_of_another_runtime)
{
    CHECK_EQ(blitz_runtime_new(&(blitz_runtime_opts){.procs = 2}, &shared_rt), 0);
    t_on_each(in_the_other, (void *)(intptr_t)11, 11);
    CHECK_EQ(blitz_runtime_shutdown(shared_rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref(shared_rt), 0);
}

static int shutdown_myself(void *arg)
{
    (void)arg;
    CHECK_EQ(blitz_runtime_block_on(shared_rt, give_back, NULL), -EBUSY);
    return blitz_runtime_shutdown(shared_rt, BLITZ_FOREVER);
}

TEST(run, a_task_cannot_shut_its_own_runtime_down)
{
    CHECK_EQ(blitz_runtime_new(NULL, &shared_rt), 0);
    CHECK_EQ(blitz_runtime_block_on(shared_rt, shutdown_myself, NULL), -EBUSY);
    CHECK_EQ(blitz_runtime_shutdown(shared_rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref(shared_rt), 0);
}
