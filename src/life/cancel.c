/*
 * cancel.c - cancel a task wherever it waits.
 *
 * A cancel is a mark, a barrier and a delivery (drawn in wait.h). The delivery depends on the kind of wait:
 *
 *   none that we know     the task is woken. It runs, or it is parked behind a waker and polls again; or
 *                         it joins a forked job: the wake does not resume it, and it finds the wake later
 *   a node                CANCEL of arbiter.c
 *   a child               the cancel is passed on to the child, whose end ends the wait. The parent
 *                         is not woken: it could only wait again. A loop walks the chain of joins,
 *                         with a reference to the current link
 *   either, shielded      nothing: the first wait outside of the shield finds the mark
 *
 * A task that neither runs nor waits, an idle actor, has no worker that could see the mark. Its ops->cancel brings it to
 * one.
 *
 * Rejected:
 *  - waking the parent and letting it cancel its child itself: that is a switch to it and back. And for a
 *    claimed child there is no parked parent to wake: its parent is the frame below;
 *  - walking the chain under the locks of all its links: tasks that join each other would deadlock two cancellers.
 *
 * park.c has the invariants, and wait.h the pairs [C], [L] and [W].
 */
#include "life/handle.h"
#include "proc/place.h"
#include "wait/wait.h"

void bz_wait_cancel_child(struct bz_task *me, struct bz_task *child)
{
    if (bz_word_is_cancelled(&me->word))
        bz_task_cancel(child);
}

void bz_wait_outlast_cancellers(struct bz_task *me)
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
    if (bz_is_plain(rt))
        bz_fence_seqcst(); /* wait.h [C] [L] */
    else
        bz_barrier_pay(&rt->barrier); /* wait.h [C] [L] */
}

/* End the wait of t, or return the child to pass the cancel on to, with a reference, or NULL. We
 * hold the lock of t, so the target of its wait is alive. */
static struct bz_task *end_or_cancel_child(struct bz_task *t, uintptr_t wait)
{
    void *in = (void *)(wait & ~(uintptr_t)BZ_WAIT_TAG_MASK); /* NOLINT: a tagged pointer */
    if (wait == 0 || !bz_word_is_cancelled(&t->word))
        return NULL;
    if ((wait & BZ_WAIT_TAG_MASK) == BZ_WAIT_CHILD) {
        bz_task_ref(in);
        return in;
    }
    if (bz_wait_cancel(in))
        bz_task_resume(t); /* the canceller has a reference */
    return NULL;
}

/* Return task->wait for a canceller: 0 for jobs and futures, which are recorded for dumps alone. */
static uintptr_t wait_of(struct bz_task *t)
{
    uintptr_t wait = bz_load_acquire(&t->wait); /* wait.h [W] [C] [L] */
    uintptr_t tag = wait & BZ_WAIT_TAG_MASK;
    return tag == BZ_WAIT_JOB || tag == BZ_WAIT_FUTURE ? 0 : wait;
}

/* Deliver to one task. Returns the child to pass the cancel on to, with a reference, or NULL. */
static struct bz_task *deliver(struct bz_task *t)
{
    const struct bz_os *os = t->rt->os;
    bz_jobs_cancel(t);
    bz_lock_take(&t->lock, os); /* park.c I2 */
    uintptr_t wait = wait_of(t);
    struct bz_task *child = end_or_cancel_child(t, wait);
    bz_lock_drop(&t->lock, os);
    if (wait == 0)
        bz_task_wake(t);
    if (BZ_UNLIKELY(t->ops->cancel != NULL))
        t->ops->cancel(t);
    return child;
}

/* Pass the cancel down a chain of joins, beginning with a child to which we hold a reference. */
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
