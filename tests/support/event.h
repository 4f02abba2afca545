/*
 * event.h - something that happens once, and a task or a thread that waits for it.
 *
 *     struct t_event e;
 *     t_event_init(&e, os);
 *     t_event_await(&e);       one waiter; returns when it has been set, in any order
 *     t_event_set(&e);         any thread
 *
 * A future like a user would write one: a lock, a flag and a cloned waker.
 */
#ifndef T_EVENT_H
#define T_EVENT_H

#include "base/compiler.h"
#include "blitz/future.h"
#include "harness.h"
#include "os/lock.h"

struct t_event {
    blitz_future f;
    const struct bz_os *os;
    struct bz_lock lock;
    bool is_set;       /* guarded by lock */
    blitz_waker waker; /* guarded by lock */
};

static inline blitz_poll t_event_poll(blitz_future *f, const blitz_waker *waker)
{
    struct t_event *e = BZ_CONTAINER_OF(f, struct t_event, f);
    blitz_waker old = {NULL, NULL};
    bz_lock_take(&e->lock, e->os);
    bool is_set = e->is_set;
    if (!is_set) {
        old = e->waker;
        e->waker = blitz_waker_clone(waker);
    }
    bz_lock_drop(&e->lock, e->os);
    blitz_waker_drop(&old);
    return is_set ? BLITZ_READY : BLITZ_PENDING;
}

static inline blitz_waker t_event_take_waker(struct t_event *e, bool is_set)
{
    bz_lock_take(&e->lock, e->os);
    blitz_waker w = e->waker;
    e->waker = (blitz_waker){NULL, NULL};
    e->is_set = e->is_set || is_set;
    bz_lock_drop(&e->lock, e->os);
    return w;
}

static inline void t_event_cancel(blitz_future *f)
{
    blitz_waker w = t_event_take_waker(BZ_CONTAINER_OF(f, struct t_event, f), false);
    blitz_waker_drop(&w);
}

static inline void t_event_init(struct t_event *e, const struct bz_os *os)
{
    static const blitz_future_ops ops = {"event", BLITZ_REVOCABLE, t_event_poll, t_event_cancel,
                                         NULL};
    *e = (struct t_event){.f = {&ops}, .os = os};
    bz_lock_init(&e->lock);
}

/* Call it from a task of the runtime, or of a plain thread of the system. */
static inline int t_event_await_until(struct t_event *e, blitz_deadline until)
{
    return blitz_await(&e->f, until);
}

static inline void t_event_await(struct t_event *e)
{
    CHECK_EQ(t_event_await_until(e, BLITZ_FOREVER), 0);
}

static inline void t_event_set(struct t_event *e)
{
    blitz_waker w = t_event_take_waker(e, true);
    blitz_waker_wake(&w);
}

#endif
