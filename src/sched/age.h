/*
 * age.h - what time it is, roughly and for nothing: so that every task can say when it was spawned.
 *
 * A clock read costs 20 to 60 ns, a whole spawn about as much. So the runtime keeps the time in a
 * word that whoever has just read the clock brings up to date: machines, about once a millisecond
 * while they run tasks and after every sleep, and the monitor at each look, for when all of them
 * are at one task for long. A spawn loads that word, which is in its cache, and stores it in the field
 * that the task's result will need in the end.
 *
 * A tick is 2^22 ns, 4.2 ms. 32 bits of them wrap around after 208 days: a task that is older looks
 * younger by as much.
 */
#ifndef BZ_AGE_H
#define BZ_AGE_H

#include <stdint.h>

#include "base/bz_atomic.h"

enum { BZ_AGE_SHIFT = 22 };

typedef bz_atomic(uint32_t) bz_age_word;

/* The tick of a moment; never 0, which says "not known". */
static inline uint32_t bz_age_tick(uint64_t now_ns)
{
    uint32_t tick = (uint32_t)(now_ns >> BZ_AGE_SHIFT);
    return tick != 0 ? tick : 1;
}

/* The clock was read. Writes only if it is later, so that the line stays where it is. */
static inline void bz_age_update(bz_age_word *w, uint64_t now_ns)
{
    uint32_t tick = bz_age_tick(now_ns);
    if (bz_load_relaxed(w) != tick) /* relaxed: a rough time, by whoever comes */
        bz_store_relaxed(w, tick);  /* relaxed: likewise */
}

static inline uint32_t bz_age_now(bz_age_word *w)
{
    return bz_load_relaxed(w); /* relaxed: a rough time */
}

/* How long ago, in ns; 0 if it is not known or lies ahead. */
static inline uint64_t bz_age_of(uint32_t tick, uint64_t now_ns)
{
    uint32_t ago = bz_age_tick(now_ns) - tick;
    return tick == 0 || ago > UINT32_MAX / 2 ? 0 : (uint64_t)ago << BZ_AGE_SHIFT;
}

#endif
