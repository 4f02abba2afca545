/*
 * cell.h - a one-number channel between two tasks, written with the public interface: two futures
 * over a mutex and two wakers. (Use a real channel in a program; this one is small enough to read.)
 *
 * Three things make a future. Its struct begins with a blitz_future, so that blitz_await can find
 * its functions. `poll` tries the operation: on success it returns BLITZ_READY; otherwise it stores
 * a clone of the waker for the other side and returns BLITZ_PENDING. `cancel` drops the clone. A
 * fiber, a stackless task and a plain thread can all await the same future.
 *
 * Call a waker *after* the mutex is unlocked: a wake-up takes scheduler time and need not hold the
 * mutex. No task waits while it holds the mutex, so a pthread mutex is fine.
 */
#ifndef EXAMPLES_CELL_H
#define EXAMPLES_CELL_H

#include <pthread.h>
#include <stdbool.h>

#include <blitz.h>

struct cell {
    pthread_mutex_t lock;
    bool is_full; /* guarded by lock, as is the rest */
    long value;
    /* the waker of the waiting sender and of the waiting receiver; empty: none waits */
    blitz_waker sender, receiver;
};

/* A pending send to, or receive from, `cell`. */
struct cell_wait {
    blitz_future future;
    struct cell *cell;
    long value;
};

static inline void cell_init(struct cell *c)
{
    *c = (struct cell){.is_full = false};
    pthread_mutex_init(&c->lock, NULL);
}

static inline void cell_fini(struct cell *c)
{
    blitz_waker_drop(&c->sender);
    blitz_waker_drop(&c->receiver);
    pthread_mutex_destroy(&c->lock);
}

/* The newest waker counts. */
static inline void cell_remember(blitz_waker *place, const blitz_waker *waker)
{
    blitz_waker_drop(place);
    *place = blitz_waker_clone(waker);
}

/* Take the waker out of its place, to be woken once the mutex is free. */
static inline blitz_waker cell_call(blitz_waker *place)
{
    blitz_waker taken = *place;
    *place = (blitz_waker){0};
    return taken;
}

static inline blitz_poll cell_poll_send(blitz_future *f, const blitz_waker *waker)
{
    struct cell_wait *w = (struct cell_wait *)f;
    struct cell *c = w->cell;
    blitz_waker other = {0};
    pthread_mutex_lock(&c->lock);
    bool has_room = !c->is_full;
    if (has_room) {
        c->is_full = true;
        c->value = w->value;
        other = cell_call(&c->receiver);
    } else {
        cell_remember(&c->sender, waker);
    }
    pthread_mutex_unlock(&c->lock);
    blitz_waker_wake(&other); /* an empty waker does nothing */
    return has_room ? BLITZ_READY : BLITZ_PENDING;
}

static inline blitz_poll cell_poll_receive(blitz_future *f, const blitz_waker *waker)
{
    struct cell_wait *w = (struct cell_wait *)f;
    struct cell *c = w->cell;
    blitz_waker other = {0};
    pthread_mutex_lock(&c->lock);
    bool is_there = c->is_full;
    if (is_there) {
        c->is_full = false;
        w->value = c->value;
        other = cell_call(&c->sender);
    } else {
        cell_remember(&c->receiver, waker);
    }
    pthread_mutex_unlock(&c->lock);
    blitz_waker_wake(&other);
    return is_there ? BLITZ_READY : BLITZ_PENDING;
}

static inline void cell_cancel_send(blitz_future *f)
{
    struct cell *c = ((struct cell_wait *)f)->cell;
    pthread_mutex_lock(&c->lock);
    blitz_waker mine = cell_call(&c->sender);
    pthread_mutex_unlock(&c->lock);
    blitz_waker_drop(&mine);
}

static inline void cell_cancel_receive(blitz_future *f)
{
    struct cell *c = ((struct cell_wait *)f)->cell;
    pthread_mutex_lock(&c->lock);
    blitz_waker mine = cell_call(&c->receiver);
    pthread_mutex_unlock(&c->lock);
    blitz_waker_drop(&mine);
}

/* Put a number in; waits while the last one is still there. 0, or -ECANCELED. */
static inline int cell_send(struct cell *c, long value)
{
    static const blitz_future_ops ops = {"send", BLITZ_REVOCABLE, cell_poll_send, cell_cancel_send,
                                         NULL};
    struct cell_wait w = {{&ops}, c, value};
    return blitz_await(&w.future, BLITZ_FOREVER);
}

/* Take the number out; waits until there is one. 0, or -ECANCELED. */
static inline int cell_receive(struct cell *c, long *value)
{
    static const blitz_future_ops ops = {"receive", BLITZ_REVOCABLE, cell_poll_receive,
                                         cell_cancel_receive, NULL};
    struct cell_wait w = {{&ops}, c, 0};
    int err = blitz_await(&w.future, BLITZ_FOREVER);
    *value = w.value;
    return err;
}

#endif
