/*
 * mpsc.h - an intrusive queue: any number of threads push, one takes, in order.
 *
 * For the inbox of an actor, or the list of requests to a proc. A push is one exchange and one
 * store and never waits; a take is usually two loads and a store. The node is a member of the
 * queued object. The taker owns it as soon as it is taken and may free it or push it again at once.
 *
 *       taker                                                     pushers
 *     [root] -next-> [n1] -next-> [n2] -next-> [n3] <- last         xchg(last), then link the old
 *
 * Between the exchange and the link there is a gap: the new node is in the queue but cannot be
 * reached yet. A take that runs into the gap returns NULL although the queue is not empty;
 * bz_mpsc_is_empty() tells the two apart, and the taker comes back later. (A pusher schedules the
 * taker after the link, so the taker need not spin.)
 *
 * The root is the head of the list and never a member of it: its next is the oldest node. To take
 * the only node, the taker makes the root the last again with a compare-and-swap. The usual form
 * pushes the root like a node instead; that costs the same locked instruction, but an empty queue
 * can then have the root in any place. Here an empty queue has one form, `last == &root`, so a push
 * knows whether it made the queue non-empty. Of the pushes since the queue was last empty exactly
 * one returns true; that push must wake the taker.
 *
 * Rejected: a pointer to the first node beside the root (the taker must step over the root after
 *           each empty queue: a quarter more time). A load of last before the compare-and-swap (two
 *           cache misses instead of one). A lock-free stack that is taken whole and reversed (a CAS
 *           that retries under contention, and the reversal touches every node twice). A dummy node
 *           as in a non-intrusive queue (the taken node is then not the node whose memory is free).
 *
 * I1  Following next from the root reaches last, except for gaps of pushes in progress.
 * I2  Only the taker reads root.next. A push writes it only if its exchange returned the root. The
 *     taker writes it only while it is set, or to restore it if last turns out not to be the root.
 *     So the two never write at the same time.
 * I3  A node is in at most one queue; its next is its own once it has been taken.
 *
 * [A] push: next release -> take: next acquire    the node is filled before it can be reached
 * [B] push: last acq_rel -> push: last acq_rel    a node's next is NULL before the next push
 *                                                 links through it
 * [C] take: last release -> push: last acq_rel    the root's next is NULL before a push links
 *                                                 through it
 */
#ifndef BZ_MPSC_H
#define BZ_MPSC_H

#include <stdbool.h>
#include <stddef.h>

#include "base/bz_atomic.h"
#include "base/compiler.h"

struct bz_mpsc_node {
    bz_atomic(struct bz_mpsc_node *) next; /* written by the push behind it, read by the taker */
};

struct bz_mpsc {
    BZ_OWN_LINE bz_atomic(struct bz_mpsc_node *) last; /* exchanged by pushers */
    BZ_OWN_LINE struct bz_mpsc_node root;              /* leads to the oldest node, I2 */
};

static inline void bz_mpsc_init(struct bz_mpsc *q)
{
    bz_atomic_init(&q->root.next, NULL);
    bz_atomic_init(&q->last, &q->root);
}

/*
 * Push. From any thread; never waits.
 * Returns: true if the queue was empty before.
 */
static inline bool bz_mpsc_push(struct bz_mpsc *q, struct bz_mpsc_node *node)
{
    bz_store_relaxed(&node->next, NULL);                        /* relaxed: [B] publishes it */
    struct bz_mpsc_node *prev = bz_xchg_acqrel(&q->last, node); /* [B] [C] */
    /* Once the taker has seen prev's link, prev is its: the last we do to it is this store. */
    bz_store_release(&prev->next, node); /* [A] */
    return prev == &q->root;
}

/* True if the queue is empty. Exact for the taker, a guess for other threads. */
static inline bool bz_mpsc_is_empty(struct bz_mpsc *q)
{
    /* relaxed: the taker itself wrote &root; it sees all other values by a take, [A] */
    return bz_load_relaxed(&q->last) == &q->root;
}

/* Make the root the last again, so that the only node can be taken. Return false if a push is in
 * progress. */
static inline bool mpsc_detach_only(struct bz_mpsc *q, struct bz_mpsc_node *only)
{
    struct bz_mpsc_node *last = only;
    bz_store_relaxed(&q->root.next, NULL);                /* relaxed: [C] publishes it */
    if (bz_cas_strong_rel_rlx(&q->last, &last, &q->root)) /* [C] */
        return true;
    bz_store_relaxed(&q->root.next, only); /* relaxed: no pusher has seen the root, I2 */
    return false;
}

/*
 * Take the oldest node. The taker only; never waits.
 * Returns: the node, now the caller's; or NULL if the queue is empty or a push is in its gap.
 */
static inline struct bz_mpsc_node *bz_mpsc_take(struct bz_mpsc *q)
{
    struct bz_mpsc_node *first = bz_load_acquire(&q->root.next); /* [A] */
    if (first == NULL)
        return NULL; /* empty, or the first push is in its gap */
    struct bz_mpsc_node *next = bz_load_acquire(&first->next); /* [A] */
    if (next == NULL)
        return mpsc_detach_only(q, first) ? first : NULL;
    bz_store_relaxed(&q->root.next, next); /* relaxed: only we read it, I2 */
    return first;
}

/* Check I1 and I2 while no push is in progress. Return the number of nodes; abort if one is
 * broken. */
size_t bz_mpsc_check(struct bz_mpsc *q);

#endif
