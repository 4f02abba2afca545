/*
 * party.h - a party performs the operations of its script, in the forms that its kind allows.
 *
 *   call      the blocking call, on the stack of a fiber, a forked job or a thread; also inside
 *             the poll of a stackless task
 *   await     blitz_await() of the future; a stackless task: blitz_cx_await()
 *   timeout   a blitz_timeout around the future
 *   race      a blitz_race of the future against a sleep
 *   case      the future as one case of a select, and a time as the other
 *   map       a blitz_map_future around the future
 *   then      a blitz_then_future, with the future first or second
 *   defer     a blitz_defer_future that makes the future
 *   box       a box of blitz_box_new() around the future, unless the future is pinned
 *   first of  blitz_first_of() the future and a sleep; only where a call may be made
 *   all of    blitz_all_of() the future and a ready one; likewise
 *
 * The combinators are futures around any operation, so each scene checks them as well. A function that
 * a combinator calls must be called exactly when its child is ready, and once. The round counts the
 * boxes, and none may be left at its end.
 *
 * Each future stands behind a wrapper that counts polls. A future that is polled MIX_POLLS_MAX times
 * while no party of the round ends an operation wakes itself, and fails the round.
 */
#ifndef MIX_PARTY_H
#define MIX_PARTY_H

#include "support/mix/round.h"

enum mix_form {
    MIX_CALL,
    MIX_AWAIT,
    MIX_TIMEOUT,
    MIX_RACE,
    MIX_CASE,
    MIX_MAP,
    MIX_THEN,
    MIX_DEFER,
    MIX_BOX,
    MIX_FIRST_OF,
    MIX_ALL_OF,
    MIX_FORMS
};

static const char *const mix_form_name[] = {"call", "await", "timeout", "race",     "case",  "map",
                                            "then", "defer", "box",     "first of", "all of"};

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

/* ---- futures made of the counted one ---- */

enum { MIX_MAPPED = 4711 }; /* the result of every map */

static int mix_map_fn(void *wait, blitz_future *child)
{
    struct mix_wait *w = wait;
    CHECK_EQ(child, &w->counted.future);
    CHECK(w->counted.is_ready);
    w->calls++;
    return MIX_MAPPED;
}

static blitz_future *mix_defer_make(void *wait)
{
    struct mix_wait *w = wait;
    CHECK_EQ(++w->calls, 1u);
    return &w->counted.future;
}

/* The counted future is the second. */
static blitz_future *mix_then_second(void *wait, blitz_future *first)
{
    struct mix_wait *w = wait;
    CHECK_EQ(first, w->then.first);
    CHECK_EQ(++w->calls, 1u);
    return &w->counted.future;
}

/* The counted future is the first; there is no second. */
static blitz_future *mix_then_nothing(void *wait, blitz_future *first)
{
    struct mix_wait *w = wait;
    CHECK_EQ(first, &w->counted.future);
    CHECK_GE(blitz_future_output(first), 0);
    CHECK_EQ(++w->calls, 1u);
    return NULL;
}

/* The counted future is the second, after a sleep or at once; or the first. */
static void mix_then_init(struct mix_party *p)
{
    struct mix_wait *w = &p->wait;
    uint64_t way = mix_die(&p->dice, 3);
    blitz_sleep_until_future_init(&w->before, blitz_after(mix_die(&p->dice, 20) * BLITZ_US));
    blitz_ready_future_init(&w->ready, 1);
    w->is_second = way != 0;
    if (way == 0)
        blitz_then_future_init(&w->then, &w->counted.future, mix_then_nothing, w);
    else
        blitz_then_future_init(&w->then, way == 1 ? &w->before.future : &w->ready.future,
                               mix_then_second, w);
}

/* The content of a box: a future that passes all calls on to the counted one. */
struct mix_boxed {
    blitz_future future;
    blitz_future *counted;
};

