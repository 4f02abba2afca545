/*
 * shortage.h - programs that run out of stacks for good, as scenes for real threads and for simulations.
 *
 * Each scene spawns a task X between many sleepers, after the last slab of stacks. X is accepted, and finds no
 * stack when its turn comes: sleepers hold them all, and the task that waits for X holds one, too. Each wait of the scene must end.
 */
#ifndef T_SHORTAGE_H
#define T_SHORTAGE_H

#include "harness.h"

#include <errno.h>

#include "blitz.h"
#include "sim/fault.h"
#include "proc/state.h"
#include "runtime/runtime.h"

enum { SHORTAGE_SLEEPERS = 12 };

struct shortage {
    struct bz_fault fault;
    blitz_event never; /* set at the end of the scene */
    blitz_task *sleeper[3 * SHORTAGE_SLEEPERS];
    size_t sleepers;
    bool is_sure; /* one proc: X is accepted and does not begin by itself */
};

/* A deadline that no correct run reaches. */
static inline blitz_deadline shortage_patience(void)
{
    return blitz_after(60 * BLITZ_S);
}

static inline int shortage_wait(void *never)
{
    return blitz_event_wait(never, BLITZ_FOREVER);
}

static inline void shortage_occupy(struct shortage *s)
{
    for (int i = 0; i < SHORTAGE_SLEEPERS; i++) {
        int err = blitz_spawn(shortage_wait, &s->never, NULL, &s->sleeper[s->sleepers]);
        CHECK(err == 0 || err == -ENOMEM);
        s->sleepers += err == 0;
    }
}

/* X was spawned, or refused because a refusal of a stack came before. */
static inline bool shortage_accepted(struct shortage *s, int err)
{
    CHECK(err == 0 || err == -ENOMEM);
    CHECK(err == 0 || !s->is_sure);
    return err == 0;
}

/* A fiber between the sleepers. NULL: refused. */
static inline blitz_task *shortage_spawn(struct shortage *s, int (*fn)(void *), void *arg)
{
    blitz_task *x;
    bz_fault_shut(&s->fault, true);
    shortage_occupy(s);
    bool is_in = shortage_accepted(s, blitz_spawn(fn, arg, NULL, &x));
    shortage_occupy(s);
    return is_in ? x : NULL;
}

static inline int shortage_five(void *arg)
{
    (void)arg;
    return 5;
}

static inline int shortage_nap(void *arg)
{
    (void)arg;
    blitz_yield();
    CHECK_EQ(blitz_sleep(BLITZ_MS), 0);
    return 5;
}

/* ---- scenes ---- */

struct shortage_member {
    struct shortage *s;
    bool has_run;
    int result;
};

static inline int shortage_member_waits(void *arg)
{
    struct shortage_member *m = arg;
    m->has_run = true;
    m->result = blitz_event_wait(&m->s->never, BLITZ_FOREVER);
    return m->result;
}

/* The deadline of a scope holds although its closer has the only stack, and the task is called. */
static inline int scene_scope_deadline(void *arg)
{
    struct shortage *s = arg;
    struct shortage_member m = {s, false, 0};
    blitz_scope scope;
    CHECK_EQ(blitz_scope_open(&scope, NULL, blitz_after(5 * BLITZ_MS)), 0);
    bz_fault_shut(&s->fault, true);
    shortage_occupy(s);
    bool is_in = shortage_accepted(s, blitz_scope_spawn(&scope, shortage_member_waits, &m, NULL));
    shortage_occupy(s);
    CHECK_EQ(blitz_scope_close(&scope), is_in ? -ETIMEDOUT : 0);
    CHECK_EQ(m.has_run, is_in);
    CHECK_EQ(m.result, is_in ? -ECANCELED : 0);
    return 0;
}

/* A scope without a deadline: its closer runs the task. */
static inline int scene_scope_hosts(void *arg)
{
    struct shortage *s = arg;
    blitz_scope scope;
    CHECK_EQ(blitz_scope_open(&scope, NULL, BLITZ_FOREVER), 0);
    bz_fault_shut(&s->fault, true);
    shortage_occupy(s);
    (void)shortage_accepted(s, blitz_scope_spawn(&scope, shortage_nap, NULL, NULL));
    shortage_occupy(s);
    CHECK_EQ(blitz_scope_close(&scope), 0);
    return 0;
}

/* A join without a deadline runs a task that a worker took out of its queue without success. */
static inline int scene_join_hosts(void *arg)
{
    int result = 0;
    blitz_task *x = shortage_spawn(arg, shortage_nap, NULL);
    CHECK_EQ(blitz_sleep(3 * BLITZ_MS), 0);
    if (x == NULL)
        return 0;
    CHECK_EQ(blitz_task_join(x, &result, BLITZ_FOREVER), 0);
    CHECK_EQ(result, 5);
    return 0;
}

