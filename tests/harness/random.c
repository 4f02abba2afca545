/*
 * random.c - numbers that follow from the seed.
 *
 * splitmix64: a counter and a mixing function, so that drawing is one atomic add and a generator can
 * be had for any index without having drawn for the others.
 */
#include "record.h"

#define STEP UINT64_C(0x9e3779b97f4a7c15)

static uint64_t seed;
static _Atomic uint64_t state;

uint64_t t_mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

void t_random_start(uint64_t seed_)
{
    seed = seed_;
    atomic_store(&state, t_mix(T_BROKEN(6) ? (uint64_t)t_self_tid() : seed));
}

uint64_t t_seed(void)
{
    return seed;
}

uint64_t t_random(void)
{
    return t_mix(atomic_fetch_add(&state, STEP) + STEP);
}

struct t_rng t_rng_of(uint64_t index)
{
    return (struct t_rng){t_mix(seed ^ t_mix(index + STEP))};
}

uint64_t t_rng_next(struct t_rng *r)
{
    return t_mix(r->state += STEP);
}

/* Numbers at the end of the range that would favour small remainders are drawn again. */
static bool is_fair(uint64_t x, uint64_t limit)
{
    return x <= UINT64_MAX - (UINT64_MAX % limit + 1) % limit;
}

uint64_t t_random_below(uint64_t limit)
{
    uint64_t x;

    CHECK_GT(limit, 0u);
    do
        x = t_random();
    while (!is_fair(x, limit));
    return x % limit;
}

uint64_t t_rng_below(struct t_rng *r, uint64_t limit)
{
    uint64_t x;

    CHECK_GT(limit, 0u);
    do
        x = t_rng_next(r);
    while (!is_fair(x, limit));
    return x % limit;
}

uint64_t t_random_between(uint64_t first, uint64_t last)
{
    CHECK_LE(first, last);
    if (last - first == UINT64_MAX)
        return t_random();
    return first + t_random_below(last - first + 1);
}

void t_random_bytes(void *into, size_t size)
{
    unsigned char *at = into;

    while (size > 0) {
        uint64_t x = t_random();
        size_t part = size < sizeof x ? size : sizeof x;
        memcpy(at, &x, part);
        at += part;
        size -= part;
    }
}
