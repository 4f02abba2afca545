/*
 * coro.c - coroutines with explicit resume and yield, on the switch of arch/ctx.h.
 *
 * Every switch of a coroutine is made in coro_suspend. So a stopped coroutine always has the same
 * frame layout, there is one indirect jump to predict, and a debugger finds each parked coroutine
 * in that function. The end of a coroutine is the exception: there is nothing to save.
 *
 * I1  `caller` is set while the coroutine runs and NULL while it is parked, new or done.
 * I2  `caller` points into the frame of a bz_coro_resume that has not returned: its stack is alive
 *     because the resumer is still in that call.
 * I3  After a switch away from a coroutine this code does not touch it: the hook may have published
 *     it, and then it may run elsewhere, or be freed. The data that the resumer needs is in its own
 *     frame.
 */
#include "support/coro.h"

#include "base/check.h"

static BZ_NOINLINE void coro_suspend(struct bz_ctx *from, struct bz_ctx *to, bz_ctx_hook *hook,
                                     void *arg)
{
    bz_ctx_switch(from, to, hook, arg);
}

static void coro_run(void *arg)
{
    struct bz_coro *c = arg;
    c->fn(c, c->arg);
    struct bz_coro_caller *caller = c->caller;
    c->caller = NULL;
    c->is_done = true;
    caller->has_ended = true; /* I3 */
    bz_ctx_leave(&caller->ctx, NULL, NULL);
}

void bz_coro_init(struct bz_coro *c, void *low, void *top, void (*fn)(struct bz_coro *c, void *arg),
                  void *arg)
{
    c->caller = NULL;
    c->fn = fn;
    c->arg = arg;
    c->is_done = false;
    bz_ctx_init(&c->ctx, low, top, coro_run, c, bz_fpcw_read());
}

void bz_coro_fini(struct bz_coro *c)
{
    BZ_CHECK(c->caller == NULL, "coroutine %p still runs", (void *)c);
    bz_ctx_fini(&c->ctx);
}

bool bz_coro_resume(struct bz_coro *c)
{
    struct bz_coro_caller here = {.has_ended = false};
    BZ_CHECK(!c->is_done, "coroutine %p is done", (void *)c);
    BZ_CHECK(c->caller == NULL, "coroutine %p is running already", (void *)c); /* I1 */
    bz_ctx_adopt(&here.ctx);
    c->caller = &here;
    coro_suspend(&here.ctx, &c->ctx, NULL, NULL);
    return !here.has_ended; /* I3: not c->is_done */
}

void bz_coro_yield_with(struct bz_coro *c, bz_ctx_hook *hook, void *arg)
{
    struct bz_coro_caller *caller = c->caller;
    BZ_CHECK(caller != NULL, "coroutine %p does not run", (void *)c); /* I1 */
    c->caller = NULL;
    coro_suspend(&c->ctx, &caller->ctx, hook, arg);
}

void bz_coro_pass(struct bz_coro *c, struct bz_coro *to)
{
    BZ_CHECK(c->caller != NULL, "coroutine %p does not run", (void *)c);
    BZ_CHECK(to->caller == NULL, "coroutine %p is running already", (void *)to);
    BZ_CHECK(!to->is_done, "coroutine %p is done", (void *)to);
    to->caller = c->caller;
    c->caller = NULL;
    coro_suspend(&c->ctx, &to->ctx, NULL, NULL);
}
