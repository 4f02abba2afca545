/*
 * tasks.h - the scenes of joins, scopes and timers.
 *
 * join: several parties join the same tasks, each by its own handle. If a task returns a pointer, one of
 * them gets it, or it is dropped. Scope: each party opens scopes, spawns into them, and closes them; a
 * close returns when all tasks of the scope have ended. Other parties wait for the token of the
 * scopes. Timer: each waiter has a timer that other parties move; a timer that was moved to a finite
 * time fires.
 */
#ifndef MIX_TASKS_H
#define MIX_TASKS_H

#include "support/mix/party.h"

enum { TASKS_WAIT, TASKS_MOVE, TASKS_TICK, TASKS_CANCEL, TASKS_TOKEN };
enum { TASKS_CHILDREN = 4, TASKS_MEMBERS = 5 };

struct tasks_member {
    struct tasks_scope *scope;
    struct t_rng dice;
};

struct tasks_scope {
    blitz_scope scope;
    struct mix_count live;
    bool may_fail;
    bool may_end_early; /* a deadline, or a cancel of the scope */
    struct tasks_member member[TASKS_MEMBERS];
};

static struct {
    unsigned children;
    bool has_pointer[TASKS_CHILDREN];
    struct mix_count pointers[TASKS_CHILDREN]; /* taken or dropped */
    blitz_wait_group open;                     /* pointers that are neither */
    struct t_rng dice[TASKS_CHILDREN];
    blitz_task *handle[MIX_PARTIES][TASKS_CHILDREN]; /* NULL: given up */
    struct tasks_scope scope[MIX_PARTIES];
    blitz_token *token; /* of all scopes of the round, or NULL */
    blitz_token *below; /* below it, or NULL */
    blitz_timer timer[MIX_PARTIES];
    blitz_interval interval[MIX_PARTIES];
} tasks;

/* ---- join ---- */

static int tasks_child(void *arg)
{
    struct t_rng *dice = arg;
    mix_pause_here(mix_die(dice, 3) * mix_die(dice, 30) * BLITZ_US + 1);
    return (int)(dice - tasks.dice) + 100;
}

static void *tasks_pointer_child(void *arg)
{
    struct t_rng *dice = arg;
    (void)tasks_child(arg);
    return &tasks.pointers[dice - tasks.dice];
}

static void tasks_pointer_gone(void *value, void *ctx)
{
    (void)ctx;
    CHECK_EQ(mix_add(value, 1), 1); /* else it came twice */
    blitz_wait_group_done(&tasks.open);
}

static blitz_poll tasks_polled_child(void *state, blitz_cx *cx)
{
    struct t_rng *dice = *(struct t_rng **)state;
    if (mix_die(dice, 3) != 0)
        return blitz_cx_yield(cx);
    cx->result = (int)(dice - tasks.dice) + 100;
    return BLITZ_READY;
}

static void tasks_spawn(struct mix_round *r, unsigned i)
{
    blitz_spawn_opts opts = {.runtime = r->rt, .name = "child"};
    struct t_rng *dice = &tasks.dice[i];
    blitz_task *t;
    *dice = mix_dice_of(r->seed, 4000 + i);
    tasks.has_pointer[i] = mix_one_in(&r->dice, 3);
    opts.drop_result = tasks_pointer_gone;
    if (tasks.has_pointer[i]) {
        CHECK_EQ(blitz_wait_group_add(&tasks.open, 1), 0);
        CHECK_EQ(blitz_spawn_ptr(tasks_pointer_child, dice, &opts, &t), 0);
    } else if (mix_one_in(&r->dice, 2))
        CHECK_EQ(blitz_spawn(tasks_child, dice, &opts, &t), 0);
    else
        CHECK_EQ(blitz_spawn_poll(tasks_polled_child, &dice, sizeof dice, &opts, &t), 0);
    for (unsigned k = 0; k < r->count; k++)
        tasks.handle[k][i] = blitz_task_ref(t);
    blitz_task_detach(t);
}

static void join_make(struct mix_round *r)
{
    memset(&tasks, 0, sizeof tasks);
    for (uint64_t n = 1 + mix_die(&r->dice, 6); n > 0; n--)
        mix_join_in(r, TASKS_WAIT, mix_one_in(&r->dice, 2));
    blitz_wait_group_init(&tasks.open);
    tasks.children = 1 + (unsigned)mix_die(&r->dice, TASKS_CHILDREN);
    for (unsigned i = 0; i < tasks.children; i++)
        tasks_spawn(r, i);
}

