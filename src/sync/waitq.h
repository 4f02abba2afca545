/*
 * waitq.h - the wait queue of a primitive: a lock, a list of nodes, and three kinds of waiters.
 *
 * Every primitive of src/sync is a word or two of state and a wait queue. The state changes under the lock of the
 * wait queue, or in a fast path of the primitive that touches only its word. A node is a request
 * (park/request.h). It waits in the queue for a fiber, for a plain thread or for a polled future, and the primitive
 * does not distinguish them. The primitive adds three functions to `enter` of the request:
 *
 *   serve      Under the lock: a waiter has left the queue, or something was released. Grant to the first waiters
 *              for as long as there is something to grant. Extra calls are harmless.
 *   give_back  Under the lock: this node has a grant or a notification, and its owner no longer wants it. Take it
 *              back. `serve` is called next.
 *   leave      Under the lock: this node leaves the queue because of a deadline or a cancel. Return false if the
 *              condition it waited for already holds and only the grant has not reached it yet (bz_waitq_end).
 *
 * bz_sync_op_give grants: it removes the node from the queue and claims its owner in one step. If it returns true, the
 * owner has the grant. If it returns false, a deadline or a cancel came first, and the grant must go to another node.
 * So a grant is never on its way to an owner that has left. bz_sync_op_tell does the same with a notification, which
 * says only "retry": the owner calls enter once more. A condition always enters first and then waits, because it
 * releases its mutex between the two.
 *
 * Wake-ups are collected under the lock and delivered after unlock (wait/wake.h). If one wake list cannot hold all
 * of them, the caller drops the lock, delivers, and takes the lock again for the next list (bz_waitq_end). The
 * exception is a primitive that a released waiter may free: there the released waiters release the rest (waitq.c, I4).
 *
 * A wait queue in zeroed memory is empty and ready for use.
 */
#ifndef BZ_SYNC_WAITQ_H
#define BZ_SYNC_WAITQ_H

#include "blitz/sync_future.h"
#include "park/request.h"
#include "proc/ask.h"
#include "wait/peek.h"

/* The plain form has no fast paths: every call takes the lock of the wait queue. */
#if defined(BZ_PLAIN)
#define BZ_SYNC_IS_DULL true
#else
#define BZ_SYNC_IS_DULL false
#endif

struct bz_waitq {
    struct bz_lock lock;   /* rank: BZ_RANK_WAIT */
    struct bz_list inside; /* NULL: never used. Guarded by lock, as are its nodes */
};

/* Return the operating system interface of the caller's runtime, or that of plain threads. */
static inline const struct bz_os *bz_sync_os(void)
{
    struct bz_machine *m = bz_machine_self();
    return m != NULL ? m->rt->os : bz_os_outside();
}

struct bz_sync_op;

/* The operations of a primitive. BZ_SYNC_OP_REQUEST fills in the functions of the request. */
struct bz_sync_op_ops {
    struct bz_look_ops look;       /* first. BZ_SYNC_OP_FUTURE("what"): its futures */
    struct bz_request_ops request; /* BZ_SYNC_OP_REQUEST("what", enter, is_far) */
    void (*serve)(void *owner, struct bz_wakelist *wakes);
    void (*give_back)(struct bz_sync_op *n,
                      struct bz_wakelist *wakes); /* NULL: nothing to take back */
    bool (*leave)(struct bz_sync_op *n);          /* NULL: always true */
    bool is_last_to_leave; /* a released waiter may free the primitive: waitq.c, I3 and I4. `leave`
                            * is then not NULL and changes nothing */
};

/* A request to a primitive of src/sync. Its waiter is in the list q->inside. Its result is 0, -errno, or a number
 * that the primitive defines. */
struct bz_sync_op {
    struct bz_request request;
    struct bz_waitq *q; /* NULL once its future was ready; else constant, as is owner */
    void *owner;        /* the primitive */
    uint64_t want;      /* defined by the primitive: how many, or which */
    uint64_t since;     /* defined by the primitive: when it joined the queue */
};

static inline struct bz_sync_op *bz_sync_op_of(struct bz_request *r)
{
    return BZ_CONTAINER_OF(r, struct bz_sync_op, request);
}

static inline const struct bz_sync_op_ops *bz_sync_op_ops_of(const struct bz_sync_op *n)
{
    return BZ_CONTAINER_OF(n->request.ops, const struct bz_sync_op_ops, request);
}

/* Functions of struct bz_request_ops, shared by all primitives of src/sync. */
void bz_sync_op_lock(struct bz_request *r);
void bz_sync_op_unlock(struct bz_request *r, struct bz_wakelist *wakes);
bool bz_sync_op_leave(struct bz_request *r, struct bz_wakelist *wakes);
/* Two more, for primitives with is_last_to_leave. */
void bz_sync_op_resumed(struct bz_request *r, bool is_early);
bool bz_sync_op_check(struct bz_request *r, struct bz_wakelist *wakes);

/* The operations of a request. request.h explains `enter` and `is_far` (or NULL). The plain form always enters
 * first. */
