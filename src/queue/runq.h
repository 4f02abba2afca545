/*
 * runq.h - the run queue of a proc: a ring. Its owner pushes, and any worker takes.
 *
 * runq.c has the design, task/entry.h defines an entry; 0 is none.
 */
#ifndef BZ_RUNQ_H
#define BZ_RUNQ_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bz_atomic.h"
#include "base/compiler.h"
#include "task/entry.h"

/* log2 of the number of slots; the model checker shrinks it to 1 or 2. Not 8, as in other runtimes:
 * a thousand tasks that take turns would spill into the injector and come back all the time, out of
 * the order of their memory. That took 50 ns a turn instead of 25. */
#if !defined(BZ_RUNQ_LOG2)
#define BZ_RUNQ_LOG2 10
#endif
#define BZ_RUNQ_CAP (1u << BZ_RUNQ_LOG2)

/* Width of an index; the same word counts the claimed slots above it. 53 bits wrap after years of
 * nothing but takes. The model checker shrinks it so that it wraps. */
#if !defined(BZ_RUNQ_BITS)
#define BZ_RUNQ_BITS 53
#endif
#define BZ_RUNQ_MASK (UINT64_MAX >> (64 - BZ_RUNQ_BITS))
#define BZ_RUNQ_CLAIM_ONE (UINT64_C(1) << BZ_RUNQ_BITS)

struct bz_runq {
    BZ_OWN_LINE bz_atomic(uint64_t) head; /* {claimed, real}: CAS by owner and thieves */
    BZ_OWN_LINE bz_atomic(uint64_t) tail; /* written by the owner, read by thieves */
    bool is_lone;                         /* no other thread steals from it; constant after init */
    bz_shared(bz_entry)
        slot[BZ_RUNQ_CAP]; /* [real, tail): the queue; `claimed` slots before it: a thief's */
};

/* `is_lone`: no other thread will ever steal from it (a runtime of one proc). */
void bz_runq_init(struct bz_runq *q, bool is_lone);

/* ---- indices; shared with runq.c ---- */

static inline uint64_t bz_runq_real(uint64_t head)
{
    return head & BZ_RUNQ_MASK;
}

static inline uint64_t bz_runq_claimed(uint64_t head)
{
    return head >> BZ_RUNQ_BITS;
}

static inline uint64_t bz_runq_pack(uint64_t claimed, uint64_t real)
{
    return claimed << BZ_RUNQ_BITS | (real & BZ_RUNQ_MASK);
}

/* The number of entries between real and tail, as seen. */
static inline uint64_t bz_runq_queued(uint64_t head, uint64_t tail)
{
    return (tail - head) & BZ_RUNQ_MASK;
}

static inline bz_shared(bz_entry) *bz_runq_slot(struct bz_runq *q, uint64_t index)
{
    return &q->slot[index % BZ_RUNQ_CAP];
}

/* ---- the owner ---- */

/* Push at the tail. The owner only. False if there is no room. */
BZ_MUST_USE static inline bool bz_runq_try_push(struct bz_runq *q, bz_entry entry)
{
    BZ_ASSERT(entry != 0);
    uint64_t tail = bz_load_relaxed(&q->tail); /* relaxed: we are its only writer, I2 */
    uint64_t head = bz_load_acquire(&q->head); /* [B] */
    if (BZ_UNLIKELY(bz_runq_queued(head, tail) + bz_runq_claimed(head) >= BZ_RUNQ_CAP))
        return false;
    bz_set(bz_runq_slot(q, tail), entry);
    bz_store_release(&q->tail, (tail + 1) & BZ_RUNQ_MASK); /* [A] */
    return true;
}

/* The owner advances `real` by n, if the head has not changed. False: a thief changed it. */
BZ_MUST_USE static inline bool bz_runq_advance(struct bz_runq *q, uint64_t seen, uint64_t n)
{
    uint64_t claimed = bz_runq_claimed(seen), real = (seen + n) & BZ_RUNQ_MASK;
    if (q->is_lone) {
        bz_store_relaxed(&q->head, real); /* relaxed: no other thread uses it, I4 */
        return true;
    }
    if (BZ_UNLIKELY(claimed > 0))
        claimed += n;                                                         /* I3 */
    return bz_cas_weak_rel_rlx(&q->head, &seen, bz_runq_pack(claimed, real)); /* [C] */
}

/* Take the oldest. The owner only. 0 if the ring is empty. */
static inline bz_entry bz_runq_take(struct bz_runq *q)
{
    uint64_t tail = bz_load_relaxed(&q->tail); /* relaxed: we are its only writer, I2 */
    for (;;) {
        uint64_t seen = bz_load_relaxed(&q->head); /* relaxed: a guess, the CAS decides */
        uint64_t real = bz_runq_real(seen);
        if (real == tail)
            return 0;
        if (bz_runq_advance(q, seen, 1))
            return bz_get(bz_runq_slot(q, real));
    }
}

