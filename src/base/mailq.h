/*
 * mailq.h - the queue of mpsc.h in 16 bytes, for a mailbox that is also a schedule.
 *
 * An idle actor must be small, so there is no padding between the two ends. And the taker does not take: the oldest node
 * stays in the queue while its message is handled. So "not empty" means that a worker has the actor, or will have it.
 * The push that finds the queue empty schedules the actor. The taker removes the last node when it is done with
 * everything; from then on the actor belongs to the next pusher. Taking a node first and parking later would need a
 * second word, and three more locked instructions a message.
 *
 *       owner                                                     senders
 *     [root] -next-> [first] -next-> [n2] -next-> [n3] <- last      xchg(last), then link the old
 *
 * The owner steps over a node that has a successor with a plain store. It removes the only node with one compare-and-swap,
 * bz_mailq_rest(). If that fails a push is in progress or done, and the owner still has the actor. The successor may not be
 * reachable yet: the pusher stands between its exchange and its link. The owner comes back later.
 *
 * Rejected: the padded queue (256 bytes an actor). A word for the schedule beside the queue: 51 ns a message in
 *           ping-pong instead of 32, on a prototype.
 *
 * I1  Following next from the root reaches last, except for gaps of pushes in progress.
 * I2  One thread at a time is the owner: the worker that was given the actor by the push that returned true, until
 *     bz_mailq_rest() returns true. After that the former owner touches neither the queue nor the actor.
 * I3  Only the owner reads root.next. A push writes it only if its exchange returned the root.
 *
 * [A] push: next release -> second: next acquire   the node is filled before it can be reached
 * [B] push: last acq_rel -> push: last acq_rel    a node's next is NULL before the next push links through it
 * [C] rest: last release -> push: last acq_rel    all that the owner wrote is visible to the next owner, which the push
 *                                                 schedules; and the root's next is NULL before a push links through it
 */
#ifndef BZ_MAILQ_H
#define BZ_MAILQ_H

#include <assert.h>

#include "base/mpsc.h"

struct bz_mailq {
    bz_atomic(struct bz_mpsc_node *) last; /* exchanged by pushers */
    struct bz_mpsc_node root;              /* leads to the oldest node, I3 */
};

#if !defined(BZ_MODEL)
static_assert(sizeof(struct bz_mailq) == 2 * sizeof(void *), "no padding");
#endif

static inline void bz_mailq_init(struct bz_mailq *q)
{
    bz_atomic_init(&q->root.next, NULL);
    bz_atomic_init(&q->last, &q->root);
}

/*
 * Push. From any thread; never waits.
 * Returns: true if the queue was empty: the caller must schedule the owner.
 */
BZ_MUST_USE static BZ_ALWAYS_INLINE bool bz_mailq_push(struct bz_mailq *q,
                                                       struct bz_mpsc_node *node)
{
    bz_store_relaxed(&node->next, NULL);                        /* relaxed: [B] publishes it */
    struct bz_mpsc_node *prev = bz_xchg_acqrel(&q->last, node); /* [B] [C] */
    bz_store_release(&prev->next, node); /* [A]; the last that we do to prev */
    return prev == &q->root;
}

/* The oldest node. The owner only. It is there, because the push that gave us the queue has linked it. */
static BZ_ALWAYS_INLINE struct bz_mpsc_node *bz_mailq_first(struct bz_mailq *q)
{
    /* relaxed: its push scheduled us, or an earlier owner stepped to it */
    return bz_load_relaxed(&q->root.next);
}

/* The node behind the first; NULL if there is none, or a push is in its gap. The owner only. */
static BZ_ALWAYS_INLINE struct bz_mpsc_node *bz_mailq_second(struct bz_mpsc_node *first)
{
    return bz_load_acquire(&first->next); /* [A] */
}

/* Step over the first node: `second` is now the first. The owner only; the node stepped over is the owner's. */
static BZ_ALWAYS_INLINE void bz_mailq_step(struct bz_mailq *q, struct bz_mpsc_node *second)
{
    bz_store_relaxed(&q->root.next, second); /* relaxed: only owners read it, I3 */
}

/*
 * Remove the first node if it is the only one. The owner only.
 * Returns: true: the queue is empty, and the caller is not its owner any more, I2. The node is the caller's. False: a push
 *          came first; nothing has changed.
 */
BZ_MUST_USE static BZ_ALWAYS_INLINE bool bz_mailq_rest(struct bz_mailq *q,
                                                       struct bz_mpsc_node *first)
{
    struct bz_mpsc_node *last = first;
    bz_store_relaxed(&q->root.next, NULL);                /* relaxed: [C] publishes it */
    if (bz_cas_strong_rel_rlx(&q->last, &last, &q->root)) /* [C] */
        return true;
    bz_store_relaxed(&q->root.next, first); /* relaxed: no pusher has seen the root, I3 */
    return false;
}

/* True if the node is the last. The owner only. A push that the caller knows of is seen. */
static inline bool bz_mailq_is_last(struct bz_mailq *q, const struct bz_mpsc_node *node)
{
    return bz_load_relaxed(&q->last) == node; /* relaxed: what the caller knows orders it */
}

/* True if the queue is empty. A guess: for dumps, and for tests without concurrent pushes. */
static inline bool bz_mailq_is_empty(struct bz_mailq *q)
{
    return bz_load_relaxed(&q->last) == &q->root; /* relaxed: a guess */
}

#endif
