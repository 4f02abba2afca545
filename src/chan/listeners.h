/*
 * listeners.h - many receivers that each read the same object, and wait until it has changed.
 *
 * This is the common part of a broadcast and a watch. The object has a number that goes up with every change, and
 * each receiver has the number it has seen. If the two differ, there is something new. No receiver takes a value away
 * from another, so there are no turns: a change serves all waiters.
 */
#ifndef BZ_CHAN_CROWD_H
#define BZ_CHAN_CROWD_H

#include <errno.h>

#include "park/closed.h"
#include "chan/copy.h"
#include "park/request.h"
#include "proc/ask.h"

struct bz_receive;

/* The first member of the broadcast or watch. */
struct bz_listeners {
    struct bz_lock lock; /* rank WAIT; guards the next five, and the object's values */
    bool is_closed;
    uint64_t number;          /* of changes */
    struct bz_list receivers; /* the waiters */
    size_t counted;           /* receivers that were added and not removed */
    struct bz_list closing;   /* senders that wait until none is left: closed.h */
    bz_atomic(uint32_t) refs;
    const struct bz_os *os; /* constant, as are the next ones */
    const char *what;       /* for dumps */
    /* Under the lock, if there is something new: copy it, and advance *r->at. */
    void (*copy)(struct bz_receive *r);
};

/* One receive, and its wait. */
struct bz_receive {
    struct bz_request request; /* its ops: BZ_LISTENERS_REQUEST */
    struct bz_listeners *of;
    uint64_t *at; /* the caller's: the number it has reached */
    void *value;
    uint64_t missed; /* of a broadcast: how many values were overwritten before this receive */
};

void bz_listeners_init(struct bz_listeners *c, const char *what,
                       void (*copy)(struct bz_receive *r));
void bz_listeners_ref(struct bz_listeners *c);
/* Return true if that was the last reference and the caller must free the object. Abort if there are waiters. */
BZ_MUST_USE bool bz_listeners_unref(struct bz_listeners *c);

/* Take the lock for a change, which the caller makes between begin and end. Return false, without the lock, if the
 * object is closed. */
BZ_MUST_USE bool bz_listeners_begin(struct bz_listeners *c);
void bz_listeners_end(struct bz_listeners *c);
void bz_listeners_close(struct bz_listeners *c);

/* Count a receiver, or count one less. The last one that is removed releases the senders that wait for that. */
void bz_listeners_add(struct bz_listeners *c);
void bz_listeners_remove(struct bz_listeners *c);
size_t bz_listeners_count(struct bz_listeners *c);

/* Wait until no counted receiver is left, or the object is closed: 0, -ETIMEDOUT, -ECANCELED. */
BZ_MUST_USE int bz_listeners_wait_closed(struct bz_listeners *c, blitz_deadline until);
void bz_listeners_wait_closed_future_init(blitz_closed_future *f, struct bz_listeners *c);

/* The functions of a receive's request, for both primitives. */
void bz_listeners_lock(struct bz_request *r);
void bz_listeners_unlock(struct bz_request *r, struct bz_wakelist *wakes);
bool bz_listeners_enter(struct bz_request *r, struct bz_wakelist *wakes);
bool bz_listeners_leave(struct bz_request *r, struct bz_wakelist *wakes);
void bz_listeners_resumed(struct bz_request *r, bool is_early);
#define BZ_LISTENERS_REQUEST(what_)                                                 \
    {                                                                               \
        .what = (what_), .lock = bz_listeners_lock, .unlock = bz_listeners_unlock,  \
        .enter = bz_listeners_enter, .leave = bz_listeners_leave, .is_tried = true, \
        .resumed = bz_listeners_resumed                                             \
    }

/* Receive without waiting: 0, -EAGAIN (nothing new), -EPIPE (nothing new, and closed). */
int bz_listeners_try(struct bz_receive *r);
/* Receive, and wait if there is nothing new. Returns: 0, -EPIPE, -ETIMEDOUT, -ECANCELED. */
int bz_listeners_wait(struct bz_receive *r, blitz_deadline until);

/* Poll and cancel a receive as a future. *result is -EINPROGRESS as long as the future is neither ready nor
 * cancelled. */
blitz_poll bz_listeners_poll(struct bz_receive *r, int *result, const blitz_waker *waker);
void bz_listeners_cancel(struct bz_receive *r, int *result);

#endif
