/*
 * finish.c - the end of a task: its joiners are woken, its references dropped.
 *
 * A joiner links itself under the task's lock and marks in the task's word that a joiner waits. The thread that
 * completes the task sees that mark, and takes the list under the same lock. So either the joiner sees the end, or
 * the completing thread sees the joiner. If no task waits, the end is one step of the word.
 */
#include "life/finish.h"

#include "wait/wait.h"

/* Claim the first joiner. Return true if there are others. */
static bool claim_joiner(struct bz_task *t, struct bz_wake *wake)
{
    wake->kind = BZ_WAKE_NONE;
    bz_lock_take(&t->lock, t->rt->os);
    struct bz_waiter *w = bz_waiter_first(&t->joiners);
    if (w != NULL)
        (void)!bz_waiter_claim(w, 0, wake); /* if it has left there is nothing to deliver */
    bool has_more = !bz_list_is_empty(&t->joiners);
    bz_lock_drop(&t->lock, t->rt->os);
    return has_more;
}

BZ_NOINLINE void bz_task_wake_joiners(struct bz_task *t, unsigned refs)
{
    bool has_more = true;
    while (has_more) {
        struct bz_wake wake;
        has_more = claim_joiner(t, &wake);
        bz_wake_deliver(&wake);
    }
    if (bz_word_drop(&t->word, refs))
        t->ops->drop(t);
}

void bz_task_finish(struct bz_task *t)
{
    bz_task_complete(t, 1); /* the scheduler's */
}
