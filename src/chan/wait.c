/*
 * wait.c - waiting for a channel's step on a stack: a fiber's, or a plain thread's.
 *
 * By the manual (sched/wait.h). The step is tried under the lock once the stack has been left, so
 * that between "it would have to wait" and "it stands in line" nobody can come; the caller's own try
 * before that saves the switch in the common case, no more.
 *
 * Rejected: holding the lock from the first try until the hook drops it. It saves a pair of locked
 * instructions, but the lock is held while the next task is looked for, and that may fire timers and
 * wake anybody's wakers, which may use this very channel.
 *
 * I1  After anything but a wake the waiter takes the lock and leaves the line (wait.h, rule 2); after
 *     a wake it takes it if the waker may still be at it (bz_wait_is_early).
 * I2  Once it stands in line and the lock is dropped the waiter may go on, and drop the channel: the
 *     hook touches neither after that.
 */
#include "chan/chan.h"

/* The common cases, in short, under the lock. False: it is not one of them. */
static inline bool queue_in_short(struct blitz_chan *c, struct bz_chan_op *op)
{
    if (op->kind == BZ_CHAN_RECV) {
        if (!bz_chan_is_empty(c))
            return false;
        bz_waiter_queue(&op->waiter, &c->receivers);
        bz_chan_has_room(c);
        bz_store_relaxed(&c->may_recv, 0); /* relaxed: a hint, the lock decides */
        return true;
    }
    if (!bz_chan_is_lonely(c))
        return false;
    bz_waiter_queue(&op->waiter, &c->senders);
    bz_chan_has_news(c);
    bz_store_relaxed(&c->may_send, 0); /* relaxed: likewise */
    return true;
}

static bool wait_hook(struct bz_wait *w, void *arg)
{
    struct bz_chan_op *op = arg;
    struct blitz_chan *c = op->c;
    struct bz_wakelist wakes;
    bz_chan_lock(c);
    if (BZ_CHAN_SHORT && queue_in_short(c, op)) {
        bool waits = bz_wait_publish(w);
        bz_chan_unlock(c); /* I2 */
        return waits;
    }
    bz_wakelist_init(&wakes);
    int rc = bz_chan_try(op, &wakes);
    if (rc != -EAGAIN) {
        bz_set(&op->waiter.result, rc);
        bz_chan_done(c, &wakes);
        return bz_wait_over(w, BZ_WAIT_WOKEN);
    }
    bz_chan_join_line(op, false, &wakes);
    bool waits = bz_wait_publish(w);
    bz_chan_unlock(c);           /* I2 */
    bz_wakelist_deliver(&wakes); /* one at most */
    return waits;
}

int bz_chan_wait(struct bz_chan_op *op, const char *what, blitz_deadline until)
{
    struct blitz_chan *c = op->c;
    struct bz_wait w;
    bz_wait_begin(&w, c->os, what, until);
    uint32_t outcome = BZ_WAIT_OPEN;
    if (until != BLITZ_FOREVER) /* else there is only a cancel, which publishing finds as well */
        outcome = bz_wait_refuse(&w);
    if (outcome != BZ_WAIT_OPEN)
        return bz_wait_error(outcome);
    bz_waiter_init(&op->waiter, &w, BZ_WAIT_WOKEN);
    outcome = bz_wait_park(&w, wait_hook, op);
    if (outcome < BZ_WAIT_WOKEN || (bz_wait_is_early(&w) && !BZ_BROKEN(208))) { /* I1 */
        bz_chan_lock(c);
        if (outcome < BZ_WAIT_WOKEN)
            bz_waiter_leave(&op->waiter);
        bz_chan_unlock(c);
    }
    return outcome < BZ_WAIT_WOKEN ? bz_wait_error(outcome) : bz_get(&op->waiter.result);
}
