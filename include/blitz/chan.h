/*
 * blitz/chan.h - pass values between tasks, in order.
 *
 * A channel carries values of one size from any number of senders to any number of receivers; each
 * value goes to one of them, the oldest first. How much it holds is its capacity:
 *
 *   n                 a send waits while n values are in it
 *   0                 a rendezvous: a send ends when a receiver has the value
 *   BLITZ_UNBOUNDED   a send never waits. The cost: nothing slows a sender down, so a receiver that is
 *                     slower than the senders turns into memory (8 bytes a value of 8, in blocks of
 *                     about 4 KiB, given back as they are emptied), and a send can fail with -ENOMEM
 *
 * Two ways to end it. blitz_chan_close() is the senders' end: further sends are turned away and
 * receivers drain what was sent. blitz_chan_shut() is the receivers': what is left is dropped at
 * once, too. Either may be called by anybody. Where the number of senders or receivers is what
 * decides, have them counted: blitz_chan_sender_add() and its kin.
 *
 * All of it may be called from fibers, stackless tasks, forked jobs and plain threads, also of two
 * runtimes. Whoever may wait takes a deadline: 0 means "do not wait", BLITZ_FOREVER "as long as it
 * takes". A call that need not wait does not look at the deadline, nor whether the task is cancelled.
 *
 *   a call that ended with -ETIMEDOUT, -ECANCELED or -EPIPE has done
 *     send, recv, reserve         nothing
 *     send_many                   as much as *sent says, in order
 *     recv_many                   nothing
 *
 *     blitz_chan *c;
 *     blitz_chan_new(sizeof(int), 16, NULL, &c);
 *     ...
 *     blitz_chan_send(c, &(int){42}, BLITZ_FOREVER);         int got;
 *     blitz_chan_close(c);                                   while (blitz_chan_recv(c, &got, BLITZ_FOREVER) == 0)
 *                                                                printf("%d\n", got);
 *
 * Who waits first is served first. A task or thread that waits gets its value (or its place) handed
 * over, and nobody can get in between; a future is told to look again, and somebody who does not wait
 * may be quicker than it.
 */
#ifndef BLITZ_CHAN_H
#define BLITZ_CHAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "blitz/api.h"
#include "blitz/future.h"
#include "blitz/hooks.h"
#include "blitz/time.h"

BLITZ_BEGIN_DECLS

typedef struct blitz_chan blitz_chan;

#define BLITZ_UNBOUNDED SIZE_MAX

/* What may be said about a channel. Zeroed: nothing. */
typedef struct blitz_chan_opts {
    /* Called for each value that nobody will receive: left at the end, shut out, or sent by a permit
     * after a shut. From whichever thread that happens on; it may use the channel. NULL: forgotten. */
    void (*drop)(void *value, void *ctx);
    void *ctx;
    const blitz_allocator *alloc; /* copied; NULL: the C library's */
} blitz_chan_opts;

/* ---- making and unmaking ---- */

/*
 * Make a channel.
 * Owns:     the caller holds the first reference; drop it with blitz_chan_unref(). Copies the options; NULL: none.
 * Suspends: never. Call from any thread.
 * Returns:  0, -EINVAL (value_size is 0, or the two are too large), -ENOMEM. *out is written only on 0.
 */
BLITZ_API BLITZ_MUST_USE int blitz_chan_new(size_t value_size, size_t capacity,
                                            const blitz_chan_opts *opts, blitz_chan **out);

/*
 * One more holder.
 * Owns:     the result is a reference of its own.
 * Suspends: never. Call from any thread.
 * Returns:  c.
 */
BLITZ_API blitz_chan *blitz_chan_ref(blitz_chan *c);

/*
 * One holder less. The last one drops what is still in it. NULL is ignored.
 * Owns:     takes the reference.
 * Suspends: never, unless the drop hook does. Call from any thread.
 */
BLITZ_API void blitz_chan_unref(blitz_chan *c);

/* ---- sending ---- */

/*
 * Send one value.
 * Owns:     copies *value before it returns.
 * Suspends: until there is room (a rendezvous: until it is received), the deadline, a cancel or a
 *           close. Call from anywhere.
 * Returns:  0, -EPIPE (closed), -ETIMEDOUT, -ECANCELED, -ENOMEM (unbounded). On error nothing was sent.
 */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int blitz_chan_send(blitz_chan *c, const void *value,
                                                            blitz_deadline until);

/*
 * Send one value if that takes no waiting.
 * Owns:     copies *value.
 * Suspends: never. Call from any thread.
 * Returns:  0, -EAGAIN (no room; a rendezvous: no task or thread waits for it), -EPIPE, -ENOMEM.
 */
