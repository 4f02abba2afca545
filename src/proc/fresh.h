/*
 * fresh.h - tasks that have not begun and that only this proc knows. fresh.c has the rules.
 */
#ifndef BZ_PROC_FRESH_H
#define BZ_PROC_FRESH_H

#include "proc/state.h"

static inline unsigned bz_fresh_count(struct bz_proc *p)
{
    return bz_load_relaxed(&p->fresh.count); /* relaxed: ours to touch, or a hint */
}

/* Note the place of a simple fiber: only such a task is taken out by its joiner. */
static BZ_ALWAYS_INLINE void bz_fresh_note(bz_entry e, unsigned at)
{
    struct bz_task *t = bz_entry_task(e);
    if (BZ_LIKELY(bz_load_relaxed(&t->word) & BZ_WORD_SIMPLE)) /* relaxed: never changed */
        bz_store_relaxed(&t->place, (uint8_t)at);              /* relaxed: I2 */
}

/* Keep e, a first-run entry, if no proc sleeps or searches and there is room. False: publish it. In the runtime. */
BZ_MUST_USE static BZ_ALWAYS_INLINE bool bz_fresh_keep(struct bz_machine *m, bz_entry e)
{
    struct bz_proc *p = m->proc;
    unsigned count = bz_fresh_count(p);
    if (BZ_UNLIKELY(count == BZ_FRESH_MAX || !bz_idle_is_quiet(&m->rt->idle)))
        return false;
    bz_set(&p->fresh.entry[count], e);
    bz_fresh_note(e, count);
    bz_store_relaxed(&p->fresh.count, count + 1); /* relaxed: ours to touch */
    if (count == 0)
        bz_tick_hurry(&p->tick); /* I3 */
    return true;
}

/* True if t, a simple fiber that has not begun, is in the list; then *at is its place. In the runtime. */
BZ_MUST_USE static BZ_ALWAYS_INLINE bool bz_fresh_has(struct bz_proc *p, struct bz_task *t,
                                                      unsigned *at)
{
    *at = bz_load_relaxed(&t->place); /* relaxed: I2 */
    return *at < bz_fresh_count(p) && bz_get(&p->fresh.entry[*at]) == bz_entry_first(t);
}

/* Take out the entry in that place. In the runtime. */
static BZ_ALWAYS_INLINE void bz_fresh_take(struct bz_proc *p, unsigned at)
{
    unsigned count = bz_fresh_count(p);
    bz_set(&p->fresh.entry[at], 0);
    if (at != count - 1)
        return;
    do
        count--;
    while (count > 0 && bz_get(&p->fresh.entry[count - 1]) == 0); /* I1 */
    bz_store_relaxed(&p->fresh.count, count);                     /* relaxed: ours to touch */
}

/* Publish all of them: push them to the ring. In the runtime, with a proc. */
void bz_fresh_publish(struct bz_machine *m);
/* The list is full: publish the older half. */
void bz_fresh_publish_half(struct bz_machine *m);
/* A task joins a child that is in a public queue: take the oldest entries of the injector or of the ring into the list,
 * which is empty. True if there are any. In the runtime, with a proc. */
bool bz_fresh_gather(struct bz_machine *m);

#endif
