/*
 * blitz/timer.h - timers that can be moved, and moments that come again and again.
 *
 *     blitz_timer idle;                                    // moved at each sign of life
 *     blitz_timer_init(&idle, blitz_after(30 * BLITZ_S));
 *     ...
 *     blitz_timer_reset(&idle, blitz_after(30 * BLITZ_S));  // from any thread
 *     ...
 *     blitz_await(&idle.future, BLITZ_FOREVER);             // whoever closes the connection
 *
 *     blitz_interval tick;
 *     blitz_interval_init(&tick, blitz_now(), 10 * BLITZ_MS, BLITZ_SKIP);
 *     while (blitz_interval_tick(&tick, BLITZ_FOREVER) >= 0)
 *         draw();
 *
 * Both lie in your memory and allocate nothing. Both are revocable futures: a wait for them that is
 * given up has changed nothing.
 */
#ifndef BLITZ_TIMER_H
#define BLITZ_TIMER_H

#include "blitz/api.h"
#include "blitz/future.h"
#include "blitz/futures.h"
#include "blitz/time.h"

BLITZ_BEGIN_DECLS

/* ---- a timer that can be moved ---- */

typedef struct blitz_timer {
    blitz_future future; /* to be awaited: ready when the moment has come. One waiter at a time */
    void *inside[18];
} blitz_timer;

/*
 * A timer that rings at `when`; BLITZ_FOREVER: not until it is moved. Until somebody awaits it, it
 * is a number and costs nothing.
 * Owns:     the memory stays the caller's, while anybody may await or reset it.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_timer_init(blitz_timer *t, blitz_deadline when);

/*
 * Move it: whoever waits now waits for that moment instead, earlier or later. One that has rung and
 * was not looked at rings again, at the new moment alone.
 * Owns:     borrows the timer until it returns.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_timer_reset(blitz_timer *t, blitz_deadline when);

/*
 * When it rings, or has rung.
 * Owns:     borrows the timer until it returns.
 * Suspends: never. Call from any thread.
 * Returns:  the moment.
 */
BLITZ_API blitz_deadline blitz_timer_when(blitz_timer *t);

/* ---- again and again ---- */

/* What becomes of ticks that were missed, because nobody was there to take them. */
typedef enum blitz_missed {
    BLITZ_BURST = 0, /* they come at once, one after the other, until it has caught up */
    BLITZ_DELAY = 1, /* the next one comes a period after this one was taken */
    BLITZ_SKIP = 2   /* they are left out: the next one comes at the next multiple of the period */
} blitz_missed;

typedef struct blitz_interval {
    blitz_future future;   /* to be awaited: ready once for each tick */
    blitz_instant ticked;  /* the moment the last tick was meant for */
    uint64_t skipped;      /* how many were left out before it (BLITZ_SKIP) */
    blitz_duration period; /* constant, as is the next */
    blitz_missed missed;
    blitz_sleep_future next; /* its `when` is the next tick */
} blitz_interval;

/*
 * Ticks from `first` on, one every `period`. BLITZ_FOREVER as the period: one tick and no more.
 * Owns:     the memory stays the caller's.
 * Suspends: never. Call from any thread.
 * Returns:  0, -EINVAL (a period of 0, no such way with missed ticks).
 */
BLITZ_API int blitz_interval_init(blitz_interval *i, blitz_instant first, blitz_duration period,
                                  blitz_missed missed);

/*
 * Wait for the next tick.
 * Owns:     borrows the interval until it returns.
 * Suspends: until the tick, `until`, or a cancel. Call from anywhere; a plain thread sleeps.
 * Returns:  0; or -ETIMEDOUT, -ECANCELED: no tick was taken, the next call gets it.
 */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int blitz_interval_tick(blitz_interval *i,
                                                                blitz_deadline until);

/*
 * Begin anew: the next tick is a period from now.
 * Owns:     borrows the interval until it returns. Nobody awaits it.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_interval_reset(blitz_interval *i);

BLITZ_END_DECLS

#endif
