/*
 * actors.h - the scene of actors: sends that wait for room, calls, and waits for quiet.
 *
 * A few actors with low marks add numbers and answer. Some of their handlers yield or sleep, so that mailboxes fill and senders are
 * held back. Parties send, call, and wait until the actors are quiet. A message that was sent is handled once, a send that gave up
 * has sent nothing, an answer is the one to the question. After a wait for quiet everything that this party has sent is handled.
 */
#ifndef MIX_ACTORS_H
#define MIX_ACTORS_H

#include "support/mix/round.h"

enum { ACTORS_MAX = 3 };
enum { ACTORS_ADD, ACTORS_ASK };

static struct {
    blitz_actor_id id[ACTORS_MAX];
    unsigned count;
    blitz_runtime *rt;
    struct mix_count sent, asked, answered, handled;
    struct mix_count of[MIX_PARTIES]; /* messages of a party that were handled */
} actors;

/* ---- the actors ---- */

struct actors_add {
    uint64_t party, dice;
};

static void actors_dally(uint64_t dice)
{
    if (dice % 4 == 0)
        blitz_yield();
    else if (dice % 16 == 1)
        (void)!blitz_sleep(dice % 3000);
}

BLITZ_HANDLER(actors_on_add, void, struct actors_add)
{
    (void)state, (void)m;
    actors_dally(data->dice);
    mix_add(&actors.of[data->party], 1);
    mix_add(&actors.handled, 1);
    return 0;
}

BLITZ_HANDLER(actors_on_ask, void, uint64_t)
{
    (void)state;
    actors_dally(*data);
    mix_add(&actors.handled, 1);
    return blitz_actor_reply(m->reply, &(uint64_t){~*data}, sizeof(uint64_t));
}

static const blitz_handler actors_handlers[] = {
    BLITZ_ON(ACTORS_ADD, struct actors_add, actors_on_add),
    BLITZ_ON(ACTORS_ASK, uint64_t, actors_on_ask)};
static const blitz_behaviour actors_worker = {
    .name = "mix", .handlers = actors_handlers, .handler_count = 2, .mailbox_high = 16};

/* ---- verbs: op->of is the actor; the message is in op->value, the answer in op->n ---- */

static blitz_actor_id actors_to(const struct mix_op *op)
{
    return *(const blitz_actor_id *)op->of;
}

static int mix_actor_send_call(struct mix_op *op, blitz_deadline until)
{
    return until == BLITZ_FOREVER && op->is_biased
               ? blitz_actor_send(actors_to(op), ACTORS_ADD, op->value, sizeof(struct actors_add))
               : blitz_actor_send_until(actors_to(op), ACTORS_ADD, op->value,
                                        sizeof(struct actors_add), until);
}
static blitz_future *mix_actor_send_future(struct mix_op *op)
{
    blitz_actor_send_future_init(&op->f.actor_send, actors_to(op), ACTORS_ADD, op->value,
                                 sizeof(struct actors_add));
    return &op->f.actor_send.future;
}
static int mix_actor_send_result(struct mix_op *op, int rc)
{
    return rc == 0 || op->f.actor_send.result == 0 ? op->f.actor_send.result : rc;
}
static const struct mix_verb mix_actor_send = {
    "actor send", mix_actor_send_call, mix_actor_send_future, mix_actor_send_result, 0, 0};

static int actors_answer(int rc)
{
    return rc == (int)sizeof(uint64_t) ? 0 : rc;
}
static int mix_actor_call_call(struct mix_op *op, blitz_deadline until)
{
    return actors_answer(blitz_actor_call(actors_to(op), ACTORS_ASK, op->value, sizeof(uint64_t),
                                          &op->n, sizeof op->n, until));
}
static blitz_future *mix_actor_call_future(struct mix_op *op)
{
    blitz_actor_call_future_init(&op->f.actor_call, actors_to(op), ACTORS_ASK, op->value,
                                 sizeof(uint64_t), &op->n, sizeof op->n);
    return &op->f.actor_call.future;
}
static int mix_actor_call_result(struct mix_op *op, int rc)
{
    return rc == 0 ? actors_answer(op->f.actor_call.result) : rc;
}
static const struct mix_verb mix_actor_call = {
    "actor call", mix_actor_call_call, mix_actor_call_future, mix_actor_call_result, 0, 0};

