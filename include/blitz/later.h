/*
 * blitz/later.h - call a function at a time, or when a token is cancelled.
 *
 *     blitz_later_at(blitz_after(30 * BLITZ_S), close_idle, conn, NULL, &idle);
 *     ...
 *     if (blitz_later_cancel(idle) == 0)                   // it will not be called: conn is ours
 *         ...
 *     blitz_later_unref(idle);
 *
 *     blitz_later_on_cancel(token, interrupt, query, NULL, NULL);      // no handle: it cannot be cancelled
 *
 * No fiber waits for the moment: until then there is a stackless task (blitz/poll.h), which has no stack. Then the function
 * runs in that task, and may wait. It is called once, or not at all: if the runtime shuts down first, the drop function of
 * the options gets its argument.
 */
#ifndef BLITZ_LATER_H
#define BLITZ_LATER_H

#include <stdbool.h>

#include "blitz/api.h"
#include "blitz/closed_future.h"
#include "blitz/runtime.h"
#include "blitz/scope.h"
#include "blitz/time.h"

BLITZ_BEGIN_DECLS

typedef struct blitz_later blitz_later;

/* The options. A zeroed struct means none. */
typedef struct blitz_later_opts {
    blitz_runtime *runtime; /* NULL: the runtime of the calling task */
    const char *name;       /* for dumps and messages; must outlive the task; NULL: "later" */
    void (*drop)(void *value,
                 void *ctx); /* gets the argument if the runtime ends first; may wait. NULL: none */
    void *ctx;
} blitz_later_opts;

/*
 * Call fn(arg) at a moment of the runtime's clock (blitz/clock.h); if it has passed: soon.
 * Owns:     arg is fn's until a cancel has returned 0. *out is a handle; release it with blitz_later_unref(). `out` may be
 *           NULL. Copies the options; NULL: none.
 * Suspends: never. Call from a task, or from any thread with a runtime in `opts`.
 * Returns:  0, -EINVAL (no function, no runtime), -ENOMEM, -EAGAIN (tasks_max), -ESHUTDOWN. On error fn is not called, and
 *           *out is not written.
 */
BLITZ_API BLITZ_MUST_USE int blitz_later_at(blitz_deadline when, void (*fn)(void *arg), void *arg,
                                            const blitz_later_opts *opts, blitz_later **out);

/*
 * Call fn(arg) when a token is cancelled, or soon if it is.
 * Owns:     as blitz_later_at(). Shares the token until fn is called or cancelled.
 * Suspends: never. Call from a task, or from any thread with a runtime in `opts`.
 * Returns:  as blitz_later_at(); -EINVAL also if there is no token.
 */
BLITZ_API BLITZ_MUST_USE int blitz_later_on_cancel(blitz_token *token, void (*fn)(void *arg),
                                                   void *arg, const blitz_later_opts *opts,
                                                   blitz_later **out);

/*
 * Cancel the call, if it has not begun.
 * Owns:     borrows the handle. On 0 the argument is the caller's.
 * Suspends: never. Call from any thread.
 * Returns:  0 (fn will not be called), -EALREADY (it was cancelled before, or the runtime has ended), -EBUSY (fn runs, or has
 *           returned).
 */
BLITZ_API int blitz_later_cancel(blitz_later *l);

/*
 * True if fn has returned. False: it runs, will be called, or will not be called any more.
 * Owns:     borrows the handle.
 * Suspends: never. Call from any thread.
 * Returns:  true if it has.
 */
BLITZ_API bool blitz_later_was_called(blitz_later *l);

/*
 * Wait until fn has returned or will not be called any more. For a caller that must free the argument and came too late
 * to cancel.
 * Owns:     borrows the handle.
 * Suspends: until then, the deadline or a cancel. Call from anywhere.
 * Returns:  0, -ETIMEDOUT, -ECANCELED.
 */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int blitz_later_wait(blitz_later *l, blitz_deadline until);

/*
 * Make a future of blitz_later_wait().
 * Owns:     borrows the handle until the future is ready or cancelled.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_later_wait_future_init(blitz_closed_future *f, blitz_later *l);

/*
 * Release the handle. The call is made all the same. NULL is ignored.
 * Owns:     takes the handle.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_later_unref(blitz_later *l);

BLITZ_END_DECLS

#endif
