/*
 * shares.h - the number of holders of a thing that its last holder frees.
 *
 * A share is added relaxed: the caller holds one, so the number cannot fall to 0 meanwhile. It is dropped with acquire-release: all
 * that a holder has read or written comes before the free. A holder that finds the number at 1 is alone, and may write: the acquire
 * sees the drops of those that have left.
 *
 * [S] drop: count release -> drop, is_single: count acquire
 */
#ifndef BZ_ACTOR_SHARES_H
#define BZ_ACTOR_SHARES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/bz_atomic.h"
#include "base/check.h"

struct bz_shares {
    bz_atomic(size_t) count;
};

static inline void bz_shares_init(struct bz_shares *s, size_t count)
{
    bz_atomic_init(&s->count, count);
}

static inline void bz_shares_add(struct bz_shares *s)
{
    size_t was = bz_fetch_add_relaxed(&s->count, 1); /* relaxed: the caller holds a share */
    BZ_ASSERT(was > 0);
    (void)was;
}

/* True: it was the last one, and the caller frees the thing. */
BZ_MUST_USE static inline bool bz_shares_drop(struct bz_shares *s)
{
    size_t was = bz_fetch_sub_acqrel(&s->count, 1); /* [S] */
    BZ_CHECK(was > 0, "%p: released too often", (void *)s);
    return was == 1;
}

/* About how many there are. */
static inline uint32_t bz_shares_count(const struct bz_shares *s)
{
    return (uint32_t)bz_load_relaxed(&s->count); /* relaxed: a guess */
}

/* True if the caller's share is the only one. */
static inline bool bz_shares_is_single(struct bz_shares *s)
{
    return bz_load_acquire(&s->count) == 1; /* [S] */
}

#endif
