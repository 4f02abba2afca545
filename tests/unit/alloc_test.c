/* alloc.h: the C library's allocator behind the hook. */
#include "harness.h"

#include "base/alloc.h"

TEST(alloc, any_alignment_is_kept_for_any_size)
{
    for (size_t align = 1; align <= 65536; align *= 4)
        for (size_t size = 1; size < 70000; size = size * 3 + 1) {
            unsigned char *p = bz_alloc(&bz_allocator_libc, size, align);
            CHECK_NOT_NULL(p);
            CHECK_EQ((uintptr_t)p % align, 0u);
            p[0] = 1;
            p[size - 1] = 2;
            bz_free(&bz_allocator_libc, p, size);
        }
}

TEST(alloc, a_size_that_overflows_is_null_not_small)
{
    volatile size_t most = SIZE_MAX;
    CHECK_NULL(bz_alloc(&bz_allocator_libc, most, 4096));
    CHECK_NULL(bz_alloc(&bz_allocator_libc, most - 10, 64));
}

TEST(alloc, freeing_null_reaches_no_allocator)
{
    bz_free(&(blitz_allocator){NULL, NULL, NULL}, NULL, 8);
}
