/*
 * tick.h - how many tasks a proc has run, and when its next duty is due.
 *
 * A proc looks at its timers, its poll and the other queues once in many runs: sched/find.c. Every run asks whether a
 * duty is due. So the proc counts how many runs are left until then, and one instruction counts and asks.
 *
 *     63            32 31             0
 *     | tick of duty  | runs left      |     the tick, the number of runs so far, is the difference
 *
 * Only the machine writes the word. The monitor and the virtual clock read it, to see whether the proc has run anything
 * since their last look. That is why both halves are in one word: a reader finds no tick that never was.
 */
#ifndef BZ_PROC_TICK_H
#define BZ_PROC_TICK_H

#include "arch/own.h"
#include "base/bz_atomic.h"

typedef bz_atomic(uint64_t) bz_tick;

/* The tick is 0. The first run does its duties first. */
static inline void bz_tick_init(bz_tick *t)
{
    bz_atomic_init(t, UINT64_C(1) << 32 | 1);
}

/* The number of runs so far, which wraps. For threads but the machine's a hint, or they have acquired it. */
static inline uint32_t bz_tick_now(bz_tick *t)
{
    uint64_t word = bz_load_relaxed(t); /* relaxed: as above */
    return (uint32_t)(word >> 32) - (uint32_t)word;
}

/* Set the tick before which the next duty is due. */
static inline void bz_tick_set_duty(bz_tick *t, uint32_t at)
{
    uint32_t left = at - bz_tick_now(t);
    bz_store_relaxed(t, (uint64_t)at << 32 | left); /* relaxed: one writer */
}

/* The next run does its duties first. */
static inline void bz_tick_hurry(bz_tick *t)
{
    bz_tick_set_duty(t, bz_tick_now(t) + 1);
}

/* True if a duty is due before the next run. */
static inline bool bz_tick_is_due(bz_tick *t)
{
    return (int32_t)(uint32_t)bz_load_relaxed(t) <= 1; /* relaxed: ours */
}

/* Count a run. True if a duty is due before it. */
static BZ_ALWAYS_INLINE bool bz_tick_step(bz_tick *t)
{
    return BZ_UNLIKELY(bz_own_count_down(t));
}

/* There was no such run. */
static inline void bz_tick_step_back(bz_tick *t)
{
    uint64_t word = bz_load_relaxed(t); /* relaxed: ours */
    /* relaxed: one writer */
    bz_store_relaxed(t, (word & ~(uint64_t)UINT32_MAX) | (uint32_t)((uint32_t)word + 1));
}

#endif
