/*
 * blitz/chan.h - pass values between tasks, in order.
 *
 * A channel carries values of one size from any number of senders to any number of receivers. Each value goes to one
 * receiver, the oldest value first. The capacity says how many values it holds:
 *
 *   n                 a send waits while n values are in it
 *   0                 a rendezvous: a send ends when a receiver has the value
 *   BLITZ_UNBOUNDED   a send never waits. The cost: there is no backpressure. If the receivers are slower than the
 *                     senders, memory grows (8 bytes for a value of 8, in blocks of about 4 KiB that are freed
 *                     when they are empty), and a send can fail with -ENOMEM
 *
 * There are two ways to end it. blitz_chan_close() is for senders: further sends are refused, and receivers drain the
 * values that were sent. blitz_chan_shut() is for receivers: it also drops the remaining values at once. Any thread
 * may call either. If the channel should end with its last sender or receiver, count them: blitz_chan_sender_add()
 * and blitz_chan_receiver_add().
 *
 * Fibers, stackless tasks, forked jobs and plain threads may use one channel, also those of two runtimes. A call that
 * may wait takes a deadline: 0 means "do not wait", BLITZ_FOREVER means "as long as it takes". A call that need not
 * wait ignores the deadline and a cancel of the task.
 *
 *   a call that ended with -ETIMEDOUT, -ECANCELED or -EPIPE has done
 *     send, recv, reserve(_many)  nothing
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
 * Waiters are served first come, first served. A task or thread that waits gets its value (or its place) by hand-off,
 * so no other caller can take it first. A future is only notified to retry, and a caller that does not wait may be
 * faster.
 */
#ifndef BLITZ_CHAN_H
#define BLITZ_CHAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "blitz/api.h"
#include "blitz/closed_future.h"
#include "blitz/future.h"
#include "blitz/hooks.h"
#include "blitz/time.h"

BLITZ_BEGIN_DECLS

typedef struct blitz_chan blitz_chan;

#define BLITZ_UNBOUNDED SIZE_MAX

