/*
 * blitz/oneshot.h - one value, from one sender to one receiver, once.
 *
 * For a reply or a result. It has two ends, made together and given to two parties. send or sender_drop releases the
 * sender's end; receiver_drop releases the receiver's end, also after a receive. The memory is freed with the second
 * end.
 *
 *     blitz_oneshot *o;
 *     blitz_oneshot_new(sizeof(int), NULL, &o);
 *     ... in one task                             ... in another
 *     blitz_oneshot_send(o, &(int){42});          int got;
 *                                                 if (blitz_oneshot_recv(o, &got, BLITZ_FOREVER) == 0)
 *                                                     use(got);
 *                                                 blitz_oneshot_receiver_drop(o);
 */
#ifndef BLITZ_ONESHOT_H
#define BLITZ_ONESHOT_H

#include <stdbool.h>
#include <stddef.h>

#include "blitz/api.h"
#include "blitz/closed_future.h"
#include "blitz/future.h"
#include "blitz/time.h"

BLITZ_BEGIN_DECLS

typedef struct blitz_oneshot blitz_oneshot;

/* The options of a oneshot. A zeroed struct means none. */
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
 * Owns:     takes the sender's end, also on error; copies *value on 0.
 * Suspends: never. Call from any thread.
 * Returns:  0, -EPIPE (the receiver has gone: nothing was sent).
 */
BLITZ_API int blitz_oneshot_send(blitz_oneshot *o, const void *value);

/*
 * Release the sender's end without sending: the receiver gets -EPIPE.
 * Owns:     takes the sender's end.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_oneshot_sender_drop(blitz_oneshot *o);

/*
 * True if the receiver's end is released, so that a send would fail. For the sender.
 * Owns:     borrows the sender's end.
 * Suspends: never. Call from any thread.
 * Returns:  true if it is.
 */
BLITZ_API bool blitz_oneshot_is_closed(blitz_oneshot *o);

/*
 * Wait until the receiver's end is released. For a sender whose value is dear to compute.
 * Owns:     borrows the sender's end until it returns: no send meanwhile.
 * Suspends: until then, the deadline or a cancel. Call from anywhere.
 * Returns:  0 (a send would fail; the sender's end is still yours), -ETIMEDOUT, -ECANCELED.
 */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int blitz_oneshot_wait_closed(blitz_oneshot *o,
                                                                      blitz_deadline until);

/*
 * Make a future of blitz_oneshot_wait_closed(). blitz/closed_future.h has an example.
 * Owns:     borrows the sender's end until the future is ready or cancelled.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_oneshot_wait_closed_future_init(blitz_closed_future *f, blitz_oneshot *o);

/*
 * Receive the value.
 * Owns:     borrows the receiver's end. *value is the caller's, and written only on 0.
 * Suspends: until the value is sent, the sender's end is released, the deadline or a cancel. Call from anywhere.
 * Returns:  0, -EPIPE (the sender went without sending, or the value was received before), -ETIMEDOUT, -ECANCELED
 *           (nothing happened).
 */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int blitz_oneshot_recv(blitz_oneshot *o, void *value,
                                                               blitz_deadline until);

/*
 * Receive the value if it is there.
 * Owns:     borrows the receiver's end. *value is the caller's, and written only on 0.
 * Suspends: never. Call from any thread.
 * Returns:  0, -EAGAIN (not sent yet), -EPIPE (as blitz_oneshot_recv()).
 */
BLITZ_API BLITZ_MUST_USE int blitz_oneshot_try_recv(blitz_oneshot *o, void *value);

/*
 * Release the receiver's end, before or after a receive. A value that was sent and not received goes to the drop
 * function of the options.
 * Owns:     takes the receiver's end.
 * Suspends: never, unless the drop hook does. Call from any thread.
 */
BLITZ_API void blitz_oneshot_receiver_drop(blitz_oneshot *o);

/* blitz_oneshot_recv() as a future. Revocable: after a cancel the value can still be received. */
typedef struct blitz_oneshot_future {
    blitz_future future; /* to be awaited */
    int result;          /* when ready: 0, -EPIPE */
    void *inside[9];
} blitz_oneshot_future;

/*
 * Make a future that receives into *value.
 * Owns:     borrows the receiver's end and *value until it is ready or cancelled.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_oneshot_recv_future_init(blitz_oneshot_future *f, blitz_oneshot *o,
                                              void *value);

BLITZ_END_DECLS

#endif