BLITZ_API BLITZ_MUST_USE int blitz_chan_try_send(blitz_chan *c, const void *value);

/*
 * Send `count` values, which lie one behind the other. They arrive in order; others' may come between.
 * Owns:     copies them.
 * Suspends: until all are sent, the deadline, a cancel or a close. Call from anywhere.
 * Returns:  0, or as blitz_chan_send(). *sent, if not NULL, is how many were, in every case.
 */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int blitz_chan_send_many(blitz_chan *c, const void *values,
                                                                 size_t count, size_t *sent,
                                                                 blitz_deadline until);

/* The right to send one value. Yours; the field is not. */
typedef struct blitz_permit {
    blitz_chan *chan;
} blitz_permit;

/*
 * Get room for one value first, and the value later: a send by a permit cannot fail. For those who
 * must not take a job from elsewhere before they can pass it on. A channel that is closed is not at
 * its end before every permit is used or dropped.
 * Owns:     the permit holds a reference. End it with blitz_permit_send() or blitz_permit_drop().
 * Suspends: until there is room, the deadline, a cancel or a close. Call from anywhere.
 * Returns:  0, -EPIPE, -ETIMEDOUT, -ECANCELED, -ENOMEM (unbounded), -EOPNOTSUPP (a rendezvous has no
 *           room to give). On error nothing is reserved.
 */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int blitz_chan_reserve(blitz_chan *c, blitz_permit *permit,
                                                               blitz_deadline until);

/*
 * The same if it takes no waiting.
 * Owns:     as blitz_chan_reserve().
 * Suspends: never. Call from any thread.
 * Returns:  0, -EAGAIN, -EPIPE, -ENOMEM, -EOPNOTSUPP.
 */
BLITZ_API BLITZ_MUST_USE int blitz_chan_try_reserve(blitz_chan *c, blitz_permit *permit);

/*
 * Send a value by a permit. Cannot fail: after a close it is received all the same, after a shut it
 * is dropped.
 * Owns:     takes the permit; copies *value.
 * Suspends: never (after a shut: as the drop hook does). Call from any thread.
 */
BLITZ_API void blitz_permit_send(blitz_permit *permit, const void *value);

/*
 * Give a permit back unused. An empty one is ignored.
 * Owns:     takes the permit.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_permit_drop(blitz_permit *permit);

/* ---- receiving ---- */

/*
 * Receive one value.
 * Owns:     *value is the caller's. It is written only on 0.
 * Suspends: until there is one, the deadline, a cancel, or a close when all is drained. Call from
 *           anywhere.
 * Returns:  0, -EPIPE (closed and drained, or shut), -ETIMEDOUT, -ECANCELED.
 */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int blitz_chan_recv(blitz_chan *c, void *value,
                                                            blitz_deadline until);

/*
 * Receive one value if there is one.
 * Owns:     *value is the caller's. It is written only on 0.
 * Suspends: never. Call from any thread.
 * Returns:  0, -EAGAIN, -EPIPE.
 */
BLITZ_API BLITZ_MUST_USE int blitz_chan_try_recv(blitz_chan *c, void *value);

/*
 * Receive what is there, `max` values at most, one behind the other; waits only for the first one.
 * Owns:     the values are the caller's.
 * Suspends: as blitz_chan_recv(). Call from anywhere.
 * Returns:  0, or as blitz_chan_recv(), -EINVAL (max is 0). *received is how many, in every case.
 */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int blitz_chan_recv_many(blitz_chan *c, void *values,
                                                                 size_t max, size_t *received,
                                                                 blitz_deadline until);

/* ---- the end ---- */

/*
 * No more sends: those that wait end with -EPIPE, and receivers with the same once all is drained.
 * Closing twice is harmless.
 * Owns:     borrows c.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_chan_close(blitz_chan *c);

/*
 * No more receives either: what is in it is dropped, by the hook if there is one.
 * Owns:     borrows c.
 * Suspends: never, unless the drop hook does. Call from any thread.
 * Returns:  how many values were dropped.
 */
BLITZ_API size_t blitz_chan_shut(blitz_chan *c);

/*
 * Count senders: from the first add on, the channel is closed when as many were dropped as were
 * added. Each holds a reference. "Clone" a handle by adding one more.
 * Owns:     add: one more sender; drop: one less, and its reference.
 * Suspends: never. Call from any thread.
 * Returns:  add: 0, -EPIPE (it is closed: there is nothing to drop then).
 */
