/*
 * timeout.c - a future with a deadline.
 *
 * The child is polled first, so that a child which is ready at its deadline counts. blitz_await has a
 * deadline of its own and is cheaper; this is for deadlines inside a race or an all, and for stackless
 * tasks.
 */
#include <errno.h>

#include "future/children.h"

static blitz_timeout *timeout_of(blitz_future *f)
{
    return BZ_CONTAINER_OF(f, blitz_timeout, future);
}

static void timer_drop(blitz_timeout *t)
{
    t->timer.future.ops->cancel(&t->timer.future);
}

static blitz_poll timeout_poll(blitz_future *f, const blitz_waker *waker)
{
    blitz_timeout *t = timeout_of(f);
    if (!bz_child_is_open(&t->child))
        return BLITZ_READY; /* it was ready before */
    if (bz_child_poll(&t->child, waker)) {
        if (t->result == 0) {
            timer_drop(t);
            t->result = blitz_future_output(t->child.future);
        }
        return BLITZ_READY;
    }
    if (t->child.fate == BLITZ_STOPPING ||
        t->timer.future.ops->poll(&t->timer.future, waker) == BLITZ_PENDING)
        return BLITZ_PENDING;
    t->result = -ETIMEDOUT;
    bz_child_stop(&t->child);
    return bz_children_poll_stopping(&t->child, 1, NULL, waker) == 0 ? BLITZ_READY : BLITZ_PENDING;
}

static void timeout_cancel(blitz_future *f)
{
    blitz_timeout *t = timeout_of(f);
    if (t->child.fate > BLITZ_ASKED)
        return; /* it is over, or the child was asked to stop already */
    t->result = -ECANCELED;
    timer_drop(t);
    bz_child_stop(&t->child);
}

static int timeout_output(blitz_future *f)
{
    return timeout_of(f)->result;
}

int blitz_timeout_init(blitz_timeout *t, blitz_future *f, blitz_deadline until)
{
    static const blitz_future_ops revocable = {"timeout", BLITZ_REVOCABLE, timeout_poll,
                                               timeout_cancel, timeout_output},
                                  detachable = {"timeout", BLITZ_DETACHABLE, timeout_poll,
                                                timeout_cancel, timeout_output},
                                  pinned = {"timeout", BLITZ_PINNED, timeout_poll, timeout_cancel,
                                            timeout_output};
    static const blitz_future_ops *const ops[] = {&revocable, &detachable, &pinned};
    if (t == NULL || f == NULL)
        return -EINVAL;
    t->result = 0;
    t->child = (blitz_child){f, BLITZ_UNASKED};
    blitz_sleep_until_future_init(&t->timer, until);
    return bz_children_init(&t->child, 1, ops, &t->future);
}
