/*
 * quick.h - take the next task if it is in the batch, ring or next slot: the fast path of find.c.
 *
 * Nearly always the next task is in the proc's batch or ring, and no other duty is due. One test
 * checks that: the tick against the tick of the next duty (injector, timers, I/O, inbox). In a rare case
 * the functions return 0, with nothing taken, and the caller takes the slow path (bz_find_near), which repeats the
 * tests. So a rare case costs a few instructions more, and the common case has no call.
 *
 * Not for the plain form, which has no batch and takes one entry at a time under the CAS.
 */
#ifndef BZ_SCHED_QUICK_H
#define BZ_SCHED_QUICK_H

#include "proc/batch.h"
#include "proc/fresh.h"

/* With fewer entries in the ring a batch is not worth its cost: take them one by one. */
enum { BZ_BATCH_FROM = 3 };

/* Prefetch for a lone ring, which has no batch and whose indices do not wrap; its oldest entry is about to run. */
static BZ_ALWAYS_INLINE void bz_ring_warm_up(struct bz_runq *q, struct bz_runq_ends is)
{
    if (is.tail - is.head < 2 * BZ_BATCH_FROM)
        return; /* so few stay in the cache */
    bz_entry second = bz_get(bz_runq_slot(q, is.head + 1));
    __builtin_prefetch((void *)bz_get(bz_runq_slot(q, is.head + 3))); /* with any tag */
    if (bz_entry_tag(second) != BZ_ENTRY_RESUMED)
        return;
    const struct bz_stack *stack = ((struct bz_task *)second)->stack;
    if (stack != NULL) {
        char *sp = stack->ctx.sp;
        __builtin_prefetch(sp);
        __builtin_prefetch(sp + 64);
        __builtin_prefetch(sp + 128);
    }
}

/* Take the oldest entry out of the batch or the ring. 0: take the slow path. */
static BZ_ALWAYS_INLINE bz_entry bz_quick_take(struct bz_proc *p, struct bz_idle *idle)
{
    struct bz_batch *h = &p->batch;
    uint32_t at = bz_load_relaxed(&h->at), count = bz_load_relaxed(&h->count); /* relaxed: ours */
    if (at < count) {
        if (count - at > 1 && BZ_UNLIKELY(!bz_idle_is_quiet(idle)))
            return 0;
        bz_entry e = bz_get(&h->entry[at]);
        if (BZ_UNLIKELY(bz_entry_tag(e) != BZ_ENTRY_RESUMED || e == 0))
            return 0;                     /* claimed, or to be claimed */
        bz_store_relaxed(&h->at, at + 1); /* relaxed: ours */
        bz_batch_warm_up(h, at);
        return e;
    }
    return bz_runq_take_few(&p->ring, p->ring.is_lone ? BZ_RUNQ_CAP : BZ_BATCH_FROM - 1);
}

/* The most tasks from the `next` slot in a row: two tasks that wake each other must not starve the
 * ring. */
enum { BZ_NEXT_ROW = 3 };

/* True if no task waits in batch or ring, so that tasks from the `next` slot starve none. */
static BZ_ALWAYS_INLINE bool bz_quick_is_alone(struct bz_proc *p)
{
    return bz_batch_left(&p->batch) == 0 && bz_runq_queued_here(&p->ring) == 0;
}

/* Take a woken task, which runs before those in the ring. 0: take the slow path. */
static BZ_ALWAYS_INLINE bz_entry bz_quick_next(struct bz_proc *p, bz_entry next)
{
    if (BZ_UNLIKELY(bz_entry_tag(next) != BZ_ENTRY_RESUMED))
        return 0;
    if (p->next_row >= BZ_NEXT_ROW) {
        if (!bz_quick_is_alone(p))
            return 0;
        p->next_row = 0;
    } else {
        p->next_row++;
    }
    bz_store_relaxed(&p->next, 0); /* relaxed: ours to touch */
    bz_count(&p->counters, next_hits);
    return next;
}

/*
 * Take the next task of the calling machine, which has a proc and is in the runtime, if the fast path finds one.
 * Returns: a task that has been run before; NULL: take the slow path.
 */
static BZ_ALWAYS_INLINE struct bz_task *bz_quick_find(struct bz_proc *p, struct bz_idle *idle)
{
    if (bz_tick_step(&p->tick))
        goto none;
    BZ_ASSERT(bz_fresh_count(p) == 0);         /* fresh.c I3 */
    bz_entry next = bz_load_relaxed(&p->next); /* relaxed: ours to touch */
    bz_entry e;
    if (next != 0) {
        e = bz_quick_next(p, next);
    } else {
        e = bz_quick_take(p, idle);
        p->next_row = 0; /* harmless if nothing was taken */
    }
    if (BZ_LIKELY(e != 0))
        return (struct bz_task *)e; /* a resumed entry has no tag */
none:
    bz_tick_step_back(&p->tick);
    return NULL;
}

/* True if a machine can switch straight to the task, once it has taken it. */
static BZ_ALWAYS_INLINE bool bz_quick_may_switch(const struct bz_task *t)
{
    return BZ_LIKELY(t->stack != NULL && !(t->marks & BZ_MARK_LOCKED));
}

/*
 * The same for a task that yields on the only proc of a runtime: `me` is queued behind the others in the
 * same step. No other thread takes from such a ring while this one is in the runtime, so `me` may be queued
 * before its stack is left. A fiber switches to the task, so that one must have a stack, and be a task that yielded, which
 * is running in its word. A loop with a spare stack (is_loop) can also call it, and begins it.
 * Returns: the task; NULL: take the slow path, nothing was done.
 */
static BZ_ALWAYS_INLINE struct bz_task *bz_quick_rotate(struct bz_proc *p, struct bz_task *me,
                                                        bool is_loop)
{
    if (bz_tick_step(&p->tick) ||
        BZ_UNLIKELY(!bz_equals_relaxed(&p->next, 0))) /* relaxed: ours to touch */
        goto none;
    BZ_ASSERT(bz_fresh_count(p) == 0); /* fresh.c I3 */
    struct bz_runq_ends is = bz_runq_ends_lone(&p->ring);
    bz_entry e = bz_get(bz_runq_slot(&p->ring, is.head));
    if (!bz_runq_may_rotate(is) || BZ_UNLIKELY(bz_entry_tag(e) != BZ_ENTRY_RESUMED))
        goto none;
    struct bz_task *t = (struct bz_task *)e; /* a resumed entry has no tag */
    BZ_ASSERT(t != NULL);
    BZ_ASSUME(t != NULL); /* the ring is not empty */
    if (!is_loop && !(bz_quick_may_switch(t) && BZ_LIKELY(bz_word_life(&t->word) == BZ_RUNNING)))
        goto none;
    bz_runq_rotate_lone(&p->ring, is, bz_entry_resumed(me));
    p->next_row = 0;
    bz_ring_warm_up(&p->ring, is);
    return t;
none:
    bz_tick_step_back(&p->tick);
    return NULL;
}

#endif
