/*
 * sets.h - the scene of join sets: members come and go, and each is taken out once.
 *
 * Adders put tasks and futures into one set. Takers take them out; one of them, the keeper, goes on until
 * the adders have left and the set is empty. In some rounds it leaves early: then the last party that
 * releases the set ends the rest. In some rounds a party cancels the members, or detaches them. Each
 * member must come out once, with its own result, unless it was detached or left in the set. Each task
 * must end, and each pointer that a task returned must be taken or dropped.
 */
#ifndef MIX_SETS_H
#define MIX_SETS_H

#include "support/mix/party.h"

enum { SETS_ADD, SETS_TAKE, SETS_STOP };
enum { SETS_FIBER, SETS_POLLED, SETS_POINTER, SETS_SLEEP, SETS_EVENT, SETS_LINKED, SETS_KINDS };
enum { SETS_EACH = 8, SETS_MEMBERS = MIX_PARTIES * SETS_EACH };

struct sets_member {
    unsigned kind;
    struct t_rng dice;
    struct mix_count out;     /* taken out */
    struct mix_count pointer; /* taken or dropped */
    blitz_event event;
    blitz_task *linked; /* joined by the future below */
    union {
        blitz_sleep_future sleep;
        blitz_sync_future sync;
        blitz_join_future join;
    } f;
};

static struct {
    blitz_join_set *set;
    struct sets_member member[SETS_MEMBERS]; /* SETS_EACH for each party */
    struct mix_count adders;
    blitz_wait_group open; /* tasks that have not ended, and pointers that are not gone */
    bool is_stopped;       /* a party cancels or detaches the members */
    bool is_detached;
    bool is_left; /* the keeper leaves early */
} sets;

/* p->scratch: members that this party has added; those whose event is set; does it pause? */
enum { SETS_ADDED, SETS_SET, SETS_PAUSES };

/* ---- members ---- */

static int sets_result(const struct sets_member *m)
{
    return (int)(m - sets.member) + 100;
}

static int sets_fiber(void *member)
{
    struct sets_member *m = member;
    mix_pause_here(mix_die(&m->dice, 3) * mix_die(&m->dice, 20) * BLITZ_US + 1);
    blitz_wait_group_done(&sets.open);
    return sets_result(m);
}

static blitz_poll sets_polled(void *state, blitz_cx *cx)
{
    struct sets_member *m = *(struct sets_member **)state;
    if (mix_die(&m->dice, 3) != 0)
        return blitz_cx_yield(cx);
    cx->result = sets_result(m);
    blitz_wait_group_done(&sets.open);
    return BLITZ_READY;
}

/* The group counts the pointer now, and not the task. */
static void *sets_pointer(void *member)
{
    struct sets_member *m = member;
    mix_pause_here(mix_die(&m->dice, 3));
    return m;
}

static void sets_pointer_gone(void *member, void *ctx)
{
    struct sets_member *m = member;
    (void)ctx;
    CHECK_EQ(m->kind, (unsigned)SETS_POINTER);
    CHECK_EQ(mix_add(&m->pointer, 1), 1); /* else it came twice */
    blitz_wait_group_done(&sets.open);
}

static void sets_add_task(struct sets_member *m, const blitz_spawn_opts *opts)
{
    blitz_task *t;
    CHECK_EQ(blitz_wait_group_add(&sets.open, 1), 0);
    switch (m->kind) {
    case SETS_FIBER:
        CHECK_EQ(blitz_join_set_spawn(sets.set, sets_fiber, m, m, opts), 0);
        break;
    case SETS_POLLED:
        CHECK_EQ(blitz_join_set_spawn_poll(sets.set, sets_polled, &m, sizeof m, m, opts), 0);
        break;
    case SETS_POINTER:
        CHECK_EQ(blitz_spawn_ptr(sets_pointer, m, opts, &t), 0);
        CHECK_EQ(blitz_join_set_add_task(sets.set, t, m), 0);
        break;
    default:
        CHECK_EQ(blitz_spawn(sets_fiber, m, opts, &m->linked), 0);
        blitz_task_join_linked_future_init(&m->f.join, m->linked);
        CHECK_EQ(blitz_join_set_add_future(sets.set, &m->f.join.future, m), 0);
    }
}

static void sets_add(struct mix_party *p)
{
    blitz_spawn_opts opts = {
        .runtime = p->round->rt, .name = "member", .drop_result = sets_pointer_gone};
    struct sets_member *m = &sets.member[p->index * SETS_EACH + p->scratch[SETS_ADDED]++];
    m->kind = mix_one_in(&p->dice, 3) ? SETS_SLEEP : (unsigned)mix_die(&p->dice, SETS_KINDS);
    m->dice = mix_dice_of(t_rng_next(&p->dice), 0);
    if (m->kind == SETS_SLEEP) {
        blitz_sleep_until_future_init(&m->f.sleep, blitz_after(mix_die(&p->dice, 100) * BLITZ_US));
        CHECK_EQ(blitz_join_set_add_future(sets.set, &m->f.sleep.future, m), 0);
    } else if (m->kind == SETS_EVENT) {
        blitz_event_init(&m->event);
        blitz_event_wait_future_init(&m->f.sync, &m->event);
        CHECK_EQ(blitz_join_set_add_future(sets.set, &m->f.sync.future, m), 0);
    } else {
        sets_add_task(m, &opts);
    }
}

/* Set the events of the members that this party has added. */
static void sets_set_events(struct mix_party *p)
{
    for (; p->scratch[SETS_SET] < p->scratch[SETS_ADDED]; p->scratch[SETS_SET]++) {
        struct sets_member *m = &sets.member[p->index * SETS_EACH + p->scratch[SETS_SET]];
        if (m->kind == SETS_EVENT)
            blitz_event_set(&m->event);
    }
}

