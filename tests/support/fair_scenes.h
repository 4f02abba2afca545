/*
 * fair_scenes.h - tasks that never yield, and other tasks beside them. Scenes for virtual time
 * (fair_sim.c) and for real threads (fair_test.c); each says how a hog burns:
 *
 *     static void hog_step(void);      a step of a loop that has no end: virtual time, or a pause
 *
 * Nothing here sleeps to win a race, and nothing measures: a hog burns until other tasks have made
 * progress that it would otherwise have blocked. If he is stopped, the scene never ends, and the
 * harness or the simulation says so. On one proc the same loop *proves* that the proc has moved: a
 * task that sees another run in front of its eyes has lost it (lose_proc).
 */
#ifndef T_FAIR_SCENES_H
#define T_FAIR_SCENES_H

#include "base/bz_atomic.h"
#include "base/compiler.h"
#include "blitz.h"
#include "harness.h"
#include "os/os.h"
#include "proc/state.h"
#include "runtime/runtime.h"
#include "support/event.h"

static void hog_step(void);

typedef bz_atomic(int) hog_flag;

/* Burn until told to stop. */
static inline void hog_until(hog_flag *flag)
{
    while (bz_load_acquire(flag) == 0) /* pairs with hog_let_go: writes before it are seen */
        hog_step();
}

static inline void hog_let_go(hog_flag *flag)
{
    bz_store_release(flag, 1); /* pairs with hog_until */
}

static inline int hog_lets_go(void *flag)
{
    hog_let_go(flag);
    return 0;
}

static inline int hog_main(void *flag)
{
    hog_until(flag);
    return 0;
}

static inline blitz_task *hog_spawn(int (*fn)(void *), void *arg)
{
    blitz_task *t = NULL;
    CHECK_EQ(blitz_spawn(fn, arg, NULL, &t), 0);
    return t;
}

static inline int hog_join(blitz_task *t)
{
    int result = -1;
    CHECK_EQ(blitz_task_join(t, &result, BLITZ_FOREVER), 0);
    return result;
}

/* Burn until another task has run. With one proc that means: the caller's is gone. */
static inline void lose_proc(void)
{
    hog_flag has_run = 0;
    blitz_task *t = hog_spawn(hog_lets_go, &has_run);
    hog_until(&has_run);
    blitz_task_detach(t);
}

/* ---- other tasks ---- */

enum { OTHERS_TICKS = 10, OTHERS_WAKES = 20 };

static inline int others_tick(void *arg)
{
    (void)arg;
    for (int i = 0; i < OTHERS_TICKS; i++)
        CHECK_EQ(blitz_sleep(BLITZ_MS), 0);
    return OTHERS_TICKS;
}

struct others_pair {
    const struct bz_os *os;
    struct t_event ping[OTHERS_WAKES], pong[OTHERS_WAKES];
};

static inline int others_answer(void *arg)
{
    struct others_pair *p = arg;
    for (int i = 0; i < OTHERS_WAKES; i++) {
        t_event_await(&p->ping[i]);
        t_event_set(&p->pong[i]);
    }
    return 0;
}

/* Two tasks that wake each other. */
static inline int others_ask(void *arg)
{
    struct others_pair p;
    (void)arg;
    for (int i = 0; i < OTHERS_WAKES; i++) {
        t_event_init(&p.ping[i], bz_machine_self()->rt->os);
        t_event_init(&p.pong[i], bz_machine_self()->rt->os);
    }
    blitz_task *t = hog_spawn(others_answer, &p);
    for (int i = 0; i < OTHERS_WAKES; i++) {
        t_event_set(&p.ping[i]);
        t_event_await(&p.pong[i]);
    }
    return hog_join(t) + OTHERS_WAKES;
}

