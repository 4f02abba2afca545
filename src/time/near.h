/*
 * near.h - the timers of the millisecond we are in, in a heap without an array.
 *
 * Knows timers and nothing of wheels. The heap is the pointer to its root, NULL if it is empty; the
 * links are in the timers, so that pushing never allocates and never fails. near.c has the shape.
 */
#ifndef BZ_TIME_NEAR_H
#define BZ_TIME_NEAR_H

#include "time/timer.h"

/* O(1). */
void bz_near_push(struct bz_wheel_timer **root, struct bz_wheel_timer *t);

/* Take out `t`, which is in this heap; the root is the one that fires first. O(log n) amortized. */
void bz_near_remove(struct bz_wheel_timer **root, struct bz_wheel_timer *t);

/* For validators: from the root through all timers of the heap; NULL after the last. O(n) in all. */
struct bz_wheel_timer *bz_near_walk(struct bz_wheel_timer *t);

/* I1 and I2, by walking. Returns the number of timers; aborts with what it saw. */
size_t bz_near_check(struct bz_wheel_timer *root);

#endif
