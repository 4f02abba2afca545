/*
 * unreachable_scene.h - random graphs of actors that hold each other, against a shadow graph; for simulations and stress.
 *
 * A driver makes actors, gives them references to each other, lets them pass references on, takes references away, names actors, arms
 * timers and kills some. The shadow knows which ones can be reached. A send to such an actor must not fail. When the actors are quiet,
 * those that can be reached are alive, and all others have ended. Meanwhile the driver pokes at any id: it sends to actors that are
 * about to end, and makes references from ids. An actor that it holds so must answer, and so must the actors that this one holds.
 *
 * Half of the seeds have a detector that waits, and a time limit that some of its passes exceed.
 */
#ifndef T_UNREACHABLE_SCENE_H
#define T_UNREACHABLE_SCENE_H

#include <errno.h>
#include <stdatomic.h>

#include "actor/reaching.h"
#include "base/rng.h"
#include "blitz.h"
#include "harness.h"

enum { REACH_NODES = 10, REACH_SLOTS = 3, REACH_KILLS = 8, REACH_NONE = -1 };
enum { REACH_SET, REACH_CLEAR, REACH_COPY, REACH_PING, REACH_SHOW };

struct reach_scene {
    uint64_t seed;
    uint32_t rounds;
};

/* ---- the actors ---- */

struct reach_node {
    BLITZ_REF slot[REACH_SLOTS];
};
BLITZ_TYPE(reach_node_type, struct reach_node, slot[0], slot[1], slot[2]);

static atomic_uint reach_ended, reach_wrong;

BLITZ_HANDLER(reach_on_set, struct reach_node, uint32_t)
{
    state->slot[*data] = blitz_actor_reference(blitz_msg_reference(m));
    return 0;
}

BLITZ_HANDLER(reach_on_clear, struct reach_node, uint32_t)
{
    (void)m;
    state->slot[*data] = NULL;
    return 0;
}

struct reach_copy {
    blitz_actor_id to;
    uint32_t from_slot, to_slot;
};

BLITZ_HANDLER(reach_on_copy, struct reach_node, struct reach_copy)
{
    (void)m;
    BLITZ_REF held = state->slot[data->from_slot];
    (void)blitz_actor_send_with(data->to, held != NULL ? REACH_SET : REACH_CLEAR, &data->to_slot,
                                sizeof data->to_slot,
                                &(blitz_cargo){.reference = held != NULL ? held->reference : NULL});
    return 0;
}

BLITZ_HANDLER(reach_on_ping, struct reach_node, uint32_t)
{
    (void)state, (void)m;
    blitz_reference *me = blitz_reference_self();
    if (*data % 4 == 0)
        (void)!blitz_sleep(*data % 128);
    (void)blitz_actor_string("garbage");
    blitz_reference_unref(me);
    return 0;
}

BLITZ_HANDLER(reach_on_show, struct reach_node, uint32_t)
{
    BLITZ_REF held = state->slot[*data];
    return blitz_actor_reply_with(
        m->reply, NULL, 0, &(blitz_cargo){.reference = held != NULL ? held->reference : NULL});
}

static void reach_exit(void *state, const blitz_exit_reason *why)
{
    (void)state;
    reach_ended++;
    reach_wrong += why->kind != BLITZ_EXIT_UNREACHABLE && why->kind != BLITZ_EXIT_KILLED &&
                   why->kind != BLITZ_EXIT_SHUTDOWN;
}

static const blitz_handler reach_handlers[] = {
    BLITZ_ON(REACH_SET, uint32_t, reach_on_set), BLITZ_ON(REACH_CLEAR, uint32_t, reach_on_clear),
    BLITZ_ON(REACH_COPY, struct reach_copy, reach_on_copy),
    BLITZ_ON(REACH_PING, uint32_t, reach_on_ping), BLITZ_ON(REACH_SHOW, uint32_t, reach_on_show)};
