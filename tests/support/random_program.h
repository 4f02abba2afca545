/*
 * random_program.h - random programs on the whole scheduler: a tree of tasks, fibers and stackless
 * ones. Each task chooses at random: it spawns (anywhere, or on a given proc), joins with and
 * without a deadline or only tries, shares handles, cancels and detaches. It yields, sleeps, waits
 * for events, forks, shields, sets locals and burns. Plain threads do the same from outside.
 *
 * The actions of a task depend only on its number, not on the schedule, so that one seed is one
 * program. Invariants: the program ends, every spawned task runs exactly once and returns the
 * result for its number, and every wait returns an allowed result.
 *
 *     struct program p = {seed, procs, outsiders};
 *     play_program(os, &p);
 */
#ifndef T_RANDOM_PROGRAM_H
#define T_RANDOM_PROGRAM_H

#include "base/rng.h"
#include "blitz.h"
#include "os/self.h"
#include "park/await.h"
#include "proc/state.h"
#include "runtime/runtime.h"
#include "support/event.h"

/* How a program computes for a while; set by the test. */
static void program_burn(uint64_t ns);

enum { HANDLES = 4, DEPTH_BITS = 3, TASKS_MAX = 150 };

static bz_atomic(int) locals_set, locals_gone;
static bz_atomic(int) spawned, ended, budget; /* atomic for readers: one writer at a time */

/* A task's argument is its number and how deep its tree may go on, in one word: it owns nothing. */
static void *task_arg(uint64_t number, unsigned depth)
{
    return (void *)((uintptr_t)(number & 0xffffffff) << DEPTH_BITS | depth);
}

static int result_of(const void *arg)
{
    return (int)(((uintptr_t)arg >> DEPTH_BITS) * 2654435761u % 1000003);
}

struct self {
    struct bz_rng dice;
    unsigned depth;
    blitz_runtime *rt; /* NULL: that of the task; else we are a thread from outside */
    const struct bz_os *os;
    unsigned procs;
    bool is_job; /* sets no locals: others may be out, and look */
    int held;
    blitz_task *handle[HANDLES];
    void *arg[HANDLES];
};

static int node(void *arg);
static int job_node(void *arg);

static uint64_t die(struct self *s, uint64_t sides)
{
    return bz_rng_below(&s->dice, (uint32_t)sides);
}

/* A new task, unless there are too many already. */
static bool spawn(struct self *s, int (*fn)(void *), void *arg, blitz_task **out)
{
    blitz_spawn_opts opts = {.runtime = s->rt, .name = "node"};
    if (die(s, 8) == 0)
        opts.proc = BLITZ_ON_PROC(die(s, s->procs));
    int err = blitz_spawn(fn, arg, &opts, out);
    if (err != 0)
        CHECK_EQ(err, -ESHUTDOWN);
    return err == 0;
}

/* A stackless task: its task, and its number of polls. */
struct polled {
    void *arg;
    struct bz_rng dice;
    int left;
};

static blitz_poll poll_node(void *state, blitz_cx *cx);

static bool spawn_polled(struct self *s, void *arg, blitz_task **out)
{
    blitz_spawn_opts opts = {.runtime = s->rt, .name = "poll"};
    struct polled state = {.arg = arg, .left = (int)die(s, 4)};
    bz_rng_init(&state.dice, (uint64_t)(uintptr_t)arg);
    int err = blitz_spawn_poll(poll_node, &state, sizeof state, &opts, out);
    if (err != 0)
        CHECK_EQ(err, -ESHUTDOWN);
    return err == 0;
}

static bool may_grow(struct self *s)
{
    return s->depth > 0 && bz_fetch_sub_relaxed(&budget, 1) > 0;
}

static void act_spawn(struct self *s)
{
    if (s->held == HANDLES || !may_grow(s))
        return;
    void *arg = task_arg(bz_rng_next(&s->dice), s->depth - 1);
    bool is_detached = die(s, 4) == 0;
    bz_fetch_add_relaxed(&spawned, 1);
    blitz_task **out = is_detached ? NULL : &s->handle[s->held];
    if (!(die(s, 3) == 0 ? spawn_polled(s, arg, out) : spawn(s, node, arg, out)))
        bz_fetch_sub_relaxed(&spawned, 1);
    else if (!is_detached)
        s->arg[s->held++] = arg;
}

static void forget(struct self *s, int i)
{
    s->held--;
    s->handle[i] = s->handle[s->held];
    s->arg[i] = s->arg[s->held];
}

static void act_join(struct self *s, bool has_deadline)
{
    if (s->held == 0)
        return;
    int i = (int)die(s, (uint64_t)s->held), result = -1;
    blitz_deadline until = has_deadline ? bz_os_now(s->os) + die(s, 3) * BLITZ_MS : BLITZ_FOREVER;
    int err = blitz_task_join(s->handle[i], &result, until);
    if (err != 0) {
        CHECK(has_deadline && (err == -ETIMEDOUT || err == -ECANCELED));
        return;
    }
    CHECK_EQ(result, result_of(s->arg[i]));
    forget(s, i);
}

