/*
 * blitz/once.h - a value that is made once, by whoever needs it first.
 *
 *     static int open_log(void *arg, void **value) { ... }          // may wait; 0 or -errno
 *
 *     static blitz_lazy log = BLITZ_LAZY_INIT(open_log, NULL);
 *     ...
 *     void *file;
 *     int err = blitz_lazy_get(&log, &file, BLITZ_FOREVER);
 *
 * While one makes it the others wait; when it is made, getting it is one load. If making it fails,
 * the one that tried gets the error and the next in line tries, with its own function: a failure is
 * not kept.
 *
 * A blitz_once is the cell alone, to which everybody brings a function, or which is set from outside.
 * Tasks of any runtime, stackless tasks and plain threads may all use one. The memory is yours, and
 * must stay until every call on it has returned; the value is whoever's you say.
 */
#ifndef BLITZ_ONCE_H
#define BLITZ_ONCE_H

#include <stdint.h>

#include "blitz/api.h"
#include "blitz/sync_future.h"
#include "blitz/time.h"

BLITZ_BEGIN_DECLS

/* Makes the value: 0 and *value, or -errno. Called without any lock held; may wait. */
typedef int (*blitz_once_fn)(void *arg, void **value);

typedef struct blitz_once {
    uint64_t inside[5];
} blitz_once;

#define BLITZ_ONCE_INIT   \
    {                     \
        {                 \
            0, 0, 0, 0, 0 \
        }                 \
    }

/*
 * Make an empty cell.
 * Owns:     the memory stays the caller's.
 * Suspends: never. Call from any thread, before anybody uses it.
 */
BLITZ_API void blitz_once_init(blitz_once *o);

/*
 * The value, if there is one.
 * Owns:     borrows the cell until it returns.
 * Suspends: never. Call from any thread.
 * Returns:  0 and *out, -EAGAIN (there is none yet; *out is not written). `out` may be NULL.
 */
BLITZ_API int blitz_once_try_get(blitz_once *o, void **out);

/*
 * The value, made by fn(arg) if there is none. Whatever its maker did is visible.
 * Owns:     borrows the cell until it returns; `arg` is fn's.
 * Suspends: while another one makes it, until `until`, or a cancel; and as fn does. Call from a task or
 *           any thread; a plain thread sleeps.
 * Returns:  0 and *out (may be NULL); what fn returned, if it failed; -ETIMEDOUT, -ECANCELED (while
 *           waiting for another); -EDEADLK (called from the fn of the same cell, by the same task).
 */
BLITZ_API BLITZ_SUSPENDS int blitz_once_get(blitz_once *o, blitz_once_fn fn, void *arg, void **out,
                                            blitz_deadline until);

/*
 * Put a value into an empty cell, and wake whoever waits for one.
 * Owns:     borrows the cell until it returns. The value is yours or the cell's, as you say.
 * Suspends: never. Call from any thread.
 * Returns:  0, -EEXIST (there is one), -EBUSY (somebody is making one). On error nothing happened.
 */
BLITZ_API int blitz_once_set(blitz_once *o, void *value);

/* A cell that knows how its value is made. */
typedef struct blitz_lazy {
    blitz_once once;
    blitz_once_fn fn;
    void *arg;
} blitz_lazy;

#define BLITZ_LAZY_INIT(fn, arg)     \
    {                                \
        BLITZ_ONCE_INIT, (fn), (arg) \
    }

/*
 * The value, made if there is none: blitz_once_get() with the function it was given.
 * Owns:     borrows the cell until it returns.
 * Suspends: as blitz_once_get().
 * Returns:  as blitz_once_get().
 */
BLITZ_API BLITZ_SUSPENDS int blitz_lazy_get(blitz_lazy *l, void **out, blitz_deadline until);

/* blitz_once_get() as a future. */
typedef struct blitz_once_future {
    blitz_future future; /* to be awaited */
    int result;          /* when ready: 0, or what fn returned */
    uint64_t inside[13];
    void *value;      /* when ready, and the result is 0 */
    blitz_once *once; /* this and the rest: not yours */
    blitz_once_fn fn;
    void *arg;
} blitz_once_future;

/*
 * The value, made by fn(arg) if there is none. fn is called by the poll whose turn it is; a cancel
 * before that lets the next in line have its turn.
 * Owns:     borrows the cell until the future was ready or cancelled; `arg` is fn's.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_once_get_future_init(blitz_once_future *f, blitz_once *o, blitz_once_fn fn,
                                          void *arg);

BLITZ_END_DECLS

#endif
