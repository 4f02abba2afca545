/*
 * blitz/rate.h - so many of something in so much time.
 *
 * A rate is a bucket of permits. It fills steadily, `permits` in each `per`, up to `burst`. An operation takes its permits
 * first, and waits if there are too few. Waiters are served in the order in which they came, so a large request is not
 * passed by small ones.
 *
 *     blitz_rate mails;
 *     blitz_rate_init(&mails, 100, 60 * BLITZ_S, 10);    // 100 a minute, up to 10 at once
 *     while (next_mail(&m) == 0 && blitz_rate_acquire(&mails, 1, BLITZ_FOREVER) == 0)
 *         send_mail(&m);
 *
 * For a number of operations at the same time, not in a span of time, use a semaphore (blitz/semaphore.h).
 */
#ifndef BLITZ_RATE_H
#define BLITZ_RATE_H

#include <stdint.h>

#include "blitz/api.h"
#include "blitz/futures.h"
#include "blitz/semaphore.h"
#include "blitz/sync_future.h"
#include "blitz/time.h"

BLITZ_BEGIN_DECLS

/* The memory is yours; its fields are not. It must outlive its waiters and needs no destructor. */
typedef struct blitz_rate {
    blitz_semaphore turn;
    uint64_t inside[8];
} blitz_rate;

/*
 * Make a rate, with a full bucket.
 * Owns:     the memory stays the caller's.
 * Suspends: never. Call from any thread, before its first use.
 * Returns:  0, -EINVAL (permits, per or burst is 0; permits or burst * per exceeds 2^63 - 1).
 */
BLITZ_API BLITZ_MUST_USE int blitz_rate_init(blitz_rate *r, uint64_t permits, blitz_duration per,
                                             uint64_t burst);

/*
 * Take n permits, all at once.
 * Owns:     borrows the rate until it returns. Permits are used up; they are not released.
 * Suspends: until the bucket has n permits and no waiter is in front, `until`, or a cancel. Call from anywhere; a plain
 *           thread sleeps.
 * Returns:  0, -ETIMEDOUT, -ECANCELED, -EINVAL (n is more than the burst). On error no permit was taken.
 */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int blitz_rate_acquire(blitz_rate *r, uint64_t n,
                                                               blitz_deadline until);

/*
 * Take n permits if that is possible at once.
 * Owns:     borrows the rate until it returns.
 * Suspends: never. Call from any thread.
 * Returns:  0, -EAGAIN (too few, or another caller waits), -EINVAL (n is more than the burst).
 */
BLITZ_API BLITZ_MUST_USE int blitz_rate_try_acquire(blitz_rate *r, uint64_t n);

/*
 * Return the number of permits in the bucket at this moment; it may be out of date at once.
 * Owns:     borrows the rate until it returns.
 * Suspends: never. Call from any thread.
 * Returns:  the number.
 */
BLITZ_API uint64_t blitz_rate_permits(blitz_rate *r);

/* The acquire as a future. Revocable: no permit was taken if it is cancelled. */
typedef struct blitz_rate_future {
    blitz_future future; /* to be awaited */
    int result;          /* when ready: 0, -EINVAL */
    int state;           /* not yours, as are the next ones */
    blitz_rate *of;
    uint64_t n;
    blitz_sync_future turn;
    blitz_sleep_future sleep;
} blitz_rate_future;

/*
 * Make a future that takes n permits.
 * Owns:     borrows the rate until the future is ready or cancelled.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_rate_acquire_future_init(blitz_rate_future *f, blitz_rate *r, uint64_t n);

BLITZ_END_DECLS

#endif
