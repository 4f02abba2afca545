/*
 * blitz/shutdown.h - end a program in order: stop accepting, finish the work, clean up.
 *
 * A coordinator knows three moments, each after the other:
 *
 *   begun     a signal has come, or blitz_shutdown_begin(). Listeners are told: they stop to accept. No new work is
 *             let in. Work in progress goes on.
 *   forced    the drain has taken too long, or a second signal has come, or blitz_shutdown_force(). The token of the
 *             coordinator is cancelled, and with it all scopes and waits below it.
 *   over      no work is left, and the hooks have run, the last one first.
 *
 *     static int serve(void *arg)                         // a connection
 *     {
 *         if (blitz_shutdown_enter(stop) != 0) return 0;  // too late
 *         ...
 *         blitz_shutdown_leave(stop);
 *     }
 *
 *     static int accepts(void *arg)                       // until it is told
 *     {
 *         blitz_sync_future told;
 *         blitz_shutdown_wait_future_init(&told, stop);
 *         ... blitz_first_of((blitz_future *[]){&accept.future, &told.future}, 2, BLITZ_FOREVER) ...
 *     }
 *
 *     blitz_shutdown_new(&(blitz_shutdown_opts){.drain = 10 * BLITZ_S}, &stop);
 *     blitz_shutdown_hook(stop, close_database, db);
 *     blitz_scope_open(&s, &(blitz_scope_opts){.token = blitz_shutdown_token(stop)}, BLITZ_FOREVER);
 *     blitz_scope_spawn(&s, accepts, NULL, NULL);
 *     int rc = blitz_shutdown_run(stop, BLITZ_FOREVER);   // waits for Ctrl-C or SIGTERM, and does the rest
 *     blitz_scope_close(&s);
 *
 * Ctrl-C. The first one begins. A second one forces at once. From then on the signals have their earlier action again:
 * a third one ends the process.
 *
 * The end of a runtime itself, blitz_runtime_shutdown(), blitz_runtime_abandon() and the end of blitz_run(), comes
 * after all this. It waits for some parts, cancels others and abandons the rest:
 *
 *                           shutdown                                       abandon: the same, except
 *   fibers                  cancelled and waited for
 *   stackless tasks         cancelled (polled once more) and waited for
 *   forked jobs             end with the task that joins them
 *   futures                 end with the task that awaits them, each by its class (docs/cancellation.md)
 *   blocking calls          waited for: a function on a thread cannot        calls whose callers have left go on, on
 *                           be stopped. Calls that have not begun and          threads of their own
 *                           whose callers have left are dropped
 *   timers and sleeps       their waits return -ECANCELED; none is waited for
 *   operations in flight    taken back, or waited for if the kernel has the buffer
 *   endless loops           waited for until the deadline: -ETIMEDOUT, and the log names the task and its place.
 *                           A loop with BLITZ_POLL() or blitz_is_cancelled() can end
 *   processes               not touched: they go on
 *   signal listeners        not touched: they belong to the process
 *   plain threads           not touched; their waits for tasks of the runtime end with the tasks
 */
#ifndef BLITZ_SHUTDOWN_H
#define BLITZ_SHUTDOWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "blitz/api.h"
#include "blitz/future.h"
#include "blitz/scope.h"
#include "blitz/sync_future.h"
#include "blitz/time.h"

BLITZ_BEGIN_DECLS

typedef struct blitz_shutdown blitz_shutdown;

/* A zero field, or NULL for the whole struct, means the default. */
typedef struct blitz_shutdown_opts {
    blitz_duration drain; /* the time for work in progress before it is cancelled; 0: 30 s */
    bool no_signals;      /* blitz_shutdown_run() does not listen to SIGINT and SIGTERM */
} blitz_shutdown_opts;

/*
 * Make a coordinator.
 * Owns:     copies the options. The caller holds the first reference; blitz_shutdown_unref().
 * Suspends: never. Call from any thread.
 * Returns:  0, -EINVAL (no out), -ENOMEM. *out is written only on 0.
 */
BLITZ_API BLITZ_MUST_USE int blitz_shutdown_new(const blitz_shutdown_opts *opts,
                                                blitz_shutdown **out);

/*
 * Add a reference, or release one; the last release frees it. unref ignores NULL. Hooks that have not run are not run.
 * Owns:     ref: a reference more; unref: takes one.
 * Suspends: never. Call from any thread.
 * Returns:  ref: s.
 */
BLITZ_API blitz_shutdown *blitz_shutdown_ref(blitz_shutdown *s);
BLITZ_API void blitz_shutdown_unref(blitz_shutdown *s);

