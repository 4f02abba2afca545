/*
 * blitz/sync_future.h - waiting for a primitive without a stack.
 *
 * Fibers and plain threads call blitz_mutex_lock(), blitz_semaphore_acquire() and so on, and need
 * none of this. A stackless task (blitz/poll.h) has no stack for the call to stand on: it keeps a
 * blitz_sync_future in its state, which one of the ..._future_init() functions of a primitive makes
 * into that call. It stands in the same line as everybody else.
 *
 *     blitz_mutex_lock_future_init(&s->lock, &mutex);
 *     BLITZ_AWAIT(rc, &s->lock.future);
 *     ...                                                  // locked, if rc is 0
 *     blitz_mutex_unlock(&mutex);
 *
 * All of them are revocable (blitz/future.h): a cancel before it was ready undoes the call, and what
 * it had been given meanwhile goes to the next in line. A future may have been given what it asks for
 * before it is polled again: so poll it when it says so, or cancel it. Who does neither holds up
 * those behind.
 *
 * The memory is yours, from init until the future was ready or cancelled; do not move or copy it in
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
