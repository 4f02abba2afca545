/*
 * notify.c - a notification for one waiter, kept if there is none, or for all present waiters.
 *
 * Everything is under the lock of the wait queue. A fast path would save an uncontended lock in
 * a call that is about to wake or to wait; that is not worth a protocol.
 *
 * A waiter notified by notify_all does not pass the notification on when it is cancelled: every waiter had it. A waiter
 * notified by notify_one does pass it on. So a waiter that returns uses up the notification, or it is kept.
 * That is why serve grants for as long as one is kept.
 *
 * notify_all wakes only the waiters of that moment. Each node takes a round number with it into the queue. So the
 * wakers can be fired in batches with the lock dropped, and waiters that join meanwhile are not woken.
 *
 * I1  A notification is kept -> the queue is empty, outside of the lock.
 *
 * is_kept is written under the lock. A caller that only asks whether it would have to wait reads it without the lock.
 */
#include "blitz/notify.h"

#include <assert.h>
#include <errno.h>

#include "sync/waitq.h"

struct bz_notify {
    struct bz_waitq q;
    uint64_t round;              /* number of notify_all calls; guarded by q.lock */
    bz_atomic(uint64_t) is_kept; /* a notification for the next waiter; written under q.lock */
};

enum { BY_ALL = 1 }; /* `want` of a granted node: notify_all granted it, not notify_one */

static_assert(sizeof(struct bz_notify) <= sizeof(blitz_notify), "it has room");

static struct bz_notify *of(blitz_notify *notify)
{
    return (struct bz_notify *)notify;
}

static bool is_kept(const struct bz_notify *notify)
{
    return bz_load_relaxed(&notify->is_kept) != 0; /* relaxed: the lock, or a hint before it */
}

static void keep(struct bz_notify *notify, bool is_kept)
{
    bz_store_relaxed(&notify->is_kept, is_kept); /* relaxed: the lock */
}

/* ---- under the lock ---- */

static bool notify_enter(struct bz_request *r, struct bz_wakelist *wakes)
{
    struct bz_sync_op *n = bz_sync_op_of(r);
    struct bz_notify *notify = n->owner;
    (void)wakes;
    if (is_kept(notify)) {
        keep(notify, false);
        return true;
    }
    n->since = notify->round;
    bz_sync_op_join(n);
    return false;
}

/* Grant to the waiters of a notify_all, then give the kept notification to the next waiter. */
static void notify_serve(void *owner, struct bz_wakelist *wakes)
{
    struct bz_notify *notify = owner;
    for (struct bz_sync_op *n; (n = bz_waitq_first(&notify->q)) != NULL;) {
        bool is_by_all = n->since != notify->round;
        if (!is_by_all && !is_kept(notify))
            return;
        if (bz_wakelist_is_full(wakes)) {
            wakes->has_more = true;
            return;
        }
        n->want = is_by_all ? BY_ALL : 0;
        if (bz_sync_op_give(n, wakes) && !is_by_all)
            keep(notify, false);
    }
}

static void notify_give_back(struct bz_sync_op *n, struct bz_wakelist *wakes)
{
    struct bz_notify *notify = n->owner;
    (void)wakes;
    if (n->want != BY_ALL)
        keep(notify, true);
}

static bool notify_is_far(const struct bz_request *r)
{
    const struct bz_sync_op *n = BZ_CONTAINER_OF(r, const struct bz_sync_op, request);
    return !is_kept(n->owner);
}

static const struct bz_sync_op_ops waiting = {
    .look = BZ_SYNC_OP_FUTURE("notify"),
    .request = BZ_SYNC_OP_REQUEST("notify", notify_enter, notify_is_far),
    .serve = notify_serve,
    .give_back = notify_give_back};

/* ---- for users ---- */

void blitz_notify_init(blitz_notify *notify)
{
    *notify = (blitz_notify)BLITZ_NOTIFY_INIT;
}

int blitz_notify_wait(blitz_notify *notify, blitz_deadline until)
{
    bz_look_up(); /* ask.h */
    return bz_waitq_acquire(&of(notify)->q, of(notify), &waiting, 0, until);
}

int blitz_notify_try_wait(blitz_notify *notify)
{
    struct bz_notify *n = of(notify);
    const struct bz_os *os = bz_sync_os();
    bz_waitq_take(&n->q, os);
    bool was_kept = is_kept(n);
    keep(n, false);
    bz_waitq_drop(&n->q, os);
    return was_kept ? 0 : -EAGAIN;
}

void blitz_notify_one(blitz_notify *notify)
{
    struct bz_notify *n = of(notify);
    const struct bz_os *os = bz_sync_os();
    struct bz_wakelist wakes;
    bz_wakelist_init(&wakes);
    bz_waitq_take(&n->q, os);
    keep(n, true);
    notify_serve(n, &wakes);
    bz_waitq_end(&n->q, n, &waiting, &wakes, os);
}

void blitz_notify_all(blitz_notify *notify)
{
    struct bz_notify *n = of(notify);
    const struct bz_os *os = bz_sync_os();
    struct bz_wakelist wakes;
    bz_wakelist_init(&wakes);
    bz_waitq_take(&n->q, os);
    n->round++;
    notify_serve(n, &wakes);
    bz_waitq_end(&n->q, n, &waiting, &wakes, os);
}

void blitz_notify_wait_future_init(blitz_sync_future *f, blitz_notify *notify)
{
    bz_sync_future_init(f, &of(notify)->q, of(notify), &waiting, 0);
}
