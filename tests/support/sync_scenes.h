/*
 * sync_scenes.h - small programs with primitives, each with an account that must be right in the end.
 *
 * A scene is the first task of a runtime: in simulation by seeds, or on real threads. Its argument
 * is a struct scene_seed. Waits are given deadlines of a few microseconds and cancels come at
 * random moments.
 */
#ifndef T_SYNC_SCENES_H
#define T_SYNC_SCENES_H

#include "harness.h"

#include "base/rng.h"
#include "blitz.h"
#include "proc/state.h"

struct scene_seed {
    uint64_t seed;
};

static inline struct bz_rng scene_rng(const void *arg, uint64_t more)
{
    struct bz_rng rng;
    bz_rng_init(&rng, ((const struct scene_seed *)arg)->seed + more);
    return rng;
}

static inline uint64_t scene_moment(struct bz_rng *rng)
{
    return bz_rng_below(rng, 4) * BLITZ_US;
}

static inline void scene_linger(struct bz_rng *rng)
{
    if (bz_rng_below(rng, 2) == 0)
        blitz_yield();
    else
        (void)!blitz_sleep(scene_moment(rng));
}

static inline void scene_join(blitz_task **t, int n)
{
    for (int i = 0; i < n; i++) {
        int result = 1;
        CHECK_EQ(blitz_task_join(t[i], &result, BLITZ_FOREVER), 0);
        CHECK_EQ(result, 0);
    }
}

/* ---- notify: no notification for one is lost ---- */

struct notify_scene {
    blitz_notify notify;
    bz_atomic(int) tokens, taken;
    const struct scene_seed *seed;
};

struct notify_taker {
    struct notify_scene *s;
    uint64_t number;
};

/* Looks, and waits if there is nothing: as the header says. */
static inline int notify_takes(void *arg)
{
    struct notify_taker *t = arg;
    struct notify_scene *s = t->s;
    struct bz_rng rng = scene_rng(s->seed, t->number);
    for (;;) {
        int n = bz_load_relaxed(&s->tokens); /* relaxed: the notification orders */
        while (n > 0 && !bz_cas_weak_rlx_rlx(&s->tokens, &n, n - 1)) /* relaxed: likewise */
            ;
        if (n > 0) {
            bz_fetch_add_relaxed(&s->taken, 1); /* relaxed: a count */
            continue;
        }
        uint64_t us = bz_rng_below(&rng, 4);
        int err =
            blitz_notify_wait(&s->notify, us == 0 ? BLITZ_FOREVER : blitz_after(us * BLITZ_US));
        if (err == -ECANCELED)
            return 0;
        CHECK(err == 0 || err == -ETIMEDOUT);
    }
}

struct notify_stackless {
    blitz_frame frame;
    struct notify_scene *s;
    blitz_sync_future f;
};

static inline blitz_poll notify_takes_by_poll(void *state, blitz_cx *cx)
{
    struct notify_stackless *me = state;
    struct notify_scene *s = me->s;
    int rc, n;
    BLITZ_BEGIN(&me->frame, cx);
    for (;;) {
        n = bz_load_relaxed(&s->tokens);                             /* relaxed: as above */
        while (n > 0 && !bz_cas_weak_rlx_rlx(&s->tokens, &n, n - 1)) /* relaxed: as above */
            ;
        if (n > 0) {
            bz_fetch_add_relaxed(&s->taken, 1); /* relaxed: a count */
            continue;
        }
        blitz_notify_wait_future_init(&me->f, &s->notify);
        BLITZ_AWAIT(rc, &me->f.future);
        if (rc == -ECANCELED)
            BLITZ_RETURN(0);
    }
    BLITZ_END(0);
}

static inline int scene_notify(void *arg)
{
    enum { TAKERS = 3, STACKLESS = 2, PUTS = 8 };
    struct notify_scene s = {.notify = BLITZ_NOTIFY_INIT, .seed = arg};
    struct notify_taker taker[TAKERS];
    struct notify_stackless state = {.s = &s};
    blitz_task *t[TAKERS + STACKLESS];
    struct bz_rng rng = scene_rng(arg, 100);
    bz_atomic_init(&s.tokens, 0);
    bz_atomic_init(&s.taken, 0);
    for (uint64_t i = 0; i < TAKERS; i++) {
        taker[i] = (struct notify_taker){&s, i};
        CHECK_EQ(blitz_spawn(notify_takes, &taker[i], NULL, &t[i]), 0);
    }
    for (int i = 0; i < STACKLESS; i++)
        CHECK_EQ(blitz_spawn_poll(notify_takes_by_poll, &state, sizeof state, NULL, &t[TAKERS + i]),
                 0);
    for (int i = 0; i < PUTS; i++) {
        bz_fetch_add_relaxed(&s.tokens, 1); /* relaxed: the notification orders */
        if (bz_rng_below(&rng, 4) == 0)
            blitz_notify_all(&s.notify);
        blitz_notify_one(&s.notify);
        scene_linger(&rng);
        if (i == PUTS / 2) /* not the last task: one must take the rest */
            blitz_task_cancel(t[1 + bz_rng_below(&rng, TAKERS + STACKLESS - 1)]);
    }
    while (bz_load_relaxed(&s.taken) < PUTS) /* relaxed: a count; a lost one would hang the test */
        CHECK_EQ(blitz_sleep(BLITZ_US), 0);
    for (int i = 0; i < TAKERS + STACKLESS; i++)
        blitz_task_cancel(t[i]);
    scene_join(t, TAKERS + STACKLESS);
    return 0;
}

