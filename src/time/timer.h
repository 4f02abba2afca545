/*
 * timer.h - a timer of a wheel, and the order of two timers.
 *
 * The caller owns the memory of a timer: it may be in a future or in the frame of a waiting task,
 * and the wheel links it. The owner embeds the timer, finds its own struct by BZ_CONTAINER_OF and
 * handles the expiry. All zeroes is a timer that is not armed. Only the wheel reads or writes the
 * fields.
 */
#ifndef BZ_TIME_TIMER_H
#define BZ_TIME_TIMER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"

struct bz_wheel_timer {
    union {
        struct bz_list in; /* in a slot, the overflow list or a list of due timers */
        struct {
            struct bz_wheel_timer *next, *prev; /* siblings; the first one's prev is the parent */
        } kin;                                  /* in the near-heap, near.c */
    };
    struct bz_wheel_timer *child; /* in the near-heap: the first child */
    uint64_t deadline_ns;
    uint64_t order; /* sequence number of its arming: the order of equal deadlines */
    uint16_t place; /* where it is linked; 0: nowhere. wheel.c has the numbers */
};

static inline struct bz_wheel_timer *bz_wheel_timer_of(struct bz_list *in)
{
    return BZ_CONTAINER_OF(in, struct bz_wheel_timer, in);
}

/* True if a fires before b. A total order: no two armings have the same number. */
static inline bool bz_wheel_timer_before(const struct bz_wheel_timer *a,
                                         const struct bz_wheel_timer *b)
{
    if (a->deadline_ns != b->deadline_ns)
        return a->deadline_ns < b->deadline_ns;
    return a->order < b->order;
}

/* Sort a list of timers, the first to fire first. O(n) if it is sorted already, else O(n log n). */
void bz_wheel_timers_sort(struct bz_list *timers);

#endif
