/*
 * actor_graph.h - a random graph of actors that send, call, wait, crash and are killed, for simulations and stress.
 *
 * A watcher starts the nodes, monitors each, and starts a dead node again under the same name. Drivers are fibers that find nodes
 * by name and send, call, stop, kill and join them. Nodes pass messages on, in cycles, and call each other inside handlers.
 *
 * Checked: a message reaches the actor it was sent to, and no later one in the same memory. Every call and join returns, or the
 * run does not end. Messages of one driver reach a node in order. Each monitor is told exactly once, with a reason that exists.
 * An answer is the one to the question. All actors end with the runtime.
 */
#ifndef T_ACTOR_GRAPH_H
#define T_ACTOR_GRAPH_H

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/rng.h"
#include "blitz.h"
#include "harness.h"

enum { GRAPH_NODES = 5, GRAPH_DRIVERS = 3, GRAPH_REFS = 4096 };
enum { GRAPH_PING, GRAPH_ASK, GRAPH_CRASH, GRAPH_SLEEP, GRAPH_CALL }; /* nodes */
enum { GRAPH_BEGIN, GRAPH_CLOSE };                                    /* the watcher */

struct graph_ping {
    uint32_t driver, seq, ttl, dice;
    uint32_t generation; /* of the receiver */
};

struct graph_node {
    uint32_t last[GRAPH_DRIVERS];
};

struct graph_watcher {
    uint32_t begun, downs;
    bool is_closing;
    blitz_reply_to reply;
    uint8_t node[GRAPH_REFS]; /* by ref: 1 + its node; 0: told, or never given */
};

static inline blitz_actor_id graph_find(uint32_t node)
{
    char name[16];
    snprintf(name, sizeof name, "node %u", node % GRAPH_NODES);
    return blitz_actor_whereis(NULL, name);
}

/* ---- nodes ---- */

BLITZ_HANDLER(graph_on_ping, struct graph_node, struct graph_ping)
{
    (void)m;
    CHECK_EQ(data->generation,
             blitz_actor_self().generation); /* not for a dead node in this memory */
    if (data->driver < GRAPH_DRIVERS) {
        CHECK(data->seq > state->last[data->driver]); /* in order, and once */
        state->last[data->driver] = data->seq;
    }
    if (data->ttl == 0)
        return 0;
    struct graph_ping on = {GRAPH_DRIVERS, 0, data->ttl - 1, data->dice * 2654435761u + 1, 0};
    blitz_actor_id next = graph_find(on.dice >> 16);
    on.generation = next.generation;
    int rc = blitz_actor_send(next, GRAPH_PING, &on, sizeof on);
    CHECK(rc == 0 || rc == -ESRCH);
    return 0;
}

BLITZ_HANDLER(graph_on_ask, struct graph_node, uint32_t)
{
    (void)state;
    uint32_t answer = *data + 1;
    return blitz_actor_reply(m->reply, &answer, sizeof answer);
}

BLITZ_HANDLER(graph_on_crash, struct graph_node, uint32_t)
{
    (void)state, (void)m;
    return *data % 2 == 0 ? blitz_actor_fail(-EIO, "planned") : BLITZ_ACTOR_STOP;
}

/* A kill ends the wait. */
BLITZ_HANDLER(graph_on_sleep, struct graph_node, uint32_t)
{
    (void)state;
    int rc = blitz_sleep(*data % 4 == 0 ? 3600 * BLITZ_S : *data % 1000);
    CHECK(rc == 0 || rc == -ECANCELED);
    return blitz_actor_reply(m->reply, data, sizeof *data);
}

/* Call another node inside the handler. Nodes that call each other end by the deadline. */
BLITZ_HANDLER(graph_on_call, struct graph_node, uint32_t)
{
    (void)state;
    uint32_t answer = 0;
    int rc = blitz_actor_call(graph_find(*data >> 8), GRAPH_ASK, data, sizeof *data, &answer,
                              sizeof answer, blitz_after(50000));
    CHECK(rc == (int)sizeof answer || rc == -ESRCH || rc == -ETIMEDOUT || rc == -ECANCELED);
    CHECK(rc < 0 || answer == *data + 1);
    return blitz_actor_reply(m->reply, &answer, sizeof answer);
}