static void act_cancel(struct self *s)
{
    if (s->held > 0)
        blitz_task_cancel(s->handle[die(s, (uint64_t)s->held)]);
}

static void act_detach(struct self *s)
{
    if (s->held == 0)
        return;
    int i = (int)die(s, (uint64_t)s->held);
    blitz_task_detach(s->handle[i]);
    forget(s, i);
}

static void act_try(struct self *s)
{
    if (s->held == 0)
        return;
    int i = (int)die(s, (uint64_t)s->held), result = -1;
    int err = blitz_task_try_join(s->handle[i], &result);
    CHECK(err == 0 || err == -EAGAIN);
    if (err != 0)
        return;
    CHECK_EQ(result, result_of(s->arg[i]));
    forget(s, i);
}

/* A second handle: the second joiner gets the same result. */
static void act_share(struct self *s)
{
    if (s->held == 0)
        return;
    int i = (int)die(s, (uint64_t)s->held), result = -1;
    blitz_task *other = blitz_task_ref(s->handle[i]);
    int err = die(s, 2) ? -EAGAIN
                        : blitz_task_join(other, &result, bz_os_now(s->os) + die(s, 2) * BLITZ_MS);
    if (err != 0)
        blitz_task_detach(other);
    else
        CHECK_EQ(result, result_of(s->arg[i]));
}

static int set_it(void *event)
{
    t_event_set(event);
    return 7;
}

/* Another task will set it; a waiter may time out first, but must not end before. */
static void act_event(struct self *s)
{
    struct t_event e;
    blitz_task *setter;
    int result = 0;
    t_event_init(&e, s->os);
    if (!spawn(s, set_it, &e, &setter))
        return;
    blitz_deadline until = die(s, 2) ? bz_os_now(s->os) + die(s, 200) * BLITZ_US : BLITZ_FOREVER;
    int err = bz_await(s->os, &e.f, until);
    CHECK(err == 0 || err == -ECANCELED || (err == -ETIMEDOUT && until != BLITZ_FOREVER));
    CHECK_EQ(blitz_task_join(setter, &result, BLITZ_FOREVER), 0);
    CHECK_EQ(result, 7);
}

/* ---- only inside a task ---- */

static void act_fork(struct self *s)
{
    blitz_job job[2];
    void *arg[2];
    int n = 1 + (int)die(s, 2);
    if (!may_grow(s))
        return;
    for (int i = 0; i < n; i++) {
        arg[i] = task_arg(bz_rng_next(&s->dice), s->depth - 1);
        bz_fetch_add_relaxed(&spawned, 1);
        blitz_fork(&job[i], job_node, arg[i]);
    }
    if (die(s, 2))
        blitz_yield();
    for (int i = n - 1; i >= 0; i--)
        CHECK_EQ(blitz_join(&job[i]), result_of(arg[i]));
}

static void act_sleep(struct self *s)
{
    int err = blitz_sleep(die(s, 1500) * BLITZ_US);
    CHECK(err == 0 || err == -ECANCELED);
}

static void local_gone(void *value, void *ctx)
{
    (void)ctx;
    (void)value;
    bz_fetch_add_relaxed(&locals_gone, 1);
    if (bz_load_relaxed(&locals_gone) % 3 == 0)
        blitz_yield(); /* a destructor may wait */
}

static void act_local(struct self *s)
{
    static const blitz_local_key key = {local_gone, NULL};
    static char values[4];
    void *value = &values[die(s, BZ_ARRAY_LEN(values))];
    if (s->is_job)
        return;
    bool is_new = blitz_local_get(&key) != value;
    if (is_new)
        bz_fetch_add_relaxed(&locals_set, 1);
    CHECK_EQ(blitz_local_set(&key, value), 0);
}

static void act_shielded(struct self *s)
{
    blitz_shield();
    CHECK(!blitz_is_cancelled());
    CHECK_EQ(blitz_sleep(die(s, 300) * BLITZ_US), 0);
    blitz_unshield();
}

static void act(struct self *s)
{
    switch (die(s, s->rt != NULL ? 10 : 17)) {
    case 0:
    case 1:
    case 2:
        act_spawn(s);
        break;
    case 3:
        act_join(s, false);
        break;
    case 4:
        act_join(s, true);
        break;
    case 5:
        act_cancel(s);
        break;
    case 6:
        act_detach(s);
        break;
    case 7:
        act_event(s);
        break;
    case 8:
        act_try(s);
        break;
    case 9:
        act_share(s);
        break;
    case 10:
        act_sleep(s);
        break;
    case 11:
        act_shielded(s);
        break;
    case 12:
        program_burn(die(s, 300) * BLITZ_US);
        break;
    case 13:
    case 14:
        act_fork(s);
        break;
    case 15:
        act_local(s);
        break;
    default:
        blitz_yield();
    }
}