static const blitz_behaviour reach_behaviour = {.name = "node",
                                                .state_bytes = sizeof(struct reach_node),
                                                .state_type = &reach_node_type,
                                                .handlers = reach_handlers,
                                                .handler_count = BZ_ARRAY_LEN(reach_handlers),
                                                .exit = reach_exit,
                                                .end_unreachable = true};

/* ---- the shadow ---- */

struct reach_shadow {
    blitz_actor_id id;
    blitz_reference *held; /* by the driver */
    uint64_t timer;
    bool is_used, is_dead, is_named, has_timer;
    int slot[REACH_SLOTS];
    bool is_moving[REACH_SLOTS]; /* another actor is about to change it */
};

struct reach_driver {
    struct bz_rng rng;
    struct reach_shadow node[REACH_NODES];
    bool reached[REACH_NODES];
    blitz_actor_id killed[REACH_KILLS];
    uint32_t spawned, kills;
    bool is_slow; /* the detector waits: quiet is not enough */
};

static inline void reach_mark(struct reach_driver *d, int k)
{
    if (k == REACH_NONE || d->reached[k] || d->node[k].is_dead || !d->node[k].is_used)
        return;
    d->reached[k] = true;
    for (int i = 0; i < REACH_SLOTS; i++)
        reach_mark(d, d->node[k].slot[i]);
}

static inline void reach_look(struct reach_driver *d)
{
    memset(d->reached, 0, sizeof d->reached);
    for (int k = 0; k < REACH_NODES; k++)
        if (d->node[k].held != NULL || d->node[k].is_named || d->node[k].has_timer)
            reach_mark(d, k);
}

/* A node that can be reached, or REACH_NONE. */
static inline int reach_pick(struct reach_driver *d)
{
    reach_look(d);
    for (int tries = 0; tries < 20; tries++) {
        int k = (int)bz_rng_below(&d->rng, REACH_NODES);
        if (d->reached[k])
            return k;
    }
    return REACH_NONE;
}

static inline uint32_t reach_slot(struct reach_driver *d)
{
    return bz_rng_below(&d->rng, REACH_SLOTS);
}

static inline void reach_name(int k, char *text)
{
    snprintf(text, BLITZ_NAME_BYTES_MAX, "node-%d", k);
}

/* ---- checks ---- */

/* All messages are handled. Each actor that can be reached is alive; the rest is dead, now or soon. */
static inline void reach_check(struct reach_driver *d)
{
    CHECK_EQ(blitz_actors_wait_quiet(NULL, BLITZ_FOREVER), 0);
    reach_look(d);
    for (int k = 0; k < REACH_NODES; k++) {
        struct reach_shadow *n = &d->node[k];
        memset(n->is_moving, 0, sizeof n->is_moving);
        if (!n->is_used || n->is_dead)
            continue;
        if (d->reached[k]) {
            CHECK(blitz_actor_is_alive(n->id));
            continue;
        }
        for (int i = 0; d->is_slow && i < 2000 && blitz_actor_is_alive(n->id); i++)
            (void)!blitz_sleep(BLITZ_MS);
        CHECK(!blitz_actor_is_alive(n->id));
        n->is_dead = true;
    }
}

/* ---- steps of the driver ---- */

static inline void reach_spawn(struct reach_driver *d)
{
    int k = (int)bz_rng_below(&d->rng, REACH_NODES);
    struct reach_shadow *n = &d->node[k];
    if (n->is_used && (!n->is_dead || n->held != NULL))
        return;
    for (int i = 0; i < REACH_NODES; i++)
        for (int s = 0; s < REACH_SLOTS; s++)
            if (d->node[i].slot[s] == k)
                d->node[i].slot[s] = REACH_NONE; /* it leads to a dead one */
    *n = (struct reach_shadow){.is_used = true, .slot = {REACH_NONE, REACH_NONE, REACH_NONE}};
    CHECK_EQ(blitz_reference_spawn(&reach_behaviour, NULL, NULL, &n->held), 0);
    n->id = blitz_reference_id(n->held);
    d->spawned++;
}

