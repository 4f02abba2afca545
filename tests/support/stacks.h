/*
 * stacks.h - a pool and a cache for a test, and questions about the pages of a stack.
 */
#ifndef T_STACKS_H
#define T_STACKS_H

#include "harness.h"
#if !defined(_WIN32)
#include <sys/mman.h>
#include <unistd.h>
#endif
#include "task/stack.h"
#include "task/stack_pool.h"
#include "support/test_alloc.h"

struct t_stacks {
    struct test_alloc memory;
    blitz_allocator alloc;
    struct bz_stack_pool pool;
    struct bz_stack_cache cache;
};

static inline void t_stacks_init(struct t_stacks *t, struct bz_stack_config config)
{
    memset(&t->memory, 0, sizeof t->memory);
    t->alloc = test_allocator(&t->memory);
    config.alloc = &t->alloc;
    CHECK_EQ(bz_stack_pool_init(&t->pool, &config), 0);
    bz_stack_cache_init(&t->cache, &t->pool);
}

static inline void t_stacks_fini(struct t_stacks *t)
{
    bz_stack_cache_fini(&t->cache);
    bz_stack_pool_check(&t->pool);
    bz_stack_pool_fini(&t->pool);
    CHECK_EQ(t->memory.live, 0u);
}

static inline struct bz_stack *t_stack_take(struct t_stacks *t, enum bz_stack_class class)
{
    struct bz_stack *s = NULL;
    CHECK_EQ(bz_stack_take(&t->cache, class, &s), 0);
    CHECK_NOT_NULL(s);
    return s;
}

#if !defined(_WIN32)
/* How many of the usable pages, control block's included, have memory behind them. */
static inline int t_stack_resident(struct bz_stack *s)
{
    static unsigned char state[4096];
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uintptr_t end = ((uintptr_t)(s + 1) + page - 1) & ~(page - 1);
    size_t pages = (end - (uintptr_t)s->low) / page;
    int count = 0;
    CHECK_LE(pages, sizeof state);
    CHECK_EQ(mincore(s->low, pages * page, state), 0);
    for (size_t i = 0; i < pages; i++)
        count += state[i] & 1;
    return count;
}

#endif

/* As a user that goes `bytes` deep from the top would: every cache line of it is written. */
static inline void t_stack_dirty(struct bz_stack *s, size_t bytes)
{
    char *top = bz_stack_top(s);
    CHECK_LE(bytes, bz_stack_bytes(s));
    for (size_t i = 16; i <= bytes; i += 16)
        *(volatile char *)(top - i) = 1;
}

#endif
