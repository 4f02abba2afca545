/*
 * resize_program.h - tasks of many kinds, while the number of procs changes at random.
 *
 * Nothing may be lost: every task ends, every value that was sent is received, every forked half is summed up.
 */
#ifndef T_RESIZE_PROGRAM_H
#define T_RESIZE_PROGRAM_H

#include "harness.h"

#include "base/bz_atomic.h"
#include "base/rng.h"
#include "blitz.h"

enum { RESIZE_PROCS = 6, RESIZE_TASKS = 10, RESIZE_STEPS = 10, RESIZE_VALUES = 20 };

struct resize_program {
    blitz_runtime *rt;
    uint64_t seed;
    blitz_chan *values;
    blitz_mutex mutex;
    uint64_t guarded;                /* guarded by mutex */
    bz_atomic(uint64_t) sent, taken; /* sums of values */
    bz_atomic(int) is_over;
};

struct resize_player {
    struct resize_program *of;
    unsigned index;
};

static inline int resize_child(void *arg)
{
    blitz_yield();
    return *(int *)arg + 1;
}

static inline void resize_spawn(struct resize_program *p, struct bz_rng *dice)
{
    int value = (int)bz_rng_below(dice, 100), result = 0;
    blitz_spawn_opts opts = {
        .proc = bz_rng_below(dice, 2) ? BLITZ_ON_PROC(bz_rng_below(dice, RESIZE_PROCS)) : 0};
    blitz_task *t;
    (void)p;
    CHECK_EQ(blitz_spawn(resize_child, &value, &opts, &t), 0);
    CHECK_EQ(blitz_task_join(t, &result, BLITZ_FOREVER), 0);
    CHECK_EQ(result, value + 1);
}

static inline int resize_add_one(size_t from, size_t to, void *arg)
{
    bz_fetch_add_seqcst((bz_atomic(uint64_t) *)arg, to - from); /* seq_cst: a count of the test */
    return 0;
}

static inline void resize_loop(void)
{
    bz_atomic(uint64_t) count = 0;
    CHECK_EQ(blitz_for(200, resize_add_one, &count, NULL), 0);
    CHECK_EQ(bz_load_seqcst(&count), 200u); /* seq_cst: likewise */
}

static inline int resize_call(void *arg)
{
    return *(int *)arg;
}

static inline void resize_step(struct resize_program *p, struct bz_rng *dice)
{
    int value = (int)bz_rng_below(dice, 100);
    blitz_instant until = blitz_after(bz_rng_below(dice, 300) * BLITZ_US);
    switch (bz_rng_below(dice, 8)) {
    case 0:
        CHECK_EQ(blitz_sleep_until(until), 0);
        CHECK_GE(blitz_now(), until);
        break;
    case 1:
        resize_spawn(p, dice);
        break;
    case 2:
        CHECK_EQ(blitz_mutex_lock(&p->mutex, BLITZ_FOREVER), 0);
        p->guarded++;
        if (bz_rng_below(dice, 2))
            blitz_yield();
        blitz_mutex_unlock(&p->mutex);
        break;
    case 3:
        CHECK_EQ(blitz_blocking(resize_call, &value), value);
        break;
    case 4:
        if (blitz_thread_lock() == 0) {
            blitz_yield();
            CHECK_EQ(blitz_thread_unlock(), 0);
        }
        break;
    case 5: /* jobs that other procs take */
        resize_loop();
        break;
    case 6: /* a timer that is disarmed elsewhere */
        CHECK_EQ(blitz_mutex_lock(&p->mutex, blitz_after(1000 * BLITZ_S)), 0);
        p->guarded++;
        blitz_yield();
        blitz_mutex_unlock(&p->mutex);
        break;
    default:
        for (int i = 0; i < 40; i++) /* more than a duty's turn */
            blitz_yield();
    }
}

static inline int resize_play(void *arg)
{
    struct resize_player *me = arg;
    struct resize_program *p = me->of;
    struct bz_rng dice;
    bz_rng_init(&dice, p->seed + me->index);
    for (int i = 0; i < RESIZE_STEPS; i++)
        resize_step(p, &dice);
    for (int i = 0; i < RESIZE_VALUES; i++) {
        int value = (int)bz_rng_below(&dice, 1000);
        if (me->index % 2 == 0) {
            CHECK_EQ(blitz_chan_send(p->values, &value, BLITZ_FOREVER), 0);
            bz_fetch_add_seqcst(&p->sent, (uint64_t)value); /* seq_cst: a sum of the test */
        } else {
            CHECK_EQ(blitz_chan_recv(p->values, &value, BLITZ_FOREVER), 0);
            bz_fetch_add_seqcst(&p->taken, (uint64_t)value); /* seq_cst: likewise */
        }
    }
    return 0;
}

/* Change the number of procs until the players have ended. A plain thread, or a task. */
static inline void resize_often(struct resize_program *p, void (*pause)(void *), void *arg)
{
    struct bz_rng dice;
    bz_rng_init(&dice, ~p->seed);
    while (bz_load_seqcst(&p->is_over) == 0) { /* seq_cst: a flag of the test */
        CHECK_EQ(blitz_runtime_resize(p->rt, 1 + (unsigned)bz_rng_below(&dice, RESIZE_PROCS)), 0);
        pause(arg);
    }
}

static inline int resize_players(void *arg)
{
    struct resize_program *p = arg;
    struct resize_player player[RESIZE_TASKS];
    blitz_task *t[RESIZE_TASKS];
    for (unsigned i = 0; i < RESIZE_TASKS; i++) {
        player[i] = (struct resize_player){p, i};
        CHECK_EQ(blitz_spawn(resize_play, &player[i], NULL, &t[i]), 0);
    }
    for (unsigned i = 0; i < RESIZE_TASKS; i++)
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
    CHECK_EQ(bz_load_seqcst(&p->sent), bz_load_seqcst(&p->taken)); /* seq_cst: sums of the test */
    bz_store_seqcst(&p->is_over, 1);                               /* seq_cst: a flag */
    return 0;
}

static inline void resize_begin(struct resize_program *p, blitz_runtime *rt, uint64_t seed)
{
    *p = (struct resize_program){.rt = rt, .seed = seed, .mutex = BLITZ_MUTEX_INIT};
    CHECK_EQ(blitz_chan_new(sizeof(int), seed % 3, NULL, &p->values), 0);
}

static inline void resize_end(struct resize_program *p)
{
    blitz_chan_unref(p->values);
}

#endif
