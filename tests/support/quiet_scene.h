/*
 * quiet_scene.h - drivers that send to actors and wait for quiet, for simulations and stress.
 *
 * Drivers are fibers and stackless tasks; in the stress program also threads. Each sends messages that actors pass on, in
 * circles, with waits inside handlers and with overload. Then it waits for quiet, by a call or a future, with deadlines in
 * between, and counts: every message that it sent, and every message that followed, must have been handled. Meanwhile a
 * disturber starts, stops and kills actors that no message is counted in.
 */
#ifndef T_QUIET_SCENE_H
#define T_QUIET_SCENE_H

#include <errno.h>
#include <stdatomic.h>

#include "base/rng.h"
#include "blitz.h"
#include "harness.h"

enum { QUIET_ACTORS = 4, QUIET_FIBERS = 2, QUIET_TASKS = 2 };
enum { QUIET_WORK };

struct quiet_scene {
    uint64_t seed;
    uint32_t rounds;
    blitz_runtime *runtime;
    blitz_actor_id actor[QUIET_ACTORS];
};

struct quiet_work {
    const struct quiet_scene *scene;
    atomic_uint *handled;
    uint32_t ttl, dice;
};

/* ---- actors ---- */

BLITZ_HANDLER(quiet_on_work, void, struct quiet_work)
{
    struct quiet_work on = *data;
    (void)state, (void)m;
    on.dice = on.dice * 2654435761u + 1;
    if (on.dice >> 16 == 0)
        blitz_yield();
    else if ((on.dice >> 16) % 16 == 0)
        (void)!blitz_sleep((on.dice >> 16) % 300);
    if (on.ttl-- > 0)
        CHECK_EQ(blitz_actor_send(on.scene->actor[(on.dice >> 20) % QUIET_ACTORS], QUIET_WORK, &on,
                                  sizeof on),
                 0);
    atomic_fetch_add(data->handled, 1);
    return 0;
}

static const blitz_handler quiet_handlers[] = {
    BLITZ_ON(QUIET_WORK, struct quiet_work, quiet_on_work)};
static const blitz_behaviour quiet_worker = {
    .name = "worker", .handlers = quiet_handlers, .handler_count = 1, .mailbox_high = 20};

/* ---- drivers ---- */

struct quiet_driver {
    const struct quiet_scene *scene;
    struct bz_rng rng;
    atomic_uint handled;
    uint32_t sent, left;
    blitz_actors_wait_quiet_future wait; /* of a stackless task */
    int state;
};

static inline void quiet_driver_init(struct quiet_driver *d, const struct quiet_scene *s,
                                     uint64_t number)
{
    *d = (struct quiet_driver){.scene = s, .left = s->rounds};
    bz_rng_init(&d->rng, s->seed * 31 + number);
}

static inline void quiet_send_some(struct quiet_driver *d, bool may_wait)
{
    for (uint32_t n = (uint32_t)bz_rng_next(&d->rng) % 5; n-- > 0;) {
        uint32_t dice = (uint32_t)bz_rng_next(&d->rng);
        struct quiet_work w = {d->scene, &d->handled, dice % 4, dice};
        blitz_actor_id to = d->scene->actor[dice / 4 % QUIET_ACTORS];
        int rc = may_wait ? blitz_actor_send(to, QUIET_WORK, &w, sizeof w)
                          : blitz_actor_try_send(to, QUIET_WORK, &w, sizeof w);
        CHECK(rc == 0 || (rc == -EAGAIN && !may_wait));
        d->sent += rc == 0 ? w.ttl + 1 : 0;
    }
}

static inline void quiet_wait(struct quiet_driver *d)
{
    uint32_t dice = (uint32_t)bz_rng_next(&d->rng);
    blitz_actors_wait_quiet_future f;
    blitz_deadline until = dice % 2 == 0 ? BLITZ_FOREVER : blitz_after(dice / 4 % 2000);
    if (dice % 4 < 2) {
        blitz_actors_wait_quiet_future_init(&f, d->scene->runtime);
        int rc = blitz_await(&f.future, until);
        rc = rc == 0 ? f.result : rc;
        CHECK(rc == 0 || rc == -ETIMEDOUT);
        if (rc == 0)
            CHECK_EQ(atomic_load(&d->handled), d->sent);
    } else {
        int rc = blitz_actors_wait_quiet(d->scene->runtime, until);
        CHECK(rc == 0 || rc == -ETIMEDOUT);
        if (rc == 0)
            CHECK_EQ(atomic_load(&d->handled), d->sent);
    }
}

