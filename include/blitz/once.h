/*
 * blitz/once.h - a value that is made once, by the first caller that needs it.
 *
 *     static int open_log(void *arg, void **value) { ... }          // may wait; 0 or -errno
 *
 *     static blitz_lazy log = BLITZ_LAZY_INIT(open_log, NULL);
 *     ...
 *     void *file;
 *     int err = blitz_lazy_get(&log, &file, BLITZ_FOREVER);
 *
 * While one caller makes the value, the others wait. Once it is made, getting it is one load. If making it fails, that
 * caller gets the error, and the next waiter tries, with its own function: a failure is not kept.
 *
 * A blitz_once is only the cell: each caller passes a function, or the cell is set from outside. Tasks of any runtime,
 * stackless tasks and plain threads may all use one. The memory is yours, and must stay until every call on it has
 * returned. You decide who owns the value.
 */
#ifndef BLITZ_ONCE_H
#define BLITZ_ONCE_H

#include <stdint.h>

#include "blitz/api.h"
#include "blitz/sync_future.h"
#include "blitz/time.h"

BLITZ_BEGIN_DECLS

/* Make the value: return 0 and *value, or -errno. It is called without any lock held, and may wait. */
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
 * Suspends: never. Call from any thread, before its first use.
 */
BLITZ_API void blitz_once_init(blitz_once *o);

/*
 * Get the value, if there is one.
 * Owns:     borrows the cell until it returns.
 * Suspends: never. Call from any thread.
 * Returns:  0 and *out, -EAGAIN (there is none yet; *out is not written). `out` may be NULL.
 */
BLITZ_API int blitz_once_try_get(blitz_once *o, void **out);

/*
 * Get the value; if there is none, make it by fn(arg). Everything that its maker did is visible.
 * Owns:     borrows the cell until it returns; `arg` is fn's.
 * Suspends: while another caller makes it, until `until`, or a cancel; and as fn does. Call from a task or
 *           any thread; a plain thread sleeps.
 * Returns:  0 and *out (may be NULL); what fn returned, if it failed; -ETIMEDOUT, -ECANCELED (while
 *           waiting for another); -EDEADLK (called from the fn of the same cell, by the same task).
 */
BLITZ_API BLITZ_SUSPENDS int blitz_once_get(blitz_once *o, blitz_once_fn fn, void *arg, void **out,
                                            blitz_deadline until);

/*
 * Put a value into an empty cell, and wake all waiters.
 * Owns:     borrows the cell until it returns. The value is yours or the cell's, as you decide.
 * Suspends: never. Call from any thread.
 * Returns:  0, -EEXIST (there is one), -EBUSY (a caller is making one). On error nothing happened.
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
 * Get the value; if there is none, make it: blitz_once_get() with the function of the cell.
 * Owns:     borrows the cell until it returns.
 * Suspends: as blitz_once_get().
 * Returns:  as blitz_once_get().
 */
BLITZ_API BLITZ_SUSPENDS int blitz_lazy_get(blitz_lazy *l, void **out, blitz_deadline until);

/* blitz_once_get() as a future. */
typedef struct blitz_once_future {
    blitz_future future; /* to be awaited */
    int result;          /* when ready: 0, or the error of fn */
    uint64_t inside[13];
    void *value;      /* when ready, and the result is 0 */
    blitz_once *once; /* this and the rest: not yours */
    blitz_once_fn fn;
    void *arg;
} blitz_once_future;

/*
 * Make a future of blitz_once_get(). The poll whose turn it is calls fn; a cancel before that gives the turn to the
 * next waiter.
 * Owns:     borrows the cell until the future is ready or cancelled; `arg` is fn's.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_once_get_future_init(blitz_once_future *f, blitz_once *o, blitz_once_fn fn,
                                          void *arg);

BLITZ_END_DECLS

#endif
