/*
 * children.h - the operations of race, all and timeout on their child futures.
 *
 *   UNASKED --poll--> ASKED --poll--> ENDED          pending, ready
 *   UNASKED --stop--> REVOKED                        never polled: there is nothing to undo
 *   ASKED   --stop--> REVOKED | LEFT | STOPPING      by its class, once
 *   STOPPING --poll-> ENDED                          a pinned one is waited for
 *
 * The other three states are final: a child is not polled after it was ready, and is cancelled once.
 */
#ifndef BZ_FUTURE_CHILDREN_H
#define BZ_FUTURE_CHILDREN_H

#include <stdbool.h>

#include "base/compiler.h"
#include "blitz/combine.h"
#include "wait/readylist.h"

/* A combinator with more children than this has a list of the woken children. Tests change it. */
extern size_t bz_children_few;

/* True if the child may still have to be polled. */
static inline bool bz_child_is_open(const blitz_child *c)
{
    return c->fate <= BLITZ_STOPPING;
}

/* Poll an open child. Return true if it has ended now. */
BZ_MUST_USE bool bz_child_poll(blitz_child *c, const blitz_waker *waker);

/* Cancel a child that is open and was not cancelled yet. Leave a child in any other state as it is. */
void bz_child_stop(blitz_child *c);
/* Cancel all children. Return true if some are pinned: these must be polled until they have ended. */
bool bz_children_stop(blitz_child *child, size_t count);

/* Return the waker for child i: its own, made in *room, if there is a list; else the parent's. */
static inline const blitz_waker *bz_child_waker(struct bz_readylist *list, size_t i,
                                                const blitz_waker *waker, blitz_waker *room)
{
    if (BZ_LIKELY(list == NULL))
        return waker;
    *room = bz_readylist_waker(bz_readylist_at(list, i));
    return room;
}

/* Poll the children that were asked to stop. Return how many of them are not ready. */
BZ_MUST_USE size_t bz_children_poll_stopping(blitz_child *child, size_t count,
                                             struct bz_readylist *list, const blitz_waker *waker);
/* Poll the woken children among those that were asked to stop. `open` is the number that were not ready before; return
 * the number after. */
BZ_MUST_USE size_t bz_children_poll_stopping_woken(blitz_child *child, size_t open,
                                                   struct bz_readylist *list);

/* Initialize each fate and choose the class: ops[] has a table for each. Return -EINVAL if a child has
 * no future. */
BZ_MUST_USE int bz_children_init(blitz_child *child, size_t count,
                                 const blitz_future_ops *const ops[3], blitz_future *f);

#endif
