/*
 * alloc.c - the default allocator: the C library's.
 *
 * aligned_alloc wants the size to be a multiple of the alignment; malloc serves the common
 * alignments without that rounding.
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
        return NULL;
    return aligned_alloc(align, (size + align - 1) & ~(align - 1));
}

static void libc_free(void *ctx, void *memory, size_t size)
{
    (void)ctx;
    (void)size;
    free(memory);
}

const blitz_allocator bz_allocator_libc = {libc_alloc, libc_free, NULL};
