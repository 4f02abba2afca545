/*
 * copy.h - copying a value of a channel.
 */
#ifndef BZ_CHAN_COPY_H
#define BZ_CHAN_COPY_H

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

#endif
