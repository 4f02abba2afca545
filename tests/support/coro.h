/*
 * coro.h - a minimal coroutine: a function with its own stack.
 *
 * It is not the runtime's fiber, which the scheduler parks, wakes and migrates. A coroutine is
 * resumed and yields explicitly. The tests of the switch and the stacks use it, and so does the
 * demo.
 *
 *     static void count(struct bz_coro *c, void *arg)
 *     {
 *         for (int *n = arg; ; bz_coro_yield(c))
 *             (*n)++;
 *     }
 *     bz_coro_init(&c, low, top, count, &n);
 *     bz_coro_resume(&c);                     // n is 1, and count is in its yield
 *
 * Any thread may resume a coroutine, one at a time. The code that passes it to another thread must
 * order the two (by a queue or a lock). Thread-local values then do not survive a yield.
 */
#ifndef BZ_CORO_H
#define BZ_CORO_H

#include <stdbool.h>

#include "arch/ctx.h"

/* The resumer, in the frame of its bz_coro_resume. */
struct bz_coro_caller {
    struct bz_ctx ctx;
    bool has_ended; /* written by a coroutine that ends, returned by the resumer */
};

struct bz_coro {
    struct bz_ctx ctx;             /* where it stopped */
    struct bz_coro_caller *caller; /* the resumer; NULL while it does not run */
    void (*fn)(struct bz_coro *c, void *arg);
    void *arg;
    bool is_done; /* fn has returned */
};

/*
 * Make a coroutine that will run fn(c, arg) on [low, top) (see bz_ctx_init). It starts with the
 * floating-point control words of the caller.
 * Owns: the memory is the caller's, both of `c` and of the stack, until bz_coro_fini.
 */
void bz_coro_init(struct bz_coro *c, void *low, void *top, void (*fn)(struct bz_coro *c, void *arg),
                  void *arg);

/* Destroy a coroutine that is done, was never resumed, or is abandoned (resources of its frames are
 * then not released). */
void bz_coro_fini(struct bz_coro *c);

/* Run it until its next yield or its end. Return true if it has not ended; if the yield's hook
 * passed the coroutine on, another thread may already run it. It must not be done or running. A
 * coroutine may resume others, but not one that waits for it. */
bool bz_coro_resume(struct bz_coro *c);

/* From inside: return to the resumer, which calls hook(arg) first (NULL: nothing). */
void bz_coro_yield_with(struct bz_coro *c, bz_ctx_hook *hook, void *arg);
static inline void bz_coro_yield(struct bz_coro *c)
{
    bz_coro_yield_with(c, NULL, NULL);
}

/* From inside `c`: stop and continue in `to` directly, which from now on yields to the resumer of
 * `c`. */
void bz_coro_pass(struct bz_coro *c, struct bz_coro *to);

#endif
