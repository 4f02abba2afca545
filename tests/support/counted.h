/*
 * counted.h - an allocator that counts its blocks, on any threads, and can refuse.
 *
 *     counted_refuse(3, false);                the third allocation from here fails; true: and all after it
 *     blitz_run(fn, arg, &(blitz_runtime_opts){.allocator = &counted});
 *     CHECK_EQ(counted_blocks(), 0);           nothing leaked
 */
#ifndef T_COUNTED_H
#define T_COUNTED_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/alloc.h"

static atomic_long counted_asked_, counted_refused_, counted_blocks_;
static atomic_bool counted_all_;

static inline void *counted_alloc_(void *ctx, size_t size, size_t align)
{
    (void)ctx;
    long n = atomic_fetch_add(&counted_asked_, 1) + 1, refused = counted_refused_;
    if (refused > 0 && (n == refused || (counted_all_ && n > refused)))
        return NULL;
    void *block = bz_alloc(&bz_allocator_libc, size, align);
    atomic_fetch_add(&counted_blocks_, block != NULL);
    return block;
}

static inline void counted_free_(void *ctx, void *block, size_t size)
{
    (void)ctx;
    atomic_fetch_sub(&counted_blocks_, 1);
    bz_free(&bz_allocator_libc, block, size);
}

static const blitz_allocator counted = {counted_alloc_, counted_free_, NULL};

static inline long counted_blocks(void)
{
    return counted_blocks_;
}

/* Refuse the nth request from here, or with `all` each from it on. 0: none. */
static inline void counted_refuse(long nth, bool all)
{
    counted_asked_ = 0;
    counted_all_ = all;
    counted_refused_ = nth;
}

#endif