static blitz_future *mix_boxed_inner(blitz_future *f)
{
    return ((struct mix_boxed *)f)->counted; /* the future is the first member */
}
static blitz_poll mix_boxed_poll(blitz_future *f, const blitz_waker *waker)
{
    return mix_counted_poll(mix_boxed_inner(f), waker);
}
static void mix_boxed_cancel(blitz_future *f)
{
    mix_counted_cancel(mix_boxed_inner(f));
}
static int mix_boxed_output(blitz_future *f)
{
    return mix_counted_output(mix_boxed_inner(f));
}
static void mix_boxed_drop(void *value, void *round)
{
    struct mix_boxed *b = value;
    struct mix_round *r = round;
    CHECK_NOT_NULL(b->counted); /* else it is dropped twice */
    b->counted = NULL;
    mix_add(&r->boxes, -1);
}

static blitz_future *mix_box_of(struct mix_party *p)
{
    static const blitz_future_ops ops[] = {
        {"boxed", BLITZ_REVOCABLE, mix_boxed_poll, mix_boxed_cancel, mix_boxed_output},
        {"boxed", BLITZ_DETACHABLE, mix_boxed_poll, mix_boxed_cancel, mix_boxed_output}};
    struct mix_wait *w = &p->wait;
    blitz_box_opts opts = {.drop = mix_boxed_drop, .ctx = p->round};
    struct mix_boxed *b = blitz_box_new(sizeof *b, &opts);
    CHECK_NOT_NULL(b);
    *b = (struct mix_boxed){{&ops[w->counted.future.ops->kind]}, &w->counted.future};
    mix_add(&p->round->boxes, 1);
    w->box = b;
    return blitz_box_future(b);
}

/* Compare the calls of a combinator's function, and its output, with the counted future. rc: of the wait for `top`. */
static void mix_built_check(struct mix_wait *w, enum mix_form form, int rc)
{
    bool is_ready = w->counted.is_ready;
    if (form == MIX_MAP) {
        CHECK_EQ(w->calls, (unsigned)is_ready);
        if (rc == 0)
            CHECK_EQ(blitz_future_output(w->top), MIX_MAPPED);
    } else if (form == MIX_DEFER || (form == MIX_THEN && w->is_second)) {
        CHECK(w->calls == 1 || w->counted.polls == 0);
        CHECK(rc != 0 || is_ready);
    } else if (form == MIX_THEN) {
        bool is_good = is_ready && blitz_future_output(&w->counted.future) >= 0;
        CHECK(w->calls == is_good ||
              (rc != 0 && w->calls == 0)); /* after a cancel it is not called */
        CHECK(rc != 0 || is_ready);
    } else if (form == MIX_BOX && rc == 0) {
        CHECK(is_ready);
        blitz_box_unref(w->box);
    }
}

/* ---- the future of a step, and what came of it ---- */

static void mix_wait_begin(struct mix_party *p, enum mix_form form, blitz_deadline until)
{
    struct mix_wait *w = &p->wait;
    bool is_second = mix_one_in(&p->dice, 2);
    mix_counted_init(&w->counted, p, p->op.verb->future(&p->op));
    w->until = until;
    w->outcome = 0;
    w->calls = 0;
    if (form == MIX_BOX && w->counted.future.ops->kind == BLITZ_PINNED)
        form = MIX_MAP; /* a box may outlive the party, and p->op would not */
    w->form = form;
    switch (form) {
    case MIX_TIMEOUT:
        w->until = BLITZ_FOREVER;
        CHECK_EQ(blitz_timeout_init(&w->timeout, &w->counted.future, until), 0);
        w->top = &w->timeout.future;
        break;
    case MIX_RACE:
        w->until = BLITZ_FOREVER;
        blitz_sleep_until_future_init(&w->timer, until);
        w->child[is_second] = (blitz_child){.future = &w->counted.future};
        w->child[!is_second] = (blitz_child){.future = &w->timer.future};
        CHECK_EQ(blitz_race_init(&w->race, w->child, 2), 0);
        w->top = &w->race.future;
        break;
    case MIX_CASE:
        w->until = BLITZ_FOREVER;
        w->cases[is_second] = blitz_case_future(&w->counted.future);
        w->cases[!is_second] = blitz_case_time(until);
        blitz_select_wait_future_init(&w->select, w->cases, 2, BLITZ_SELECT_FAIR);
        w->top = &w->select.future;
        break;
    case MIX_MAP:
        blitz_map_future_init(&w->map, &w->counted.future, mix_map_fn, w);
        w->top = &w->map.future;
        break;
    case MIX_THEN:
        mix_then_init(p);
        w->top = &w->then.future;
        break;
    case MIX_DEFER:
        blitz_defer_future_init(&w->defer, mix_defer_make, w);
        w->top = &w->defer.future;
        break;
    case MIX_BOX:
        w->top = mix_box_of(p);
        break;
    default:
        w->top = &w->counted.future;
    }
}

