/* The coordinator of an orderly end: listeners, work, a deadline, signals, hooks. */
#include "harness.h"

#include <signal.h>

#include "blitz.h"
#include "os/os.h"

static const blitz_shutdown_opts quiet = {.no_signals = true};

static blitz_shutdown *given_one(const blitz_shutdown_opts *opts)
{
    blitz_shutdown *s;
    CHECK_EQ(blitz_shutdown_new(opts, &s), 0);
    return s;
}

/* ---- listeners and work ---- */

static int listens(void *arg)
{
    return blitz_shutdown_wait(arg, BLITZ_FOREVER);
}

static int begins(void *arg)
{
    blitz_shutdown *s = given_one(&quiet);
    blitz_task *t[3];
    blitz_sync_future told;
    (void)arg;
    for (int i = 0; i < 3; i++)
        CHECK_EQ(blitz_spawn(listens, s, NULL, &t[i]), 0);
    CHECK_EQ(blitz_shutdown_wait(s, blitz_after(BLITZ_MS)), -ETIMEDOUT);
    CHECK(!blitz_shutdown_is_begun(s));

    blitz_shutdown_begin(s);
    blitz_shutdown_begin(s);

    for (int i = 0; i < 3; i++)
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
    blitz_shutdown_wait_future_init(&told, s);
    CHECK_EQ(blitz_await(&told.future, BLITZ_FOREVER), 0);
    CHECK(blitz_shutdown_is_begun(s));
    CHECK(!blitz_shutdown_is_forced(s));
    blitz_shutdown_unref(s);
    return 0;
}

TEST(stop, a_begin_tells_every_listener)
{
    CHECK_EQ(blitz_run(begins, NULL, NULL), 0);
}

/* Work that begins after the listeners were told would be cut off in the middle. */
TEST(stop, no_work_is_let_in_after_the_begin_and_a_drain_waits_for_the_rest)
{
    blitz_shutdown *s = given_one(&quiet);
    CHECK_EQ(blitz_shutdown_drain(s, 0), -ETIMEDOUT); /* no work, but not begun */
    CHECK_EQ(blitz_shutdown_enter(s), 0);
    CHECK_EQ(blitz_shutdown_enter(s), 0);
    CHECK_EQ(blitz_shutdown_left(s), 2);

    blitz_shutdown_begin(s);

    CHECK_EQ(blitz_shutdown_enter(s), -ESHUTDOWN);
    CHECK_EQ(blitz_shutdown_left(s), 2);
    CHECK_EQ(blitz_shutdown_enter_more(s), 0); /* for work that is in already */
    CHECK_EQ(blitz_shutdown_left(s), 3);
    blitz_shutdown_leave(s);
    blitz_shutdown_leave(s);
    CHECK_EQ(blitz_shutdown_drain(s, 0), -ETIMEDOUT);
    blitz_shutdown_leave(s);
    CHECK_EQ(blitz_shutdown_drain(s, 0), 0);
    CHECK_EQ(blitz_shutdown_left(s), 0);
    blitz_shutdown_unref(s);
}

/* ---- a run ---- */

static int order[4], orders;

static void hook(void *arg)
{
    order[orders++] = (int)(intptr_t)arg;
    CHECK_EQ(blitz_sleep(BLITZ_US), 0); /* it may wait, whatever has happened */
}

static void given_hooks(blitz_shutdown *s)
{
    orders = 0;
    for (intptr_t i = 1; i <= 3; i++)
        CHECK_EQ(blitz_shutdown_hook(s, hook, (void *)i), 0);
    CHECK_EQ(blitz_shutdown_hook(s, NULL, NULL), -EINVAL);
}

static void check_hooks(blitz_shutdown *s)
{
    CHECK_EQ(orders, 3);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(order[i], 3 - i);
    CHECK_EQ(blitz_shutdown_hook(s, hook, NULL), -ESHUTDOWN);
}

struct work {
    blitz_shutdown *of;
    blitz_duration lasts;
};

static bz_atomic(bool) has_entered;

/* Work that ends by itself, or when the token is cancelled. */
static int works(void *arg)
{
    struct work *w = arg;
    int err = blitz_shutdown_enter(w->of);
    CHECK_EQ(err, 0);
    bz_store_relaxed(&has_entered, true); /* relaxed: a flag */
    err = blitz_token_wait(blitz_shutdown_token(w->of), blitz_after(w->lasts));
    CHECK(err == 0 || err == -ETIMEDOUT);
    blitz_shutdown_leave(w->of);
    return err == 0; /* 1: it was cut off */
}

static int runs(void *arg)
{
    return blitz_shutdown_run(arg, BLITZ_FOREVER);
}

/* Start the work and a run; when the work has entered, the caller makes it end. */
struct scene {
    struct work work;
    blitz_task *worker, *runner;
};

static struct scene given_a_run(blitz_shutdown *s, blitz_duration lasts, struct work *w)
{
    struct scene scene = {0};
    *w = (struct work){s, lasts};
    bz_store_relaxed(&has_entered, false); /* relaxed: a flag */
    CHECK_EQ(blitz_spawn(works, w, NULL, &scene.worker), 0);
    while (!bz_load_relaxed(&has_entered)) /* relaxed: a flag */
        blitz_yield();
    CHECK_EQ(blitz_spawn(runs, s, NULL, &scene.runner), 0);
    return scene;
}