static int mix_quiet_call(struct mix_op *op, blitz_deadline until)
{
    return blitz_actors_wait_quiet(op->of, until);
}
static blitz_future *mix_quiet_future(struct mix_op *op)
{
    blitz_actors_wait_quiet_future_init(&op->f.quiet, op->of);
    return &op->f.quiet.future;
}
static int mix_quiet_result(struct mix_op *op, int rc)
{
    return rc == 0 ? op->f.quiet.result : rc;
}
static const struct mix_verb mix_quiet = {
    "quiet actors", mix_quiet_call, mix_quiet_future, mix_quiet_result, 0, 0};

/* ---- the scene ---- */

static void actors_make(struct mix_round *r)
{
    memset(&actors, 0, sizeof actors);
    actors.rt = r->rt;
    actors.count = 1 + (unsigned)mix_die(&r->dice, ACTORS_MAX);
    for (unsigned i = 0; i < actors.count; i++)
        CHECK_EQ(blitz_actor_spawn(&actors_worker, NULL, &(blitz_actor_opts){.runtime = r->rt},
                                   &actors.id[i]),
                 0);
    for (uint64_t n = 2 + mix_die(&r->dice, 10); n > 0; n--)
        mix_join_in(r, 0, mix_one_in(&r->dice, 3))->left = 1 + (unsigned)mix_die(&r->dice, 40);
    mix_say(r, " %u actors", actors.count);
}

static bool actors_next(struct mix_party *p)
{
    uint64_t dice = mix_die(&p->dice, 1 << 20);
    struct actors_add add = {p->index, dice};
    if (p->left == 0)
        return false;
    p->left--;
    memcpy(p->op.value, dice % 8 < 6 ? (void *)&add : (void *)&dice,
           dice % 8 < 6 ? sizeof add : sizeof dice);
    p->op.is_biased = dice % 2 == 0;
    p->op.n = 0;
    p->scratch[1] = dice % 8;
    if (dice % 8 == 7)
        mix_begin(p, &mix_quiet, actors.rt);
    else
        mix_begin(p, dice % 8 < 6 ? &mix_actor_send : &mix_actor_call,
                  &actors.id[dice / 8 % actors.count]);
    if (dice % 8 == 6)
        mix_add(&actors.asked, 1);
    return true;
}

static void actors_done(struct mix_party *p, int rc)
{
    uint64_t asked;
    CHECK(rc == 0 || rc == -ETIMEDOUT || rc == -ECANCELED);
    if (rc != 0)
        return;
    if (p->scratch[1] < 6) {
        mix_add(&actors.sent, 1);
        p->scratch[0]++; /* sent by this party */
    } else if (p->scratch[1] == 6) {
        memcpy(&asked, p->op.value, sizeof asked);
        CHECK_EQ(p->op.n, ~asked);
        mix_add(&actors.answered, 1);
    } else {
        CHECK_EQ((uint64_t)mix_get(&actors.of[p->index]), p->scratch[0]);
    }
}

static void actors_leave(struct mix_party *p)
{
    (void)p;
}

/* A call that gave up may have been sent. */
static void actors_check(struct mix_round *r)
{
    CHECK_EQ(blitz_actors_wait_quiet(r->rt, BLITZ_FOREVER), 0);
    int64_t handled = mix_get(&actors.handled), sent = mix_get(&actors.sent);
    CHECK_GE(handled, sent + mix_get(&actors.answered));
    CHECK_LE(handled, sent + mix_get(&actors.asked));
    for (unsigned i = 0; i < r->count; i++)
        CHECK_EQ((uint64_t)mix_get(&actors.of[i]), r->party[i].scratch[0]);
    for (unsigned i = 0; i < actors.count; i++) {
        CHECK_EQ(blitz_actor_stop(actors.id[i]), 0);
        int rc = blitz_actor_join(actors.id[i], NULL, BLITZ_FOREVER);
        CHECK(rc == 0 || rc == -ESRCH);
    }
}

static const struct mix_scene mix_scene_actors = {
    "actors", 3, actors_make, actors_next, actors_done, actors_leave, actors_check};

#endif
