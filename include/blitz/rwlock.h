/*
 * blitz/rwlock.h - many readers, or one writer.
 *
 *     static blitz_rwlock lock = BLITZ_RWLOCK_INIT;
 *
 *     if (blitz_rwlock_read(&lock, BLITZ_FOREVER) == 0) {
 *         ...                                          // no writer is active
 *         blitz_rwlock_read_unlock(&lock);
 *     }
 *
 * Once a writer waits, later readers wait behind it, so that writers are not starved. When it is done, the readers up
 * to the next writer follow, so that readers are not starved either. As with a mutex, an unlock wakes the first waiter,
 * and the lock is free for any caller that runs now. A waiter that has been passed for 1 ms gets the lock by hand-off,
 * and so does a future. A task that holds it to read must not ask to read again: a writer may wait in between, for
 * ever.
 *
 * Readers share a word, so on many CPUs short reads are no faster than under a mutex. It pays where reads are long or
 * wait. Tasks of any runtime, stackless tasks and plain threads may all use one
 * lock. The memory is yours, and must stay until every call on it has returned.
 */
#ifndef BLITZ_RWLOCK_H
#define BLITZ_RWLOCK_H

#include <stdint.h>

#include "blitz/api.h"
#include "blitz/sync_future.h"
#include "blitz/time.h"

BLITZ_BEGIN_DECLS

typedef struct blitz_rwlock {
    uint64_t inside[4];
} blitz_rwlock;

#define BLITZ_RWLOCK_INIT \
    {                     \
        {                 \
            0, 0, 0, 0    \
        }                 \
    }

/*
 * Make a lock, unlocked.
 * Owns:     the memory stays the caller's.
 * Suspends: never. Call from any thread, before its first use.
 */
BLITZ_API void blitz_rwlock_init(blitz_rwlock *l);

/*
 * Lock to read, beside other readers.
 * Owns:     borrows the lock until it returns. It is the caller's until blitz_rwlock_read_unlock().
 * Suspends: until no writer has it and no writer waits in front, `until`, or a cancel. Call from a task or
 *           any thread; a plain thread sleeps.
 * Returns:  0, -ETIMEDOUT, -ECANCELED. On error it was not locked.
 */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int blitz_rwlock_read(blitz_rwlock *l,
                                                              blitz_deadline until);

/*
 * Lock to write, alone.
 * Owns:     borrows the lock until it returns. It is the caller's until blitz_rwlock_write_unlock().
 * Suspends: until the lock is free and no waiter is in front, `until`, or a cancel. Call from a task or any
 *           thread; a plain thread sleeps.
 * Returns:  0, -ETIMEDOUT, -ECANCELED. On error it was not locked.
 */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int blitz_rwlock_write(blitz_rwlock *l,
                                                               blitz_deadline until);

/*
 * Lock to read, or to write, if that is possible at once.
 * Owns:     borrows the lock until it returns. It is the caller's until the unlock.
 * Suspends: never. Call from any thread.
 * Returns:  0, -EAGAIN (another caller has it, or waits).
 */
BLITZ_API BLITZ_MUST_USE int blitz_rwlock_try_read(blitz_rwlock *l);
BLITZ_API BLITZ_MUST_USE int blitz_rwlock_try_write(blitz_rwlock *l);

/*
 * Unlock a lock that was taken to read, or to write.
 * Owns:     borrows the lock until it returns.
 * Suspends: never. Call from any thread, once for each lock.
 */
BLITZ_API void blitz_rwlock_read_unlock(blitz_rwlock *l);
BLITZ_API void blitz_rwlock_write_unlock(blitz_rwlock *l);

/*
 * Turn a write lock into a read lock, with no other writer in between. Readers at the front of the queue get the lock,
 * too.
 * Owns:     borrows the lock until it returns. Unlock it by blitz_rwlock_read_unlock().
 * Suspends: never. Call from any thread that has it to write.
 */
BLITZ_API void blitz_rwlock_downgrade(blitz_rwlock *l);

/*
 * blitz_rwlock_read() and blitz_rwlock_write() as futures. A cancel leaves it unlocked.
 * Owns:     borrows the lock until the future is ready or cancelled.
 * Suspends: never. Call from any thread. f->result is 0 when it is ready.
 */
BLITZ_API void blitz_rwlock_read_future_init(blitz_sync_future *f, blitz_rwlock *l);
BLITZ_API void blitz_rwlock_write_future_init(blitz_sync_future *f, blitz_rwlock *l);

BLITZ_END_DECLS

#endif