static inline int quiet_drive(void *driver)
{
    struct quiet_driver *d = driver;
    while (d->left-- > 0) {
        quiet_send_some(d, true);
        quiet_wait(d);
    }
    CHECK_EQ(blitz_actors_wait_quiet(d->scene->runtime, BLITZ_FOREVER), 0);
    CHECK_EQ(atomic_load(&d->handled), d->sent);
    return 0;
}

/* The same without a stack. The state is the task's copy, so it holds a pointer to the driver. */
static inline blitz_poll quiet_poll_drive(void *state, blitz_cx *cx)
{
    struct quiet_driver *d = *(struct quiet_driver **)state;
    for (;;) {
        if (d->state == 0) {
            if (d->left-- == 0)
                return BLITZ_READY;
            quiet_send_some(d, false);
            blitz_actors_wait_quiet_future_init(&d->wait, NULL);
            d->state = 1;
        }
        if (d->wait.future.ops->poll(&d->wait.future, cx->waker) != BLITZ_READY) {
            if (bz_rng_next(&d->rng) % 4 != 0)
                return BLITZ_PENDING;
            d->wait.future.ops->cancel(&d->wait.future); /* sometimes it does not wait for it */
        }
        CHECK(d->wait.result == 0 || d->wait.result == -ECANCELED);
        if (d->wait.result == 0)
            CHECK_EQ(atomic_load(&d->handled), d->sent);
        d->state = 0;
    }
}

/* ---- the disturber: actors come and go ---- */

static inline int quiet_disturb(void *scene)
{
    const struct quiet_scene *s = scene;
    atomic_uint handled = 0;
    for (uint32_t i = 0; i < s->rounds; i++) {
        struct quiet_work w = {s, &handled, 0, i << 20};
        blitz_actor_id id;
        CHECK_EQ(blitz_actor_spawn(&quiet_worker, NULL, NULL, &id), 0);
        (void)blitz_actor_send_after(id, QUIET_WORK, &w, sizeof w, blitz_after(i % 3 * 50), NULL);
        if (i % 3 == 0)
            blitz_yield();
        (void)blitz_actor_send(id, QUIET_WORK, &w, sizeof w);
        (void)(i % 2 == 0 ? blitz_actor_kill(id) : blitz_actor_stop(id));
        int rc = blitz_actor_join(id, NULL, BLITZ_FOREVER);
        CHECK(rc == 0 || rc == -ESRCH);
    }
    return 0;
}

static inline void quiet_begin(struct quiet_scene *s)
{
    for (int i = 0; i < QUIET_ACTORS; i++)
        CHECK_EQ(blitz_actor_spawn(&quiet_worker, NULL, &(blitz_actor_opts){.runtime = s->runtime},
                                   &s->actor[i]),
                 0);
}

static inline int quiet_play(void *scene)
{
    struct quiet_scene *s = scene;
    struct quiet_driver driver[QUIET_FIBERS + QUIET_TASKS];
    blitz_task *task[QUIET_FIBERS + QUIET_TASKS + 1];
    quiet_begin(s);
    for (int i = 0; i < QUIET_FIBERS + QUIET_TASKS; i++) {
        struct quiet_driver *d = &driver[i];
        quiet_driver_init(d, s, (uint64_t)i);
        if (i < QUIET_FIBERS)
            CHECK_EQ(blitz_spawn(quiet_drive, d, NULL, &task[i]), 0);
        else
            CHECK_EQ(blitz_spawn_poll(quiet_poll_drive, &d, sizeof d, NULL, &task[i]), 0);
    }
    CHECK_EQ(blitz_spawn(quiet_disturb, s, NULL, &task[QUIET_FIBERS + QUIET_TASKS]), 0);
    for (int i = 0; i <= QUIET_FIBERS + QUIET_TASKS; i++)
        CHECK_EQ(blitz_task_join(task[i], NULL, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_actors_wait_quiet(NULL, BLITZ_FOREVER), 0); /* all counts are balanced */
    for (int i = 0; i < QUIET_FIBERS + QUIET_TASKS; i++)
        CHECK_EQ(atomic_load(&driver[i].handled), driver[i].sent);
    return 0;
}

#endif
