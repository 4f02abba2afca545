/*
 * chan.h - the inside of a channel: its data, and the steps under its lock.
 *
 *   copy.h          copying a value
 *   values.h        the values
 *   core.c          put, take, hold: one step under the lock, and serving the waiters
 *   chan_request.c  a step that may have to wait, as a request
 *   chan.c          making, ending, counting
 *   calls.c         send, receive, many of them, permits
 *   park/closed.h   senders that wait for the end
 *   chan_future.c   the operations as futures
 *   select.h        several operations at once
 *
 * One operation is a struct bz_chan_op: the channel, the kind of operation, the memory of the value, and a waiter
 * (wait/waiter.h). Blocking calls and futures try the same function under the same lock.
 */
#ifndef BZ_CHAN_CHAN_H
#define BZ_CHAN_CHAN_H

#include "blitz/chan.h"
#include "chan/chan_lock.h"
#include "park/closed.h"
#include "chan/values.h"

struct blitz_chan {
    struct bz_chan_lock lock; /* rank WAIT; guards all fields except the constant and atomic ones */
    bool is_closed;           /* no more sends */
    bool is_shut;             /* no more sends and no more receives */
    /* Written under the lock. 0: it would have to wait. Exact under the lock, else a hint: chan_request.c, I3 */
    bz_atomic(uint8_t) may_recv, may_send;
    bool is_slow; /* it is closed, or its values are not small: no fast path for small values */
    const struct bz_os *os; /* constant, as is capacity */
    size_t capacity;        /* BLITZ_UNBOUNDED: no limit; 0: a rendezvous */
    struct bz_values values;
    struct bz_list receivers, senders; /* the waiters; senders includes waiting reserves */
    size_t notified_receivers;         /* futures that are notified: core.c, I2 */
    size_t notified_senders;
    size_t permits;                        /* reserved slots */
    uint32_t sender_count, receiver_count; /* counted handles */
    struct bz_list closing;                /* senders that wait for the end: closed.h */
    bz_atomic(uint32_t) refs;
    bz_atomic(uint64_t) chance; /* random state for plain threads, 0: no seed yet. select.c */
    size_t bytes;               /* size of the allocation; constant, as are the next ones */
    void (*drop)(void *value, void *ctx);
    void *drop_ctx;
    blitz_allocator alloc;
};

static BZ_ALWAYS_INLINE void bz_chan_lock(struct blitz_chan *c)
{
    bz_chan_lock_take(&c->lock, c->os);
}

static BZ_ALWAYS_INLINE void bz_chan_unlock(struct blitz_chan *c)
{
    bz_chan_lock_drop(&c->lock, c->os);
}

enum bz_chan_kind { BZ_CHAN_SEND, BZ_CHAN_RECV, BZ_CHAN_RESERVE };

/* One operation on a channel. */
struct bz_chan_op {
    struct bz_request request; /* its waiter is in the channel's queue of its kind */
    struct blitz_chan *c;      /* constant, as are the next ones */
    enum bz_chan_kind kind;
    bool is_done;  /* guarded by the lock: a receiver has taken the value of this future's send */
    bool is_many;  /* a reserve: `value` is a blitz_permits, and its `left` the number of slots */
    void *value;   /* source or destination; a send does not write it */
    size_t wanted; /* a reserve: slots that it does not have yet; guarded by the lock: core.c, I5 */
    /* Of a future: NULL, or shared by all cases of a polled select. A receiver sets the claim before it
     * takes a send of that select; only the first receiver to set it may (core.c, I4). */
    bz_atomic(uint32_t) *claim;
};

static inline struct bz_chan_op *bz_chan_op_of(struct bz_waiter *w)
{
    return BZ_CONTAINER_OF(w, struct bz_chan_op, request.waiter);
}

/* The plain form has no fast paths: it tries every step in full, under the lock. */
#if defined(BZ_PLAIN)
enum { BZ_CHAN_SHORT = 0 };
#else
enum { BZ_CHAN_SHORT = 1 };
#endif

/* True if a try may succeed. False if the call would almost certainly have to wait. */
static inline bool bz_chan_may(const bz_atomic(uint8_t) *hint)
{
    return !BZ_CHAN_SHORT || bz_load_relaxed(hint) != 0; /* relaxed: a hint, the lock decides */
}

/* Record that a receive may succeed: a value, a sender or a close has come. Under the lock. */
static inline void bz_chan_has_news(struct blitz_chan *c)
{
    bz_store_relaxed(&c->may_recv, 1); /* relaxed: I3: the lock publishes it */
}

/* Record that a send may succeed: a slot is free, or a receiver has come. Under the lock. */
static inline void bz_chan_has_room(struct blitz_chan *c)
{
    bz_store_relaxed(&c->may_send, 1); /* relaxed: I3: the lock publishes it */
}

