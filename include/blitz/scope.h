/*
 * blitz/scope.h - tasks that end before the block that started them.
 *
 *     blitz_scope s;
 *     blitz_scope_open(&s, NULL, blitz_after(2 * BLITZ_S));
 *     for (int i = 0; i < n; i++)
 *         blitz_scope_spawn(&s, fetch, &page[i], NULL);
 *     int err = blitz_scope_close(&s);            // all have ended: page[] may go out of scope
 *
 * Closing waits for every task that was spawned into the scope, and for the drop functions of its task-local values
 * (blitz/local.h). A task fails if its function returns a negative
 * number. The first task that fails cancels the others, and closing returns its error. A deadline, a token (below),
 * blitz_scope_cancel() and a cancel of the closing task also cancel all tasks. In each case closing returns when
 * all tasks have ended, and not before.
 *
 * Scopes nest. If a task of a scope has opened a scope of its own, a cancel reaches the task in its close, which
 * passes the cancel on.
 *
 * The scope lies in your memory from open to close. Do not move it meanwhile. Tasks in it may spawn more tasks into
 * it while they run.
 */
#ifndef BLITZ_SCOPE_H
#define BLITZ_SCOPE_H

#include <stdbool.h>

#include "blitz/api.h"
#include "blitz/future.h"
#include "blitz/runtime.h"
#include "blitz/task.h"
#include "blitz/time.h"

BLITZ_BEGIN_DECLS

typedef struct blitz_token blitz_token;

/* A zero field, or NULL for the whole struct, means the default. */
typedef struct blitz_scope_opts {
    blitz_runtime *runtime; /* where its tasks run; NULL: the caller's runtime */
    blitz_token *token;     /* its cancel cancels the scope; kept until close; NULL: none */
} blitz_scope_opts;

typedef struct blitz_scope {
    blitz_future future; /* ready when all tasks have ended: blitz_scope_close() */
    int result;          /* when ready: what blitz_scope_close() returns */
    void *inside[36];
} blitz_scope;

/*
 * Open a scope.
 * Owns:     the memory stays the caller's; it is in use until the scope is closed. Borrows the token
 *           until then.
 * Suspends: never. Call from a task, or from any thread with a runtime in `opts`.
 * Returns:  0, -EINVAL (no scope, or no runtime). If a plain thread opens the scope, the deadline takes effect only
 *           in blitz_scope_close().
 */
BLITZ_API BLITZ_MUST_USE int blitz_scope_open(blitz_scope *s, const blitz_scope_opts *opts,
                                              blitz_deadline until);

/*
 * Start fn(arg) as a task of the scope. It fails the scope by returning a negative number.
 * Owns:     the caller gets no handle: the scope joins the task.
 * Suspends: never. Call from the task that opened the scope, from a task of the scope, or from any other caller
 *           that returns before the scope is closed: its memory must still exist.
 * Returns:  0, -ECANCELED (the scope is cancelled: nothing was started), -EPIPE (it is closed), or as
 *           blitz_spawn().
 */
BLITZ_API BLITZ_MUST_USE int blitz_scope_spawn(blitz_scope *s, int (*fn)(void *arg), void *arg,
                                               const blitz_spawn_opts *opts);

/*
 * Ask every task of the scope to stop, also tasks that have not begun. Closing returns -ECANCELED, unless the scope
 * was cancelled before for another reason.
 * Owns:     borrows the scope until it returns.
 * Suspends: never. Call from any thread, before the scope is closed.
 */
BLITZ_API void blitz_scope_cancel(blitz_scope *s);

/*
 * True if the scope is cancelled, for any reason. For the task that opened it, which is not cancelled itself.
 * Owns:     borrows the scope until it returns.
 * Suspends: never. Call from any thread, before the scope is closed.
 * Returns:  true if it is.
 */
BLITZ_API bool blitz_scope_is_cancelled(blitz_scope *s);

/*
 * Wait until every task of the scope has ended. Call it once for each open, or await s->future instead.
 * blitz_await(&s.future, until) with a deadline gives the tasks a grace period. At `until` it cancels the tasks
 * that are left, and it returns when all have ended. It returns 0, and s.result is what closing would have
 * returned; or -ETIMEDOUT.
 * Owns:     the memory is the caller's alone again.
 * Suspends: until all have ended. A cancel of the calling task is passed on to them. A stackless task awaits
 *           s->future instead, which is *pinned* and has the same value as its output.
 * Returns:  0; the error of the first task that failed; -ETIMEDOUT (the deadline); -ECANCELED.
 */
BLITZ_API BLITZ_SUSPENDS int blitz_scope_close(blitz_scope *s);

/* ---- tokens ---- */

/*
 * A token carries a "stop" to the code that checks it or waits for it. Tokens form a tree: cancelling a token
 * cancels the tokens below it and no others. A token is reference-counted. Any thread may hold, check and cancel it.
 *
 * Make a token below `parent` (NULL: a root). A token made below a cancelled one is cancelled.
 * Owns:     *out is yours; release it with blitz_token_unref(). Shares the parent until then.
 * Suspends: never. Call from any thread that holds the parent.
 * Returns:  0, -ENOMEM, -EINVAL (nowhere to put it).
 */
BLITZ_API BLITZ_MUST_USE int blitz_token_new(blitz_token *parent, blitz_token **out);

/*
 * Add a handle, or release one. unref ignores NULL. The tokens below live on, and a cancel from above still reaches
 * them.
 * Owns:     ref: shares the token. unref: takes the handle; no future or scope may still use it.
 * Suspends: never. Call from any thread that holds a handle.
 * Returns:  ref: t.
 */
BLITZ_API blitz_token *blitz_token_ref(blitz_token *t);
BLITZ_API void blitz_token_unref(blitz_token *t);

/*
 * Cancel a token and all tokens below it. A token stays cancelled; a second call does nothing.
 * Owns:     borrows the handle until it returns.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_token_cancel(blitz_token *t);

/*
 * True if the token is cancelled.
 * Owns:     borrows the handle until it returns.
 * Suspends: never. Call from any thread.
 * Returns:  true if it is.
 */
BLITZ_API bool blitz_token_is_cancelled(blitz_token *t);

/*
 * Wait until a token is cancelled.
 * Owns:     borrows the handle until it returns.
 * Suspends: until then, `until`, or a cancel of the calling task. Call from anywhere; a plain thread sleeps.
 * Returns:  0 (it is cancelled), -ETIMEDOUT, -ECANCELED (the calling task is cancelled).
 */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int blitz_token_wait(blitz_token *t, blitz_deadline until);

/* blitz_token_wait() as a future, to be awaited or raced against. */
typedef struct blitz_token_future {
    blitz_future future; /* to be awaited */
    void *inside[8];
} blitz_token_future;

/*
 * Make a future that is ready when `t` is cancelled. Revocable.
 * Owns:     borrows the handle until the future is ready or cancelled.
 * Suspends: never. Call from any thread that holds a handle.
 */
BLITZ_API void blitz_token_wait_future_init(blitz_token_future *f, blitz_token *t);

BLITZ_END_DECLS

#endif
