/*
 * spawn.h - the creation of tasks: fibers (fiber.c) and stackless tasks (stackless.c).
 */
#ifndef BZ_LIFE_SPAWN_H
#define BZ_LIFE_SPAWN_H

#include "proc/state.h"

extern const struct bz_task_ops bz_fiber_ops;

/* A task that calls a function. */
struct bz_fiber {
    struct bz_task task;
    int (*fn)(void *arg);
    void *arg;
};

/* The runtime for a new task, or NULL. For all functions that create tasks. */
struct bz_runtime *bz_runtime_for(const blitz_spawn_opts *opts);

/* The initial references: the scheduler's and the handle's. */
static inline unsigned bz_task_refs(blitz_task **out)
{
    return out != NULL ? 2 : 1;
}

/* Fill in a header. Its creator has filled in the memory behind it. */
void bz_task_init(struct bz_task *t, struct bz_runtime *rt, const struct bz_task_ops *ops,
                  const blitz_spawn_opts *opts, unsigned traits, unsigned refs);
/* True if the options are not valid in that runtime. */
bool bz_opts_are_bad(const blitz_spawn_opts *opts, const struct bz_runtime *rt);
/* Create a fiber that is counted and started, with a handle. The caller runs it. */
BZ_MUST_USE int bz_fiber_begin(struct bz_runtime *rt, int (*fn)(void *arg), void *arg,
                               const char *name, struct bz_task **out);
/* Count the task and queue it. On error it was dropped. In user code if opts->inherits. */
BZ_MUST_USE int bz_task_start(struct bz_task *t, const blitz_spawn_opts *opts, blitz_task **out);

/* ---- stackless tasks ---- */

/* Spawn a stackless task with its own ops: the functions below, and a closer. */
enum bz_ran bz_poll_run(struct bz_task *t);
void bz_poll_drop(struct bz_task *t);
uintptr_t bz_poll_begun_in(const struct bz_task *t);
void *bz_poll_state(struct bz_task *t);
BZ_MUST_USE int bz_spawn_poll(const struct bz_task_ops *ops,
                              blitz_poll (*poll)(void *state, blitz_cx *cx), const void *state,
                              size_t state_bytes, const blitz_spawn_opts *opts, blitz_task **out);
/* The state of a stackless task that has this poll function; NULL for any other task. */
void *bz_poll_state_if(struct bz_task *t, blitz_poll (*poll)(void *state, blitz_cx *cx));
/* locals.c: the task has returned; destroy its locals. In the task; may suspend. */
void bz_locals_destroy(struct bz_task *t);

/* locals.c: the table of a job that another worker runs: that of the forking task, or an empty one; never NULL. */
struct bz_locals *bz_locals_of_job(const struct bz_task *forker);

/* locals.c: copy the caller's inherited values to a task that is not started yet. In user code. 0, -ENOMEM: the caller
 * must call bz_locals_end(). */
BZ_MUST_USE int bz_locals_inherit(struct bz_task *child);

static inline void bz_locals_end(struct bz_task *t)
{
    if (t->locals != NULL)
        bz_locals_destroy(t);
}

/* Call the function of a fiber, in the task. The caller's frame stops C++ exceptions: life/escape.h. */
static BZ_ALWAYS_INLINE void bz_fiber_call(struct bz_task *t)
{
    struct bz_fiber *f = BZ_CONTAINER_OF(t, struct bz_fiber, task);
    t->result = f->fn(f->arg);
    bz_locals_end(t);
}

#endif
