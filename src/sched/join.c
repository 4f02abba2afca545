/*
 * join.c - waking a task, cancelling it, ending it, and waiting for its end.
 *
 * Joining is a future like any other. Whoever finishes a task first steps its word to complete and
 * then takes the list of joiners under the task's lock; a joiner that links itself looks at the
 * word under the same lock. So it either sees the end or is seen.
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

struct join {
    blitz_future f;
    struct bz_task *task;
    struct bz_list in; /* task->joiners; guarded by task->lock */
    blitz_waker waker; /* likewise */
};

/* Take the waker of the next joiner; false if there is none left. */
static bool next_joiner(struct bz_task *t, blitz_waker *out)
{
    bz_lock_take(&t->lock, t->rt->os);
    struct bz_list *l = bz_list_take_front(&t->joiners);
    if (l != NULL) {
        struct join *j = BZ_CONTAINER_OF(l, struct join, in);
        *out = j->waker; /* the joiner may be gone as soon as the lock is dropped */
        j->waker = (blitz_waker){NULL, NULL};
    }
    bz_lock_drop(&t->lock, t->rt->os);
    return l != NULL;
}

void bz_task_finish(struct bz_task *t)
{
    struct bz_runtime *rt = t->rt;
    enum bz_owes owes = bz_word_step(&t->word, BZ_EXIT);
    BZ_ASSERT(owes == BZ_OWES_FINISH);
    (void)owes;
    for (blitz_waker w; next_joiner(t, &w);)
        blitz_waker_wake(&w);
    bz_runtime_strike(rt, t);
    bz_task_unref(t); /* the scheduler's */
}

/* ---- joining ---- */

static blitz_poll join_poll(blitz_future *future, const blitz_waker *waker)
{
    struct join *j = BZ_CONTAINER_OF(future, struct join, f);
    struct bz_task *t = j->task;
    if (bz_word_is_complete(&t->word))
        return BLITZ_READY;
    blitz_waker old = {NULL, NULL};
    bz_lock_take(&t->lock, t->rt->os);
    bool is_over = bz_word_is_complete(&t->word);
    if (!is_over) {
        old = j->waker;
        j->waker = blitz_waker_clone(waker);
        if (!bz_list_is_linked(&j->in))
            bz_list_push_back(&t->joiners, &j->in);
    }
    bz_lock_drop(&t->lock, t->rt->os);
    blitz_waker_drop(&old);
    return is_over ? BLITZ_READY : BLITZ_PENDING;
}

/* Unlink, and wait out a finisher that has the lock; afterwards nobody knows of us. */
static void join_cancel(blitz_future *future)
{
    struct join *j = BZ_CONTAINER_OF(future, struct join, f);
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
    static const blitz_future_ops ops = {"join", BLITZ_REVOCABLE, join_poll, join_cancel};
    struct join j = {.f = {&ops}, .task = t, .waker = {NULL, NULL}};
    bz_list_init(&j.in);
    int err = bz_await(t->rt->os, &j.f, until);
    join_cancel(&j.f); /* ready: the finisher may still hold our node */
    return err;
}

int blitz_task_join(blitz_task *task, blitz_deadline until, int *result)
{
    struct bz_task *t = (struct bz_task *)task, *me = bz_task_self();
    if (t == me)
        return -EDEADLK;
    int err = join_await(t, until);
    if (err == -ECANCELED && until == BLITZ_FOREVER) {
        bz_task_cancel(t);
        bz_word_shield(&me->word);
        err = join_await(t, until);
        bz_word_unshield(&me->word);
    }
    if (err != 0)
        return err;
    if (result != NULL)
        *result = t->result;
    bz_task_unref(t);
    return 0;
}
