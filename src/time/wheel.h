/*
 * wheel.h - a timer wheel: given the time, it returns the due timers.
 *
 *     bz_wheel_init(&w, now_ns);
 *     bz_wheel_arm(&w, &sleep->timer, now_ns + 3000000);
 *     ...                                              // until bz_wheel_next(&w), at the latest
 *     bz_wheel_expire(&w, now_ns, &due);
 *     for (struct bz_wheel_timer *t; (t = bz_wheel_take(&due)) != NULL;)
 *         wake(BZ_CONTAINER_OF(t, struct sleep, timer));
 *
 * The wheel has no clock, lock or scheduler: times are nanoseconds of the owner's clock. Threads
 * that share a wheel need a lock that guards the wheel, its timers and the lists of due timers.
 * Nothing here allocates, waits or fails. wheel.c has the design.
 */
#ifndef BZ_TIME_WHEEL_H
#define BZ_TIME_WHEEL_H

#include "time/timer.h"

enum {
    BZ_WHEEL_LEVELS = 5,
    BZ_WHEEL_BITS = 6, /* of a digit: a slot's index in its level */
    BZ_WHEEL_SLOTS = 1 << BZ_WHEEL_BITS,
};
#define BZ_WHEEL_TICK_NS UINT64_C(1000000) /* a slot of level 0 */
#define BZ_WHEEL_NEVER UINT64_MAX          /* no deadline */

struct bz_wheel_slot {
    struct bz_list timers;
    uint64_t
        /* no deadline in it is earlier; equal to the earliest, unless that was disarmed */
        first_ns;
};

struct bz_wheel {
    uint64_t tick;                      /* the current millisecond */
    size_t count;                       /* armed timers, without the due ones */
    uint64_t armings;                   /* sequence number of armings */
    struct bz_wheel_timer *near;        /* the heap of the current and earlier milliseconds */
    uint64_t occupied[BZ_WHEEL_LEVELS]; /* bit s: slot s has timers */
    struct bz_wheel_slot slot[BZ_WHEEL_LEVELS * BZ_WHEEL_SLOTS];
    struct bz_wheel_slot far; /* beyond the last level: the overflow list */
};

void bz_wheel_init(struct bz_wheel *w, uint64_t now_ns);

/* Make a timer that is not armed. Memory of zeroes is one, too. */
static inline void bz_wheel_timer_init(struct bz_wheel_timer *t)
{
    *t = (struct bz_wheel_timer){.place = 0};
}

/*
 * Fire at deadline_ns, which may have passed; it fires at the next expire then. O(1).
 * The timer is neither armed nor in a list of due ones, the deadline is not BZ_WHEEL_NEVER: aborts.
 * Borrows: the timer, until it is disarmed or taken from a list of due ones.
 */
void bz_wheel_arm(struct bz_wheel *w, struct bz_wheel_timer *t, uint64_t deadline_ns);

/*
 * Disarm the timer. O(1); in the current millisecond O(log n) amortized.
 * Returns: true if it was armed, or due and not yet taken: it will not fire. False if it was never
 *          armed, has been disarmed or has been taken.
 */
bool bz_wheel_disarm(struct bz_wheel *w, struct bz_wheel_timer *t);

/*
 * Advance to now_ns: move every timer with deadline_ns <= now_ns to the end of `due`, ordered by
 * deadline and then by arming. O(due log due + levels) for any distance. Timers that come nearer
 * are moved to lower levels, once per level in their life, and the overflow list when one of its
 * timers comes within 12.4 days. A now_ns before an earlier one fires the timers due by it and does
 * not turn the wheel back.
 * Returns: the number of timers moved.
 */
size_t bz_wheel_expire(struct bz_wheel *w, uint64_t now_ns, struct bz_list *due);

/*
 * The same, but only the first `limit` timers; later ones stay armed and show in bz_wheel_next().
 * For a caller that holds a lock when a million timers are due.
 */
size_t bz_wheel_expire_some(struct bz_wheel *w, uint64_t now_ns, struct bz_list *due, size_t limit);

/*
 * Take the first of a list of due timers; NULL if there is none. The owner may arm or free it from
 * now on.
 */
struct bz_wheel_timer *bz_wheel_take(struct bz_list *due);

/*
 * The time of the next expire: the earliest deadline or, if a timer was disarmed, possibly an
 * earlier time; never a later one. BZ_WHEEL_NEVER if no timer is armed. An expire at that time
 * either fires a timer or makes the next result later. O(1).
 */
uint64_t bz_wheel_next(const struct bz_wheel *w);

static inline size_t bz_wheel_count(const struct bz_wheel *w)
{
    return w->count;
}

/* Armed, or due and not yet taken. */
static inline bool bz_wheel_timer_is_armed(const struct bz_wheel_timer *t)
{
    return t->place != 0;
}

/* Check I1 to I4 by a walk. Abort with a message if one is broken. */
void bz_wheel_check(struct bz_wheel *w);

#endif
