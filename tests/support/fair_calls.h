/*
 * fair_calls.h - every call of the interface, made by a task that has lost its proc a moment ago. More
 * scenes like those of fair_scenes.h, and played by the same programs.
 */
#ifndef T_FAIR_CALLS_H
#define T_FAIR_CALLS_H

#include "support/fair_scenes.h"

/* ---- every call, by a task that has lost its proc ---- */

static inline int call_nothing(void)
{
    return 0;
}

static inline int call_spawn_join(void)
{
    CHECK_EQ(hog_join(hog_spawn(others_spawn, (void *)(intptr_t)2)), 4);
    return 0;
}

static inline int call_spawn_only(void)
{
    hog_flag has_run = 0;
    blitz_task_detach(hog_spawn(hog_lets_go, &has_run));
    hog_until(&has_run);
    return 0;
}

static inline int call_spawn_on_proc(void)
{
    blitz_spawn_opts opts = {.proc = BLITZ_ON_PROC(0)};
    hog_flag has_run = 0;
    blitz_task *t;
    CHECK_EQ(blitz_spawn(hog_lets_go, &has_run, &opts, &t), 0);
    hog_until(&has_run);
    return hog_join(t);
}

static inline int call_spawn_poll(void)
{
    struct others_polled state = {.left = 0};
    blitz_task *t;
    CHECK_EQ(blitz_spawn_poll(others_poll, &state, sizeof state, NULL, &t), 0);
    CHECK_EQ(hog_join(t), 5);
    return 0;
}

static inline int call_yield(void)
{
    for (int i = 0; i < 3; i++)
        blitz_yield();
    return 0;
}

static inline int call_sleep(void)
{
    CHECK_EQ(blitz_sleep(BLITZ_MS), 0);
    return blitz_sleep(0);
}

static inline int waits_for(void *event)
{
    t_event_await(event);
    return 0;
}

/* It wakes a waiting task, and burns until that task has run. */
static inline int call_wake(void)
{
    struct t_event e;
    t_event_init(&e, bz_machine_self()->rt->os);
    blitz_task *t = hog_spawn(waits_for, &e);
    blitz_yield();
    lose_proc();
    t_event_set(&e);
    while (!blitz_task_is_done(t))
        hog_step();
    return hog_join(t);
}

static inline int sets_after_a_while(void *event)
{
    CHECK_EQ(blitz_sleep(BLITZ_MS), 0);
    t_event_set(event);
    return 0;
}

static inline int call_await(void)
{
    struct t_event e;
    t_event_init(&e, bz_machine_self()->rt->os);
    blitz_task *t = hog_spawn(sets_after_a_while, &e);
    t_event_await(&e);
    return hog_join(t);
}

static inline int call_await_until(void)
{
    struct t_event e;
    t_event_init(&e, bz_machine_self()->rt->os);
    CHECK_EQ(t_event_await_until(&e, blitz_after(BLITZ_MS)), -ETIMEDOUT);
    return 0;
}

static inline int sleeps_for_ever(void *arg)
{
    (void)arg;
    return blitz_sleep_until(BLITZ_FOREVER);
}

static inline int call_join_until_and_cancel(void)
{
    blitz_task *t = hog_spawn(sleeps_for_ever, NULL);
    CHECK_EQ(blitz_task_join(t, NULL, blitz_after(BLITZ_MS)), -ETIMEDOUT);
    lose_proc();
    blitz_task_cancel(t);
    CHECK_EQ(hog_join(t), -ECANCELED);
    return 0;
}

static inline int does_nothing(void *arg)
{
    (void)arg;
    return 0;
}

static inline int call_try_join(void)
{
    blitz_task *t = hog_spawn(does_nothing, NULL);
    int result = -1, rc;
    while ((rc = blitz_task_try_join(t, &result)) == -EAGAIN)
        hog_step();
    CHECK_EQ(rc, 0);
    return result;
}

static inline int call_detach(void)
{
    blitz_task *t = hog_spawn(others_tick, NULL);
    blitz_task *other = blitz_task_ref(t);
    blitz_task_detach(t);
    CHECK_EQ(hog_join(other), OTHERS_TICKS);
    return 0;
}

static inline int call_fork(void)
{
    CHECK_EQ(others_fork((void *)(intptr_t)5), 32);
    return 0;
}

/* The jobs were there before the proc was gone. */
static inline int call_join_jobs(void)
{
    blitz_job a, b;
    blitz_fork(&a, others_fork, (void *)(intptr_t)3);
    blitz_fork(&b, others_fork, (void *)(intptr_t)3);
    lose_proc();
    CHECK_EQ(blitz_join(&b), 8);
    CHECK_EQ(blitz_join(&a), 8);
    return 0;
}

/* And some are there while it waits. */
static inline int call_wait_with_jobs(void)
{
    blitz_job a, b;
    blitz_fork(&a, others_fork, (void *)(intptr_t)3);
    blitz_fork(&b, others_fork, (void *)(intptr_t)3);
    lose_proc();
    CHECK_EQ(blitz_sleep(BLITZ_MS), 0);
    CHECK_EQ(blitz_join(&b), 8);
    CHECK_EQ(blitz_join(&a), 8);
    return 0;
}