static void check_scene(struct scene *scene, int run, int was_cut_off)
{
    int result;
    CHECK_EQ(blitz_task_join(scene->runner, &result, BLITZ_FOREVER), 0);
    CHECK_EQ(result, run);
    CHECK_EQ(blitz_task_join(scene->worker, &result, BLITZ_FOREVER), 0);
    CHECK_EQ(result, was_cut_off);
}

static int run_scenes(void *arg)
{
    struct work w;
    (void)arg;
    /* All work ends by itself. */
    blitz_shutdown *s = given_one(&quiet);
    given_hooks(s);
    struct scene scene = given_a_run(s, 2 * BLITZ_MS, &w);
    blitz_shutdown_begin(s);
    check_scene(&scene, 0, 0);
    check_hooks(s);
    CHECK_EQ(blitz_shutdown_run(s, BLITZ_FOREVER), -EALREADY);
    blitz_shutdown_unref(s);
    /* It takes too long: the drain has a deadline. */
    s = given_one(&(blitz_shutdown_opts){.drain = BLITZ_MS, .no_signals = true});
    given_hooks(s);
    scene = given_a_run(s, 3600 * BLITZ_S, &w);
    blitz_shutdown_begin(s);
    check_scene(&scene, 1, 1);
    check_hooks(s);
    blitz_shutdown_unref(s);
    /* It is forced from elsewhere, without a begin before. */
    s = given_one(&quiet);
    given_hooks(s);
    scene = given_a_run(s, 3600 * BLITZ_S, &w);
    blitz_shutdown_force(s);
    check_scene(&scene, 1, 1);
    check_hooks(s);
    blitz_shutdown_unref(s);
    /* The running task is cancelled: that forces, and the hooks run. */
    s = given_one(&quiet);
    given_hooks(s);
    scene = given_a_run(s, 3600 * BLITZ_S, &w);
    blitz_task_cancel(scene.runner);
    check_scene(&scene, 1, 1);
    check_hooks(s);
    blitz_shutdown_unref(s);
    return 0;
}

TEST(stop, a_run_drains_forces_and_runs_its_hooks_in_reverse)
{
    CHECK_EQ(blitz_run(run_scenes, NULL, &(blitz_runtime_opts){.procs = 2}), 0);
}

/* Work that ignores the token: the deadline of the run ends it, and the hooks have run. */
TEST(stop, work_that_never_ends_is_reported_at_the_deadline)
{
    blitz_shutdown *s = given_one(&(blitz_shutdown_opts){.drain = 1, .no_signals = true});
    CHECK_EQ(blitz_shutdown_enter(s), 0);
    given_hooks(s);
    blitz_shutdown_begin(s);
    CHECK_EQ(blitz_shutdown_run(s, blitz_after(2 * BLITZ_MS)), -ETIMEDOUT);
    check_hooks(s);
    blitz_shutdown_leave(s);
    blitz_shutdown_unref(s);
}

TEST(stop, hooks_that_never_run_are_freed)
{
    blitz_shutdown *s = given_one(NULL);
    given_hooks(s);
    blitz_shutdown_unref(blitz_shutdown_ref(s));
    blitz_shutdown_unref(s);
    CHECK_EQ(orders, 0);
}

/* ---- signals ---- */

static void *handler_of(int signal)
{
    struct sigaction now;
    CHECK_EQ(sigaction(signal, NULL, &now), 0);
    return (void *)now.sa_handler;
}

static bz_atomic(int) third;

static void on_third(int signal)
{
    (void)signal;
    bz_fetch_add_relaxed(&third, 1); /* relaxed: a count */
}

static int signal_scene(void *arg)
{
    struct work w;
    (void)arg;
    blitz_shutdown *s = given_one(NULL);
    struct scene scene = given_a_run(s, 3600 * BLITZ_S, &w);
    while (handler_of(SIGTERM) == (void *)SIG_DFL)
        blitz_yield();
    CHECK_EQ(raise(SIGTERM), 0);
    CHECK_EQ(blitz_shutdown_wait(s, BLITZ_FOREVER), 0);
    CHECK(!blitz_shutdown_is_forced(s));
    CHECK_EQ(raise(SIGINT), 0); /* the second one is immediate: the drain would take 30 s */
    check_scene(&scene, 1, 1);
    blitz_shutdown_unref(s);
    CHECK_EQ(raise(SIGINT), 0);           /* the third one goes to the earlier handler */
    CHECK_EQ(bz_load_relaxed(&third), 1); /* relaxed: our own handler */
    return 0;
}

TEST(stop, a_second_signal_is_immediate_and_a_third_has_its_earlier_action)
{
    struct sigaction before = {.sa_handler = on_third};
    CHECK_EQ(sigaction(SIGINT, &before, NULL), 0);
    CHECK(signal(SIGTERM, SIG_DFL) != SIG_ERR);
    CHECK_EQ(blitz_run(signal_scene, NULL, &(blitz_runtime_opts){.procs = 2}), 0);
    CHECK(handler_of(SIGTERM) == (void *)SIG_DFL);
}

TEST(stop, no_handler_is_installed_without_a_run)
{
    CHECK(signal(SIGTERM, SIG_DFL) != SIG_ERR);
    blitz_shutdown *s = given_one(NULL);
    CHECK(handler_of(SIGTERM) == (void *)SIG_DFL);
    blitz_shutdown_unref(s);
    CHECK_EQ(blitz_shutdown_new(NULL, NULL), -EINVAL);
}
