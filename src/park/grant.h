/*
 * grant.h - give a fiber of this runtime what it waits for, and queue it: the fast path of a claim and its delivery.
 *
 * bz_waiter_grant() and bz_wake_deliver() serve every kind of waiter, so they check twice what kind it is. Mostly the
 * waiter is a fiber of the waker's own runtime, and nothing unusual holds (base/unusual.h). Then the waker enters the
 * runtime once, for both steps, and checks all that before it does anything:
 *
 *     lock of the primitive
 *     t = bz_grant_begin(m, w)        NULL: nothing was done, take the slow path
 *     ... copy what the fiber waits for: its frame stands still until it is queued ...
 *     unlock
 *     bz_grant_end(m, t)
 *
 * The claim is the same CAS of the arbiter: wait/arbiter.c has its order. Neither function makes a call, except for a call at the
 * end of bz_grant_end(). So a function that ends with it saves no registers.
 *
 * Not for the plain form, whose waits have no runtime that is near.
 *
 * I1  Between begin and end the machine is in the runtime, so no other thread takes the fiber out of the `next` slot.
 *     The lock is dropped before the slot is filled, so the fiber never runs under the waker's lock.
 */
#ifndef BZ_PARK_GRANT_H
#define BZ_PARK_GRANT_H

#include "proc/place.h"
#include "wait/wait.h"

/* Enter the runtime, if a fast path may queue a task there. False: nothing was done. */
BZ_MUST_USE static BZ_ALWAYS_INLINE bool bz_grant_enter(struct bz_machine *m, struct bz_runtime *rt)
{
#if !defined(BZ_MODEL) /* it has a toy scheduler, behind bz_place */
    if (BZ_UNLIKELY(!bz_retake_is_away(&m->taken)))
        return false;
    bool is_in = bz_retake_enter_usual(&m->taken);
    if (BZ_UNLIKELY(!is_in || m->proc == NULL || bz_monitor_is_down(rt))) {
        bz_leave_on(m, BZ_IN_USER);
        return false;
    }
#else
    (void)m;
    (void)rt;
#endif
    return true;
}

static BZ_ALWAYS_INLINE void bz_grant_leave(struct bz_machine *m)
{
#if !defined(BZ_MODEL)
    bz_leave_on(m, BZ_IN_USER);
#else
    (void)m;
#endif
}

/*
 * Claim the wait of w, which is the first in its queue, take it off the queue, and grant it the result 0. Under the
 * primitive's lock, by the current machine (NULL: a plain thread).
 * Returns: the task; then call bz_grant_end(). NULL: nothing was done.
 */
BZ_MUST_USE static BZ_ALWAYS_INLINE struct bz_task *bz_grant_begin(struct bz_machine *m,
                                                                   struct bz_waiter *w)
{
    struct bz_wait *wait = w->wait;
    struct bz_runtime *rt;
    if (BZ_UNLIKELY(w->is_polled) || BZ_UNLIKELY(m == NULL || (rt = m->rt) != wait->near_rt) ||
        !bz_grant_enter(m, rt))
        return NULL;
    struct bz_task *t = wait->task;
    BZ_ASSUME(t != NULL); /* a thread's wait has no runtime that is near */
    uint32_t seen = BZ_WAIT_OPEN;
    /* relaxed: the queue orders, arbiter.c */
    if (BZ_UNLIKELY(!bz_cas_strong_rlx_rlx(&wait->arbiter, &seen, w->outcome))) {
        bz_grant_leave(m);
        return NULL;
    }
    bz_os_delay(m->rt->os, BZ_OS_AT_CLAIM);
    bz_list_remove(&w->in);
    w->state = BZ_WAITER_GRANTED;
    bz_set(&w->result, 0);
    return t;
}

/* Queue the task, and leave the runtime. The primitive's lock is dropped. Returns 0. */
static BZ_ALWAYS_INLINE int bz_grant_end(struct bz_machine *m, struct bz_task *t)
{
    bz_entry e = bz_entry_resumed(t);
#if !defined(BZ_MODEL)
    bz_os_delay(m->rt->os, BZ_OS_AT_PUBLISH);
    bz_entry old = bz_load_relaxed(&m->proc->next); /* relaxed: ours to touch */
    bz_store_relaxed(&m->proc->next, e);            /* relaxed: likewise */
    if (BZ_UNLIKELY(old != 0))
        return bz_place_evicts(m, old);
    bz_leave_on(m, BZ_IN_USER);
#else
    bz_place(m->rt, e);
#endif
    return 0;
}

#endif
