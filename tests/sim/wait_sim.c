/*
 * Waits in the whole runtime, in virtual time, from seeds: a wake, a deadline and a cancel at every
 * moment of a wait, and one outcome of it.
 */
#include "support/sched_sim.h"

#include "base/rng.h"
#include "life/deadlines.h"
#include "support/box.h"

struct scene {
    const struct bz_os *os;
    struct box box;
    struct bz_rng rng;
    bz_atomic(int) taken;
    int put;
    uint64_t seed;
    int (*main)(void *scene);
};

static void play(const struct bz_os *os, void *arg)
{
    struct scene *s = arg;
    s->os = os;
    box_init(&s->box, os);
    bz_rng_init(&s->rng, s->seed);
    bz_atomic_init(&s->taken, 0);
    s->put = 0;
    struct bz_runtime *rt = sim_begin(os, 1 + (unsigned)(s->seed % 4));
    CHECK_EQ(blitz_runtime_block_on((blitz_runtime *)rt, s->main, s), 0);
    sim_end(rt);
    CHECK(bz_list_is_empty(&s->box.takers));
    CHECK_EQ(bz_load_relaxed(&s->taken) + s->box.values, s->put);
}

/* On 1 to 4 procs; a third of the seeds in the plain form. */
static void on_seeds(int (*main)(void *), uint64_t full)
{
    for (uint64_t i = 0, n = sim_seeds(full); i < n; i++) {
        struct scene s = {.main = main, .seed = sim_next_seed()};
        struct bz_sim_config config = {.seed = s.seed, .has_no_barrier = s.seed / 4 % 3 == 0};
        t_watch("simulation seed 0x%llx%s", (unsigned long long)s.seed,
                config.has_no_barrier ? " without barriers" : "");
        CHECK_EQ(bz_sim_run(&config, play, &s, NULL), 0);
    }
}

/* A moment near the others: most of what can meet does. */
static uint64_t moment(struct scene *s)
{
    return bz_rng_below(&s->rng, 5) * BLITZ_US;
}

struct taker {
    struct scene *scene;
    uint64_t for_ns; /* 0: for ever */
};

static int takes(void *arg)
{
    struct taker t = *(struct taker *)arg;
    blitz_deadline until = t.for_ns != 0 ? blitz_after(t.for_ns) : BLITZ_FOREVER;
    int err = box_take(&t.scene->box, until);
    if (err == 0)
        bz_fetch_add_relaxed(&t.scene->taken, 1);
    if (err == -ETIMEDOUT)
        CHECK_GE(blitz_now(), until);
    return err;
}

/* ---- a wake, a deadline, a cancel ---- */

enum { TAKERS = 4 };

static int wakes_deadlines_and_cancels(void *arg)
{
    struct scene *s = arg;
    struct taker taker[TAKERS];
    blitz_task *t[TAKERS];
    for (int i = 0; i < TAKERS; i++) {
        taker[i] = (struct taker){s, moment(s)};
        CHECK_EQ(blitz_spawn(takes, &taker[i], NULL, &t[i]), 0);
    }
    for (int i = 0; i < 2 * TAKERS; i++) {
        uint64_t what = bz_rng_below(&s->rng, 4);
        if (what == 0)
            blitz_task_cancel(t[bz_rng_below(&s->rng, TAKERS)]);
        else if (what == 1)
            CHECK_EQ(blitz_sleep(moment(s)), 0);
        else if (what == 2)
            blitz_yield();
        else if (++s->put > 0)
            box_put(&s->box);
    }
    for (int i = 0; i < TAKERS; i++) {
        int result = 1;
        blitz_task_cancel(t[i]); /* the remaining waiters */
        CHECK_EQ(blitz_task_join(t[i], &result, BLITZ_FOREVER), 0);
        CHECK(result == 0 || result == -ECANCELED || (result == -ETIMEDOUT && taker[i].for_ns));
    }
    return 0;
}

/* Bug class 22: a value given to a waiter that has just left goes to the next. */
TEST(wait, bug_22_a_wake_a_deadline_and_a_cancel_have_one_outcome)
{
    on_seeds(wakes_deadlines_and_cancels, 600);
}

