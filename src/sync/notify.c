/*
 * notify.c - a notification for one, kept if nobody waits, or for all who wait now.
 *
 * Everything is under the lock of the line. A fast path would save a lock that nobody else holds in
 * a call that is about to wake or to wait; not worth a protocol.
 *
 * Who was notified by notify_all does not pass it on when it is cancelled: everybody had it. Who was
 * notified by notify_one does, and so a notification is used up by one that heard it or is kept.
 * That is why serve gives for as long as one is kept.
 *
 * "Now" in notify_all is a line drawn under those who wait: a round number, which each node takes
 * with it into the line, so that the wakers can be fired in batches with the lock dropped, and nobody
 * who joins meanwhile is woken as well.
 *
 * I1  A notification is kept -> nobody is in the line, outside of the lock.
 *
 * What is kept is written under the lock, and looked at without it by who only wants to know whether
 * it would have to wait.
 */
#include "blitz/notify.h"

#include <assert.h>
#include <errno.h>

#include "sync/waitq.h"

struct bz_notify {
    struct bz_waitq q;
    uint64_t round;              /* of notify_all; guarded by q.lock */
    bz_atomic(uint64_t) is_kept; /* a notification for whoever comes; written under q.lock */
};

enum { BY_ALL = 1 }; /* a given node's `want`: by which of the two it was given */

static_assert(sizeof(struct bz_notify) <= sizeof(blitz_notify), "it has room");

static struct bz_notify *of(blitz_notify *notify)
{
    return (struct bz_notify *)notify;
}

static bool is_kept(const struct bz_notify *notify)
{
    return bz_load_relaxed(&notify->is_kept) != 0; /* relaxed: the lock, or a look before it */
}

static void keep(struct bz_notify *notify, bool is_kept)
{
    bz_store_relaxed(&notify->is_kept, is_kept); /* relaxed: the lock */
}

/* ---- under the lock ---- */

static bool notify_enter(struct bz_request *r, struct bz_wakelist *wakes)
{
    struct bz_node *n = bz_node_of(r);
    struct bz_notify *notify = n->owner;
    (void)wakes;
    if (is_kept(notify)) {
        keep(notify, false);
        return true;
    }
    n->since = notify->round;
    bz_node_join(n);
    return false;
}

/* Those who waited for a notify_all, then whoever may have the one that is kept. */
static void notify_serve(void *owner, struct bz_wakelist *wakes)
{
    struct bz_notify *notify = owner;
    for (struct bz_node *n; (n = bz_waitq_first(&notify->q)) != NULL;) {
        bool is_by_all = n->since != notify->round;
        if (!is_by_all && !is_kept(notify))
            return;
        if (bz_wakelist_is_full(wakes)) {
            wakes->has_more = true;
            return;
        }
        n->want = is_by_all ? BY_ALL : 0;
        if (bz_node_give(n, wakes) && !is_by_all)
            keep(notify, false);
    }
}

static void notify_give_back(struct bz_node *n, struct bz_wakelist *wakes)
{
    struct bz_notify *notify = n->owner;
    (void)wakes;
    if (n->want != BY_ALL)
        keep(notify, true);
}

static bool notify_is_far(const struct bz_request *r)
{
    const struct bz_node *n = BZ_CONTAINER_OF(r, const struct bz_node, request);
    return !is_kept(n->owner);
}

static const struct bz_node_ops waiting = {
    .look = BZ_NODE_FUTURE("notify"),
    .request = BZ_NODE_REQUEST("notify", notify_enter, notify_is_far),
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
