/*
 * blitz/mutex.h - mutual exclusion: one holder at a time.
 *
 *     static blitz_mutex mutex = BLITZ_MUTEX_INIT;
 *
 *     int err = blitz_mutex_lock(&mutex, BLITZ_FOREVER);
 *     if (err == 0) {
 *         ...                                      // alone; may wait, and continue on another thread
 *         blitz_mutex_unlock(&mutex);
 *     }
 *
 * Locking a free mutex takes one atomic instruction, and so does unlocking a mutex without waiters. A caller that finds
 * it locked retries for a moment and then enters the wait queue.
 *
 * Order: an unlock wakes the first waiter, but does not reserve the mutex for it. Any caller that runs at that moment
 * may lock it first, because a mutex that waits for its next owner to wake up is of no use. A plain thread takes tens
 * of microseconds to be roused; a hand-off to it each time would be a convoy. A waiter that was passed keeps its place.
 * After 1 ms in the queue it is not passed any more: the next unlock hands the mutex to it, be it a fiber, a stackless
 * task or a thread.
 *
 * The mutex belongs to the task that locked it (perhaps by a future), or to the plain threads. Debug builds abort when
 * a caller other than the owner unlocks it. Unlocking a mutex that is not locked aborts, with a message, in every
 * build. It is not recursive: locking it twice waits for ever. A dump shows that, and names the holder.
 *
 * A cancelled task that has to wait gets -ECANCELED. Clean-up that must have the mutex calls blitz_mutex_lock() between
 * blitz_shield() and blitz_unshield().
 *
 * Tasks of any runtime, stackless tasks and plain threads may all use one mutex. The memory is yours, and must stay
 * until every call on it has returned, also the unlocks of other callers.
 */
#ifndef BLITZ_MUTEX_H
#define BLITZ_MUTEX_H

#include <stdbool.h>
#include <stdint.h>

#include "blitz/api.h"
#include "blitz/sync_future.h"
#include "blitz/time.h"

BLITZ_BEGIN_DECLS

typedef struct blitz_mutex {
    uint64_t inside[5];
} blitz_mutex;

#define BLITZ_MUTEX_INIT  \
    {                     \
        {                 \
            0, 0, 0, 0, 0 \
        }                 \
    }

/*
 * Make a mutex, unlocked.
 * Owns:     the memory stays the caller's.
 * Suspends: never. Call from any thread, before its first use.
 */
BLITZ_API void blitz_mutex_init(blitz_mutex *m);

/*
 * Lock.
 * Owns:     borrows the mutex until it returns. It is the caller's until the unlock.
 * Suspends: until the caller has it, `until`, or a cancel. Call from a task or any thread; a plain
 *           thread sleeps.
 * Returns:  0, -ETIMEDOUT, -ECANCELED. On error it was not locked.
 */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int blitz_mutex_lock(blitz_mutex *m, blitz_deadline until);

/*
 * Lock if it is free.
 * Owns:     borrows the mutex until it returns. It is the caller's until the unlock.
 * Suspends: never. Call from any thread.
 * Returns:  0, -EAGAIN (it is locked).
 */
BLITZ_API BLITZ_MUST_USE int blitz_mutex_try_lock(blitz_mutex *m);

/*
 * Unlock.
 * Owns:     borrows the mutex until it returns.
 * Suspends: never. Call from the task that locked it, or from a plain thread if one did.
 */
BLITZ_API void blitz_mutex_unlock(blitz_mutex *m);

/*
 * True if the mutex is locked at this moment; the answer may be out of date at once.
 * Owns:     borrows the mutex until it returns.
 * Suspends: never. Call from any thread.
 * Returns:  true if it is.
 */
BLITZ_API bool blitz_mutex_is_locked(const blitz_mutex *m);

/*
 * Return the holder at this moment; the answer may be out of date at once.
 * Owns:     borrows the mutex until it returns.
 * Suspends: never. Call from any thread.
 * Returns:  the task's number (blitz_task_id()). 0: no holder, a plain thread, or a future that was handed the mutex
 *           and has not been polled since.
 */
BLITZ_API uint64_t blitz_mutex_holder(const blitz_mutex *m);

/*
 * blitz_mutex_lock() as a future. When it is ready (f->result is 0) the mutex belongs to the task that
 * polled it. A cancel before that leaves it unlocked.
 * Owns:     borrows the mutex until the future is ready or cancelled.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_mutex_lock_future_init(blitz_sync_future *f, blitz_mutex *m);

BLITZ_END_DECLS

#endif
