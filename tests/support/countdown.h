/*
 * countdown.h - the primitive of docs/writing-a-primitive.md: a count, and parties that wait until it is 0.
 *
 * The count is guarded by the lock, as is the queue. A waiter stands in the queue only while the count is not 0
 * (I1). The last count_down grants every waiter, as many at a time as fit into a list of wake-ups.
 */
#ifndef T_COUNTDOWN_H
#define T_COUNTDOWN_H

#include "park/request.h"
#include "wait/waker.h"

struct countdown {
    struct bz_lock lock;
    struct bz_list waiting; /* guarded by lock, as is */
    unsigned left;
};

/* One party that waits: the request, and the primitive that it is for. */
struct countdown_wait {
    struct bz_request request;
    struct countdown *of;
};

static inline void countdown_init(struct countdown *c, unsigned count)
{
    bz_lock_init_ranked(&c->lock, BZ_RANK_WAIT);
    bz_list_init(&c->waiting);
    c->left = count;
}

/* ---- the functions of the request, under the lock ---- */

static inline struct countdown *countdown_of(struct bz_request *r)
{
    return BZ_CONTAINER_OF(r, struct countdown_wait, request)->of;
}

static inline void countdown_lock(struct bz_request *r)
{
    bz_lock_take(&countdown_of(r)->lock, bz_os_here());
}

static inline void countdown_unlock(struct bz_request *r, struct bz_wakelist *wakes)
{
    bz_lock_drop(&countdown_of(r)->lock, bz_os_here());
    bz_wakelist_deliver(wakes);
}

static inline bool countdown_enter(struct bz_request *r, struct bz_wakelist *wakes)
{
    struct countdown *c = countdown_of(r);
    (void)wakes;
    if (c->left == 0)
        return true; /* the result of a new waiter is 0 */
    bz_waiter_queue(&r->waiter, &c->waiting);
    return false;
}

static inline bool countdown_leave(struct bz_request *r, struct bz_wakelist *wakes)
{
    (void)wakes;
    bz_waiter_leave(&r->waiter); /* it had nothing that another waiter could use */
    return true;
}

static const struct bz_request_ops countdown_ops = {.what = "countdown",
                                                    .lock = countdown_lock,
                                                    .unlock = countdown_unlock,
                                                    .enter = countdown_enter,
                                                    .leave = countdown_leave};

/* ---- the party that makes it possible ---- */

/* Grant waiters; true: not all of them fit into the list. Under the lock. */
static inline bool countdown_serve(struct countdown *c, struct bz_wakelist *wakes)
{
    while (c->left == 0 && !bz_list_is_empty(&c->waiting)) {
        if (bz_wakelist_is_full(wakes))
            return true;
        struct bz_waiter *w = bz_waiter_first(&c->waiting);
        (void)!bz_request_grant(BZ_CONTAINER_OF(w, struct bz_request, waiter), wakes);
    }
    return false;
}

static inline void countdown_down(struct countdown *c)
{
    struct bz_wakelist wakes;
    bool has_more, is_first = true;
    do {
        bz_wakelist_init(&wakes);
        bz_lock_take(&c->lock, bz_os_here());
        if (is_first && c->left > 0)
            c->left--;
        is_first = false;
        has_more = countdown_serve(c, &wakes);
        bz_lock_drop(&c->lock, bz_os_here());
        bz_wakelist_deliver(&wakes);
    } while (has_more);
}

/* ---- the blocking call, and the future ---- */

static inline int countdown_wait(struct countdown *c, blitz_deadline until)
{
    struct countdown_wait w = {.request.ops = &countdown_ops, .of = c};
    bz_waiter_init(&w.request.waiter, NULL, BZ_WAIT_WOKEN);
    return bz_request_wait(&w.request, bz_os_here(), until);
}

struct countdown_future {
    blitz_future future;
    int result; /* when ready: 0; -ECANCELED */
    struct countdown_wait wait;
};

static inline blitz_poll countdown_poll(blitz_future *future, const blitz_waker *waker)
{
    struct countdown_future *f = BZ_CONTAINER_OF(future, struct countdown_future, future);
    if (f->result != -EINPROGRESS)
        return BLITZ_READY;
    if (!bz_request_poll(&f->wait.request, waker))
        return BLITZ_PENDING;
    f->result = bz_get(&f->wait.request.waiter.result);
    return BLITZ_READY;
}

static inline void countdown_cancel(blitz_future *future)
{
    struct countdown_future *f = BZ_CONTAINER_OF(future, struct countdown_future, future);
    if (f->result == -EINPROGRESS)
        f->result = bz_request_cancel(&f->wait.request) ? -ECANCELED : 0;
}

static inline int countdown_output(blitz_future *future)
{
    return BZ_CONTAINER_OF(future, struct countdown_future, future)->result;
}

static inline void countdown_wait_future_init(struct countdown_future *f, struct countdown *c)
{
    static const blitz_future_ops ops = {"countdown", BLITZ_REVOCABLE, countdown_poll,
                                         countdown_cancel, countdown_output};
    *f = (struct countdown_future){.future = {&ops}, .result = -EINPROGRESS};
    f->wait = (struct countdown_wait){.request.ops = &countdown_ops, .of = c};
    bz_waiter_init_polled(&f->wait.request.waiter);
}

#endif
