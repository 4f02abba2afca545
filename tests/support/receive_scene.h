/*
 * receive_scene.h - tasks that ask and tasks that answer, for simulations and stress. Servers end, and are killed, at any time.
 *
 * An answer is to the question, and from the server that was asked. Every task ends, and its id with it.
 */
#ifndef T_RECEIVE_SCENE_H
#define T_RECEIVE_SCENE_H

#include <errno.h>
#include <string.h>

#include "base/rng.h"
#include "blitz.h"
#include "harness.h"

enum { RECEIVE_SERVERS = 4, RECEIVE_CLIENTS = 6 };
enum { RECEIVE_QUESTION, RECEIVE_ANSWER, RECEIVE_NOISE };

static const char *receive_name_of(uint32_t i)
{
    static const char *const names[RECEIVE_SERVERS] = {"s0", "s1", "s2", "s3"};
    return names[i % RECEIVE_SERVERS];
}

struct receive_question {
    uint32_t number;
    blitz_actor_id of; /* the server that was asked */
};

/* Answer questions; end after some, well or badly. */
static inline int receive_serve(void *arg)
{
    uint32_t which = (uint32_t)(uintptr_t)arg;
    const blitz_msg *m;
    int rc, served = 0;
    rc = blitz_receiver_begin(&(blitz_actor_opts){.name = receive_name_of(which)}, NULL);
    if (rc != 0)
        return rc; /* the name is still that of the last one */
    while ((rc = blitz_receive(NULL, NULL, &m, BLITZ_FOREVER)) == 0) {
        if (m->what != RECEIVE_QUESTION)
            continue;
        CHECK(blitz_actor_id_equal(((const struct receive_question *)m->data)->of,
                                   blitz_actor_self()));
        (void)blitz_actor_send(m->from, RECEIVE_ANSWER, m->data, m->size);
        if (++served % 40 == 0)
            return served % 80 == 0 ? -EIO : 0;
    }
    CHECK_EQ(rc, -ECANCELED);
    return 0;
}

static inline int receive_keep_serving(void *arg)
{
    blitz_task *task;
    int rc;
    for (int i = 0; i < 30; i++) {
        if (blitz_spawn(receive_serve, arg, NULL, &task) != 0)
            continue;
        rc = blitz_task_join(task, NULL, BLITZ_FOREVER);
        if (rc != 0) { /* we were cancelled: the server is as well, by the end of the runtime */
            blitz_task_cancel(task);
            blitz_task_detach(task);
            return 0;
        }
    }
    return 0;
}

static inline bool receive_is_it(const blitz_msg *m, void *number)
{
    return m->what == RECEIVE_ANSWER &&
           ((const struct receive_question *)m->data)->number == *(uint32_t *)number;
}

static inline void receive_ask(struct bz_rng *rng, uint32_t number)
{
    uint32_t dice = (uint32_t)bz_rng_next(rng);
    blitz_actor_id server = blitz_actor_whereis(NULL, receive_name_of(dice));
    struct receive_question q = {number, server};
    const blitz_msg *m;
    blitz_receive_future f;
    (void)blitz_actor_send(blitz_actor_self(), RECEIVE_NOISE, NULL, 0);
    if (dice % 101 == 0)
        (void)blitz_actor_kill(server);
    if (blitz_actor_send(server, RECEIVE_QUESTION, &q, sizeof q) != 0)
        return;
    blitz_deadline until = blitz_after(dice % 3000000);
    if (dice % 2 == 0) {
        blitz_receive_future_init(&f, receive_is_it, &number);
        int rc = blitz_await(&f.future, until);
        CHECK(rc == -ETIMEDOUT || f.result == 0);
        m = rc == 0 ? f.msg : NULL;
    } else {
        int rc = blitz_receive(receive_is_it, &number, &m, until);
        CHECK(rc == 0 || rc == -ETIMEDOUT);
        m = rc == 0 ? m : NULL;
    }
    CHECK(m == NULL || blitz_actor_id_equal(m->from, server));
}

struct receive_scene {
    uint64_t seed;
    uint32_t rounds; /* of each client */
};

/* Late answers and noise are left in the inbox, and dropped with the task. */
static inline int receive_client(void *arg)
{
    const struct receive_scene *s = arg;
    struct bz_rng rng;
    bz_rng_init(&rng, s->seed);
    CHECK_EQ(blitz_receiver_begin(NULL, NULL), 0);
    for (uint32_t i = 1; i <= s->rounds; i++)
        receive_ask(&rng, i);
    return 0;
}

static inline int receive_play(void *arg)
{
    blitz_task *server[RECEIVE_SERVERS], *task[RECEIVE_CLIENTS];
    const struct receive_scene *s = arg;
    struct receive_scene part[RECEIVE_CLIENTS];
    for (uintptr_t i = 0; i < RECEIVE_SERVERS; i++)
        CHECK_EQ(blitz_spawn(receive_keep_serving, (void *)i, NULL, &server[i]), 0);
    for (uint32_t i = 0; i < RECEIVE_SERVERS; i++)
        while (blitz_actor_whereis(NULL, receive_name_of(i)).generation == 0)
            CHECK_EQ(blitz_sleep(BLITZ_US), 0); /* time that others can use, in a simulation too */
    for (uint64_t i = 0; i < RECEIVE_CLIENTS; i++) {
        part[i] = (struct receive_scene){s->seed * 31 + i, s->rounds};
        CHECK_EQ(blitz_spawn(receive_client, &part[i], NULL, &task[i]), 0);
    }
    for (int i = 0; i < RECEIVE_CLIENTS; i++)
        CHECK_EQ(blitz_task_join(task[i], NULL, BLITZ_FOREVER), 0);
    for (int i = 0; i < RECEIVE_SERVERS; i++) {
        blitz_task_cancel(server[i]);
        CHECK_EQ(blitz_task_join(server[i], NULL, BLITZ_FOREVER), 0);
    }
    return 0;
}

#endif
