/*
 * private.h - entries that only their proc knows: no thief takes them.
 *
 * batch.h and fresh.h have the rules. The owner gives them to its ring when others have no work.
 */
#ifndef BZ_PROC_PRIVATE_H
#define BZ_PROC_PRIVATE_H

#include "base/bz_atomic.h"
#include "task/entry.h"

/* The batch: a few entries that the owner has taken out of its ring with one CAS. */
enum { BZ_BATCH_MAX = 8 };
struct bz_batch {
    bz_shared(bz_entry) entry[BZ_BATCH_MAX]; /* valid from at to count; 0: claimed */
    bz_atomic(uint32_t) at, count;           /* accessed like the entries; the monitor peeks */
};

/* First-run entries that only this proc knows: proc/fresh.c. Accessed like the batch. */
enum { BZ_FRESH_MAX = 128, BZ_PRIVATE_MAX = BZ_BATCH_MAX + BZ_FRESH_MAX + 1 };
struct bz_fresh {
    bz_atomic(uint32_t) count;
    bz_shared(bz_entry) entry[BZ_FRESH_MAX];
};

#endif
