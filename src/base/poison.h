/*
 * poison.h - tell AddressSanitizer about memory that our slabs allocate.
 *
 * A slab reuses objects without malloc, so ASan would not notice a use after free. With these calls
 * it does. They are empty in every other build.
 */
#ifndef BZ_POISON_H
#define BZ_POISON_H

#include <stddef.h>

#include "base/compiler.h"

#if BZ_ASAN
#include <sanitizer/asan_interface.h>
static inline void bz_poison(const void *memory, size_t size)
{
    __asan_poison_memory_region(memory, size);
}
static inline void bz_unpoison(const void *memory, size_t size)
{
    __asan_unpoison_memory_region(memory, size);
}
#else
static inline void bz_poison(const void *memory, size_t size)
{
    (void)memory;
    (void)size;
}
static inline void bz_unpoison(const void *memory, size_t size)
{
    (void)memory;
    (void)size;
}
#endif

#endif
