/*
 * listeners.c - serving all waiters of a change.
 *
 * A blocking receiver gets the new value from the party that changes it; a future is notified and reads it. If
 * more receivers wait than fit into a wake list, the changer comes back for the rest. These may have
 * missed some values by then, as any slow receiver may.
 *
 * I1  A waiter in the queue has seen the latest number, except for those that a changer is about to come back
 *     for.
 *
 * [A] unref: refs acq_rel -> unref: refs acq_rel    all uses come before the free
 */
#include "chan/listeners.h"
#include "wait/waker.h"

void bz_listeners_init(struct bz_listeners *c, const char *what, void (*copy)(struct bz_receive *r))
{
    *c = (struct bz_listeners){.os = bz_os_here(), .what = what, .copy = copy};
    bz_lock_init_ranked(&c->lock, BZ_RANK_WAIT);
    bz_list_init(&c->receivers);
    bz_list_init(&c->closing);
    bz_atomic_init(&c->refs, 1);
}

void bz_listeners_ref(struct bz_listeners *c)
{
    bz_fetch_add_relaxed(&c->refs, 1); /* relaxed: the caller holds one */
}

bool bz_listeners_unref(struct bz_listeners *c)
{
    if (bz_fetch_sub_acqrel(&c->refs, 1) != 1) /* [A] */
        return false;
    BZ_CHECK(bz_list_is_empty(&c->receivers) && bz_list_is_empty(&c->closing),
             "%s %p: its last holder goes while a task waits", c->what, (void *)c);
    return true;
}

/* ---- changing ---- */

/* Receive once without waiting, under the lock. */
static int look(struct bz_receive *r)
{
    if (*r->at == r->of->number)
        return r->of->is_closed ? -EPIPE : -EAGAIN;
    r->of->copy(r);
    return 0;
}

/* Serve the waiters, as many as fit into the wake list. Return true if some are left. */
static bool serve(struct bz_listeners *c, struct bz_wakelist *wakes)
{
    struct bz_waiter *w;
    while (!bz_wakelist_is_full(wakes) && (w = bz_waiter_first(&c->receivers)) != NULL) {
        struct bz_receive *r = BZ_CONTAINER_OF(w, struct bz_receive, request.waiter);
        if (*r->at == c->number && !c->is_closed)
            return false; /* it came after the change, and so did all behind it: I1 */
        if (w->is_polled)
            bz_wakelist_notify(wakes, w);
        else if (bz_wakelist_grant(wakes, w, 0))
            bz_set(&w->result,
                   look(r)); /* under the lock, which an early waiter takes: waiter.h, I2 */
    }
    return !bz_list_is_empty(&c->receivers);
}

bool bz_listeners_begin(struct bz_listeners *c)
{
    bz_lock_take(&c->lock, c->os);
    if (!c->is_closed)
        return true;
    bz_lock_drop(&c->lock, c->os);
    return false;
}

void bz_listeners_end(struct bz_listeners *c)
{
    const struct bz_os *os = c->os;
    struct bz_wakelist wakes;
    bool has_more;
    do {
        bz_wakelist_init(&wakes);
        has_more = serve(c, &wakes);
        bz_lock_drop(&c->lock, os);
        bz_wakelist_deliver(&wakes);
        if (has_more)
            bz_lock_take(&c->lock, os);
    } while (has_more);
}

/* ---- counted receivers, and senders that wait until none is left ---- */

static void lock_of(void *c)
{
    bz_lock_take(&((struct bz_listeners *)c)->lock, ((struct bz_listeners *)c)->os);
}

static void unlock_of(void *c)
{
    bz_lock_drop(&((struct bz_listeners *)c)->lock, ((struct bz_listeners *)c)->os);
}

static struct bz_list *closing_of(void *listeners)
{
    struct bz_listeners *c = listeners;
    return c->is_closed || c->counted == 0 ? NULL : &c->closing;
}

static const struct bz_closed_ops closed =
    BZ_CLOSED_OPS("last receiver", lock_of, unlock_of, closing_of);

