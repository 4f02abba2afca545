/*
 * fiber_mutex.h - the smallest lock a task can wait for: first come, first served, handed over.
 *
 * Made of events, as a user could make one before there is a real one in the library.
 */
#ifndef T_FIBER_MUTEX_H
#define T_FIBER_MUTEX_H

#include "base/list.h"
#include "park/await.h"
#include "proc/state.h"
#include "support/event.h"

struct t_mutex {
    const struct bz_os *os;
    struct bz_lock lock;
    bool is_held;           /* guarded by lock */
    struct bz_list waiters; /* guarded by lock */
};

struct t_mutex_waiter {
    struct bz_list in;
    struct t_event turn;
};

static inline void t_mutex_init(struct t_mutex *m, const struct bz_os *os)
{
    m->os = os;
    bz_lock_init(&m->lock);
    m->is_held = false;
    bz_list_init(&m->waiters);
}

static inline void t_mutex_take(struct t_mutex *m)
{
    struct t_mutex_waiter w;
    t_event_init(&w.turn, m->os);
    bz_lock_take(&m->lock, m->os);
    bool is_ours = !m->is_held;
    m->is_held = true;
    if (!is_ours) {
        bz_list_init(&w.in);
        bz_list_push_back(&m->waiters, &w.in);
    }
    bz_lock_drop(&m->lock, m->os);
    if (!is_ours)
        CHECK_EQ(bz_await(m->os, &w.turn.f, BLITZ_FOREVER), 0);
}

static inline void t_mutex_drop(struct t_mutex *m)
{
    bz_lock_take(&m->lock, m->os);
    struct bz_list *first = bz_list_take_front(&m->waiters);
    m->is_held = first != NULL; /* handed over */
    bz_lock_drop(&m->lock, m->os);
    if (first != NULL)
        t_event_set(&BZ_CONTAINER_OF(first, struct t_mutex_waiter, in)->turn);
}

#endif
