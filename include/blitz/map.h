/*
 * blitz/map.h - a hash map that all tasks and threads share.
 *
 * Keys are bytes of any length, values are bytes of one size; both are copied. The map consists of shards, several for each
 * CPU. Each shard has a lock of its own, which is held for some instructions: callers that work on different keys
 * rarely meet. No function of the user's runs under a lock.
 *
 *     blitz_map *hits;
 *     blitz_map_new(sizeof(int), NULL, &hits);
 *     blitz_map_put(hits, url, strlen(url), &(int){1});
 *     ...
 *     if (blitz_map_get(hits, url, strlen(url), &count) == 0)
 *         printf("%d\n", count);
 *
 * A value that depends on the old one is replaced if it is still the same:
 *
 *     do {
 *         rc = blitz_map_get(hits, url, n, &old);
 *         next = rc == 0 ? old + 1 : 1;
 *     } while ((rc == 0 ? blitz_map_swap(hits, url, n, &old, &next)
 *                       : blitz_map_add(hits, url, n, &next)) == -EAGAIN);
 */
#ifndef BLITZ_MAP_H
#define BLITZ_MAP_H

#include <stdbool.h>
#include <stddef.h>

#include "blitz/api.h"
#include "blitz/hooks.h"

BLITZ_BEGIN_DECLS

typedef struct blitz_map blitz_map;

/* The options of a map. A zeroed struct means none. */
typedef struct blitz_map_opts {
    /* Called for each value that the map gives up: replaced by a put, or left at the end. A value that a call returns is
     * the caller's. It is called without a lock, and may use the map. The last unref drops the values that are left; those
     * that a hook puts meanwhile are dropped as well. A hook must keep no reference to the map then. NULL: none. */
    void (*drop)(void *value, void *ctx);
    void *ctx;
    unsigned shards;              /* rounded up to a power of two; 0: eight for each CPU */
    const blitz_allocator *alloc; /* copied; NULL: the C library's */
} blitz_map_opts;

/*
 * Make an empty map.
 * Owns:     the caller holds the first reference; drop it with blitz_map_unref(). Copies the options; NULL: none.
 * Suspends: never. Call from any thread.
 * Returns:  0, -EINVAL (value_size is 0 or too large, or more than 65536 shards), -ENOMEM. *out is written only on 0.
 */
BLITZ_API BLITZ_MUST_USE int blitz_map_new(size_t value_size, const blitz_map_opts *opts,
                                           blitz_map **out);

/*
 * Add a reference, or release one; the last release drops all values and frees the map. unref ignores NULL.
 * Owns:     ref: a reference more; unref: takes one.
 * Suspends: never, unless the drop hook does. Call from any thread.
 * Returns:  ref: m.
 */
BLITZ_API blitz_map *blitz_map_ref(blitz_map *m);
BLITZ_API void blitz_map_unref(blitz_map *m);

/*
 * Read the value of a key.
 * Owns:     *value is the caller's, and written only on 0. NULL: only ask whether the key is there.
 * Suspends: never. Call from any thread.
 * Returns:  0, -ENOENT.
 */
BLITZ_API int blitz_map_get(blitz_map *m, const void *key, size_t key_bytes, void *value);

/*
 * Set the value of a key: put it in any case, add it only if the key is not there, or swap it only if the bytes of the value
 * are those of *expected.
 * Owns:     copies the key and *value. put: the drop hook gets the value that was there before; swap: that value is the
 *           caller's, who knows its bytes.
 * Suspends: never, unless the drop hook does. Call from any thread.
 * Returns:  0; -ENOMEM, -EINVAL (a key that is too large); add: -EAGAIN (the key is there); swap: -EAGAIN (another value, or no
 *           such key). On error nothing is changed.
 */
BLITZ_API BLITZ_MUST_USE int blitz_map_put(blitz_map *m, const void *key, size_t key_bytes,
                                           const void *value);
BLITZ_API BLITZ_MUST_USE int blitz_map_add(blitz_map *m, const void *key, size_t key_bytes,
                                           const void *value);
BLITZ_API BLITZ_MUST_USE int blitz_map_swap(blitz_map *m, const void *key, size_t key_bytes,
                                            const void *expected, const void *value);

/*
 * Remove a key.
 * Owns:     *value is the caller's, and written only on 0. NULL: the drop hook gets it.
 * Suspends: never, unless the drop hook does. Call from any thread.
 * Returns:  0, -ENOENT.
 */
BLITZ_API int blitz_map_remove(blitz_map *m, const void *key, size_t key_bytes, void *value);

/*
 * Return the number of keys. It may be out of date at once.
 * Owns:     borrows m.
 * Suspends: never. Call from any thread.
 * Returns:  the number.
 */
BLITZ_API size_t blitz_map_len(blitz_map *m);

/*
 * Call fn for each key, on copies and without a lock: fn may use the map. A key that is there from the beginning to the end is
 * seen once; one that comes or goes meanwhile is seen or not.
 * Owns:     borrows m and arg until it returns; the copies are fn's until it returns.
 * Suspends: never, unless fn does. Call from any thread.
 * Returns:  0; what fn returned, if that is not 0: it is not called again; -ENOMEM.
 */
BLITZ_API int blitz_map_each(blitz_map *m,
                             int (*fn)(const void *key, size_t key_bytes, const void *value,
                                       void *arg),
                             void *arg);

BLITZ_END_DECLS

#endif
