/*
 * request.c - the two drivers of an operation that may have to wait. The essay is in request.h.
 *
 * A waker is cloned before the lock is taken if it is a foreign one, because its functions are the user's
 * code. Wakers of blitz are cloned under the lock, and only if the request must wait: a poll that is ready
 * at once touches no count.
 *
 * No atomics: everything here is under the primitive's lock, or is handed off by a wait.
 */
#include "park/request.h"
#include "wait/waker.h"

#include <errno.h>

/* ---- granting ---- */

static BZ_ALWAYS_INLINE bool batch(struct bz_request *r, enum bz_waiter_state state,
                                   struct bz_wakelist *wakes)
{
    struct bz_waiter *w = &r->waiter;
    BZ_ASSERT(w->state == BZ_WAITER_QUEUED);
    if (w->is_polled) {
        bz_wakelist_notify(wakes, w);
        w->state = (uint8_t)state;
        return true;
    }
    bz_list_remove(&w->in);
    w->state = (uint8_t)state; /* before the claim: wait/waiter.h, I2 */
    if (!w->is_parked)
        return true; /* I2 */
    if (bz_wait_claim(w->wait, w->outcome, bz_wakelist_next(wakes))) {
        bz_wakelist_add(wakes);
        return true; /* its frame may be gone */
    }
    w->state = BZ_WAITER_OUT; /* the waiter takes the lock before it leaves: wait.h, rule 2 */
    return false;
}

bool bz_request_grant(struct bz_request *r, struct bz_wakelist *wakes)
{
    return batch(r, BZ_WAITER_GRANTED, wakes);
}

bool bz_request_notify(struct bz_request *r, struct bz_wakelist *wakes)
{
    return batch(r, BZ_WAITER_NOTIFIED, wakes);
}

/* ---- on a stack ---- */

static bool request_hook(struct bz_wait *w, void *arg)
{
    struct bz_request *r = arg;
    return bz_request_hook_by(w, r, r->ops);
}

static void request_hook_task(void *wait)
{
    bz_wait_register(wait, request_hook);
}

static bool request_hook_short(struct bz_wait *w, void *arg)
{
    struct bz_request *r = arg;
    return bz_request_hook_of(w, r, r->ops, false);
}

static void request_hook_usual(void *wait)
{
    bz_wait_register_by(wait, request_hook_short, false);
}

static const struct bz_request_hooks request_hooks = {request_hook, request_hook_task,
                                                      request_hook_usual};

bool bz_request_leave_now(struct bz_request *r)
{
    struct bz_wakelist wakes;
    bz_wakelist_init(&wakes);
    r->ops->lock(r);
    bool has_left = r->ops->leave(r, &wakes);
    r->ops->unlock(r, &wakes);
    return has_left;
}

int bz_request_park(struct bz_request *r, struct bz_wait *w)
{
    return bz_request_park_by(r, w, request_hooks, r->ops);
}

int bz_request_wait(struct bz_request *r, const struct bz_os *os, blitz_deadline until)
{
    return bz_request_wait_by(r, os, until, request_hooks, r->ops);
}

/* ---- as a future ---- */

/* Under the lock: return whether it is done. Else it is queued. */
static bool ask(struct bz_request *r, struct bz_wakelist *wakes)
{
    uint8_t state = r->waiter.state;
    if (state == BZ_WAITER_OUT || state == BZ_WAITER_NOTIFIED)
        return r->ops->enter(r, wakes);
    return r->ops->check != NULL ? r->ops->check(r, wakes) : state == BZ_WAITER_GRANTED;
}

static inline void waker_drop(blitz_waker *w)
{
    if (w->ops != NULL)
        blitz_waker_drop(w);
}

bool bz_request_poll(struct bz_request *r, const blitz_waker *waker)
{
    struct bz_wakelist wakes;
    bool is_ours = bz_waker_is_ours(waker);
    blitz_waker spare = is_ours ? (blitz_waker){NULL, NULL} : blitz_waker_clone(waker);
    bz_wakelist_init(&wakes);
    r->waiter.was_polled = true;
    r->ops->lock(r);
    bool is_done = ask(r, &wakes);
    if (is_done)
        r->waiter.state = BZ_WAITER_OUT;
    else if (is_ours)
        spare = blitz_waker_clone(waker);
    blitz_waker next = is_done ? (blitz_waker){NULL, NULL} : spare;
    blitz_waker old = bz_waiter_set_waker(&r->waiter, next);
    r->ops->unlock(r, &wakes);
    waker_drop(&old);
    if (is_done)
        waker_drop(&spare);
    return is_done;
}

bool bz_request_cancel(struct bz_request *r)
{
    struct bz_wakelist wakes;
    bz_wakelist_init(&wakes);
    r->ops->lock(r);
    bool has_left = r->waiter.state == BZ_WAITER_OUT || r->ops->leave(r, &wakes);
    blitz_waker old = bz_waiter_take_waker(&r->waiter);
    r->ops->unlock(r, &wakes);
    waker_drop(&old);
    return has_left;
}
