/*
 * clock.h - vector clocks, eight lanes of sixteen bits.
 *
 * Lane n counts the events of thread n, from 1; 0 means "nothing of it". Eight lanes fill one
 * 128-bit vector, so that joining and comparing cost an instruction or two: they are what the
 * checker does most. A `seen` clock (memory.c) uses the lanes the other way round: the first event
 * of each thread that wrote or read a store, M_NEVER if none did.
 */
#ifndef M_CLOCK_H
#define M_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#define M_LANES 8
#define M_NEVER INT16_MAX

typedef int16_t m_lanes __attribute__((vector_size(16)));

union m_clock {
    m_lanes v;
    int16_t at[M_LANES];
};

static inline void m_clock_join(union m_clock *a, const union m_clock *b)
{
    m_lanes more = b->v > a->v;
    a->v = (b->v & more) | (a->v & ~more);
}

/* Is some lane of `seen` within `c`: did anything that c knows of touch it? */
static inline bool m_clock_touches(const union m_clock *c, const union m_clock *seen)
{
    union {
        m_lanes v;
        uint64_t half[2];
    } in = {seen->v <= c->v};
    return (in.half[0] | in.half[1]) != 0;
}

/* Is some lane of `a` beyond `c`: is there anything in it that c does not know of? */
static inline bool m_clock_exceeds(const union m_clock *a, const union m_clock *c)
{
    union {
        m_lanes v;
        uint64_t half[2];
    } out = {a->v > c->v};
    return (out.half[0] | out.half[1]) != 0;
}

/* Lane by lane, but written as a whole: a vector read right after a narrow write would have to wait
 * until the write has reached the cache, and these follow each other all the time. */
static inline void m_clock_put(union m_clock *c, int lane, int16_t value)
{
    static const m_lanes numbers = {0, 1, 2, 3, 4, 5, 6, 7};
    m_lanes is_it = numbers == (int16_t)lane;
    c->v = (c->v & ~is_it) | (is_it & value);
}

static inline void m_clock_set_never(union m_clock *c)
{
    m_lanes never = {M_NEVER, M_NEVER, M_NEVER, M_NEVER, M_NEVER, M_NEVER, M_NEVER, M_NEVER};
    c->v = never;
}

#endif
