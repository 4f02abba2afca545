/*
 * near.h - a heap of the timers of the current millisecond, without an array.
 *
 * It knows timers but not wheels. The heap is a pointer to its root, NULL if it is empty. The links
 * are in the timers, so that a push never allocates or fails. near.c has the design.
 */
#ifndef BZ_TIME_NEAR_H
#define BZ_TIME_NEAR_H

#include "time/timer.h"

/* O(1). */
void bz_near_push(struct bz_wheel_timer **root, struct bz_wheel_timer *t);

/* Remove `t`, which is in this heap; the root fires first. O(log n) amortized. */
void bz_near_remove(struct bz_wheel_timer **root, struct bz_wheel_timer *t);

/* For validators: iterate from the root through all timers of the heap; NULL after the last. O(n)
 * in total. */
struct bz_wheel_timer *bz_near_walk(struct bz_wheel_timer *t);

/* Check I1 and I2 by a walk. Return the number of timers; abort with a message if one is broken. */
size_t bz_near_check(struct bz_wheel_timer *root);

#endif
