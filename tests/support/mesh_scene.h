/*
 * mesh_scene.h - actors that link and watch each other and give it up at once, for simulations and stress.
 *
 * In one turn an actor makes relations with the others, gives some up before their requests are heard, and makes them again.
 * Others do the same to it, wait inside their handlers, and end at any time. A fiber for each starts the next life.
 *
 * Checked: a monitor that was not given up is told once when its actor ends. One that was given up is not told. A demonitor finds
 * its monitor. relate_scene.h does the same for tasks.
 */
#ifndef T_MESH_SCENE_H
#define T_MESH_SCENE_H

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/rng.h"
#include "blitz.h"
#include "harness.h"

enum { MESH_ACTORS = 4, MESH_OPEN = 32 };
enum { MESH_STEP };

struct mesh_scene {
    uint64_t seed;
    uint32_t lives, steps; /* of an actor; of a life, which may end earlier */
    atomic_uint downs, exits, given_up;
};

/* A monitor that was neither told of nor given up. */
struct mesh_open {
    uint64_t ref;
    blitz_actor_id peer;
};

struct mesh_actor {
    struct mesh_scene *scene;
    struct bz_rng rng;
    uint32_t left; /* steps */
    int count;
    struct mesh_open open[MESH_OPEN];
};

static inline uint32_t mesh_dice(struct mesh_actor *a)
{
    return (uint32_t)bz_rng_next(&a->rng);
}

static inline blitz_actor_id mesh_find(uint32_t number)
{
    char name[16];
    snprintf(name, sizeof name, "mesh %u", number % MESH_ACTORS);
    return blitz_actor_whereis(NULL, name);
}

static inline void mesh_close(struct mesh_actor *a, int i)
{
    a->open[i] = a->open[--a->count];
}

static inline void mesh_watch(struct mesh_actor *a, blitz_actor_id peer)
{
    struct mesh_open o = {.peer = peer};
    if (a->count == MESH_OPEN)
        return;
    CHECK_EQ(blitz_actor_monitor(peer, &o.ref), 0);
    a->open[a->count++] = o;
}

/* The newest first: its request is the one that was not heard yet. */
static inline void mesh_give_up(struct mesh_actor *a, uint32_t dice)
{
    if (a->count == 0)
        return;
    int i = dice % 2 == 0 ? a->count - 1 : (int)(dice / 2 % (uint32_t)a->count);
    CHECK_EQ(blitz_actor_demonitor(a->open[i].ref), 0);
    mesh_close(a, i);
    atomic_fetch_add(&a->scene->given_up, 1);
}

static inline void mesh_do(struct mesh_actor *a, uint32_t dice)
{
    blitz_actor_id peer = mesh_find(dice / 16);
    if (peer.generation == 0 || blitz_actor_id_equal(peer, blitz_actor_self()))
        return;
    if (dice % 16 < 4)
        CHECK_EQ(blitz_actor_link(peer), 0);
    else if (dice % 16 < 8)
        CHECK_EQ(blitz_actor_unlink(peer), 0);
    else if (dice % 16 < 12)
        mesh_watch(a, peer);
    else
        mesh_give_up(a, dice / 64);
}

/* The end of a life: wait for what is to be told, give up the rest. */
static inline int mesh_settle(struct mesh_actor *a)
{
    bool is_waiting = false;
    for (int i = a->count; i-- > 0;) {
        if (blitz_actor_is_alive(a->open[i].peer)) {
            CHECK_EQ(blitz_actor_demonitor(a->open[i].ref), 0);
            mesh_close(a, i);
        } else {
            is_waiting = true;
        }
    }
    return is_waiting ? 0 : -EIO;
}

BLITZ_HANDLER(mesh_on_step, struct mesh_actor, void)
{
    (void)data, (void)m;
    if (state->left == 0)
        return mesh_settle(state);
    state->left--;
    for (uint32_t i = 1 + mesh_dice(state) % 6; i > 0; i--)
        mesh_do(state, mesh_dice(state));
    uint32_t dice = mesh_dice(state);
    if (dice % 8 == 0)
        blitz_yield(); /* signals come, and are not heard before the handler ends */
    else if (dice % 64 == 1)
        (void)!blitz_sleep(dice / 64 % 300);
    else if (dice % 256 == 2)
        return -EIO; /* an early end, with all that is open */
    return blitz_actor_send(blitz_actor_self(), MESH_STEP, NULL, 0);
}

BLITZ_HANDLER(mesh_on_down, struct mesh_actor, blitz_down)
{
    (void)m;
    int i = 0;
    while (i < state->count && state->open[i].ref != data->ref)
        i++;
    CHECK(i < state->count); /* once, and not after it was given up */
    CHECK(blitz_actor_id_equal(state->open[i].peer, data->who));
    mesh_close(state, i);
    atomic_fetch_add(&state->scene->downs, 1);
    return state->left == 0 ? mesh_settle(state) : 0;
}

BLITZ_HANDLER(mesh_on_exit, struct mesh_actor, blitz_down)
{
    (void)m, (void)data;
    atomic_fetch_add(&state->scene->exits, 1);
    return 0;
}

static const blitz_handler mesh_handlers[] = {BLITZ_ON_EMPTY(MESH_STEP, mesh_on_step),
                                              BLITZ_ON(BLITZ_MSG_DOWN, blitz_down, mesh_on_down),
                                              BLITZ_ON(BLITZ_MSG_EXIT, blitz_down, mesh_on_exit)};
static const blitz_behaviour mesh_behaviour = {.name = "mesh",
                                               .state_bytes = sizeof(struct mesh_actor),
                                               .handlers = mesh_handlers,
                                               .handler_count = 3};

struct mesh_keeper {
    struct mesh_scene *scene;
    uint32_t number;
};

/* One actor after the other, under one name. */
static inline int mesh_keep(void *arg)
{
    struct mesh_keeper *k = arg;
    char name[16];
    snprintf(name, sizeof name, "mesh %u", k->number);
    for (uint64_t life = 0; life < k->scene->lives; life++) {
        blitz_actor_id id;
        struct mesh_actor a = {.scene = k->scene, .left = k->scene->steps};
        bz_rng_init(&a.rng, k->scene->seed * 131 + k->number * 17 + life);
        CHECK_EQ(blitz_actor_spawn(&mesh_behaviour, &a,
                                   &(blitz_actor_opts){.name = name, .trap_exit = true}, &id),
                 0);
        CHECK_EQ(blitz_actor_send(id, MESH_STEP, NULL, 0), 0);
        int rc = blitz_actor_join(id, NULL, BLITZ_FOREVER);
        CHECK(rc == 0 || rc == -ESRCH);
    }
    return 0;
}

static inline int mesh_play(void *scene)
{
    struct mesh_keeper keepers[MESH_ACTORS];
    blitz_task *tasks[MESH_ACTORS];
    for (uint32_t i = 0; i < MESH_ACTORS; i++) {
        keepers[i] = (struct mesh_keeper){scene, i};
        CHECK_EQ(blitz_spawn(mesh_keep, &keepers[i], NULL, &tasks[i]), 0);
    }
    for (uint32_t i = 0; i < MESH_ACTORS; i++)
        CHECK_EQ(blitz_task_join(tasks[i], NULL, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_actors_wait_quiet(NULL, BLITZ_FOREVER), 0);
    return 0;
}

#endif
