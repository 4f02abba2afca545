/*
 * runq.h - the run queue of a proc: a ring its owner pushes to and everybody takes from.
 *
 * runq.c has the design, task/entry.h says what an entry is; 0 is none.
 */
#ifndef BZ_RUNQ_H
#define BZ_RUNQ_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bz_atomic.h"
#include "base/compiler.h"
#include "task/entry.h"

/* log2 of the number of slots; the model checker shrinks it to 1 or 2. */
#if !defined(BZ_RUNQ_LOG2)
#define BZ_RUNQ_LOG2 8
#endif
#define BZ_RUNQ_CAP (1u << BZ_RUNQ_LOG2)

/* Width of an index; two fit into the head word. The model checker shrinks it so that it wraps. */
#if !defined(BZ_RUNQ_BITS)
#define BZ_RUNQ_BITS 32
#endif

struct bz_runq {
    BZ_OWN_LINE bz_atomic(uint64_t) head;  /* {steal, real}: CAS by owner and thieves */
    BZ_OWN_LINE bz_atomic(uint32_t) tail;  /* written by the owner, read by thieves */
    bz_shared(bz_entry) slot[BZ_RUNQ_CAP]; /* [real, tail) the queue's, [steal, real) a thief's */
};

void bz_runq_init(struct bz_runq *q);

/* How a push ended. */
enum bz_pushed {
    BZ_PUSHED,     /* it is in the ring */
    BZ_PUSH_SPILL, /* full: half the ring is in spill[], with the entry last; inject them */
    BZ_PUSH_BUSY   /* full while a thief is copying: inject the one entry */
};

/* The most that one push can spill: half the ring and the entry itself. */
#define BZ_RUNQ_SPILL (BZ_RUNQ_CAP / 2 + 1)

/*
 * Push at the tail. The owner only.
 * Returns: how it ended; *count entries are in spill[] if it is BZ_PUSH_SPILL.
 */
BZ_MUST_USE enum bz_pushed bz_runq_push(struct bz_runq *q, bz_entry entry,
                                        bz_entry spill[BZ_RUNQ_SPILL], unsigned *count);

/* Take the oldest. The owner only. 0 if the ring is empty. */
bz_entry bz_runq_take(struct bz_runq *q);

/*
 * Steal half of `from`, rounded up, into `to`, which is the caller's own and at most half full.
 * Any thread that owns `to`.
 * Returns: the newest of the stolen entries, which is *not* in `to`: run it. 0 if there was nothing
 *          to steal, or `to` has no room, or another thief is at work.
 */
bz_entry bz_runq_steal(struct bz_runq *from, struct bz_runq *to);

/* How many entries are in it: exact for its owner if nobody steals, else a guess. */
unsigned bz_runq_count(struct bz_runq *q);

/* How many have been taken so far, modulo 2^32: tells whether the oldest one is still the same. */
uint32_t bz_runq_taken(struct bz_runq *q);

/* The invariants of runq.c for a ring nobody is using. Aborts with what it saw. */
void bz_runq_check(struct bz_runq *q);

#endif