static void live(struct self *s)
{
    for (uint64_t i = 2 + die(s, 5); i > 0; i--)
        act(s);
    while (s->held > 0)
        act_join(s, false);
}

static int run_node(void *arg, bool is_job)
{
    struct bz_runtime *rt = bz_machine_self()->rt;
    struct self s = {.depth = (unsigned)((uintptr_t)arg & ((1 << DEPTH_BITS) - 1)),
                     .os = rt->os,
                     .procs = rt->proc_count,
                     .is_job = is_job};
    bz_rng_init(&s.dice, (uint64_t)(uintptr_t)arg);
    live(&s);
    bz_fetch_add_relaxed(&ended, 1);
    return result_of(arg);
}

static int node(void *arg)
{
    return run_node(arg, false);
}

static int job_node(void *arg)
{
    return run_node(arg, true);
}

static int wake_and_free(void *waker)
{
    blitz_waker_wake(waker);
    free(waker);
    return 0;
}

/* Another task will wake this one, once. */
static blitz_poll wait_for_a_waker(blitz_cx *cx)
{
    blitz_waker *w = malloc(sizeof *w);
    CHECK_NOT_NULL(w);
    *w = blitz_waker_clone(cx->waker);
    if (blitz_spawn(wake_and_free, w, NULL, NULL) != 0)
        wake_and_free(w); /* the runtime is shutting down */
    return BLITZ_PENDING;
}

/* As often as it likes it waits without a stack, in one of three ways; at the end it lives like any
 * other node, and so with one. */
static blitz_poll poll_node(void *state, blitz_cx *cx)
{
    struct polled *p = state;
    if (p->left-- > 0) {
        switch (bz_rng_below(&p->dice, 3)) {
        case 0:
            return blitz_cx_yield(cx);
        case 1:
            return wait_for_a_waker(cx);
        default:
            blitz_yield(); /* with a stack: may take a wake that was meant for the poll */
            return wait_for_a_waker(cx);
        }
    }
    cx->result = node(p->arg);
    return BLITZ_READY;
}

/* ---- the whole ---- */

struct program {
    uint64_t seed;
    unsigned procs;
    int outsiders;
};

struct outsider {
    struct bz_os_thread thread;
    struct self self;
};

static void outside_main(void *arg)
{
    live(&((struct outsider *)arg)->self);
}

static void outsider_start(struct outsider *o, const struct bz_os *os, struct bz_runtime *rt,
                           uint64_t seed)
{
    o->self =
        (struct self){.depth = 3, .rt = (blitz_runtime *)rt, .os = os, .procs = rt->proc_count};
    bz_rng_init(&o->self.dice, seed);
    CHECK_EQ(bz_os_thread_start(os, &o->thread, NULL, outside_main, o), 0);
}

static void play_program(const struct bz_os *os, void *arg)
{
    const struct program *p = arg;
    struct outsider outsider[2];
    struct bz_runtime *rt;
    void *first = task_arg(p->seed, 4);
    bz_store_relaxed(&spawned, 1);
    bz_store_relaxed(&ended, 0);
    bz_store_relaxed(&locals_set, 0);
    bz_store_relaxed(&locals_gone, 0);
    bz_store_relaxed(&budget, TASKS_MAX);
    CHECK_EQ(bz_runtime_new(os, &(blitz_runtime_opts){.procs = p->procs}, &rt), 0);
    for (int i = 0; i < p->outsiders; i++)
        outsider_start(&outsider[i], os, rt, p->seed + (uint64_t)i + 1);
    CHECK_EQ(blitz_runtime_block_on((blitz_runtime *)rt, node, first), result_of(first));
    bool is_early = p->seed >> 8 & 1; /* shutdown while the outside threads are active */
    if (is_early)
        CHECK_EQ(blitz_runtime_shutdown((blitz_runtime *)rt, BLITZ_FOREVER), 0);
    for (int i = 0; i < p->outsiders; i++)
        CHECK_EQ(bz_os_thread_join(os, &outsider[i].thread), 0);
    CHECK_EQ(blitz_runtime_shutdown((blitz_runtime *)rt, BLITZ_FOREVER), 0);
    CHECK_EQ(bz_load_relaxed(&ended), bz_load_relaxed(&spawned));
    CHECK_EQ(bz_load_relaxed(&locals_gone), bz_load_relaxed(&locals_set));
    CHECK_EQ(blitz_runtime_unref((blitz_runtime *)rt), 0);
}

#endif
