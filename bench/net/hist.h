/*
 * hist.h - a histogram of times, exact to 1 part in 64.
 *
 * Buckets are linear below 128 ns; above, every power of two has 64 of them. A percentile is the upper edge of
 * its bucket: never better than what was measured.
 */
#ifndef NET_HIST_H
#define NET_HIST_H

#include <stdint.h>
#include <string.h>

enum { HIST_BITS = 6, HIST_STEPS = 1 << HIST_BITS, HIST_BUCKETS = (64 - HIST_BITS) * HIST_STEPS };

struct hist {
    uint64_t count;
    uint64_t in[HIST_BUCKETS];
};

static inline unsigned hist_bucket(uint64_t ns)
{
    if (ns < 2 * HIST_STEPS)
        return (unsigned)ns;
    unsigned shift = 63u - (unsigned)__builtin_clzll(ns) - HIST_BITS;
    return shift * HIST_STEPS + (unsigned)(ns >> shift);
}

static inline uint64_t hist_edge(unsigned bucket)
{
    if (bucket < 2 * HIST_STEPS)
        return bucket;
    unsigned shift = bucket / HIST_STEPS - 1;
    return ((uint64_t)(bucket - shift * HIST_STEPS + 1) << shift) - 1;
}

static inline void hist_add(struct hist *h, uint64_t ns)
{
    h->count++;
    h->in[hist_bucket(ns)]++;
}

/* The time that `of` in a thousand stay at or below. */
static inline double hist_ns(const struct hist *h, double of)
{
    uint64_t want = (uint64_t)((double)h->count * of / 1000.0);
    uint64_t seen = 0;
    for (unsigned i = 0; i < HIST_BUCKETS; i++) {
        seen += h->in[i];
        if (seen > 0 && seen >= want)
            return (double)hist_edge(i);
    }
    return 0;
}

#endif
