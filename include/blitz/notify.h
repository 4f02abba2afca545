/*
 * blitz/notify.h - "something has changed, look again".
 *
 *     blitz_notify_wait(&changed, BLITZ_FOREVER);     // one side, in a loop that looks
 *     blitz_notify_one(&changed);                     // the other side, when it has changed something
 *
 * A notification that nobody waits for is kept, one at most, for the next who waits: so looking
 * first and waiting then misses nothing. blitz_notify_all() wakes those who wait now and keeps
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
 * Make one, with nothing kept.
 * Owns:     the memory stays the caller's.
 * Suspends: never. Call from any thread, before anybody uses it.
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
 * Wake one: the first who waits, or the next who will.
 * Owns:     borrows it until it returns.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_notify_one(blitz_notify *n);

/*
 * Wake all who wait now.
 * Owns:     borrows it until it returns.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_notify_all(blitz_notify *n);

/*
 * blitz_notify_wait() as a future, which waits from its first poll on. A cancel uses no notification
 * up: one it had got by blitz_notify_one() goes to the next, or is kept.
 * Owns:     borrows it until the future was ready or cancelled.
 * Suspends: never. Call from any thread. f->result is 0 when it is ready.
 */
BLITZ_API void blitz_notify_wait_future_init(blitz_sync_future *f, blitz_notify *n);

BLITZ_END_DECLS

#endif