/* ---- condition: a queue of one, with senders and receivers ---- */

struct condition_scene {
    blitz_mutex mutex;
    blitz_condition has_room, has_value;
    int value; /* guarded by mutex; 0: none */
    int sent, received, given_up;
    const struct scene_seed *seed;
};

struct condition_actor {
    struct condition_scene *s;
    uint64_t number;
};

static inline blitz_deadline condition_deadline(struct bz_rng *rng)
{
    uint64_t us = bz_rng_below(rng, 6);
    return us < 3 ? blitz_after(us * BLITZ_US) : BLITZ_FOREVER;
}

/* A cancelled task may have been the expected receiver: pass its duty on. */
static inline int condition_sends(void *arg)
{
    struct condition_actor *a = arg;
    struct condition_scene *s = a->s;
    struct bz_rng rng = scene_rng(s->seed, a->number);
    for (int i = 0; i < 3;) {
        int err = 0;
        CHECK_EQ(blitz_mutex_lock(&s->mutex, BLITZ_FOREVER), 0);
        while (err == 0 && s->value != 0)
            err = blitz_condition_wait(&s->has_room, &s->mutex, condition_deadline(&rng));
        CHECK(blitz_mutex_is_locked(&s->mutex));
        if (s->value == 0) {
            s->value = 1;
            s->sent++;
            i++;
            blitz_condition_signal(&s->has_value);
        } else {
            CHECK_EQ(err, -ETIMEDOUT);
            s->given_up++;
        }
        blitz_mutex_unlock(&s->mutex);
    }
    return 0;
}

static inline int condition_receives(void *arg)
{
    struct condition_actor *a = arg;
    struct condition_scene *s = a->s;
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(blitz_mutex_lock(&s->mutex, BLITZ_FOREVER), 0);
        while (s->value == 0)
            CHECK_EQ(blitz_condition_wait(&s->has_value, &s->mutex, BLITZ_FOREVER), 0);
        s->value = 0;
        s->received++;
        blitz_condition_signal(&s->has_room);
        blitz_mutex_unlock(&s->mutex);
    }
    return 0;
}

struct condition_stackless {
    blitz_frame frame;
    struct condition_scene *s;
    blitz_sync_future f;
    int left;
};

static inline blitz_poll condition_receives_by_poll(void *state, blitz_cx *cx)
{
    struct condition_stackless *me = state;
    struct condition_scene *s = me->s;
    int rc;
    BLITZ_BEGIN(&me->frame, cx);
    for (me->left = 3; me->left > 0; me->left--) {
        blitz_mutex_lock_future_init(&me->f, &s->mutex);
        BLITZ_AWAIT(rc, &me->f.future);
        CHECK_EQ(rc, 0);
        while (s->value == 0) {
            blitz_condition_wait_future_init(&me->f, &s->has_value, &s->mutex);
            BLITZ_AWAIT(rc, &me->f.future);
            CHECK_EQ(rc, 0);
        }
        s->value = 0;
        s->received++;
        blitz_condition_signal(&s->has_room);
        blitz_mutex_unlock(&s->mutex);
    }
    BLITZ_END(0);
}