/*
 * Take the oldest if it has no tag and there are at most `most`. The owner only.
 * Returns: the entry; 0: there is none, or there are more, or it has a tag, or a thief came between. Then nothing
 *          was taken.
 */
static BZ_ALWAYS_INLINE bz_entry bz_runq_take_few(struct bz_runq *q, uint64_t most)
{
    uint64_t head = bz_load_relaxed(&q->head); /* relaxed: a guess, the CAS decides */
    uint64_t tail = bz_load_relaxed(&q->tail); /* relaxed: we are its only writer, I2 */
    if (bz_runq_queued(head, tail) - 1 >= most)
        return 0;
    bz_entry e = bz_get(bz_runq_slot(q, head)); /* slots are ours to write: I2 */
    if (BZ_UNLIKELY(bz_entry_tag(e) != BZ_ENTRY_RESUMED) || !bz_runq_advance(q, head, 1))
        return 0;
    return e;
}

/*
 * Take up to `max` of the oldest, with one CAS for all. The owner only. If others can steal from the ring, it
 * gives half plus one at most, so that some entries are left for them.
 * Returns: how many are in out[], the oldest first.
 */
unsigned bz_runq_take_some(struct bz_runq *q, bz_entry *out, unsigned max);

/* The same for the first-run entries at the front, up to the first entry of another kind. One attempt: 0 also if a thief
 * came between. */
unsigned bz_runq_take_first_runs(struct bz_runq *q, bz_entry *out, unsigned max);

/* The ends of a lone ring, for its owner: bz_runq_may_rotate, bz_runq_rotate_lone. */
struct bz_runq_ends {
    uint64_t head, tail;
};

static BZ_ALWAYS_INLINE struct bz_runq_ends bz_runq_ends_lone(struct bz_runq *q)
{
    BZ_ASSERT(q->is_lone);
    /* relaxed: ours alone, I4 */
    return (struct bz_runq_ends){bz_load_relaxed(&q->head), bz_load_relaxed(&q->tail)};
}

/* True if the ring is not empty. Its indices do not wrap, bz_runq_rebase_lone() sees to that. So the rotation needs no masks. */
BZ_MUST_USE static BZ_ALWAYS_INLINE bool bz_runq_may_rotate(struct bz_runq_ends is)
{
    return BZ_LIKELY(is.head < is.tail);
}

/* The indices of a lone ring have used half of their range: begin again, in the same slots. For its owner, now and then: long
 * before they have used the other half. */
static inline void bz_runq_rebase_lone(struct bz_runq *q)
{
    const uint64_t half = BZ_RUNQ_CLAIM_ONE / 2;
    struct bz_runq_ends is = bz_runq_ends_lone(q);
    if (BZ_LIKELY(is.head < half))
        return;
    bz_store_relaxed(&q->head, is.head - half); /* relaxed: I4 */
    bz_store_relaxed(&q->tail, is.tail - half); /* relaxed: I4 */
}

/* Take the oldest entry of a lone ring, and push `entry`. The owner only, if bz_runq_may_rotate(). */
static BZ_ALWAYS_INLINE void bz_runq_rotate_lone(struct bz_runq *q, struct bz_runq_ends is,
                                                 bz_entry entry)
{
    BZ_ASSERT(is.head < is.tail && is.tail < BZ_RUNQ_MASK);
    bz_set(bz_runq_slot(q, is.tail), entry); /* in a full ring: the slot that was taken */
    bz_store_relaxed(&q->head, is.head + 1); /* relaxed: I4 */
    bz_store_relaxed(&q->tail, is.tail + 1); /* relaxed: I4 */
}

/* ---- thieves and observers ---- */

/*
 * Steal half of `from`, rounded up, into `to`, which is the caller's own and at most half full.
 * Any thread that owns `to`; `from` is not lone.
 * Returns: the newest of the stolen entries, which is *not* in `to`: run it. 0 if there was nothing
 *          to steal, or `to` has no room, or another thief is at work.
 */
bz_entry bz_runq_steal(struct bz_runq *from, struct bz_runq *to);

/* The number of entries, for the owner: at least so many, unless thieves take some. */
static inline uint64_t bz_runq_queued_here(struct bz_runq *q)
{
    /* relaxed: the tail is ours, the head a guess */
    return bz_runq_queued(bz_load_relaxed(&q->head), bz_load_relaxed(&q->tail));
}

/* The number of entries: exact for the owner if no thread steals, else a guess. */
unsigned bz_runq_count(struct bz_runq *q);

/* How many have been taken so far, modulo 2^32: tells whether the oldest entry is still the
 * same. */
uint32_t bz_runq_taken(struct bz_runq *q);

/* Check the invariants of runq.c, for a ring that no thread uses. Aborts with what it saw. */
void bz_runq_check(struct bz_runq *q);

#endif
