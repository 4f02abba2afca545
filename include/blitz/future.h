/*
 * blitz/future.h - one protocol for waiting.
 *
 * Everything that can wait is a future: a small struct the caller owns, with a function that asks
 * whether it is ready. Written once it serves three ways: a stackless task polls it, a fiber or a
 * plain thread awaits it.
 *
 *   poll    Are you ready? If so it says BLITZ_READY, and its own fields hold the outcome. If not,
 *           it keeps a clone of the waker (the newest one counts), sees to it that this is woken
 *           when asking again is worth while, and says BLITZ_PENDING. Asked for no reason it just
 *           answers again.
 *   cancel  The caller will not ask any more. What that means is the future's class:
 *             revocable   it is undone: nothing has happened, nothing will
 *             detachable  it goes on without the caller, on memory of its own
 *             pinned      it is asked to stop; it must still be polled until it is ready
 *           Unless it is pinned, nothing of it is touched after its cancel: it may be gone.
 *           A future that was never polled, or said BLITZ_READY, needs no cancel.
 *   output  How did it go? To be asked once it is ready, any number of times: 0 or more, or a
 *           negative errno. It is what a combinator goes by (blitz/combine.h). A future without the
 *           function cannot fail; whatever else has come of it is in its own fields.
 *
 * Results. A future of a call has its result in the field `result`: what the call would have returned. What the call
 * would have given by pointer is in fields beside it (`value`, `pointer`, `tcp`, `joined`), or where the caller said.
 * These fields have one writer, the future: its poll writes them before it says BLITZ_READY, and so does a cancel where
 * the future's comment says "or cancelled". From then on they are the caller's, to read and to keep; a handle or a
 * pointer among them is the caller's to give up, and no one else frees it. Before that their content means nothing. A
 * future that cannot fail has no `result`. Fields called `inside`, and those marked "not yours", are the future's
 * throughout.
 *
 * A waker says "look again". It is 16 bytes and counted: clone it to keep it; wake it, which uses it
 * up, or drop it when done. Waking is safe from any thread, also after the task has ended.
 */
#ifndef BLITZ_FUTURE_H
#define BLITZ_FUTURE_H

#include "blitz/api.h"
#include "blitz/time.h"

BLITZ_BEGIN_DECLS

typedef struct blitz_waker {
    const struct blitz_waker_ops *ops;
    void *data;
} blitz_waker;

/* For those who make wakers. Every function may be called from any thread. */
typedef struct blitz_waker_ops {
    void (*clone)(void *data);       /* one more holder */
    void (*wake)(void *data);        /* "look again", and one holder less */
    void (*wake_by_ref)(void *data); /* "look again"; the number of holders stays */
    void (*drop)(void *data);        /* one holder less */
} blitz_waker_ops;

typedef enum blitz_poll { BLITZ_PENDING = 0, BLITZ_READY = 1 } blitz_poll;

typedef enum blitz_class {
    BLITZ_REVOCABLE = 0,
    BLITZ_DETACHABLE = 1,
    BLITZ_PINNED = 2
} blitz_class;

typedef struct blitz_future blitz_future;

typedef struct blitz_future_ops {
    const char *name; /* what is waited for, for dumps: "sleep", "join" */
    blitz_class kind;
    blitz_poll (*poll)(blitz_future *f, const blitz_waker *waker);
    void (*cancel)(blitz_future *f);
    int (*output)(blitz_future *f); /* NULL: 0 */
} blitz_future_ops;

/* The first member of every future. */
struct blitz_future {
    const blitz_future_ops *ops;
};

/*
 * How a future that is ready has ended.
 * Owns:     borrows the future until it returns.
 * Suspends: never. Call from whoever awaited it.
 * Returns:  0 or more, or a negative errno: what the future's own manual says.
 */
static inline int blitz_future_output(blitz_future *f)
{
    return f->ops->output != 0 ? f->ops->output(f) : 0;
}

/*
 * Keep a waker.
 * Owns:     the result is a holder of its own; give it up with blitz_waker_drop().
 * Suspends: never. Call from any thread.
 * Returns:  the clone.
 */
BLITZ_API blitz_waker blitz_waker_clone(const blitz_waker *w);

/*
 * Say "look again" and give the waker up. It is empty afterwards; waking an empty one does nothing.
 * Owns:     takes the holder in *w.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_waker_wake(blitz_waker *w);

/*
 * Say "look again" and keep the waker. May be said any number of times, early, late, or for nothing.
 * Owns:     borrows the waker until it returns.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_waker_wake_by_ref(const blitz_waker *w);

/*
 * Give a waker up. It is empty afterwards; dropping an empty one does nothing.
 * Owns:     takes the holder in *w.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_waker_drop(blitz_waker *w);

/*
 * Wait until a future is ready.
 * Owns:     borrows the future until it returns.
 * Suspends: until it is ready, `until`, or a cancel of the calling task. Call from anywhere; a
 *           plain thread sleeps.
 * Returns:  0 (ready: look into the future), -ETIMEDOUT, -ECANCELED. With either of these the
 *           future was cancelled, and a pinned one has completed: look into it.
 */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int blitz_await(blitz_future *f, blitz_deadline until);

BLITZ_END_DECLS

#endif