/* ---- a cancel at every point ---- */

static int sleeps_twice(void *arg)
{
    uint64_t us = (uint64_t)(intptr_t)arg;
    int first = blitz_sleep(us * BLITZ_US), second = blitz_sleep(us * BLITZ_US);
    if (first == -ECANCELED) /* for good: the next wait is cancelled as well */
        CHECK_EQ(second, -ECANCELED);
    return second;
}

/* Each round cancels a little later: before it starts, while it parks, at its deadline, between its
 * waits, when it has ended. */
static int cancel_later_and_later(void *arg)
{
    struct scene *s = arg;
    for (int point = 0; point < 8; point++) {
        blitz_task *t;
        int result = 1;
        CHECK_EQ(blitz_spawn(sleeps_twice, (void *)(intptr_t)2, NULL, &t), 0);
        for (int i = 0; i < point; i++)
            if (bz_rng_below(&s->rng, 2) == 0)
                blitz_yield();
            else
                CHECK_EQ(blitz_sleep(BLITZ_US), 0);
        blitz_task_cancel(t);
        CHECK_EQ(blitz_task_join(t, &result, BLITZ_FOREVER), 0);
        CHECK(result == 0 || result == -ECANCELED);
    }
    return 0;
}

/* Bug class 11: the timer fires, is disarmed, or both. */
TEST(wait, bug_11_a_cancel_at_every_point_of_a_sleep_is_heard)
{
    on_seeds(cancel_later_and_later, 400);
}

/* ---- down a chain of joins ---- */

enum { DEPTH = 4 };

static int joins_down(void *arg)
{
    intptr_t depth = (intptr_t)arg;
    blitz_task *t;
    int result = 1;
    if (depth == 0)
        return blitz_sleep_until(BLITZ_FOREVER);
    CHECK_EQ(blitz_spawn(joins_down, (void *)(depth - 1), NULL, &t), 0);
    if (depth % 2 == 0)
        blitz_yield(); /* so that another worker may start it, and it is not claimed */
    CHECK_EQ(blitz_task_join(t, &result, BLITZ_FOREVER), 0);
    return result;
}

static int cancel_the_top(void *arg)
{
    struct scene *s = arg;
    blitz_task *t;
    int result = 1;
    CHECK_EQ(blitz_spawn(joins_down, (void *)(intptr_t)DEPTH, NULL, &t), 0);
    for (uint64_t i = bz_rng_below(&s->rng, 8); i > 0; i--)
        blitz_yield();
    if (bz_rng_below(&s->rng, 2) == 0)
        CHECK_EQ(blitz_sleep(moment(s)), 0);
    blitz_task_cancel(t);
    CHECK_EQ(blitz_task_join(t, &result, BLITZ_FOREVER), 0);
    CHECK_EQ(result, -ECANCELED); /* the innermost was reached */
    return 0;
}

/* Claimed or not, parked or about to: the cancel reaches the task that can act on it. */
TEST(wait, a_cancel_goes_down_a_chain_of_joins)
{
    on_seeds(cancel_the_top, 500);
}

/* ---- plain threads ---- */

static void thread_takes(void *arg)
{
    struct scene *s = arg;
    uint64_t until = bz_os_now(s->os) + 2 * BLITZ_US;
    int err = box_take(&s->box, until);
    if (err == 0)
        bz_fetch_add_relaxed(&s->taken, 1);
    else
        CHECK_EQ(err, -ETIMEDOUT);
    CHECK_EQ(box_take(&s->box, BLITZ_FOREVER), 0);
    bz_fetch_add_relaxed(&s->taken, 1);
}

static int puts_for_a_thread(void *arg)
{
    struct scene *s = arg;
    struct bz_os_thread t;
    CHECK_EQ(bz_os_thread_start(s->os, &t, NULL, thread_takes, s), 0);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(blitz_sleep(moment(s)), 0);
        s->put++;
        box_put(&s->box);
    }
    CHECK_EQ(bz_os_thread_join(s->os, &t), 0);
    return 0;
}

TEST(wait, a_plain_thread_is_woken_at_its_deadline_or_by_a_task)
{
    on_seeds(puts_for_a_thread, 400);
}

