/*
 * wait.c - cancelling a task that waits, wherever it waits.
 *
 * The protocol is drawn in wait.h. A cancel is a mark, a barrier and a delivery; what the delivery
 * does depends on what the task waits in:
 *
 *   nothing we know of    it is woken: it runs, or it is parked behind a waker and asks again
 *   a child               the cancel is passed on to the child, whose end ends the wait. The parent
 *                         is not woken: it could only wait again. The chain of joins is walked in a
 *                         loop, with a reference to the link it has come to
 *   either, shielded      nothing: the first wait outside of the shield finds the mark
 *
 * Rejected: waking the parent and letting it cancel its child itself (a switch to it and back, and
 * for a claimed child there is nobody to wake: its parent is the frame below); walking the chain
 * under the locks of all its links (tasks that join each other would deadlock two cancellers).
 *
 * I1  task->wait is written by the task alone, while it runs or by the hook that publishes it.
 * I2  What task->wait points to outlives the wait, and the wait is left after every canceller that
 *     could have seen it: [L].
 *
 * [W] enter: wait release -> deliver: wait acquire   what is waited in was filled in before
 * [C] enter: wait, order, flag -> cancel: flag, barrier, wait   one of the two sees the other
 * [L] leave: wait, order, flag -> cancel: flag, barrier, wait   one of the two sees the other
 */
#include "sched/wait.h"

void bz_wait_pass_on(struct bz_task *me, struct bz_task *child)
{
    if (bz_word_is_cancelled(&me->word))
        bz_task_cancel(child);
}

void bz_wait_settle(struct bz_task *me)
{
    bz_lock_take(&me->lock, me->rt->os);
    bz_lock_drop(&me->lock, me->rt->os);
}

bool bz_task_cancel_mark(struct bz_task *t)
{
    return bz_word_cancel(&t->word);
}

void bz_task_cancel_barrier(struct bz_runtime *rt)
{
    if (bz_is_plain(rt)) {
        bz_fence_seqcst(); /* [C] [L] */
        return;
    }
    int err = bz_os_barrier(rt->os); /* [C] [L] */
    BZ_CHECK(err == 0, "runtime %p: a barrier failed (error %d)", (void *)rt, -err);
}

/* Deliver to one task. Returns the child to pass the cancel on to, with a reference, or NULL. */
static struct bz_task *deliver(struct bz_task *t)
{
    bz_jobs_cancel(t);
    struct bz_task *child = NULL;
    bz_lock_take(&t->lock, t->rt->os);          /* I2 */
    uintptr_t wait = bz_load_acquire(&t->wait); /* [W] [C] */
    if ((wait & BZ_WAIT_TAG_MASK) == BZ_WAIT_CHILD && bz_word_is_cancelled(&t->word)) {
        child = (struct bz_task *)(wait & ~(uintptr_t)BZ_WAIT_TAG_MASK);
        bz_task_ref(child);
    }
    bz_lock_drop(&t->lock, t->rt->os);
    if (wait == 0)
        bz_task_wake(t);
    return child;
}

/* Pass the cancel down a chain of joins, beginning with a child we have a reference to. */
static void pass_down(struct bz_task *child)
{
    while (child != NULL) {
        struct bz_task *next = NULL;
        if (bz_task_cancel_mark(child)) {
            bz_task_cancel_barrier(child->rt);
            next = deliver(child);
        }
        bz_task_unref(child);
        child = next;
    }
}

void bz_task_cancel_deliver(struct bz_task *t)
{
    pass_down(deliver(t));
}

void bz_task_cancel(struct bz_task *t)
{
    if (!bz_task_cancel_mark(t))
        return;
    bz_task_cancel_barrier(t->rt);
    bz_task_cancel_deliver(t);
}
