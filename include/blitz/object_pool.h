/*
 * blitz/object_pool.h - things that are dear to make, kept and used again.
 *
 * Connections, buffers, parsers. An acquire takes an idle object, or makes one; a release keeps it for the next caller.
 * With a limit, callers wait for an object in the order in which they came.
 *
 *     const blitz_object_pool_opts opts = {.make = connect_db, .drop = close_db, .objects_max = 8};
 *     blitz_object_pool_new(&opts, &pool);
 *     rc = blitz_object_pool_acquire(pool, &connection, until);
 *     ...
 *     blitz_object_pool_release(pool, connection);        // or _discard(), if it is broken
 *
 * The object that was released last is acquired first: it is most likely in the cache, and its connection alive.
 */
#ifndef BLITZ_OBJECT_POOL_H
#define BLITZ_OBJECT_POOL_H

#include <stdbool.h>
#include <stddef.h>

#include "blitz/api.h"
#include "blitz/sync_future.h"
#include "blitz/time.h"

BLITZ_BEGIN_DECLS

typedef struct blitz_object_pool blitz_object_pool;

/* `make` is needed. No lock of the pool is held while these functions run, and they may wait. */
typedef struct blitz_object_pool_opts {
    int (*make)(void **out,
                void *ctx); /* make an object: 0, or an error for the caller of acquire */
    void (*drop)(void *value, void *ctx); /* free an object; NULL: nothing to do */
    bool (*is_good)(void *object,
                    void *ctx); /* asked before an idle object is used again; NULL: all are */
    void *ctx;                  /* passed to all of them */
    size_t objects_max;         /* in use at the same time; 0: no limit */
    size_t idle_max;            /* kept while not in use; 0: objects_max, or 64 if that is 0 */
} blitz_object_pool_opts;

/*
 * Make a pool, without objects.
 * Owns:     copies *opts. The caller holds the first reference; drop it with blitz_object_pool_unref().
 * Suspends: never. Call from any thread.
 * Returns:  0, -EINVAL (no `make`, or a number above BLITZ_PERMITS_MAX), -ENOMEM. *out is written only on 0.
 */
BLITZ_API BLITZ_MUST_USE int blitz_object_pool_new(const blitz_object_pool_opts *opts,
                                                   blitz_object_pool **out);

/*
 * Add a reference, or release one; the last release drops the idle objects and frees the pool. unref ignores NULL.
 * Owns:     ref: a reference more; unref: takes one. All objects must have been released or discarded.
 * Suspends: never, but where `drop` waits. Call from any thread.
 * Returns:  ref: p.
 */
BLITZ_API blitz_object_pool *blitz_object_pool_ref(blitz_object_pool *p);
BLITZ_API void blitz_object_pool_unref(blitz_object_pool *p);

/*
 * Take an idle object, or make one.
 * Owns:     *object is the caller's until blitz_object_pool_release() or _discard(), and written only on 0.
 * Suspends: until there are fewer than objects_max in use and no waiter is in front, `until`, a cancel or a close; and
 *           where `make` waits. Call from anywhere; a plain thread sleeps.
 * Returns:  0, -ETIMEDOUT, -ECANCELED, -EPIPE (closed), what `make` returned.
 */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int
blitz_object_pool_acquire(blitz_object_pool *p, void **object, blitz_deadline until);

/*
 * Give an object back: release keeps it, if there are not too many; discard drops it.
 * Owns:     takes the object.
 * Suspends: never, but where `drop` waits. Call from any thread.
 */
BLITZ_API void blitz_object_pool_release(blitz_object_pool *p, void *object);
BLITZ_API void blitz_object_pool_discard(blitz_object_pool *p, void *object);

/*
 * Close the pool: current and later waiters get -EPIPE, and the idle objects are dropped. Objects in use are dropped when
 * they are given back.
 * Owns:     borrows p.
 * Suspends: never, but where `drop` waits. Call from any thread.
 */
BLITZ_API void blitz_object_pool_close(blitz_object_pool *p);

/*
 * Return how many objects are idle; how many are in use. Either may be out of date at once.
 * Owns:     borrows p.
 * Suspends: never. Call from any thread.
 * Returns:  the number.
 */
BLITZ_API size_t blitz_object_pool_idle(blitz_object_pool *p);
BLITZ_API size_t blitz_object_pool_used(blitz_object_pool *p);

/* The acquire as a future. Revocable: no object was taken if it is cancelled. `make` is called by its poll. */
typedef struct blitz_object_pool_future {
    blitz_future future;   /* to be awaited */
    int result;            /* when ready: what the call would have returned */
    void *object;          /* when ready with 0: the object */
    blitz_object_pool *of; /* not yours, as is the next */
    blitz_sync_future turn;
} blitz_object_pool_future;

/*
 * Make a future that takes an object.
 * Owns:     borrows the pool until it is ready or cancelled.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_object_pool_acquire_future_init(blitz_object_pool_future *f,
                                                     blitz_object_pool *p);

BLITZ_END_DECLS

#endif
