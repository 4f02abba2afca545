/*
 * party.h - a party performs the operations of its script, in the forms that its kind allows.
 *
 *   call      the blocking call, on the stack of a fiber, a forked job or a thread; also inside
 *             the poll of a stackless task
 *   await     blitz_await() of the future; a stackless task: blitz_cx_await()
 *   timeout   a blitz_timeout around the future
 *   race      a blitz_race of the future against a sleep
 *   case      the future as one case of a select, and a time as the other
 *
 * Each future stands behind a wrapper that counts polls. A future that is polled MIX_POLLS_MAX times
 * while no party of the round ends an operation wakes itself, and fails the round.
 */
#ifndef MIX_PARTY_H
#define MIX_PARTY_H

#include "support/mix/round.h"

enum mix_form { MIX_CALL, MIX_AWAIT, MIX_TIMEOUT, MIX_RACE, MIX_CASE, MIX_FORMS };

static const char *const mix_form_name[] = {"call", "await", "timeout", "race", "case"};

/* ---- the wrapper ---- */

static inline struct mix_counted *mix_counted_of(blitz_future *f)
{
    return (struct mix_counted *)f; /* the future is the first member */
}

static void mix_count_poll(struct mix_party *p)
{
    uint64_t now = (uint64_t)mix_get(&p->round->activity);
    p->polls = now == p->seen ? p->polls + 1 : 0;
    p->seen = now;
    if (p->polls < MIX_POLLS_MAX)
        return;
    FAIL("party %u: its future was polled %u times while nothing happened", p->index, p->polls);
}

static blitz_poll mix_counted_poll(blitz_future *f, const blitz_waker *waker)
{
    struct mix_counted *c = mix_counted_of(f);
    CHECK(!c->is_ready);
    c->polls++;
    mix_count_poll(c->party);
    c->is_ready = c->inner->ops->poll(c->inner, waker) == BLITZ_READY;
    return c->is_ready ? BLITZ_READY : BLITZ_PENDING;
}

static void mix_counted_cancel(blitz_future *f)
{
    struct mix_counted *c = mix_counted_of(f);
    c->inner->ops->cancel(c->inner);
}

static int mix_counted_output(blitz_future *f)
{
    return blitz_future_output(mix_counted_of(f)->inner);
}

static void mix_counted_init(struct mix_counted *c, struct mix_party *p, blitz_future *inner)
{
    static const blitz_future_ops ops[] = {
        {"mix", BLITZ_REVOCABLE, mix_counted_poll, mix_counted_cancel, mix_counted_output},
        {"mix", BLITZ_DETACHABLE, mix_counted_poll, mix_counted_cancel, mix_counted_output},
        {"mix", BLITZ_PINNED, mix_counted_poll, mix_counted_cancel, mix_counted_output}};
    *c = (struct mix_counted){{&ops[inner->ops->kind]}, inner, p, 0, false};
}

/* ---- the future of a step, and what came of it ---- */

static void mix_wait_begin(struct mix_party *p, enum mix_form form, blitz_deadline until)
{
    struct mix_wait *w = &p->wait;
    bool is_second = mix_one_in(&p->dice, 2);
    mix_counted_init(&w->counted, p, p->op.verb->future(&p->op));
    w->until = BLITZ_FOREVER;
    w->outcome = 0;
    switch (form) {
    case MIX_TIMEOUT:
        CHECK_EQ(blitz_timeout_init(&w->timeout, &w->counted.future, until), 0);
        w->top = &w->timeout.future;
        break;
    case MIX_RACE:
        blitz_sleep_until_future_init(&w->timer, until);
        w->child[is_second] = (blitz_child){.future = &w->counted.future};
        w->child[!is_second] = (blitz_child){.future = &w->timer.future};
        CHECK_EQ(blitz_race_init(&w->race, w->child, 2), 0);
        w->top = &w->race.future;
        break;
    case MIX_CASE:
        w->cases[is_second] = blitz_case_future(&w->counted.future);
        w->cases[!is_second] = blitz_case_time(until);
        blitz_select_wait_future_init(&w->select, w->cases, 2, BLITZ_SELECT_FAIR);
        w->top = &w->select.future;
        break;
    default:
        w->top = &w->counted.future;
        w->until = until;
    }
}

