/*
 * alloc_windows.c - the default allocator: the C library's.
 *
 * The C library has two heaps of functions: a block with an alignment is freed by a function of its own. A free does not know the
 * alignment, so every block comes from the second kind.
 */
#include "base/alloc.h"

#include <malloc.h> /* lint: allow platform: as alloc.c, which needs one function of POSIX in <stdlib.h> */
#include <stdalign.h>
#include <stdlib.h>

static void *libc_alloc(void *ctx, size_t size, size_t align)
{
    (void)ctx;
    if (align < alignof(max_align_t))
        align = alignof(max_align_t);
    return size <= SIZE_MAX - 2 * align ? _aligned_malloc(size, align) : NULL;
}

static void libc_free(void *ctx, void *memory, size_t size)
{
    (void)ctx;
    (void)size;
    _aligned_free(memory);
}

const blitz_allocator bz_allocator_libc = {libc_alloc, libc_free, NULL};
