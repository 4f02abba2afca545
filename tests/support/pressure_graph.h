/*
 * pressure_graph.h - a random graph of actors that are overloaded, in cycles, for simulations and stress.
 *
 * Nodes pass messages on to one or two others, so that a burst grows. Their marks are low and their policies differ. Drivers are
 * fibers that send bursts in every form, some with deadlines, and kill nodes and start them again.
 *
 * In an exact graph no handler waits, and a mute would last an hour. So every muted actor and every send that waits must be let
 * go on by a receiver, its death, a signal or its own overload. In the other graphs handlers sleep and call each other, and
 * the time helps.
 *
 * Checked: all drivers end, and all nodes become idle; in an exact graph within less than the hour. A message reaches the actor it
 * was sent to. A mailbox stays below a bound that the marks and the bursts explain.
 */
#ifndef T_PRESSURE_GRAPH_H
#define T_PRESSURE_GRAPH_H

#include <errno.h>
#include <stdio.h>

#include "actor/pressure.h"
#include "base/rng.h"
#include "blitz.h"
#include "harness.h"

enum { FLOW_NODES = 4, FLOW_DRIVERS = 3, FLOW_BURST = 40 };
enum { FLOW_PASS, FLOW_ASK };

struct flow {
    uint64_t seed;
    uint32_t rounds;
    bool is_exact; /* no handler waits */
};

struct flow_pass {
    uint32_t ttl, dice, generation;
    bool is_exact;
};

static inline blitz_actor_id flow_find(uint32_t node)
{
    char name[16];
    snprintf(name, sizeof name, "flow %u", node % FLOW_NODES);
    return blitz_actor_whereis(NULL, name);
}

/* ---- nodes ---- */

static inline void flow_wait(uint32_t dice)
{
    if (dice % 16 == 0)
        (void)!blitz_sleep(dice % 100000); /* a kill ends it */
    else if (dice % 16 == 1)
        (void)blitz_actor_call(flow_find(dice >> 4), FLOW_ASK, NULL, 0, NULL, 0,
                               blitz_after(50000));
}

BLITZ_HANDLER(flow_on_pass, int, struct flow_pass)
{
    (void)state, (void)m;
    CHECK_EQ(data->generation, blitz_actor_self().generation);
    if (!data->is_exact)
        flow_wait(data->dice >> 8);
    for (uint32_t i = 0; data->ttl > 0 && i <= data->dice % 2; i++) {
        struct flow_pass on = {data->ttl - 1, (data->dice + i) * 2654435761u + 1, 0,
                               data->is_exact};
        blitz_actor_id next = flow_find(on.dice >> 16);
        on.generation = next.generation;
        int rc = on.dice % 8 == 0 ? blitz_actor_try_send(next, FLOW_PASS, &on, sizeof on)
                                  : blitz_actor_send(next, FLOW_PASS, &on, sizeof on);
        CHECK(rc == 0 || rc == -ESRCH || rc == -EAGAIN);
    }
    return 0;
}

BLITZ_HANDLER(flow_on_ask, int, void)
{
    (void)state, (void)data;
    return blitz_actor_reply(m->reply, NULL, 0);
}

static const blitz_handler flow_handlers[] = {BLITZ_ON(FLOW_PASS, struct flow_pass, flow_on_pass),
                                              BLITZ_ON_EMPTY(FLOW_ASK, flow_on_ask)};

#define FLOW_KIND(high, policy_)                                                           \
    {                                                                                      \
        .name = "flow", .handlers = flow_handlers, .handler_count = 2, .mailbox_max = 900, \
        .mailbox_high = high, .policy = policy_                                            \
    }
static const blitz_behaviour flow_kinds[] = {
    FLOW_KIND(16, BLITZ_OVERLOAD_MUTE),        FLOW_KIND(30, BLITZ_OVERLOAD_MUTE),
    FLOW_KIND(20, BLITZ_OVERLOAD_MUTE),        FLOW_KIND(16, BLITZ_OVERLOAD_DROP_OLDEST),
    FLOW_KIND(16, BLITZ_OVERLOAD_DROP_NEWEST), FLOW_KIND(25, BLITZ_OVERLOAD_FAIL)};

