/*
 * blitz/condition.h - wait, with a mutex held, until the data that it guards changes.
 *
 *     if ((err = blitz_mutex_lock(&m, BLITZ_FOREVER)) != 0)
 *         return err;
 *     while (err == 0 && queue_is_empty())
 *         err = blitz_condition_wait(&c, &m, until);      // unlocks, waits, locks
 *     ...                                                  // locked, for any err
 *     blitz_mutex_unlock(&m);
 *
 * The loop is needed: between the signal and the return another caller may have had the mutex. There are no spurious
 * wake-ups. A signal without a waiter is lost; blitz/notify.h keeps one.
 *
 * Tasks of any runtime, stackless tasks and plain threads may all use one. First come, first served.
 * The memory is yours, and must stay until every call on it has returned.
 */
#ifndef BLITZ_CONDITION_H
#define BLITZ_CONDITION_H

#include <stdint.h>

#include "blitz/api.h"
#include "blitz/mutex.h"
#include "blitz/sync_future.h"
#include "blitz/time.h"

BLITZ_BEGIN_DECLS

typedef struct blitz_condition {
    uint64_t inside[5];
} blitz_condition;

#define BLITZ_CONDITION_INIT \
    {                        \
        {                    \
            0, 0, 0, 0, 0    \
        }                    \
    }

/*
 * Make a condition.
 * Owns:     the memory stays the caller's.
 * Suspends: never. Call from any thread, before its first use.
 */
BLITZ_API void blitz_condition_init(blitz_condition *c);

/*
 * Unlock the mutex, wait for a signal, and lock the mutex again. No signal that comes after the
 * unlock is missed.
 * Owns:     borrows both until it returns. The mutex is the caller's before and after.
 * Suspends: until a signal, `until`, or a cancel; and then, without a deadline and in spite of
 *           cancels, until the mutex is locked again. Call from a task or any thread; a plain thread
 *           sleeps.
 * Returns:  0, -ETIMEDOUT, -ECANCELED. In each case the mutex is locked; on error no signal was used.
 */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int blitz_condition_wait(blitz_condition *c, blitz_mutex *m,
                                                                 blitz_deadline until);

/*
 * Wake the first waiter, or all current waiters. The mutex may be held or not.
 * Owns:     borrows it until it returns.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_condition_signal(blitz_condition *c);
BLITZ_API void blitz_condition_broadcast(blitz_condition *c);

/*
 * blitz_condition_wait() as a future. Its first poll unlocks the mutex, which the caller must have locked. When it is
 * ready (f->result is 0), the mutex belongs to the task that polled it. A cancel before that leaves the mutex
 * *unlocked* (but locked if the future was never polled). A signal that the future had got goes to the next waiter.
 * Owns:     borrows both until the future is ready or cancelled.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_condition_wait_future_init(blitz_sync_future *f, blitz_condition *c,
                                                blitz_mutex *m);

BLITZ_END_DECLS

#endif
