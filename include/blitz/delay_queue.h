/*
 * blitz/delay_queue.h - values that can be received from a certain time on.
 *
 * For jobs to run later, sessions that expire, retries. A value is inserted with the time from which it may be received.
 * Until it is received it can be moved to another time or removed. Receivers get values in the order of their times;
 * values of the same time in the order of their inserts.
 *
 *     blitz_delay_queue *q;                                blitz_delay_queue_recv(q, &id, BLITZ_FOREVER);
 *     blitz_delay_queue_new(sizeof(int), &q);
 *     blitz_delay_queue_insert(q, &id, blitz_after(BLITZ_S), &key);
 *     blitz_delay_queue_move(q, key, blitz_after(5 * BLITZ_S));
 *
 * A million entries need one timer. Insert, move and remove take O(log n). Values are copied.
 */
#ifndef BLITZ_DELAY_QUEUE_H
#define BLITZ_DELAY_QUEUE_H

#include <stddef.h>
#include <stdint.h>

#include "blitz/api.h"
#include "blitz/sync_future.h"
#include "blitz/time.h"
#include "blitz/timer.h"

BLITZ_BEGIN_DECLS

typedef struct blitz_delay_queue blitz_delay_queue;

/* Names an entry. A key of an entry that is gone names no other, until 2^31 entries have had its place. */
typedef uint64_t blitz_delay_key;

/*
 * Make a queue for values of one size, which may be 0.
 * Owns:     the caller holds the first reference; drop it with blitz_delay_queue_unref().
 * Suspends: never. Call from any thread.
 * Returns:  0, -EINVAL (value_size is too large), -ENOMEM. *out is written only on 0.
 */
BLITZ_API BLITZ_MUST_USE int blitz_delay_queue_new(size_t value_size, blitz_delay_queue **out);

/*
 * Add a reference, or release one; the last release frees the queue and the entries that are left. unref ignores NULL.
 * Owns:     ref: a reference more; unref: takes one.
 * Suspends: never. Call from any thread.
 * Returns:  ref: q.
 */
BLITZ_API blitz_delay_queue *blitz_delay_queue_ref(blitz_delay_queue *q);
BLITZ_API void blitz_delay_queue_unref(blitz_delay_queue *q);

/*
 * Insert a value that can be received from `when` on; a time that has passed: at once. BLITZ_FOREVER: not until it
 * is moved.
 * Owns:     copies *value. *key, if key is not NULL, names the entry.
 * Suspends: never. Call from any thread.
 * Returns:  0, -EPIPE (closed), -ENOMEM. On error nothing was inserted.
 */
BLITZ_API BLITZ_MUST_USE int blitz_delay_queue_insert(blitz_delay_queue *q, const void *value,
                                                      blitz_deadline when, blitz_delay_key *key);

/*
 * Change the time of an entry.
 * Owns:     borrows the queue until it returns.
 * Suspends: never. Call from any thread.
 * Returns:  0, -ENOENT (received or removed already).
 */
BLITZ_API int blitz_delay_queue_move(blitz_delay_queue *q, blitz_delay_key key,
                                     blitz_deadline when);

/*
 * Remove an entry.
 * Owns:     *value, if not NULL, is the caller's, and written only on 0.
 * Suspends: never. Call from any thread.
 * Returns:  0, -ENOENT (received or removed already).
 */
BLITZ_API int blitz_delay_queue_remove(blitz_delay_queue *q, blitz_delay_key key, void *value);

/*
 * Close the queue: nothing can be inserted any more. Receivers still get the entries that are left, each at its time.
 * Owns:     borrows the queue until it returns.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_delay_queue_close(blitz_delay_queue *q);

/*
 * Return the number of entries at this moment, due or not.
 * Owns:     borrows the queue until it returns.
 * Suspends: never. Call from any thread.
 * Returns:  the number.
 */
BLITZ_API size_t blitz_delay_queue_length(blitz_delay_queue *q);

/*
 * Receive the first value that is due.
 * Owns:     *value is the caller's, and written only on 0.
 * Suspends: until one is due and no receiver is in front, `until`, a cancel, or a close of an empty queue. Call from
 *           anywhere; a plain thread sleeps.
 * Returns:  0, -EPIPE (closed and empty), -ETIMEDOUT, -ECANCELED. On error nothing was received.
 */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int
blitz_delay_queue_recv(blitz_delay_queue *q, void *value, blitz_deadline until);

/*
 * Receive the first value if it is due.
 * Owns:     *value is the caller's, and written only on 0.
 * Suspends: never. Call from any thread.
 * Returns:  0, -EAGAIN (none is due), -EPIPE (closed and empty).
 */
BLITZ_API BLITZ_MUST_USE int blitz_delay_queue_try_recv(blitz_delay_queue *q, void *value);

/* The receive as a future. Revocable: nothing was received if it is cancelled. */
typedef struct blitz_delay_queue_future {
    blitz_future future; /* to be awaited */
    int result;          /* when ready: 0, -EPIPE */
    int state;           /* not yours, as are the next ones */
    blitz_delay_queue *of;
    void *value;
    blitz_sync_future turn;
} blitz_delay_queue_future;

/*
 * Make a future that receives into *value.
 * Owns:     borrows the queue and *value until it is ready or cancelled.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_delay_queue_recv_future_init(blitz_delay_queue_future *f, blitz_delay_queue *q,
                                                  void *value);

BLITZ_END_DECLS

#endif