/* True if the channel is a rendezvous without a waiting receiver and not closed. Under the lock. */
static inline bool bz_chan_is_lonely(const struct blitz_chan *c)
{
    return c->capacity == 0 && bz_list_is_empty(&c->receivers) && !c->is_closed;
}

/* True if there is nothing to receive and the channel is not closed. Under the lock. */
static inline bool bz_chan_is_empty(const struct blitz_chan *c)
{
    return c->values.count == 0 && bz_list_is_empty(&c->senders) && !c->is_closed;
}

/* ---- core.c: under the lock ---- */

/*
 * Try one step. 0: done; -EAGAIN: it would have to wait; -EPIPE: closed; -ENOBUFS: an unbounded channel
 * needs a block first (bz_chan_grow); -EOPNOTSUPP. Needs room for one entry in the wake list.
 */
BZ_MUST_USE int bz_chan_put(struct blitz_chan *c, const void *value, struct bz_wakelist *wakes);
BZ_MUST_USE int bz_chan_take(struct blitz_chan *c, void *value, struct bz_wakelist *wakes);
BZ_MUST_USE int bz_chan_hold(struct bz_chan_op *op);
/* Try the step of op->kind. */
BZ_MUST_USE int bz_chan_try(struct bz_chan_op *op, struct bz_wakelist *wakes);
/* Put a value into a slot that a permit has reserved for it. */
void bz_chan_put_held(struct blitz_chan *c, const void *value, struct bz_wakelist *wakes);

/* Add an operation to its wait queue: at the end, or at the head if a notified future came too late. */
void bz_chan_join_line(struct bz_chan_op *op, bool at_head, struct bz_wakelist *wakes);
/* Take the slots of a reserve back that leaves the queue or gives up its grant. Return true if it had any. */
bool bz_chan_let_go(struct bz_chan_op *op);
/* Clear the notification of a future that polls again or leaves. Return true if it had one. */
bool bz_chan_untell(struct bz_chan_op *op);

/* Serve the waiters that can be served, as many as fit into the wake list. Set wakes->has_more if the list is full. */
void bz_chan_serve(struct blitz_chan *c, struct bz_wakelist *wakes);
/* End a step: drop the lock, then deliver the wake-ups, free the retired blocks, and serve the rest. */
void bz_chan_done_slow(struct blitz_chan *c, struct bz_wakelist *wakes, struct bz_block *retired);
static BZ_ALWAYS_INLINE void bz_chan_done(struct blitz_chan *c, struct bz_wakelist *wakes)
{
    struct bz_block *retired = bz_values_retired(&c->values);
    bz_chan_unlock(c);
    if (wakes->count != 0 || BZ_UNLIKELY(retired != NULL))
        bz_chan_done_slow(c, wakes, retired);
}

/* ---- not under the lock ---- */

/* core.c: take the lock, serve the waiters, and end the step. */
void bz_chan_serve_all(struct blitz_chan *c);
/* core.c: add one block to an unbounded channel that lacks room for so many more values. 0, -ENOMEM. */
BZ_MUST_USE int bz_chan_grow(struct blitz_chan *c, size_t slots);
/* The number of slots that an operation needs at once. */
static inline size_t bz_chan_slots_of(const struct bz_chan_op *op)
{
    return op->kind == BZ_CHAN_RESERVE ? op->wanted : 1;
}
/* calls.c: 0 if so many slots can be reserved at once, -EINVAL if never. */
BZ_MUST_USE int bz_chan_may_reserve(const struct blitz_chan *c, size_t n);
/* core.c: lock, try one step, unlock, deliver; allocate if necessary. 0, -EAGAIN, -EPIPE, -ENOMEM, -EOPNOTSUPP. */
BZ_MUST_USE int bz_chan_once(struct bz_chan_op *op);
/* The same; the caller has taken the lock. */
BZ_MUST_USE int bz_chan_once_locked(struct bz_chan_op *op);
/* chan_request.c: an operation as a request (park/request.h). If its result is -ENOBUFS, call bz_chan_grow and retry. */
extern const struct bz_request_ops bz_chan_requests[]; /* by enum bz_chan_kind */
/* chan_request.c: wait until a step that returned -EAGAIN is done. 0, -EPIPE, -ETIMEDOUT, -ECANCELED. Suspends. */
BZ_MUST_USE int bz_chan_wait(struct bz_chan_op *op, blitz_deadline until);
/* The same for a receive or a send that was not prepared. */
BZ_MUST_USE int bz_chan_recv_wait(struct blitz_chan *c, void *value, blitz_deadline until);
BZ_MUST_USE int bz_chan_send_wait(struct blitz_chan *c, const void *value, blitz_deadline until);

/* Check the invariants, under the lock. Abort with a message if one is broken. */
void bz_chan_check(struct blitz_chan *c);

#endif
