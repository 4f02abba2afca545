/*
 * closed.c - wait until an object is closed: the request, its two drivers, and the release of the waiters.
 *
 * A closer first moves the whole queue to a list in its own frame. A waiter that comes later waits for the next close and
 * is not among them. A waiter that leaves early takes itself off that list, under the lock of the object as ever (I1).
 * The list may be longer than a wake list; then the closer comes back for the rest.
 *
 * A waiter is granted its request, call or future. So a future that was released is ready, although the object may have a
 * receiver again when it is polled.
 *
 * I1  A waiter is in the queue of its object or in the closer's list. The lock of the object guards its links in both.
 *
 * No atomics: everything here is under the object's lock, or is handed off by a wait.
 */
#include "park/closed.h"

#include <assert.h>
#include <errno.h>

#include "proc/ask.h"

static struct bz_closed_wait *wait_of(struct bz_request *r)
{
    return BZ_CONTAINER_OF(r, struct bz_closed_wait, request);
}

static const struct bz_closed_ops *ops_of(const struct bz_closed_wait *w)
{
    return BZ_CONTAINER_OF(w->request.ops, const struct bz_closed_ops, request);
}

/* ---- the request ---- */

void bz_closed_lock(struct bz_request *r)
{
    struct bz_closed_wait *w = wait_of(r);
    ops_of(w)->lock(w->of);
}

/* A waiter serves no other, so there are no wake-ups. */
void bz_closed_unlock(struct bz_request *r, struct bz_wakelist *wakes)
{
    struct bz_closed_wait *w = wait_of(r);
    (void)wakes;
    ops_of(w)->unlock(w->of);
}

bool bz_closed_enter(struct bz_request *r, struct bz_wakelist *wakes)
{
    struct bz_closed_wait *w = wait_of(r);
    struct bz_list *queue = ops_of(w)->queue(w->of);
    (void)wakes;
    if (queue == NULL)
        return true; /* the result of a new waiter is 0 */
    bz_waiter_queue(&r->waiter, queue);
    return false;
}

bool bz_closed_leave(struct bz_request *r, struct bz_wakelist *wakes)
{
    (void)wakes;
    if (r->waiter.state == BZ_WAITER_GRANTED)
        return false; /* released before it could park, or before its next poll */
    bz_waiter_leave(&r->waiter);
    return true;
}

/* ---- closing ---- */

/* Release as many waiters as fit into the wake list. Return true if some are left. Under the lock. */
static bool release_some(struct bz_list *due, struct bz_wakelist *wakes)
{
    struct bz_waiter *w;
    while ((w = bz_waiter_first(due)) != NULL) {
        if (bz_wakelist_is_full(wakes))
            return true;
        /* false: it has left */
        (void)!bz_request_grant(BZ_CONTAINER_OF(w, struct bz_request, waiter), wakes);
    }
    return false;
}

void bz_closed_end(const struct bz_closed_ops *ops, void *of, struct bz_list *queue)
{
    struct bz_list due;
    struct bz_wakelist wakes;
    bz_list_init(&due);
    bz_list_splice(&due, queue);
    for (;;) {
        bz_wakelist_init(&wakes);
        bool has_more = release_some(&due, &wakes);
        ops->unlock(of);
        bz_wakelist_deliver(&wakes);
        if (!has_more)
            return;
        ops->lock(of);
    }
}

/* ---- on a stack ---- */

int bz_closed_wait(const struct bz_closed_ops *ops, void *of, const struct bz_os *os,
                   blitz_deadline until)
{
    struct bz_closed_wait w = {.request.ops = &ops->request, .of = of};
    bz_look_up(); /* ask.h */
    bz_waiter_init(&w.request.waiter, NULL, BZ_WAIT_WOKEN);
    return bz_request_wait(&w.request, os, until);
}

/* ---- as a future ---- */

static_assert(sizeof(struct bz_closed_wait) <= sizeof(((blitz_closed_future *)NULL)->inside),
              "it has room");

static blitz_closed_future *future_of(blitz_future *future)
{
    return BZ_CONTAINER_OF(future, blitz_closed_future, future);
}

static struct bz_closed_wait *inside(blitz_closed_future *f)
{
    return (struct bz_closed_wait *)f->inside;
}

blitz_poll bz_closed_wait_poll(struct bz_closed_wait *w, int *result, const blitz_waker *waker)
{
    if (*result != -EINPROGRESS)
        return BLITZ_READY; /* it was ready before */
    if (!bz_request_poll(&w->request, waker))
        return BLITZ_PENDING;
    *result = 0;
    return BLITZ_READY;
}

void bz_closed_wait_cancel(struct bz_closed_wait *w, int *result)
{
    if (*result == -EINPROGRESS)
        *result = bz_request_cancel(&w->request) ? -ECANCELED : 0;
}

void bz_closed_wait_init(struct bz_closed_wait *w, const struct bz_closed_ops *ops, void *of)
{
    *w = (struct bz_closed_wait){.request.ops = &ops->request, .of = of};
    bz_waiter_init_polled(&w->request.waiter);
}

blitz_poll bz_closed_poll(blitz_future *future, const blitz_waker *waker)
{
    blitz_closed_future *f = future_of(future);
    return bz_closed_wait_poll(inside(f), &f->result, waker);
}

void bz_closed_cancel(blitz_future *future)
{
    blitz_closed_future *f = future_of(future);
    bz_closed_wait_cancel(inside(f), &f->result);
}

int bz_closed_output(blitz_future *future)
{
    return future_of(future)->result;
}

void bz_closed_future_init(blitz_closed_future *f, const struct bz_closed_ops *ops, void *of)
{
    f->future.ops = &ops->future;
    f->result = -EINPROGRESS;
    bz_closed_wait_init(inside(f), ops, of);
}