/* The options of a channel. A zeroed struct means none. */
typedef struct blitz_chan_opts {
    /* Called for each value that no receiver will get: left at the end, dropped by a shut, or sent by a permit
     * after a shut. It is called on the thread where that happens, and may use the channel. NULL: none. */
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
 * Add a reference.
 * Owns:     the result is a reference of its own.
 * Suspends: never. Call from any thread.
 * Returns:  c.
 */
BLITZ_API blitz_chan *blitz_chan_ref(blitz_chan *c);

/*
 * Release a reference. The last one drops the remaining values. NULL is ignored.
 * Owns:     takes the reference.
 * Suspends: never, unless the drop hook does. Call from any thread.
 */
BLITZ_API void blitz_chan_unref(blitz_chan *c);

/* ---- sending ---- */

/*
 * Send one value.
 * Owns:     copies *value before it returns.
 * Suspends: until there is room (a rendezvous: until the value is received), the deadline, a cancel or a close. Call
 *           from anywhere.
 * Returns:  0, -EPIPE (closed), -ETIMEDOUT, -ECANCELED, -ENOMEM (unbounded). On error nothing was sent.
 */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int blitz_chan_send(blitz_chan *c, const void *value,
                                                            blitz_deadline until);

/*
 * Send one value if that is possible without waiting.
 * Owns:     copies *value.
 * Suspends: never. Call from any thread.
 * Returns:  0, -EAGAIN (no room; a rendezvous: no task or thread waits to receive), -EPIPE, -ENOMEM.
 */
BLITZ_API BLITZ_MUST_USE int blitz_chan_try_send(blitz_chan *c, const void *value);

/*
 * Send `count` values from an array. They arrive in order; values of other senders may come between them.
 * Owns:     copies them.
 * Suspends: until all are sent, the deadline, a cancel or a close. Call from anywhere.
 * Returns:  0, or as blitz_chan_send(). *sent, if not NULL, is the number of values sent, in every case.
 */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int blitz_chan_send_many(blitz_chan *c, const void *values,
                                                                 size_t count, size_t *sent,
                                                                 blitz_deadline until);

/* The right to send one value. The struct is yours; its field is not. */
typedef struct blitz_permit {
    blitz_chan *chan;
} blitz_permit;

/*
 * Reserve room for one value. A send by the permit cannot fail. For a task that must not take a job from elsewhere
 * before it can pass the job on. A closed channel is not drained before every permit is used or dropped.
 * Owns:     the permit holds a reference. End it with blitz_permit_send() or blitz_permit_drop().
 * Suspends: until there is room, the deadline, a cancel or a close. Call from anywhere.
 * Returns:  0, -EPIPE, -ETIMEDOUT, -ECANCELED, -ENOMEM (unbounded), -EOPNOTSUPP (a rendezvous has no
 *           room to give). On error nothing is reserved.
 */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int blitz_chan_reserve(blitz_chan *c, blitz_permit *permit,
                                                               blitz_deadline until);

/*
 * Reserve room if that is possible without waiting.
 * Owns:     as blitz_chan_reserve().
 * Suspends: never. Call from any thread.
 * Returns:  0, -EAGAIN, -EPIPE, -ENOMEM, -EOPNOTSUPP.
 */
BLITZ_API BLITZ_MUST_USE int blitz_chan_try_reserve(blitz_chan *c, blitz_permit *permit);

/*
 * Send a value by a permit. Cannot fail: after a close the value is still received, after a shut it is dropped.
 * Owns:     takes the permit; copies *value.
 * Suspends: never (after a shut: as the drop hook does). Call from any thread.
 */
BLITZ_API void blitz_permit_send(blitz_permit *permit, const void *value);

/*
 * Return a permit unused. An empty permit is ignored.
 * Owns:     takes the permit.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_permit_drop(blitz_permit *permit);

/* The right to send several values. The struct is yours; its fields are not. */
typedef struct blitz_permits {
    blitz_chan *chan;
    size_t left;
} blitz_permits;

/*
 * Reserve room for n values, for a batch that must be sent whole or not at all. Values of other senders may come between
 * those of the batch. The first waiter of the channel collects the slots that become free, so that other senders do not
 * get ahead of it. A caller that has permits and waits for more of them may wait for itself.
 * Owns:     the permits hold a reference. Use them up with blitz_permits_send(), or end them with blitz_permits_drop().
 * Suspends: until there is room for all, the deadline, a cancel or a close. Call from anywhere.
 * Returns:  0, -EPIPE, -ETIMEDOUT, -ECANCELED, -ENOMEM (unbounded), -EINVAL (n is 0, or more than the capacity),
 *           -EOPNOTSUPP (a rendezvous). On error nothing is reserved.
 */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int
blitz_chan_reserve_many(blitz_chan *c, size_t n, blitz_permits *permits, blitz_deadline until);

/*
 * Reserve room for n values if that is possible without waiting.
 * Owns:     as blitz_chan_reserve_many().
 * Suspends: never. Call from any thread.
 * Returns:  0, -EAGAIN, -EPIPE, -ENOMEM, -EINVAL, -EOPNOTSUPP.
 */
BLITZ_API BLITZ_MUST_USE int blitz_chan_try_reserve_many(blitz_chan *c, size_t n,
                                                         blitz_permits *permits);

/*
 * Send a value by one of the permits. Cannot fail, as blitz_permit_send().
 * Owns:     takes one permit; copies *value.
 * Suspends: never (after a shut: as the drop hook does). Call from any thread.
 */
BLITZ_API void blitz_permits_send(blitz_permits *permits, const void *value);

/*
 * Return how many values can still be sent.
 * Owns:     borrows the permits.
 * Suspends: never. Call from any thread.
 * Returns:  the number.
 */
BLITZ_API size_t blitz_permits_left(const blitz_permits *permits);

/*
 * Return the permits that are left, unused. Used up or empty permits are ignored.
 * Owns:     takes the permits.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_permits_drop(blitz_permits *permits);

/* ---- receiving ---- */

/*
 * Receive one value.
 * Owns:     *value is the caller's. It is written only on 0.
 * Suspends: until there is a value, the deadline, a cancel, or a close when the channel is drained. Call from
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
 * Receive the values that are there, at most `max`, into an array. Waits only for the first one.
 * Owns:     the values are the caller's.
 * Suspends: as blitz_chan_recv(). Call from anywhere.
 * Returns:  0, or as blitz_chan_recv(), -EINVAL (max is 0). *received is the number of values, in every case.
 */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int blitz_chan_recv_many(blitz_chan *c, void *values,
                                                                 size_t max, size_t *received,
                                                                 blitz_deadline until);

/* ---- the end ---- */

/*
 * End sending. Sends that wait return -EPIPE, and receives do so once the channel is drained. Closing twice is
 * harmless.
 * Owns:     borrows c.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_chan_close(blitz_chan *c);

/*
 * End receiving as well: drop the values in the channel, by the drop hook if there is one.
 * Owns:     borrows c.
 * Suspends: never, unless the drop hook does. Call from any thread.
 * Returns:  how many values were dropped.
 */
BLITZ_API size_t blitz_chan_shut(blitz_chan *c);

/*
 * Count senders. From the first add on, the channel closes when as many senders were dropped as were added. Each
 * sender holds a reference. To "clone" a sender, add one more.
 *
 * A reference that is not counted is a *weak sender*: it does not keep the channel open. To send by it, add a sender
 * first. If that succeeds, the channel stays open until this sender is dropped, too; with -EPIPE it has ended.
 * Owns:     add: one more sender; drop: one less, and its reference.
 * Suspends: never. Call from any thread.
 * Returns:  add: 0, -EPIPE (it is closed: do not drop this sender).
 */
BLITZ_API int blitz_chan_sender_add(blitz_chan *c);
BLITZ_API void blitz_chan_sender_drop(blitz_chan *c);

/*
 * Count receivers in the same way. The channel is shut when the last one is dropped.
 * Owns:     add: one more receiver; drop: one less, and its reference.
 * Suspends: never, unless the drop hook does. Call from any thread.
 * Returns:  add: 0, -EPIPE (it is shut).
 */
BLITZ_API int blitz_chan_receiver_add(blitz_chan *c);
BLITZ_API void blitz_chan_receiver_drop(blitz_chan *c);

/*
 * Return how many senders, or receivers, were added and not dropped. It may be out of date at once.
 * Owns:     borrows c.
 * Suspends: never. Call from any thread.
 * Returns:  the number.
 */
BLITZ_API size_t blitz_chan_senders(blitz_chan *c);
BLITZ_API size_t blitz_chan_receivers(blitz_chan *c);

/*
 * Wait until sends are refused: the channel is closed or shut. For a sender that wants to stop when no receiver is left.
 * Owns:     borrows c until it returns.
 * Suspends: until then, the deadline or a cancel. Call from anywhere.
 * Returns:  0, -ETIMEDOUT, -ECANCELED.
 */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int blitz_chan_wait_closed(blitz_chan *c,
                                                                   blitz_deadline until);

/*
 * Return the state of the channel at this moment.
 * Owns:     borrows c.
 * Suspends: never. Call from any thread.
 * Returns:  len: the number of values in it; capacity: how many it may hold, or BLITZ_UNBOUNDED; is_closed: true if
 *           sends are refused.
 */
BLITZ_API size_t blitz_chan_len(blitz_chan *c);
BLITZ_API size_t blitz_chan_capacity(const blitz_chan *c);
BLITZ_API bool blitz_chan_is_closed(blitz_chan *c);

/* ---- as futures ---- */

/*
 * Operations as futures, for stackless tasks and combinators. The memory is yours from init until the future is ready
 * or cancelled; do not move it in between. They are revocable: after a cancel nothing has happened. The one exception
 * is a send to a rendezvous, which a receiver may take between the last poll and the cancel. Then `result` is 0, and
 * the value was sent.
 */
typedef struct blitz_chan_future {
    blitz_future future; /* to be awaited */
    int result;          /* when ready: 0, -EPIPE, -ENOMEM, -EINVAL, -EOPNOTSUPP */
    void *inside[12];
} blitz_chan_future;

/*
 * Make a future that sends *value. The value is read when there is room for it.
 * Owns:     borrows c and *value until the future is ready or cancelled.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_chan_send_future_init(blitz_chan_future *f, blitz_chan *c, const void *value);

/*
 * Make a future that receives into *value.
 * Owns:     borrows c and *value until the future is ready or cancelled.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_chan_recv_future_init(blitz_chan_future *f, blitz_chan *c, void *value);

/*
 * Make a future that reserves room, with the permit in *permit.
 * Owns:     borrows c and *permit until the future is ready or cancelled. If it is ready with 0, the permit is the
 *           caller's.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_chan_reserve_future_init(blitz_chan_future *f, blitz_chan *c,
                                              blitz_permit *permit);

/*
 * Make a future that reserves room for n values, with the permits in *permits. It may have its slots before it is polled
 * again: poll it when its waker is woken, or cancel it. Until then no other sender can have them.
 * Owns:     borrows c and *permits until the future is ready or cancelled. If it is ready with 0, the permits are the
 *           caller's.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_chan_reserve_many_future_init(blitz_chan_future *f, blitz_chan *c, size_t n,
                                                   blitz_permits *permits);

/*
 * Make a future that is ready when the channel is closed or shut. blitz/closed_future.h has an example.
 * Owns:     borrows c until the future is ready or cancelled.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_chan_wait_closed_future_init(blitz_closed_future *f, blitz_chan *c);

/* ---- by type ---- */

/*
 * BLITZ_CHAN_OF(ints, int) defines a type `ints` and the functions ints_new, ints_send, ints_try_send, ints_recv,
 * ints_try_recv, ints_close and ints_unref, which take and return ints. Mixing it up with a channel of another type
 * is a compile error. `.chan` is the channel, for all other calls.
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
