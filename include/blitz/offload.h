/*
 * blitz/offload.h - start a blocking call now, ask for its result later.
 *
 * blitz_blocking() waits until the call has returned. Here the caller gets a handle and continues, also a plain thread: a
 * thread of a runtime's pool makes the call meanwhile (blitz/blocking.h describes the pool).
 *
 *     blitz_offload *o;
 *     blitz_offload_start(query, q, &(blitz_offload_opts){.runtime = rt}, &o);
 *     ...                                                  // other work
 *     if (blitz_offload_wait(o, &result, blitz_after(BLITZ_S)) == 0)
 *         use(q, result);                                  // q is yours again
 *     blitz_offload_unref(o);                              // the call may still run
 *
 * The argument belongs to the call until a wait has returned 0, or a cancel has. If the handle is released before that, the
 * drop function of the options gets the argument: when the call has returned, or at once if it has not begun.
 *
 * A shutdown of the runtime waits for these calls, as for all blocking calls. blitz_runtime_abandon() does not wait for
 * them: those that run continue, and can still be waited for; those that have not begun are cancelled. The handle and its
 * memory outlive the runtime, but not the allocator of the runtime's options.
 */
#ifndef BLITZ_OFFLOAD_H
#define BLITZ_OFFLOAD_H

#include <stdbool.h>

#include "blitz/api.h"
#include "blitz/future.h"
#include "blitz/runtime.h"
#include "blitz/time.h"

BLITZ_BEGIN_DECLS

typedef struct blitz_offload blitz_offload;

/* The options of such a call. A zeroed struct means none. */
typedef struct blitz_offload_opts {
    blitz_runtime *runtime; /* NULL: the runtime of the calling task */
    void (*drop)(void *value,
                 void *ctx); /* called with fn's argument; must not suspend. NULL: none */
    void *ctx;
} blitz_offload_opts;

/*
 * Start a call of fn(arg) on a thread of the pool, now or when a thread is free.
 * Owns:     takes arg on 0; see above. The caller holds the handle; release it with blitz_offload_unref(). Copies the
 *           options; NULL: none.
 * Suspends: never. Call from a task, or from any thread with a runtime in `opts`.
 * Returns:  0, -EINVAL (no function, no runtime), -ENOMEM, -EAGAIN (no thread can be started, and none works),
 *           -ESHUTDOWN. On error fn is not called, and *out is not written.
 */
BLITZ_API BLITZ_MUST_USE int blitz_offload_start(int (*fn)(void *arg), void *arg,
                                                 const blitz_offload_opts *opts,
                                                 blitz_offload **out);

/*
 * Wait until the call has returned. Any number of callers may wait at a time, and again.
 * Owns:     borrows the handle. On 0 the argument is the caller's.
 * Suspends: until fn has returned, the deadline or a cancel. Call from anywhere.
 * Returns:  0, -ETIMEDOUT, -ECANCELED. *result, if not NULL, is what fn returned, or -ECANCELED if
 *           blitz_offload_cancel() or blitz_runtime_abandon() came first; written only on 0.
 */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int blitz_offload_wait(blitz_offload *o, int *result,
                                                               blitz_deadline until);

/*
 * Cancel the call, if it has not begun: fn will not be called.
 * Owns:     borrows the handle. On 0 the argument is the caller's.
 * Suspends: never. Call from any thread.
 * Returns:  0, -EALREADY (it was cancelled before, or its runtime was abandoned), -EBUSY (fn runs, or has
 *           returned).
 */
BLITZ_API int blitz_offload_cancel(blitz_offload *o);

/*
 * True if the call has returned or was cancelled, so that a wait would end at once.
 * Owns:     borrows the handle.
 * Suspends: never. Call from any thread.
 * Returns:  true if it has.
 */
BLITZ_API bool blitz_offload_is_done(blitz_offload *o);

/*
 * Release the handle. A call that has not begun is cancelled, one that runs goes on by itself. NULL is ignored.
 * Owns:     takes the handle.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_offload_unref(blitz_offload *o);

/* blitz_offload_wait() as a future. Revocable: after a cancel the call goes on, and can be waited for again. */
typedef struct blitz_offload_future {
    blitz_future future; /* to be awaited */
    int result;          /* when ready: 0 */
    int value;           /* when ready: what fn returned; -ECANCELED: it was not called */
    void *inside[8];
} blitz_offload_future;

/*
 * Make a future that waits for the end of the call.
 * Owns:     borrows the handle until the future is ready or cancelled.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_offload_wait_future_init(blitz_offload_future *f, blitz_offload *o);

BLITZ_END_DECLS

#endif
