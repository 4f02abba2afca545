/*
 * children.h - what race, all and timeout do with the futures they are made of.
 *
 *   UNASKED --poll--> ASKED --poll--> ENDED          pending, ready
 *   UNASKED --stop--> REVOKED                        never polled: there is nothing to undo
 *   ASKED   --stop--> REVOKED | LEFT | STOPPING      by its class, once
 *   STOPPING --poll-> ENDED                          a pinned one is waited for
 *
 * The other three are for good: a child is polled no more after it was ready, and cancelled once.
 */
#ifndef BZ_FUTURE_CHILDREN_H
#define BZ_FUTURE_CHILDREN_H

#include <stdbool.h>

#include "base/compiler.h"
#include "blitz/combine.h"
#include "sched/readylist.h"

/* A combinator with more children than that has a list of those that were woken. Tests change it. */
extern size_t bz_children_few;

/* Is there anything left to wait for? */
static inline bool bz_child_is_open(const blitz_child *c)
{
    return c->fate <= BLITZ_STOPPING;
}

/* Ask an open child. True: it has ended now. */
BZ_MUST_USE bool bz_child_poll(blitz_child *c, const blitz_waker *waker);

/* Give up a child that is open and was not given up yet; the others are left as they are. */
void bz_child_stop(blitz_child *c);
/* All of them. True: there are pinned ones, which have to be asked until they have ended. */
bool bz_children_stop(blitz_child *child, size_t count);

/* The waker for child i: its own, made in *room, if there is a list; else the parent's. */
static inline const blitz_waker *bz_child_waker(struct bz_readylist *list, size_t i,
                                                const blitz_waker *waker, blitz_waker *room)
{
    if (BZ_LIKELY(list == NULL))
        return waker;
    *room = bz_readylist_waker(bz_readylist_at(list, i));
    return room;
}

/* Poll the children that were asked to stop. Return the number of those that are not ready. */
BZ_MUST_USE size_t bz_children_settle(blitz_child *child, size_t count, struct bz_readylist *list,
                                      const blitz_waker *waker);
/* Poll those of them that were woken. `open` are not ready before, the result after. */
BZ_MUST_USE size_t bz_children_settle_woken(blitz_child *child, size_t open,
                                            struct bz_readylist *list);

/* Set each fate to its beginning and choose the class: ops[] has a table for each. -EINVAL: one has
 * no future. */
BZ_MUST_USE int bz_children_init(blitz_child *child, size_t count,
                                 const blitz_future_ops *const ops[3], blitz_future *f);

#endif
