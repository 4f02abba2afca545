/*
 * actors.h - messages, calls, lives, relations and restarts of actors.
 */
#ifndef BENCH_BUDGET_ACTORS_H
#define BENCH_BUDGET_ACTORS_H

#include <errno.h>

#include "budget/budget.h"

enum { PASS, ADD, GET, CRASH };

static blitz_notify actor_done = BLITZ_NOTIFY_INIT;

struct passer {
    uint64_t left; /* hops */
    blitz_actor_id other;
};

BLITZ_HANDLER(on_pass, struct passer, blitz_actor_id)
{
    (void)m;
    if (data->generation != 0)
        state->other = *data;
    if (state->left-- == 0) {
        blitz_notify_one(&actor_done);
        return 0;
    }
    static const blitz_actor_id none;
    must(blitz_actor_send(state->other, PASS, &none, sizeof none), "send");
    return 0;
}

static const blitz_handler passer_handlers[] = {BLITZ_ON(PASS, blitz_actor_id, on_pass)};
static const blitz_behaviour passer = {.name = "passer",
                                       .state_bytes = sizeof(struct passer),
                                       .handlers = passer_handlers,
                                       .handler_count = 1};

/* Two actors send a message to and fro: a round is a hop. */
static void actor_hops(uint64_t rounds)
{
    blitz_actor_id id[2];
    struct passer s = {.left = rounds / 2};
    for (int i = 0; i < 2; i++)
        must(blitz_actor_spawn(&passer, &s, NULL, &id[i]), "spawn");
    must(blitz_actor_send(id[1], PASS, &id[0], sizeof id[0]), "send");
    must(blitz_actor_send(id[0], PASS, &id[1], sizeof id[1]), "send");
    must(blitz_notify_wait(&actor_done, BLITZ_FOREVER), "wait");
    for (int i = 0; i < 2; i++)
        must(blitz_actor_stop(id[i]), "stop");
}

BLITZ_HANDLER(on_add, uint64_t, uint64_t)
{
    (void)m;
    *state += *data;
    return 0;
}

BLITZ_HANDLER(on_get, const uint64_t, void)
{
    (void)data;
    return blitz_actor_reply(m->reply, state, sizeof *state);
}

static int on_crash(void *state, const blitz_msg *m)
{
    (void)state, (void)m;
    return -EIO;
}

static int born(void *state)
{
    (void)state;
    blitz_notify_one(&actor_done);
    return 0;
}

static const blitz_handler adder_handlers[] = {{PASS, 0, NULL},
                                               BLITZ_ON(ADD, uint64_t, on_add),
                                               BLITZ_ON_EMPTY(GET, on_get),
                                               BLITZ_ON_EMPTY(CRASH, on_crash)};
static const blitz_behaviour adder = {.name = "adder",
                                      .state_bytes = sizeof(uint64_t),
                                      .handlers = adder_handlers,
                                      .handler_count = 4};
static const blitz_behaviour mortal = {.name = "mortal",
                                       .state_bytes = sizeof(uint64_t),
                                       .init = born,
                                       .handlers = adder_handlers,
                                       .handler_count = 4};

/* A fiber sends; a hundred messages are handled in a turn. */
static void send_to(const blitz_behaviour *b, uint64_t rounds)
{
    blitz_actor_id id;
    uint64_t sum = 0, one = 1;
    must(blitz_actor_spawn(b, NULL, NULL, &id), "spawn");
    for (uint64_t i = 0; i < rounds; i++) {
        must(blitz_actor_send(id, ADD, &one, sizeof one), "send");
        if (i % 100 == 99)
            blitz_yield();
    }
    must(blitz_actor_call(id, GET, NULL, 0, &sum, sizeof sum, BLITZ_FOREVER), "call");
    if (sum != rounds)
        budget_die("%llu of %llu messages", (unsigned long long)sum, (unsigned long long)rounds);
    must(blitz_actor_stop(id), "stop");
}

static void actor_sends(uint64_t rounds)
{
    send_to(&adder, rounds);
}

