/*
 * blitz/runtime.h - start it, stop it.
 *
 *     static int hello(void *arg) { puts(arg); return 0; }
 *     int main(void) { return blitz_run(hello, "hello", NULL); }
 *
 * A runtime is a set of worker threads and everything that runs on them. blitz_run is all most
 * programs need; the rest is for those that start a runtime inside something else. Several may
 * live in one process.
 *
 * fork(): a child of a process with a runtime may call exec or _exit, and nothing of blitz. The
 * workers are not in the child, and the runtime's locks may be held by them.
 */
#ifndef BLITZ_RUNTIME_H
#define BLITZ_RUNTIME_H

#include <stddef.h>

#include "blitz/api.h"
#include "blitz/hooks.h"
#include "blitz/time.h"

BLITZ_BEGIN_DECLS

typedef struct blitz_runtime blitz_runtime;

/*
 * What a runtime is to be like. Zero everywhere (or NULL for the whole) means the defaults.
 * The environment overrides what is 0 here: BLITZ_PROCS, BLITZ_STACK (bytes, with K or M).
 */
typedef struct blitz_config {
    unsigned procs;                   /* workers; 0: as many as the CPUs the process may use */
    size_t stack_bytes;               /* of a fiber, rounded up to a class; 0: 256 KiB */
    int require_guards;               /* 1: no stack without a guard page, rather -errno */
    const blitz_allocator *allocator; /* copied; NULL: the C library's */
    const char *name;                 /* of the worker threads; copied; NULL: "blitz" */
} blitz_config;

/*
 * Run main(arg) as the first task of a new runtime, shut that down and return.
 * Tasks that still live when main returns are cancelled and waited for.
 * Owns:     copies the config; `arg` is main's.
 * Suspends: never a task: it blocks the calling thread, which must not be a worker.
 * Returns:  what main returned; -EINVAL (a bad config; the log says what), -ENOMEM, -EAGAIN (no
 *           thread could be started), -EBUSY (called from a task).
 */
BLITZ_API int blitz_run(int (*main)(void *arg), void *arg, const blitz_config *config);

/*
 * Make a runtime. One thread starts at once, the others when there is work for them.
 * Owns:     copies the config. The caller holds the runtime; end it with blitz_runtime_shutdown()
 *           and then blitz_runtime_free().
 * Suspends: never. Call from any thread.
 * Returns:  0, -EINVAL (a bad config; the log says what), -ENOMEM, -EAGAIN (no thread could be
 *           started). *out is written only on 0.
 */
BLITZ_API int blitz_runtime_new(const blitz_config *config, blitz_runtime **out);

/*
 * Run fn(arg) as a task of the runtime and wait for its result.
 * Owns:     borrows the runtime until it returns; `arg` is fn's.
 * Suspends: never a task: it blocks the calling thread, which must not be a worker.
 * Returns:  what fn returned; -ENOMEM, -ESHUTDOWN (the runtime is shutting down), -EBUSY (called
 *           from a task of that runtime).
 */
BLITZ_API int blitz_runtime_block_on(blitz_runtime *rt, int (*fn)(void *arg), void *arg);

/*
 * Stop a runtime: no more spawns, every task is cancelled, and all are waited for.
 * Owns:     borrows the runtime until it returns.
 * Suspends: never a task: it blocks the calling thread, which must not be a worker, until the last
 *           task has ended or `until`.
 * Returns:  0; -ETIMEDOUT: some task would not end, and is named in the log; it goes on, and the
 *           call may be repeated. -EBUSY (called from a task of that runtime).
 */
BLITZ_API int blitz_runtime_shutdown(blitz_runtime *rt, blitz_deadline until);

/*
 * Free a runtime that was shut down. NULL is ignored.
 * Owns:     takes the runtime. Task handles outlive it.
 * Suspends: never a task: it blocks the calling thread until the workers have ended.
 * Returns:  0; -EBUSY: it was not shut down. Nothing happened.
 */
BLITZ_API int blitz_runtime_free(blitz_runtime *rt);

BLITZ_END_DECLS

#endif