/* ---- the script ---- */

static void sets_make(struct mix_round *r)
{
    memset(&sets, 0, sizeof sets);
    CHECK_EQ(blitz_join_set_new(&sets.set), 0);
    blitz_wait_group_init(&sets.open);
    sets.is_left = mix_one_in(&r->dice, 3);
    mix_join_in(r, SETS_TAKE, true)->left = (unsigned)mix_die(&r->dice, 6);
    for (uint64_t n = 1 + mix_die(&r->dice, 5); n > 0; n--)
        mix_join_in(r, SETS_ADD, mix_one_in(&r->dice, 2))->left =
            1 + (unsigned)mix_die(&r->dice, SETS_EACH);
    for (uint64_t n = mix_die(&r->dice, 3); n > 0; n--) {
        struct mix_party *p = mix_join_in(r, SETS_TAKE, false);
        p->left = 1 + (unsigned)mix_die(&r->dice, 6);
        p->is_thread =
            mix_one_in(&r->dice, 2); /* a thread and a task wait for sleeps in different ways */
    }
    if (mix_one_in(&r->dice, 3)) {
        sets.is_stopped = true;
        sets.is_detached = mix_one_in(&r->dice, 3);
        mix_join_in(r, SETS_STOP, true)->left = 1;
    }
    for (unsigned i = 0; i < r->count; i++) {
        (void)blitz_join_set_ref(sets.set);
        if (r->party[i].role == SETS_ADD)
            mix_add(&sets.adders, 1);
    }
    blitz_join_set_unref(sets.set);
    mix_say(r, "%s%s", sets.is_left ? " members are left behind" : "",
            sets.is_detached  ? " a detach"
            : sets.is_stopped ? " a cancel"
                              : "");
}

static bool sets_next(struct mix_party *p)
{
    bool is_unbounded = p->is_keeper && p->role == SETS_TAKE && !sets.is_left;
    if (is_unbounded && mix_get(&sets.adders) == 0 && blitz_join_set_count(sets.set) == 0)
        return false;
    if (!is_unbounded && p->left == 0)
        return false;
    p->op.is_now = mix_one_in(&p->dice, 4);
    if (p->role == SETS_TAKE && !p->scratch[SETS_PAUSES]) {
        mix_begin(p, &mix_set_next, sets.set);
        return true;
    }
    p->is_idle = p->role == SETS_TAKE;
    p->op.n = mix_die(&p->dice, 4) * mix_die(&p->dice, 15) * BLITZ_US;
    mix_begin(p, &mix_pause, NULL);
    return true;
}

static void sets_taken(struct sets_member *m, const blitz_joined *j)
{
    bool is_future = m->kind >= SETS_SLEEP;
    CHECK_EQ(mix_add(&m->out, 1), 1); /* else it was taken out twice */
    CHECK_EQ(j->future != NULL, is_future);
    if (m->kind == SETS_POINTER) {
        CHECK_EQ(j->pointer, m);
        sets_pointer_gone(m, NULL);
        return;
    }
    CHECK_NULL(j->pointer);
    if (is_future && j->result == -ECANCELED)
        CHECK(sets.is_stopped);
    else
        CHECK_EQ(j->result, m->kind == SETS_SLEEP || m->kind == SETS_EVENT ? 0 : sets_result(m));
}

static void sets_done(struct mix_party *p, int rc)
{
    if (p->role == SETS_STOP) {
        p->left = 0;
        rc = sets.is_detached ? blitz_join_set_detach(sets.set) : 0;
        CHECK(rc == 0 || rc == -EBUSY);
        if (!sets.is_detached)
            blitz_join_set_cancel(sets.set);
        return;
    }
    if (p->role == SETS_ADD) {
        p->left--;
        if (mix_one_in(&p->dice, 2))
            sets_set_events(p);
        sets_add(p);
        return;
    }
    bool has_paused = p->scratch[SETS_PAUSES];
    p->scratch[SETS_PAUSES] = 0;
    if (has_paused)
        return;
    CHECK(rc == 0 || rc == -ENOENT || rc == -EBUSY || rc == -EAGAIN || rc == -ETIMEDOUT ||
          rc == -ECANCELED);
    p->left -= p->left > 0;
    p->scratch[SETS_PAUSES] = rc != 0;
    if (rc == 0)
        sets_taken(p->op.joined.key, &p->op.joined);
}

/* The last party that leaves ends the members that are still in the set. */
static void sets_leave(struct mix_party *p)
{
    if (p->role == SETS_ADD) {
        sets_set_events(p);
        mix_add(&sets.adders, -1);
    }
    blitz_join_set_unref(sets.set);
}

static void sets_check(struct mix_round *r)
{
    CHECK_EQ(blitz_wait_group_wait(&sets.open, BLITZ_FOREVER), 0);
    for (unsigned i = 0; i < r->count; i++)
        for (uint64_t k = 0; r->party[i].role == SETS_ADD && k < r->party[i].scratch[SETS_ADDED];
             k++) {
            struct sets_member *m = &sets.member[i * SETS_EACH + k];
            if (!sets.is_detached && !sets.is_left)
                CHECK_EQ(mix_get(&m->out), 1);
            /* The join has taken the handle, unless a cancel came before the first poll. */
            if (m->kind == SETS_LINKED && m->f.join.result != 0)
                blitz_task_detach(m->linked);
        }
}

static const struct mix_scene mix_scene_sets = {"sets",    3,          sets_make, sets_next,
                                                sets_done, sets_leave, sets_check};

#endif
