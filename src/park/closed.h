/*
 * closed.h - wait until an object is closed: it has no receiver any more, or it has ended.
 *
 * Channels, oneshots, broadcasts and watches share this wait, for their senders. A call on a thread of the pool has it for
 * its end (block/offload.c), the actors of a runtime have it for their rest (actor/wait_quiet.c). Each of them has a queue of such
 * waiters, under its own lock. The object says how it is locked, and which queue to wait in (struct bz_closed_ops). The request,
 * the call and the future are in closed.c.
 *
 * The party that closes the object calls bz_closed_end() in the critical section in which the object becomes closed. All
 * waiters of that moment are released, also if the object is open again soon after: a broadcast may get a new receiver.
 *
 * I1  While the lock is free, a waiter is in the queue of its object only if the object is not closed, or if a closer
 *     is about to come back for the queue.
 */
#ifndef BZ_PARK_CLOSED_H
#define BZ_PARK_CLOSED_H

#include "blitz/closed_future.h"
#include "park/request.h"

/* One wait. */
struct bz_closed_wait {
    struct bz_request request; /* its ops: those of a struct bz_closed_ops */
    void *of;                  /* the object; constant */
};

/* A kind of object. BZ_CLOSED_OPS fills it in. */
struct bz_closed_ops {
    struct bz_request_ops request;
    blitz_future_ops future;
    void (*lock)(void *of);
    void (*unlock)(void *of);
    /* Under the lock: return the queue to wait in; NULL if the object is closed. */
    struct bz_list *(*queue)(void *of);
};

/* The functions of the request, and of the future. */
void bz_closed_lock(struct bz_request *r);
void bz_closed_unlock(struct bz_request *r, struct bz_wakelist *wakes);
bool bz_closed_enter(struct bz_request *r, struct bz_wakelist *wakes);
bool bz_closed_leave(struct bz_request *r, struct bz_wakelist *wakes);
/* The same for a future of another type: *result is -EINPROGRESS as long as it is neither ready nor cancelled. */
blitz_poll bz_closed_wait_poll(struct bz_closed_wait *w, int *result, const blitz_waker *waker);
void bz_closed_wait_cancel(struct bz_closed_wait *w, int *result);
void bz_closed_wait_init(struct bz_closed_wait *w, const struct bz_closed_ops *ops, void *of);
blitz_poll bz_closed_poll(blitz_future *future, const blitz_waker *waker);
void bz_closed_cancel(blitz_future *future);
int bz_closed_output(blitz_future *future);

#define BZ_CLOSED_OPS(what_, lock_, unlock_, queue_)                                              \
    {                                                                                             \
        .request = {.what = (what_),                                                              \
                    .lock = bz_closed_lock,                                                       \
                    .unlock = bz_closed_unlock,                                                   \
                    .enter = bz_closed_enter,                                                     \
                    .leave = bz_closed_leave},                                                    \
        .future = {(what_), BLITZ_REVOCABLE, bz_closed_poll, bz_closed_cancel, bz_closed_output}, \
        .lock = (lock_), .unlock = (unlock_), .queue = (queue_)                                   \
    }

/*
 * Wait until the object is closed.
 * Suspends: until then, `until`, or a cancel. Call from a task or any thread, without locks.
 * Returns:  0, -ETIMEDOUT, -ECANCELED.
 */
BZ_MUST_USE int bz_closed_wait(const struct bz_closed_ops *ops, void *of, const struct bz_os *os,
                               blitz_deadline until);
void bz_closed_future_init(blitz_closed_future *f, const struct bz_closed_ops *ops, void *of);

/* Release all waiters of the queue, and drop the lock of the object, which the caller holds. The caller keeps the object
 * alive until this returns. */
void bz_closed_end(const struct bz_closed_ops *ops, void *of, struct bz_list *queue);

#endif