/* The same as a future. */
static inline int scene_linked_join_hosts(void *arg)
{
    blitz_join_future f;
    blitz_task *x = shortage_spawn(arg, shortage_nap, NULL);
    if (x == NULL)
        return 0;
    blitz_task_join_linked_future_init(&f, x);
    CHECK_EQ(blitz_await(&f.future, BLITZ_FOREVER), 0);
    CHECK_EQ(f.value, 5);
    return 0;
}

/* A cancelled task ends, although each task that waits for it has a deadline and may not run it. */
static inline int scene_cancelled_ends(void *arg)
{
    struct shortage *s = arg;
    int result = 0;
    blitz_task *x = shortage_spawn(s, shortage_wait, &s->never);
    CHECK_EQ(blitz_sleep(3 * BLITZ_MS), 0);
    if (x == NULL)
        return 0;
    blitz_task_cancel(x);
    CHECK_EQ(blitz_task_join(x, &result, shortage_patience()), 0);
    CHECK_EQ(result, -ECANCELED);
    return 0;
}

static inline int shortage_join(void *task)
{
    int result = 0;
    CHECK_EQ(blitz_task_join(task, &result, BLITZ_FOREVER), 0);
    return result;
}

/* A cancelled task on the kept stack that joins another task without a stack. */
static inline int scene_cancelled_joins(void *arg)
{
    struct shortage *s = arg;
    int result = 0;
    blitz_task *y, *x = shortage_spawn(s, shortage_wait, &s->never);
    CHECK(x != NULL || !s->is_sure);
    if (x == NULL)
        return 0;
    int err = blitz_spawn(shortage_join, x, NULL, &y);
    if (!shortage_accepted(s, err)) {
        blitz_task_cancel(x);
        return shortage_join(x) == -ECANCELED ? 0 : 1;
    }
    shortage_occupy(s);
    CHECK_EQ(blitz_sleep(3 * BLITZ_MS), 0);
    blitz_task_cancel(y);
    CHECK_EQ(blitz_task_join(y, &result, shortage_patience()), 0);
    CHECK_EQ(result, -ECANCELED);
    return 0;
}

struct shortage_polled {
    blitz_sleep_future sleep;
    int polls;
};

static inline blitz_poll shortage_poll(void *state, blitz_cx *cx)
{
    struct shortage_polled *p = state;
    if (p->polls++ == 0)
        blitz_sleep_until_future_init(&p->sleep, blitz_after(BLITZ_MS));
    if (p->sleep.future.ops->poll(&p->sleep.future, cx->waker) == BLITZ_PENDING)
        return BLITZ_PENDING;
    cx->result = 5;
    return BLITZ_READY;
}

/* A stackless task is polled at its deadline. */
static inline int scene_stackless_deadline(void *arg)
{
    struct shortage *s = arg;
    struct shortage_polled p = {.polls = 0};
    blitz_task *x;
    int result = 0;
    bz_fault_shut(&s->fault, true);
    shortage_occupy(s);
    int err = blitz_spawn_poll(shortage_poll, &p, sizeof p, NULL, &x);
    if (!shortage_accepted(s, err))
        return 0;
    shortage_occupy(s);
    CHECK_EQ(blitz_task_join(x, &result, shortage_patience()), 0);
    CHECK_EQ(result, 5);
    return 0;
}

/* A pinned future over several tasks: each is cancelled and runs, on any stack. */
static inline int scene_all_cancelled(void *arg)
{
    struct shortage *s = arg;
    enum { N = 3 };
    blitz_task *x[N];
    blitz_join_future join[N];
    blitz_future *f[N];
    size_t n = 0;
    bz_fault_shut(&s->fault, true);
    shortage_occupy(s);
    for (int i = 0; i < N; i++)
        n += shortage_accepted(s, blitz_spawn(shortage_wait, &s->never, NULL, &x[n]));
    shortage_occupy(s);
    for (size_t i = 0; i < n; i++) {
        blitz_task_join_linked_future_init(&join[i], x[i]);
        f[i] = &join[i].future;
    }
    if (n == 0)
        return 0;
    int err = blitz_all_of(f, n, blitz_after(3 * BLITZ_MS));
    CHECK(err == -ETIMEDOUT || err == -ECANCELED);
    for (size_t i = 0; i < n; i++)
        CHECK_EQ(join[i].value, -ECANCELED);
    return 0;
}

