/*
 * combine_program.h - random programs over combinators. A fiber, a stackless task or a plain thread
 * awaits a tree of races, alls, timeouts, maps, thens and lazies over probes, sleeps and promises.
 * The wait may have a deadline and may be cancelled, while tasks and threads complete the leaves.
 *
 * Invariants for every order: the wait ends. Each polled probe ends exactly once (ready, revoked or
 * abandoned), and is not polled or cancelled afterwards. Each child of a completed combinator has
 * exactly one fate. Each promise's value is taken or freed once. No waker is kept and no timer
 * stays armed (the runtime checks this at its end).
 *
 *     combine_play(os, seed, procs);
 */
#ifndef T_COMBINE_PROGRAM_H
#define T_COMBINE_PROGRAM_H

#include "base/rng.h"
#include "blitz.h"
#include "future/children.h"
#include "park/await.h"
#include "proc/state.h"
#include "runtime/runtime.h"
#include "support/probe.h"

enum { CP_NODES = 48, CP_FAN = 4, CP_SETTERS = 2 };
enum cp_kind {
    CP_PROBE,
    CP_SLEEP,
    CP_PROMISE,
    CP_RACE,
    CP_ALL,
    CP_TIMEOUT,
    CP_MAP,
    CP_THEN,
    CP_DEFER
};

struct cp_node {
    enum cp_kind kind;
    blitz_future *f;
    size_t count;
    blitz_child child[CP_FAN];
    blitz_promise *promise;
    blitz_completer *completer;
    int output;
    union {
        struct t_probe probe;
        blitz_sleep_future sleep;
        blitz_promise_future promised;
        blitz_race race;
        blitz_all all;
        blitz_timeout timeout;
        blitz_map_future map;
        blitz_then_future then;
        blitz_defer_future defer;
    } is;
};

struct cp_program {
    const struct bz_os *os;
    struct bz_rng dice;
    unsigned procs;
    struct cp_node node[CP_NODES];
    int used;
    int made, freed; /* values of promises; freed: guarded by the joins */
    bz_atomic(int) taken;
    blitz_future *root;
    blitz_deadline until;
    int result;
    blitz_task *waiter;
};

static inline uint32_t cp_die(struct cp_program *p, uint32_t sides)
{
    return bz_rng_below(&p->dice, sides);
}

static inline blitz_deadline cp_moment(struct cp_program *p)
{
    uint64_t us = cp_die(p, 60);
    return us > 55 ? BLITZ_FOREVER : bz_os_now(p->os) + us * 10 * BLITZ_US;
}

/* ---- growing a tree ---- */

static bz_atomic(int) cp_freed;

static inline void cp_free_value(void *value, void *ctx)
{
    (void)ctx;
    (void)value;
    bz_fetch_add_relaxed(&cp_freed, 1); /* relaxed: a count */
}

static inline int cp_map(void *arg, blitz_future *child)
{
    ++*(int *)arg;
    return blitz_future_output(child);
}

static inline blitz_future *cp_next(void *arg, blitz_future *first)
{
    (void)first;
    return arg;
}

static inline blitz_future *cp_make(void *arg)
{
    return arg;
}

static inline struct cp_node *cp_grow(struct cp_program *p, unsigned depth);

static inline void cp_grow_leaf(struct cp_program *p, struct cp_node *n)
{
    n->kind = (enum cp_kind)cp_die(p, 3);
    n->output = cp_die(p, 6) == 0 ? -EIO : (int)cp_die(p, 100);
    switch (n->kind) {
    case CP_SLEEP: {
        blitz_deadline when = cp_moment(p);
        blitz_sleep_until_future_init(&n->is.sleep,
                                      when == BLITZ_FOREVER ? bz_os_now(p->os) + BLITZ_MS : when);
        n->f = &n->is.sleep.future;
        break;
    }
    case CP_PROMISE:
        CHECK_EQ(blitz_promise_new(&(blitz_promise_opts){.drop = cp_free_value}, &n->promise,
                                   &n->completer),
                 0);
        blitz_promise_await_future_init(&n->is.promised, n->promise);
        n->f = &n->is.promised.future;
        break;
    default:
        t_probe_init(&n->is.probe, p->os, (blitz_class)cp_die(p, 3));
        n->f = &n->is.probe.f;
    }
}

static inline void cp_grow_children(struct cp_program *p, struct cp_node *n, size_t count,
                                    unsigned depth)
{
    n->count = count;
    for (size_t i = 0; i < count; i++)
        n->child[i] = (blitz_child){cp_grow(p, depth)->f, BLITZ_LEFT};
}

