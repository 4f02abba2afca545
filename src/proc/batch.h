/*
 * batch.h - the batch of a proc: entries that its machine has taken out of the ring in advance. find.c fills it.
 */
#ifndef BZ_BATCH_H
#define BZ_BATCH_H

#include "proc/state.h"

/* The number of entries left in the batch. */
static inline unsigned bz_batch_left(struct bz_batch *h)
{
    return bz_load_relaxed(&h->count) - bz_load_relaxed(&h->at); /* relaxed: ours to touch */
}

/* batch.c: empty `next`, the batch and the fresh list into out[], oldest first. The caller must have access by
 * retake.h. Returns how many. */
unsigned bz_batch_empty(struct bz_proc *p, bz_entry out[BZ_PRIVATE_MAX]);
/* Prefetch the stack of the task after the current one. In the runtime, with a proc. */
void bz_warm_next(struct bz_machine *m);

/* Return the stack of entry i of the batch, which is private to this proc; NULL if it has none. */
static inline struct bz_stack *bz_batch_stack(struct bz_batch *h, unsigned i)
{
    bz_entry e = i < bz_load_relaxed(&h->count) ? bz_get(&h->entry[i]) : 0; /* relaxed: ours */
    return e != 0 && bz_entry_tag(e) == BZ_ENTRY_RESUMED ? bz_entry_task(e)->stack : NULL;
}

/* With thousands of tasks, a task's stack is not in cache when its turn comes. Prefetch it one pointer
 * ahead: the control block of the third, the frames of the second. */
static inline void bz_batch_warm_up(struct bz_batch *h, unsigned at)
{
    struct bz_stack *second = bz_batch_stack(h, at + 1), *third = bz_batch_stack(h, at + 2);
    if (third != NULL)
        __builtin_prefetch(third);
    if (second != NULL) {
        char *sp = second->ctx.sp;
        __builtin_prefetch(sp);
        __builtin_prefetch(sp + 64);
        __builtin_prefetch(sp + 128);
    }
}

/* Take the first entry out of the batch; 0 if it was claimed. */
static inline bz_entry bz_batch_take_first(struct bz_batch *h)
{
    unsigned at = bz_load_relaxed(&h->at); /* relaxed: ours to touch */
    bz_store_relaxed(&h->at, at + 1);      /* relaxed: likewise */
    bz_batch_warm_up(h, at);
    return bz_get(&h->entry[at]);
}

#endif
