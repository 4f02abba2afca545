/*
 * messages.h - ours: messages between actors that live.
 */
#ifndef BENCH_ACTORS_MESSAGES_H
#define BENCH_ACTORS_MESSAGES_H

#include "actors/ours.h"

/* ---- ping-pong and ring: one message goes around ---- */

enum { TOKEN, NEXT };

BLITZ_HANDLER(on_token, const blitz_actor_id, uint64_t)
{
    (void)m;
    if (*data == 0) {
        blitz_notify_one(&done);
        return 0;
    }
    uint64_t left = *data - 1;
    return blitz_actor_send(*state, TOKEN, &left, sizeof left);
}

BLITZ_HANDLER(on_next, blitz_actor_id, blitz_actor_id)
{
    (void)m;
    *state = *data;
    return 0;
}

static const blitz_handler passer_handlers[] = {BLITZ_ON(TOKEN, uint64_t, on_token),
                                                BLITZ_ON(NEXT, blitz_actor_id, on_next)};
static const blitz_behaviour passer = {.name = "passer",
                                       .state_bytes = sizeof(blitz_actor_id),
                                       .handlers = passer_handlers,
                                       .handler_count = 2};

static double around(uint64_t hops, unsigned count)
{
    blitz_actor_id id[RING];
    for (unsigned i = 0; i < count; i++)
        id[i] = start(&passer, i > 0 ? &id[i - 1] : NULL);
    tell(id[0], NEXT, &id[count - 1], sizeof *id);
    uint64_t began = tasks_now_ns();
    tell(id[0], TOKEN, &hops, sizeof hops);
    double ns = done_since(began);
    for (unsigned i = 0; i < count; i++)
        stop(id[i]);
    return ns;
}

static double case_ping_pong(uint64_t ops)
{
    return around(ops, 2);
}

static double case_ring(uint64_t ops)
{
    return around(ops, RING);
}

/* ---- counting and fan-in ---- */

enum { ADD };

struct counter {
    uint64_t sum, total;
};

BLITZ_HANDLER(on_add, struct counter, uint64_t)
{
    (void)m;
    state->sum += *data;
    if (state->sum == state->total)
        blitz_notify_one(&done);
    return 0;
}

static const blitz_handler counter_handlers[] = {BLITZ_ON(ADD, uint64_t, on_add)};
static const blitz_behaviour counter = {.name = "counter",
                                        .state_bytes = sizeof(struct counter),
                                        .handlers = counter_handlers,
                                        .handler_count = 1};

enum { GO };

struct sender {
    blitz_actor_id to;
    uint64_t left;
};

BLITZ_HANDLER(on_go, struct sender, void)
{
    uint64_t one = 1, now = smaller(state->left, BURST);
    (void)data, (void)m;
    state->left -= now;
    for (; now > 0; now--)
        tell(state->to, ADD, &one, sizeof one);
    if (state->left > 0)
        tell(blitz_actor_self(), GO, NULL, 0);
    return 0;
}

static const blitz_handler sender_handlers[] = {BLITZ_ON_EMPTY(GO, on_go)};
static const blitz_behaviour sender = {.name = "sender",
                                       .state_bytes = sizeof(struct sender),
                                       .handlers = sender_handlers,
                                       .handler_count = 1};

/* The last addition ends the measurement, so all of them have come. */
static double fan_in(uint64_t ops, unsigned count)
{
    blitz_actor_id id[SENDERS];
    uint64_t each = ops / count + 1;
    blitz_actor_id to = start(&counter, &(struct counter){0, each * count});
    for (unsigned i = 0; i < count; i++)
        id[i] = start(&sender, &(struct sender){to, each});
    uint64_t began = tasks_now_ns();
    for (unsigned i = 0; i < count; i++)
        tell(id[i], GO, NULL, 0);
    double ns = done_since(began);
    for (unsigned i = 0; i < count; i++)
        stop(id[i]);
    stop(to);
    return ns / (double)(each * count) * (double)ops;
}

static double case_counting(uint64_t ops)
{
    return fan_in(ops, 1);
}

static double case_fan_in(uint64_t ops)
{
    return fan_in(ops, SENDERS);
}

static double case_counting_peak(uint64_t ops)
{
    (void)fan_in(ops, 1);
    return cases_peak_mb();
}

static double case_fan_in_peak(uint64_t ops)
{
    (void)fan_in(ops, SENDERS);
    return cases_peak_mb();
}

/* ---- big ---- */

enum { BEGIN, PING, PONG };

static struct {
    blitz_actor_id id[BIG];
    uint64_t running; /* actors that have not had all their pongs; atomic */
} big;

struct talker {
    uint64_t me, left, seed;
};

static int ping(struct talker *t)
{
    uint64_t other = cases_partner(&t->seed, t->me, BIG);
    return blitz_actor_send(big.id[other], PING, NULL, 0);
}

BLITZ_HANDLER(on_begin, struct talker, void)
{
    (void)data, (void)m;
    return ping(state);
}

BLITZ_HANDLER(on_ping, struct talker, void)
{
    (void)state, (void)data;
    return blitz_actor_send(m->from, PONG, NULL, 0);
}

BLITZ_HANDLER(on_pong, struct talker, void)
{
    (void)data, (void)m;
    if (--state->left > 0)
        return ping(state);
    if (__atomic_sub_fetch(&big.running, 1, __ATOMIC_RELAXED) == 0)
        blitz_notify_one(&done);
    return 0;
}

static const blitz_handler talker_handlers[] = {
    BLITZ_ON_EMPTY(BEGIN, on_begin), BLITZ_ON_EMPTY(PING, on_ping), BLITZ_ON_EMPTY(PONG, on_pong)};
static const blitz_behaviour talker = {.name = "talker",
                                       .state_bytes = sizeof(struct talker),
                                       .handlers = talker_handlers,
                                       .handler_count = 3};

static double case_big(uint64_t ops)
{
    uint64_t each = ops / (2 * BIG) + 1;
    big.running = BIG;
    for (uint64_t i = 0; i < BIG; i++)
        big.id[i] = start(&talker, &(struct talker){i, each, i + 1});
    uint64_t began = tasks_now_ns();
    for (unsigned i = 0; i < BIG; i++)
        tell(big.id[i], BEGIN, NULL, 0);
    double ns = done_since(began);
    for (unsigned i = 0; i < BIG; i++)
        stop(big.id[i]);
    return ns / (double)(2 * each * BIG) * (double)ops;
}

#endif
