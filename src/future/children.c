/*
 * children.c - the steps of a child's life, drawn in children.h.
 *
 * Revocable children are revoked before pinned ones are asked to stop. A pinned child may take its
 * time, and meanwhile the resources of the revoked children are available to other waiters.
 *
 * Which waker does a child get? A waker may be kept and woken after the child was cancelled, so it must
 * point to counted memory. The parent's task is counted; the combinator's memory is the caller's and may
 * be gone. So up to bz_children_few children get the parent's own waker, nothing is allocated, and a wake-up
 * polls all open children. More children get a waker each, from one block (readylist.c), and a
 * wake-up polls the woken child. If there is no memory for the block, any number of children get the parent's
 * waker.
 *
 * I1  A child that has ended, was revoked or was left is not touched again.
 * I2  cancel is called once, and only after a poll that said "pending".
 */
#include "future/children.h"

#include <errno.h>

#include "park/await.h"
#include "wait/wait.h"

size_t bz_children_few = BLITZ_OF_MAX;

bool bz_child_poll(blitz_child *c, const blitz_waker *waker)
{
    if (bz_future_poll(c->future, waker) == BLITZ_READY) {
        c->fate = BLITZ_ENDED;
        return true;
    }
    if (c->fate == BLITZ_UNASKED)
        c->fate = BLITZ_ASKED;
    return false;
}

void bz_child_stop(blitz_child *c)
{
    static const blitz_fate fate[] = {[BLITZ_REVOCABLE] = BLITZ_REVOKED,
                                      [BLITZ_DETACHABLE] = BLITZ_LEFT,
                                      [BLITZ_PINNED] = BLITZ_STOPPING};
    if (c->fate == BLITZ_UNASKED) {
        c->fate = BLITZ_REVOKED; /* I2 */
    } else if (c->fate == BLITZ_ASKED) {
        c->fate = fate[c->future->ops->kind];
        c->future->ops->cancel(c->future);
    }
}

/* Cancel the remaining children, after the revocable ones are revoked. */
static BZ_NOINLINE bool stop_the_others(blitz_child *child, size_t count)
{
    bool is_any_pinned = false;
    for (size_t i = 0; i < count; i++) {
        bz_child_stop(&child[i]);
        is_any_pinned |= child[i].fate == BLITZ_STOPPING;
    }
    return is_any_pinned;
}

bool bz_children_stop(blitz_child *child, size_t count)
{
    bool are_others = false;
    for (size_t i = 0; i < count; i++) {
        if (child[i].fate > BLITZ_STOPPING)
            continue;
        if (child[i].fate <= BLITZ_ASKED && child[i].future->ops->kind == BLITZ_REVOCABLE)
            bz_child_stop(&child[i]);
        else
            are_others = true;
    }
    return are_others && stop_the_others(child, count);
}

size_t bz_children_poll_stopping(blitz_child *child, size_t count, struct bz_readylist *list,
                                 const blitz_waker *waker)
{
    size_t open = 0;
    for (size_t i = 0; i < count; i++) {
        if (child[i].fate != BLITZ_STOPPING)
            continue;
        blitz_waker room;
        open += !bz_child_poll(&child[i], bz_child_waker(list, i, waker, &room));
    }
    return open;
}

size_t bz_children_poll_stopping_woken(blitz_child *child, size_t open, struct bz_readylist *list)
{
    for (struct bz_ready_entry *e; (e = bz_readylist_next(list)) != NULL;) {
        blitz_child *c = &child[bz_readylist_index(e)];
        blitz_waker its = bz_readylist_waker(e);
        if (c->fate == BLITZ_STOPPING && bz_child_poll(c, &its))
            open--;
    }
    return open;
}

int bz_children_init(blitz_child *child, size_t count, const blitz_future_ops *const ops[3],
                     blitz_future *f)
{
    blitz_class kind = BLITZ_REVOCABLE;
    for (size_t i = 0; i < count; i++) {
        if (child[i].future == NULL)
            return -EINVAL;
        child[i].fate = BLITZ_UNASKED;
        if (child[i].future->ops->kind > kind)
            kind = child[i].future->ops->kind;
    }
    f->ops = ops[kind];
    return 0;
}
