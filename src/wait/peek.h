/*
 * peek.h - futures that can be checked without a poll.
 *
 * A poll that returns "pending" has registered a waker under a lock. The registration is removed under
 * that lock if another future was faster. Code that polls several futures can save both, if one future is
 * ready and the others plainly are not: it checks those first (race.c). The answer "far" is certain, was
 * true a moment ago, and touched nothing; any other answer means: poll.
 *
 * Such a future is known by its `cancel`, which is the function below for all of them. So the table that
 * programs see (blitz/future.h) is unchanged.
 */
#ifndef BZ_LOOK_H
#define BZ_LOOK_H

#include "base/compiler.h"
#include "blitz/future.h"

struct bz_look_ops {
    blitz_future_ops future;         /* first; its cancel is bz_look_cancel */
    void (*cancel)(blitz_future *f); /* called by bz_look_cancel */
    bool (*is_far)(
        blitz_future *f); /* true if it was never polled and would have to wait. Owner only */
};

void bz_look_cancel(blitz_future *f); /* waker.c */

static inline bool bz_future_is_far(blitz_future *f)
{
    if (f->ops->cancel != bz_look_cancel)
        return false;
    return ((const struct bz_look_ops *)f->ops)->is_far(f);
}

#endif
