/*
 * gates.h - the scenes of event, latch, wait group and barrier.
 *
 * Gate: openers set the event or count down, waiters wait, alone or with a crowd of futures. The
 * gate lies on the heap. The waiter that leaves last frees it, as its header allows, although the
 * call that opened it need not have returned.
 *
 * Barrier: all parties meet a number of times. One leader each time, and no party continues early.
 */
#ifndef MIX_GATES_H
#define MIX_GATES_H

#include "support/mix/round.h"

enum { GATES_WAIT, GATES_OPEN };
enum { GATES_EVENT, GATES_LATCH, GATES_GROUP };

static struct {
    unsigned kind;
    union {
        blitz_event event;
        blitz_latch latch;
        blitz_wait_group group;
    } * gate;
    bool has_crowds;
    struct mix_count waiters, opened;
    uint64_t written; /* before the gate opens; read after */
    blitz_barrier barrier;
    unsigned parties, meetings;
    struct mix_count came, leaders;
} gates;

static void gates_make(struct mix_round *r)
{
    memset(&gates, 0, sizeof gates);
    gates.kind = (unsigned)mix_die(&r->dice, 3);
    gates.gate = malloc(sizeof *gates.gate);
    CHECK_NOT_NULL(gates.gate);
    gates.has_crowds = mix_one_in(&r->dice, 2);
    unsigned openers = gates.kind == GATES_EVENT ? 1 : 1 + (unsigned)mix_die(&r->dice, 4);
    unsigned waiters = 1 + (unsigned)mix_die(&r->dice, mix_one_in(&r->dice, 3) ? 15 : 4);
    for (unsigned i = 0; i < openers; i++)
        mix_join_in(r, GATES_OPEN, true)->left = 1;
    for (unsigned i = 0; i < waiters; i++)
        mix_join_in(r, GATES_WAIT, mix_one_in(&r->dice, 2))->left = 1;
    mix_set(&gates.waiters, waiters);
    blitz_event_init(&gates.gate->event);
    if (gates.kind == GATES_LATCH)
        blitz_latch_init(&gates.gate->latch, openers);
    if (gates.kind == GATES_GROUP) {
        blitz_wait_group_init(&gates.gate->group);
        CHECK_EQ(blitz_wait_group_add(&gates.gate->group, openers), 0);
    }
    mix_say(r, " %s%s",
            gates.kind == GATES_EVENT   ? "event"
            : gates.kind == GATES_LATCH ? "latch"
                                        : "wait group",
            gates.has_crowds ? " with crowds" : "");
}

static bool gates_next(struct mix_party *p)
{
    static const struct mix_verb *const alone[] = {&mix_event, &mix_latch, &mix_group};
    static const struct mix_verb *const crowd[] = {&mix_events, &mix_latches, &mix_groups};
    if (p->left == 0)
        return false;
    if (p->role == GATES_OPEN) {
        p->op.n = mix_die(&p->dice, 3) * mix_die(&p->dice, 30) * BLITZ_US;
        mix_begin(p, &mix_pause, NULL);
        return true;
    }
    p->op.count = 2 + (unsigned)mix_die(&p->dice, MIX_CROWD - 1);
    bool is_crowd = gates.has_crowds && mix_one_in(&p->dice, 2);
    mix_begin(p, is_crowd ? crowd[gates.kind] : alone[gates.kind], gates.gate);
    return true;
}

static void gates_open(struct mix_party *p)
{
    if (p->index == 0)
        gates.written = p->round->seed;
    if (gates.kind == GATES_EVENT)
        blitz_event_set(&gates.gate->event);
    else if (gates.kind == GATES_LATCH)
        CHECK_EQ(blitz_latch_count_down(&gates.gate->latch, 1), 0);
    else
        CHECK_EQ(blitz_wait_group_done(&gates.gate->group), 0);
}

static void gates_done(struct mix_party *p, int rc)
{
    CHECK(rc == 0 || rc == -ETIMEDOUT || rc == -ECANCELED);
    if (p->role == GATES_OPEN) {
        p->left--;
        gates_open(p);
    } else if (rc == 0) {
        p->left--;
        CHECK_EQ(gates.written, p->round->seed);
        mix_set(&gates.opened, 1);
    }
}

