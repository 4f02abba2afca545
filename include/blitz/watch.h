/*
 * blitz/watch.h - the latest value of something, and a way to wait for the next one.
 *
 * For settings, a state, or the name of a leader. Any caller may read the current value; a waiter is woken when it
 * changes. A receiver does not see a value that was replaced before it read: only the latest counts. Values are copied.
 *
 * A receiver keeps the number of the last version it has seen in a variable of its own: 0 for none yet.
 *
 *     uint64_t seen = 0;
 *     while (blitz_watch_recv(w, &settings, &seen, BLITZ_FOREVER) == 0)
 *         apply(&settings);                   // at once with the current value, then with every change
 */
#ifndef BLITZ_WATCH_H
#define BLITZ_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "blitz/api.h"
#include "blitz/closed_future.h"
#include "blitz/future.h"
#include "blitz/time.h"

BLITZ_BEGIN_DECLS

typedef struct blitz_watch blitz_watch;

/*
 * Make a watch with its first value, which is version 1.
 * Owns:     the caller holds the first reference; drop it with blitz_watch_unref(). Copies *value.
 * Suspends: never. Call from any thread.
 * Returns:  0, -EINVAL (value_size is 0 or too large), -ENOMEM. *out is written only on 0.
 */
BLITZ_API BLITZ_MUST_USE int blitz_watch_new(size_t value_size, const void *value,
                                             blitz_watch **out);

/*
 * Add a reference, or release one; the last release frees it. unref ignores NULL.
 * Owns:     ref: a reference more; unref: takes one.
 * Suspends: never. Call from any thread.
 * Returns:  ref: w.
 */
BLITZ_API blitz_watch *blitz_watch_ref(blitz_watch *w);
BLITZ_API void blitz_watch_unref(blitz_watch *w);

/*
 * Replace the value, and wake all waiters.
 * Owns:     copies *value.
 * Suspends: never. Call from any thread.
 * Returns:  0, -EPIPE (closed: the value is unchanged).
 */
BLITZ_API int blitz_watch_send(blitz_watch *w, const void *value);

/*
 * Replace the value under a condition: if its bytes differ from *value; or if its version is still `version`. The second
 * is for a value that depends on the old one: read, compute, send, and begin again if another sender was faster.
 *
 *     do
 *         version = blitz_watch_get(w, &state);
 *     while (advance(&state) && blitz_watch_send_if_version(w, &state, version) == -EAGAIN);
 *
 * Owns:     copies *value.
 * Suspends: never. Call from any thread.
 * Returns:  0; if_changed: -EALREADY (the bytes are the same: no waiter is woken); if_version: -EAGAIN (there is another
 *           version); -EPIPE (closed). On error the value is unchanged.
 */
BLITZ_API int blitz_watch_send_if_changed(blitz_watch *w, const void *value);
BLITZ_API BLITZ_MUST_USE int blitz_watch_send_if_version(blitz_watch *w, const void *value,
                                                         uint64_t version);

/*
 * Close it: there will be no other value.
 * Owns:     borrows w.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_watch_close(blitz_watch *w);

/*
 * Count a receiver, so that senders can tell whether any is left; or count one less. A receiver that is not counted
 * receives as well.
 * Owns:     add: one more receiver, which holds a reference; drop: one less, and its reference.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_watch_receiver_add(blitz_watch *w);
BLITZ_API void blitz_watch_receiver_drop(blitz_watch *w);

/*
 * Return the number of counted receivers. It may be out of date at once.
 * Owns:     borrows w.
 * Suspends: never. Call from any thread.
 * Returns:  the number.
 */
BLITZ_API size_t blitz_watch_receivers(blitz_watch *w);

/*
 * Wait until no counted receiver is left, or the watch is closed. For a sender that wants to stop when it is not read.
 * Later a receiver may be counted again.
 * Owns:     borrows w until it returns.
 * Suspends: until then, the deadline or a cancel. Call from anywhere.
 * Returns:  0, -ETIMEDOUT, -ECANCELED. It is 0 at once if no receiver was counted yet.
 */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int blitz_watch_wait_closed(blitz_watch *w,
                                                                    blitz_deadline until);

/*
 * Make a future of blitz_watch_wait_closed(). blitz/closed_future.h has an example.
 * Owns:     borrows w until the future is ready or cancelled.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_watch_wait_closed_future_init(blitz_closed_future *f, blitz_watch *w);

/*
 * Read the current value.
 * Owns:     *value is the caller's.
 * Suspends: never. Call from any thread.
 * Returns:  its version.
 */
BLITZ_API uint64_t blitz_watch_get(blitz_watch *w, void *value);

/*
 * Wait for a version other than *seen.
 * Owns:     *value and *seen are the caller's, and written only on 0.
 * Suspends: until there is one, the deadline, a cancel or a close. Call from anywhere.
 * Returns:  0, -EPIPE (closed, and the last version was seen), -ETIMEDOUT, -ECANCELED.
 */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int blitz_watch_recv(blitz_watch *w, void *value,
                                                             uint64_t *seen, blitz_deadline until);

/* blitz_watch_recv() as a future. Revocable. */
typedef struct blitz_watch_future {
    blitz_future future; /* to be awaited */
    int result;          /* when ready: 0, -EPIPE */
    void *inside[11];
} blitz_watch_future;

/*
 * Make a future that receives into *value.
 * Owns:     borrows w, *value and *seen until it is ready or cancelled.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_watch_recv_future_init(blitz_watch_future *f, blitz_watch *w, void *value,
                                            uint64_t *seen);

/*
 * Wait for a version other than *seen whose value is wanted: is_wanted(value, arg) returns true. It is called without a
 * lock, on the caller's copy, for each version that this receiver sees.
 * Owns:     *value and *seen are the caller's: the last version that was looked at, also on error.
 * Suspends: until there is one, the deadline, a cancel or a close. Call from anywhere.
 * Returns:  0, -EPIPE (closed, and the last version was not wanted), -ETIMEDOUT, -ECANCELED.
 */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int
blitz_watch_wait_for(blitz_watch *w, bool (*is_wanted)(const void *value, void *arg), void *arg,
                     void *value, uint64_t *seen, blitz_deadline until);

/* blitz_watch_wait_for() as a future. Revocable. */
typedef struct blitz_watch_wait_for_future {
    blitz_future future;                             /* to be awaited */
    int result;                                      /* when ready: 0, -EPIPE */
    bool (*is_wanted)(const void *value, void *arg); /* not yours, as are the next ones */
    void *arg;
    blitz_watch *of;
    void *value;
    uint64_t *seen;
    blitz_watch_future recv;
} blitz_watch_wait_for_future;

/*
 * Make a future that waits for a wanted value.
 * Owns:     borrows w, *value, *seen and arg until it is ready or cancelled.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_watch_wait_for_future_init(blitz_watch_wait_for_future *f, blitz_watch *w,
                                                bool (*is_wanted)(const void *value, void *arg),
                                                void *arg, void *value, uint64_t *seen);

BLITZ_END_DECLS

#endif
