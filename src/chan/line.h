/*
 * line.h - those who wait at a channel: a node each, first come first served.
 *
 * Two kinds stand in one line. A *stack* (a fiber, or a plain thread) waits in a struct bz_wait: what
 * it waits for is done for it, by whoever wins its arbiter, under the channel's lock. A *future* has
 * no frame that stands still: its waker is woken, it is off the line, and it asks again in its next
 * poll. It is *notified* until then; a cancel of one that is notified passes the notification on.
 *
 * Wakers are anybody's code, and queueing a task may rouse a thread. Neither happens under a lock:
 * what is owed to those who were taken off the line is written down and paid when the lock has been
 * dropped.
 *
 *     struct bz_owed owed;
 *     bz_owed_init(&owed);
 *     lock
 *     ... bz_waiter_win(w, 0, &owed) ... bz_waiter_notify(w, &owed) ...
 *     unlock
 *     bz_owed_pay(&owed);
 *
 * I1  A node is linked only while it waits; `in`, `waker`, `is_notified` and `result` are guarded by
 *     the lock of what it waits at.
 * I2  A stack's node outlives its being taken off until its wait is resumed, and no longer: the
 *     waker's last touch is bz_owed_pay, which goes by the task. A plain thread, or a task of the plain
 *     form, may go on as soon as its wait is claimed. So bz_waiter_win() stores the result before the
 *     claim. A waker that does more for the waiter after the claim does it under the lock, and such a
 *     waiter takes the lock once before it goes on (bz_wait_is_early).
 * I3  At most BZ_OWED_MAX are owed at a time; whoever goes through a line asks bz_owed_is_full.
 */
#ifndef BZ_CHAN_LINE_H
#define BZ_CHAN_LINE_H

#include <errno.h>
#include <string.h>

#include "base/list.h"
#include "sched/ask.h"
#include "sched/wait.h"

struct bz_waiter {
    struct bz_list in;     /* I1 */
    struct bz_wait *wait;  /* constant: a stack's; NULL: a future */
    uint32_t outcome;      /* constant: what its wait is won with; a select tells its cases by it */
    bz_shared(int) result; /* I1: what came of it, once a stack's wait is won */
    bool is_notified;      /* I1: a future's: off the line, and has not asked since */
    blitz_waker waker;     /* I1: a future's, while it is linked */
};

static inline void bz_waiter_init(struct bz_waiter *w, struct bz_wait *wait, uint32_t outcome)
{
    bz_list_init(&w->in);
    w->wait = wait;
    w->outcome = outcome;
    bz_set(&w->result, 0);
    w->is_notified = false;
    w->waker = (blitz_waker){NULL, NULL};
}

static inline struct bz_waiter *bz_waiter_of(struct bz_list *in)
{
    return in != NULL ? BZ_CONTAINER_OF(in, struct bz_waiter, in) : NULL;
}

/* The first of a line, or NULL. It stays where it is. */
static inline struct bz_waiter *bz_line_first(const struct bz_list *line)
{
    return bz_waiter_of(bz_list_first(line));
}

/* ---- what is owed ---- */

enum { BZ_OWED_MAX = 16 };

struct bz_owed {
    unsigned count;
    bool has_more; /* there was more to do than can be owed at a time */
    struct bz_owed_one {
        bool is_waker;
        union {
            struct bz_won won;
            blitz_waker waker;
        };
    } one[BZ_OWED_MAX];
};

static BZ_ALWAYS_INLINE void bz_owed_init(struct bz_owed *owed)
{
    owed->count = 0;
    owed->has_more = false;
}

static inline bool bz_owed_is_full(const struct bz_owed *owed)
{
    return owed->count == BZ_OWED_MAX;
}

/* Resume and wake all of them. No lock is held. */
void bz_owed_pay_slow(struct bz_owed *owed);

static BZ_ALWAYS_INLINE void bz_owed_pay(struct bz_owed *owed)
{
    if (owed->count != 0)
        bz_owed_pay_slow(owed);
}

/* Take a stack off its line and win its wait. False: it had another outcome, and is off the line. */
BZ_MUST_USE static inline bool bz_waiter_win(struct bz_waiter *w, int result, struct bz_owed *owed)
{
    struct bz_owed_one *one = &owed->one[owed->count];
    BZ_ASSERT(!bz_owed_is_full(owed)); /* I3 */
    bz_list_remove(&w->in);
    if (!BZ_BROKEN(204))
        bz_set(&w->result, result); /* before the claim: I2 */
    if (!bz_wait_win(w->wait, w->outcome, &one->won))
        return false;
    one->is_waker = false;
    if (BZ_BROKEN(204))
        bz_set(&w->result, result);
    owed->count++;
    return true;
}

/* Take a future off its line and owe its waker a wake. */
static inline void bz_waiter_notify(struct bz_waiter *w, struct bz_owed *owed)
{
    struct bz_owed_one *one = &owed->one[owed->count];
    BZ_ASSERT(!bz_owed_is_full(owed)); /* I3 */
    bz_list_remove(&w->in);
    w->is_notified = true;
    one->is_waker = true;
    one->waker = w->waker;
    w->waker = (blitz_waker){NULL, NULL};
    owed->count++;
}

/* Everybody in a line that only says "look again": taken off, as many as can be owed. */
static inline void bz_line_tell(struct bz_list *line, int result, struct bz_owed *owed)
{
    for (struct bz_waiter *w; !bz_owed_is_full(owed) && (w = bz_line_first(line)) != NULL;) {
        if (w->wait == NULL)
            bz_waiter_notify(w, owed);
        else
            (void)!bz_waiter_win(w, result, owed);
    }
}

/* A value of a size that is known only at run time, but is mostly one of these. */
static BZ_ALWAYS_INLINE void bz_value_copy(void *to, const void *from, size_t size)
{
    if (BZ_LIKELY(size == 8))
        memcpy(to, from, 8);
    else if (size == 4)
        memcpy(to, from, 4);
    else
        memcpy(to, from, size);
}

#endif
