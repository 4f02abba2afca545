/*
 * blitz/latch.h - wait until a number of things have happened.
 *
 *     blitz_latch_count_down(&ready, 1);         // by each of three
 *     blitz_latch_wait(&ready, until);           // all three
 *
 * It counts down to 0 and stays there. For a number that goes up as well, see blitz/wait_group.h.
 * Tasks of any runtime, stackless tasks and plain threads may all use one. The memory is yours. A waiter may free it
 * after its wait, if no other caller is about to wait. The calls that have counted it down need not have returned.
 */
#ifndef BLITZ_LATCH_H
#define BLITZ_LATCH_H

#include <stdint.h>

#include "blitz/api.h"
#include "blitz/sync_future.h"
#include "blitz/time.h"

BLITZ_BEGIN_DECLS

typedef struct blitz_latch {
    uint64_t inside[5];
} blitz_latch;

/* A latch at n, up to UINT32_MAX. */
#define BLITZ_LATCH_INIT(n)                \
    {                                      \
        {                                  \
            (uint64_t)(n) << 1, 0, 0, 0, 0 \
        }                                  \
    }

/*
 * Make a latch that is at n.
 * Owns:     the memory stays the caller's.
 * Suspends: never. Call from any thread, before its first use.
 */
BLITZ_API void blitz_latch_init(blitz_latch *l, uint32_t n);

/*
 * Count down by n. At 0 all waiters continue.
 * Owns:     borrows it until it returns.
 * Suspends: never. Call from any thread.
 * Returns:  0, -EINVAL (n is more than the count; nothing happened).
 */
BLITZ_API int blitz_latch_count_down(blitz_latch *l, uint32_t n);

/*
 * Wait until it is at 0.
 * Owns:     borrows it until it returns.
 * Suspends: until then, `until`, or a cancel. Call from a task or any thread; a plain thread sleeps.
 * Returns:  0, -ETIMEDOUT, -ECANCELED. On 0 everything before the count-downs is visible.
 */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int blitz_latch_wait(blitz_latch *l, blitz_deadline until);

/*
 * Return the count. If it is 0, everything before the count-downs is visible.
 * Owns:     borrows it until it returns.
 * Suspends: never. Call from any thread.
 * Returns:  the number.
 */
BLITZ_API uint32_t blitz_latch_left(blitz_latch *l);

/*
 * blitz_latch_wait() as a future. A cancel changes nothing.
 * Owns:     borrows it until the future is ready or cancelled.
 * Suspends: never. Call from any thread. f->result is 0 when it is ready.
 */
BLITZ_API void blitz_latch_wait_future_init(blitz_sync_future *f, blitz_latch *l);

BLITZ_END_DECLS

#endif
