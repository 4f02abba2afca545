/*
 * blitz/sync_future.h - wait for a primitive without a stack.
 *
 * Fibers and plain threads call blitz_mutex_lock(), blitz_semaphore_acquire() and so on, and need none of this. A
 * stackless task (blitz/poll.h) has no stack to wait on. It keeps a blitz_sync_future in its state. One of the
 * ..._future_init() functions of a primitive turns it into that call. It waits in the same queue as all other waiters.
 *
 *     blitz_mutex_lock_future_init(&s->lock, &mutex);
 *     BLITZ_AWAIT(rc, &s->lock.future);
 *     ...                                                  // locked, if rc is 0
 *     blitz_mutex_unlock(&mutex);
 *
 * All of them are revocable (blitz/future.h): a cancel before the future is ready undoes the call, and a grant that it
 * had got goes to the next waiter. A future may hold its grant before it is polled again. So poll it when its waker is
 * woken, or cancel it. A future that is neither polled nor cancelled blocks the waiters behind it.
 *
 * The memory is yours, from init until the future is ready or cancelled; do not move or copy it in
 * between.
 */
#ifndef BLITZ_SYNC_FUTURE_H
#define BLITZ_SYNC_FUTURE_H

#include <stdint.h>

#include "blitz/api.h"
#include "blitz/future.h"

BLITZ_BEGIN_DECLS

typedef struct blitz_sync_future {
    blitz_future future; /* to be awaited */
    int result;          /* when ready: what the call would have returned */
    uint64_t inside[13];
} blitz_sync_future;

BLITZ_END_DECLS

#endif