#define BZ_SYNC_OP_REQUEST(what_, enter_, is_far_)                                                \
    {                                                                                             \
        .what = (what_), .lock = bz_sync_op_lock, .unlock = bz_sync_op_unlock, .enter = (enter_), \
        .leave = bz_sync_op_leave, .is_far = BZ_SYNC_IS_DULL ? NULL : (is_far_)                   \
    }
#define BZ_SYNC_OP_REQUEST_LAST(what_, enter_, is_far_)                                           \
    {                                                                                             \
        .what = (what_), .lock = bz_sync_op_lock, .unlock = bz_sync_op_unlock, .enter = (enter_), \
        .leave = bz_sync_op_leave, .is_far = BZ_SYNC_IS_DULL ? NULL : (is_far_),                  \
        .resumed = bz_sync_op_resumed, .check = bz_sync_op_check                                  \
    }

/* ---- the wait queue ---- */

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

/* Return the first node, or NULL. Call this function and all of the following under the lock. */
static inline struct bz_sync_op *bz_waitq_first(struct bz_waitq *q)
{
    struct bz_waiter *first = bz_waiter_first(&q->inside);
    return first != NULL ? BZ_CONTAINER_OF(first, struct bz_sync_op, request.waiter) : NULL;
}

static inline bool bz_waitq_is_empty(const struct bz_waitq *q)
{
    return bz_list_is_empty(&q->inside);
}

/* Add the node at the end of the queue. A node that had been notified goes back to the front. */
void bz_sync_op_join(struct bz_sync_op *n);

/* Remove the node from the queue and grant. Return false if its owner had left: nothing was granted. */
BZ_MUST_USE static inline bool bz_sync_op_give(struct bz_sync_op *n, struct bz_wakelist *wakes)
{
    return bz_request_grant(&n->request, wakes);
}

/* Remove the node from the queue and notify it, so that it retries. Return false if its owner had left. */
BZ_MUST_USE static inline bool bz_sync_op_tell(struct bz_sync_op *n, struct bz_wakelist *wakes)
{
    return bz_request_notify(&n->request, wakes);
}

/* Drop the lock and deliver the wake-ups. While there is more to grant, take the lock again and serve. The caller must
 * not touch the primitive afterwards: a granted waiter may free it. */
void bz_waitq_end_slow(struct bz_waitq *q, void *owner, const struct bz_sync_op_ops *ops,
                       struct bz_wakelist *wakes, const struct bz_os *os);
static BZ_ALWAYS_INLINE void bz_waitq_end(struct bz_waitq *q, void *owner,
                                          const struct bz_sync_op_ops *ops,
                                          struct bz_wakelist *wakes, const struct bz_os *os)
{
    bz_waitq_drop(q, os); /* waitq.c, I3, unless has_more is set */
    if (BZ_UNLIKELY(wakes->has_more || wakes->count > 1))
        bz_waitq_end_slow(q, owner, ops, wakes, os);
    else if (wakes->count != 0)
        bz_wake_deliver(&wakes->wake[0]);
}

/* Take the lock, serve, and end with bz_waitq_end. */
void bz_waitq_serve(struct bz_waitq *q, void *owner, const struct bz_sync_op_ops *ops);

/* ---- waiting in it ---- */

/* Initialize the node of a blocking call, or of a future (is_polled). */
static inline void bz_sync_op_init(struct bz_sync_op *n, struct bz_waitq *q, void *owner,
                                   const struct bz_sync_op_ops *ops, uint64_t want, bool is_polled)
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
 * Acquire `want` of a primitive. Enter its wait queue and wait if necessary; retry after each notification.
 * Suspends: until the grant, `until`, or a cancel. Call from a task or any thread, without locks.
 * Returns:  0, another result that the primitive set in the waiter, -ETIMEDOUT, -ECANCELED. With -ETIMEDOUT and
 *           -ECANCELED nothing was granted.
 */
BZ_MUST_USE int bz_waitq_acquire(struct bz_waitq *q, void *owner, const struct bz_sync_op_ops *ops,
                                 uint64_t want, blitz_deadline until);

/* ---- futures ---- */

#define BZ_SYNC_OP_FUTURE(what) BZ_SYNC_OP_FUTURE_BY(what, bz_sync_future_poll)
#define BZ_SYNC_OP_FUTURE_BY(what, poll)                                      \
    {                                                                         \
        {what, BLITZ_REVOCABLE, poll, bz_look_cancel, bz_sync_future_output}, \
            bz_sync_future_cancel, bz_sync_future_is_far                      \
    }

/* Initialize a future that is ready when its node has its grant. */
void bz_sync_future_init(blitz_sync_future *f, struct bz_waitq *q, void *owner,
                         const struct bz_sync_op_ops *ops, uint64_t want);
static inline struct bz_sync_op *bz_sync_future_node(blitz_sync_future *f)
{
    return (struct bz_sync_op *)f->inside;
}
blitz_poll bz_sync_future_poll(blitz_future *f, const blitz_waker *waker);
bool bz_sync_future_is_far(blitz_future *f);
void bz_sync_future_cancel(blitz_future *f);
int bz_sync_future_output(blitz_future *f);

#endif
