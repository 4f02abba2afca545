/*
 * crowd.h - many who each look at the same thing, and wait until it has changed.
 *
 * What a broadcast and a watch have in common. The thing has a number that goes up with every change,
 * each who looks has the number it has seen, and there is something to see if the two differ. Nobody
 * takes anything away from anybody, so there is no turn to be kept: a change serves all who wait.
 */
#ifndef BZ_CHAN_CROWD_H
#define BZ_CHAN_CROWD_H

#include <errno.h>

#include "chan/copy.h"
#include "sched/ask.h"
#include "sched/request.h"

struct bz_receive;

/* The first member of what is looked at. */
struct bz_crowd {
    struct bz_lock lock; /* rank WAIT; guards the next three, and what is looked at */
    bool is_closed;
    uint64_t number;          /* of changes */
    struct bz_list receivers; /* those who wait */
    bz_atomic(uint32_t) refs;
    const struct bz_os *os; /* constant, as are the next ones */
    const char *what;       /* for dumps */
    /* Under the lock, when there is something new: copy it, and go on to *r->at. */
    void (*copy)(struct bz_receive *r);
};

/* One look, and the wait for it. */
struct bz_receive {
    struct bz_request request; /* its ops: BZ_CROWD_REQUEST */
    struct bz_crowd *of;
    uint64_t *at; /* the caller's: the number it is at */
    void *value;
    uint64_t missed; /* a broadcast's: how many were overwritten before it came */
};

void bz_crowd_init(struct bz_crowd *c, const char *what, void (*copy)(struct bz_receive *r));
void bz_crowd_ref(struct bz_crowd *c);
/* True: that was the last holder, free it. Aborts if somebody waits. */
BZ_MUST_USE bool bz_crowd_unref(struct bz_crowd *c);

/* Lock it to change it; false: it is closed, and not locked. The change is made between begin and end. */
BZ_MUST_USE bool bz_crowd_begin(struct bz_crowd *c);
void bz_crowd_end(struct bz_crowd *c);
void bz_crowd_close(struct bz_crowd *c);

/* The request of a receive, for both primitives. */
void bz_crowd_lock(struct bz_request *r);
void bz_crowd_unlock(struct bz_request *r, struct bz_wakelist *wakes);
bool bz_crowd_enter(struct bz_request *r, struct bz_wakelist *wakes);
bool bz_crowd_leave(struct bz_request *r, struct bz_wakelist *wakes);
bool bz_crowd_is_far(const struct bz_request *r);
void bz_crowd_resumed(struct bz_request *r, bool is_early);
#define BZ_CROWD_REQUEST(what_)                                                      \
    {                                                                                \
        .what = (what_), .lock = bz_crowd_lock, .unlock = bz_crowd_unlock,           \
        .enter = bz_crowd_enter, .leave = bz_crowd_leave, .is_far = bz_crowd_is_far, \
        .resumed = bz_crowd_resumed                                                  \
    }

/* Look, without waiting: 0, -EAGAIN (nothing new), -EPIPE (nor will there be). */
int bz_crowd_try(struct bz_receive *r);
/* Look, and wait if there is nothing new. Returns: 0, -EPIPE, -ETIMEDOUT, -ECANCELED. */
int bz_crowd_wait(struct bz_receive *r, blitz_deadline until);

/* The same as a future's poll and cancel; *result is -EINPROGRESS as long as it is neither ready nor
 * cancelled. */
blitz_poll bz_crowd_poll(struct bz_receive *r, int *result, const blitz_waker *waker);
void bz_crowd_cancel(struct bz_receive *r, int *result);

#endif