/* p->scratch[0]: the child that is joined. */
static bool join_next(struct mix_party *p)
{
    unsigned left = 0;
    for (unsigned i = 0; i < tasks.children; i++)
        left += tasks.handle[p->index][i] != NULL;
    if (left == 0)
        return false;
    do
        p->scratch[0] = mix_die(&p->dice, tasks.children);
    while (tasks.handle[p->index][p->scratch[0]] == NULL);
    p->op.is_biased = mix_one_in(&p->dice, 3);
    mix_begin(p, tasks.has_pointer[p->scratch[0]] ? &mix_join_ptr : &mix_join,
              tasks.handle[p->index][p->scratch[0]]);
    return true;
}

static void join_done(struct mix_party *p, int rc)
{
    CHECK(rc == 0 || rc == -ETIMEDOUT || rc == -ECANCELED);
    if (rc != 0)
        return;
    if (!tasks.has_pointer[p->scratch[0]])
        CHECK_EQ(p->op.n, p->scratch[0] + 100);
    else if (p->op.pointer != NULL)
        tasks_pointer_gone(p->op.pointer, NULL);
    tasks.handle[p->index][p->scratch[0]] = NULL;
}

static void join_leave(struct mix_party *p)
{
    for (unsigned i = 0; i < tasks.children; i++)
        blitz_task_detach(tasks.handle[p->index][i]);
}

/* A pointer that no join has taken is dropped with the last handle. */
static void join_check(struct mix_round *r)
{
    (void)r;
    CHECK_EQ(blitz_wait_group_wait(&tasks.open, BLITZ_FOREVER), 0);
}

static void tasks_check(struct mix_round *r)
{
    (void)r;
}

static const struct mix_scene mix_scene_join = {"join",    1,          join_make, join_next,
                                                join_done, join_leave, join_check};

/* ---- scope ---- */

static int tasks_member(void *arg)
{
    struct tasks_member *m = arg;
    mix_pause_here(mix_die(&m->dice, 4) == 0 ? mix_die(&m->dice, 20) * BLITZ_US
                                             : mix_die(&m->dice, 2));
    int rc = m->scope->may_fail && mix_one_in(&m->dice, 8) ? -EIO : 0;
    mix_add(&m->scope->live, -1);
    return rc;
}

static void scope_make(struct mix_round *r)
{
    memset(&tasks, 0, sizeof tasks);
    for (uint64_t n = 1 + mix_die(&r->dice, 5); n > 0; n--)
        mix_join_in(r, TASKS_WAIT, mix_one_in(&r->dice, 2))->left =
            1 + (unsigned)mix_die(&r->dice, 20);
    if (!mix_one_in(&r->dice, 4))
        return;
    CHECK_EQ(blitz_token_new(NULL, &tasks.token), 0);
    mix_join_in(r, TASKS_CANCEL, true)->left = 1;
    for (uint64_t n = mix_die(&r->dice, 5); n > 0; n--)
        mix_join_in(r, TASKS_TOKEN, mix_one_in(&r->dice, 2))->left = 1;
    CHECK_EQ(blitz_token_new(tasks.token, &tasks.below), 0);
    mix_say(r, " with a token");
}

static bool scope_next(struct mix_party *p)
{
    struct tasks_scope *s = &tasks.scope[p->index];
    blitz_scope_opts opts = {.runtime = p->round->rt, .token = tasks.token};
    if (p->left-- == 0)
        return false;
    if (p->role == TASKS_TOKEN) {
        mix_begin(p, &mix_token, mix_one_in(&p->dice, 2) ? tasks.token : tasks.below);
        return true;
    }
    if (p->role == TASKS_CANCEL) {
        p->op.n = mix_die(&p->dice, 200) * BLITZ_US;
        mix_begin(p, &mix_pause, NULL);
        return true;
    }
    bool has_deadline = mix_one_in(&p->dice, 6);
    s->may_fail = mix_one_in(&p->dice, 3);
    s->may_end_early = has_deadline;
    CHECK_EQ(blitz_scope_open(&s->scope, &opts,
                              has_deadline ? blitz_after(20 * BLITZ_US) : BLITZ_FOREVER),
             0);
    for (uint64_t n = mix_die(&p->dice, TASKS_MEMBERS + 1), i = 0; i < n; i++) {
        s->member[i] = (struct tasks_member){s, mix_dice_of(t_rng_next(&p->dice), i)};
        mix_add(&s->live, 1);
        int rc = blitz_scope_spawn(&s->scope, tasks_member, &s->member[i], NULL);
        CHECK(rc == 0 || rc == -ECANCELED);
        if (rc != 0)
            mix_add(&s->live, -1);
    }
    if (mix_one_in(&p->dice, 8)) {
        s->may_end_early = true;
        blitz_scope_cancel(&s->scope);
    }
    mix_begin(p, &mix_close, &s->scope);
    return true;
}