static const blitz_handler graph_node_handlers[] = {
    BLITZ_ON(GRAPH_PING, struct graph_ping, graph_on_ping),
    BLITZ_ON(GRAPH_ASK, uint32_t, graph_on_ask),
    BLITZ_ON(GRAPH_CRASH, uint32_t, graph_on_crash),
    BLITZ_ON(GRAPH_SLEEP, uint32_t, graph_on_sleep),
    BLITZ_ON(GRAPH_CALL, uint32_t, graph_on_call),
};
static const blitz_behaviour graph_node = {.name = "node",
                                           .state_bytes = sizeof(struct graph_node),
                                           .handlers = graph_node_handlers,
                                           .handler_count = 5};

/* ---- the watcher ---- */

/* The name of a node that is about to end may still be there: it ends before its monitors are told. */
static inline int graph_begin(struct graph_watcher *w, uint32_t node)
{
    char name[16];
    uint64_t ref = 0;
    snprintf(name, sizeof name, "node %u", node);
    blitz_actor_opts opts = {.name = name, .monitor = &ref, .link = node % 2 == 0};
    CHECK_EQ(blitz_actor_spawn(&graph_node, NULL, &opts, NULL), 0);
    CHECK(ref < GRAPH_REFS);
    w->node[ref] = (uint8_t)(node + 1);
    w->begun++;
    return 0;
}

BLITZ_HANDLER(graph_on_begin, struct graph_watcher, void)
{
    (void)data;
    blitz_actor_trap_exit(true);
    for (uint32_t i = 0; i < GRAPH_NODES; i++)
        (void)graph_begin(state, i);
    return blitz_actor_reply(m->reply, NULL, 0);
}

static inline int graph_look(struct graph_watcher *w)
{
    if (!w->is_closing || w->downs != w->begun)
        return 0;
    return blitz_actor_reply(w->reply, &w->downs, sizeof w->downs);
}

BLITZ_HANDLER(graph_on_down, struct graph_watcher, blitz_down)
{
    (void)m;
    uint8_t node = data->ref < GRAPH_REFS ? state->node[data->ref] : 0;
    CHECK(node != 0); /* once */
    CHECK(data->reason.kind != BLITZ_EXIT_NOPROC);
    state->node[data->ref] = 0;
    state->downs++;
    if (!state->is_closing && state->begun < 200)
        return graph_begin(state, node - 1u);
    return graph_look(state);
}

BLITZ_HANDLER(graph_on_close, struct graph_watcher, void)
{
    (void)data;
    state->is_closing = true;
    state->reply = m->reply;
    for (uint32_t i = 0; i < GRAPH_NODES; i++)
        (void)blitz_actor_kill(graph_find(i));
    int rc = blitz_actor_reply_keep(m->reply);
    return rc != 0 ? rc : graph_look(state);
}

static const blitz_handler graph_watcher_handlers[] = {
    BLITZ_ON_EMPTY(GRAPH_BEGIN, graph_on_begin),
    BLITZ_ON_EMPTY(GRAPH_CLOSE, graph_on_close),
    BLITZ_ON(BLITZ_MSG_DOWN, blitz_down, graph_on_down),
};
static const blitz_behaviour graph_watcher = {.name = "watcher",
                                              .state_bytes = sizeof(struct graph_watcher),
                                              .handlers = graph_watcher_handlers,
                                              .handler_count = 3};

/* ---- drivers ---- */

struct graph_driver {
    uint32_t number, seq, rounds;
    struct bz_rng rng;
};

static inline void graph_call(blitz_actor_id id, uint32_t what, uint32_t value,
                              blitz_deadline until)
{
    uint32_t answer = 0;
    int rc = blitz_actor_call(id, what, &value, sizeof value, &answer, sizeof answer, until);
    CHECK(rc == (int)sizeof answer || rc == -ESRCH || rc == -ETIMEDOUT);
    CHECK(rc < 0 || what != GRAPH_ASK || answer == value + 1);
}

