/*
 * waitq.h - who waits for a primitive: a lock, a line of nodes, and three ways to stand in it.
 *
 * Every primitive of src/sync is a word or two of state and one of these. The state is changed under
 * the lock of the line, or by a fast path of the primitive that touches nothing but its word. A node is a
 * request (sched/request.h): it stands in the line for a fiber, for a plain thread or for a polled future, and
 * the primitive does not look which. To `enter` of the request the primitive adds three functions:
 *
 *   serve      Under the lock: a waiter has left the line, or something was released. Give to the waiters in
 *              front for as long as there is something to give. May be called any number of times for nothing.
 *   give_back  Under the lock: this node was given something, or told to try, and its owner wants it
 *              no more. Take it back. `serve` is called next.
 *   leave      Under the lock: this node leaves the line, with a deadline or a cancel. False: it has
 *              what it wanted, only the giver has not come to it yet (bz_waitq_end).
 *
 * Giving (bz_node_give) takes the node out of the line and claims its owner, in one step: true, it is the
 * owner's; false, a deadline or a cancel was first, and it must be given to another node. So what is given is
 * never on its way to an owner that has gone. Telling (bz_node_tell) is the same for a primitive that only
 * says "try again": its owner calls enter once more. A condition always enters first and waits then, because
 * it releases its mutex between the two.
 *
 * Wake-ups are collected under the lock and delivered after it (wait/wake.h). If there are more than one
 * list holds, the caller drops the lock, delivers, and takes the lock again for the next list
 * (bz_waitq_end), unless a released waiter may free the primitive: then the released waiters release the
 * rest (waitq.c, I4).
 *
 * A line in zeroed memory is empty and ready for use.
 */
#ifndef BZ_SYNC_WAITQ_H
#define BZ_SYNC_WAITQ_H

#include "blitz/sync_future.h"
#include "sched/ask.h"
#include "sched/look.h"
#include "sched/request.h"

/* No fast paths: every call takes the lock of the line. */
#if defined(BZ_PLAIN)
#define BZ_SYNC_IS_DULL true
#else
#define BZ_SYNC_IS_DULL false
#endif

struct bz_waitq {
    struct bz_lock lock;   /* rank: BZ_RANK_WAIT */
    struct bz_list inside; /* NULL: never used. Guarded by lock, as are the nodes in it */
};

/* Whose system the caller is on. */
static inline const struct bz_os *bz_sync_os(void)
{
    struct bz_machine *m = bz_machine_self();
    return m != NULL ? m->rt->os : bz_os_outside();
}

struct bz_node;

/* What a primitive can do, as a table. The request's functions are filled in by BZ_NODE_REQUEST. */
struct bz_node_ops {
    struct bz_look_ops look;       /* first. BZ_NODE_FUTURE("what"): its futures */
    struct bz_request_ops request; /* BZ_NODE_REQUEST("what", enter, is_far) */
    void (*serve)(void *owner, struct bz_wakelist *wakes);
    void (*give_back)(struct bz_node *n,
                      struct bz_wakelist *wakes); /* NULL: nothing to take back */
    bool (*leave)(struct bz_node *n);             /* NULL: always true */
    bool is_last_to_leave; /* a released waiter may free the primitive: waitq.c, I3 and I4. There is
                            * a `leave`, and it changes nothing */
};

/* A request to a primitive of src/sync. Its waiter stands in q->inside; its result is 0, or what it was given
 * instead: -errno, or a number of the primitive's own. */
struct bz_node {
    struct bz_request request;
    struct bz_waitq *q; /* NULL: its future has been ready; else constant, as is */
    void *owner;        /* the primitive */
    uint64_t want;      /* the primitive's: how many, or which */
    uint64_t since;     /* the primitive's: when it joined the line */
};

static inline struct bz_node *bz_node_of(struct bz_request *r)
{
    return BZ_CONTAINER_OF(r, struct bz_node, request);
}

static inline const struct bz_node_ops *bz_node_ops_of(const struct bz_node *n)
{
    return BZ_CONTAINER_OF(n->request.ops, const struct bz_node_ops, request);
}

/* Of struct bz_request_ops, for all primitives here. */
void bz_node_lock(struct bz_request *r);
void bz_node_unlock(struct bz_request *r, struct bz_wakelist *wakes);
bool bz_node_leave(struct bz_request *r, struct bz_wakelist *wakes);
/* ... and with is_last_to_leave: */
void bz_node_resumed(struct bz_request *r, bool is_early);
bool bz_node_check(struct bz_request *r, struct bz_wakelist *wakes);

/* A request: `enter` and `is_far` (or NULL) as request.h says. The plain form always enters first. */
#define BZ_NODE_REQUEST(what_, enter_, is_far_)                                             \
    {                                                                                       \
        .what = (what_), .lock = bz_node_lock, .unlock = bz_node_unlock, .enter = (enter_), \
        .leave = bz_node_leave, .is_far = BZ_SYNC_IS_DULL ? NULL : (is_far_)                \
    }
