/*
 * blitz/barrier.h - a number of tasks meet, and go on together.
 *
 *     static blitz_barrier turn = BLITZ_BARRIER_INIT(4);
 *
 *     int rc = blitz_barrier_wait(&turn, BLITZ_FOREVER);
 *     if (rc == BLITZ_BARRIER_LEADER)
 *         ...                                      // one of the four, for work to be done once
 *
 * It can be used again at once: later callers belong to the next round. Tasks of any runtime, stackless tasks and plain
 * threads may meet. The memory is yours, and must stay until every call on it has returned.
 */
#ifndef BLITZ_BARRIER_H
#define BLITZ_BARRIER_H

#include <stdint.h>

#include "blitz/api.h"
#include "blitz/sync_future.h"
#include "blitz/time.h"

BLITZ_BEGIN_DECLS

typedef struct blitz_barrier {
    uint64_t inside[6];
} blitz_barrier;

/* The result of the last caller to arrive. */
#define BLITZ_BARRIER_LEADER 1

/* A barrier for n callers. With 0 and 1 no caller waits. */
#define BLITZ_BARRIER_INIT(n)  \
    {                          \
        {                      \
            (n), 0, 0, 0, 0, 0 \
        }                      \
    }

/*
 * Make a barrier for `parties` callers.
 * Owns:     the memory stays the caller's.
 * Suspends: never. Call from any thread, before its first use.
 */
BLITZ_API void blitz_barrier_init(blitz_barrier *b, uint32_t parties);

/*
 * Arrive, and wait for the others.
 * Owns:     borrows the barrier until it returns.
 * Suspends: until as many callers have arrived as it is made for, `until`, or a cancel. Call from a task or any
 *           thread; a plain thread sleeps.
 * Returns:  BLITZ_BARRIER_LEADER to the last caller to arrive, 0 to the others; -ETIMEDOUT, -ECANCELED: the
 *           caller has not arrived, and the others go on waiting for one more.
 */
BLITZ_API BLITZ_SUSPENDS int blitz_barrier_wait(blitz_barrier *b, blitz_deadline until);

/*
 * blitz_barrier_wait() as a future; f->result is its result. It arrives with its first poll. A cancel before all have
 * arrived takes that back; after that a cancel changes nothing.
 * Owns:     borrows the barrier until the future is ready or cancelled.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_barrier_wait_future_init(blitz_sync_future *f, blitz_barrier *b);

BLITZ_END_DECLS

#endif
