/*
 * blitz/semaphore.h - a number of permits.
 *
 *     static blitz_semaphore slots = BLITZ_SEMAPHORE_INIT(4);
 *
 *     int err = blitz_semaphore_acquire(&slots, 1, BLITZ_FOREVER);
 *     if (err == 0) {
 *         ...                                      // at most four callers are here
 *         blitz_semaphore_release(&slots, 1);
 *     }
 *
 * First come, first served: a caller that waits for many permits is not passed by callers that want few. A released
 * permit goes to the first waiter by hand-off; no other caller can take it. That holds for plain threads as well: a
 * permit for a sleeping thread stays unused for the tens of microseconds that rousing it takes. Where that matters, as
 * with a single permit used as a lock, use a blitz_mutex, whose waiters may be passed.
 *
 * Tasks of any runtime, stackless tasks and plain threads may all use one semaphore. The memory is
 * yours, and must stay until every call on it has returned.
 */
#ifndef BLITZ_SEMAPHORE_H
#define BLITZ_SEMAPHORE_H

#include <stdint.h>

#include "blitz/api.h"
#include "blitz/sync_future.h"
#include "blitz/time.h"

BLITZ_BEGIN_DECLS

typedef struct blitz_semaphore {
    uint64_t inside[4];
} blitz_semaphore;

/* The most permits there can be. */
#define BLITZ_PERMITS_MAX UINT32_MAX

/* A semaphore with n permits, up to BLITZ_PERMITS_MAX, to begin with. */
#define BLITZ_SEMAPHORE_INIT(n)         \
    {                                   \
        {                               \
            (uint64_t)(n) << 2, 0, 0, 0 \
        }                               \
    }

/*
 * Make a semaphore with `permits`.
 * Owns:     the memory stays the caller's.
 * Suspends: never. Call from any thread, before its first use.
 */
BLITZ_API void blitz_semaphore_init(blitz_semaphore *s, uint32_t permits);

/*
 * Take n permits, all at once. With n = 0, wait until all earlier waiters have their permits.
 * Owns:     borrows the semaphore until it returns. The permits are the caller's.
 * Suspends: until there are n permits and no waiter is in front, `until`, a cancel or a close. Call from
 *           a task or any thread; a plain thread sleeps.
 * Returns:  0, -ETIMEDOUT, -ECANCELED, -EPIPE (closed). On error no permit was taken.
 */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int blitz_semaphore_acquire(blitz_semaphore *s, uint32_t n,
                                                                    blitz_deadline until);

/*
 * Take n permits if that is possible at once.
 * Owns:     borrows the semaphore until it returns. The permits are the caller's.
 * Suspends: never. Call from any thread.
 * Returns:  0, -EAGAIN (too few, or another caller waits), -EPIPE (closed).
 */
BLITZ_API BLITZ_MUST_USE int blitz_semaphore_try_acquire(blitz_semaphore *s, uint32_t n);

/*
 * Add n permits, whether they were taken before or not. Also works after a close.
 * Owns:     borrows the semaphore until it returns.
 * Suspends: never. Call from any thread.
 * Returns:  0, -EOVERFLOW (there would be more than BLITZ_PERMITS_MAX). On error nothing happened.
 */
BLITZ_API int blitz_semaphore_release(blitz_semaphore *s, uint32_t n);

/*
 * Close the semaphore: current and later waiters get -EPIPE. Permits that were taken stay taken. Closing twice is
 * harmless.
 * Owns:     borrows the semaphore until it returns.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_semaphore_close(blitz_semaphore *s);

/*
 * Return the number of free permits at this moment; it may be out of date at once.
 * Owns:     borrows the semaphore until it returns.
 * Suspends: never. Call from any thread.
 * Returns:  the number.
 */
BLITZ_API uint32_t blitz_semaphore_permits(const blitz_semaphore *s);

/*
 * blitz_semaphore_acquire() as a future. A cancel takes no permit.
 * Owns:     borrows the semaphore until the future is ready or cancelled.
 * Suspends: never. Call from any thread. f->result is 0 or -EPIPE when it is ready.
 */
BLITZ_API void blitz_semaphore_acquire_future_init(blitz_sync_future *f, blitz_semaphore *s,
                                                   uint32_t n);

BLITZ_END_DECLS

#endif
