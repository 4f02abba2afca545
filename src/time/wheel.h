/*
 * wheel.h - told the time, it returns what is due.
 *
 *     bz_wheel_init(&w, now_ns);
 *     bz_wheel_arm(&w, &sleep->timer, now_ns + 3000000);
 *     ...                                              // until bz_wheel_next(&w), at the latest
 *     bz_wheel_expire(&w, now_ns, &due);
 *     for (struct bz_wheel_timer *t; (t = bz_wheel_take(&due)) != NULL;)
 *         wake(BZ_CONTAINER_OF(t, struct sleep, timer));
 *
 * The wheel knows no clock, no lock and no scheduler: moments are nanoseconds of whatever clock its
 * owner reads, and whoever shares a wheel brings a lock, which guards the wheel, its timers and the
 * lists of due ones. Nothing here allocates, waits or fails. wheel.c has the design.
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
#define BZ_WHEEL_NEVER UINT64_MAX          /* no moment at all */

struct bz_wheel_slot {
    struct bz_list timers;
    uint64_t
        first_ns; /* no deadline in it is earlier; the earliest itself, unless it was disarmed */
};

struct bz_wheel {
    uint64_t tick;                      /* the millisecond we are in */
    size_t count;                       /* armed timers, those that are due not counted */
    uint64_t armings;                   /* numbers them */
    struct bz_wheel_timer *near;        /* the heap of this millisecond and what is before it */
    uint64_t occupied[BZ_WHEEL_LEVELS]; /* bit s: slot s has timers */
    struct bz_wheel_slot slot[BZ_WHEEL_LEVELS * BZ_WHEEL_SLOTS];
    struct bz_wheel_slot far; /* beyond the last level: the overflow list */
};

void bz_wheel_init(struct bz_wheel *w, uint64_t now_ns);

/* The end of an empty wheel; one that is not aborts. */
void bz_wheel_fini(struct bz_wheel *w);

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
 * It shall not fire. O(1); in the current millisecond O(log n) amortized.
 * Returns: true if it was armed, or due and not yet taken: nobody will see it fire. False if there
 *          was nothing to do: it was never armed, has been disarmed or has been taken.
 */
bool bz_wheel_disarm(struct bz_wheel *w, struct bz_wheel_timer *t);

/* Fire at deadline_ns instead of whenever it would have. Returns what disarm would have. */
bool bz_wheel_rearm(struct bz_wheel *w, struct bz_wheel_timer *t, uint64_t deadline_ns);

/*
 * It is now_ns: move every timer with deadline_ns <= now_ns to the end of `due`, in the order of the
 * deadlines, equal ones in the order they were armed. O(due log due + levels), however long it has
 * been; what has come nearer without being due is dealt out, once per level in its life, and the
 * overflow list when one of its timers comes within 12.4 days.
 * A now_ns before an earlier one fires what is due by it and turns nothing back.
 * Returns: how many were moved.
 */
size_t bz_wheel_expire(struct bz_wheel *w, uint64_t now_ns, struct bz_list *due);

/*
 * The same, but `limit` at most, the first ones; those behind stay armed. What is left shows in
 * bz_wheel_next(). For whoever holds a lock and has a million due.
 */
size_t bz_wheel_expire_some(struct bz_wheel *w, uint64_t now_ns, struct bz_list *due, size_t limit);

/*
 * Take the first of a list of due timers: it may be armed again from here on, and its memory is its
 * owner's. NULL if there is none.
 */
struct bz_wheel_timer *bz_wheel_take(struct bz_list *due);

/*
 * The moment to call expire at: the earliest deadline or, if that was disarmed, at times an earlier
 * one; never a later. BZ_WHEEL_NEVER if nothing is armed. Expiring at that moment either fires
 * something or makes the next answer later. O(1).
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

/* I1 to I4, by walking. Aborts with what it saw. */
void bz_wheel_check(struct bz_wheel *w);

#endif
