/*
 * blitz/oneshot.h - one value, from one sender to one receiver, once.
 *
 * A reply, a result. It has two ends, made together and given to two parties. Each end is used up by
 * its last call: the sender's by send or drop_sender, the receiver's by a receive that did not end by
 * the deadline or a cancel, or by drop_receiver. The memory goes with the second of them.
 *
 *     blitz_oneshot *o;
 *     blitz_oneshot_new(sizeof(int), NULL, &o);
 *     ... in one task                             ... in another
 *     blitz_oneshot_send(o, &(int){42});          int got;
 *                                                 if (blitz_oneshot_recv(o, &got, BLITZ_FOREVER) == 0)
 */
#ifndef BLITZ_ONESHOT_H
#define BLITZ_ONESHOT_H

#include <stdbool.h>
#include <stddef.h>

#include "blitz/api.h"
#include "blitz/future.h"
#include "blitz/time.h"

BLITZ_BEGIN_DECLS

typedef struct blitz_oneshot blitz_oneshot;

/* Zeroed: nothing. */
typedef struct blitz_oneshot_opts {
    void (*drop)(void *value,
                 void *ctx); /* for a value that was sent and never received; NULL: none */
    void *ctx;
} blitz_oneshot_opts;

/*
 * Make one.
 * Owns:     the caller has both ends. Copies the options; NULL: none.
 * Suspends: never. Call from any thread.
 * Returns:  0, -EINVAL (value_size is 0 or too large), -ENOMEM. *out is written only on 0.
 */
BLITZ_API BLITZ_MUST_USE int blitz_oneshot_new(size_t value_size, const blitz_oneshot_opts *opts,
                                               blitz_oneshot **out);

/*
 * Send the value.
 * Owns:     takes the sender's end, whatever it returns; copies *value on 0.
 * Suspends: never. Call from any thread.
 * Returns:  0, -EPIPE (the receiver has gone: nothing was sent).
 */
BLITZ_API int blitz_oneshot_send(blitz_oneshot *o, const void *value);

/*
 * Go without sending: the receiver gets -EPIPE.
 * Owns:     takes the sender's end.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_oneshot_drop_sender(blitz_oneshot *o);

/*
 * For the sender: is there nobody to send to any more?
 * Owns:     borrows the sender's end.
 * Suspends: never. Call from any thread.
 * Returns:  whether it is.
 */
BLITZ_API bool blitz_oneshot_is_closed(blitz_oneshot *o);

/*
 * Receive the value.
 * Owns:     takes the receiver's end on 0 and -EPIPE. *value is the caller's, and written only on 0.
 * Suspends: until it was sent, the sender has gone, the deadline or a cancel. Call from anywhere.
 * Returns:  0, -EPIPE (the sender went without sending), -ETIMEDOUT, -ECANCELED (nothing happened, the
 *           end is still the caller's).
 */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int blitz_oneshot_recv(blitz_oneshot *o, void *value,
                                                               blitz_deadline until);

/*
 * Receive the value if it is there.
 * Owns:     takes the receiver's end on 0 and -EPIPE.
 * Suspends: never. Call from any thread.
 * Returns:  0, -EAGAIN, -EPIPE.
 */
BLITZ_API BLITZ_MUST_USE int blitz_oneshot_try_recv(blitz_oneshot *o, void *value);

/*
 * Go without receiving. A value that was sent is dropped, by the hook if there is one.
 * Owns:     takes the receiver's end.
 * Suspends: never, unless the drop hook does. Call from any thread.
 */
BLITZ_API void blitz_oneshot_drop_receiver(blitz_oneshot *o);

/* The receive as a future. Revocable: a cancel leaves the receiver's end with the caller. */
typedef struct blitz_oneshot_future {
    blitz_future future; /* to be awaited */
    int result;          /* when ready: 0, -EPIPE */
    void *inside[9];
} blitz_oneshot_future;

/*
 * A receive into *value.
 * Owns:     borrows the end and *value until it is ready, and takes the end then.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_oneshot_recv_future_init(blitz_oneshot_future *f, blitz_oneshot *o,
                                              void *value);

BLITZ_END_DECLS

#endif
