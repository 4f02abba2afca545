/*
 * calls.h - the scenes of blocking calls: on the runtime of the round, and on one that is stopped meanwhile.
 *
 * calls: each party calls functions on a pool thread, in place, between syscall marks and on a large stack.
 * A function whose caller stays is called once, and its result is the call's. A function whose caller
 * leaves is called at most once. The argument goes back to the caller or to the drop function, once. The same holds for a
 * call with a handle, which is waited for, cancelled or left.
 *
 * stop: parties spawn tasks on a second runtime, join them, and run functions there. Some of those tasks make
 * blocking calls that wait for a gate. A plain thread stops the runtime: by a shutdown, after it has opened
 * the gate, or by blitz_runtime_abandon(), and then the gate is opened when the abandon has returned, or when
 * the runtime was released. So an abandon that waits for such a call hangs. A task that was spawned has
 * ended when the stop returns.
 */
#ifndef MIX_CALLS_H
#define MIX_CALLS_H

#include "support/mix/party.h"

/* Make a runtime beside that of the round. */
static blitz_runtime *mix_runtime_new(unsigned procs);

enum { CALLS_EACH = 8 };

/* The argument of a call. */
struct calls_slot {
    struct t_rng dice;
    struct mix_count calls; /* of the function */
    struct mix_count gone;  /* given back to the caller, or dropped */
    bool is_used;
    bool has_returned; /* the caller has the result */
    unsigned kind;     /* stop */
};

static struct {
    struct calls_slot slot[MIX_PARTIES][CALLS_EACH];
    blitz_wait_group open; /* arguments that are in use */
} calls;

static void calls_clear(void)
{
    memset(&calls, 0, sizeof calls);
    blitz_wait_group_init(&calls.open);
}

/* p->scratch[0]: the number of slots that the party has used. */
static struct calls_slot *calls_take_slot(struct mix_party *p)
{
    struct calls_slot *s = &calls.slot[p->index][p->scratch[0]++];
    s->dice = mix_dice_of(t_rng_next(&p->dice), 0);
    s->is_used = true;
    CHECK_EQ(blitz_wait_group_add(&calls.open, 1), 0);
    return s;
}

static int calls_result(const struct calls_slot *s)
{
    return (int)(s - calls.slot[0]) + 1;
}

static void calls_drop(void *slot, void *ctx)
{
    struct calls_slot *s = slot;
    (void)ctx;
    CHECK_EQ(mix_add(&s->gone, 1), 1); /* else it was given back twice */
    CHECK_EQ(blitz_wait_group_done(&calls.open), 0);
}

/* The caller has the result. */
static void calls_return(struct calls_slot *s)
{
    CHECK_EQ(mix_get(&s->calls), 1);
    s->has_returned = true;
    calls_drop(s, NULL);
}

/* Wait until no argument is in use, and look at each. */
static void calls_end(struct mix_round *r)
{
    CHECK_EQ(blitz_wait_group_wait(&calls.open, BLITZ_FOREVER), 0);
    for (unsigned i = 0; i < r->count; i++)
        for (unsigned k = 0; k < CALLS_EACH; k++) {
            struct calls_slot *s = &calls.slot[i][k];
            CHECK_EQ(mix_get(&s->gone), s->is_used);
            CHECK_LE(mix_get(&s->calls), 1);
            CHECK_GE(mix_get(&s->calls), s->has_returned);
        }
}

/* ---- calls on the runtime of the round ---- */

static int calls_fn(void *slot)
{
    struct calls_slot *s = slot;
    CHECK_EQ(mix_add(&s->calls, 1), 1); /* else it was called twice */
    mix_pause_here(mix_die(&s->dice, 3) * mix_die(&s->dice, 20) * BLITZ_US);
    return calls_result(s);
}

/* ---- a call with a handle: op->of is the runtime, op->pointer the handle ---- */

static void mix_offload_start(struct mix_op *op)
{
    blitz_offload *o;
    blitz_offload_opts opts = {.runtime = op->of, .drop = op->drop};
    CHECK_EQ(blitz_offload_start(op->fn, op->with, &opts, &o), 0);
    op->pointer = o;
}

/* Release the handle. A caller that leaves may try to cancel the call first: then it has the argument. */
static int mix_offload_end(struct mix_op *op, int rc, int value)
{
    if (rc != 0 && op->is_now && blitz_offload_cancel(op->pointer) == 0)
        op->drop(op->with, NULL);
    blitz_offload_unref(op->pointer);
    return rc == 0 ? value : rc;
}

