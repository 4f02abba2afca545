/*
 * blitz/timer.h - timers that can be moved, and intervals.
 *
 *     blitz_timer idle;                                    // moved whenever the peer is active
 *     blitz_timer_init(&idle, blitz_after(30 * BLITZ_S));
 *     ...
 *     blitz_timer_reset(&idle, blitz_after(30 * BLITZ_S));  // from any thread
 *     ...
 *     blitz_await(&idle.future, BLITZ_FOREVER);             // in the task that closes the connection
 *
 *     blitz_interval tick;
 *     blitz_interval_init(&tick, blitz_now(), 10 * BLITZ_MS, BLITZ_SKIP);
 *     while (blitz_interval_tick(&tick, BLITZ_FOREVER) >= 0)
 *         draw();
 *
 * Both lie in your memory and allocate nothing. Both are revocable futures: a wait that is cancelled has changed
 * nothing.
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
    blitz_future future; /* to be awaited: ready at its moment. One waiter at a time */
    void *inside[18];
} blitz_timer;

/*
 * Make a timer that fires at `when`; BLITZ_FOREVER: not until it is moved. Until it is awaited, it is only a number
 * and costs nothing.
 * Owns:     the memory stays the caller's; keep it while a caller may await or reset it.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_timer_init(blitz_timer *t, blitz_deadline when);

/*
 * Move a timer: a current waiter now waits for the new moment, earlier or later. A timer that has fired and was not
 * polled since fires again, at the new moment only.
 * Owns:     borrows the timer until it returns.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_timer_reset(blitz_timer *t, blitz_deadline when);

/*
 * Return the moment at which it fires or has fired.
 * Owns:     borrows the timer until it returns.
 * Suspends: never. Call from any thread.
 * Returns:  the moment.
 */
BLITZ_API blitz_deadline blitz_timer_when(blitz_timer *t);

/* ---- intervals ---- */

/* How to handle ticks that no caller took in time. */
typedef enum blitz_missed {
    BLITZ_BURST = 0, /* they come at once, one after the other, until none is missed */
    BLITZ_DELAY = 1, /* the next one comes a period after this one was taken */
    BLITZ_SKIP = 2   /* they are left out: the next one is at the next multiple of the period */
} blitz_missed;

typedef struct blitz_interval {
    blitz_future future;   /* to be awaited: ready once for each tick */
    blitz_instant ticked;  /* the moment the last tick was meant for */
    uint64_t skipped;      /* how many ticks were left out before it (BLITZ_SKIP) */
    blitz_duration period; /* constant, as is the next */
    blitz_missed missed;
    blitz_sleep_future next; /* its `when` is the next tick */
} blitz_interval;

/*
 * Make an interval: ticks from `first` on, one every `period`. With BLITZ_FOREVER as the period there is one tick only.
 * Owns:     the memory stays the caller's.
 * Suspends: never. Call from any thread.
 * Returns:  0, -EINVAL (a period of 0, or an unknown blitz_missed).
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
 * Restart an interval: the next tick is one period from now.
 * Owns:     borrows the interval until it returns. It must not be awaited meanwhile.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_interval_reset(blitz_interval *i);

BLITZ_END_DECLS

#endif
