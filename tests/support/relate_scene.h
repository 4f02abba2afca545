/*
 * relate_scene.h - tasks that receive, with links and monitors, for simulations and stress. Their peers end at any time.
 *
 * Each task traps exits. It starts actors with a link and a monitor, links to them again, watches them and the other tasks, gives
 * some of it up, and makes its peers fail. Checked: a monitor is told exactly once, or was given up before; so is a link. After an unlink or a
 * demonitor nothing of that peer comes. Other tasks end and begin again meanwhile.
 */
#ifndef T_RELATE_SCENE_H
#define T_RELATE_SCENE_H

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "base/rng.h"
#include "blitz.h"
#include "harness.h"

enum { RELATE_TASKS = 4, RELATE_OPEN = 64, RELATE_LIVES = 3 };
enum { RELATE_FAIL };

struct relate_scene {
    uint64_t seed;
    uint32_t rounds;
    atomic_uint downs, exits, given_up;
};

/* ---- peers ---- */

BLITZ_HANDLER(relate_on_fail, void, uint32_t)
{
    (void)state, (void)m;
    if (*data % 4 == 0)
        (void)!blitz_sleep(*data % 500);
    return *data % 3 == 0 ? BLITZ_ACTOR_STOP : -EIO;
}

static const blitz_handler relate_handlers[] = {BLITZ_ON(RELATE_FAIL, uint32_t, relate_on_fail)};
static const blitz_behaviour relate_peer = {
    .name = "peer", .handlers = relate_handlers, .handler_count = 1};

/* ---- tasks ---- */

/* A relation that the task has, and was not told of. */
struct relate_open {
    uint64_t ref; /* 0: a link */
    blitz_actor_id peer;
};

struct relate_task {
    struct relate_scene *scene;
    uint32_t number;
    struct bz_rng rng;
    struct relate_open open[RELATE_OPEN];
    int count;
};

static inline const char *relate_name_of(uint32_t i)
{
    static const char *const names[RELATE_TASKS] = {"r0", "r1", "r2", "r3"};
    return names[i % RELATE_TASKS];
}

static inline int relate_find(const struct relate_task *t, uint64_t ref, blitz_actor_id peer)
{
    for (int i = 0; i < t->count; i++)
        if (t->open[i].ref == ref && (ref != 0 || blitz_actor_id_equal(t->open[i].peer, peer)))
            return i;
    return -1;
}

static inline void relate_close(struct relate_task *t, int i)
{
    t->open[i] = t->open[--t->count];
}

/* A message tells of a relation that is open, and closes it. */
static inline void relate_hear(struct relate_task *t, const blitz_msg *m)
{
    blitz_down down;
    if (m->what != BLITZ_MSG_DOWN && m->what != BLITZ_MSG_EXIT)
        return;
    CHECK_EQ(m->size, sizeof down);
    memcpy(&down, m->data, sizeof down);
    bool is_down = m->what == BLITZ_MSG_DOWN;
    CHECK((down.ref != 0) == is_down);
    int i = relate_find(t, down.ref, down.who);
    CHECK_GE(i, 0); /* once, and not after it was given up */
    relate_close(t, i);
    atomic_fetch_add(is_down ? &t->scene->downs : &t->scene->exits, 1);
}

static inline void relate_note(struct relate_task *t, uint64_t ref, blitz_actor_id peer)
{
    if (ref == 0 && relate_find(t, 0, peer) >= 0)
        return; /* it is linked already */
    t->open[t->count++] = (struct relate_open){ref, peer};
}

static inline blitz_actor_id relate_pick(struct relate_task *t, uint32_t dice, bool is_known)
{
    blitz_actor_id peer = blitz_actor_whereis(NULL, relate_name_of(dice));
    if ((is_known || dice % 3 == 0) && t->count > 0)
        peer = t->open[dice / 3 % (uint32_t)t->count].peer;
    return peer;
}

/* True if it is one of the tasks, alive or not. */
static inline bool relate_is_task(blitz_actor_id id)
{
    blitz_actor_info info;
    if (blitz_actor_info_get(id, &info) != 0)
        return true; /* not known any more */
    return strcmp(info.behaviour, relate_peer.name) != 0;
}

