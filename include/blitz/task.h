/*
 * blitz/task.h - functions that run at the same time.
 *
 * A task runs a function on any worker that is free. It may wait anywhere, in any function that it calls. It needs
 * no stack of its own until it waits. A waiting task uses no CPU time.
 *
 *     blitz_task *t;
 *     int rc = blitz_spawn(work, &input, NULL, &t);
 *     ...
 *     rc = blitz_task_join(t, &result, BLITZ_FOREVER);
 *
 * With options, and a pointer as the result:
 *
 *     blitz_spawn_opts opts = {.name = "parser", .stack_bytes = 1 << 20, .drop_result = blitz_drop_free};
 *     rc = blitz_spawn_ptr(parse, text, &opts, &t);
 *     ...
 *     rc = blitz_task_join_ptr(t, &tree, blitz_after(BLITZ_S));    // -ETIMEDOUT: t is still yours
 *     if (rc != 0) {
 *         blitz_task_cancel(t);
 *         blitz_task_detach(t);                                    // its result will be freed
 *     }
 *
 * A task may continue on another thread after any call marked BLITZ_SUSPENDS. The consequences:
 *   errno                            is the new thread's: read it before you wait
 *   _Thread_local, pthread_self()    are the new thread's: do not keep them across a wait
 *   a pthread mutex held             must be unlocked by the thread that locked it: do not wait
 *                                    while you hold one
 *   uselocale(), the signal mask     are the new thread's: set them for the process, or not at all
 *   locals, the heap, files          belong to the task: keep them across a wait
 *   the rounding mode (fenv.h)       belongs to the task. Restore it before the task ends: the next task
 *                                    on that thread may begin with it
 *   exceptions (C++)                 belong to the task: you may wait in a catch block or in a destructor.
 *                                    An exception that leaves the task's function ends the process, after
 *                                    a message that names the task
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

/* The options of a spawn. A zero field, or NULL for the whole struct, means the default. */
typedef struct blitz_spawn_opts {
    blitz_runtime *runtime; /* NULL: the runtime of the calling task */
    const char *name;       /* for dumps and messages; must outlive the task; NULL: none */
    unsigned proc;          /* BLITZ_ON_PROC(n): begin on that proc; 0: on any */
    size_t stack_bytes;     /* of a fiber, rounded up to a class, at most 8 MiB; 0: the runtime's */
    /* Called for a pointer result that was not taken; must not suspend; or NULL. */
    void (*drop_result)(void *value, void *ctx);
    /* Called for the state of a stackless task at its end; or NULL. */
    void (*drop_state)(void *value, void *ctx);
    void *ctx;     /* passed to both functions */
    bool inherits; /* begin with copies of the caller's inherited values: blitz/local.h */
} blitz_spawn_opts;

/*
 * The place in the source, as a string: "server.c:120". As the name of a task, it says in dumps, traces and messages where the
 * task was spawned. It is a constant, and costs a spawn no more than any other name. Old compilers know only the whole path.
 *
 *     blitz_spawn_opts opts = {.name = BLITZ_HERE};
 */
#if defined(__FILE_NAME__)
#define BLITZ_HERE __FILE_NAME__ ":" BLITZ_HERE_LINE_(__LINE__)
#else
#define BLITZ_HERE __FILE__ ":" BLITZ_HERE_LINE_(__LINE__)
#endif
#define BLITZ_HERE_LINE_(line) BLITZ_HERE_TEXT_(line)
#define BLITZ_HERE_TEXT_(line) #line

/* Proc n, from 0 to the runtime's procs - 1. Only the first run is on that proc: after a wait the task continues
 * on any proc. If that proc has no thread and gets none, or runs one task for a second and cannot be taken from it (no
 * other thread can be started), the new task begins on any proc. */
#define BLITZ_ON_PROC(n) ((unsigned)(n) + 1)

/*
 * Start fn(arg) as a task.
 * Owns:     *out is a handle; release it with blitz_task_join() or blitz_task_detach(). A NULL `out` detaches the
 *           task at once.
 * Suspends: never. Call from a task, or from any thread with a runtime in `opts`.
 * Returns:  0, -ENOMEM (no memory, or none for a stack), -EAGAIN (tasks_max of the runtime options is reached),
 *           -ESHUTDOWN (the runtime is shutting down), -EINVAL (no runtime, no function, or no such proc). On
 *           error nothing was started and *out is not written.
 */
BLITZ_API BLITZ_MUST_USE int blitz_spawn(int (*fn)(void *arg), void *arg,
                                         const blitz_spawn_opts *opts, blitz_task **out);

