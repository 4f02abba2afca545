/*
 * tracering.h - the latest records of one writer, readable while they are written.
 *
 * A record is a few words. The writer overwrites the oldest. It never waits, reads no shared word of another
 * thread and makes no read-modify-write. A reader copies the records, then checks how far the writer has come
 * meanwhile, and drops the records that may have been overwritten: a seqlock whose sequence
 * is the ring's own position.
 *
 *      writer                                  reader
 *      1  the words of record `head`           1  head: up to where?
 *      2  head + 1                             2  the words of the records below it
 *                                              3  head again: record i is whole if i + size > head
 *
 * The slot of record `head` may be half written, and it is also the slot of record head - size. So the oldest
 * record is never returned, and a ring of n keeps n - 1.
 *
 * Rejected:
 *  - a sequence number in each record: one more word for a record of four, and the reader would have to check
 *    each twice;
 *  - a lock: a reader would delay the scheduler;
 *  - relaxed words behind a release fence: that is the same on x86_64, and ThreadSanitizer does not understand it.
 *
 * I1  head is the number of records ever written; the writer's alone.
 * I2  Record i is in slot i % size until record i + size is begun.
 *
 * [A] push: head release -> read: head acquire   a record below head is there
 * [B] push: word release -> read: word acquire   a reader of a word of record i sees a head of i or
 *     more: head was stored before the word, and the second look at head comes after it
 */
#ifndef BZ_TRACERING_H
#define BZ_TRACERING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bz_atomic.h"
#include "base/compiler.h"

#if !defined(BZ_RECORD_WORDS)
#define BZ_RECORD_WORDS 4
#endif

struct bz_record {
    uint64_t word[BZ_RECORD_WORDS];
};

struct bz_tracering {
    bz_atomic(uint64_t) head;   /* written by the writer, read by any thread */
    uint64_t size;              /* in records, a power of two; constant after init */
    bz_atomic(uint64_t) *words; /* constant after init: size * BZ_RECORD_WORDS of them */
};

/* Owns: borrows `words`, room for `size` records, while the ring is in use. */
void bz_tracering_init(struct bz_tracering *r, bz_atomic(uint64_t) *words, uint64_t size);

/* Write a record. One thread at a time. */
void bz_tracering_push(struct bz_tracering *r, const struct bz_record *record);

/*
 * Copy records from number *at on, oldest first, at most `max`. Any thread, at any time.
 * Returns: how many. *at is the number after the last one copied, and *lost grows by those that were
 *          overwritten before they could be copied.
 */
BZ_MUST_USE size_t bz_tracering_read(struct bz_tracering *r, uint64_t *at, struct bz_record *out,
                                     size_t max, uint64_t *lost);

/* The number of records ever written. */
static inline uint64_t bz_tracering_count(struct bz_tracering *r)
{
    return bz_load_relaxed(&r->head); /* relaxed: a number */
}

#endif
