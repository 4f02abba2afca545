/*
 * age.h - the approximate time, at no cost: so that every task can say when it was spawned.
 *
 * A clock read costs 20 to 60 ns, about as much as a whole spawn. So the runtime keeps the time in a
 * word. A thread that has just read the clock updates the word. Machines do so about once a
 * millisecond while they run tasks, and after every sleep. The monitor does so at each look, in case
 * every machine stays at one task for long. A spawn loads that word, which is in its cache, and stores
 * it in the field that the task's result will need in the end.
 *
 * A tick is 2^22 ns, 4.2 ms. 32 bits of ticks wrap around after 208 days: an older task looks younger
 * by that much.
 */
#ifndef BZ_AGE_H
#define BZ_AGE_H

#include <stdint.h>

#include "base/bz_atomic.h"

enum { BZ_AGE_SHIFT = 22 };

typedef bz_atomic(uint32_t) bz_age_word;

/* Return the tick of a moment; never 0, which means "not known". */
static inline uint32_t bz_age_tick(uint64_t now_ns)
{
    uint32_t tick = (uint32_t)(now_ns >> BZ_AGE_SHIFT);
    return tick != 0 ? tick : 1;
}

/* The clock was read: update the word. Write only if the tick has changed, so that the cache line stays shared. */
static inline void bz_age_update(bz_age_word *w, uint64_t now_ns)
{
    uint32_t tick = bz_age_tick(now_ns);
    if (bz_load_relaxed(w) != tick) /* relaxed: a rough time, by any thread */
        bz_store_relaxed(w, tick);  /* relaxed: likewise */
}

static inline uint32_t bz_age_now(bz_age_word *w)
{
    return bz_load_relaxed(w); /* relaxed: a rough time */
}

/* Return how long ago the tick was, in ns; 0 if it is not known or lies ahead. */
static inline uint64_t bz_age_of(uint32_t tick, uint64_t now_ns)
{
    uint32_t ago = bz_age_tick(now_ns) - tick;
    return tick == 0 || ago > UINT32_MAX / 2 ? 0 : (uint64_t)ago << BZ_AGE_SHIFT;
}

#endif
