/*
 * copy.h - copying a value of a channel.
 */
#ifndef BZ_CHAN_COPY_H
#define BZ_CHAN_COPY_H

#include <stdbool.h>
#include <string.h>

#include "base/compiler.h"

/* Copy a value. The size is known only at run time but is mostly 8 or 4; for these there is no function call. */
static BZ_ALWAYS_INLINE void bz_value_copy(void *to, const void *from, size_t size)
{
    if (BZ_LIKELY(size == 8))
        memcpy(to, from, 8);
    else if (size == 4)
        memcpy(to, from, 4);
    else
        memcpy(to, from, size);
}

/* True if bz_value_copy_small() can copy values of that size. */
static BZ_ALWAYS_INLINE bool bz_value_is_small(size_t size)
{
    return BZ_LIKELY(size == 8) || size == 4;
}

/* Copy a small value. It never calls a function, so that a fast path need not save registers. */
static BZ_ALWAYS_INLINE void bz_value_copy_small(void *to, const void *from, size_t size)
{
    if (BZ_LIKELY(size == 8))
        memcpy(to, from, 8);
    else
        memcpy(to, from, 4);
}

#endif
