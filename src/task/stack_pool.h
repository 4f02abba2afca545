/*
 * stack_pool.h - the interface between the caches (stack.c) and the slabs (stack_pool.c) only.
 */
#ifndef BZ_STACK_POOL_H
#define BZ_STACK_POOL_H

#include "task/stack.h"

enum {
    BZ_STACK_SLAB_MAX = 1024, /* stacks in a slab */
    BZ_STACK_COLOURS = 8,
    BZ_STACK_COLOUR_BYTES = 128
};

/* Many stacks in one mapping. The descriptor is separate, so that untouched stacks stay
 * untouched. */
struct bz_stack_slab {
    struct bz_list all;  /* in pool->slabs; guarded by the pool's lock, like the rest ... */
    struct bz_list open; /* in kind->open while it has stacks available */
    struct bz_chain idle;
    uint32_t used;                          /* stacks in caches and in use */
    uint64_t clean[BZ_STACK_SLAB_MAX / 64]; /* bit i: stack i has no memory */
    struct bz_stack_pool *pool;             /* ... except these, which are constant */
    struct bz_os_slab pages;
    uint32_t count;
    uint8_t class;
    uint8_t guard; /* enum bz_stack_guard_kind */
};

/* A stack taken from the pool. If `is_fresh`, its content is undefined and the caller must
 * initialise the control block; else it has been used before. */
struct bz_stack_found {
    struct bz_stack *stack;
    struct bz_stack_slab *slab;
    bool is_fresh;
};

/* Take one stack into *out and up to `more_max` used ones into *more. Return 0 or -errno as
 * bz_stack_take. */
BZ_MUST_USE int bz_stack_pool_take(struct bz_stack_pool *p, enum bz_stack_class class,
                                   struct bz_stack_found *out, struct bz_chain *more,
                                   uint32_t more_max);

/* Return stacks of one class; the chain is empty afterwards. */
void bz_stack_pool_give(struct bz_stack_pool *p, enum bz_stack_class class,
                        struct bz_chain *stacks);

/* Free the memory of whole pages of a slab, or log once why it failed. */
void bz_stack_pool_discard(struct bz_stack_pool *p, char *low, size_t bytes);

/* Addresses of stack number i of a slab: its guard and its control block. The blocks start in
 * different cache sets, or else the hot lines of a thousand stacks would share a few. */
static inline char *bz_stack_slab_low(const struct bz_stack_slab *slab, uint32_t i)
{
    return slab->pages.base + i * slab->pool->kind[slab->class].bytes;
}
static inline struct bz_stack *bz_stack_slab_at(const struct bz_stack_slab *slab, uint32_t i)
{
    size_t below = sizeof(struct bz_stack) + i % BZ_STACK_COLOURS * BZ_STACK_COLOUR_BYTES;
    return (struct bz_stack *)(bz_stack_slab_low(slab, i + 1) - (below + 63) / 64 * 64);
}
static inline uint32_t bz_stack_slab_index(const struct bz_stack_slab *slab, const void *address)
{
    size_t offset = (size_t)((const char *)address - slab->pages.base);
    return (uint32_t)(offset / slab->pool->kind[slab->class].bytes);
}

#endif
