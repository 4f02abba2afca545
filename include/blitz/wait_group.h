/*
 * blitz/wait_group.h - wait for all of a changing number of things to be done.
 *
 *     blitz_wait_group_add(&group, 1);           // before each is started
 *     ...
 *     blitz_wait_group_done(&group);             // by each, at its end
 *     ...
 *     blitz_wait_group_wait(&group, until);      // none is left
 *
 * It may be used again when it has reached 0. If the results or errors of tasks matter, join them or spawn them into a
 * scope instead. Tasks of any runtime, stackless tasks and plain threads may all use one. The memory is yours. A waiter
 * may free it after its wait, if no other caller is about to wait or to add. The calls of done need not have returned.
 */
#ifndef BLITZ_WAIT_GROUP_H
#define BLITZ_WAIT_GROUP_H

#include <stdint.h>

#include "blitz/api.h"
#include "blitz/sync_future.h"
#include "blitz/time.h"

BLITZ_BEGIN_DECLS

typedef struct blitz_wait_group {
    uint64_t inside[5];
} blitz_wait_group;

#define BLITZ_WAIT_GROUP_INIT \
    {                         \
        {                     \
            0, 0, 0, 0, 0     \
        }                     \
    }

/*
 * Make a group with a count of 0.
 * Owns:     the memory stays the caller's.
 * Suspends: never. Call from any thread, before its first use.
 */
BLITZ_API void blitz_wait_group_init(blitz_wait_group *g);

/*
 * Add n to the count. Add before the work that calls done is started, and before the wait.
 * Owns:     borrows it until it returns.
 * Suspends: never. Call from any thread.
 * Returns:  0, -EOVERFLOW (more than UINT32_MAX; nothing happened).
 */
BLITZ_API int blitz_wait_group_add(blitz_wait_group *g, uint32_t n);

/*
 * Subtract one from the count. At 0 all waiters continue.
 * Owns:     borrows it until it returns.
 * Suspends: never. Call from any thread.
 * Returns:  0, -EINVAL (the count is 0; nothing happened).
 */
BLITZ_API int blitz_wait_group_done(blitz_wait_group *g);

/*
 * Wait until the count is 0.
 * Owns:     borrows it until it returns.
 * Suspends: until then, `until`, or a cancel. Call from a task or any thread; a plain thread sleeps.
 * Returns:  0, -ETIMEDOUT, -ECANCELED. On 0 everything before the last done is visible.
 */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int blitz_wait_group_wait(blitz_wait_group *g,
                                                                  blitz_deadline until);

/*
 * Return the count. If it is 0, everything before is visible.
 * Owns:     borrows it until it returns.
 * Suspends: never. Call from any thread.
 * Returns:  the number.
 */
BLITZ_API uint32_t blitz_wait_group_left(blitz_wait_group *g);

/*
 * blitz_wait_group_wait() as a future. A cancel changes nothing.
 * Owns:     borrows it until the future is ready or cancelled.
 * Suspends: never. Call from any thread. f->result is 0 when it is ready.
 */
BLITZ_API void blitz_wait_group_wait_future_init(blitz_sync_future *f, blitz_wait_group *g);

BLITZ_END_DECLS

#endif
