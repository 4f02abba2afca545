/*
 * look.h - futures that can be looked at without being asked.
 *
 * A poll that says "pending" has left a waker somewhere, under a lock, and what was left is taken back
 * under that lock if something else was faster. Whoever asks several futures can save both where one
 * is ready and the others plainly are not: it looks at those first (race.c). The answer "far" is
 * certain, was true a moment ago, and touched nothing; any other answer means: ask.
 *
 * Such a future is known by its `cancel`, which is the one below for all of them. So the table that
 * programs see (blitz/future.h) is as it was.
 */
#ifndef BZ_LOOK_H
#define BZ_LOOK_H

#include "base/compiler.h"
#include "blitz/future.h"

struct bz_look_ops {
    blitz_future_ops future;         /* first; its cancel is bz_look_cancel */
    void (*cancel)(blitz_future *f); /* what that calls */
    bool (*is_far)(
        blitz_future *f); /* was it never asked, and would it have to wait? By its owner */
};

void bz_look_cancel(blitz_future *f); /* await.c */

static inline bool bz_future_is_far(blitz_future *f)
{
    if (f->ops->cancel != bz_look_cancel)
        return false;
    return ((const struct bz_look_ops *)f->ops)->is_far(f);
}

#endif