/* The result of the equivalent call. rc: the result of the wait for `top`. */
static int mix_wait_end(struct mix_party *p, int rc)
{
    struct mix_wait *w = &p->wait;
    p->op.polled = w->counted.polls;
    if (w->counted.is_ready)
        rc = 0;
    else if (rc == 0)
        rc = -ETIMEDOUT;
    return p->op.verb->result(&p->op, rc);
}

/* ---- steps ---- */

/* Most operations of a patient round wait as long as it takes. */
static blitz_deadline mix_until(struct mix_party *p, enum mix_form form)
{
    if (!p->round->has_deadlines || mix_one_in(&p->dice, 3))
        return BLITZ_FOREVER;
    if (p->op.verb->is_unsure && form != MIX_CALL)
        return BLITZ_FOREVER;
    return mix_one_in(&p->dice, 8) ? 0 : blitz_after(mix_die(&p->dice, 60) * BLITZ_US);
}

static enum mix_form mix_choose_form(struct mix_party *p)
{
    const struct mix_verb *verb = p->op.verb;
    if (verb->future == NULL)
        return MIX_CALL;
    if (verb->call != NULL && mix_one_in(&p->dice, p->kind == MIX_POLLED ? 12 : 2))
        return MIX_CALL;
    return mix_one_in(&p->dice, 3) && !verb->is_needed
               ? (enum mix_form)(MIX_TIMEOUT + mix_die(&p->dice, 3))
               : MIX_AWAIT;
}

/* The next operation of the script. False: the script has ended. */
static bool mix_step_begin(struct mix_party *p)
{
    do {
        p->op.verb = NULL;
        if (p->is_over || !p->round->scene->next(p))
            return false;
    } while (p->op.verb == NULL);
    mix_add(&p->step, 1);
    bz_store_relaxed(&p->doing, p->op.verb->name); /* relaxed: for people */
    return true;
}

static void mix_step_end(struct mix_party *p, int rc)
{
    bz_store_relaxed(&p->doing, NULL); /* relaxed: for people */
    mix_add(&p->round->activity, 1);
    if (rc != -ETIMEDOUT && rc != -EAGAIN)
        mix_add(&p->round->progress, 1);
    bool is_cancelled = rc == -ECANCELED && p->op.verb != &mix_close; /* a scope may be, alone */
    CHECK(!is_cancelled || p->kind != MIX_THREAD);
    p->round->scene->done(p, rc);
    p->is_over |= is_cancelled;
}

static void mix_leave(struct mix_party *p)
{
    if (p->round->scene->leave != NULL)
        p->round->scene->leave(p);
    bz_store_relaxed(&p->doing, "ended"); /* relaxed: for people */
    bz_store_relaxed(&p->form, NULL);     /* relaxed: for people */
    mix_add(&p->round->progress, 1);
}

/* How long to pause before a step: 0 not at all, 1 a turn of the others, else nanoseconds. */
static uint64_t mix_think(struct mix_party *p)
{
    uint64_t late = p->late_ns;
    p->late_ns = 0;
    if (late != 0 || p->is_brisk)
        return late;
    switch (mix_die(&p->dice, 8)) {
    case 0:
        return 1 + mix_die(&p->dice, 30) * BLITZ_US;
    case 1:
    case 2:
        return 1;
    default:
        return 0;
    }
}

/* ---- with a stack: fibers, forked jobs, threads ---- */

static void mix_pause_here(uint64_t ns)
{
    if (ns == 1)
        blitz_yield();
    else if (ns > 1)
        (void)!blitz_sleep(ns); /* a cancel ends it early: the next step sees the cancel */
}

