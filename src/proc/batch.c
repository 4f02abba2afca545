/*
 * batch.c - the batch of a proc (find.c): emptying it, and prefetching its next task.
 */
#include "proc/batch.h"

/* Prefetch the first task of the batch. It runs after the current task, which is about to make system calls, so
 * there is time to fetch more than a switch needs. Tasks that only yield would pay more than they gain: 8 ns of 23. */
void bz_warm_next(struct bz_machine *m)
{
    enum {
        FROM = 3,
        FRAMES = 12
    }; /* cache lines: the frames of a read that waits, and of its caller */
    struct bz_batch *h = &m->proc->batch;
    unsigned at = bz_load_relaxed(&h->at); /* relaxed: ours to touch */
    struct bz_stack *next = bz_batch_stack(h, at);
    if (next == NULL)
        return;
    char *sp = next->ctx.sp;
    __builtin_prefetch((char *)bz_entry_task(bz_get(&h->entry[at])) + BZ_FETCHED);
    for (int i = FROM; i < FRAMES; i++)
        __builtin_prefetch(sp + BZ_FETCHED * i);
    __builtin_prefetch(next->mark);
}

unsigned bz_batch_empty(struct bz_proc *p, bz_entry out[BZ_PRIVATE_MAX])
{
    struct bz_batch *h = &p->batch;
    unsigned n = 0, fresh = bz_load_relaxed(&p->fresh.count); /* relaxed: ours to touch */
    while (bz_batch_left(h) > 0)
        if ((out[n] = bz_batch_take_first(h)) != 0)
            n++;
    for (unsigned i = 0; i < fresh; i++)
        if ((out[n] = bz_get(&p->fresh.entry[i])) != 0)
            n++;
    bz_store_relaxed(&p->fresh.count, 0);          /* relaxed: likewise */
    if ((out[n] = bz_load_relaxed(&p->next)) != 0) /* relaxed: ours to touch */
        n++;
    bz_store_relaxed(&p->next, 0); /* relaxed: likewise */
    return n;
}