static int mix_offload_call(struct mix_op *op, blitz_deadline until)
{
    int value = 0;
    mix_offload_start(op);
    int rc = blitz_offload_wait(op->pointer, &value, until);
    return mix_offload_end(op, rc, value);
}
static blitz_future *mix_offload_future(struct mix_op *op)
{
    mix_offload_start(op);
    blitz_offload_wait_future_init(&op->f.offload, op->pointer);
    return &op->f.offload.future;
}
static int mix_offload_result(struct mix_op *op, int rc)
{
    return mix_offload_end(op, rc, op->f.offload.value);
}
static const struct mix_verb mix_offload = {
    "offload", mix_offload_call, mix_offload_future, mix_offload_result, 0, 0};

static void calls_make(struct mix_round *r)
{
    calls_clear();
    for (uint64_t n = 1 + mix_die(&r->dice, 8); n > 0; n--)
        mix_join_in(r, 0, mix_one_in(&r->dice, 2))->left =
            1 + (unsigned)mix_die(&r->dice, CALLS_EACH);
}

static bool calls_next(struct mix_party *p)
{
    static const struct mix_verb *const verbs[] = {&mix_blocking, &mix_blocking,  &mix_blocking,
                                                   &mix_in_place, &mix_big_stack, &mix_syscall,
                                                   &mix_offload,  &mix_offload};
    if (p->left-- == 0)
        return false;
    p->op.fn = calls_fn;
    p->op.with = calls_take_slot(p);
    p->op.drop = calls_drop;
    p->op.polled = 0;
    p->op.is_now = mix_one_in(&p->dice, 2);
    mix_begin(p, verbs[mix_die(&p->dice, 8)], p->round->rt);
    return true;
}

static void calls_done(struct mix_party *p, int rc)
{
    struct calls_slot *s = p->op.with;
    if (rc >= 0) {
        CHECK_EQ(rc, calls_result(s));
        calls_return(s);
        return;
    }
    CHECK(rc == -ETIMEDOUT || rc == -ECANCELED);
    if (p->op.verb == &mix_offload)
        return; /* it was started before the wait, and its handle has seen to the argument */
    CHECK_EQ(p->op.verb, &mix_blocking);
    if (p->op.polled == 0) /* it has not begun */
        calls_drop(s, NULL);
}

static const struct mix_scene mix_scene_calls = {"calls",    2,    calls_make, calls_next,
                                                 calls_done, NULL, calls_end};

/* ---- a runtime that is stopped ---- */

enum { STOP_STOPS, STOP_SPAWNS, STOP_RUNS };
enum { STOP_SLEEPS, STOP_CALLS, STOP_POLLED, STOP_KINDS };

static struct {
    blitz_runtime *rt;
    blitz_event gate;
    struct mix_count live; /* tasks of the runtime */
    bool is_abandoned;     /* else it is shut down */
    bool is_gate_late;     /* the gate opens when the runtime was released */
} stop;

static int stop_call_fn(void *slot)
{
    struct calls_slot *s = slot;
    CHECK_EQ(mix_add(&s->calls, 1), 1);
    CHECK_EQ(blitz_event_wait(&stop.gate, BLITZ_FOREVER), 0);
    return calls_result(s);
}

/* A call that this task leaves when the runtime stops, or before. */
static void stop_call(struct calls_slot *s)
{
    blitz_blocking_future f;
    blitz_blocking_opts opts = {.drop = calls_drop};
    uint64_t ns = mix_die(&s->dice, 50) * BLITZ_US;
    blitz_blocking_future_init(&f, stop_call_fn, s, &opts);
    int rc = blitz_await(&f.future, mix_one_in(&s->dice, 2) ? BLITZ_FOREVER : blitz_after(ns));
    CHECK(rc == 0 || rc == -ETIMEDOUT || rc == -ECANCELED);
    if (rc != 0)
        return;
    CHECK_EQ(f.result, calls_result(s));
    calls_return(s);
}

static int stop_task(void *slot)
{
    struct calls_slot *s = slot;
    int result = calls_result(s);
    if (s->kind == STOP_CALLS) {
        stop_call(s);
    } else {
        mix_pause_here(mix_die(&s->dice, 3) * mix_die(&s->dice, 30) * BLITZ_US + 1);
        mix_add(&s->calls, 1);
        calls_return(s);
    }
    mix_add(&stop.live, -1);
    return result;
}

static blitz_poll stop_polled(void *state, blitz_cx *cx)
{
    struct calls_slot *s = *(struct calls_slot **)state;
    if (mix_die(&s->dice, 4) != 0)
        return blitz_cx_yield(cx);
    cx->result = calls_result(s);
    mix_add(&s->calls, 1);
    calls_return(s);
    mix_add(&stop.live, -1);
    return BLITZ_READY;
}

