/*
 * blitz/futures.h - common waits as futures: a sleep, a join, and futures made of others.
 *
 * A fiber calls blitz_sleep() or blitz_task_join() and needs none of this. A stackless task (blitz/poll.h) has no
 * stack to wait on. So it keeps the future that it waits for in its state: a struct whose first member is a
 * blitz_future. Fibers and plain threads can await these futures, too.
 *
 * The memory is yours, from init until the future is ready or cancelled; do not move or copy it in between. You may
 * read only the fields that have a comment. Unless a comment says otherwise, a future here is revocable
 * (blitz/future.h): a cancel undoes the wait and nothing else.
 */
#ifndef BLITZ_FUTURES_H
#define BLITZ_FUTURES_H

#include "blitz/api.h"
#include "blitz/future.h"
#include "blitz/task.h"
#include "blitz/time.h"

BLITZ_BEGIN_DECLS

/* A sleep. Ready when its moment has come. */
typedef struct blitz_sleep_future {
    blitz_future future; /* to be awaited */
    blitz_deadline when; /* the moment */
    void *inside[10];
} blitz_sleep_future;

/*
 * Make a sleep that ends at `when`. With BLITZ_FOREVER it never ends.
 * Owns:     the memory stays the caller's.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_sleep_until_future_init(blitz_sleep_future *f, blitz_deadline when);

/* blitz_task_join() as a future. Ready when the task has ended. */
typedef struct blitz_join_future {
    blitz_future future; /* to be awaited; its output is `value`, or `result` if that is not 0 */
    int result;          /* 0: ready, the handle is taken; -EINPROGRESS: not ready, it is yours;
                          * -EDEADLK: a task that joins itself; -EINVAL: no task */
    int value;           /* when ready: the task's result */
    void *pointer;       /* when ready: the pointer it left, yours now; NULL if none */
    void *inside[9];
} blitz_join_future;

/*
 * Make a future that is ready when `t` has ended.
 * Owns:     borrows the handle; takes it when the future is ready with result 0. If the wait ends before (a deadline,
 *           a cancel of the waiting task), the handle is still yours.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_task_join_future_init(blitz_join_future *f, blitz_task *t);

/*
 * Make a future that is ready when `t` has ended, also after a cancel. A cancel of the waiting task (or of the
 * future) is passed on to `t`, and the wait ends when `t` has ended. blitz_task_join() without a deadline does this.
 * It is a *pinned* future.
 * Owns:     borrows the handle; takes it when the future is ready with result 0.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_task_join_linked_future_init(blitz_join_future *f, blitz_task *t);

/* ---- building blocks ---- */

/* Ready from the start, or never. */
typedef struct blitz_ready_future {
    blitz_future future; /* to be awaited */
    int result;          /* the result it was made with */
} blitz_ready_future;

/*
 * Make a future that is ready, with that result.
 * Owns:     the memory stays the caller's.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_ready_future_init(blitz_ready_future *f, int result);

/*
 * Return a future that is never ready. All callers share it: it has no state.
 * Owns:     the library's: it is constant and always exists.
 * Suspends: never. Call from any thread.
 * Returns:  the future.
 */
BLITZ_API blitz_future *blitz_pending_future(void);

/* A future that is made at its first poll. */
typedef struct blitz_defer_future {
    blitz_future future; /* to be awaited */
    int result;          /* when ready: the made future's; -ECANCELED if it was undone */
    int step;
    blitz_future *(*make)(void *arg);
    void *arg;
    blitz_future *made; /* the result of make */
} blitz_defer_future;

/*
 * Defer the making of a future. The first poll calls make(arg), which returns the future to wait for, in your memory.
 * If make returns NULL, the future is ready with output 0. If it is never polled, make is never called. It counts as
 * *pinned*, because the made future may be pinned. After a cancel, poll it until it is ready; that is at once if the
 * made future is not pinned.
 * Owns:     borrows `arg` and the made future until the future is ready, or the cancel has completed.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_defer_future_init(blitz_defer_future *f, blitz_future *(*make)(void *arg),
                                       void *arg);

/* A future, and a function of its outcome. */
typedef struct blitz_map_future {
    blitz_future future; /* to be awaited */
    blitz_future *child;
    int (*fn)(void *arg, blitz_future *child);
    void *arg;
    int result; /* when ready: the result of fn */
    int step;
} blitz_map_future;

/*
 * When `child` is ready, fn(arg, child) is called once, and its result is the output. fn runs inside a poll, so it
 * should not wait. The class is the child's. A pinned child that completes after a cancel is mapped, too.
 * Owns:     borrows `child` and `arg` until the future is ready or cancelled.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_map_future_init(blitz_map_future *f, blitz_future *child,
                                     int (*fn)(void *arg, blitz_future *child), void *arg);

/* One future after the other. */
typedef struct blitz_then_future {
    blitz_future future; /* to be awaited */
    int result;          /* when ready: the second's; the first's if it failed; -ECANCELED */
    int step;
    blitz_future *first;
    blitz_future *(*next)(void *arg, blitz_future *first);
    void *arg;
    blitz_future *second; /* the result of next; NULL until then */
} blitz_then_future;

/*
 * When `first` is ready with an output of 0 or more, next(arg, first) returns the second future, in your memory. If
 * next returns NULL, the output is that of the first. If the first fails, next is not called. It counts as *pinned*,
 * as blitz_defer_future_init() does and for the same reason.
 * Owns:     borrows both futures and `arg` until the future is ready, or the cancel has completed.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_then_future_init(blitz_then_future *f, blitz_future *first,
                                      blitz_future *(*next)(void *arg, blitz_future *first),
                                      void *arg);

BLITZ_END_DECLS

#endif
