/*
 * askers.h - futures of a primitive, polled by hand on one thread, each with a bell for a waker.
 *
 *     struct asker a[4];
 *     asker_begin(&a[0]);                      a fresh future: init it
 *     asker_ask(&a[0])                         poll once: is it ready?
 *     asker_give_up(&a[0])                     cancel
 *     asker_was_rung(&a[0])                    has its waker been woken since it was last asked?
 *
 * At the end no clone of a waker is left.
 */
#ifndef T_ASKERS_H
#define T_ASKERS_H

#include "harness.h"

#include "blitz.h"
#include "support/bell.h"

struct asker {
    blitz_sync_future f;
    struct t_bell bell;
    bool is_asking; /* started, and neither ready nor cancelled */
    int heard;      /* rings before it last asked */
};

static inline void asker_begin(struct asker *a)
{
    CHECK(!a->is_asking);
    a->bell = (struct t_bell){.holders = 1, .rung = 0};
    a->heard = 0;
    a->is_asking = true;
}

static inline bool asker_ask(struct asker *a)
{
    blitz_waker w = t_bell_waker(&a->bell);
    CHECK(a->is_asking);
    a->heard = a->bell.rung;
    if (a->f.future.ops->poll(&a->f.future, &w) == BLITZ_PENDING) {
        CHECK_EQ(a->bell.holders, 2); /* it keeps one clone */
        return false;
    }
    CHECK_EQ(a->bell.holders, 1);
    a->is_asking = false;
    return true;
}

static inline void asker_give_up(struct asker *a)
{
    CHECK(a->is_asking);
    a->f.future.ops->cancel(&a->f.future);
    CHECK_EQ(a->bell.holders, 1);
    a->is_asking = false;
}

static inline bool asker_was_rung(const struct asker *a)
{
    return a->bell.rung != a->heard;
}

#endif