static void stop_make(struct mix_round *r)
{
    calls_clear();
    memset(&stop, 0, sizeof stop);
    stop.rt = mix_runtime_new(1 + (unsigned)mix_die(&r->dice, 2));
    blitz_event_init(&stop.gate);
    stop.is_abandoned = !mix_one_in(&r->dice, 4);
    stop.is_gate_late = stop.is_abandoned && mix_one_in(&r->dice, 2);
    struct mix_party *stopper = mix_join_in(r, STOP_STOPS, true);
    stopper->is_thread = true;
    stopper->left = 2;
    for (uint64_t n = 1 + mix_die(&r->dice, 5); n > 0; n--)
        mix_join_in(r, mix_one_in(&r->dice, 4) ? STOP_RUNS : STOP_SPAWNS, mix_one_in(&r->dice, 2))
            ->left = 1 + (unsigned)mix_die(&r->dice, CALLS_EACH);
    mix_say(r, " %s%s", stop.is_abandoned ? "abandoned" : "shut down",
            stop.is_gate_late ? ", a late gate" : "");
}

static int mix_stop_call(struct mix_op *op, blitz_deadline until)
{
    return stop.is_abandoned ? blitz_runtime_abandon(op->of, until)
                             : blitz_runtime_shutdown(op->of, until);
}
static const struct mix_verb mix_stop = {"stop", mix_stop_call, NULL, NULL, 0, 0};

static int mix_run_call(struct mix_op *op, blitz_deadline until)
{
    (void)until;
    return blitz_runtime_block_on(op->of, stop_task, op->with);
}
static const struct mix_verb mix_run = {"block on", mix_run_call, NULL, NULL, 0, 0};

/* Undo what was booked for a task that did not start. */
static void stop_refused(struct calls_slot *s)
{
    mix_add(&stop.live, -1);
    calls_drop(s, NULL);
}

/* Start a task of a random kind. NULL: the runtime has stopped. */
static blitz_task *stop_spawn(struct calls_slot *s)
{
    blitz_spawn_opts opts = {.runtime = stop.rt, .name = "stopped"};
    blitz_task *t;
    int rc = s->kind == STOP_POLLED ? blitz_spawn_poll(stop_polled, &s, sizeof s, &opts, &t)
                                    : blitz_spawn(stop_task, s, &opts, &t);
    CHECK(rc == 0 || rc == -ESHUTDOWN);
    return rc == 0 ? t : NULL;
}

static bool stop_next(struct mix_party *p)
{
    if (p->left == 0)
        return false;
    p->op.n = mix_die(&p->dice, 4) * mix_die(&p->dice, 20) * BLITZ_US;
    if (p->role == STOP_STOPS) {
        mix_begin(p, p->left == 2 ? &mix_pause : &mix_stop, stop.rt);
        return true;
    }
    struct calls_slot *s = calls_take_slot(p);
    p->left--;
    s->kind = (unsigned)mix_die(&p->dice, p->role == STOP_RUNS ? STOP_POLLED : STOP_KINDS);
    mix_add(&stop.live, 1);
    p->op.with = s;
    p->op.is_biased = mix_one_in(&p->dice, 3);
    if (p->role == STOP_RUNS) {
        mix_begin(p, &mix_run, stop.rt);
        return true;
    }
    blitz_task *t = stop_spawn(s);
    if (t == NULL)
        stop_refused(s);
    else
        mix_begin(p, &mix_join, t);
    return t != NULL;
}

static void stop_done(struct mix_party *p, int rc)
{
    struct calls_slot *s = p->op.with;
    if (p->role == STOP_STOPS && p->left == 2) {
        p->left = 1;
        if (!stop.is_abandoned)
            blitz_event_set(&stop.gate);
    } else if (p->role == STOP_STOPS) {
        CHECK(rc == 0 || rc == -ETIMEDOUT);
        p->left = rc != 0;
        if (rc == 0 && !stop.is_gate_late)
            blitz_event_set(&stop.gate);
    } else if (p->role == STOP_RUNS) {
        CHECK(rc == (p->kind == MIX_THREAD ? calls_result(s) : -EBUSY) || rc == -ESHUTDOWN);
        if (rc < 0)
            stop_refused(s);
    } else if (rc == 0) {
        CHECK_EQ(p->op.n, (uint64_t)calls_result(s));
    } else {
        CHECK(rc == -ETIMEDOUT || rc == -ECANCELED);
        blitz_task_detach(p->op.of);
    }
}

static void stop_check(struct mix_round *r)
{
    CHECK_EQ(mix_get(&stop.live), 0); /* else a task outlives the stop */
    CHECK_EQ(blitz_runtime_unref(stop.rt), 0);
    blitz_event_set(&stop.gate);
    calls_end(r);
}

static const struct mix_scene mix_scene_stop = {"stop",    1,    stop_make, stop_next,
                                                stop_done, NULL, stop_check};

#endif