static inline int scene_condition(void *arg)
{
    enum { PAIRS = 3 };
    struct condition_scene s = {.mutex = BLITZ_MUTEX_INIT,
                                .has_room = BLITZ_CONDITION_INIT,
                                .has_value = BLITZ_CONDITION_INIT,
                                .seed = arg};
    struct condition_actor actor[PAIRS];
    struct condition_stackless state = {.s = &s};
    blitz_task *t[2 * PAIRS];
    for (uint64_t i = 0; i < PAIRS; i++) {
        actor[i] = (struct condition_actor){&s, i};
        CHECK_EQ(blitz_spawn(condition_sends, &actor[i], NULL, &t[2 * i]), 0);
        if (i == 0)
            CHECK_EQ(blitz_spawn_poll(condition_receives_by_poll, &state, sizeof state, NULL,
                                      &t[2 * i + 1]),
                     0);
        else
            CHECK_EQ(blitz_spawn(condition_receives, &actor[i], NULL, &t[2 * i + 1]), 0);
    }
    scene_join(t, 2 * PAIRS);
    CHECK_EQ(s.sent, 3 * PAIRS);
    CHECK_EQ(s.received, s.sent);
    CHECK_EQ(s.value, 0);
    return 0;
}

/* ---- barrier: all in one round, one leader each ---- */

struct barrier_scene {
    blitz_barrier barrier;
    bz_atomic(int) arrivals, leaders, gone;
    const struct scene_seed *seed;
};

struct barrier_actor {
    struct barrier_scene *s;
    uint64_t number;
};

enum { BARRIER_PARTIES = 4, BARRIER_ROUNDS = 4 };

static inline int barrier_meets(void *arg)
{
    struct barrier_actor *a = arg;
    struct barrier_scene *s = a->s;
    struct bz_rng rng = scene_rng(s->seed, a->number);
    for (int round = 1; round <= BARRIER_ROUNDS;) {
        uint64_t us = bz_rng_below(&rng, 4);
        bz_fetch_add_relaxed(&s->arrivals, 1); /* relaxed: a count */
        int rc = blitz_barrier_wait(&s->barrier, us ? blitz_after(us * BLITZ_US) : BLITZ_FOREVER);
        if (rc == -ETIMEDOUT) {                    /* it has not come */
            bz_fetch_sub_relaxed(&s->arrivals, 1); /* relaxed: a count */
            continue;
        }
        CHECK(rc == 0 || rc == BLITZ_BARRIER_LEADER);
        CHECK_GE(bz_load_relaxed(&s->arrivals), round * BARRIER_PARTIES); /* relaxed: a count */
        bz_fetch_add_relaxed(&s->leaders, rc);                            /* relaxed: a count */
        round++;
    }
    return 0;
}

static inline int scene_barrier(void *arg)
{
    struct barrier_scene s = {.barrier = BLITZ_BARRIER_INIT(BARRIER_PARTIES), .seed = arg};
    struct barrier_actor actor[BARRIER_PARTIES];
    blitz_task *t[BARRIER_PARTIES];
    bz_atomic_init(&s.arrivals, 0);
    bz_atomic_init(&s.leaders, 0);
    for (uint64_t i = 0; i < BARRIER_PARTIES; i++) {
        actor[i] = (struct barrier_actor){&s, i};
        CHECK_EQ(blitz_spawn(barrier_meets, &actor[i], NULL, &t[i]), 0);
    }
    scene_join(t, BARRIER_PARTIES);
    CHECK_EQ(bz_load_relaxed(&s.leaders), BARRIER_ROUNDS);
    return 0;
}

/* ---- once: made by one, after failures ---- */

struct once_scene {
    blitz_once once;
    bz_atomic(int) attempts, making, made;
    int value; /* the value; not atomic */
    const struct scene_seed *seed;
};

struct once_actor {
    struct once_scene *s;
    uint64_t number;
};

static inline int once_makes(void *arg, void **value)
{
    struct once_scene *s = arg;
    CHECK_EQ(bz_fetch_add_relaxed(&s->making, 1), 0);       /* relaxed: a count */
    blitz_yield();                                          /* it may wait */
    bool fails = bz_fetch_add_relaxed(&s->attempts, 1) < 2; /* relaxed: a count */
    if (!fails) {
        s->value++;
        bz_fetch_add_relaxed(&s->made, 1); /* relaxed: a count */
        *value = &s->value;
    }
    bz_fetch_sub_relaxed(&s->making, 1); /* relaxed: a count */
    return fails ? -EIO : 0;
}

static inline int once_gets(void *arg)
{
    struct once_actor *a = arg;
    struct once_scene *s = a->s;
    struct bz_rng rng = scene_rng(s->seed, a->number);
    for (;;) {
        void *value = NULL;
        uint64_t us = bz_rng_below(&rng, 3);
        blitz_deadline until = us ? blitz_after(us * BLITZ_US) : BLITZ_FOREVER;
        int err = blitz_once_get(&s->once, once_makes, s, &value, until);
        if (err == 0) {
            CHECK_EQ(*(int *)value, 1);
            return 0;
        }
        if (err == -ECANCELED)
            return 0;
        CHECK(err == -EIO || err == -ETIMEDOUT);
    }
}

