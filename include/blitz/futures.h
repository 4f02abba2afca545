/*
 * blitz/futures.h - the things one can wait for, as values.
 *
 * A fiber calls blitz_sleep() or blitz_task_join() and needs none of this. A stackless task
 * (blitz/poll.h) has no stack for the call to stand on, so it keeps what it waits for in its state:
 * a struct whose first member is a blitz_future. They can be awaited from fibers and plain threads,
 * too.
 *
 * The memory is yours, from init until the future was ready or cancelled; do not move or copy it in
 * between. Only the fields with a comment are yours to read. Unless they say otherwise they are
 * revocable (blitz/future.h): a cancel undoes the wait and nothing else.
 */
#ifndef BLITZ_FUTURES_H
#define BLITZ_FUTURES_H

#include "blitz/api.h"
#include "blitz/future.h"
#include "blitz/task.h"
#include "blitz/time.h"

BLITZ_BEGIN_DECLS

/* A moment. Ready when it has come. */
typedef struct blitz_sleep_future {
    blitz_future future; /* to be awaited */
    blitz_deadline when; /* the moment */
    void *inside[10];
} blitz_sleep_future;

/*
 * A sleep that ends at `when`. BLITZ_FOREVER never comes.
 * Owns:     the memory stays the caller's.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_sleep_until_future_init(blitz_sleep_future *f, blitz_deadline when);

/* blitz_task_join() as a future. Ready when the task has ended. */
typedef struct blitz_join_future {
    blitz_future future; /* to be awaited; its output is `value`, or `result` if that is not 0 */
    int result;          /* 0: ready, the handle is taken; -EINPROGRESS: not ready, it is yours;
                          * -EDEADLK: a task that joins itself; -EINVAL: no task */
    int value;           /* when ready: what the task returned */
    void *pointer;       /* when ready: the pointer it left, yours now; NULL if none */
    void *inside[9];
} blitz_join_future;

/*
 * The end of `t`.
 * Owns:     borrows the handle; takes it when the future is ready with result 0. If the wait is
 *           given up (a deadline, a cancel of the waiting task), the handle is still yours.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_task_join_future_init(blitz_join_future *f, blitz_task *t);

/*
 * The end of `t`, whatever comes: a cancel of the waiting task (or of the future) is passed on to
 * `t`, and the wait ends when `t` has. This is what blitz_task_join() without a deadline does. It is
 * a *pinned* future.
 * Owns:     borrows the handle; takes it when the future is ready with result 0.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_task_join_linked_future_init(blitz_join_future *f, blitz_task *t);

/* ---- small ones, to make others of ---- */

/* Ready from the start, or never. */
typedef struct blitz_ready_future {
    blitz_future future; /* to be awaited */
    int result;          /* what it was made with */
} blitz_ready_future;

/*
 * A future that is ready, with that result.
 * Owns:     the memory stays the caller's.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_ready_future_init(blitz_ready_future *f, int result);

/*
 * A future that never is ready. One that may be shared by all: it has no state.
 * Owns:     nobody's: it is constant, and always there.
 * Suspends: never. Call from any thread.
 * Returns:  the future.
 */
BLITZ_API blitz_future *blitz_pending_future(void);

/* A future that is made when it is first asked. */
typedef struct blitz_defer_future {
    blitz_future future; /* to be awaited */
    int result;          /* when ready: that of what was made; -ECANCELED if it was undone */
    int step;
    blitz_future *(*make)(void *arg);
    void *arg;
    blitz_future *made; /* what make returned */
} blitz_defer_future;

/*
 * make(arg) is called at the first poll and returns the future to wait for, in memory of yours
 * (NULL: none, it is ready with output 0). One that is never polled is never made. It counts as
 * *pinned*, because what will be made may be: after a cancel it is polled until it is ready, which is
 * at once if what was made is not pinned.
 * Owns:     borrows `arg` and what is made until the future is ready, or the cancel was answered.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_defer_future_init(blitz_defer_future *f, blitz_future *(*make)(void *arg),
                                       void *arg);

/* A future, and a function of what came of it. */
typedef struct blitz_map_future {
    blitz_future future; /* to be awaited */
    blitz_future *child;
    int (*fn)(void *arg, blitz_future *child);
    void *arg;
    int result; /* when ready: what fn returned */
    int step;
} blitz_map_future;

/*
 * When `child` is ready, fn(arg, child) is called, once; what it returns is the output. It is called
 * inside a poll: it should not wait. The class is the child's; a pinned child that completes after a
 * cancel is mapped, too.
 * Owns:     borrows `child` and `arg` until the future is ready or cancelled.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_map_future_init(blitz_map_future *f, blitz_future *child,
                                     int (*fn)(void *arg, blitz_future *child), void *arg);

/* One future after the other. */
typedef struct blitz_then_future {
    blitz_future future; /* to be awaited */
    int result;          /* when ready: the second's; the first's if that failed; -ECANCELED */
    int step;
    blitz_future *first;
    blitz_future *(*next)(void *arg, blitz_future *first);
    void *arg;
    blitz_future *second; /* what next returned; NULL until then */
} blitz_then_future;

/*
 * When `first` is ready with an output of 0 or more, next(arg, first) returns the second, in memory
 * of yours, or NULL for none: then the first's output is the output. If the first fails, next is
 * not called. It counts as *pinned*, as blitz_defer_future_init() does and for the same reason.
 * Owns:     borrows both futures and `arg` until the future is ready, or the cancel was answered.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_then_future_init(blitz_then_future *f, blitz_future *first,
                                      blitz_future *(*next)(void *arg, blitz_future *first),
                                      void *arg);

BLITZ_END_DECLS

#endif
