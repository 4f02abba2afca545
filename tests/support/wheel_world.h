/*
 * wheel_world.h - a timer wheel beside its oracle.
 *
 * The oracle is an array of deadlines that is searched from end to end: too slow for a runtime, too
 * simple to be wrong. Every operation is applied to both. At each expire, the fired timers must be
 * those of the array, in its order. Time is a number.
 */
#ifndef WHEEL_WORLD_H
#define WHEEL_WORLD_H

#include "harness.h"

#include "time/wheel.h"

#define MS BZ_WHEEL_TICK_NS
#define DAY (UINT64_C(86400) * 1000 * MS)
#define YEAR (365 * DAY)

enum { N = 120 };

/* The expected state: deadlines, and the number of each arming. */
struct world {
    struct bz_wheel wheel;
    struct bz_wheel_timer timer[N];
    bool is_armed[N];
    uint64_t deadline[N], order[N], armings;
    uint64_t now;
    struct bz_list due;
};

static inline void world_init(struct world *o, uint64_t now)
{
    memset(o, 0, sizeof *o);
    o->now = now;
    bz_wheel_init(&o->wheel, now);
    bz_list_init(&o->due);
}

static inline void world_arm(struct world *o, int i, uint64_t deadline)
{
    CHECK_EQ(bz_wheel_disarm(&o->wheel, &o->timer[i]), o->is_armed[i]);
    bz_wheel_arm(&o->wheel, &o->timer[i], deadline);
    o->is_armed[i] = true;
    o->deadline[i] = deadline;
    o->order[i] = o->armings++;
}

static inline void world_disarm(struct world *o, int i)
{
    CHECK_EQ(bz_wheel_disarm(&o->wheel, &o->timer[i]), o->is_armed[i]);
    o->is_armed[i] = false;
}

/* The one that should fire first, or -1. */
static inline int world_first(const struct world *o)
{
    int first = -1;
    for (int i = 0; i < N; i++)
        if (o->is_armed[i])
            if (first < 0 || o->deadline[i] < o->deadline[first] ||
                (o->deadline[i] == o->deadline[first] && o->order[i] < o->order[first]))
                first = i;
    return first;
}

static inline size_t world_count(const struct world *o)
{
    size_t count = 0;
    for (int i = 0; i < N; i++)
        count += o->is_armed[i];
    return count;
}

/* The wheel is sound, knows how many there are, and would not be late. */
static inline void world_check(struct world *o)
{
    int first = world_first(o);
    bz_wheel_check(&o->wheel);
    CHECK_EQ(bz_wheel_count(&o->wheel), world_count(o));
    if (first < 0)
        CHECK_EQ(bz_wheel_next(&o->wheel), BZ_WHEEL_NEVER);
    else
        CHECK_LE(bz_wheel_next(&o->wheel), o->deadline[first]);
}

/* Take one due timer: it must be the one that should fire. Its number. */
static inline int world_take(struct world *o)
{
    struct bz_wheel_timer *t = bz_wheel_take(&o->due);
    CHECK_NOT_NULL(t);
    int i = (int)(t - o->timer);
    CHECK_EQ(i, world_first(o));
    CHECK_LE(o->deadline[i], o->now);
    o->is_armed[i] = false;
    return i;
}

/* All at once, or in bits. */
static inline size_t world_limit(void)
{
    uint64_t pick = t_random_below(6);
    return pick < 3 ? SIZE_MAX : (size_t)pick;
}

/* It is `now`: exactly those that are due fire, in order. Returns how many. */
static inline size_t world_expire(struct world *o, uint64_t now)
{
    o->now = now;
    size_t moved = 0;
    for (size_t limit = world_limit(), some = limit; some == limit; moved += some) {
        some = limit == SIZE_MAX ? bz_wheel_expire(&o->wheel, now, &o->due)
                                 : bz_wheel_expire_some(&o->wheel, now, &o->due, limit);
        CHECK_EQ(bz_list_check(&o->due), some);
        CHECK_LE(some, limit);
        for (size_t i = 0; i < some; i++)
            world_take(o);
    }
    int first = world_first(o);
    if (first >= 0)
        CHECK_GT(o->deadline[first], now);
    world_check(o);
    return moved;
}

/* Sleep until next, expire, again: how often, until nothing is armed. Each was exactly on time. */
static inline size_t world_run_down(struct world *o)
{
    size_t wakes = 0;
    for (uint64_t next; (next = bz_wheel_next(&o->wheel)) != BZ_WHEEL_NEVER; wakes++) {
        int first = world_first(o);
        uint64_t at = next > o->now ? next : o->now;
        size_t fired = world_expire(o, at);
        if (fired == 0)
            CHECK_GT(bz_wheel_next(&o->wheel), next); /* a wake for nothing is not repeated */
        else if (o->deadline[first] >= next)
            CHECK_EQ(o->deadline[first], next); /* on time to the nanosecond */
    }
    CHECK_EQ(world_count(o), 0u);
    return wakes;
}

/* The span of a slot of a level, in ns; of the level behind the last, too. */
static inline uint64_t slot_ns(unsigned level)
{
    return MS << (level * BZ_WHEEL_BITS);
}

/* A span of about 2^k ns, k by chance: every level is as likely as any other. */
static inline uint64_t span_random(unsigned bits_max)
{
    return t_random() >> (64 - (1 + t_random_below(bits_max)));
}

static inline uint64_t add(uint64_t a, uint64_t b)
{
    return a > BZ_WHEEL_NEVER - 1 - b ? BZ_WHEEL_NEVER - 1 : a + b;
}

#endif
