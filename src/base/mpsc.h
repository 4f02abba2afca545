/*
 * mpsc.h - an intrusive queue: any number of threads push, one takes, in order.
 *
 * The inbox of an actor, the list of requests to a proc. A push is one exchange and one store and
 * never waits for anybody; a take is usually two loads and a store. The node is a member of what is
 * queued and belongs to the taker as soon as it is taken: it may be freed or pushed again at once.
 *
 *       taker                                                     pushers
 *     [root] -next-> [n1] -next-> [n2] -next-> [n3] <- last         xchg(last), then link the old
 *
 * Between the exchange and the link there is a gap: the new node is in the queue but cannot be
 * reached yet. A take that runs into the gap returns NULL although the queue is not empty;
 * bz_mpsc_is_empty() tells the two apart, and the taker comes back later. (Whoever schedules a
 * taker on push does so after the link, so it need not spin.)
 *
 * The root is the head of the list and never a member of it: its next is the oldest node. To take
 * the only node, the taker makes the root the last again with a compare-and-swap. The usual form
 * pushes the root like a node instead; that costs the same one locked instruction, but leaves
 * queues that are empty with the root in any place. Here *empty* has one shape, `last == &root`,
 * and so a push knows exactly whether it made the queue non-empty: of the pushes since the queue
 * was last empty precisely one returns true. That is the push that owes a wake-up.
 *
 * Rejected: a pointer to the first node beside the root (when a message finds the queue empty the
 * taker has to step over the root: a quarter more time); a look at last before the compare-and-swap
 * (two trips for the line instead of one); a lock-free stack taken whole and reversed (one CAS that
 * retries under contention, and the reversal touches every node twice); a dummy that stays behind
 * as in a non-intrusive queue (then the node taken is not the node whose memory is free).
 *
 * I1  Following next from the root reaches last, but for gaps of pushes under way.
 * I2  Only the taker reads root.next. A push writes it only if its exchange returned the root; the
 *     taker only while it is set, or to set again what it has cleared when last turned out not to be
 *     the root. So never both at once.
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
    if (BZ_BROKEN(11))
        bz_store_relaxed(&prev->next, node); /* planted: reached before it is filled */
    else
        bz_store_release(&prev->next, node); /* [A] */
    return prev == &q->root;
}

/* Nothing pushed that is not taken? Exact for the taker; others get a guess. */
static inline bool bz_mpsc_is_empty(struct bz_mpsc *q)
{
    /* relaxed: the taker itself wrote &root there; of anything else it learns by taking, [A] */
    return bz_load_relaxed(&q->last) == &q->root;
}

/* Make the root the last again, so that the only node can be taken. False: somebody is pushing. */
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

/* I1 and I2, for a queue nobody is pushing to. Returns the number of nodes; aborts if broken. */
size_t bz_mpsc_check(struct bz_mpsc *q);

#endif