/* The result of the equivalent call. rc: the result of the wait for `top`. */
static int mix_wait_end(struct mix_party *p, int rc)
{
    struct mix_wait *w = &p->wait;
    mix_built_check(w, w->form, rc);
    p->op.polled = w->counted.polls;
    p->op.waited = rc;
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
    uint64_t way = verb->is_needed ? 11 : mix_die(&p->dice, 12);
    if (way < 4)
        return (enum mix_form)(MIX_TIMEOUT + mix_die(&p->dice, 3));
    if (way < 6)
        return (enum mix_form)(MIX_MAP + mix_die(&p->dice, 4));
    if (way < 7 && mix_one_in(&p->dice, p->kind == MIX_POLLED ? 12 : 1))
        return MIX_FIRST_OF + (enum mix_form)mix_die(&p->dice, 2);
    return MIX_AWAIT;
}

/* The forms that need a stack: the call itself, blitz_first_of() and blitz_all_of(). */
static bool mix_is_call(enum mix_form form)
{
    return form == MIX_CALL || form == MIX_FIRST_OF || form == MIX_ALL_OF;
}

static int mix_perform_first_of(struct mix_party *p, blitz_deadline until)
{
    struct mix_wait *w = &p->wait;
    int mine = (int)mix_die(&p->dice, 2);
    bool is_raced = mix_one_in(&p->dice, 2); /* else the deadline is that of the call */
    blitz_future *two[2];
    blitz_sleep_until_future_init(&w->timer, is_raced ? until : BLITZ_FOREVER);
    two[mine] = &w->counted.future;
    two[!mine] = &w->timer.future;
    int rc = blitz_first_of(two, 2, is_raced ? BLITZ_FOREVER : until);
    CHECK(rc != mine || w->counted.is_ready);
    CHECK(rc == 0 || rc == 1 || rc == -ETIMEDOUT || rc == -ECANCELED);
    return rc < 0 ? rc : 0;
}

/* The other future is ready, and its output is not negative. */
static int mix_perform_all_of(struct mix_party *p, blitz_deadline until)
{
    struct mix_wait *w = &p->wait;
    unsigned mine = (unsigned)mix_die(&p->dice, 2);
    blitz_future *two[2];
    blitz_ready_future_init(&w->ready, 1);
    two[mine] = &w->counted.future;
    two[!mine] = &w->ready.future;
    int rc = blitz_all_of(two, 2, until);
    CHECK(rc != 0 || w->counted.is_ready);
    return w->counted.is_ready ? 0 : rc;
}

static int mix_perform_call(struct mix_party *p, enum mix_form form, blitz_deadline until)
{
    if (form == MIX_CALL)
        return p->op.verb->call(&p->op, until);
    mix_wait_begin(p, MIX_AWAIT, until);
    return mix_wait_end(p, form == MIX_FIRST_OF ? mix_perform_first_of(p, until)
                                                : mix_perform_all_of(p, until));
}

/* The next operation of the script. False: the script has ended. */
static bool mix_step_begin(struct mix_party *p)
{
    do {
        p->op.verb = NULL;
        p->is_idle = false;
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
    if (rc != -ETIMEDOUT && rc != -EAGAIN && rc != -EBUSY && !p->is_idle)
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
    if (mix_is_call(form))
        return mix_perform_call(p, form, until);
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
    if (mix_is_call(form)) {
        mix_step_end(p, mix_perform_call(p, form, until));
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
