/*
 * blitz/broadcast.h - every receiver gets every value.
 *
 * A broadcast keeps the last `capacity` values. A send never waits: the new value replaces the oldest. Each receiver
 * has its own position. It gets all values that were sent after it subscribed, in order. If it was too slow, it gets
 * the number of values it has missed. Values are copied, once for each receiver: send plain data that can be copied as
 * bytes.
 *
 *     blitz_broadcast *b;                             blitz_broadcast_rx rx;
 *     blitz_broadcast_new(sizeof(int), 64, &b);       blitz_broadcast_subscribe(b, &rx);
 *     blitz_broadcast_send(b, &(int){42});            blitz_broadcast_recv(&rx, &got, &missed, BLITZ_FOREVER);
 */
#ifndef BLITZ_BROADCAST_H
#define BLITZ_BROADCAST_H

#include <stddef.h>
#include <stdint.h>

#include "blitz/api.h"
#include "blitz/closed_future.h"
#include "blitz/future.h"
#include "blitz/time.h"

BLITZ_BEGIN_DECLS

typedef struct blitz_broadcast blitz_broadcast;

/* A receiver. The memory is yours; its fields are not. One task or thread may use it at a time. */
typedef struct blitz_broadcast_rx {
    blitz_broadcast *of;
    uint64_t next;
} blitz_broadcast_rx;

/*
 * Make one.
 * Owns:     the caller holds the first reference; drop it with blitz_broadcast_unref().
 * Suspends: never. Call from any thread.
 * Returns:  0, -EINVAL (a size or the capacity is 0, or too large), -ENOMEM. *out is written only on 0.
 */
BLITZ_API BLITZ_MUST_USE int blitz_broadcast_new(size_t value_size, size_t capacity,
                                                 blitz_broadcast **out);

/*
 * Add a reference, or release one; the last release frees it. unref ignores NULL.
 * Owns:     ref: a reference more; unref: takes one.
 * Suspends: never. Call from any thread.
 * Returns:  ref: b.
 */
BLITZ_API blitz_broadcast *blitz_broadcast_ref(blitz_broadcast *b);
BLITZ_API void blitz_broadcast_unref(blitz_broadcast *b);

/*
 * Send a value to all subscribed receivers. A slow receiver may miss values that it has not taken.
 * Owns:     copies *value.
 * Suspends: never. Call from any thread.
 * Returns:  0, -EPIPE (closed).
 */
BLITZ_API int blitz_broadcast_send(blitz_broadcast *b, const void *value);

/*
 * End sending. Receivers still get the values that they have not received yet.
 * Owns:     borrows b.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_broadcast_close(blitz_broadcast *b);

/*
 * Subscribe: receive all values that are sent from now on. Resubscribe: receive in *rx all that `other` would receive
 * now, once more. Or unsubscribe.
 * Owns:     rx holds a reference until blitz_broadcast_unsubscribe(). Do not copy an rx.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_broadcast_subscribe(blitz_broadcast *b, blitz_broadcast_rx *rx);
BLITZ_API void blitz_broadcast_resubscribe(const blitz_broadcast_rx *other, blitz_broadcast_rx *rx);
BLITZ_API void blitz_broadcast_unsubscribe(blitz_broadcast_rx *rx);

/*
 * Return how many receivers are subscribed; how many values a receiver can receive without waiting. Either may be
 * out of date at once.
 * Owns:     borrows b, or rx.
 * Suspends: never. Call from any thread.
 * Returns:  the number. Values that the receiver has missed do not count.
 */
BLITZ_API size_t blitz_broadcast_receivers(blitz_broadcast *b);
BLITZ_API size_t blitz_broadcast_length(const blitz_broadcast_rx *rx);

/*
 * Wait until no receiver is subscribed, or the broadcast is closed. For a sender that wants to stop when it is not heard.
 * Later a receiver may subscribe again.
 * Owns:     borrows b until it returns.
 * Suspends: until then, the deadline or a cancel. Call from anywhere.
 * Returns:  0, -ETIMEDOUT, -ECANCELED. It is 0 at once if no receiver has subscribed yet.
 */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int blitz_broadcast_wait_closed(blitz_broadcast *b,
                                                                        blitz_deadline until);

/*
 * Make a future of blitz_broadcast_wait_closed(). blitz/closed_future.h has an example.
 * Owns:     borrows b until the future is ready or cancelled.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_broadcast_wait_closed_future_init(blitz_closed_future *f, blitz_broadcast *b);

/*
 * Receive the next value.
 * Owns:     *value is the caller's, and written only on 0.
 * Suspends: until there is one, the deadline, a cancel, or a close when all values were received. Call from anywhere.
 * Returns:  0, -EPIPE, -ETIMEDOUT, -ECANCELED. *missed, if not NULL, is the number of earlier values that this receiver
 *           has missed; 0 on error.
 */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int
blitz_broadcast_recv(blitz_broadcast_rx *rx, void *value, uint64_t *missed, blitz_deadline until);

/*
 * Receive the next value if that is possible without waiting.
 * Owns:     *value is the caller's, and written only on 0.
 * Suspends: never. Call from any thread.
 * Returns:  0, -EAGAIN, -EPIPE.
 */
BLITZ_API BLITZ_MUST_USE int blitz_broadcast_try_recv(blitz_broadcast_rx *rx, void *value,
                                                      uint64_t *missed);

/* The receive as a future. Revocable: nothing was received if it is cancelled. */
typedef struct blitz_broadcast_future {
    blitz_future future; /* to be awaited */
    int result;          /* when ready: 0, -EPIPE */
    uint64_t missed;     /* when ready: see above */
    void *inside[11];
} blitz_broadcast_future;

/*
 * Make a future that receives into *value.
 * Owns:     borrows rx and *value until it is ready or cancelled.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_broadcast_recv_future_init(blitz_broadcast_future *f, blitz_broadcast_rx *rx,
                                                void *value);

BLITZ_END_DECLS

#endif
