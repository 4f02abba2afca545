/*
 * blitz/task.h - functions that run at the same time.
 *
 * A task runs a function on whatever worker is free. It may wait anywhere, in any function it
 * calls; it costs no stack until it does. Waiting tasks take nobody's time.
 *
 *     blitz_task *t;
 *     int rc = blitz_spawn(work, &input, NULL, &t);
 *     ...
 *     rc = blitz_task_join(t, BLITZ_FOREVER);
 *
 * A task may continue on another thread after any call marked BLITZ_SUSPENDS. What that means:
 *   errno                            is the new thread's: read it before you wait
 *   _Thread_local, pthread_self()    are the new thread's: do not keep them across a wait
 *   a pthread mutex held             must be unlocked by the thread that locked it: do not wait
 *                                    while you hold one
 *   locals, the heap, files          are the task's: keep them as you like
 */
#ifndef BLITZ_TASK_H
#define BLITZ_TASK_H

#include <stdint.h>

#include "blitz/api.h"
#include "blitz/runtime.h"
#include "blitz/time.h"

BLITZ_BEGIN_DECLS

typedef struct blitz_task blitz_task;

/* How a task is to be started. Zero everywhere (or NULL for the whole) means the defaults. */
typedef struct blitz_spawn_opts {
    blitz_runtime *runtime; /* NULL: that of the calling task */
    const char *name;       /* for dumps and messages; must outlive the task; NULL: none */
} blitz_spawn_opts;

/*
 * Start fn(arg) as a task.
 * Owns:     *out is a handle; give it up with blitz_task_join() or blitz_task_detach(). A NULL
 *           `out` detaches at once.
 * Suspends: never. Call from a task, or from any thread with a runtime in `opts`.
 * Returns:  0, -ENOMEM, -ESHUTDOWN (the runtime is shutting down), -EINVAL (no runtime, or no
 *           function). On error nothing was started and *out is not written.
 */
BLITZ_API int blitz_spawn(int (*fn)(void *arg), void *arg, const blitz_spawn_opts *opts,
                          blitz_task **out);

/*
 * Wait for a task to end.
 * Owns:     takes the handle when the task has ended; otherwise it stays yours.
 * Suspends: until the task has ended, `until`, or a cancel of the caller; without a deadline a
 *           cancel of the caller is passed on to the task, and the join returns when that has
 *           ended. Call from a task or any thread; not from the task itself.
 * Returns:  what the task's function returned, in *result (may be NULL), and 0; -ETIMEDOUT,
 *           -ECANCELED (the handle is still yours); -EDEADLK (a task that joins itself).
 */
BLITZ_API BLITZ_SUSPENDS int blitz_task_join(blitz_task *t, blitz_deadline until, int *result);

/*
 * Let a task go its way.
 * Owns:     takes the handle.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_task_detach(blitz_task *t);

/*
 * Ask a task to stop: its current or next wait returns -ECANCELED, and it unwinds by returning.
 * Owns:     borrows the handle until it returns.
 * Suspends: never. Call from any thread that holds a handle.
 */
BLITZ_API void blitz_task_cancel(blitz_task *t);

/*
 * Has it ended? If so, all it did is visible to the caller.
 * Owns:     borrows the handle until it returns.
 * Suspends: never. Call from any thread that holds a handle.
 * Returns:  1 or 0.
 */
BLITZ_API int blitz_task_is_done(blitz_task *t);

/*
 * A number no other task of the process ever has.
 * Owns:     borrows the handle until it returns.
 * Suspends: never. Call from any thread that holds a handle.
 * Returns:  the number; of the calling task for NULL, and 0 if that is none.
 */
BLITZ_API uint64_t blitz_task_id(blitz_task *t);

/*
 * Let others run first.
 * Suspends: until the others that were ready have had a turn. On a plain thread it does nothing.
 */
BLITZ_API BLITZ_SUSPENDS void blitz_yield(void);

/*
 * Was the calling task asked to stop (and stands under no shield)?
 * Suspends: never.
 * Returns:  1 or 0; 0 on a plain thread.
 */
BLITZ_API int blitz_is_cancelled(void);

/*
 * Between shield and unshield a cancel waits: for clean-up that must wait itself. They nest, up to
 * 255 deep. No effect on a plain thread.
 * Suspends: never.
 */
BLITZ_API void blitz_shield(void);
BLITZ_API void blitz_unshield(void);

BLITZ_END_DECLS

#endif
