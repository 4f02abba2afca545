/*
 * alloc.h - memory by way of the user's allocator (blitz/hooks.h).
 *
 * Everything that allocates holds a `const blitz_allocator *`; nothing in src/ calls malloc. The
 * default is the C library's.
 */
#ifndef BZ_ALLOC_H
#define BZ_ALLOC_H

#include "base/check.h"
#include "base/compiler.h"
#include "blitz/hooks.h"

/* malloc, posix_memalign and free. Constant, shared by all. */
extern const blitz_allocator bz_allocator_libc;

/* NULL if there is no memory. `size` is not 0, and `align` is a power of two: blitz/hooks.h promises both. */
static inline void *bz_alloc(const blitz_allocator *a, size_t size, size_t align)
{
    BZ_ASSERT(size > 0);
    BZ_ASSERT(align > 0);
    BZ_ASSERT((align & (align - 1)) == 0);
    return a->alloc(a->ctx, size, align);
}

/* `size` is what was asked for. NULL is ignored. */
static inline void bz_free(const blitz_allocator *a, void *memory, size_t size)
{
    if (memory != NULL)
        a->free(a->ctx, memory, size);
}

#endif
