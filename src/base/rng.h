/*
 * rng.h - random numbers for schedules, never for secrets.
 *
 * splitmix64: one addition and two multiplications a number, a single word of state, every seed
 * good (also 0), full period. A worker picks victims with it, a test draws its inputs from it.
 * Rejected: xoshiro256 (four words of state and a seeding step, for a longer period that we do not
 *           need). The same seed always gives the same numbers, so that simulations can be
 *           replayed.
 */
#ifndef BZ_RNG_H
#define BZ_RNG_H

#include <stdint.h>

#include "base/check.h"

struct bz_rng {
    uint64_t state; /* only the owner accesses it */
};

static inline void bz_rng_init(struct bz_rng *r, uint64_t seed)
{
    r->state = seed;
}

static inline uint64_t bz_rng_next(struct bz_rng *r)
{
    uint64_t z = (r->state += UINT64_C(0x9e3779b97f4a7c15)); /* 2^64 / golden ratio */
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* Return a uniform number from 0 to limit - 1; `limit` is not 0. Multiply and shift, biased by at
 * most 2^-32. */
static inline uint32_t bz_rng_below(struct bz_rng *r, uint32_t limit)
{
    BZ_ASSERT(limit != 0);
    return (uint32_t)(((bz_rng_next(r) >> 32) * limit) >> 32);
}

/* Derive a new generator (for a thread or a child), reproducibly. */
static inline struct bz_rng bz_rng_split(struct bz_rng *r)
{
    return (struct bz_rng){bz_rng_next(r) ^ UINT64_C(0x6a09e667f3bcc909)};
}

#endif