void bz_listeners_add(struct bz_listeners *c)
{
    lock_of(c);
    c->counted++;
    unlock_of(c);
}

void bz_listeners_remove(struct bz_listeners *c)
{
    lock_of(c);
    BZ_CHECK(c->counted > 0, "%s %p: more receivers are dropped than were added", c->what,
             (void *)c);
    if (--c->counted == 0)
        bz_closed_end(&closed, c, &c->closing);
    else
        unlock_of(c);
}

size_t bz_listeners_count(struct bz_listeners *c)
{
    lock_of(c);
    size_t count = c->counted;
    unlock_of(c);
    return count;
}

int bz_listeners_wait_closed(struct bz_listeners *c, blitz_deadline until)
{
    return bz_closed_wait(&closed, c, c->os, until);
}

void bz_listeners_wait_closed_future_init(blitz_closed_future *f, struct bz_listeners *c)
{
    bz_closed_future_init(f, &closed, c);
}

void bz_listeners_close(struct bz_listeners *c)
{
    lock_of(c);
    c->is_closed = true;
    bz_listeners_end(c);
    lock_of(c); /* it stays closed, so no waiter has come since */
    bz_closed_end(&closed, c, &c->closing);
}

/* ---- receiving ---- */

int bz_listeners_try(struct bz_receive *r)
{
    struct bz_listeners *c = r->of;
    bz_lock_take(&c->lock, c->os);
    int rc = look(r);
    bz_lock_drop(&c->lock, c->os);
    return rc;
}

static struct bz_receive *receive_of(struct bz_request *r)
{
    return BZ_CONTAINER_OF(r, struct bz_receive, request);
}

void bz_listeners_lock(struct bz_request *r)
{
    struct bz_listeners *c = receive_of(r)->of;
    bz_lock_take(&c->lock, c->os);
}

/* A receive serves no other, so there are no wake-ups. */
void bz_listeners_unlock(struct bz_request *r, struct bz_wakelist *wakes)
{
    struct bz_listeners *c = receive_of(r)->of;
    (void)wakes;
    bz_lock_drop(&c->lock, c->os);
}

bool bz_listeners_enter(struct bz_request *r, struct bz_wakelist *wakes)
{
    int rc = look(receive_of(r));
    (void)wakes;
    if (rc == -EAGAIN) {
        bz_waiter_queue(&r->waiter, &receive_of(r)->of->receivers);
        return false;
    }
    bz_set(&r->waiter.result, rc);
    return true;
}

bool bz_listeners_leave(struct bz_request *r, struct bz_wakelist *wakes)
{
    (void)wakes;
    bz_waiter_leave(&r->waiter);
    return true;
}

void bz_listeners_resumed(struct bz_request *r, bool is_early)
{
    struct bz_wakelist wakes;
    if (!is_early)
        return;
    bz_listeners_lock(r); /* the changer copies the value under the lock: wait/waiter.h, I2 */
    bz_listeners_unlock(r, &wakes);
}

int bz_listeners_wait(struct bz_receive *r, blitz_deadline until)
{
    int rc = bz_listeners_try(r);
    bz_look_up(); /* ask.h */
    if (rc != -EAGAIN)
        return rc;
    bz_waiter_init(&r->request.waiter, NULL, BZ_WAIT_WOKEN);
    return bz_request_wait(&r->request, r->of->os, until);
}

/* ---- as a future ---- */

blitz_poll bz_listeners_poll(struct bz_receive *r, int *result, const blitz_waker *waker)
{
    if (*result != -EINPROGRESS)
        return BLITZ_READY; /* it was ready before */
    if (!bz_request_poll(&r->request, waker))
        return BLITZ_PENDING;
    *result = bz_get(&r->request.waiter.result);
    return BLITZ_READY;
}

void bz_listeners_cancel(struct bz_receive *r, int *result)
{
    if (*result != -EINPROGRESS)
        return;
    *result = -ECANCELED;
    (void)bz_request_cancel(&r->request);
}