static inline void cp_grow_inner(struct cp_program *p, struct cp_node *n, unsigned depth)
{
    blitz_future *a, *b;
    switch (n->kind) {
    case CP_RACE:
        cp_grow_children(p, n, 1 + cp_die(p, CP_FAN), depth);
        CHECK_EQ(blitz_race_init(&n->is.race, n->child, n->count), 0);
        n->is.race.first = cp_die(p, CP_FAN);
        n->f = &n->is.race.future;
        break;
    case CP_ALL:
        cp_grow_children(p, n, cp_die(p, CP_FAN + 1), depth);
        CHECK_EQ(blitz_all_init(&n->is.all, n->child, n->count, (blitz_all_mode)cp_die(p, 2)), 0);
        n->f = &n->is.all.future;
        break;
    case CP_TIMEOUT:
        CHECK_EQ(blitz_timeout_init(&n->is.timeout, cp_grow(p, depth)->f, cp_moment(p)), 0);
        n->f = &n->is.timeout.future;
        break;
    case CP_MAP:
        blitz_map_future_init(&n->is.map, cp_grow(p, depth)->f, cp_map, &n->output);
        n->f = &n->is.map.future;
        break;
    case CP_THEN:
        a = cp_grow(p, depth)->f;
        b = cp_grow(p, depth)->f;
        blitz_then_future_init(&n->is.then, a, cp_next, b);
        n->f = &n->is.then.future;
        break;
    default:
        blitz_defer_future_init(&n->is.defer, cp_make, cp_grow(p, depth)->f);
        n->f = &n->is.defer.future;
    }
}

static inline struct cp_node *cp_grow(struct cp_program *p, unsigned depth)
{
    CHECK(p->used < CP_NODES);
    struct cp_node *n = &p->node[p->used++];
    *n = (struct cp_node){.output = 0};
    if (depth == 0 || p->used > CP_NODES / 2 || cp_die(p, 5) == 0) {
        cp_grow_leaf(p, n);
        return n;
    }
    n->kind = (enum cp_kind)(CP_RACE + cp_die(p, CP_DEFER - CP_RACE + 1));
    cp_grow_inner(p, n, p->used > CP_NODES / 4 ? 0 : depth - 1);
    return n;
}

/* ---- tasks and threads that complete the leaves ---- */

static inline void cp_complete(struct cp_program *p, struct cp_node *n, struct bz_rng *dice)
{
    static int value;
    (void)p;
    if (n->kind == CP_PROBE)
        t_probe_set(&n->is.probe, n->output);
    if (n->kind != CP_PROMISE)
        return;
    uint32_t how = bz_rng_below(dice, 4);
    if (how == 0)
        CHECK_EQ(blitz_completer_fail(n->completer, -EIO), 0);
    if (how > 1) {
        bz_fetch_add_relaxed(&p->taken, 1); /* relaxed: a count; made, for now */
        CHECK_EQ(blitz_completer_complete(n->completer, &value), 0);
    }
    blitz_completer_unref(n->completer); /* how == 1: dropped */
}

struct cp_setter {
    struct cp_program *p;
    unsigned part;
    uint64_t seed;
};

/* A part of the leaves, in an order of its own; a task sleeps in between, a thread does not. */
static int cp_set_some(void *arg)
{
    struct cp_setter *s = arg;
    struct bz_rng dice;
    bz_rng_init(&dice, s->seed);
    bool is_backward = bz_rng_below(&dice, 2);
    for (int n = 0; n < s->p->used; n++) {
        int i = is_backward ? s->p->used - 1 - n : n;
        if ((unsigned)i % CP_SETTERS != s->part)
            continue;
        if (bz_task_self() != NULL && bz_rng_below(&dice, 2))
            CHECK_EQ(blitz_sleep(bz_rng_below(&dice, 100) * BLITZ_US), 0);
        cp_complete(s->p, &s->p->node[i], &dice);
    }
    return 0;
}

static void cp_set_on_thread(void *arg)
{
    cp_set_some(arg);
}

/* ---- waiters ---- */

static int cp_wait(void *arg)
{
    struct cp_program *p = arg;
    p->result = bz_await(p->os, p->root, p->until);
    return 0;
}

static void cp_wait_on_thread(void *arg)
{
    cp_wait(arg);
}

struct cp_stackless {
    blitz_frame frame;
    blitz_sleep_future timer;
    struct cp_program *p;
};

static blitz_poll cp_poll(void *state, blitz_cx *cx)
{
    struct cp_stackless *s = state;
    BLITZ_BEGIN(&s->frame, cx);
    BLITZ_AWAIT_UNTIL(s->p->result, s->p->root, &s->timer, s->p->until);
    BLITZ_END(0);
}

/* ---- checks ---- */

