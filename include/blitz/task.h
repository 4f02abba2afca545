/*
 * blitz/task.h - functions that run at the same time.
 *
 * A task runs a function on whatever worker is free. It may wait anywhere, in any function it
 * calls; it costs no stack until it does. Waiting tasks take nobody's time.
 *
 *     blitz_task *t;
 *     int rc = blitz_spawn(work, &input, NULL, &t);
 *     ...
 *     rc = blitz_task_join(t, &result, BLITZ_FOREVER);
 *
 * With wishes, and a pointer for a result:
 *
 *     blitz_spawn_opts opts = {.name = "parser", .stack_bytes = 1 << 20, .drop_result = blitz_drop_free};
 *     rc = blitz_spawn_ptr(parse, text, &opts, &t);
 *     ...
 *     rc = blitz_task_join_ptr(t, &tree, blitz_after(BLITZ_S));    // -ETIMEDOUT: t is still ours
 *     if (rc != 0) {
 *         blitz_task_cancel(t);
 *         blitz_task_detach(t);                                    // and whatever it returns is freed
 *     }
 *
 * A task may continue on another thread after any call marked BLITZ_SUSPENDS. What that means:
 *   errno                            is the new thread's: read it before you wait
 *   _Thread_local, pthread_self()    are the new thread's: do not keep them across a wait
 *   a pthread mutex held             must be unlocked by the thread that locked it: do not wait
 *                                    while you hold one
 *   uselocale(), the signal mask     are the new thread's: set them for the process, or not at all
 *   locals, the heap, files          are the task's: keep them as you like
 *   the rounding mode (fenv.h)       is the task's. Put it back before the task ends: the next task
 *                                    on that thread may begin with it
 *   exceptions (C++)                 are the task's: wait in a catch block or in a destructor as you
 *                                    like. An exception that leaves the task's function ends the
 *                                    process, after a line that names the task
 */
#ifndef BLITZ_TASK_H
#define BLITZ_TASK_H

#include <stdbool.h>
#include <stddef.h>
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
    unsigned proc;          /* BLITZ_ON_PROC(n): it begins on that proc; 0: on any */
    size_t stack_bytes;     /* of a fiber, rounded up to a class, to 8 MiB; 0: the runtime's */
    /* For a pointer result that was not taken; must not suspend; or NULL. */
    void (*drop_result)(void *value, void *ctx);
    /* For the state of a stackless task at its end; or NULL. */
    void (*drop_state)(void *value, void *ctx);
    void *ctx; /* what both are called with */
} blitz_spawn_opts;

/* Proc n, of 0 to the runtime's procs - 1. Only the first run is there: after a wait a task goes on
 * wherever there is room. */
#define BLITZ_ON_PROC(n) ((unsigned)(n) + 1)

/*
 * Start fn(arg) as a task.
 * Owns:     *out is a handle; give it up with blitz_task_join() or blitz_task_detach(). A NULL
 *           `out` detaches at once.
 * Suspends: never. Call from a task, or from any thread with a runtime in `opts`.
 * Returns:  0, -ENOMEM (no memory, or none for a stack), -EAGAIN (as many live as the runtime options'
 *           tasks_max allows), -ESHUTDOWN (the runtime is shutting down), -EINVAL (no runtime, no
 *           function, or no such proc). On error nothing was started and *out is not written.
 */
BLITZ_API BLITZ_MUST_USE int blitz_spawn(int (*fn)(void *arg), void *arg,
                                         const blitz_spawn_opts *opts, blitz_task **out);

/*
 * Start fn(arg) as a task whose result is a pointer.
 * Owns:     whoever takes the pointer with blitz_task_join_ptr() owns what it leads to. If nobody
 *           does, opts->drop_result gets it when the last handle is given up (not NULL pointers). Else as
 *           blitz_spawn().
 * Suspends: never. Call from a task, or from any thread with a runtime in `opts`.
 * Returns:  as blitz_spawn().
 */
BLITZ_API BLITZ_MUST_USE int blitz_spawn_ptr(void *(*fn)(void *arg), void *arg,
                                             const blitz_spawn_opts *opts, blitz_task **out);

