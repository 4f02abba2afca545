/*
 * blitz/scope.h - tasks that end before the block that started them.
 *
 *     blitz_scope s;
 *     blitz_scope_open(&s, NULL, blitz_after(2 * BLITZ_S));
 *     for (int i = 0; i < n; i++)
 *         blitz_scope_spawn(&s, fetch, &page[i], NULL);
 *     int err = blitz_scope_close(&s);            // all have ended: page[] may go out of scope
 *
 * Closing waits for every task that was spawned into the scope. The first one to fail (its function
 * returns a negative number) has the others cancelled, and its error is what closing returns. So do
 * a deadline, a token (below), blitz_scope_cancel() and a cancel of the task that closes. Whatever
 * the reason, closing returns when all have ended, not before.
 *
 * Scopes nest by themselves: a task of a scope that opens one of its own is cancelled in its close,
 * which passes the cancel on.
 *
 * The scope lies in your memory, from open to close, and is not moved meanwhile. Tasks in it may
 * spawn more into it as long as they run.
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

/* Zero everywhere (or NULL for the whole) means the defaults. */
typedef struct blitz_scope_opts {
    blitz_runtime *runtime; /* where its tasks run; NULL: that of the calling task */
    blitz_token *token;     /* if it is cancelled, so is the scope; kept until close; NULL: none */
} blitz_scope_opts;

typedef struct blitz_scope {
    blitz_future future; /* ready when all have ended; see blitz_scope_close() */
    int result;          /* when ready: what blitz_scope_close() returns */
    void *inside[36];
} blitz_scope;

/*
 * Open a scope.
 * Owns:     the memory stays the caller's; it is in use until the scope is closed. Borrows the token
 *           until then.
 * Suspends: never. Call from a task, or from any thread with a runtime in `opts`.
 * Returns:  0, -EINVAL (no scope, or no runtime). From a plain thread the deadline is looked at in
 *           blitz_scope_close(), and not before.
 */
BLITZ_API BLITZ_MUST_USE int blitz_scope_open(blitz_scope *s, const blitz_scope_opts *opts,
                                              blitz_deadline until);

/*
 * Start fn(arg) as a task of the scope. It fails the scope by returning a negative number.
 * Owns:     nothing is handed out: the scope joins it.
 * Suspends: never. Call from whoever opened the scope, from a task of it, or from anybody else who has
 *           ended before it is closed: its memory must still be there.
 * Returns:  0, -ECANCELED (the scope is: nothing was started), -EPIPE (it is closed), or as
 *           blitz_spawn().
 */
BLITZ_API BLITZ_MUST_USE int blitz_scope_spawn(blitz_scope *s, int (*fn)(void *arg), void *arg,
                                               const blitz_spawn_opts *opts);

/*
 * Ask every task of the scope to stop, and those that have not begun. Closing returns -ECANCELED,
 * unless there was another reason before.
 * Owns:     borrows the scope until it returns.
 * Suspends: never. Call from any thread, before the scope is closed.
 */
BLITZ_API void blitz_scope_cancel(blitz_scope *s);

/*
 * Is the scope cancelled, for whatever reason? For the task that opened it, which is not.
 * Owns:     borrows the scope until it returns.
 * Suspends: never. Call from any thread, before the scope is closed.
 * Returns:  whether it is.
 */
BLITZ_API bool blitz_scope_is_cancelled(blitz_scope *s);

/*
 * Wait until every task of the scope has ended. Must be called once for each open; or s->future is
 * awaited instead. With a deadline that is a time of grace: blitz_await(&s.future, until) gives the
 * tasks until then, has the rest cancelled, and returns when all have ended: 0, and s.result is what
 * closing would have returned; or -ETIMEDOUT.
 * Owns:     the memory is the caller's alone again.
 * Suspends: until all have ended. A cancel of the calling task is passed on to them. A stackless task
 *           awaits s->future instead, which is *pinned* and has the same as its output.
 * Returns:  0; the error of the first task that failed; -ETIMEDOUT (the deadline); -ECANCELED.
 */
BLITZ_API BLITZ_SUSPENDS int blitz_scope_close(blitz_scope *s);

/* ---- tokens ---- */

/*
 * A token says "stop" to whoever looks at it or waits for it. Tokens are a tree: cancelling one
 * cancels those below it and no others. It is counted, and may be held, asked and cancelled anywhere.
 *
 * Make one, below `parent` (NULL: a root). Below a cancelled one it is cancelled.
 * Owns:     *out is yours; give it up with blitz_token_unref(). Shares the parent until then.
 * Suspends: never. Call from any thread that holds the parent.
 * Returns:  0, -ENOMEM, -EINVAL (nowhere to put it).
 */
BLITZ_API BLITZ_MUST_USE int blitz_token_new(blitz_token *parent, blitz_token **out);

/*
 * One more handle, and one less. NULL is ignored by the latter. Tokens below live on, and are still
 * reached from above.
 * Owns:     ref: shares the token. unref: takes the handle; no future or scope of it may be out.
 * Suspends: never. Call from any thread that holds a handle.
 * Returns:  ref: t.
 */
BLITZ_API blitz_token *blitz_token_ref(blitz_token *t);
BLITZ_API void blitz_token_unref(blitz_token *t);

/*
 * Cancel a token and all below it. Once is for good; again does nothing.
 * Owns:     borrows the handle until it returns.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_token_cancel(blitz_token *t);

/*
 * Was it cancelled?
 * Owns:     borrows the handle until it returns.
 * Suspends: never. Call from any thread.
 * Returns:  whether it is.
 */
BLITZ_API bool blitz_token_is_cancelled(blitz_token *t);

/*
 * Wait until it is cancelled.
 * Owns:     borrows the handle until it returns.
 * Suspends: until then, `until`, or a cancel of the calling task. Call from anywhere; a plain thread sleeps.
 * Returns:  0 (it is cancelled), -ETIMEDOUT, -ECANCELED (the calling task is).
 */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int blitz_token_wait(blitz_token *t, blitz_deadline until);

/* blitz_token_wait() as a future, to be awaited or raced against. */
typedef struct blitz_token_future {
    blitz_future future; /* to be awaited */
    void *inside[5];
} blitz_token_future;

/*
 * The cancelling of `t`. Revocable.
 * Owns:     borrows the handle until the future is ready or cancelled.
 * Suspends: never. Call from any thread that holds a handle.
 */
BLITZ_API void blitz_token_wait_future_init(blitz_token_future *f, blitz_token *t);

BLITZ_END_DECLS

#endif
