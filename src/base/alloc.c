/*
 * alloc.c - the default allocator: the C library's.
 *
 * posix_memalign takes any size. (aligned_alloc requires a multiple of the alignment. With sizes
 * rounded up to that, an aligned block and its header leave a hole as large as a block before the
 * next one.)
 */
#include "base/alloc.h"

#include <stdalign.h>
#include <stdlib.h>

static void *libc_alloc(void *ctx, size_t size, size_t align)
{
    (void)ctx;
    if (align <= alignof(max_align_t))
        return malloc(size);
    if (size > SIZE_MAX - (align - 1))
        return NULL; /* a null pointer would make a sanitizer complain */
    void *memory;
    return posix_memalign(&memory, align, size) == 0 ? memory : NULL;
}

static void libc_free(void *ctx, void *memory, size_t size)
{
    (void)ctx;
    (void)size;
    free(memory);
}

const blitz_allocator bz_allocator_libc = {libc_alloc, libc_free, NULL};
