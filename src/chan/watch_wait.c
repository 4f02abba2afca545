/*
 * watch_wait.c - wait until a watch has a value that a function accepts.
 *
 * The function is the user's, so it runs without a lock, on the caller's copy. So this is a loop around a receive
 * (watch.c), written as a future.
 */
#include <errno.h>

#include "base/compiler.h"
#include "blitz/watch.h"

static blitz_watch_wait_for_future *wait_of(blitz_future *future)
{
    return BZ_CONTAINER_OF(future, blitz_watch_wait_for_future, future);
}

static blitz_poll wait_poll(blitz_future *future, const blitz_waker *waker)
{
    blitz_watch_wait_for_future *f = wait_of(future);
    while (f->recv.future.ops->poll(&f->recv.future, waker) == BLITZ_READY) {
        f->result = f->recv.result;
        if (f->result != 0 || f->is_wanted(f->value, f->arg))
            return BLITZ_READY;
        blitz_watch_recv_future_init(&f->recv, f->of, f->value, f->seen);
    }
    return BLITZ_PENDING;
}

static void wait_cancel(blitz_future *future)
{
    blitz_watch_wait_for_future *f = wait_of(future);
    f->recv.future.ops->cancel(&f->recv.future);
}

static int wait_output(blitz_future *future)
{
    return wait_of(future)->result;
}

void blitz_watch_wait_for_future_init(blitz_watch_wait_for_future *f, blitz_watch *w,
                                      bool (*is_wanted)(const void *value, void *arg), void *arg,
                                      void *value, uint64_t *seen)
{
    static const blitz_future_ops ops = {"watch", BLITZ_REVOCABLE, wait_poll, wait_cancel,
                                         wait_output};
    *f = (blitz_watch_wait_for_future){.future.ops = &ops,
                                       .result = -EINPROGRESS,
                                       .is_wanted = is_wanted,
                                       .arg = arg,
                                       .of = w,
                                       .value = value,
                                       .seen = seen};
    blitz_watch_recv_future_init(&f->recv, w, value, seen);
}

int blitz_watch_wait_for(blitz_watch *w, bool (*is_wanted)(const void *value, void *arg), void *arg,
                         void *value, uint64_t *seen, blitz_deadline until)
{
    blitz_watch_wait_for_future f;
    blitz_watch_wait_for_future_init(&f, w, is_wanted, arg, value, seen);
    int rc = blitz_await(&f.future, until);
    return rc == 0 ? f.result : rc;
}