/* ---- many at one moment ---- */

static int sleeps_until(void *arg)
{
    return blitz_sleep_until(*(blitz_deadline *)arg);
}

static int all_at_once(void *arg)
{
    enum { N = 100 }; /* more than a batch of the timers */
    blitz_task *t[N];
    blitz_deadline at = blitz_after(BLITZ_MS);
    (void)arg;
    for (int i = 0; i < N; i++)
        CHECK_EQ(blitz_spawn(sleeps_until, &at, NULL, &t[i]), 0);
    for (int i = 0; i < N; i++) {
        int result = 1;
        CHECK_EQ(blitz_task_join(t[i], &result, BLITZ_FOREVER), 0);
        CHECK_EQ(result, 0);
    }
    return 0;
}

TEST(wait, sleepers_with_one_deadline_all_wake)
{
    on_seeds(all_at_once, 60);
}

/* ---- on another's wheel ---- */

struct alarm {
    struct bz_timer timer;
    struct scene *scene;
};

static void alarm_put(void *data)
{
    struct scene *s = data;
    box_put(&s->box);
}

static void nothing(void *data)
{
    (void)data;
}

static struct bz_wake alarm_fire(struct bz_timer *timer)
{
    static const blitz_waker_ops ops = {nothing, alarm_put, alarm_put, nothing};
    struct scene *s = BZ_CONTAINER_OF(timer, struct alarm, timer)->scene;
    return (struct bz_wake){.kind = BZ_WAKE_WAKER, .waker = {&ops, s}};
}

/* All workers sleep, and the owner of the wheel had no timer when it went to sleep. */
static int arm_elsewhere(void *arg)
{
    struct scene *s = arg;
    struct bz_runtime *rt = bz_task_self()->rt;
    struct alarm alarm = {.scene = s};
    for (int i = 0; i < 3; i++) {
        struct bz_proc *p = &rt->procs[bz_rng_below(&s->rng, rt->proc_count)];
        uint64_t when = blitz_after(moment(s));
        bz_timer_init(&alarm.timer, p, alarm_fire);
        s->put++;
        bz_timer_arm(&alarm.timer, when);
        CHECK_EQ(box_take(&s->box, BLITZ_FOREVER), 0);
        bz_fetch_add_relaxed(&s->taken, 1);
        CHECK_GE(blitz_now(), when);
    }
    return 0;
}

TEST(wait, a_timer_armed_on_a_sleeping_proc_fires)
{
    on_seeds(arm_elsewhere, 300);
}

/* ---- deadlines that the monitor fires ---- */

struct late {
    blitz_semaphore permits;
    uint64_t at;
};

static int waits_until(void *arg)
{
    struct late *l = arg;
    int rc = blitz_semaphore_acquire(&l->permits, 1, l->at);
    CHECK(rc == 0 || rc == -ETIMEDOUT);
    return rc == 0;
}

/* It keeps its proc busy beyond the deadline, so that another thread fires the timers there. */
static int burns_past(void *arg)
{
    struct late *l = arg;
    while (blitz_now() < l->at + 2 * BLITZ_MS)
        bz_sim_burn(100 * BLITZ_US);
    return 0;
}

static int releases_at(void *arg)
{
    struct late *l = arg;
    while (blitz_now() < l->at)
        bz_sim_burn(l->at - blitz_now());
    for (int i = 0; i < 8; i++)
        CHECK_EQ(blitz_semaphore_release(&l->permits, 1), 0);
    return 0;
}

