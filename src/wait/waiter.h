/*
 * waiter.h - the node of one waiting party, for every kind of party and primitive.
 *
 * A waiter stands in the queue of one primitive: a channel, a lock, a file, a task that is joined. It
 * serves two kinds of party:
 *
 *   blocking   a fiber or a plain thread that waits in a frame (struct bz_wait). A claim ends its wait:
 *              what it waited for is then done for it, by the claimer, under the primitive's lock.
 *   polled     a future. It has no frame that stands still, so it is only notified: its waker is woken,
 *              and its next poll tries again.
 *
 * A select has one waiter for each case. All of them share one wait, and the outcome tells the cases
 * apart; only one of them can be claimed.
 *
 *                   queue      claim                     leave (deadline, cancel)
 *   out             queued     -                         -
 *   queued          -          granted, or notified      out
 *   granted         -          -                         (polled) out: the primitive takes it back
 *   notified        queued     -                         (polled) out: the next waiter is notified
 *
 * I1  All fields are guarded by the lock of what the waiter waits for, but for those said to be constant.
 *     A waiter is linked if and only if its state is BZ_WAITER_QUEUED.
 * I2  A blocking waiter that was claimed lives until it is resumed and no longer. A plain thread, and a
 *     task of the plain form, may continue as soon as the claim is made. So the claim stores the result
 *     first. A claimer that does more for the waiter after the claim does it under the lock, and such a
 *     waiter takes the lock once before it continues (wait/wait.h, bz_wait_is_early).
 */
#ifndef BZ_WAIT_WAITER_H
#define BZ_WAIT_WAITER_H

#include "base/list.h"
#include "wait/wake.h"

struct bz_wait;

/* The beginning of a struct bz_wait (wait/wait.h): the function that claims it. So src/io, which is below the
 * scheduler, claims a waiter without a call upward. */
struct bz_wait_head {
    bool (*claim)(struct bz_wait *wait, uint32_t outcome, struct bz_wake *wake);
};

enum bz_waiter_state {
    BZ_WAITER_OUT,     /* in no queue */
    BZ_WAITER_QUEUED,  /* in the queue */
    BZ_WAITER_GRANTED, /* out of it, and has what it waited for */
    BZ_WAITER_NOTIFIED /* out of it, and is to try again */
};

struct bz_waiter {
    struct bz_list in; /* the queue */
    union {
        struct bz_wait *wait; /* blocking; constant */
        blitz_waker waker;    /* polled; set while it is queued */
    };
    uint32_t
        /* the outcome that a claim sets; host.c may change it. A select numbers its cases */
        outcome;
    bz_shared(int) result; /* the result; valid once the waiter was claimed */
    uint8_t state;         /* enum bz_waiter_state */
    bool is_polled;        /* constant */
    bool is_parked;  /* blocking: its wait is published. Of waiters that queue before they park */
    bool was_polled; /* a future that was polled at least once; its owner's alone */
};

/* An operation that may have to wait, and its waiter: park/request.h. */
struct bz_request_ops;
struct bz_request {
    struct bz_waiter waiter;
    const struct bz_request_ops *ops; /* constant */
};

/* A blocking waiter. `outcome` is at least BZ_WAIT_WOKEN. */
static inline void bz_waiter_init(struct bz_waiter *w, struct bz_wait *wait, uint32_t outcome)
{
    bz_list_init(&w->in);
    w->wait = wait;
    w->outcome = outcome;
    bz_set(&w->result, 0);
    w->state = BZ_WAITER_OUT;
    w->is_polled = false;
    w->is_parked = false;
    w->was_polled = false;
}

/* The waiter of a future. */
static inline void bz_waiter_init_polled(struct bz_waiter *w)
{
    bz_waiter_init(w, NULL, 0);
    w->waker = (blitz_waker){NULL, NULL};
    w->is_polled = true;
}

/* The first waiter of a queue, or NULL. It stays there. */
static inline struct bz_waiter *bz_waiter_first(const struct bz_list *queue)
{
    struct bz_list *first = bz_list_first(queue);
    return first != NULL ? BZ_CONTAINER_OF(first, struct bz_waiter, in) : NULL;
}