struct once_stackless {
    blitz_frame frame;
    struct once_scene *s;
    blitz_once_future f;
};

static inline blitz_poll once_gets_by_poll(void *state, blitz_cx *cx)
{
    struct once_stackless *me = state;
    int rc;
    BLITZ_BEGIN(&me->frame, cx);
    do {
        blitz_once_get_future_init(&me->f, &me->s->once, once_makes, me->s);
        BLITZ_AWAIT(rc, &me->f.future);
    } while (rc == 0 && me->f.result != 0);
    if (rc == 0)
        CHECK_EQ(*(int *)me->f.value, 1);
    BLITZ_END(0);
}

static inline int scene_once(void *arg)
{
    enum { ACTORS = 4, STACKLESS = 2 };
    struct once_scene s = {.once = BLITZ_ONCE_INIT, .seed = arg};
    struct once_actor actor[ACTORS];
    struct once_stackless state = {.s = &s};
    blitz_task *t[ACTORS + STACKLESS];
    struct bz_rng rng = scene_rng(arg, 100);
    bz_atomic_init(&s.attempts, 0);
    bz_atomic_init(&s.making, 0);
    bz_atomic_init(&s.made, 0);
    for (uint64_t i = 0; i < ACTORS; i++) {
        actor[i] = (struct once_actor){&s, i};
        CHECK_EQ(blitz_spawn(once_gets, &actor[i], NULL, &t[i]), 0);
    }
    for (int i = 0; i < STACKLESS; i++)
        CHECK_EQ(blitz_spawn_poll(once_gets_by_poll, &state, sizeof state, NULL, &t[ACTORS + i]),
                 0);
    scene_linger(&rng);
    blitz_task_cancel(t[1 + bz_rng_below(&rng, ACTORS + STACKLESS - 1)]); /* the first continues */
    scene_join(t, ACTORS + STACKLESS);
    CHECK_EQ(bz_load_relaxed(&s.made), 1);
    return 0;
}

/* ---- a group that is freed as soon as its wait returns ---- */

struct group_scene {
    blitz_wait_group group;
    blitz_latch latch;
    blitz_event event;
    int done[3]; /* not atomic: the group orders */
};

struct group_actor {
    struct group_scene *s;
    int number;
};

static inline int group_works(void *arg)
{
    struct group_actor a = *(struct group_actor *)arg;
    CHECK_EQ(blitz_event_wait(&a.s->event, BLITZ_FOREVER), 0);
    a.s->done[a.number] = 1;
    if (a.number == 0)
        blitz_yield();
    CHECK_EQ(blitz_latch_count_down(&a.s->latch, 1), 0);
    CHECK_EQ(blitz_wait_group_done(&a.s->group), 0); /* its last access */
    return 0;
}

static inline void group_thread(void *arg)
{
    (void)group_works(arg);
}

static inline void group_waits(struct group_scene *s, struct bz_rng *rng)
{
    int err;
    scene_linger(rng);
    blitz_event_set(&s->event);
    do {
        uint64_t us = bz_rng_below(rng, 3);
        err = blitz_wait_group_wait(&s->group, us ? blitz_after(us * BLITZ_US) : BLITZ_FOREVER);
    } while (err == -ETIMEDOUT);
    CHECK_EQ(err, 0);
    CHECK_EQ(blitz_latch_wait(&s->latch, 0), 0);
    CHECK(s->done[0] && s->done[1] && s->done[2]);
    memset(s, 0xa5, sizeof *s); /* gone */
}

static inline int scene_group(void *arg)
{
    struct bz_rng rng = scene_rng(arg, 0);
    const struct bz_os *os = bz_machine_self()->rt->os;
    struct group_scene *s = malloc(sizeof *s);
    struct group_actor actor[3] = {{s, 0}, {s, 1}, {s, 2}};
    struct bz_os_thread thread;
    blitz_task *t[2];
    CHECK_NOT_NULL(s);
    *s = (struct group_scene){
        .group = BLITZ_WAIT_GROUP_INIT, .latch = BLITZ_LATCH_INIT(3), .event = BLITZ_EVENT_INIT};
    CHECK_EQ(blitz_wait_group_add(&s->group, 3), 0);
    for (int i = 0; i < 2; i++)
        CHECK_EQ(blitz_spawn(group_works, &actor[i], NULL, &t[i]), 0);
    CHECK_EQ(bz_os_thread_start(os, &thread, NULL, group_thread, &actor[2]), 0);
    group_waits(s, &rng);
    free(s);
    scene_join(t, 2);
    CHECK_EQ(bz_os_thread_join(os, &thread), 0);
    return 0;
}

#endif
