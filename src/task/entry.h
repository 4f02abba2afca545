/*
 * entry.h - what stands in a queue: a pointer with a tag that says how it is to be run.
 *
 *   RESUMED   a task that goes on. Only one entry of a task is resumed at any time, so whoever takes
 *             it has the task.
 *   FIRST     a task that has not run yet. Whoever joins it may have *claimed* and run it meanwhile;
 *             so whoever takes the entry must win the task by bz_word_claim. If it does not, what it
 *             took is a tombstone, and all that is left to do is to drop the reference it held.
 *   JOB       a forked job whose frame was left: a pointer to it, unique.
 *
 * A task may be queued as RESUMED while the tombstone of its first run still stands in some queue,
 * perhaps in the same one; therefore each kind has its own link word (chain.h).
 *
 * 0 is not an entry. What is queued is aligned to 4, so that the tag has room in the low bits.
 */
#ifndef BZ_ENTRY_H
#define BZ_ENTRY_H

#include <stdint.h>

#include "base/check.h"

struct bz_task;

typedef uintptr_t bz_entry;

enum bz_entry_tag { BZ_ENTRY_RESUMED, BZ_ENTRY_FIRST, BZ_ENTRY_JOB, BZ_ENTRY_TAG_MASK = 3 };

static inline enum bz_entry_tag bz_entry_tag(bz_entry e)
{
    return (enum bz_entry_tag)(e & BZ_ENTRY_TAG_MASK);
}

static inline bz_entry bz_entry_resumed(struct bz_task *t)
{
    return (bz_entry)t;
}

static inline bz_entry bz_entry_first(struct bz_task *t)
{
    return (bz_entry)t | BZ_ENTRY_FIRST;
}

/* The job's first word is its link. */
static inline bz_entry bz_entry_of_job(void *job)
{
    return (bz_entry)job | BZ_ENTRY_JOB;
}

/* The task of an entry that is one. */
static inline struct bz_task *bz_entry_task(bz_entry e)
{
    BZ_ASSERT(bz_entry_tag(e) != BZ_ENTRY_JOB);
    return (struct bz_task *)(e & ~(bz_entry)BZ_ENTRY_TAG_MASK);
}

/* The job of an entry that is one. */
static inline void *bz_entry_job(bz_entry e)
{
    BZ_ASSERT(bz_entry_tag(e) == BZ_ENTRY_JOB);
    return (void *)(e & ~(bz_entry)BZ_ENTRY_TAG_MASK);
}

#endif