static int wake_beside_the_monitor(void)
{
    struct late l = {.at = blitz_now() + 5 * BLITZ_MS};
    blitz_task *t[8], *other[2];
    int got = 0, result;
    blitz_semaphore_init(&l.permits, 0);
    for (int i = 0; i < 8; i++)
        CHECK_EQ(blitz_spawn(waits_until, &l, NULL, &t[i]), 0);
    CHECK_EQ(blitz_sleep(BLITZ_MS), 0); /* they wait, on any proc */
    CHECK_EQ(blitz_spawn(burns_past, &l, NULL, &other[0]), 0);
    CHECK_EQ(blitz_spawn(releases_at, &l, NULL, &other[1]), 0);
    for (int i = 0; i < 8; i++) {
        CHECK_EQ(blitz_task_join(t[i], &result, BLITZ_FOREVER), 0);
        got += result;
    }
    for (int i = 0; i < 2; i++)
        CHECK_EQ(blitz_task_join(other[i], NULL, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_semaphore_permits(&l.permits), (uint32_t)(8 - got));
    return 0;
}

static int wakes_beside_the_monitor(void *arg)
{
    (void)arg;
    for (int i = 0; i < 10; i++)
        CHECK_EQ(wake_beside_the_monitor(), 0);
    return 0;
}

/* The monitor fires the timers of a proc that burns, while another thread wakes the same waiters. Each gets one outcome, and
 * no task is held afterwards (sim_play counts the memory). */
TEST(wait, a_deadline_that_comes_with_the_wake_is_one_outcome_and_holds_no_task)
{
    for (uint64_t i = 0, n = sim_seeds(400); i < n; i++) {
        uint64_t seed = sim_next_seed();
        struct bz_sim_config config = {.seed = seed, .has_no_barrier = i % 2};
        struct sim_scene s = {2 + (unsigned)(seed % 2), wakes_beside_the_monitor, NULL, 0};
        t_watch("simulation seed 0x%llx%s", (unsigned long long)seed,
                config.has_no_barrier ? " without barriers" : "");
        CHECK_EQ(bz_sim_run(&config, sim_play, &s, NULL), 0);
    }
}

/* ---- a sleep without a deadline ---- */

struct sleeper {
    bz_os_word go;
    int result;
};

/* Its thread sleeps until the lock of its task is held: a wait of the task would be one of the waits under test. */
static int sleeps_for_ever(void *arg)
{
    struct sleeper *s = arg;
    while (bz_load_acquire(&s->go) == 0) /* pairs with sleep_under_a_lock */
        (void)bz_os_wait(bz_machine_self()->rt->os, &s->go, 0, BZ_OS_FOREVER);
    s->result = blitz_sleep_until(BLITZ_FOREVER);
    return 0;
}

static void sleep_under_a_lock(const struct bz_os *os, void *arg)
{
    struct bz_runtime *rt = sim_begin(os, *(unsigned *)arg);
    struct sleeper s = {.result = 1};
    blitz_task *handle;
    bz_atomic_init(&s.go, 0);
    CHECK_EQ(blitz_spawn(sleeps_for_ever, &s, &(blitz_spawn_opts){.runtime = (blitz_runtime *)rt},
                         &handle),
             0);
    struct bz_task *t = (struct bz_task *)handle;
    bz_lock_take(&t->lock, os);
    bz_store_release(&s.go, 1); /* pairs with sleeps_for_ever */
    bz_os_wake(os, &s.go, 1);
    bz_sim_burn(20 * BLITZ_MS);
    CHECK_EQ(bz_load_relaxed(&t->wait), (uintptr_t)0); /* relaxed: the simulator runs one thread */
    bz_lock_drop(&t->lock, os);
    bz_sim_burn(20 * BLITZ_MS);
    CHECK_NE(bz_load_relaxed(&t->wait), (uintptr_t)0); /* relaxed: likewise */
    blitz_task_cancel(handle);
    CHECK_EQ(blitz_task_join(handle, NULL, BLITZ_FOREVER), 0);
    CHECK_EQ(s.result, -ECANCELED);
    sim_end(rt);
}

/* The hook uses the frame of the wait after it has published it. A canceller may end the wait at once, but it takes the
 * task's lock, and so waits for the hook. Without a primitive and a timer there is no other lock. */
TEST(wait, a_sleep_without_a_deadline_is_published_under_the_lock_of_its_task)
{
    for (uint64_t i = 0, n = sim_seeds(100); i < n; i++) {
        uint64_t seed = sim_next_seed();
        unsigned procs = 1 + (unsigned)(seed % 3);
        struct bz_sim_config config = {.seed = seed, .has_no_barrier = i % 2};
        t_watch("simulation seed 0x%llx, %u procs", (unsigned long long)seed, procs);
        CHECK_EQ(bz_sim_run(&config, sleep_under_a_lock, &procs, NULL), 0);
    }
}