static inline int relate_begin_one(struct relate_task *t, uint32_t dice)
{
    uint64_t ref = 0;
    blitz_actor_id peer;
    int rc;
    if (dice % 3 == 0) {
        rc = blitz_actor_spawn(&relate_peer, NULL,
                               &(blitz_actor_opts){.link = true, .monitor = &ref}, &peer);
        if (rc == 0)
            relate_note(t, 0, peer);
        if (rc == 0)
            relate_note(t, ref, peer);
        return rc;
    }
    bool links = dice % 3 == 1 && t->count > 0;
    peer = relate_pick(t, dice / 3, links);
    if (peer.generation == 0 || (links && relate_is_task(peer)))
        return 0; /* a task would hear of a link that another one has made */
    rc = links ? blitz_actor_link(peer) : blitz_actor_monitor(peer, &ref);
    if (rc == 0)
        relate_note(t, ref, peer);
    return rc;
}

/* Give one up. A monitor whose message was not received can always be given up. */
static inline int relate_give_up(struct relate_task *t, uint32_t dice)
{
    if (t->count == 0)
        return 0;
    int i = (int)(dice % (uint32_t)t->count);
    struct relate_open o = t->open[i];
    int rc = o.ref != 0 ? blitz_actor_demonitor(o.ref) : blitz_actor_unlink(o.peer);
    if (rc != 0)
        return rc;
    relate_close(t, i);
    atomic_fetch_add(&t->scene->given_up, 1);
    return 0;
}

static inline int relate_step(struct relate_task *t)
{
    uint32_t dice = (uint32_t)bz_rng_next(&t->rng), more = dice >> 8;
    const blitz_msg *m;
    int rc = 0;
    if (t->count > RELATE_OPEN - 4 || dice % 8 < 2)
        return relate_give_up(t, more);
    if (dice % 8 < 5)
        return relate_begin_one(t, more);
    if (dice % 8 == 5) {
        (void)blitz_actor_send(relate_pick(t, more, false), RELATE_FAIL, &more, sizeof more);
        return 0;
    }
    while (rc == 0) {
        rc = blitz_receive(NULL, NULL, &m, blitz_after(more % 300));
        if (rc == 0)
            relate_hear(t, m);
    }
    return rc == -ETIMEDOUT ? 0 : rc;
}

/* All peers that are left end; each relation is told of. */
static inline int relate_settle(struct relate_task *t)
{
    const blitz_msg *m;
    int rc = 0;
    for (int i = t->count; i-- > 0;) {
        uint32_t fails = 1;
        struct relate_open o = t->open[i];
        if (o.ref != 0 && relate_is_task(o.peer)) { /* it may outlive us */
            rc = rc == 0 ? blitz_actor_demonitor(o.ref) : rc;
            relate_close(t, i);
        } else {
            (void)blitz_actor_send(o.peer, RELATE_FAIL, &fails, sizeof fails);
        }
    }
    while (rc == 0 && t->count > 0) {
        rc = blitz_receive(NULL, NULL, &m, BLITZ_FOREVER);
        if (rc == 0)
            relate_hear(t, m);
    }
    return rc;
}

/* One life. -EIO at its end, so that tasks that are linked to it hear of it. */
static inline int relate_live(void *task)
{
    struct relate_task *t = task;
    int rc = blitz_receiver_begin(
        &(blitz_actor_opts){.name = relate_name_of(t->number), .trap_exit = true}, NULL);
    CHECK_EQ(rc, 0);
    for (uint32_t i = 0; rc == 0 && i < t->scene->rounds; i++)
        rc = relate_step(t);
    if (rc == 0)
        rc = relate_settle(t);
    CHECK_EQ(rc, 0);
    return -EIO;
}

static inline int relate_lives(void *task)
{
    struct relate_task *t = task;
    for (int life = 0; life < RELATE_LIVES; life++) {
        blitz_task *one;
        t->count = 0;
        CHECK_EQ(blitz_spawn(relate_live, t, NULL, &one), 0);
        CHECK_EQ(blitz_task_join(one, NULL, BLITZ_FOREVER), 0);
    }
    return 0;
}

static inline int relate_play(void *scene)
{
    struct relate_scene *s = scene;
    struct relate_task t[RELATE_TASKS];
    blitz_task *task[RELATE_TASKS];
    for (uint32_t i = 0; i < RELATE_TASKS; i++) {
        t[i] = (struct relate_task){.scene = s, .number = i};
        bz_rng_init(&t[i].rng, s->seed * 31 + i);
        CHECK_EQ(blitz_spawn(relate_lives, &t[i], NULL, &task[i]), 0);
    }
    for (uint32_t i = 0; i < RELATE_TASKS; i++)
        CHECK_EQ(blitz_task_join(task[i], NULL, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_actors_wait_quiet(NULL, BLITZ_FOREVER), 0);
    return 0;
}

#endif
