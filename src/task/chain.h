/*
 * chain.h - an intrusive FIFO list of entries, without allocation.
 *
 * Each kind of entry has its own link word in its object: `next` of a resumed task, `first_next` of
 * a task that has not run, the first word of a job. So one task may be linked twice at once, even
 * in the same chain: as the tombstone of its first run and as a resumed task.
 *
 * A chain has no lock; its owner provides one. The holder of an entry may use only the link word of
 * its kind.
 *
 * I1  first and last are both 0 or both not; last's link is 0; count links lead from first to last.
 */
#ifndef BZ_TASK_CHAIN_H
#define BZ_TASK_CHAIN_H

#include <stdbool.h>
#include <stddef.h>

#include "task/entry.h"
#include "task/task.h"

struct bz_entries {
    bz_entry first, last;
    size_t count;
};

/* The link word of this kind of entry. The holder of the entry may write it. */
static inline bz_shared(bz_entry) *bz_entry_link(bz_entry e)
{
    switch (bz_entry_tag(e)) {
    case BZ_ENTRY_RESUMED:
        return &bz_entry_task(e)->next;
    case BZ_ENTRY_FIRST:
        return &bz_entry_task(e)->first_next;
    default:
        return (bz_shared(bz_entry) *)bz_entry_job(e);
    }
}

static inline void bz_entries_init(struct bz_entries *c)
{
    *c = (struct bz_entries){0, 0, 0};
}

static inline bool bz_entries_is_empty(const struct bz_entries *c)
{
    return c->count == 0;
}

static inline void bz_entries_push(struct bz_entries *c, bz_entry e)
{
    bz_set(bz_entry_link(e), 0);
    if (c->last != 0)
        bz_set(bz_entry_link(c->last), e);
    else
        c->first = e;
    c->last = e;
    c->count++;
}

/* Unlink and return the first, or 0. */
static inline bz_entry bz_entries_take(struct bz_entries *c)
{
    bz_entry e = c->first;
    if (e == 0)
        return 0;
    c->first = bz_get(bz_entry_link(e));
    if (c->first == 0)
        c->last = 0;
    c->count--;
    return e;
}

/* Move all of `from` to the end of `to`; `from` is empty afterwards. */
static inline void bz_entries_append(struct bz_entries *to, struct bz_entries *from)
{
    if (from->count == 0)
        return;
    if (to->last != 0)
        bz_set(bz_entry_link(to->last), from->first);
    else
        to->first = from->first;
    to->last = from->last;
    to->count += from->count;
    bz_entries_init(from);
}

/* Check I1 by a walk. Abort with a message if it is broken. */
void bz_entries_check(const struct bz_entries *c);

#endif
