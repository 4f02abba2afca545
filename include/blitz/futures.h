/*
 * blitz/futures.h - the things one can wait for, as values.
 *
 * A fiber calls blitz_sleep() or blitz_task_join() and needs none of this. A stackless task
 * (blitz/poll.h) has no stack for the call to stand on, so it keeps what it waits for in its state:
 * a struct whose first member is a blitz_future. They can be awaited from fibers and plain threads,
 * too.
 *
 * The memory is yours, from init until the future was ready or cancelled; do not move or copy it in
 * between. Only the fields with a comment are yours to read. Both are revocable (blitz/future.h):
 * a cancel undoes the wait and nothing else.
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
BLITZ_API void blitz_sleep_future_init(blitz_sleep_future *f, blitz_deadline when);

/* The end of a task. Ready when it has ended. */
typedef struct blitz_join_future {
    blitz_future future; /* to be awaited */
    int result;          /* when ready: what the task returned */
    int error;           /* when ready: 0; -EDEADLK: a task that joins itself; -EINVAL: no task */
    void *pointer;       /* when ready: the pointer it left, yours now; NULL if none */
    void *inside[6];
} blitz_join_future;

/*
 * The end of `t`.
 * Owns:     borrows the handle; takes it when the future is ready with error 0. If the wait is
 *           given up (a deadline, a cancel of the waiting task), the handle is still yours.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_join_future_init(blitz_join_future *f, blitz_task *t);

/*
 * The end of `t`, whatever comes: a cancel of the waiting task (or of the future) is passed on to
 * `t`, and the wait ends when `t` has. This is what blitz_task_join() without a deadline does. It is
 * a *pinned* future.
 * Owns:     borrows the handle; takes it when the future is ready with error 0.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_join_future_init_linked(blitz_join_future *f, blitz_task *t);

BLITZ_END_DECLS

#endif