static void scope_done(struct mix_party *p, int rc)
{
    struct tasks_scope *s = &tasks.scope[p->index];
    if (p->role == TASKS_CANCEL) {
        blitz_token_cancel(tasks.token);
        return;
    }
    if (p->role == TASKS_TOKEN) {
        CHECK(rc == 0 || rc == -ETIMEDOUT || rc == -ECANCELED);
        CHECK(rc != 0 || blitz_token_is_cancelled(p->op.of));
        p->left = rc == -ETIMEDOUT;
        return;
    }
    CHECK(rc == 0 || rc == -EIO || rc == -ETIMEDOUT || rc == -ECANCELED);
    CHECK_EQ(mix_get(&s->live), 0);
    CHECK(rc != -EIO || s->may_fail);
    if (rc == -ECANCELED && !s->may_end_early) /* then the closing party was, or its wait ended */
        CHECK(p->round->cancels > 0 || p->round->has_deadlines || tasks.token != NULL);
}

static void scope_check(struct mix_round *r)
{
    (void)r;
    blitz_token_unref(tasks.below);
    blitz_token_unref(tasks.token);
}

static const struct mix_scene mix_scene_scope = {"scope",    3,    scope_make, scope_next,
                                                 scope_done, NULL, scope_check};

/* ---- timers ---- */

static void timer_make(struct mix_round *r)
{
    memset(&tasks, 0, sizeof tasks);
    for (uint64_t n = 1 + mix_die(&r->dice, 6); n > 0; n--) {
        struct mix_party *p = mix_join_in(r, TASKS_WAIT, mix_one_in(&r->dice, 2));
        p->left = 1;
        blitz_timer_init(&tasks.timer[p->index],
                         mix_one_in(&r->dice, 2) ? BLITZ_FOREVER
                                                 : blitz_after(mix_die(&r->dice, 200) * BLITZ_US));
    }
    mix_join_in(r, TASKS_MOVE, true)->left = 1 + (unsigned)mix_die(&r->dice, 8);
    for (uint64_t n = mix_die(&r->dice, 3); n > 0; n--) {
        struct mix_party *p = mix_join_in(r, TASKS_TICK, mix_one_in(&r->dice, 2));
        p->left = 1 + (unsigned)mix_die(&r->dice, 6);
        CHECK_EQ(blitz_interval_init(&tasks.interval[p->index], blitz_now(),
                                     (1 + mix_die(&r->dice, 20)) * BLITZ_US,
                                     (blitz_missed)mix_die(&r->dice, 3)),
                 0);
    }
}

static bool timer_next(struct mix_party *p)
{
    if (p->left == 0)
        return false;
    p->op.n = mix_die(&p->dice, 30) * BLITZ_US;
    if (p->role == TASKS_TICK)
        mix_begin(p, &mix_tick, &tasks.interval[p->index]);
    else
        mix_begin(p, p->role == TASKS_WAIT ? &mix_timer : &mix_pause, &tasks.timer[p->index]);
    return true;
}

/* The last move of each timer is to a finite time. */
static void timer_move(struct mix_party *p)
{
    bool is_last = --p->left == 0;
    for (unsigned i = 0; i < p->index; i++) { /* the waiters come first */
        if (!is_last && mix_one_in(&p->dice, 2))
            continue;
        uint64_t ns = mix_die(&p->dice, 100) * BLITZ_US;
        bool is_never = !is_last && mix_one_in(&p->dice, 4);
        blitz_timer_reset(&tasks.timer[i], is_never ? BLITZ_FOREVER : blitz_after(ns));
    }
}

/* Ticks are meant for moments that have come, and each for a later one than the last. */
static void timer_ticked(struct mix_party *p, const blitz_interval *i)
{
    CHECK_GT(i->ticked, p->scratch[0]);
    CHECK_LE(i->ticked, blitz_now());
    p->scratch[0] = i->ticked;
    p->left--;
}

static void timer_done(struct mix_party *p, int rc)
{
    CHECK(rc == 0 || rc == -ETIMEDOUT || rc == -ECANCELED);
    if (p->role == TASKS_MOVE)
        timer_move(p);
    else if (p->role == TASKS_WAIT)
        p->left = rc == -ETIMEDOUT;
    else if (rc == 0)
        timer_ticked(p, &tasks.interval[p->index]);
}

static const struct mix_scene mix_scene_timer = {"timer",    1,    timer_make, timer_next,
                                                 timer_done, NULL, tasks_check};

#endif