/* A tree of forked jobs, and one of tasks. */
static inline int others_fork(void *depth)
{
    intptr_t left = (intptr_t)depth;
    blitz_job job;
    if (left == 0)
        return 1;
    blitz_fork(&job, others_fork, (void *)(left - 1));
    int here = others_fork((void *)(left - 1));
    return here + blitz_join(&job);
}

static inline int others_spawn(void *depth)
{
    intptr_t left = (intptr_t)depth;
    if (left == 0)
        return 1;
    blitz_task *a = hog_spawn(others_spawn, (void *)(left - 1));
    blitz_task *b = hog_spawn(others_spawn, (void *)(left - 1));
    blitz_yield();
    return hog_join(a) + hog_join(b);
}

/* A stackless one, with a timer and turns. */
struct others_polled {
    blitz_frame frame;
    blitz_sleep_future nap;
    int left;
};

static inline blitz_poll others_poll(void *state, blitz_cx *cx)
{
    struct others_polled *me = state;
    int rc;
    BLITZ_BEGIN(&me->frame, cx);
    for (me->left = 5; me->left > 0; me->left--) {
        BLITZ_SLEEP(rc, &me->nap, BLITZ_MS);
        CHECK_EQ(rc, 0);
        BLITZ_YIELD();
    }
    BLITZ_END(5);
}

/* All of them at once: returns when the last one is done, which needs all that a runtime does. */
static inline void others_live(void)
{
    struct others_polled state = {.left = 0};
    blitz_task *t[6];
    static const int want[] = {OTHERS_TICKS, OTHERS_TICKS, OTHERS_WAKES, 16, 16, 5};
    t[0] = hog_spawn(others_tick, NULL);
    t[1] = hog_spawn(others_tick, NULL);
    t[2] = hog_spawn(others_ask, NULL);
    t[3] = hog_spawn(others_fork, (void *)(intptr_t)4);
    t[4] = hog_spawn(others_spawn, (void *)(intptr_t)4);
    CHECK_EQ(blitz_spawn_poll(others_poll, &state, sizeof state, NULL, &t[5]), 0);
    for (size_t i = 0; i < BZ_ARRAY_LEN(t); i++)
        CHECK_EQ(hog_join(t[i]), want[i]);
}

/* Run `count` endless loops, which end when all other tasks have made progress beside them. */
static inline int others_beside_hogs(void *count)
{
    enum { MAX = 48 };
    unsigned n = (unsigned)(uintptr_t)count;
    hog_flag over = 0;
    blitz_task *hog[MAX];
    CHECK_LE(n, (unsigned)MAX);
    for (unsigned i = 0; i < n; i++)
        hog[i] = hog_spawn(hog_main, &over);
    others_live();
    hog_let_go(&over);
    for (unsigned i = 0; i < n; i++)
        CHECK_EQ(hog_join(hog[i]), 0);
    return 0;
}

/*
 * From outside: a hog and the task that stops it are queued together, perhaps before any worker
 * searches. Both may be taken out in one handful.
 */