static void actor_calls(uint64_t rounds)
{
    blitz_actor_id id;
    uint64_t sum = 0;
    must(blitz_actor_spawn(&adder, NULL, NULL, &id), "spawn");
    for (; rounds > 0; rounds--)
        must(blitz_actor_call(id, GET, NULL, 0, &sum, sizeof sum, BLITZ_FOREVER), "call");
    must(blitz_actor_stop(id), "stop");
}

/* A life: created, one message, and the end. */
static void actor_lives(uint64_t rounds)
{
    blitz_actor_id id;
    uint64_t one = 1;
    for (; rounds > 0; rounds--) {
        must(blitz_actor_spawn(&adder, NULL, NULL, &id), "spawn");
        must(blitz_actor_send(id, ADD, &one, sizeof one), "send");
        blitz_yield();
        must(blitz_actor_stop(id), "stop");
        blitz_yield();
    }
}

enum { PAIRS_A_MESSAGE = 100 };

struct relater {
    uint64_t left; /* pairs */
    blitz_actor_id other;
    bool monitors;
};

static void relate_once(const struct relater *r)
{
    uint64_t ref;
    if (!r->monitors) {
        must(blitz_actor_link(r->other), "link");
        must(blitz_actor_unlink(r->other), "unlink");
        return;
    }
    must(blitz_actor_monitor(r->other, &ref), "monitor");
    must(blitz_actor_demonitor(ref), "demonitor");
}

BLITZ_HANDLER(on_relate, struct relater, void)
{
    (void)data, (void)m;
    for (uint64_t n = 0; n < PAIRS_A_MESSAGE && state->left > 0; n++, state->left--)
        relate_once(state);
    if (state->left > 0)
        return blitz_actor_send(blitz_actor_self(), PASS, NULL, 0);
    blitz_notify_one(&actor_done);
    return 0;
}

static const blitz_handler relater_handlers[] = {BLITZ_ON_EMPTY(PASS, on_relate)};
static const blitz_behaviour relater = {.name = "relater",
                                        .state_bytes = sizeof(struct relater),
                                        .handlers = relater_handlers,
                                        .handler_count = 1};

/* An actor makes and ends a relation with another, a hundred times in a turn. */
static void actor_relates(uint64_t rounds, bool monitors)
{
    struct relater r = {.left = rounds, .monitors = monitors};
    blitz_actor_id id;
    must(blitz_actor_spawn(&adder, NULL, NULL, &r.other), "spawn");
    must(blitz_actor_spawn(&relater, &r, NULL, &id), "spawn");
    must(blitz_actor_send(id, PASS, NULL, 0), "send");
    must(blitz_notify_wait(&actor_done, BLITZ_FOREVER), "wait");
    must(blitz_actor_stop(id), "stop");
    must(blitz_actor_stop(r.other), "stop");
}

static void actor_links(uint64_t rounds)
{
    actor_relates(rounds, false);
}

static void actor_monitors(uint64_t rounds)
{
    actor_relates(rounds, true);
}

/* A child fails, and its supervisor starts it again. */
static void actor_restarts(uint64_t rounds)
{
    blitz_child_spec child = {.id = "mortal", .behaviour = &mortal, .name = "mortal"};
    blitz_supervisor_plan plan = {
        .intensity = 1, .period = 1, .children = &child, .child_count = 1};
    blitz_actor_id sup;
    must(blitz_supervisor_spawn(&plan, NULL, &sup), "supervisor");
    must(blitz_notify_wait(&actor_done, BLITZ_FOREVER), "wait");
    for (; rounds > 0; rounds--) {
        must(blitz_actor_send(blitz_actor_whereis(NULL, "mortal"), CRASH, NULL, 0), "send");
        must(blitz_notify_wait(&actor_done, BLITZ_FOREVER), "wait");
    }
    must(blitz_actor_stop(sup), "stop");
}

#define BUDGET_ACTORS                                                                        \
    {"actor hop", actor_hops}, {"actor send, 100 a turn", actor_sends},                      \
        {"actor call", actor_calls}, {"actor create, message, end", actor_lives},            \
        {"actor link + unlink", actor_links}, {"actor monitor + demonitor", actor_monitors}, \
    {                                                                                        \
        "actor crash + restart", actor_restarts                                              \
    }

#endif