/*
 * Begin: tell the listeners, and let no new work in. Or force: begin, and cancel the token. A second call does nothing.
 * Owns:     borrows s until it returns.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_shutdown_begin(blitz_shutdown *s);
BLITZ_API void blitz_shutdown_force(blitz_shutdown *s);

/*
 * True if it has begun; if it was forced.
 * Owns:     borrows s until it returns.
 * Suspends: never. Call from any thread.
 * Returns:  see above.
 */
BLITZ_API bool blitz_shutdown_is_begun(blitz_shutdown *s);
BLITZ_API bool blitz_shutdown_is_forced(blitz_shutdown *s);

/*
 * Wait until it has begun. For listeners; most use the future, in a blitz_select or a
 * blitz_first_of().
 * Owns:     borrows s until it returns.
 * Suspends: until it has begun, `until`, or a cancel. Call from anywhere.
 * Returns:  0, -ETIMEDOUT, -ECANCELED.
 */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int blitz_shutdown_wait(blitz_shutdown *s,
                                                                blitz_deadline until);

/*
 * blitz_shutdown_wait() as a future. A cancel changes nothing.
 * Owns:     borrows s until it is ready or cancelled.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_shutdown_wait_future_init(blitz_sync_future *f, blitz_shutdown *s);

/*
 * Enter: count the caller's work as work in progress, which a shutdown waits for. Leave when it has ended.
 * Owns:     borrows s until it returns. Each enter that returned 0 needs one leave.
 * Suspends: never. Call from any thread.
 * Returns:  enter: 0, -ESHUTDOWN (it has begun: do not start the work), -EOVERFLOW (2^31 of them).
 */
BLITZ_API BLITZ_MUST_USE int blitz_shutdown_enter(blitz_shutdown *s);
BLITZ_API void blitz_shutdown_leave(blitz_shutdown *s);

/*
 * Enter once more, for work that belongs to the caller's: the caller has entered and not left. It succeeds also after
 * the begin. An accepting task uses it for the connections that the kernel had accepted before.
 * Owns:     borrows s until it returns. It needs a leave of its own.
 * Suspends: never. Call from any thread.
 * Returns:  0, -EOVERFLOW.
 */
BLITZ_API BLITZ_MUST_USE int blitz_shutdown_enter_more(blitz_shutdown *s);

/*
 * Count the work in progress: how many have entered and not left.
 * Owns:     borrows s until it returns.
 * Suspends: never. Call from any thread.
 * Returns:  the count.
 */
BLITZ_API uint32_t blitz_shutdown_left(blitz_shutdown *s);

/*
 * Wait until it has begun and no work is left.
 * Owns:     borrows s until it returns.
 * Suspends: until then, `until`, or a cancel. Call from anywhere.
 * Returns:  0, -ETIMEDOUT, -ECANCELED.
 */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int blitz_shutdown_drain(blitz_shutdown *s,
                                                                 blitz_deadline until);

/*
 * blitz_shutdown_drain() as a future. A cancel changes nothing.
 * Owns:     borrows s until it is ready or cancelled.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_shutdown_drain_future_init(blitz_sync_future *f, blitz_shutdown *s);

/*
 * Return the token that is cancelled when the shutdown is forced: for scopes, and for waits.
 * Owns:     the token lives as long as s; blitz_token_ref() to keep it longer.
 * Suspends: never. Call from any thread.
 * Returns:  the token.
 */
BLITZ_API blitz_token *blitz_shutdown_token(blitz_shutdown *s);

/*
 * Add a function that blitz_shutdown_run() calls at the end, after those that are added later. It may wait, also if the
 * shutdown was forced or the calling task was cancelled; give its waits a deadline.
 * Owns:     `arg` is the hook's.
 * Suspends: never. Call from any thread.
 * Returns:  0, -EINVAL (no function), -ENOMEM, -ESHUTDOWN (the hooks have run).
 */
BLITZ_API BLITZ_MUST_USE int blitz_shutdown_hook(blitz_shutdown *s, void (*hook)(void *arg),
                                                 void *arg);

/*
 * Do all of it, once: wait for a signal or a begin, drain until the deadline of the options, force if that was not
 * enough, wait for the rest, and run the hooks. A cancel of the calling task forces.
 * Owns:     borrows s until it returns.
 * Suspends: until no work is left, or `until`; then for the hooks. Call from anywhere.
 * Returns:  0 (all work has ended by itself), 1 (it was forced, and all work has ended). -ETIMEDOUT: work is left at
 *           `until`; the hooks have run. -EALREADY (a second call). -ENOMEM, -EAGAIN: it cannot listen to the signals;
 *           nothing has happened.
 */
BLITZ_API BLITZ_SUSPENDS int blitz_shutdown_run(blitz_shutdown *s, blitz_deadline until);

BLITZ_END_DECLS

#endif
