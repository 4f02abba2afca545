/*
 * crowd.c - serving all who wait for a change.
 *
 * A blocking receiver gets the new value from the party that changes it; a future is notified and looks. If
 * more receivers wait than fit into a list of wake-ups, the changer comes back for the rest. These may have
 * missed some values by then, as any slow receiver may.
 *
 * I1  Who is in line has seen the latest number, but for those that a changer is about to come back
 *     for.
 *
 * [A] unref: refs acq_rel -> unref: refs acq_rel    all uses come before the free
 */
#include "chan/crowd.h"

void bz_crowd_init(struct bz_crowd *c, const char *what, void (*copy)(struct bz_receive *r))
{
    *c = (struct bz_crowd){.os = bz_os_here(), .what = what, .copy = copy};
    bz_lock_init_ranked(&c->lock, BZ_RANK_WAIT);
    bz_list_init(&c->receivers);
    bz_atomic_init(&c->refs, 1);
}

void bz_crowd_ref(struct bz_crowd *c)
{
    bz_fetch_add_relaxed(&c->refs, 1); /* relaxed: the caller holds one */
}

bool bz_crowd_unref(struct bz_crowd *c)
{
    if (bz_fetch_sub_acqrel(&c->refs, 1) != 1) /* [A] */
        return false;
    BZ_CHECK(bz_list_is_empty(&c->receivers), "%s %p: its last holder goes while somebody waits",
             c->what, (void *)c);
    return true;
}

/* ---- changing ---- */

/* One look, under the lock. */
static int look(struct bz_receive *r)
{
    if (*r->at == r->of->number)
        return r->of->is_closed ? -EPIPE : -EAGAIN;
    r->of->copy(r);
    return 0;
}

/* Serve those who wait; true: not all of them. */
static bool settle(struct bz_crowd *c, struct bz_wakelist *wakes)
{
    struct bz_waiter *w;
    while (!bz_wakelist_is_full(wakes) && (w = bz_waiter_first(&c->receivers)) != NULL) {
        struct bz_receive *r = BZ_CONTAINER_OF(w, struct bz_receive, waiter);
        if (*r->at == c->number && !c->is_closed)
            return false; /* it came since, and so did all behind it: I1 */
        if (w->is_polled)
            bz_wakelist_notify(wakes, w);
        else if (bz_wakelist_grant(wakes, w, 0))
            bz_set(&w->result,
                   look(r)); /* under the lock, which an early waiter takes: waiter.h, I2 */
    }
    return !bz_list_is_empty(&c->receivers);
}

bool bz_crowd_begin(struct bz_crowd *c)
{
    bz_lock_take(&c->lock, c->os);
    if (!c->is_closed)
        return true;
    bz_lock_drop(&c->lock, c->os);
    return false;
}

void bz_crowd_end(struct bz_crowd *c)
{
    const struct bz_os *os = c->os;
    struct bz_wakelist wakes;
    bool has_more;
    do {
        bz_wakelist_init(&wakes);
        has_more = settle(c, &wakes);
        bz_lock_drop(&c->lock, os);
        bz_wakelist_deliver(&wakes);
        has_more = has_more && !BZ_BROKEN(207);
        if (has_more)
            bz_lock_take(&c->lock, os);
    } while (has_more);
}

void bz_crowd_close(struct bz_crowd *c)
{
    bz_lock_take(&c->lock, c->os);
    c->is_closed = true;
    bz_crowd_end(c);
}

/* ---- looking ---- */

int bz_crowd_try(struct bz_receive *r)
{
    struct bz_crowd *c = r->of;
    bz_lock_take(&c->lock, c->os);
    int rc = look(r);
    bz_lock_drop(&c->lock, c->os);
    return rc;
}

static bool receive_hook(struct bz_wait *w, void *arg)
{
    struct bz_receive *r = arg;
    struct bz_crowd *c = r->of;
    const struct bz_os *os = c->os;
    bool waits;
    bz_lock_take(&c->lock, os);
    int rc = look(r);
    if (rc == -EAGAIN) {
        bz_waiter_queue(&r->waiter, &c->receivers);
        waits = bz_wait_publish(w);
    } else {
        bz_set(&r->waiter.result, rc);
        waits = bz_wait_over(w, BZ_WAIT_WOKEN);
    }
    bz_lock_drop(&c->lock, os);
    return waits;
}

int bz_crowd_wait(struct bz_receive *r, blitz_deadline until)
{
    struct bz_crowd *c = r->of;
    struct bz_wait w;
    int rc = bz_crowd_try(r);
    bz_look_up(); /* ask.h */
    if (rc != -EAGAIN)
        return rc;
    bz_wait_begin(&w, c->os, c->what, until);
    uint32_t outcome = bz_wait_refuse(&w);
    if (outcome != BZ_WAIT_OPEN)
        return bz_wait_error(outcome);
    bz_waiter_init(&r->waiter, &w, BZ_WAIT_WOKEN);
    outcome = bz_wait_park(&w, receive_hook, r);
    if (outcome < BZ_WAIT_WOKEN || bz_wait_is_early(&w)) {
        bz_lock_take(&c->lock, c->os);
        if (outcome < BZ_WAIT_WOKEN)
            bz_waiter_leave(&r->waiter);
        bz_lock_drop(&c->lock, c->os);
    }
    return outcome < BZ_WAIT_WOKEN ? bz_wait_error(outcome) : bz_get(&r->waiter.result);
}

/* ---- as a future ---- */

blitz_poll bz_crowd_poll(struct bz_receive *r, int *result, const blitz_waker *waker)
{
    struct bz_crowd *c = r->of;
    if (*result != -EINPROGRESS)
        return BLITZ_READY; /* as before */
    blitz_waker mine = blitz_waker_clone(waker);
    bz_lock_take(&c->lock, c->os);
    blitz_waker old = bz_waiter_take_waker(&r->waiter);
    bz_waiter_leave(&r->waiter);
    int rc = look(r);
    if (rc == -EAGAIN) {
        mine = bz_waiter_set_waker(&r->waiter, mine);
        bz_waiter_queue(&r->waiter, &c->receivers);
    }
    bz_lock_drop(&c->lock, c->os);
    blitz_waker_drop(&old);
    blitz_waker_drop(&mine);
    if (rc == -EAGAIN)
        return BLITZ_PENDING;
    *result = rc;
    return BLITZ_READY;
}

void bz_crowd_cancel(struct bz_receive *r, int *result)
{
    struct bz_crowd *c = r->of;
    if (*result != -EINPROGRESS)
        return;
    *result = -ECANCELED;
    bz_lock_take(&c->lock, c->os);
    bz_waiter_leave(&r->waiter);
    bz_lock_drop(&c->lock, c->os);
    blitz_waker_drop(&r->waiter.waker);
}
