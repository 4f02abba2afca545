/*
 * blitz/join_set.h - tasks and futures that come and go, taken out in the order in which they end.
 *
 *     blitz_join_set *set;
 *     blitz_joined end;
 *     if (blitz_join_set_new(&set) != 0)
 *         ...
 *     for (int i = 0; i < n; i++)
 *         blitz_join_set_spawn(set, fetch, &page[i], &page[i], NULL);
 *     while (blitz_join_set_next(set, &end, BLITZ_FOREVER) == 0)
 *         printf("%s: %d\n", ((struct page *)end.key)->name, end.result);
 *     blitz_join_set_unref(set);
 *
 * A set holds any number of members: tasks that were spawned into it, tasks that were added, and futures.
 * blitz_join_set_next() waits for the next member that ends, takes it out and returns its key and result.
 * A member costs two polls and one allocation, however many there are.
 *
 * A task runs by itself. A future makes progress while a caller waits in blitz_join_set_next() (or polls
 * its future), because that is when the future is polled.
 *
 * Any thread may add members, cancel them and count them. One caller at a time takes members out; a second
 * one gets -EBUSY.
 *
 * Compare: blitz/scope.h waits for all of its tasks and stops at the first error; blitz/combine.h waits for
 * a fixed number of futures.
 */
#ifndef BLITZ_JOIN_SET_H
#define BLITZ_JOIN_SET_H

#include <stddef.h>

#include "blitz/api.h"
#include "blitz/future.h"
#include "blitz/poll.h"
#include "blitz/task.h"
#include "blitz/time.h"

BLITZ_BEGIN_DECLS

typedef struct blitz_join_set blitz_join_set;

/* A member that has ended. */
typedef struct blitz_joined {
    void *key;            /* the key it was added with */
    int result;           /* the task's result; the future's output; -ECANCELED: it was cancelled */
    void *pointer;        /* the pointer that the task left, yours now; NULL if none */
    blitz_future *future; /* the future, yours again; NULL: it was a task */
} blitz_joined;

/*
 * Make an empty set.
 * Owns:     *out is yours; release it with blitz_join_set_unref().
 * Suspends: never. Call from any thread.
 * Returns:  0, -ENOMEM, -EINVAL (nowhere to put it).
 */
BLITZ_API int blitz_join_set_new(blitz_join_set **out);

/*
 * Add a handle of the set.
 * Owns:     shares the set.
 * Suspends: never. Call from any thread that holds a handle.
 * Returns:  set.
 */
BLITZ_API blitz_join_set *blitz_join_set_ref(blitz_join_set *set);

/*
 * Release a handle. The last one cancels all members and waits until they have ended. Their results are
 * dropped; a task's pointer goes to its drop_result. NULL is ignored.
 * Owns:     takes the handle.
 * Suspends: if it is the last handle and there are members that do not end at once. A cancel of the caller
 *           does not end the wait. Call from any thread, but not from a member. A stackless task that
 *           must not wait here cancels the set and takes all members out first.
 */
BLITZ_API BLITZ_SUSPENDS void blitz_join_set_unref(blitz_join_set *set);

/*
 * Start fn(arg) as a task of the set.
 * Owns:     the set holds the task's handle. `key` is yours: blitz_join_set_next() returns it.
 * Suspends: never. Call from a task, or from any thread with a runtime in `opts`.
 * Returns:  0, or as blitz_spawn(): then nothing was started.
 */
BLITZ_API int blitz_join_set_spawn(blitz_join_set *set, int (*fn)(void *arg), void *arg, void *key,
                                   const blitz_spawn_opts *opts);

/*
 * Start a stackless task of the set.
 * Owns:     copies the state, as blitz_spawn_poll(); else as blitz_join_set_spawn().
 * Suspends: never. Call from a task, or from any thread with a runtime in `opts`.
 * Returns:  0, or as blitz_spawn_poll(): then nothing was started.
 */
BLITZ_API int blitz_join_set_spawn_poll(blitz_join_set *set,
                                        blitz_poll (*poll)(void *state, blitz_cx *cx),
                                        const void *state, size_t bytes, void *key,
                                        const blitz_spawn_opts *opts);

/*
 * Add a task that runs already.
 * Owns:     takes the handle on 0; on error it stays yours.
 * Suspends: never. Call from any thread.
 * Returns:  0, -ENOMEM, -EINVAL (no set, or no task).
 */
BLITZ_API int blitz_join_set_add_task(blitz_join_set *set, blitz_task *t, void *key);

/*
 * Add a future that was not polled yet.
 * Owns:     borrows the future until it is taken out or the set is gone.
 * Suspends: never. Call from any thread.
 * Returns:  0, -ENOMEM, -EINVAL (no set, or no future).
 */
BLITZ_API int blitz_join_set_add_future(blitz_join_set *set, blitz_future *f, void *key);

/*
 * Wait for the next member that ends, and take it out.
 * Owns:     *out is yours; it is written only on 0.
 * Suspends: until a member has ended, `until`, or a cancel of the calling task. Call from anywhere; a plain
 *           thread sleeps.
 * Returns:  0; -ENOENT (the set is empty); -ETIMEDOUT, -ECANCELED (all members are as they were); -EBUSY
 *           (another caller waits); -EINVAL (no set, or nowhere to put it).
 */
BLITZ_API BLITZ_SUSPENDS int blitz_join_set_next(blitz_join_set *set, blitz_joined *out,
                                                 blitz_deadline until);

/*
 * Take out a member that has ended, if there is one.
 * Owns:     *out is yours; it is written only on 0.
 * Suspends: never. Call from any thread.
 * Returns:  0; -EAGAIN (no member has ended); else as blitz_join_set_next().
 */
BLITZ_API int blitz_join_set_try_next(blitz_join_set *set, blitz_joined *out);

/* blitz_join_set_next() as a future. Revocable. */
typedef struct blitz_join_set_future {
    blitz_future future; /* to be awaited */
    int result;          /* when ready: 0, -ENOENT, -EBUSY, -EINVAL, as blitz_join_set_next() */
    blitz_joined joined; /* when ready with 0: the member */
    blitz_join_set *set; /* this and the rest: not yours */
    int step;
} blitz_join_set_future;

/*
 * Make a future for the next member that ends.
 * Owns:     borrows the set until the future is ready or cancelled.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_join_set_next_future_init(blitz_join_set_future *f, blitz_join_set *set);

/*
 * Ask all members to stop. Tasks are cancelled at once. Futures are cancelled by their class (blitz/future.h) when a
 * caller takes members out. The members stay in the set until they are taken out; a cancelled future has the
 * result -ECANCELED. Members that are added later are not cancelled.
 * Owns:     borrows the set until it returns.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_join_set_cancel(blitz_join_set *set);

/*
 * Detach all tasks. They leave the set and run on. Futures are cancelled by their class; a pinned future stays in
 * the set until it is ready.
 * Owns:     borrows the set until it returns. Futures that have left it are yours again.
 * Suspends: never. Call from any thread.
 * Returns:  0, -EBUSY (a caller waits for the next member), -EINVAL (no set).
 */
BLITZ_API int blitz_join_set_detach(blitz_join_set *set);

/*
 * Return the number of members that were not taken out yet.
 * Owns:     borrows the set until it returns.
 * Suspends: never. Call from any thread.
 * Returns:  the number.
 */
BLITZ_API size_t blitz_join_set_count(blitz_join_set *set);

BLITZ_END_DECLS

#endif
