/*
 * entry.h - an entry of a queue: a pointer with a tag that says how to run it.
 *
 *   RESUMED   a task that continues. A task has at most one RESUMED entry at any time, so the
 *             worker that takes it owns the task.
 *   FIRST     a task that has not run yet. A joiner may have *claimed* and run it meanwhile, so the
 *             worker that takes the entry must claim the task by bz_word_claim. If the claim fails,
 *             the entry is a tombstone, and the worker only drops its reference.
 *   JOB       a forked job whose frame was suspended: a unique pointer to the job.
 *
 * A task may be queued as RESUMED while the tombstone of its first run is still in a queue, perhaps
 * the same one. So each kind has its own link word (chain.h).
 *
 * 0 is not an entry. Queued objects are aligned to 4, so that the tag fits in the low bits.
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

/* The task of a RESUMED or FIRST entry. */
static inline struct bz_task *bz_entry_task(bz_entry e)
{
    BZ_ASSERT(bz_entry_tag(e) != BZ_ENTRY_JOB);
    return (struct bz_task *)(e & ~(bz_entry)BZ_ENTRY_TAG_MASK);
}

/* The job of a JOB entry. */
static inline void *bz_entry_job(bz_entry e)
{
    BZ_ASSERT(bz_entry_tag(e) == BZ_ENTRY_JOB);
    return (void *)(e & ~(bz_entry)BZ_ENTRY_TAG_MASK);
}

#endif