/*
 * Start fn(arg) as a task whose result is a pointer.
 * Owns:     the caller that takes the pointer with blitz_task_join_ptr() owns the object behind it. If no caller
 *           takes it, opts->drop_result gets it when the last handle is released (unless it is NULL). Otherwise as
 *           blitz_spawn().
 * Suspends: never. Call from a task, or from any thread with a runtime in `opts`.
 * Returns:  as blitz_spawn().
 */
BLITZ_API BLITZ_MUST_USE int blitz_spawn_ptr(void *(*fn)(void *arg), void *arg,
                                             const blitz_spawn_opts *opts, blitz_task **out);

/*
 * Wait for a task to end.
 * Owns:     takes the handle when the task has ended; otherwise it stays yours.
 * Suspends: until the task has ended, `until`, or a cancel of the caller. Without a deadline, a cancel of the
 *           caller is passed on to the task, and the join returns when the task has ended. Call from a task or any
 *           thread; not from the task itself.
 * Returns:  0 and, in *result (may be NULL), the value that the task's function returned; -ETIMEDOUT, -ECANCELED
 *           (the handle is still yours); -EDEADLK (a task that joins itself); -EINVAL (no task). For a task with a
 *           pointer result *result is 0.
 */
BLITZ_API BLITZ_SUSPENDS int blitz_task_join(blitz_task *t, int *result, blitz_deadline until);

/*
 * Wait for a task whose result is a pointer.
 * Owns:     *out is yours. If a task has several handles, the first join gets the pointer and the others get NULL.
 * Suspends: as blitz_task_join().
 * Returns:  0 and *out (NULL if the task left no pointer); else as blitz_task_join(), and *out is not written.
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
 * Return another handle of the same task, to be released like the first. Use it to keep blitz_task_current(), or
 * to let several callers join.
 * Owns:     shares the task.
 * Suspends: never. Call from any thread that holds a handle.
 * Returns:  t.
 */
BLITZ_API blitz_task *blitz_task_ref(blitz_task *t);

/*
 * Release a handle without a join; the task runs on. NULL is ignored.
 * Owns:     takes the handle.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_task_detach(blitz_task *t);

/*
 * Ask a task to stop: its current or next wait returns -ECANCELED, and the task ends by returning.
 * NULL is ignored.
 * Owns:     borrows the handle until it returns.
 * Suspends: never. Call from any thread that holds a handle.
 */
BLITZ_API void blitz_task_cancel(blitz_task *t);

/*
 * True if the task has ended. Then everything it did is visible to the caller. t must not be NULL.
 * Owns:     borrows the handle until it returns.
 * Suspends: never. Call from any thread that holds a handle.
 * Returns:  true if it has.
 */
BLITZ_API bool blitz_task_is_done(blitz_task *t);

/*
 * Return a number that no other task of the process has, now or later.
 * Owns:     borrows the handle until it returns.
 * Suspends: never. Call from any thread that holds a handle.
 * Returns:  the number. For NULL: that of the calling task, or 0 on a plain thread.
 */
BLITZ_API uint64_t blitz_task_id(blitz_task *t);

/*
 * Return the name that the task was spawned with.
 * Owns:     borrows the handle until it returns. The string belongs to the code that named the task.
 * Suspends: never. Call from any thread that holds a handle.
 * Returns:  the name (for NULL: that of the calling task), or NULL if there is none.
 */
BLITZ_API const char *blitz_task_name(blitz_task *t);

/*
 * Return the calling task.
 * Owns:     borrowed: the handle is valid while the task runs; do not release it. blitz_task_ref() makes a handle
 *           that you can keep.
 * Suspends: never.
 * Returns:  the task; NULL on a plain thread.
 */
BLITZ_API blitz_task *blitz_task_current(void);

/*
 * Let other ready tasks run first.
 * Suspends: until the tasks that were ready have had a turn. On a plain thread it does nothing.
 */
BLITZ_API BLITZ_SUSPENDS void blitz_yield(void);

/*
 * True if the calling task is cancelled and not shielded.
 * Suspends: never.
 * Returns:  true if it is; false on a plain thread.
 */
BLITZ_API bool blitz_is_cancelled(void);

/*
 * Between shield and unshield a cancel has no effect; it takes effect after the unshield. Use them for clean-up
 * that must wait. They nest, up to 255 deep. No effect on a plain thread.
 * Suspends: never.
 */
BLITZ_API void blitz_shield(void);
BLITZ_API void blitz_unshield(void);

BLITZ_END_DECLS

#endif