static inline struct bz_waiter *bz_waiter_of(struct bz_list *in)
{
    return BZ_CONTAINER_OF(in, struct bz_waiter, in);
}

/* Stand in a queue, last. Under the lock, as all of the following. */
static inline void bz_waiter_queue(struct bz_waiter *w, struct bz_list *queue)
{
    bz_list_push_back(queue, &w->in);
    w->state = BZ_WAITER_QUEUED;
}

/* Stand in a queue, first: it was notified and another party was faster. */
static inline void bz_waiter_queue_first(struct bz_waiter *w, struct bz_list *queue)
{
    bz_list_push_front(queue, &w->in);
    w->state = BZ_WAITER_QUEUED;
}

/* Leave the queue, if it still stands there. */
static inline void bz_waiter_leave(struct bz_waiter *w)
{
    bz_list_remove(&w->in);
    w->state = BZ_WAITER_OUT;
}

/* A polled waiter gets another waker. Returns the one before, to be dropped without the lock. */
static inline blitz_waker bz_waiter_set_waker(struct bz_waiter *w, blitz_waker waker)
{
    blitz_waker old = w->waker;
    w->waker = waker;
    return old;
}

static inline blitz_waker bz_waiter_take_waker(struct bz_waiter *w)
{
    return bz_waiter_set_waker(w, (blitz_waker){NULL, NULL});
}

/* A polled waiter leaves the queue and is to try again. */
static inline void bz_waiter_notify(struct bz_waiter *w, struct bz_wake *wake)
{
    bz_list_remove(&w->in);
    w->state = BZ_WAITER_NOTIFIED;
    bz_wake_set_waker(wake, &w->waker);
}

/* The same; the wake-up is added to a list. */
static inline void bz_wakelist_notify(struct bz_wakelist *list, struct bz_waiter *w)
{
    bz_waiter_notify(w, bz_wakelist_next(list));
    bz_wakelist_add(list);
}

/* A function that claims a wait: wait/wait.h, bz_wait_claim. */
typedef bool bz_wait_claimer(struct bz_wait *wait, uint32_t outcome, struct bz_wake *wake);

/* Take a blocking waiter off its queue and grant it `result`, with this function to claim its wait. */
BZ_MUST_USE static BZ_ALWAYS_INLINE bool
bz_waiter_grant_by(struct bz_waiter *w, int result, struct bz_wake *wake, bz_wait_claimer *claim)
{
    bz_list_remove(&w->in);
    w->state = BZ_WAITER_GRANTED;
    bz_set(&w->result, result); /* before the claim: I2 */
    if (!claim(w->wait, w->outcome, wake)) {
        w->state = BZ_WAITER_OUT; /* it takes the lock before it goes: wait/wait.h, rule 2 */
        return false;
    }
    return true;
}

/*
 * Take a waiter off its queue. A blocking one is granted `result`, a polled one is notified.
 * Returns: true: *wake must be delivered once the lock is dropped. False: the wait had another outcome
 *          (a deadline, a cancel, another case of a select); nothing was granted, it is off the queue, and
 *          *wake is BZ_WAKE_NONE.
 * wait/wait.h has a faster form for blocking waiters (bz_waiter_grant).
 */
BZ_MUST_USE static inline bool bz_waiter_claim(struct bz_waiter *w, int result,
                                               struct bz_wake *wake)
{
    if (!w->is_polled)
        return bz_waiter_grant_by(w, result, wake, ((struct bz_wait_head *)w->wait)->claim);
    bz_waiter_notify(w, wake);
    return true;
}

/* The same, with a function to claim a blocking waiter. NULL: the one of its wait. */
BZ_MUST_USE static BZ_ALWAYS_INLINE bool
bz_waiter_claim_by(struct bz_waiter *w, int result, struct bz_wake *wake, bz_wait_claimer *claim)
{
    if (claim == NULL || BZ_UNLIKELY(w->is_polled))
        return bz_waiter_claim(w, result, wake);
    return bz_waiter_grant_by(w, result, wake, claim);
}

#endif