static inline int call_share(void)
{
    blitz_job a;
    blitz_fork(&a, others_fork, (void *)(intptr_t)3);
    lose_proc();
    blitz_share();
    CHECK_EQ(blitz_join(&a), 8);
    return 0;
}

static inline int call_local(void)
{
    static const blitz_local_key key = {NULL, NULL};
    int mine = 0;
    CHECK_EQ(blitz_local_set(&key, &mine), 0);
    lose_proc();
    CHECK(blitz_local_get(&key) == &mine);
    return blitz_local_set(&key, NULL);
}

static inline int call_shield(void)
{
    blitz_task_cancel(blitz_task_current());
    CHECK(blitz_is_cancelled());
    blitz_shield();
    CHECK(!blitz_is_cancelled());
    CHECK_EQ(blitz_sleep(BLITZ_MS), 0);
    lose_proc();
    blitz_unshield();
    CHECK_EQ(blitz_sleep(BLITZ_MS), -ECANCELED);
    return 0;
}

static inline int call_who_am_i(void)
{
    blitz_task *me = blitz_task_current();
    uint64_t id = blitz_task_id(NULL), at = blitz_now();
    lose_proc();
    CHECK(blitz_task_current() == me);
    CHECK_EQ(blitz_task_id(NULL), id);
    CHECK_LE(at, blitz_now());
    blitz_yield();
    CHECK(blitz_task_current() == me);
    return 0;
}

/* It burns again, from one loss to the next. */
static inline int call_burn_again(void)
{
    for (int i = 0; i < 3; i++) {
        lose_proc();
        blitz_yield();
    }
    return 0;
}

static int (*const hog_calls[])(void) = {
    call_nothing,
    call_spawn_join,
    call_spawn_only,
    call_spawn_on_proc,
    call_spawn_poll,
    call_yield,
    call_sleep,
    call_wake,
    call_await,
    call_await_until,
    call_join_until_and_cancel,
    call_try_join,
    call_detach,
    call_fork,
    call_join_jobs,
    call_wait_with_jobs,
    call_share,
    call_local,
    call_shield,
    call_who_am_i,
    call_burn_again,
};

static inline int loses_its_proc_and_calls(void *arg)
{
    lose_proc();
    return hog_calls[(uintptr_t)arg]();
}

static inline int scene_each_call(void *arg)
{
    (void)arg;
    for (uintptr_t i = 0; i < BZ_ARRAY_LEN(hog_calls); i++) {
        t_watch("call %zu of hog_calls, by one who lost its proc", (size_t)i);
        CHECK_EQ(hog_join(hog_spawn(loses_its_proc_and_calls, (void *)i)), 0);
    }
    return 0;
}

/* Three at once, which any number of procs allows: procs are lost and regained while others do the
 * same. (As many as all of them would be past the cap, and wait for each other for ever.) */
static inline int scene_all_calls(void *arg)
{
    enum { AT_ONCE = 3 };
    size_t count = BZ_ARRAY_LEN(hog_calls);
    blitz_task *t[AT_ONCE];
    (void)arg;
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < AT_ONCE; k++)
            t[k] = hog_spawn(loses_its_proc_and_calls, (void *)((i + k * 5) % count));
        for (size_t k = 0; k < AT_ONCE; k++)
            CHECK_EQ(hog_join(t[k]), 0);
    }
    return 0;
}

/* The same from a stackless task: it says pending, yields and ends without a proc. */
struct polled_hog {
    int turn;
};

static inline int wakes_it(void *waker)
{
    blitz_waker_wake(waker);
    return 0;
}

static inline blitz_poll poll_loses_its_proc(void *state, blitz_cx *cx)
{
    static const int turns = 6;
    struct polled_hog *me = state;
    blitz_waker w;
    lose_proc();
    switch (me->turn++ % 3) {
    case 0:
        return me->turn > turns ? BLITZ_READY : blitz_cx_yield(cx);
    case 1:
        blitz_yield(); /* with a stack */
        return blitz_cx_yield(cx);
    default:
        w = blitz_waker_clone(cx->waker);
        CHECK_EQ(hog_join(hog_spawn(wakes_it, &w)), 0); /* before we have said so */
        return BLITZ_PENDING;
    }
}

static inline int scene_polls_lose_it(void *arg)
{
    blitz_task *t[3];
    struct polled_hog state = {0};
    (void)arg;
    for (size_t i = 0; i < BZ_ARRAY_LEN(t); i++)
        CHECK_EQ(blitz_spawn_poll(poll_loses_its_proc, &state, sizeof state, NULL, &t[i]), 0);
    for (size_t i = 0; i < BZ_ARRAY_LEN(t); i++)
        CHECK_EQ(hog_join(t[i]), 0);
    return 0;
}

#endif
