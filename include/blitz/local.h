/*
 * blitz/local.h - task-local storage.
 *
 * A thread-local variable is of no use to a task, which may continue on another thread. A task-local value is found by
 * its key on every thread, in every function that the task calls.
 *
 * A key is a constant of yours, identified by its address. Keys are not registered, and their number has no limit. A
 * task that sets no value pays nothing.
 *
 *     BLITZ_LOCAL(struct request, request, request_drop)     // at file scope
 *
 *     request_local_set(r);                                  // the task owns r now
 *     log("%s", request_local()->url);                       // NULL if it has none
 *
 * Values belong to the task that set them. A task that it spawns begins with none, unless it inherits:
 * blitz_local_set_inherited(). Its forked jobs (blitz/fork.h) see the values; set none while such a job is not joined. At the
 * end of the task each value is passed to its key's drop function, in the task. That function may still wait and read
 * other values.
 */
#ifndef BLITZ_LOCAL_H
#define BLITZ_LOCAL_H

#include "blitz/api.h"

BLITZ_BEGIN_DECLS

typedef struct blitz_local_key {
    void (*drop)(void *value,
                 void *ctx); /* called for a replaced or remaining value; may be NULL */
    void *ctx;
} blitz_local_key;

/*
 * Return the calling task's value.
 * Owns:     it stays the task's.
 * Suspends: never.
 * Returns:  the value; NULL if it has none, and on a plain thread.
 */
BLITZ_API void *blitz_local_get(const blitz_local_key *key);

/*
 * Set the calling task's value. The drop function gets the old value, if it is a different one. NULL removes the value.
 * Owns:     takes the value on success. `key` must outlive the task.
 * Suspends: never itself; the drop function may. Call from a task.
 * Returns:  0, -ENOMEM, -EINVAL (a plain thread), -EPERM (a forked job that another worker runs).
 */
BLITZ_API int blitz_local_set(const blitz_local_key *key, void *value);

/*
 * Make the value of a child from the value of its parent: add a reference and return the same pointer, or return a copy. It
 * runs in the parent, at the spawn. NULL: the child has no value. The key's drop function gets the result at the end of the
 * child, or in the parent if the spawn fails.
 */
typedef void *(*blitz_local_copy)(void *value, void *ctx);

/*
 * Set the calling task's value, to be inherited: a task that this task spawns with opts.inherits begins with a copy, which
 * it passes on in the same way. For a request id, a trace span, a locale. `copy` gets the key's ctx. A later
 * blitz_local_set() ends that.
 *
 *     blitz_local_set_inherited(&span_key, span, span_ref);
 *     blitz_spawn(fetch, page, &(blitz_spawn_opts){.inherits = true}, &t);
 *
 * Owns:     takes the value on success. `key` must outlive the task, and every task that inherits.
 * Suspends: never itself; the drop function may. Call from a task.
 * Returns:  as blitz_local_set().
 */
BLITZ_API int blitz_local_set_inherited(const blitz_local_key *key, void *value,
                                        blitz_local_copy copy);

/* Define a key with functions of its own: type *name_local(void), int name_local_set(type *). `drop_` is a
 * void (*)(void *value, void *ctx), which gets NULL as its ctx; or NULL. */
#define BLITZ_LOCAL(type, name, drop_)                                 \
    static const blitz_local_key name##_local_key = {drop_, NULL};     \
    BLITZ_MAYBE_UNUSED static inline type *name##_local(void)          \
    {                                                                  \
        return (type *)blitz_local_get(&name##_local_key);             \
    }                                                                  \
    BLITZ_MAYBE_UNUSED static inline int name##_local_set(type *value) \
    {                                                                  \
        return blitz_local_set(&name##_local_key, (void *)value);      \
    }

BLITZ_END_DECLS

#endif
