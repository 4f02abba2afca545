/*
 * blitz/future.h - one protocol for waiting.
 *
 * Everything that can wait is a future: a small struct that the caller owns, with a function that checks whether it
 * is ready. Written once, it serves a stackless task, which polls it, and a fiber or a plain thread, which awaits it.
 *
 *   poll    Check whether the future is ready. If it is, return BLITZ_READY; its own fields hold the outcome. If not,
 *           keep a clone of the waker (the newest one counts), arrange that it is woken when another poll is
 *           useful, and return BLITZ_PENDING. A poll without a wake-up just checks again.
 *   cancel  The caller will not poll any more. The effect depends on the future's class:
 *             revocable   it is undone: nothing has happened, nothing will
 *             detachable  it continues without the caller, on memory of its own
 *             pinned      it is asked to stop; the caller must still poll it until it is ready
 *           Unless it is pinned, its memory is not touched after its cancel: it may be freed.
 *           A future that was never polled, or returned BLITZ_READY, needs no cancel.
 *   output  Return the outcome of a ready future: 0 or more, or a negative errno. It may be called any number of
 *           times. Combinators use it (blitz/combine.h). A future without this function cannot fail. Further results are
 *           in the future's own fields.
 *
 * Results. A future of a call has its result in the field `result`: what the call would have returned. Values that
 * the call would have returned by pointer are in fields beside it (`value`, `pointer`, `tcp`, `joined`), or where the
 * caller said. Only the future writes these fields. Its poll writes them before it returns BLITZ_READY. A cancel
 * writes them too, if the future's comment says "or cancelled". From then on they belong to the caller, to read and
 * to keep. A handle or a pointer among them is the caller's to release; nothing else frees it. Before that their
 * content is undefined. A future that cannot fail has no `result`. Fields called `inside`, and fields marked "not
 * yours", always belong to the future.
 *
 * A waker asks its task to poll again. It is 16 bytes and reference-counted. Clone it to keep it. When done, wake it,
 * which consumes it, or drop it. Waking is safe from any thread, also after the task has ended.
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

/* The functions of a kind of waker. Each may be called from any thread. */
typedef struct blitz_waker_ops {
    void (*clone)(void *data);       /* add a reference */
    void (*wake)(void *data);        /* wake, and release a reference */
    void (*wake_by_ref)(void *data); /* wake; the number of references stays */
    void (*drop)(void *data);        /* release a reference */
} blitz_waker_ops;

typedef enum blitz_poll { BLITZ_PENDING = 0, BLITZ_READY = 1 } blitz_poll;

typedef enum blitz_class {
    BLITZ_REVOCABLE = 0,
    BLITZ_DETACHABLE = 1,
    BLITZ_PINNED = 2
} blitz_class;

typedef struct blitz_future blitz_future;

typedef struct blitz_future_ops {
    const char *name; /* the kind of wait, for dumps: "sleep", "join" */
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
 * Return the outcome of a ready future.
 * Owns:     borrows the future until it returns.
 * Suspends: never. Call from the thread that awaited it.
 * Returns:  0 or more, or a negative errno, as the comment of the future says.
 */
static inline int blitz_future_output(blitz_future *f)
{
    return f->ops->output != 0 ? f->ops->output(f) : 0;
}

/*
 * Clone a waker, to keep it.
 * Owns:     the result is a reference of its own; release it with blitz_waker_drop().
 * Suspends: never. Call from any thread.
 * Returns:  the clone.
 */
BLITZ_API blitz_waker blitz_waker_clone(const blitz_waker *w);

/*
 * Wake and consume the waker. It is empty afterwards; waking an empty waker does nothing.
 * Owns:     takes the reference in *w.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_waker_wake(blitz_waker *w);

/*
 * Wake and keep the waker. It may be called any number of times, also too early, too late, or without need.
 * Owns:     borrows the waker until it returns.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_waker_wake_by_ref(const blitz_waker *w);

/*
 * Release a waker. It is empty afterwards; dropping an empty waker does nothing.
 * Owns:     takes the reference in *w.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_waker_drop(blitz_waker *w);

/*
 * Wait until a future is ready.
 * Owns:     borrows the future until it returns.
 * Suspends: until it is ready, `until`, or a cancel of the calling task. Call from anywhere; a
 *           plain thread sleeps.
 * Returns:  0 (ready: its fields have the outcome), -ETIMEDOUT, -ECANCELED. On either error the future was cancelled.
 *           A pinned future has completed then: its fields have the outcome.
 */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int blitz_await(blitz_future *f, blitz_deadline until);

BLITZ_END_DECLS

#endif