static void gates_leave(struct mix_party *p)
{
    if (p->role == GATES_OPEN || mix_add(&gates.waiters, -1) != 0 || !mix_get(&gates.opened))
        return;
    memset(gates.gate, 0xa5, sizeof *gates.gate);
    free(gates.gate);
    gates.gate = NULL;
}

static void gates_check(struct mix_round *r)
{
    (void)r;
    free(gates.gate);
}

static const struct mix_scene mix_scene_gates = {"gates",    4,           gates_make, gates_next,
                                                 gates_done, gates_leave, gates_check};

/* ---- an event that is set and reset ---- */

enum { RESET_WAIT, RESET_SET, RESET_RESET };

static void reset_make(struct mix_round *r)
{
    memset(&gates, 0, sizeof gates);
    gates.gate = malloc(sizeof *gates.gate);
    CHECK_NOT_NULL(gates.gate);
    blitz_event_init(&gates.gate->event);
    mix_join_in(r, RESET_WAIT, true);
    mix_join_in(r, RESET_SET, true);
    for (uint64_t n = mix_die(&r->dice, 8); n > 0; n--)
        mix_join_in(r, (unsigned)mix_die(&r->dice, 3), mix_one_in(&r->dice, 2));
    for (unsigned i = 0; i < r->count; i++) {
        r->party[i].left = 1 + (unsigned)mix_die(&r->dice, 6);
        mix_add(&gates.waiters, r->party[i].role != RESET_WAIT);
    }
}

static bool reset_next(struct mix_party *p)
{
    if (p->left == 0)
        return false;
    p->op.n = mix_die(&p->dice, 3) * mix_die(&p->dice, 15) * BLITZ_US;
    mix_begin(p, p->role == RESET_WAIT ? &mix_event : &mix_pause, gates.gate);
    return true;
}

static void reset_done(struct mix_party *p, int rc)
{
    CHECK(rc == 0 || rc == -ETIMEDOUT || rc == -ECANCELED);
    if (p->role == RESET_SET)
        blitz_event_set(&gates.gate->event);
    else if (p->role == RESET_RESET)
        blitz_event_reset(&gates.gate->event);
    p->left -= p->role != RESET_WAIT || rc == 0;
}

/* The last of those that move it leaves it set. */
static void reset_leave(struct mix_party *p)
{
    if (p->role != RESET_WAIT && mix_add(&gates.waiters, -1) == 0)
        blitz_event_set(&gates.gate->event);
}

static const struct mix_scene mix_scene_reset = {"reset",    1,           reset_make, reset_next,
                                                 reset_done, reset_leave, gates_check};

/* ---- barrier ---- */

/* p->scratch[0]: meetings; [1]: has it said that it comes to this one? */
static void barrier_make(struct mix_round *r)
{
    memset(&gates, 0, sizeof gates);
    gates.parties = 1 + (unsigned)mix_die(&r->dice, 8);
    gates.meetings = 1 + (unsigned)mix_die(&r->dice, 6);
    blitz_barrier_init(&gates.barrier, gates.parties);
    for (unsigned i = 0; i < gates.parties; i++)
        mix_join_in(r, 0, true);
    mix_say(r, " %u meetings", gates.meetings);
}

static bool barrier_next(struct mix_party *p)
{
    if (p->scratch[0] == gates.meetings)
        return false;
    if (!p->scratch[1])
        mix_add(&gates.came, 1);
    p->scratch[1] = 1;
    mix_begin(p, &mix_barrier, &gates.barrier);
    return true;
}

static void barrier_done(struct mix_party *p, int rc)
{
    CHECK(rc == 0 || rc == BLITZ_BARRIER_LEADER || rc == -ETIMEDOUT);
    if (rc == -ETIMEDOUT)
        return;
    mix_add(&gates.leaders, rc);
    p->scratch[0]++;
    p->scratch[1] = 0;
    CHECK_GE(mix_get(&gates.came), p->scratch[0] * gates.parties);
}

static void barrier_check(struct mix_round *r)
{
    (void)r;
    CHECK_EQ(mix_get(&gates.leaders), gates.meetings);
}

static const struct mix_scene mix_scene_barrier = {"barrier",    1,    barrier_make, barrier_next,
                                                   barrier_done, NULL, barrier_check};

#endif