#define BZ_NODE_REQUEST_LAST(what_, enter_, is_far_)                                        \
    {                                                                                       \
        .what = (what_), .lock = bz_node_lock, .unlock = bz_node_unlock, .enter = (enter_), \
        .leave = bz_node_leave, .is_far = BZ_SYNC_IS_DULL ? NULL : (is_far_),               \
        .resumed = bz_node_resumed, .check = bz_node_check                                  \
    }

/* ---- the line ---- */

static inline void bz_waitq_take(struct bz_waitq *q, const struct bz_os *os)
{
    bz_lock_take_ranked(&q->lock, BZ_RANK_WAIT, os);
    if (BZ_UNLIKELY(q->inside.next == NULL))
        bz_list_init(&q->inside);
}

static inline void bz_waitq_drop(struct bz_waitq *q, const struct bz_os *os)
{
    bz_lock_drop(&q->lock, os);
}

/* The node in front, or NULL. Under the lock, as all of the following. */
static inline struct bz_node *bz_waitq_first(struct bz_waitq *q)
{
    struct bz_waiter *first = bz_waiter_first(&q->inside);
    return first != NULL ? BZ_CONTAINER_OF(first, struct bz_node, request.waiter) : NULL;
}

static inline bool bz_waitq_is_empty(const struct bz_waitq *q)
{
    return bz_list_is_empty(&q->inside);
}

/* Stand in the line, last, or first again if it had been told to try. */
void bz_node_join(struct bz_node *n);

/* Out of the line, and has it. False: its owner had gone, and has not. */
BZ_MUST_USE static inline bool bz_node_give(struct bz_node *n, struct bz_wakelist *wakes)
{
    return bz_request_grant(&n->request, wakes);
}

/* Out of the line, and tries again. */
BZ_MUST_USE static inline bool bz_node_tell(struct bz_node *n, struct bz_wakelist *wakes)
{
    return bz_request_notify(&n->request, wakes);
}

/* Drop the lock and deliver the wake-ups; while there is more to give, take the lock again and serve. The
 * last thing: what is given may be the end of the primitive. */
void bz_waitq_end_slow(struct bz_waitq *q, void *owner, const struct bz_node_ops *ops,
                       struct bz_wakelist *wakes, const struct bz_os *os);
static BZ_ALWAYS_INLINE void bz_waitq_end(struct bz_waitq *q, void *owner,
                                          const struct bz_node_ops *ops, struct bz_wakelist *wakes,
                                          const struct bz_os *os)
{
    bz_waitq_drop(q, os); /* waitq.c, I3, unless there is more */
    if (BZ_UNLIKELY(wakes->has_more || wakes->count > 1))
        bz_waitq_end_slow(q, owner, ops, wakes, os);
    else if (wakes->count != 0)
        bz_wake_deliver(&wakes->wake[0]);
}

/* Take the lock, serve, end. */
void bz_waitq_serve(struct bz_waitq *q, void *owner, const struct bz_node_ops *ops);

/* ---- standing in it ---- */

/* The node of a blocking call, or of a future. */
static inline void bz_node_init(struct bz_node *n, struct bz_waitq *q, void *owner,
                                const struct bz_node_ops *ops, uint64_t want, bool is_polled)
{
    if (is_polled)
        bz_waiter_init_polled(&n->request.waiter);
    else
        bz_waiter_init(&n->request.waiter, NULL, BZ_WAIT_WOKEN);
    n->request.ops = &ops->request;
    n->q = q;
    n->owner = owner;
    n->want = want;
    n->since = 0;
}

/*
 * Get `want` of a primitive: enter its line, and wait if it takes that, as often as it is told to try
 * again.
 * Suspends: until it is given, `until`, or a cancel. Call from a task or any thread, without locks.
 * Returns:  0, what it was given instead (the waiter's result), -ETIMEDOUT, -ECANCELED. With either of these
 *           nothing was given.
 */
BZ_MUST_USE int bz_waitq_acquire(struct bz_waitq *q, void *owner, const struct bz_node_ops *ops,
                                 uint64_t want, blitz_deadline until);

/* ---- futures ---- */

#define BZ_NODE_FUTURE(what)                                                                 \
    {                                                                                        \
        {what, BLITZ_REVOCABLE, bz_sync_future_poll, bz_look_cancel, bz_sync_future_output}, \
            bz_sync_future_cancel, bz_sync_future_is_far                                     \
    }

/* A future that is ready when its node has what it wants. */
void bz_sync_future_init(blitz_sync_future *f, struct bz_waitq *q, void *owner,
                         const struct bz_node_ops *ops, uint64_t want);
static inline struct bz_node *bz_sync_future_node(blitz_sync_future *f)
{
    return (struct bz_node *)f->inside;
}
blitz_poll bz_sync_future_poll(blitz_future *f, const blitz_waker *waker);
bool bz_sync_future_is_far(blitz_future *f);
void bz_sync_future_cancel(blitz_future *f);
int bz_sync_future_output(blitz_future *f);

#endif
