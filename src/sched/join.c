/*
 * join.c - waking a task, cancelling it, ending it, and waiting for its end.
 *
 * A child that has not started is run by its joiner: claim.c. Else joining is a future like
 * any other. A joiner links itself under the task's lock and says in its word that somebody waits;
 * whoever completes the task finds that there, and takes the list under the same lock. So the joiner
 * either sees the end or is seen. Nobody waits: the end is one step of the word.
 *
 * A cancel of a task that joins without a deadline is passed on to the child: the parent cannot go
 * away while the child works on its behalf, so it asks the child to hurry.
 */
#include <errno.h>

#include "sched/sched.h"

/* ---- waking and ending ---- */

void bz_task_wake(struct bz_task *t)
{
    if (bz_word_step(&t->word, BZ_WAKE) == BZ_OWES_ENQUEUE)
        bz_place(t->rt, bz_entry_resumed(t));
}

/* Take the waker of the next joiner; false if there is none left. */
static bool next_joiner(struct bz_task *t, blitz_waker *out)
{
    bz_lock_take(&t->lock, t->rt->os);
    struct bz_list *l = bz_list_take_front(&t->joiners);
    if (l != NULL) {
        struct bz_join *j = BZ_CONTAINER_OF(l, struct bz_join, in);
        *out = j->waker; /* the joiner may be gone as soon as the lock is dropped */
        j->waker = (blitz_waker){NULL, NULL};
    }
    bz_lock_drop(&t->lock, t->rt->os);
    return l != NULL;
}

/* It has returned; the caller gives up `refs` references with it: one step if nobody waits. */
static void complete(struct bz_task *t, unsigned refs)
{
    struct bz_runtime *rt = t->rt;
    switch (bz_word_exit(&t->word, refs)) {
    case BZ_EXIT_TELL:
        for (blitz_waker w; next_joiner(t, &w);)
            blitz_waker_wake(&w);
        if (bz_word_drop(&t->word, refs))
            t->ops->drop(t);
        break;
    case BZ_EXIT_LAST:
        t->ops->drop(t);
        break;
    case BZ_EXIT_DONE:
        break;
    }
    bz_task_strike(rt); /* after that the runtime may end */
}

void bz_task_finish(struct bz_task *t)
{
    complete(t, 1); /* the scheduler's */
}

/* ---- joining ---- */

void bz_join_init(struct bz_join *j, const blitz_future_ops *ops, struct bz_task *t)
{
    j->f.ops = ops;
    j->task = t;
    bz_list_init(&j->in);
    j->waker = (blitz_waker){NULL, NULL};
}

blitz_poll bz_join_poll(blitz_future *future, const blitz_waker *waker)
{
    struct bz_join *j = BZ_CONTAINER_OF(future, struct bz_join, f);
    struct bz_task *t = j->task;
    if (bz_word_is_complete(&t->word))
        return BLITZ_READY;
    blitz_waker spare = blitz_waker_clone(waker); /* not under the lock: it is anybody's code */
    bz_lock_take(&t->lock, t->rt->os);
    bool is_over = !bz_word_want_join(&t->word);
    if (!is_over) {
        blitz_waker old = j->waker;
        j->waker = spare;
        spare = old;
        if (!bz_list_is_linked(&j->in))
            bz_list_push_back(&t->joiners, &j->in);
    }
    bz_lock_drop(&t->lock, t->rt->os);
    blitz_waker_drop(&spare);
    return is_over ? BLITZ_READY : BLITZ_PENDING;
}

/* Unlink, and wait out a finisher that has the lock; afterwards nobody knows of us. */
void bz_join_cancel(blitz_future *future)
{
    struct bz_join *j = BZ_CONTAINER_OF(future, struct bz_join, f);
    struct bz_task *t = j->task;
    bz_lock_take(&t->lock, t->rt->os);
    bz_list_remove(&j->in);
    blitz_waker old = j->waker;
    j->waker = (blitz_waker){NULL, NULL};
    bz_lock_drop(&t->lock, t->rt->os);
    blitz_waker_drop(&old);
}

static int join_await(struct bz_task *t, blitz_deadline until)
{
    static const blitz_future_ops ops = {"join", BLITZ_REVOCABLE, bz_join_poll, bz_join_cancel};
    struct bz_join j;
    bz_join_init(&j, &ops, t);
    int err = bz_await(t->rt->os, &j.f, until);
    bz_join_cancel(&j.f); /* ready: the finisher may still hold our node */
    return err;
}

/* Wait for the end, whatever it takes; a cancel is passed on. */
static int join_wait(struct bz_task *me, struct bz_task *t, blitz_deadline until)
{
    if (bz_word_is_complete(&t->word))
        return 0;
    int err = join_await(t, until);
    if (err == -ECANCELED && until == BLITZ_FOREVER) {
        bz_task_cancel(t);
        bz_word_shield(&me->word);
        err = join_await(t, until);
        bz_word_unshield(&me->word);
    }
    return err;
}

/* Join, and take the result in either form before the handle goes. */
static int join(struct bz_task *t, blitz_deadline until, int *result, void **pointer)
{
    struct bz_task *me = bz_task_self();
    enum bz_ran ran = BZ_RAN_PENDING;
    if (t == NULL)
        return -EINVAL;
    if (t == me)
        return -EDEADLK;
    if (until == BLITZ_FOREVER && bz_claim(t, &ran) && ran != BZ_RAN_DONE)
        bz_task_set_aside(t, ran); /* it stopped half-way, without a stack */
    int err = ran == BZ_RAN_DONE ? 0 : join_wait(me, t, until);
    if (err != 0)
        return err;
    if (result != NULL)
        *result = bz_task_result(t);
    if (pointer != NULL)
        *pointer = bz_task_take_pointer(t);
    if (ran == BZ_RAN_DONE)
        complete(t, 2); /* the scheduler's and the handle's */
    else
        bz_task_unref(t);
    return 0;
}

int blitz_task_join(blitz_task *t, blitz_deadline until, int *result)
{
    return join((struct bz_task *)t, until, result, NULL);
}

int blitz_task_join_ptr(blitz_task *t, blitz_deadline until, void **out)
{
    return join((struct bz_task *)t, until, NULL, out);
}
