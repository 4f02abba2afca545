/*
 * job_mutex.h - the least lock that a task may hold while it waits, made of futures alone.
 *
 * Waiting for it is a future; a thread's lock guards the few lines in which it changes hands. Handed
 * over in order: whoever unlocks makes the first waiter the holder, then wakes it.
 */
#ifndef T_JOB_MUTEX_H
#define T_JOB_MUTEX_H

#include "base/list.h"
#include "blitz.h"
#include "harness.h"
#include "os/lock.h"

struct t_mutex {
    struct bz_lock lock;
    bool is_held;           /* guarded by lock, as is the next */
    struct bz_list waiting; /* struct t_mutex_wait */
};

struct t_mutex_wait {
    blitz_future f;
    struct t_mutex *mutex;
    struct bz_list in;
    blitz_waker waker;
    bool is_mine; /* guarded by the mutex's lock */
};

static inline void t_mutex_init(struct t_mutex *x)
{
    bz_lock_init(&x->lock);
    x->is_held = false;
    bz_list_init(&x->waiting);
}

static inline blitz_poll t_mutex_poll(blitz_future *f, const blitz_waker *waker)
{
    struct t_mutex_wait *w = BZ_CONTAINER_OF(f, struct t_mutex_wait, f);
    struct t_mutex *x = w->mutex;
    blitz_waker old = {NULL, NULL};
    bz_lock_take(&x->lock, &bz_os_linux);
    if (!w->is_mine && !x->is_held)
        x->is_held = w->is_mine = true;
    bool is_mine = w->is_mine;
    if (!is_mine) {
        old = w->waker;
        w->waker = blitz_waker_clone(waker);
        if (!bz_list_is_linked(&w->in))
            bz_list_push_back(&x->waiting, &w->in);
    }
    bz_lock_drop(&x->lock, &bz_os_linux);
    blitz_waker_drop(&old);
    return is_mine ? BLITZ_READY : BLITZ_PENDING;
}

static inline void t_mutex_never(blitz_future *f)
{
    (void)f;
    FAIL("nobody cancels a wait for the lock");
}

static inline void t_mutex_lock(struct t_mutex *x)
{
    static const blitz_future_ops ops = {"test mutex", BLITZ_REVOCABLE, t_mutex_poll,
                                         t_mutex_never};
    struct t_mutex_wait w = {.f = {&ops}, .mutex = x, .waker = {NULL, NULL}};
    bz_list_init(&w.in);
    CHECK_EQ(blitz_await(&w.f, BLITZ_FOREVER), 0);
    blitz_waker_drop(&w.waker);
}

static inline void t_mutex_unlock(struct t_mutex *x)
{
    blitz_waker next = {NULL, NULL};
    bz_lock_take(&x->lock, &bz_os_linux);
    struct bz_list *l = bz_list_take_front(&x->waiting);
    x->is_held = l != NULL;
    if (l != NULL) {
        struct t_mutex_wait *w = BZ_CONTAINER_OF(l, struct t_mutex_wait, in);
        next = w->waker; /* the wait may be over as soon as the lock is dropped */
        w->waker = (blitz_waker){NULL, NULL};
        w->is_mine = true;
    }
    bz_lock_drop(&x->lock, &bz_os_linux);
    blitz_waker_wake(&next);
}

#endif