/* Start a node, unless another driver has done so. */
static inline void flow_begin(uint32_t node, uint32_t kind)
{
    char name[16];
    snprintf(name, sizeof name, "flow %u", node % FLOW_NODES);
    blitz_actor_opts opts = {.name = name};
    int rc = blitz_actor_spawn(&flow_kinds[kind % BZ_ARRAY_LEN(flow_kinds)], NULL, &opts, NULL);
    CHECK(rc == 0 || rc == -EEXIST);
}

/* ---- drivers ---- */

struct flow_driver {
    const struct flow *flow;
    struct bz_rng rng;
};

static inline void flow_send(blitz_actor_id to, const struct flow_pass *p, uint32_t dice)
{
    blitz_actor_send_future f;
    int rc;
    switch (dice % 4) {
    case 0:
        rc = blitz_actor_send(to, FLOW_PASS, p, sizeof *p);
        break;
    case 1:
        rc = blitz_actor_send_until(to, FLOW_PASS, p, sizeof *p, blitz_after(dice % 5000));
        break;
    case 2:
        rc = blitz_actor_try_send(to, FLOW_PASS, p, sizeof *p);
        break;
    default:
        blitz_actor_send_future_init(&f, to, FLOW_PASS, p, sizeof *p);
        rc = blitz_await(&f.future, dice % 3 == 0 ? blitz_after(dice % 5000) : BLITZ_FOREVER);
        rc = rc != 0 ? rc : f.result;
    }
    CHECK(rc == 0 || rc == -ESRCH || rc == -EAGAIN || rc == -ETIMEDOUT);
}

static inline int flow_drive(void *driver)
{
    struct flow_driver *d = driver;
    for (uint32_t i = 0; i < d->flow->rounds; i++) {
        uint32_t value = (uint32_t)bz_rng_next(&d->rng);
        blitz_actor_id to = flow_find(value >> 20);
        struct flow_pass p = {value % 5, value, to.generation, d->flow->is_exact};
        for (uint32_t n = 0; n < value / 8 % FLOW_BURST; n++)
            flow_send(to, &p, (uint32_t)bz_rng_next(&d->rng));
        if (value % 7 == 0) {
            (void)(value % 2 == 0 ? blitz_actor_kill(to) : blitz_actor_stop(to));
            (void)blitz_actor_join(to, NULL, BLITZ_FOREVER);
            if (value % 3 != 0) /* else its memory has no next actor for a while */
                flow_begin(value >> 20, value >> 8);
        }
    }
    return 0;
}

/* Look until all nodes are idle. */
static inline void flow_settle(const struct flow *g)
{
    blitz_deadline end = blitz_after(60 * BLITZ_S);
    for (uint32_t i = 0; i < FLOW_NODES;) {
        blitz_actor_info info;
        int rc = blitz_actor_info_get(flow_find(i), &info);
        if (rc == -ESRCH || info.state == BLITZ_ACTOR_IDLE) {
            i++;
            continue;
        }
        CHECK(info.mailbox <= 900 + 8);
        CHECK(!g->is_exact || blitz_after(0) < end);
        CHECK_EQ(blitz_sleep(100000), 0);
        i = 0;
    }
}

static inline int flow_play(void *arg)
{
    const struct flow *g = arg;
    struct flow_driver driver[FLOW_DRIVERS];
    blitz_task *task[FLOW_DRIVERS];
    blitz_deadline begin = blitz_after(0);
    for (uint32_t i = 0; i < FLOW_NODES; i++)
        flow_begin(i, (uint32_t)(g->seed >> 4 * i));
    for (uint32_t i = 0; i < FLOW_DRIVERS; i++) {
        driver[i] = (struct flow_driver){.flow = g};
        bz_rng_init(&driver[i].rng, g->seed * 31 + i);
        CHECK_EQ(blitz_spawn(flow_drive, &driver[i], NULL, &task[i]), 0);
    }
    for (uint32_t i = 0; i < FLOW_DRIVERS; i++)
        CHECK_EQ(blitz_task_join(task[i], NULL, BLITZ_FOREVER), 0);
    if (g->seed % 3 != 0) /* else the end of the runtime finds them busy, and muted */
        flow_settle(g);
    if (g->is_exact)
        CHECK(blitz_after(0) - begin < 1800 * BLITZ_S);
    return 0;
}

/* Before the first actor of a graph. */
static inline void flow_prepare(const struct flow *g)
{
    bz_mute_ns = g->is_exact ? 3600 * BLITZ_S : BLITZ_MS;
}

#endif