static inline void cp_check_probe(const struct t_probe *p)
{
    bool was_given_up = p->cancels > 0 && p->f.ops->kind != BLITZ_PINNED;
    CHECK(p->waker.ops == NULL);
    CHECK_LE(p->cancels, 1);
    CHECK_EQ(p->told + was_given_up, p->polls > 0); /* exactly one end, or never begun */
}

/* A combinator's children: all as they were, or each with an end. */
static inline void cp_check_children(const blitz_child *child, size_t count)
{
    size_t unasked = 0;
    for (size_t i = 0; i < count; i++) {
        CHECK(child[i].fate != BLITZ_ASKED && child[i].fate != BLITZ_STOPPING);
        unasked += child[i].fate == BLITZ_UNASKED;
    }
    CHECK(unasked == 0 || unasked == count);
}

static inline int cp_check_node(struct cp_node *n)
{
    switch (n->kind) {
    case CP_PROBE:
        cp_check_probe(&n->is.probe);
        return 0;
    case CP_PROMISE:
        blitz_promise_unref(n->promise);
        return n->is.promised.value != NULL;
    case CP_TIMEOUT:
        cp_check_children(&n->is.timeout.child, 1);
        return 0;
    case CP_MAP:
        CHECK(n->output <= 1);
        return 0;
    default:
        cp_check_children(n->child, n->count);
        return 0;
    }
}

static inline void cp_check(struct cp_program *p)
{
    int given = 0;
    CHECK(p->result == 0 || p->result == -ETIMEDOUT || p->result == -ECANCELED);
    for (int i = 0; i < p->used; i++)
        given += cp_check_node(&p->node[i]);
    /* relaxed: all tasks have been joined */
    CHECK_EQ(given + bz_load_relaxed(&cp_freed), bz_load_relaxed(&p->taken));
}

/* ---- one program ---- */

static int cp_run(void *arg)
{
    struct cp_program *p = arg;
    struct cp_setter setter[CP_SETTERS];
    blitz_task *task[CP_SETTERS] = {NULL}, *waiter = NULL;
    struct bz_os_thread thread[CP_SETTERS], waits;
    bz_children_few =
        cp_die(p, 2) ? 0 : BLITZ_OF_MAX; /* with lists of woken children, or without */
    p->root = cp_grow(p, 3)->f;
    p->until = cp_die(p, 2) ? BLITZ_FOREVER : cp_moment(p);
    uint32_t who = cp_die(p, 3);
    struct cp_stackless state = {.frame = {0, 0}, .p = p};
    if (who == 0)
        CHECK_EQ(blitz_spawn(cp_wait, p, NULL, &waiter), 0);
    else if (who == 1)
        CHECK_EQ(blitz_spawn_poll(cp_poll, &state, sizeof state, NULL, &waiter), 0);
    else
        CHECK_EQ(bz_os_thread_start(p->os, &waits, NULL, cp_wait_on_thread, p), 0);
    bool on_threads = cp_die(p, 2) == 0;
    for (unsigned i = 0; i < CP_SETTERS; i++) {
        setter[i] = (struct cp_setter){p, i, bz_rng_next(&p->dice)};
        if (on_threads && i == 0)
            CHECK_EQ(bz_os_thread_start(p->os, &thread[i], NULL, cp_set_on_thread, &setter[i]), 0);
        else
            CHECK_EQ(blitz_spawn(cp_set_some, &setter[i], NULL, &task[i]), 0);
    }
    if (waiter != NULL && cp_die(p, 2)) {
        CHECK_EQ(blitz_sleep(cp_die(p, 200) * BLITZ_US), 0);
        blitz_task_cancel(waiter);
    }
    for (unsigned i = 0; i < CP_SETTERS; i++)
        CHECK_EQ(task[i] != NULL ? blitz_task_join(task[i], NULL, BLITZ_FOREVER)
                                 : bz_os_thread_join(p->os, &thread[i]),
                 0);
    CHECK_EQ(waiter != NULL ? blitz_task_join(waiter, NULL, BLITZ_FOREVER)
                            : bz_os_thread_join(p->os, &waits),
             0);
    cp_check(p);
    return 0;
}

static inline void combine_play(const struct bz_os *os, uint64_t seed, unsigned procs)
{
    struct cp_program *p = calloc(1, sizeof *p);
    struct bz_runtime *rt;
    CHECK_NOT_NULL(p);
    p->os = os;
    bz_rng_init(&p->dice, seed);
    bz_store_relaxed(&cp_freed, 0); /* relaxed: before any task runs */
    CHECK_EQ(bz_runtime_new(os, &(blitz_runtime_opts){.procs = procs}, &rt), 0);
    CHECK_EQ(blitz_runtime_block_on((blitz_runtime *)rt, cp_run, p), 0);
    CHECK_EQ(blitz_runtime_shutdown((blitz_runtime *)rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref((blitz_runtime *)rt), 0);
    free(p);
}

#endif