static inline void reach_give(struct reach_driver *d)
{
    int a = reach_pick(d), b = reach_pick(d);
    uint32_t s = reach_slot(d);
    if (a == REACH_NONE || b == REACH_NONE || d->node[a].is_moving[s])
        return;
    blitz_reference *r;
    CHECK_EQ(blitz_reference_of(d->node[b].id, &r), 0); /* it can be reached */
    CHECK_EQ(blitz_actor_send_with(d->node[a].id, REACH_SET, &s, sizeof s,
                                   &(blitz_cargo){.reference = r}),
             0);
    blitz_reference_unref(r);
    d->node[a].slot[s] = b;
}

static inline void reach_clear(struct reach_driver *d)
{
    int a = reach_pick(d);
    uint32_t s = reach_slot(d);
    if (a == REACH_NONE || d->node[a].is_moving[s])
        return;
    CHECK_EQ(blitz_actor_send(d->node[a].id, REACH_CLEAR, &s, sizeof s), 0);
    d->node[a].slot[s] = REACH_NONE;
}

static inline bool reach_is_killed(const struct reach_driver *d, blitz_actor_id id)
{
    for (uint32_t i = 0; i < d->kills; i++)
        if (blitz_actor_id_equal(d->killed[i], id))
            return true;
    return false;
}

/* Poke at any id, also of actors that are about to end. */
static inline void reach_poke(struct reach_driver *d, uint32_t k)
{
    struct reach_shadow *n = &d->node[k];
    uint32_t s = reach_slot(d), dice = (uint32_t)bz_rng_next(&d->rng);
    blitz_reference *r;
    blitz_arrival got;
    if (!n->is_used)
        return;
    if (dice % 2 == 0) {
        (void)!blitz_actor_try_send(n->id, REACH_PING, &dice, sizeof dice);
        return;
    }
    if (dice % 8 == 1)
        (void)!blitz_sleep(dice / 8 % 64);
    bool is_weak = dice % 16 < 8; /* a message to an id wakes it, and it shows what it holds */
    if (is_weak)
        r = NULL;
    else if (blitz_reference_of(n->id, &r) != 0)
        return;
    int rc =
        blitz_actor_call_with(n->id, REACH_SHOW, &s, sizeof s, NULL, NULL, 0, &got, BLITZ_FOREVER);
    CHECK(rc == 0 || (is_weak && rc == -ESRCH) || reach_is_killed(d, n->id));
    blitz_actor_id other =
        got.reference != NULL ? blitz_reference_id(got.reference) : (blitz_actor_id){0, 0, 0, 0};
    if (dice % 4 == 1)
        blitz_reference_unref(r); /* the other one is held alone */
    if (got.reference != NULL) {
        rc = blitz_actor_call(other, REACH_SHOW, &s, sizeof s, NULL, 0, BLITZ_FOREVER);
        CHECK(rc == 0 || reach_is_killed(d, other)); /* only such a one may be held and dead */
    }
    blitz_reference_unref(got.reference);
    if (dice % 4 != 1)
        blitz_reference_unref(r);
}

/* Release the driver's reference. The actor may end now: poke at it. */
static inline void reach_release(struct reach_driver *d, uint32_t k)
{
    struct reach_shadow *n = &d->node[k];
    blitz_reference_unref(n->held);
    n->held = NULL;
    for (uint32_t i = bz_rng_below(&d->rng, 5); i > 1; i--)
        reach_poke(d, k);
}

/* One actor sends a reference that it holds to another. */
static inline void reach_move(struct reach_driver *d)
{
    int a = reach_pick(d), b = reach_pick(d);
    if (a == REACH_NONE || b == REACH_NONE)
        return;
    struct reach_copy order = {d->node[b].id, reach_slot(d), reach_slot(d)};
    if (d->node[a].is_moving[order.from_slot] || d->node[b].is_moving[order.to_slot])
        return;
    CHECK_EQ(blitz_actor_send(d->node[a].id, REACH_COPY, &order, sizeof order), 0);
    d->node[b].slot[order.to_slot] = d->node[a].slot[order.from_slot];
    d->node[b].is_moving[order.to_slot] = true;
    if (bz_rng_below(&d->rng, 2) == 0)
        reach_release(d, (uint32_t)b); /* the message may come too late */
}

