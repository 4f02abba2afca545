/*
 * blitz/promise.h - wait for other code to complete something: a callback of a foreign library, a thread of
 * your own, another runtime.
 *
 * A promise has two ends. The waiter holds the promise. The code that will complete it holds a completer, on any
 * thread, with or without a runtime:
 *
 *     static void done(void *completer, char *text)           // called by the library, on any thread
 *     {
 *         blitz_completer_complete(completer, text);
 *         blitz_completer_unref(completer);
 *     }
 *
 *     blitz_promise *p;
 *     blitz_completer *c;
 *     if (blitz_promise_new(&(blitz_promise_opts){.drop = blitz_drop_free}, &p, &c) == 0) {
 *         library_fetch(url, done, c);
 *         rc = blitz_promise_await(p, &text, blitz_after(BLITZ_S));    // -ETIMEDOUT: stop waiting
 *         blitz_promise_unref(p);
 *     }
 *
 * A promise is completed once, with a value or with an error. If the last completer is released before that, waiters
 * get -EPIPE. A value that no waiter took is freed.
 *
 * The future of a promise is *detachable*: at a deadline or a cancel the waiter leaves, and the operation continues.
 * The memory belongs to the promise and stays until both ends are released.
 */
#ifndef BLITZ_PROMISE_H
#define BLITZ_PROMISE_H

#include <stdbool.h>
#include <stddef.h>

#include "blitz/api.h"
#include "blitz/future.h"
#include "blitz/hooks.h"
#include "blitz/time.h"

BLITZ_BEGIN_DECLS

typedef struct blitz_promise blitz_promise;
typedef struct blitz_completer blitz_completer;

/* The options of a promise. A zeroed struct means none. */
typedef struct blitz_promise_opts {
    /* Called for a value that was not taken, when both ends are released; must not suspend. NULL: none. */
    void (*drop)(void *value, void *ctx);
    void *ctx;
} blitz_promise_opts;

/*
 * Make a promise.
 * Owns:     *promise and *completer are yours; release them with their unref. Copies the options; NULL: none.
 * Suspends: never. Call from any thread.
 * Returns:  0, -ENOMEM (nothing is written), -EINVAL (an output pointer is NULL).
 */
BLITZ_API BLITZ_MUST_USE int blitz_promise_new(const blitz_promise_opts *opts,
                                               blitz_promise **promise,
                                               blitz_completer **completer);

/*
 * Add a handle of the waiting end, or release one. unref ignores NULL.
 * Owns:     ref: shares the promise. unref: takes the handle; no future may still use it.
 * Suspends: never. Call from any thread that holds a handle.
 * Returns:  ref: p.
 */
BLITZ_API blitz_promise *blitz_promise_ref(blitz_promise *p);
BLITZ_API void blitz_promise_unref(blitz_promise *p);

/*
 * Wait for a promise.
 * Owns:     *value (may be NULL) is yours. Of several waiters the first gets the value, the others NULL.
 * Suspends: until it is completed, `until`, or a cancel. Call from anywhere; a plain thread sleeps.
 * Returns:  0; the error it failed with; -EPIPE (every completer was released); -ETIMEDOUT,
 *           -ECANCELED: the promise is unchanged, and you may await it again.
 */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int blitz_promise_await(blitz_promise *p, void **value,
                                                                blitz_deadline until);

/* A promise as a future, for stackless tasks and combinators. */
typedef struct blitz_promise_future {
    blitz_future future; /* to be awaited */
    int result;          /* when ready: 0, the error it failed with, or -EPIPE */
    void *value;         /* when ready: yours; NULL if there is none, or another waiter took it */
    void *inside[9];
} blitz_promise_future;

/*
 * Make a future that is ready when `p` is completed.
 * Owns:     borrows the handle until the future is ready or cancelled.
 * Suspends: never. Call from any thread that holds a handle.
 */
BLITZ_API void blitz_promise_await_future_init(blitz_promise_future *f, blitz_promise *p);

/*
 * Add a handle of the completing end.
 * Owns:     shares the promise.
 * Suspends: never. Call from any thread that holds a completer.
 * Returns:  c.
 */
BLITZ_API blitz_completer *blitz_completer_ref(blitz_completer *c);

/*
 * Release a completer. If it was the last one and the promise is not completed, the promise fails with -EPIPE. NULL
 * is ignored.
 * Owns:     takes the handle.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_completer_unref(blitz_completer *c);

/*
 * Complete the promise with a value.
 * Owns:     takes `value` on 0; otherwise it stays yours. The completer stays yours.
 * Suspends: never. Call from any thread.
 * Returns:  0, -EALREADY (it was completed before).
 */
BLITZ_API int blitz_completer_complete(blitz_completer *c, void *value);

/*
 * Complete the promise with an error.
 * Owns:     borrows the completer until it returns.
 * Suspends: never. Call from any thread.
 * Returns:  0, -EALREADY (it was completed before), -EINVAL (the error is not negative).
 */
BLITZ_API int blitz_completer_fail(blitz_completer *c, int error);

/*
 * True if a handle of the waiting end still exists. If not, the result is not needed, and the work may stop.
 * Owns:     borrows the completer until it returns.
 * Suspends: never. Call from any thread.
 * Returns:  true if it does.
 */
BLITZ_API bool blitz_completer_is_wanted(blitz_completer *c);

/* ---- boxes ---- */

/* The options of a box. A zeroed struct means none. */
typedef struct blitz_box_opts {
    void (*drop)(void *value,
                 void *ctx); /* called with the memory of a box before it is freed; NULL: none */
    void *ctx;
} blitz_box_opts;

/*
 * Memory for a future that may have to continue without its caller. The box holds a struct of yours whose first
 * member is a future, with all that the future needs. The box has a future of its own, which is *detachable* for any
 * class of the inner one. If the caller leaves, the runtime keeps the box until a pinned inner future has completed.
 * Then it drops and frees the box.
 *
 *     struct job *job = blitz_box_new(sizeof *job, NULL);
 *     job_init(job);                                            // job->future, first member
 *     rc = blitz_await(blitz_box_future(job), until);
 *     if (rc == 0) {
 *         use(job);
 *         blitz_box_unref(job);
 *     }                                                         // else the box is not yours any more
 *
 * Make a box. (It returns the memory, as malloc() does: a void ** would need a cast.)
 * Owns:     the memory is yours, zeroed and aligned for any type, until blitz_box_unref(), or until the box's future
 *           is cancelled (a blitz_await that fails, the fate BLITZ_LEFT). Copies the options; NULL: none.
 * Suspends: never. Call from any thread.
 * Returns:  the memory; NULL if there is none, or `bytes` is too small for a future.
 */
BLITZ_API void *blitz_box_new(size_t bytes, const blitz_box_opts *opts);

/*
 * Return the future of a box. Initialize the inner future before the first poll.
 * Owns:     borrowed from the box. A cancel takes the box. If the inner future is pinned, the cancel starts a task of
 *           the runtime to wait for it; if that fails, the cancel itself waits.
 * Suspends: never.
 * Returns:  the future; its output is that of the inner one.
 */
BLITZ_API blitz_future *blitz_box_future(void *memory);

/*
 * Free a box whose future was never polled, or is ready. NULL is ignored.
 * Owns:     takes the box.
 * Suspends: never, unless its drop function does. Call from any thread.
 */
BLITZ_API void blitz_box_unref(void *memory);

BLITZ_END_DECLS

#endif
