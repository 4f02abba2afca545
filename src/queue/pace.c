/*
 * pace.c - the arithmetic of pace.h, in integers.
 */
#include "queue/pace.h"

#include "base/check.h"

#define GOAL (UINT64_C(1000000) * BZ_PACE_FINE)

static uint32_t every_of(uint64_t average)
{
    uint64_t every = average > 0 ? GOAL / average : BZ_PACE_MAX;
    return every < BZ_PACE_MIN ? BZ_PACE_MIN : every > BZ_PACE_MAX ? BZ_PACE_MAX : (uint32_t)every;
}

/* 0.9 to the power of `runs`, in 2^-32. */
static uint64_t left_after(uint32_t runs)
{
    uint64_t left = UINT64_C(1) << 32, tenths = UINT64_C(3865470566);
    for (; runs > 0; runs >>= 1) {
        if (runs & 1)
            left = left * tenths >> 32;
        tenths = tenths * tenths >> 32;
    }
    return left;
}

void bz_pace_init(struct bz_pace *p, uint32_t tick, uint64_t now_ns)
{
    *p = (struct bz_pace){.average = GOAL / BZ_PACE_FIRST, .every = BZ_PACE_FIRST};
    bz_pace_restart(p, tick, now_ns);
}

static void learn(struct bz_pace *p, uint32_t runs, uint64_t took_ns)
{
    uint64_t most = GOAL / BZ_PACE_FINE * runs;
    uint64_t mean = (took_ns < most ? took_ns : most) * BZ_PACE_FINE / runs;
    uint64_t left = left_after(runs);
    p->average = (p->average * left + mean * ((UINT64_C(1) << 32) - left)) >> 32;
    p->every = every_of(p->average);
}

void bz_pace_look(struct bz_pace *p, uint32_t tick, uint64_t now_ns)
{
    uint32_t runs = tick - p->at_tick + p->short_runs;
    if (runs > 0 && now_ns >= p->at_ns)
        learn(p, runs, now_ns - p->at_ns + p->short_ns);
    p->short_runs = 0;
    p->short_ns = 0;
    bz_pace_restart(p, tick, now_ns);
}

void bz_pace_restart(struct bz_pace *p, uint32_t tick, uint64_t now_ns)
{
    p->at_tick = tick;
    p->at_ns = now_ns;
    p->due = p->every;
}

void bz_pace_check(const struct bz_pace *p)
{
    BZ_CHECK(p->every >= BZ_PACE_MIN && p->every <= BZ_PACE_MAX, "pace: every %u runs", p->every);
    BZ_CHECK(p->every == every_of(p->average), "pace: every %u runs, average %llu", p->every,
             (unsigned long long)p->average); /* I1 */
}
