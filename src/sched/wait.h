/*
 * wait.h - what a task waits in, and how a cancel finds it there.
 *
 * A task that waits says in what: `task->wait`. A canceller looks there, and so does whoever dumps
 * tasks. Only the task itself writes it.
 *
 *   0            it does not wait, or waits behind a cloned waker (await.c): a cancel wakes it
 *   child | 1    it joins a child without a deadline, claimed or not: the cancel is the child's
 *
 * Waiting is frequent and cancelling is rare, so the waiter pays two plain stores and the canceller
 * a barrier on every thread:
 *
 *      waiter                                  canceller
 *      1  wait = what                          1  the flag in the word (cancel_mark)
 *         (compiler barrier)                   2  barrier on every thread
 *      2  the flag is set? act on it itself    3  under task->lock: look at wait (cancel_deliver)
 *      ...
 *      3  wait = 0
 *         (compiler barrier)
 *      4  the flag is set? take and drop task->lock
 *
 * The store-buffer pattern, twice. On the way in either the waiter sees the flag or the canceller
 * sees what it waits in. On the way out either the waiter sees the flag, and waits until no
 * canceller is looking any more, or the canceller sees that the wait is over. So what `wait` points
 * to, a frame or a child, is alive while a canceller looks at it.
 *
 * In the plain form both sides fence.
 */
#ifndef BZ_WAIT_H
#define BZ_WAIT_H

#include "sched/sched.h"

/* The tag of task->wait; a node has none. */
enum { BZ_WAIT_CHILD = 1, BZ_WAIT_TAG_MASK = 3 };

/* The light half of the pattern: what was stored before comes before what is loaded after. */
static BZ_ALWAYS_INLINE void bz_wait_order(const struct bz_runtime *rt)
{
    if (bz_is_plain(rt))
        bz_fence_seqcst(); /* wait.c [C] [L] */
    else
        bz_compiler_barrier(); /* wait.c [C] [L] */
}

/* The slow halves of what follows. */
void bz_wait_pass_on(struct bz_task *me, struct bz_task *child);
void bz_wait_settle(struct bz_task *me);

/*
 * The calling task waits for the end of a child from here on, and by no other way out: a cancel of
 * `me` goes to the child, at once if it came before. Between enter and leave `me` either runs the
 * child on its own stack or is parked; it holds a reference to the child throughout.
 */
static BZ_ALWAYS_INLINE void bz_wait_enter_child(struct bz_task *me, struct bz_task *child)
{
    bz_store_release(&me->wait, (uintptr_t)child | BZ_WAIT_CHILD); /* wait.c [W] */
    bz_wait_order(me->rt);
    /* relaxed: wait.c [C]; who acts on it looks again */
    if (BZ_UNLIKELY(bz_load_relaxed(&me->word) & BZ_WORD_CANCELLED))
        bz_wait_pass_on(me, child);
}

/* The wait is over. On return no canceller looks at what it was for. */
static BZ_ALWAYS_INLINE void bz_wait_leave(struct bz_task *me)
{
    bz_store_relaxed(&me->wait, 0); /* relaxed: wait.c [L] */
    bz_wait_order(me->rt);
    if (BZ_UNLIKELY(bz_load_relaxed(&me->word) & BZ_WORD_CANCELLED)) /* relaxed: wait.c [L] */
        bz_wait_settle(me);
}

static BZ_ALWAYS_INLINE void bz_wait_leave_child(struct bz_task *me, struct bz_task *child)
{
    /* relaxed: our own field */
    BZ_ASSERT(bz_load_relaxed(&me->wait) == ((uintptr_t)child | BZ_WAIT_CHILD));
    (void)child;
    bz_wait_leave(me);
}

/* ---- cancelling: any thread with a reference ---- */

/*
 * bz_task_cancel (sched.h) in halves, for whoever cancels many: mark each, one barrier, deliver
 * each of which mark said true.
 */
BZ_MUST_USE bool bz_task_cancel_mark(struct bz_task *t);
void bz_task_cancel_barrier(struct bz_runtime *rt);
void bz_task_cancel_deliver(struct bz_task *t);

#endif