/*
 * Wait for a task to end.
 * Owns:     takes the handle when the task has ended; otherwise it stays yours.
 * Suspends: until the task has ended, `until`, or a cancel of the caller; without a deadline a
 *           cancel of the caller is passed on to the task, and the join returns when that has
 *           ended. Call from a task or any thread; not from the task itself.
 * Returns:  what the task's function returned, in *result (may be NULL), and 0; -ETIMEDOUT,
 *           -ECANCELED (the handle is still yours); -EDEADLK (a task that joins itself); -EINVAL
 *           (no task). A task with a pointer result has returned 0.
 */
BLITZ_API BLITZ_SUSPENDS int blitz_task_join(blitz_task *t, int *result, blitz_deadline until);

/*
 * The same for a task whose result is a pointer.
 * Owns:     *out is yours. If a task has several handles, the first to ask gets the pointer, the
 *           others NULL.
 * Suspends: as blitz_task_join().
 * Returns:  0 and *out (NULL from a task that left no pointer); else as blitz_task_join(), and *out
 *           is not written.
 */
BLITZ_API BLITZ_SUSPENDS int blitz_task_join_ptr(blitz_task *t, void **out, blitz_deadline until);

/*
 * Join a task if it has ended.
 * Owns:     takes the handle on 0; otherwise it stays yours.
 * Suspends: never. Call from any thread.
 * Returns:  0 and *result (may be NULL), as blitz_task_join(); -EAGAIN (it has not ended), -EDEADLK
 *           (a task that joins itself), -EINVAL (no task).
 */
BLITZ_API BLITZ_MUST_USE int blitz_task_try_join(blitz_task *t, int *result);

/*
 * One more handle of the same task, to be given up like the first: to keep blitz_task_current()
 * for somebody else, or for several who join.
 * Owns:     shares the task.
 * Suspends: never. Call from any thread that holds a handle.
 * Returns:  t.
 */
BLITZ_API blitz_task *blitz_task_ref(blitz_task *t);

/*
 * Let a task go its way. NULL is ignored.
 * Owns:     takes the handle.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_task_detach(blitz_task *t);

/*
 * Ask a task to stop: its current or next wait returns -ECANCELED, and it unwinds by returning.
 * NULL is ignored.
 * Owns:     borrows the handle until it returns.
 * Suspends: never. Call from any thread that holds a handle.
 */
BLITZ_API void blitz_task_cancel(blitz_task *t);

/*
 * Has it ended? If so, all it did is visible to the caller. Not to be asked of NULL.
 * Owns:     borrows the handle until it returns.
 * Suspends: never. Call from any thread that holds a handle.
 * Returns:  whether it has.
 */
BLITZ_API bool blitz_task_is_done(blitz_task *t);

/*
 * A number no other task of the process ever has.
 * Owns:     borrows the handle until it returns.
 * Suspends: never. Call from any thread that holds a handle.
 * Returns:  the number; of the calling task for NULL, and 0 if that is none.
 */
BLITZ_API uint64_t blitz_task_id(blitz_task *t);

/*
 * The name it was spawned with.
 * Owns:     borrows the handle until it returns. The string is whoever's named the task.
 * Suspends: never. Call from any thread that holds a handle.
 * Returns:  the name; of the calling task for NULL; NULL if there is none.
 */
BLITZ_API const char *blitz_task_name(blitz_task *t);

/*
 * The calling task.
 * Owns:     borrowed: the handle is valid while the task runs, and is not given up.
 *           blitz_task_ref() makes one that can be kept.
 * Suspends: never.
 * Returns:  the task; NULL on a plain thread.
 */
BLITZ_API blitz_task *blitz_task_current(void);

/*
 * Let others run first.
 * Suspends: until the others that were ready have had a turn. On a plain thread it does nothing.
 */
BLITZ_API BLITZ_SUSPENDS void blitz_yield(void);

/*
 * Was the calling task asked to stop (and stands under no shield)?
 * Suspends: never.
 * Returns:  whether it was; false on a plain thread.
 */
BLITZ_API bool blitz_is_cancelled(void);

/*
 * Between shield and unshield a cancel waits: for clean-up that must wait itself. They nest, up to
 * 255 deep. No effect on a plain thread.
 * Suspends: never.
 */
BLITZ_API void blitz_shield(void);
BLITZ_API void blitz_unshield(void);

BLITZ_END_DECLS

#endif
