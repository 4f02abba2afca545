/*
 * blitz/notify.h - a notification to check again.
 *
 *     blitz_notify_wait(&changed, BLITZ_FOREVER);     // one side, in a loop that checks
 *     blitz_notify_one(&changed);                     // the other side, when it has changed something
 *
 * A notification without a waiter is kept, one at most, for the next waiter. So a caller that checks first and then
 * waits misses nothing. blitz_notify_all() wakes the current waiters and keeps nothing.
 * nothing.
 *
 * Tasks of any runtime, stackless tasks and plain threads may all use one. First come, first served.
 * The memory is yours, and must stay until every call on it has returned.
 */
#ifndef BLITZ_NOTIFY_H
#define BLITZ_NOTIFY_H

#include <stdint.h>

#include "blitz/api.h"
#include "blitz/sync_future.h"
#include "blitz/time.h"

BLITZ_BEGIN_DECLS

typedef struct blitz_notify {
    uint64_t inside[5];
} blitz_notify;

#define BLITZ_NOTIFY_INIT \
    {                     \
        {                 \
            0, 0, 0, 0, 0 \
        }                 \
    }

/*
 * Make a notify without a kept notification.
 * Owns:     the memory stays the caller's.
 * Suspends: never. Call from any thread, before its first use.
 */
BLITZ_API void blitz_notify_init(blitz_notify *n);

/*
 * Wait for a notification, or take the one that is kept.
 * Owns:     borrows it until it returns.
 * Suspends: until a notification, `until`, or a cancel. Call from a task or any thread; a plain thread
 *           sleeps.
 * Returns:  0, -ETIMEDOUT, -ECANCELED. On error no notification was used up.
 */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int blitz_notify_wait(blitz_notify *n,
                                                              blitz_deadline until);

/*
 * Take the notification that is kept.
 * Owns:     borrows it until it returns.
 * Suspends: never. Call from any thread.
 * Returns:  0, -EAGAIN (there is none).
 */
BLITZ_API int blitz_notify_try_wait(blitz_notify *n);

/*
 * Wake one: the first waiter, or the next caller that waits.
 * Owns:     borrows it until it returns.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_notify_one(blitz_notify *n);

/*
 * Wake all current waiters.
 * Owns:     borrows it until it returns.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_notify_all(blitz_notify *n);

/*
 * blitz_notify_wait() as a future, which waits from its first poll on. A cancel consumes no notification: one that it
 * had got by blitz_notify_one() goes to the next waiter, or is kept.
 * Owns:     borrows it until the future is ready or cancelled.
 * Suspends: never. Call from any thread. f->result is 0 when it is ready.
 */
BLITZ_API void blitz_notify_wait_future_init(blitz_sync_future *f, blitz_notify *n);

BLITZ_END_DECLS

#endif