/* The same as a future. */
static inline void graph_await(blitz_actor_id id, uint32_t value)
{
    uint32_t answer = 0;
    blitz_actor_call_future f;
    blitz_actor_call_future_init(&f, id, GRAPH_ASK, &value, sizeof value, &answer, sizeof answer);
    int rc = blitz_await(&f.future, blitz_after(1 + value % 20000));
    CHECK(rc == -ETIMEDOUT || f.result == -ESRCH || answer == value + 1);
}

static inline void graph_join(blitz_actor_id id, uint32_t value)
{
    blitz_exit_reason why;
    int rc = blitz_actor_join(id, &why, blitz_after(1 + value % 20000));
    CHECK(rc == 0 || rc == -ESRCH || rc == -ETIMEDOUT);
}

static inline void graph_act(struct graph_driver *d, blitz_actor_id id, uint32_t value)
{
    struct graph_ping ping = {d->number, ++d->seq, value % 4, value, id.generation};
    uint64_t timer;
    switch (value / 16 % 12) {
    case 0:
    case 1:
    case 2:
    case 3:
        (void)blitz_actor_send(id, GRAPH_PING, &ping, sizeof ping);
        break;
    case 4:
        graph_call(id, GRAPH_ASK, value,
                   value % 3 == 0 ? BLITZ_FOREVER : blitz_after(value % 9999));
        break;
    case 5:
        graph_call(id, GRAPH_CALL, value, blitz_after(value % 99999));
        break;
    case 6:
        (void)blitz_actor_send(id, GRAPH_CRASH, &value, sizeof value);
        break;
    case 7:
        graph_call(id, GRAPH_SLEEP, value, blitz_after(value % 9999));
        if (value % 4 == 0) /* asleep for an hour */
            (void)blitz_actor_kill(id);
        break;
    case 8:
        (void)(value % 2 == 0 ? blitz_actor_kill(id) : blitz_actor_stop(id));
        break;
    case 9:
        graph_await(id, value);
        break;
    case 10:
        graph_join(id, value);
        break;
    default:
        ping.driver = GRAPH_DRIVERS; /* it may come late */
        if (blitz_actor_send_after(id, GRAPH_PING, &ping, sizeof ping, blitz_after(value % 9999),
                                   &timer) == 0 &&
            value % 3 == 0)
            (void)blitz_actor_timer_cancel(id, timer);
    }
}

static inline int graph_drive(void *driver)
{
    struct graph_driver *d = driver;
    for (uint32_t i = 0; i < d->rounds; i++) {
        uint32_t value = (uint32_t)bz_rng_next(&d->rng);
        graph_act(d, graph_find(value >> 20), value >> 4);
        if (value % 5 == 0)
            blitz_yield();
    }
    return 0;
}

struct graph {
    uint64_t seed;
    uint32_t rounds;
};

static inline int graph_play(void *arg)
{
    const struct graph *g = arg;
    struct graph_driver driver[GRAPH_DRIVERS];
    blitz_task *task[GRAPH_DRIVERS];
    blitz_actor_id watcher;
    uint32_t downs = 0;
    CHECK_EQ(blitz_actor_spawn(&graph_watcher, NULL, NULL, &watcher), 0);
    CHECK_EQ(blitz_actor_call(watcher, GRAPH_BEGIN, NULL, 0, NULL, 0, BLITZ_FOREVER), 0);
    for (uint32_t i = 0; i < GRAPH_DRIVERS; i++) {
        driver[i] = (struct graph_driver){.number = i, .rounds = g->rounds};
        bz_rng_init(&driver[i].rng, g->seed * 31 + i);
        CHECK_EQ(blitz_spawn(graph_drive, &driver[i], NULL, &task[i]), 0);
    }
    for (uint32_t i = 0; i < GRAPH_DRIVERS; i++)
        CHECK_EQ(blitz_task_join(task[i], NULL, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_actor_call(watcher, GRAPH_CLOSE, NULL, 0, &downs, sizeof downs, BLITZ_FOREVER),
             (int)sizeof downs);
    CHECK(downs >= GRAPH_NODES);
    return 0; /* the watcher, idle, and timers are left to the shutdown */
}

#endif
