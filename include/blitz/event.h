/*
 * blitz/event.h - a flag to wait for.
 *
 *     blitz_event_wait(&ready, until);           // any number of waiters
 *     blitz_event_set(&ready);                   // all waiters continue, now and later
 *
 * It stays set until it is reset. Tasks of any runtime, stackless tasks and plain threads may all use one. The memory
 * is yours. A waiter may free it after its wait, if no other caller is about to wait, set or reset. The call that has
 * set it need not have returned.
 */
#ifndef BLITZ_EVENT_H
#define BLITZ_EVENT_H

#include <stdbool.h>
#include <stdint.h>

#include "blitz/api.h"
#include "blitz/sync_future.h"
#include "blitz/time.h"

BLITZ_BEGIN_DECLS

typedef struct blitz_event {
    uint64_t inside[5];
} blitz_event;

/* Not set. */
#define BLITZ_EVENT_INIT  \
    {                     \
        {                 \
            2, 0, 0, 0, 0 \
        }                 \
    }

/*
 * Make an event that is not set.
 * Owns:     the memory stays the caller's.
 * Suspends: never. Call from any thread, before its first use.
 */
BLITZ_API void blitz_event_init(blitz_event *e);

/*
 * Wait until it is set.
 * Owns:     borrows it until it returns.
 * Suspends: until it is set, `until`, or a cancel. Call from a task or any thread; a plain thread
 *           sleeps.
 * Returns:  0, -ETIMEDOUT, -ECANCELED. On 0 everything before the set is visible. A caller that waited when it was
 *           set continues, also if it is reset at once.
 */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int blitz_event_wait(blitz_event *e, blitz_deadline until);

/*
 * Set it and wake all waiters; or reset it, so that later callers have to wait again. Doing either twice is harmless.
 * Owns:     borrows it until it returns.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_event_set(blitz_event *e);
BLITZ_API void blitz_event_reset(blitz_event *e);

/*
 * True if it is set. Then everything before the set is visible.
 * Owns:     borrows it until it returns.
 * Suspends: never. Call from any thread.
 * Returns:  true if it is.
 */
BLITZ_API bool blitz_event_is_set(blitz_event *e);

/*
 * blitz_event_wait() as a future. A cancel changes nothing.
 * Owns:     borrows it until the future is ready or cancelled.
 * Suspends: never. Call from any thread. f->result is 0 when it is ready.
 */
BLITZ_API void blitz_event_wait_future_init(blitz_sync_future *f, blitz_event *e);

BLITZ_END_DECLS

#endif
