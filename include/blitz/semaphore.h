/*
 * blitz/semaphore.h - a number of permits.
 *
 *     static blitz_semaphore slots = BLITZ_SEMAPHORE_INIT(4);
 *
 *     int err = blitz_semaphore_acquire(&slots, 1, BLITZ_FOREVER);
 *     if (err == 0) {
 *         ...                                      // at most four are here
 *         blitz_semaphore_release(&slots, 1);
 *     }
 *
 * First come, first served: who waits for many permits is not passed by those who want few, and a
 * released permit is handed to the first in line; nobody takes it on the way. That holds for plain
 * threads as well: a permit handed to a thread that sleeps stays unused for the tens of microseconds
 * that rousing it takes. Where that matters, as with a single permit used as a lock, take a
 * blitz_mutex, whose line may be passed.
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
 * Suspends: never. Call from any thread, before anybody uses it.
 */
BLITZ_API void blitz_semaphore_init(blitz_semaphore *s, uint32_t permits);

/*
 * Take n permits, all at once. 0 permits are had when everybody before has theirs.
 * Owns:     borrows the semaphore until it returns. The permits are the caller's.
 * Suspends: until there are n permits and nobody came before, `until`, a cancel or a close. Call from
 *           a task or any thread; a plain thread sleeps.
 * Returns:  0, -ETIMEDOUT, -ECANCELED, -EPIPE (closed). On error no permit was taken.
 */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int blitz_semaphore_acquire(blitz_semaphore *s, uint32_t n,
                                                                    blitz_deadline until);

/*
 * Take n permits if they are to be had at once.
 * Owns:     borrows the semaphore until it returns. The permits are the caller's.
 * Suspends: never. Call from any thread.
 * Returns:  0, -EAGAIN (too few, or somebody waits), -EPIPE (closed).
 */
BLITZ_API BLITZ_MUST_USE int blitz_semaphore_try_acquire(blitz_semaphore *s, uint32_t n);

/*
 * Give n permits, whether they were taken before or not. Also when it is closed.
 * Owns:     borrows the semaphore until it returns.
 * Suspends: never. Call from any thread.
 * Returns:  0, -EOVERFLOW (more than BLITZ_PERMITS_MAX would be there). On error nothing happened.
 */
BLITZ_API int blitz_semaphore_release(blitz_semaphore *s, uint32_t n);

/*
 * Turn away whoever waits, and all who come. What was taken stays taken. Closing twice is harmless.
 * Owns:     borrows the semaphore until it returns.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_semaphore_close(blitz_semaphore *s);

/*
 * How many permits are there now. Old news at once.
 * Owns:     borrows the semaphore until it returns.
 * Suspends: never. Call from any thread.
 * Returns:  the number.
 */
BLITZ_API uint32_t blitz_semaphore_permits(const blitz_semaphore *s);

/*
 * blitz_semaphore_acquire() as a future. A cancel takes no permit.
 * Owns:     borrows the semaphore until the future was ready or cancelled.
 * Suspends: never. Call from any thread. f->result is 0 or -EPIPE when it is ready.
 */
BLITZ_API void blitz_semaphore_acquire_future_init(blitz_sync_future *f, blitz_semaphore *s,
                                                   uint32_t n);

BLITZ_END_DECLS

#endif
