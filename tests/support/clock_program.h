/*
 * clock_program.h - many tasks with random waits on a virtual clock, in simulation and on real threads.
 *
 * The clock moves only when every task waits. So each sleep ends at its exact moment, and the time stands between two
 * waits, whatever else goes on. A clock that moves too early breaks the one or the other; a clock that forgets to move
 * hangs.
 */
#ifndef T_CLOCK_PROGRAM_H
#define T_CLOCK_PROGRAM_H

#include "harness.h"

#include "base/bz_atomic.h"
#include "base/rng.h"
#include "blitz.h"

enum { CLOCK_TASKS = 12, CLOCK_STEPS = 12 };

struct clock_program {
    uint64_t seed;
    bz_atomic(uint32_t) steps; /* done by all tasks */
    blitz_chan *values;
    blitz_mutex mutex;
};

struct clock_player {
    struct clock_program *of;
    unsigned index;
};

/* A moment that other tasks are likely to choose, too. */
static inline blitz_instant clock_moment(struct bz_rng *dice)
{
    static const uint64_t unit[] = {BLITZ_US, BLITZ_MS, 700 * BLITZ_MS, 3600 * BLITZ_S};
    uint64_t u = unit[bz_rng_below(dice, 4)];
    return (blitz_now() / u + 1 + bz_rng_below(dice, 3)) * u;
}

static inline int clock_call(void *arg)
{
    return *(int *)arg + 1;
}

static inline int clock_child(void *arg)
{
    blitz_instant until = *(blitz_instant *)arg;
    CHECK_EQ(blitz_sleep_until(until), 0);
    CHECK_EQ(blitz_now(), until);
    return 0;
}

/* One wait, or some turns. */
static inline void clock_step(struct clock_program *p, struct bz_rng *dice)
{
    blitz_instant at = blitz_now(), until = clock_moment(dice);
    blitz_task *t;
    int value = 0, turns = (int)bz_rng_below(dice, 5);
    switch (bz_rng_below(dice, 8)) {
    case 0: /* a value, or the deadline: nothing in between */
        if (blitz_chan_recv(p->values, &value, until) == -ETIMEDOUT)
            CHECK_EQ(blitz_now(), until);
        break;
    case 1:
        if (blitz_chan_send(p->values, &value, until) == -ETIMEDOUT)
            CHECK_EQ(blitz_now(), until);
        break;
    case 2: /* a blocking call takes no time */
        CHECK_EQ(blitz_blocking(clock_call, &value), 1);
        CHECK_EQ(blitz_now(), at);
        break;
    case 3:
        CHECK_EQ(blitz_spawn(clock_child, &until, NULL, &t), 0);
        CHECK_EQ(blitz_task_join(t, NULL, BLITZ_FOREVER), 0);
        CHECK_EQ(blitz_now(), until);
        break;
    case 4:
        while (turns-- > 0)
            blitz_yield();
        CHECK_EQ(blitz_now(), at);
        break;
    case 5: /* a lock that is held over a sleep */
        if (blitz_mutex_lock(&p->mutex, until) != 0) {
            CHECK_EQ(blitz_now(), until);
            break;
        }
        until = clock_moment(dice);
        CHECK_EQ(blitz_sleep_until(until), 0);
        CHECK_EQ(blitz_now(), until);
        blitz_mutex_unlock(&p->mutex);
        break;
    case 6:
        if (blitz_thread_lock() != 0)
            break; /* -EAGAIN: too few threads */
        CHECK_EQ(blitz_sleep_until(until), 0);
        CHECK_EQ(blitz_now(), until);
        CHECK_EQ(blitz_thread_unlock(), 0);
        break;
    default:
        CHECK_EQ(blitz_sleep_until(until), 0);
        CHECK_EQ(blitz_now(), until);
    }
}

static inline int clock_play(void *arg)
{
    struct clock_player *me = arg;
    struct bz_rng dice;
    bz_rng_init(&dice, me->of->seed + me->index);
    for (int i = 0; i < CLOCK_STEPS; i++) {
        clock_step(me->of, &dice);
        bz_fetch_add_seqcst(&me->of->steps, 1); /* seq_cst: a count of the test */
    }
    return 0;
}

/* The first task of a runtime whose clock moves by itself. arg: the seed. */
static inline int clock_program(void *arg)
{
    struct clock_program p = {.seed = *(uint64_t *)arg, .mutex = BLITZ_MUTEX_INIT};
    struct clock_player player[CLOCK_TASKS];
    blitz_task *t[CLOCK_TASKS];
    CHECK_EQ(blitz_chan_new(sizeof(int), p.seed % 3, NULL, &p.values), 0);
    for (unsigned i = 0; i < CLOCK_TASKS; i++) {
        player[i] = (struct clock_player){&p, i};
        CHECK_EQ(blitz_spawn(clock_play, &player[i], NULL, &t[i]), 0);
    }
    for (unsigned i = 0; i < CLOCK_TASKS; i++)
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
    CHECK_EQ(bz_load_seqcst(&p.steps), CLOCK_TASKS * CLOCK_STEPS); /* seq_cst: likewise */
    blitz_chan_unref(p.values);
    return 0;
}

/* ---- moved from outside ---- */

enum { CLOCK_SLEEPERS = 8 };

struct clock_sleeper {
    blitz_instant until;
    bz_atomic(uint32_t) is_up;
};

static inline int clock_sleeps(void *arg)
{
    struct clock_sleeper *s = arg;
    CHECK_EQ(blitz_sleep_until(s->until), 0);
    CHECK_EQ(blitz_now(), s->until);
    blitz_yield();
    bz_store_seqcst(&s->is_up, 1); /* seq_cst: a flag of the test */
    return 0;
}

/* A plain thread moves the clock of rt, which is paused and does not move by itself, in `steps` of random lengths. After
 * each of them, exactly the tasks whose moment has come are up. */
static inline void clock_drive(blitz_runtime *rt, uint64_t seed, unsigned steps)
{
    struct clock_sleeper s[CLOCK_SLEEPERS];
    blitz_task *t[CLOCK_SLEEPERS];
    struct bz_rng dice;
    bz_rng_init(&dice, seed);
    blitz_instant at = blitz_clock_now(rt), end = at + 10 * BLITZ_S;
    for (unsigned i = 0; i < CLOCK_SLEEPERS; i++) {
        s[i].until = at + (1 + bz_rng_below(&dice, 10)) * BLITZ_S;
        bz_atomic_init(&s[i].is_up, 0);
        CHECK_EQ(blitz_spawn(clock_sleeps, &s[i], &(blitz_spawn_opts){.runtime = rt}, &t[i]), 0);
    }
    for (unsigned k = 0; k < steps; k++) {
        blitz_duration by = bz_rng_below(&dice, 3) * BLITZ_S;
        CHECK_EQ(blitz_clock_advance(rt, by, BLITZ_FOREVER), 0);
        at += by;
        CHECK_EQ(blitz_clock_now(rt), at);
        for (unsigned i = 0; i < CLOCK_SLEEPERS; i++)
            CHECK_EQ(bz_load_seqcst(&s[i].is_up), s[i].until <= at); /* seq_cst: likewise */
    }
    CHECK_EQ(blitz_clock_advance(rt, at < end ? end - at : 0, BLITZ_FOREVER), 0);
    for (unsigned i = 0; i < CLOCK_SLEEPERS; i++)
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
}

#endif