static int mix_perform(struct mix_party *p)
{
    enum mix_form form = mix_choose_form(p);
    blitz_deadline until = mix_until(p, form);
    bz_store_relaxed(&p->form, mix_form_name[form]); /* relaxed: for people */
    if (form == MIX_CALL)
        return p->op.verb->call(&p->op, until);
    mix_wait_begin(p, form, until);
    return mix_wait_end(p, blitz_await(p->wait.top, p->wait.until));
}

static void mix_live(void *party)
{
    struct mix_party *p = party;
    mix_pause_here(mix_think(p));
    while (mix_step_begin(p)) {
        mix_step_end(p, mix_perform(p));
        mix_pause_here(mix_think(p));
    }
    mix_leave(p);
}

static int mix_fiber(void *party)
{
    mix_live(party);
    return 0;
}

/* The party lives in a forked job. While the forking task waits, another worker may take the job. */
static int mix_forker(void *party)
{
    struct mix_party *p = party;
    struct t_rng dice = mix_dice_of(p->round->seed, 1000 + p->index);
    blitz_job job;
    blitz_fork(&job, mix_fiber, p);
    if (mix_one_in(&dice, 2))
        mix_pause_here(1 + mix_die(&dice, 2) * 5 * BLITZ_US);
    return blitz_join(&job);
}

/* ---- without a stack ---- */

enum { MIX_AT_PAUSE, MIX_AT_NAP, MIX_AT_STEP, MIX_AT_WAIT };

static blitz_poll mix_poll_pause(struct mix_party *p, blitz_cx *cx)
{
    uint64_t ns = mix_think(p);
    p->at = ns > 1 ? MIX_AT_NAP : MIX_AT_STEP;
    if (ns > 1) {
        blitz_sleep_until_future_init(&p->wait.timer, blitz_after(ns));
        p->wait.outcome = 0;
    }
    return ns == 1 ? blitz_cx_yield(cx) : BLITZ_READY;
}

static void mix_poll_step(struct mix_party *p)
{
    enum mix_form form = mix_choose_form(p);
    blitz_deadline until = mix_until(p, form);
    bz_store_relaxed(&p->form, mix_form_name[form]); /* relaxed: for people */
    p->at = MIX_AT_PAUSE;
    if (form == MIX_CALL) {
        mix_step_end(p, p->op.verb->call(&p->op, until));
        return;
    }
    mix_wait_begin(p, form, until);
    if (p->wait.until != BLITZ_FOREVER)
        blitz_sleep_until_future_init(&p->wait.timer, p->wait.until);
    p->at = MIX_AT_WAIT;
}

static blitz_poll mix_poll_wait(struct mix_party *p, blitz_cx *cx)
{
    struct mix_wait *w = &p->wait;
    blitz_sleep_future *timer = w->until != BLITZ_FOREVER ? &w->timer : NULL;
    if (blitz_cx_await(cx, w->top, timer, &w->outcome) == BLITZ_PENDING)
        return BLITZ_PENDING;
    p->at = MIX_AT_PAUSE;
    mix_step_end(p, mix_wait_end(p, w->outcome));
    return BLITZ_READY;
}

static blitz_poll mix_polled(void *state, blitz_cx *cx)
{
    struct mix_party *p = *(struct mix_party **)state;
    blitz_poll poll = BLITZ_READY;
    while (poll == BLITZ_READY) {
        if (p->at == MIX_AT_PAUSE) {
            poll = mix_poll_pause(p, cx);
        } else if (p->at == MIX_AT_NAP) {
            poll = blitz_cx_await(cx, &p->wait.timer.future, NULL, &p->wait.outcome);
            p->at = poll == BLITZ_READY ? MIX_AT_STEP : MIX_AT_NAP;
        } else if (p->at == MIX_AT_WAIT) {
            poll = mix_poll_wait(p, cx);
        } else if (mix_step_begin(p)) {
            mix_poll_step(p);
        } else {
            mix_leave(p);
            return BLITZ_READY;
        }
    }
    return BLITZ_PENDING;
}

#endif
