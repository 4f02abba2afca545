/*
 * blitz/promise.h - wait for what somebody else completes: callbacks of foreign libraries, a thread
 * of your own, another runtime.
 *
 * A promise has two ends. Whoever waits holds the promise; whoever is going to complete it holds a
 * completer, on any thread, in no runtime perhaps:
 *
 *     static void done(void *completer, char *text)           // called by the library, wherever
 *     {
 *         blitz_completer_complete(completer, text);
 *         blitz_completer_unref(completer);
 *     }
 *
 *     blitz_promise *p;
 *     blitz_completer *c;
 *     if (blitz_promise_new(&(blitz_promise_opts){.drop = blitz_drop_free}, &p, &c) == 0) {
 *         library_fetch(url, done, c);
 *         rc = blitz_promise_await(p, &text, blitz_after(BLITZ_S));    // -ETIMEDOUT: we leave
 *         blitz_promise_unref(p);
 *     }
 *
 * It is completed once: with a value, with an error, or by nobody: when the last completer is given
 * up, those who wait are told -EPIPE. A value that nobody took is freed.
 *
 * The future of a promise is *detachable*: at a deadline or a cancel its waiter leaves, and what
 * was begun goes on. The memory is the promise's own and stays until both ends are given up.
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

/* Zeroed: nothing. */
typedef struct blitz_promise_opts {
    /* For a value that was not taken, when both ends are given up; must not suspend. NULL: none. */
    void (*drop)(void *value, void *ctx);
    void *ctx;
} blitz_promise_opts;

/*
 * Make a promise.
 * Owns:     *promise and *completer are yours, to be given up with their unref. Copies the options; NULL: none.
 * Suspends: never. Call from any thread.
 * Returns:  0, -ENOMEM (nothing is written), -EINVAL (nowhere to put them).
 */
BLITZ_API BLITZ_MUST_USE int blitz_promise_new(const blitz_promise_opts *opts,
                                               blitz_promise **promise,
                                               blitz_completer **completer);

/*
 * One more handle of the waiting end, and one less. NULL is ignored by the latter.
 * Owns:     ref: shares the promise. unref: takes the handle; no future of it may be out.
 * Suspends: never. Call from any thread that holds a handle.
 * Returns:  ref: p.
 */
BLITZ_API blitz_promise *blitz_promise_ref(blitz_promise *p);
BLITZ_API void blitz_promise_unref(blitz_promise *p);

/*
 * Wait for a promise.
 * Owns:     *value (may be NULL) is yours; of several who wait the first gets it, the others NULL.
 * Suspends: until it is completed, `until`, or a cancel. Call from anywhere; a plain thread sleeps.
 * Returns:  0; the error it failed with; -EPIPE (every completer was given up); -ETIMEDOUT,
 *           -ECANCELED: the promise is as it was, and can be awaited again.
 */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int blitz_promise_await(blitz_promise *p, void **value,
                                                                blitz_deadline until);

/* A promise as a future, for stackless tasks and combinators. */
typedef struct blitz_promise_future {
    blitz_future future; /* to be awaited */
    int result;          /* when ready: 0, the error it failed with, or -EPIPE */
    void *value;         /* when ready: yours; NULL if there was none, or another had it */
    void *inside[5];
} blitz_promise_future;

/*
 * The completion of `p`.
 * Owns:     borrows the handle until the future is ready or cancelled.
 * Suspends: never. Call from any thread that holds a handle.
 */
BLITZ_API void blitz_promise_await_future_init(blitz_promise_future *f, blitz_promise *p);

/*
 * One more handle of the completing end.
 * Owns:     shares the promise.
 * Suspends: never. Call from any thread that holds a completer.
 * Returns:  c.
 */
BLITZ_API blitz_completer *blitz_completer_ref(blitz_completer *c);

/*
 * Give up a completer. If it was the last and nobody has completed the promise, it has failed with
 * -EPIPE. NULL is ignored.
 * Owns:     takes the handle.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_completer_unref(blitz_completer *c);

/*
 * Keep the promise.
 * Owns:     takes `value` on 0; otherwise it stays yours. The completer stays yours.
 * Suspends: never. Call from any thread.
 * Returns:  0, -EALREADY (somebody was first).
 */
BLITZ_API int blitz_completer_complete(blitz_completer *c, void *value);

/*
 * Break it, with an error that says why.
 * Owns:     borrows the completer until it returns.
 * Suspends: never. Call from any thread.
 * Returns:  0, -EALREADY (somebody was first), -EINVAL (the error is not negative).
 */
BLITZ_API int blitz_completer_fail(blitz_completer *c, int error);

/*
 * Does anybody still hold the waiting end? If not, the work is for nothing and may stop.
 * Owns:     borrows the completer until it returns.
 * Suspends: never. Call from any thread.
 * Returns:  whether it is.
 */
BLITZ_API bool blitz_completer_is_wanted(blitz_completer *c);

/* ---- boxes ---- */

/* Zeroed: nothing. */
typedef struct blitz_box_opts {
    void (*drop)(void *value,
                 void *ctx); /* gets the memory of a box before it is freed; NULL: none */
    void *ctx;
} blitz_box_opts;

/*
 * Memory for a future that may have to go on without its caller. What is to wait lies in the box: a
 * struct of yours whose first member is a future, and what that needs besides. The box has a future
 * of its own, which is *detachable* whatever the one inside is: if its caller leaves, the runtime
 * keeps the box until a pinned future in it has completed, drops it and frees it.
 *
 *     struct job *job = blitz_box_new(sizeof *job, NULL);
 *     job_init(job);                                            // job->future, first member
 *     rc = blitz_await(blitz_box_future(job), until);
 *     if (rc == 0) {
 *         use(job);
 *         blitz_box_unref(job);
 *     }                                                         // else it is not ours any more
 *
 * Make one. (It returns the memory, as malloc() does: a void ** would need a cast.)
 * Owns:     the memory is yours, zeroed and aligned for anything, until blitz_box_unref(), or until
 *           the box's future is cancelled (a blitz_await that fails, the fate BLITZ_LEFT). Copies the options;
 *           NULL: none.
 * Suspends: never. Call from any thread.
 * Returns:  the memory; NULL if there is none, or `bytes` is too small for a future.
 */
BLITZ_API void *blitz_box_new(size_t bytes, const blitz_box_opts *opts);

/*
 * The future of a box. The one inside is initialised before the first poll.
 * Owns:     borrowed from the box. A cancel takes the box. If what is inside is pinned, a task of the
 *           runtime is started to wait for it; if that cannot be, the cancel itself waits.
 * Suspends: never.
 * Returns:  the future; its output is that of the one inside.
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