/* Tasks that no fiber may run, on procs that have no stack: they run when a stack of another proc is free. */
static inline int scene_stacks_come_back(void *arg)
{
    struct shortage *s = arg;
    enum { N = 24 };
    blitz_task *x[N];
    size_t n = 0;
    bz_fault_shut(&s->fault, true);
    for (unsigned i = 0; i < N; i++) {
        blitz_spawn_opts opts = {.proc = 1 + i % blitz_worker_count()};
        n += shortage_accepted(s, blitz_spawn(shortage_nap, NULL, &opts, &x[n]));
    }
    for (size_t i = 0; i < n; i++)
        CHECK_EQ(blitz_task_join(x[i], NULL, shortage_patience()), 0);
    return 0;
}

static inline int shortage_nothing(void *arg)
{
    (void)arg;
    blitz_yield();
    return 0;
}

/* Procs without work hold no stack: each is with a task that waits, or kept. */
static inline int scene_sleepers_hold_none(void *arg)
{
    struct shortage *s = arg;
    struct bz_runtime *rt = bz_machine_self()->rt;
    blitz_task *t[8];
    for (size_t i = 0; i < BZ_ARRAY_LEN(t); i++)
        CHECK_EQ(blitz_spawn(shortage_nothing, NULL, NULL, &t[i]), 0);
    for (size_t i = 0; i < BZ_ARRAY_LEN(t); i++)
        CHECK_EQ(blitz_task_join(t[i], NULL, shortage_patience()), 0);
    CHECK_EQ(blitz_sleep(BLITZ_MS), 0); /* idle procs go to sleep, with what they have */
    bz_fault_shut(&s->fault, true);
    blitz_deadline until = shortage_patience();
    for (;;) {
        CHECK_LT(s->sleepers, BZ_ARRAY_LEN(s->sleeper));
        int err = blitz_spawn(shortage_wait, &s->never, NULL, &s->sleeper[s->sleepers]);
        s->sleepers += err == 0;
        CHECK_EQ(blitz_sleep(BLITZ_MS), 0); /* it begins */
        if (err == -ENOMEM && bz_stack_pool_used(&rt->stacks) == BZ_KEPT + 1 + s->sleepers)
            return 0;
        CHECK_LT(blitz_now(), until);
    }
}

static const struct {
    const char *name;
    int (*fn)(void *);
} shortage_scenes[] = {
    {"scope_deadline", scene_scope_deadline},
    {"scope_hosts", scene_scope_hosts},
    {"join_hosts", scene_join_hosts},
    {"linked_join_hosts", scene_linked_join_hosts},
    {"cancelled_ends", scene_cancelled_ends},
    {"cancelled_joins", scene_cancelled_joins},
    {"stackless_deadline", scene_stackless_deadline},
    {"all_cancelled", scene_all_cancelled},
    {"stacks_come_back", scene_stacks_come_back},
    {"sleepers_hold_none", scene_sleepers_hold_none},
};

/* ---- playing ---- */

struct shortage_part {
    struct shortage *s;
    int (*fn)(void *);
};

/* The scene, and its end: stacks are available again, and the sleepers end. */
static inline int shortage_main(void *arg)
{
    struct shortage_part *part = arg;
    struct shortage *s = part->s;
    s->sleepers = 0;
    blitz_event_init(&s->never);
    CHECK_EQ(part->fn(s), 0);
    bz_fault_shut(&s->fault, false);
    blitz_event_set(&s->never);
    for (size_t i = 0; i < s->sleepers; i++)
        CHECK_EQ(blitz_task_join(s->sleeper[i], NULL, BLITZ_FOREVER), 0);
    return 0;
}

/* Play a scene in a runtime of its own, with stacks of 8 MiB: there are one or two in a slab. */
static inline void shortage_play(struct shortage *s, const struct bz_os *os, unsigned procs,
                                 int (*fn)(void *))
{
    struct bz_fault_plan plan = {.kind = BZ_FAULT_RESERVE};
    blitz_runtime_opts config = {.procs = procs, .stack_bytes = (size_t)8 << 20};
    struct shortage_part part = {s, fn};
    struct bz_runtime *rt;
    bz_fault_init(&s->fault, os, NULL, &plan);
    s->is_sure = procs == 1;
    CHECK_EQ(bz_runtime_new(&s->fault.os, &config, &rt), 0);
    CHECK_EQ(blitz_runtime_block_on((blitz_runtime *)rt, shortage_main, &part), 0);
    CHECK_EQ(blitz_runtime_shutdown((blitz_runtime *)rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref((blitz_runtime *)rt), 0);
    struct bz_fault_books left = bz_fault_books(&s->fault);
    CHECK_EQ(left.threads, 0);
    CHECK_EQ(left.slabs, 0);
}

#endif