static inline void reach_hold_otherwise(struct reach_driver *d)
{
    char name[BLITZ_NAME_BYTES_MAX];
    int k = reach_pick(d);
    if (k == REACH_NONE)
        return;
    struct reach_shadow *n = &d->node[k];
    reach_name(k, name);
    if (bz_rng_below(&d->rng, 2) == 0) {
        CHECK_EQ(n->is_named ? blitz_actor_unregister(NULL, name)
                             : blitz_actor_register(name, n->id),
                 0);
        n->is_named = !n->is_named;
    } else {
        CHECK_EQ(n->has_timer ? blitz_actor_timer_cancel(n->id, n->timer)
                              : blitz_actor_send_after(n->id, REACH_PING, &(uint32_t){1},
                                                       sizeof(uint32_t), BLITZ_FOREVER, &n->timer),
                 0);
        n->has_timer = !n->has_timer;
    }
}

static inline void reach_kill(struct reach_driver *d)
{
    reach_check(d);
    int k = reach_pick(d);
    if (k == REACH_NONE || d->kills == REACH_KILLS)
        return;
    struct reach_shadow *n = &d->node[k];
    d->killed[d->kills++] = n->id;
    CHECK_EQ(blitz_actor_kill(n->id), 0);
    n->is_dead = true;
    n->is_named = false;
    if (n->has_timer)
        CHECK_EQ(blitz_actor_timer_cancel(n->id, n->timer), 0);
    n->has_timer = false;
    reach_check(d);
}

static inline void reach_step(struct reach_driver *d)
{
    switch (bz_rng_below(&d->rng, 24)) {
    case 0:
    case 1:
    case 2:
    case 3:
        reach_spawn(d);
        break;
    case 4:
    case 5:
    case 6:
    case 7:
    case 8:
        reach_give(d);
        break;
    case 9:
    case 10:
        reach_clear(d);
        break;
    case 11:
    case 12:
    case 13:
        reach_move(d);
        break;
    case 14:
    case 15:
    case 16:
    case 17:
        reach_release(d, bz_rng_below(&d->rng, REACH_NODES));
        break;
    case 18:
        reach_hold_otherwise(d);
        break;
    case 19:
        if (bz_rng_below(&d->rng, 4) == 0)
            reach_kill(d);
        break;
    case 20:
        if (bz_rng_below(&d->rng, 2) == 0)
            reach_check(d);
        break;
    default:
        reach_poke(d, bz_rng_below(&d->rng, REACH_NODES));
        break;
    }
}

static inline void reach_end(struct reach_driver *d)
{
    char name[BLITZ_NAME_BYTES_MAX];
    for (int k = 0; k < REACH_NODES; k++) {
        struct reach_shadow *n = &d->node[k];
        reach_name(k, name);
        if (n->is_named)
            CHECK_EQ(blitz_actor_unregister(NULL, name), 0);
        if (n->has_timer)
            CHECK_EQ(blitz_actor_timer_cancel(n->id, n->timer), 0);
        n->is_named = n->has_timer = false;
        blitz_reference_unref(n->held);
        n->held = NULL;
    }
    reach_check(d);
    CHECK_EQ(reach_ended, d->spawned);
    CHECK_EQ(reach_wrong, 0);
}

static inline int reach_play(void *arg)
{
    const struct reach_scene *s = arg;
    struct reach_driver d = {.is_slow = (s->seed & 16) != 0};
    bz_rng_init(&d.rng, s->seed);
    bz_detect_pause_ns = d.is_slow ? 100000 : 0;
    bz_detect_limit_ns = d.is_slow ? 20 : 0;
    reach_ended = reach_wrong = 0;
    for (uint32_t i = 0; i < s->rounds; i++)
        reach_step(&d);
    reach_end(&d);
    return 0;
}

#endif
