/*
 * blitz/bridge.h - use blitz from a program that has a poll loop of its own.
 *
 * A GUI, a game, a libuv or libevent program waits in its own loop and must not block there. It hands functions in, which
 * run as tasks of a runtime and may wait. When results are there, a descriptor becomes readable, and the loop takes them
 * on its own thread.
 *
 *     blitz_bridge_new(runtime, &bridge);
 *     watch_descriptor(blitz_bridge_fd(bridge));                   // with poll, epoll, uv_poll, a GLib source ...
 *     blitz_bridge_submit(bridge, fetch, page, NULL);
 *     ...
 *     while (blitz_bridge_take(bridge, &r) == 0)                   // when it is readable
 *         show(r.arg, r.result);
 */
#ifndef BLITZ_BRIDGE_H
#define BLITZ_BRIDGE_H

#include <stddef.h>

#include "blitz/api.h"
#include "blitz/task.h"

BLITZ_BEGIN_DECLS

typedef struct blitz_bridge blitz_bridge;

typedef struct blitz_bridge_result {
    int (*fn)(void *arg); /* the function and its argument, as submitted */
    void *arg;
    int result; /* its result */
} blitz_bridge_result;

/*
 * Make a bridge to a runtime.
 * Owns:     borrows the runtime: it must not be freed before the bridge. The caller holds the first reference; drop
 *           it with blitz_bridge_unref().
 * Suspends: never. Call from any thread.
 * Returns:  0, -EINVAL (no runtime), -ENOMEM, -EMFILE, -ENFILE, -EOPNOTSUPP (no such descriptors on this system). *out is
 *           written only on 0.
 */
BLITZ_API BLITZ_MUST_USE int blitz_bridge_new(blitz_runtime *rt, blitz_bridge **out);

/*
 * Add a reference, or release one. The last release frees the bridge when its functions have returned; their results are
 * dropped. unref ignores NULL.
 * Owns:     ref: a reference more; unref: takes one.
 * Suspends: never. Call from any thread.
 * Returns:  ref: b.
 */
BLITZ_API blitz_bridge *blitz_bridge_ref(blitz_bridge *b);
BLITZ_API void blitz_bridge_unref(blitz_bridge *b);

/*
 * Return the descriptor. It is readable as long as there are results. Poll it; do not read it.
 * Owns:     the descriptor stays the bridge's.
 * Suspends: never. Call from any thread.
 * Returns:  the descriptor.
 */
BLITZ_API blitz_fd blitz_bridge_fd(const blitz_bridge *b);

/*
 * Run fn(arg) as a task. `opts` may be NULL; its runtime is the bridge's.
 * Owns:     arg is the task's until its result was taken.
 * Suspends: never. Call from any thread.
 * Returns:  0, or an error of blitz_spawn(): then there will be no result.
 */
BLITZ_API BLITZ_MUST_USE int blitz_bridge_submit(blitz_bridge *b, int (*fn)(void *arg), void *arg,
                                                 const blitz_spawn_opts *opts);

/*
 * Take the oldest result.
 * Owns:     *out is the caller's, and written only on 0.
 * Suspends: never. Call from any thread.
 * Returns:  0, -EAGAIN (there is none at the moment).
 */
BLITZ_API BLITZ_MUST_USE int blitz_bridge_take(blitz_bridge *b, blitz_bridge_result *out);

/*
 * Return how many functions were submitted whose results were not taken.
 * Owns:     borrows b.
 * Suspends: never. Call from any thread.
 * Returns:  the number.
 */
BLITZ_API size_t blitz_bridge_pending(blitz_bridge *b);

BLITZ_END_DECLS

#endif
