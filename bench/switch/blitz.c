/*
 * Our switch (src/arch), on stacks of our pool. It is inline, so every loop of a case has one of its
 * own. In the depth of a program it stands at one site, a function: inlined into a function that does
 * other things, too, it would make that one save every register on all its paths.
 */
#include "arch/ctx.h"
#include "task/stack.h"

struct place {
    struct bz_ctx ctx;
};

static struct bz_stack_pool pool;
static struct bz_stack_cache cache;

static inline void place_hop(struct place *from, struct place *to)
{
    bz_ctx_switch(&from->ctx, &to->ctx, NULL, NULL);
}

/* The one suspend site of a program. */
static __attribute__((noinline)) void place_suspend(struct place *from, struct place *to)
{
    bz_ctx_switch(&from->ctx, &to->ctx, NULL, NULL);
}

static void place_make(struct place *p, void (*fn)(void *), void *arg);
#include "switch/cases.h"

static void place_make(struct place *p, void (*fn)(void *), void *arg)
{
    struct bz_stack_config config = {.guards = BZ_STACK_GUARDS_BEST};
    struct bz_stack *s;
    if (pool.os == NULL) {
        if (bz_stack_pool_init(&pool, &config) != 0)
            bench_die("no pool");
        bz_stack_cache_init(&cache, &pool);
    }
    int err = bz_stack_take(&cache, BZ_STACK_64K, &s);
    if (err != 0)
        bench_die("no stack: %d", err);
    bz_ctx_init(&p->ctx, s->low, bz_stack_top(s), fn, arg, bz_fpcw_read());
}