static inline void outside_spawns_a_hog_and_another(const struct bz_os *os, unsigned procs,
                                                    bool is_on_proc)
{
    hog_flag over = 0;
    struct bz_runtime *rt;
    CHECK_EQ(bz_runtime_new(os, &(blitz_runtime_opts){.procs = procs}, &rt), 0);
    blitz_spawn_opts opts = {.runtime = (blitz_runtime *)rt};
    blitz_task *hog[8], *other;
    for (unsigned i = 0; i < procs; i++)
        CHECK_EQ(blitz_spawn(hog_main, &over, &opts, &hog[i]), 0);
    opts.proc = is_on_proc ? BLITZ_ON_PROC(0) : 0;
    CHECK_EQ(blitz_spawn(hog_lets_go, &over, &opts, &other), 0);
    for (unsigned i = 0; i < procs; i++)
        CHECK_EQ(hog_join(hog[i]), 0);
    CHECK_EQ(hog_join(other), 0);
    CHECK_EQ(blitz_runtime_shutdown((blitz_runtime *)rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref((blitz_runtime *)rt), 0);
}

/* ---- a hog where one would not look for it ---- */

/* A poll. */
static inline blitz_poll hog_in_poll(void *state, blitz_cx *cx)
{
    hog_until(*(hog_flag **)state);
    cx->result = 3;
    return BLITZ_READY;
}

/* The destructor of a task's local, of its state, of its result. */
static inline void hog_in_destructor(void *flag, void *ctx)
{
    (void)ctx;
    hog_until(flag);
}

static const blitz_local_key hog_key = {hog_in_destructor, NULL};

static inline int leaves_a_local(void *flag)
{
    CHECK_EQ(blitz_local_set(&hog_key, flag), 0);
    return 0;
}

static inline blitz_poll leaves_a_state(void *state, blitz_cx *cx)
{
    (void)state;
    (void)cx;
    return BLITZ_READY;
}

static inline void hog_in_drop_state(void *state, void *ctx)
{
    (void)ctx;
    hog_until(*(hog_flag **)state);
}

static inline void *leaves_a_pointer(void *flag)
{
    return flag;
}

/* Run `hog` as a separate task; meanwhile all other tasks make progress. */
static inline void beside(int (*hog)(void *), void *arg, hog_flag *over, int want)
{
    blitz_task *t = hog_spawn(hog, arg);
    others_live();
    hog_let_go(over);
    CHECK_EQ(hog_join(t), want);
}

static inline int scene_poll(void *arg)
{
    hog_flag over = 0, *state = &over;
    blitz_task *t;
    (void)arg;
    CHECK_EQ(blitz_spawn_poll(hog_in_poll, &state, sizeof state, NULL, &t), 0);
    others_live();
    hog_let_go(&over);
    CHECK_EQ(hog_join(t), 3);
    return 0;
}

static inline int scene_local(void *arg)
{
    hog_flag over = 0;
    (void)arg;
    beside(leaves_a_local, &over, &over, 0);
    return 0;
}

static inline int scene_drop_state(void *arg)
{
    hog_flag over = 0, *state = &over;
    blitz_spawn_opts opts = {.drop_state = hog_in_drop_state};
    blitz_task *t;
    (void)arg;
    CHECK_EQ(blitz_spawn_poll(leaves_a_state, &state, sizeof state, &opts, &t), 0);
    others_live();
    hog_let_go(&over);
    CHECK_EQ(hog_join(t), 0);
    return 0;
}

/* The drop of the last reference blocks: by the detaching task, or by the machine that ran it. */
struct hog_bell {
    hog_flag over;
    bz_atomic(int) returned;
};

static inline void hog_in_bell(void *bell)
{
    hog_until(&((struct hog_bell *)bell)->over);
    bz_fetch_add_release(&((struct hog_bell *)bell)->returned, 1); /* pairs with hog_bell_end */
}

static inline void hog_in_drop_result(void *value, void *ctx)
{
    (void)ctx;
    hog_in_bell(value);
}

/* Release them, and wait until no thread is inside: the bell may be in a stack frame. */
static inline void hog_bell_end(struct hog_bell *bell, int count)
{
    hog_let_go(&bell->over);
    while (bz_load_acquire(&bell->returned) < count) /* pairs with hog_in_bell */
        CHECK_EQ(blitz_sleep(BLITZ_MS), 0);
}

static inline int detaches(void *t)
{
    while (!blitz_task_is_done(t)) /* not a join, which would run it right here */
        CHECK_EQ(blitz_sleep(100 * BLITZ_US), 0);
    blitz_task_detach(t); /* the pointer was not taken */
    return 0;
}

static inline int scene_drop_result(void *arg)
{
    struct hog_bell bell = {.over = 0};
    blitz_spawn_opts opts = {.drop_result = hog_in_drop_result};
    blitz_task *t;
    (void)arg;
    CHECK_EQ(blitz_spawn_ptr(leaves_a_pointer, &bell, &opts, &t), 0);
    t = hog_spawn(detaches, t);
    others_live();
    hog_bell_end(&bell, 1);
    return hog_join(t);
}

/* A foreign waker that blocks the thread that wakes it. */
static inline void hog_waker_clone(void *bell)
{
    (void)bell;
}

static inline blitz_waker hog_waker(struct hog_bell *bell)
{
    static const blitz_waker_ops ops = {hog_waker_clone, hog_in_bell, hog_in_bell, hog_waker_clone};
    return (blitz_waker){&ops, bell};
}

/* A task whose end wakes a foreign waker: the join future of it was asked by hand. */
static inline int scene_waker_of_a_join(void *arg)
{
    struct hog_bell bell = {.over = 0};
    hog_flag may_end = 0;
    blitz_join_future f;
    blitz_waker w = hog_waker(&bell);
    blitz_task *t = hog_spawn(hog_main, &may_end);
    (void)arg;
    blitz_task_join_future_init(&f, t);
    CHECK_EQ(f.future.ops->poll(&f.future, &w), BLITZ_PENDING);
    hog_let_go(&may_end);
    others_live();
    hog_bell_end(&bell, 1);
    CHECK_EQ(blitz_await(&f.future, BLITZ_FOREVER), 0);
    CHECK_EQ(f.result, 0);
    return 0;
}

/* A timer that wakes a foreign waker in the loop that fires it, and other timers due with it. */
static inline int sleeps_until(void *when)
{
    return blitz_sleep_until(*(blitz_deadline *)when);
}

static inline int scene_waker_of_a_timer(void *arg)
{
    struct hog_bell bell = {.over = 0};
    blitz_sleep_future f[2];
    blitz_waker w = hog_waker(&bell);
    blitz_deadline when = blitz_after(BLITZ_MS);
    blitz_task *t[4];
    int rings = 0;
    (void)arg;
    for (size_t i = 0; i < BZ_ARRAY_LEN(f); i++) {
        blitz_sleep_until_future_init(&f[i], when);
        rings +=
            f[i].future.ops->poll(&f[i].future, &w) == BLITZ_PENDING; /* else it is late already */
    }
    for (size_t i = 0; i < BZ_ARRAY_LEN(t); i++)
        t[i] = hog_spawn(sleeps_until, &when);
    CHECK_EQ(blitz_sleep_until(when), 0);
    for (size_t i = 0; i < BZ_ARRAY_LEN(t); i++)
        CHECK_EQ(hog_join(t[i]), 0);
    others_live();
    hog_bell_end(&bell, rings);
    for (size_t i = 0; i < BZ_ARRAY_LEN(f); i++)
        CHECK_EQ(blitz_await(&f[i].future, BLITZ_FOREVER), 0);
    return 0;
}

/* A forked job, and its parent beside it. */
static inline int forks_a_hog(void *flag)
{
    blitz_job job;
    blitz_fork(&job, hog_main, flag);
    hog_until(flag);
    return blitz_join(&job);
}

static inline int scene_jobs(void *arg)
{
    hog_flag over = 0;
    (void)arg;
    beside(forks_a_hog, &over, &over, 0);
    return 0;
}

/*
 * tokio#4730: a task that blocks until another has run, which can only run when a timer is fired by
 * the very worker that is blocked.
 */
static inline int sleeps_then_lets_go(void *flag)
{
    CHECK_EQ(blitz_sleep(BLITZ_MS), 0);
    hog_let_go(flag);
    return 0;
}

static inline int scene_tokio_4730(void *arg)
{
    hog_flag is_due = 0;
    blitz_task *t = hog_spawn(sleeps_then_lets_go, &is_due);
    (void)arg;
    blitz_yield(); /* it sets its timer, here as a rule */
    hog_until(&is_due);
    return hog_join(t);
}

#endif
