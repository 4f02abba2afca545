/*
 * coro.h - the smallest thing that runs on a stack of its own: a coroutine.
 *
 * Not the runtime's fiber (that one parks, is woken and migrates by itself): a function that can be
 * left in the middle and gone on with, by hand. The tests of the switch and the stacks are written
 * with it, so is the demo, and so is anything that wants a stack without a scheduler.
 *
 *     static void count(struct bz_coro *c, void *arg)
 *     {
 *         for (int *n = arg; ; bz_coro_yield(c))
 *             (*n)++;
 *     }
 *     bz_coro_init(&c, low, top, count, &n);
 *     bz_coro_resume(&c);                     // n is 1, and count stands in its yield
 *
 * A coroutine may be resumed by any thread, one at a time; whoever passes it on to another thread
 * orders the two (a queue, a lock). Nothing thread-local survives a yield then.
 */
#ifndef BZ_CORO_H
#define BZ_CORO_H

#include <stdbool.h>

#include "arch/ctx.h"

/* Whoever resumed, in the frame of that call. */
struct bz_coro_caller {
    struct bz_ctx ctx;
    bool has_ended; /* written by the coroutine that ends, for the caller to return */
};

struct bz_coro {
    struct bz_ctx ctx;             /* where it stopped */
    struct bz_coro_caller *caller; /* whom to go back to; NULL while it does not run */
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

/* Nobody stands on it: it is done, was never resumed, or is given up where it stopped (then what
 * its frames own is not released). */
void bz_coro_fini(struct bz_coro *c);

/* Go on with it until its next yield or its end. True if there is more to do; if the yield's hook
 * passed the coroutine on, another thread may be doing that already. It must not be done and nobody
 * else may be running it; a coroutine may resume others, but not one that waits for it. */
bool bz_coro_resume(struct bz_coro *c);

/* From inside: back to whoever resumed, who calls hook(arg) first (NULL: nothing). */
void bz_coro_yield_with(struct bz_coro *c, bz_ctx_hook *hook, void *arg);
static inline void bz_coro_yield(struct bz_coro *c)
{
    bz_coro_yield_with(c, NULL, NULL);
}

/* From inside `c`: stop here and go on in `to` directly, which yields to our resumer from now on. */
void bz_coro_pass(struct bz_coro *c, struct bz_coro *to);

#endif