BLITZ_API int blitz_chan_sender_add(blitz_chan *c);
BLITZ_API void blitz_chan_sender_drop(blitz_chan *c);

/*
 * Count receivers: likewise, but the channel is shut when the last one is dropped.
 * Owns:     add: one more receiver; drop: one less, and its reference.
 * Suspends: never, unless the drop hook does. Call from any thread.
 * Returns:  add: 0, -EPIPE (it is shut).
 */
BLITZ_API int blitz_chan_receiver_add(blitz_chan *c);
BLITZ_API void blitz_chan_receiver_drop(blitz_chan *c);

/*
 * How it stands, for a moment.
 * Owns:     borrows c.
 * Suspends: never. Call from any thread.
 * Returns:  len: values in it; capacity: how many it may hold, or BLITZ_UNBOUNDED; is_closed:
 *           whether sends are turned away.
 */
BLITZ_API size_t blitz_chan_len(blitz_chan *c);
BLITZ_API size_t blitz_chan_capacity(const blitz_chan *c);
BLITZ_API bool blitz_chan_is_closed(blitz_chan *c);

/* ---- as futures ---- */

/*
 * Operations as values, for stackless tasks and for combinators. The memory is yours from init until
 * the future is ready or cancelled; do not move it in between. They are revocable: a cancel undoes
 * the wait and nothing has happened. The one exception is a send to a rendezvous, which a receiver
 * may have taken between the last poll and the cancel: `result` is 0 then, and it is done.
 */
typedef struct blitz_chan_future {
    blitz_future future; /* to be awaited */
    int result;          /* when ready: 0, -EPIPE, -ENOMEM, -EOPNOTSUPP */
    void *inside[12];
} blitz_chan_future;

/*
 * A send of *value, which is read when there is room for it.
 * Owns:     borrows c and *value until the future is ready or cancelled.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_chan_send_future_init(blitz_chan_future *f, blitz_chan *c, const void *value);

/*
 * A receive into *value.
 * Owns:     borrows c and *value until the future is ready or cancelled.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_chan_recv_future_init(blitz_chan_future *f, blitz_chan *c, void *value);

/*
 * A permit into *permit.
 * Owns:     borrows c and *permit until the future is ready or cancelled. Ready with 0 the permit is
 *           the caller's.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_chan_reserve_future_init(blitz_chan_future *f, blitz_chan *c,
                                              blitz_permit *permit);

/* ---- by type ---- */

/*
 * BLITZ_CHAN_OF(ints, int) makes a type `ints` and functions ints_new, ints_send, ints_try_send,
 * ints_recv, ints_try_recv, ints_close and ints_unref that take and give ints: a channel of another
 * type is an error of the compiler's. `.chan` is the channel, for everything else.
 */
#define BLITZ_CHAN_OF(name, type)                                                                 \
    typedef struct name {                                                                         \
        blitz_chan *chan;                                                                         \
    } name;                                                                                       \
    static inline BLITZ_MAYBE_UNUSED int name##_new(size_t capacity, const blitz_chan_opts *opts, \
                                                    name *out)                                    \
    {                                                                                             \
        return blitz_chan_new(sizeof(type), capacity, opts, &out->chan);                          \
    }                                                                                             \
    static inline BLITZ_MAYBE_UNUSED int name##_send(name c, type value, blitz_deadline until)    \
    {                                                                                             \
        return blitz_chan_send(c.chan, &value, until);                                            \
    }                                                                                             \
    static inline BLITZ_MAYBE_UNUSED int name##_try_send(name c, type value)                      \
    {                                                                                             \
        return blitz_chan_try_send(c.chan, &value);                                               \
    }                                                                                             \
    static inline BLITZ_MAYBE_UNUSED int name##_recv(name c, type *value, blitz_deadline until)   \
    {                                                                                             \
        return blitz_chan_recv(c.chan, value, until);                                             \
    }                                                                                             \
    static inline BLITZ_MAYBE_UNUSED int name##_try_recv(name c, type *value)                     \
    {                                                                                             \
        return blitz_chan_try_recv(c.chan, value);                                                \
    }                                                                                             \
    static inline BLITZ_MAYBE_UNUSED void name##_close(name c)                                    \
    {                                                                                             \
        blitz_chan_close(c.chan);                                                                 \
    }                                                                                             \
    static inline BLITZ_MAYBE_UNUSED void name##_unref(name c)                                    \
    {                                                                                             \
        blitz_chan_unref(c.chan);                                                                 \
    }                                                                                             \
    struct name

BLITZ_END_DECLS

#endif
