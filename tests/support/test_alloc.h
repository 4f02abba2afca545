/*
 * test_alloc.h - an allocator that counts, and fails when told to.
 *
 *     struct test_alloc memory = TEST_ALLOC;
 *     blitz_allocator a = test_allocator(&memory);
 *     memory.fail_at = 3;                      // the third allocation from here returns NULL
 *     ...
 *     CHECK_EQ(memory.live, 0);                // nothing leaked
 *
 * It also checks that every block is freed with the size it was asked for with. One thread.
 */
#ifndef TEST_ALLOC_H
#define TEST_ALLOC_H

#include "base/alloc.h"
#include "harness.h"

struct test_alloc {
    size_t live;       /* blocks out */
    size_t live_bytes; /* bytes out, as asked for */
    size_t calls;      /* allocations asked for so far */
    size_t fail_at;    /* fail when calls reaches this; 0 is never */
};
#define TEST_ALLOC \
    {              \
        0, 0, 0, 0 \
    }

static inline void *test_alloc_alloc(void *ctx, size_t size, size_t align)
{
    struct test_alloc *m = ctx;
    CHECK_GT(size, 0u);
    CHECK_GT(align, 0u);
    CHECK_EQ(align & (align - 1), 0u);
    if (++m->calls == m->fail_at)
        return NULL;
    void *p = bz_alloc(&bz_allocator_libc, size, align);
    CHECK_NOT_NULL(p);
    CHECK_EQ((uintptr_t)p % align, 0u);
    m->live++;
    m->live_bytes += size;
    return p;
}

static inline void test_alloc_free(void *ctx, void *memory, size_t size)
{
    struct test_alloc *m = ctx;
    CHECK_NOT_NULL(memory);
    CHECK_GE(m->live_bytes, size);
    m->live--;
    m->live_bytes -= size;
    bz_free(&bz_allocator_libc, memory, size);
}

static inline blitz_allocator test_allocator(struct test_alloc *m)
{
    return (blitz_allocator){test_alloc_alloc, test_alloc_free, m};
}

#endif
