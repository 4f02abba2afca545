/*
 * runq.c - the run queue of a proc.
 *
 * A ring of BZ_RUNQ_CAP entries. The owner pushes at the tail; the owner and thieves take at the
 * head. A thief takes half of it at once, which is three phases, because copying takes a while and
 * the owner must neither wait nor overwrite what is being copied:
 *
 *     claim    advance `real` past the half: it is ours, the owner goes on behind it
 *     copy     into our own ring, behind our tail, not yet visible
 *     release  let `steal` catch up with `real`: the slots may be filled again
 *
 * So the head is two indices in one word. The owner takes at `real` and may push as far as `steal`
 * allows. While steal != real a thief is at work, and a second one goes elsewhere.
 *
 *          steal      real                tail
 *       ...  |--copied--|----queued---------|  free ...
 *
 * Full: half of the ring and the new entry go to the injector in one batch (the caller does it).
 * Full while a thief is copying: that one entry goes there.
 *
 * Rejected: a mutex (every push would pay for a rare thief); a growing deque (freeing the old
 * array under a reader needs reclamation, and a bound is wanted anyhow: what spills is what others
 * should see); one head index (a thief would have to copy before it claims, and throw the copy
 * away when it loses); a 16-bit index (wraps during a descheduled thief's sleep, after 65536 takes:
 * then its claim succeeds on a ring that has moved on; 32 bits wrap after four billion, and the
 * release of a claim never depends on the index being unique).
 *
 * I1  tail - steal <= CAP. Indices run free and wrap; compare differences.
 * I2  Only the owner writes tail and slots. [steal, real) belongs to one thief, [real, tail) to
 *     the queue.
 * I3  While steal != real, only that thief changes steal; the owner changes real alone.
 *
 * [A] push: tail release -> steal: tail acquire     a slot is filled before it can be claimed
 * [B] release: head release -> push: head acquire   a slot is copied before it is filled again
 * [C] take, spill, release: head release -> claim: head acquire   who sees the head moved sees a
 *     tail at least as far: the owner takes only what it pushed, a thief releases only after it
 *     saw the tail, so tail - real is never negative for the next thief
 */
#include "sched/runq.h"

#include <assert.h>

#include "base/check.h"

static_assert(BZ_RUNQ_BITS <= 32 && BZ_RUNQ_BITS > BZ_RUNQ_LOG2,
              "indices can tell full from empty");

#define INDEX_MASK (UINT32_MAX >> (32 - BZ_RUNQ_BITS))

struct head {
    uint32_t steal, real;
};

static struct head unpack(uint64_t word)
{
    return (struct head){(uint32_t)(word >> 32), (uint32_t)word};
}

static uint64_t pack(uint32_t steal, uint32_t real)
{
    return (uint64_t)(steal & INDEX_MASK) << 32 | (real & INDEX_MASK);
}

static uint32_t distance(uint32_t from, uint32_t to)
{
    return (to - from) & INDEX_MASK;
}

static bz_shared(bz_entry) *slot_at(struct bz_runq *q, uint32_t index)
{
    return &q->slot[index % BZ_RUNQ_CAP];
}

void bz_runq_init(struct bz_runq *q)
{
    bz_atomic_init(&q->head, 0);
    bz_atomic_init(&q->tail, 0);
}

/* ---- the owner ---- */

/* Claim the older half for the injector; false if a thief came between. */
static bool spill_half(struct bz_runq *q, struct head h, bz_entry spill[BZ_RUNQ_SPILL])
{
    uint64_t seen = pack(h.steal, h.real);
    uint32_t past = h.real + BZ_RUNQ_CAP / 2;
    if (!bz_cas_strong_rel_rlx(&q->head, &seen, pack(past, past))) /* [C] */
        return false;
    for (uint32_t i = 0; i < BZ_RUNQ_CAP / 2; i++)
        spill[i] = bz_get(slot_at(q, h.real + i));
    return true;
}

enum bz_pushed bz_runq_push(struct bz_runq *q, bz_entry entry, bz_entry spill[BZ_RUNQ_SPILL],
                            unsigned *count)
{
    BZ_ASSERT(entry != 0);
    uint32_t tail = bz_load_relaxed(&q->tail); /* relaxed: we are its only writer, I2 */
    for (;;) {
        struct head h = unpack(bz_load_acquire(&q->head)); /* [B] */
        if (distance(h.steal, tail) < BZ_RUNQ_CAP) {
            bz_set(slot_at(q, tail), entry);
            bz_store_release(&q->tail, (tail + 1) & INDEX_MASK); /* [A] */
            return BZ_PUSHED;
        }
        if (h.steal != h.real)
            return BZ_PUSH_BUSY;
        if (spill_half(q, h, spill)) {
            spill[BZ_RUNQ_CAP / 2] = entry;
            *count = BZ_RUNQ_SPILL;
            return BZ_PUSH_SPILL;
        }
        /* A thief has claimed meanwhile: look again. */
    }
}

bz_entry bz_runq_take(struct bz_runq *q)
{
    uint32_t tail = bz_load_relaxed(&q->tail); /* relaxed: we are its only writer, I2 */
    uint64_t seen = bz_load_relaxed(&q->head); /* relaxed: a first guess, the CAS decides */
    for (;;) {
        struct head h = unpack(seen);
        if (h.real == tail)
            return 0;
        uint32_t real = h.real + 1;
        uint32_t steal = h.steal == h.real ? real : h.steal;         /* I3 */
        if (bz_cas_weak_rel_rlx(&q->head, &seen, pack(steal, real))) /* [C] */
            return bz_get(slot_at(q, h.real));
    }
}

/* ---- thieves ---- */

/* Phase 1. Returns how many were claimed, the first at *first; 0 if there is nothing for us. */
static uint32_t claim_half(struct bz_runq *from, uint32_t *first)
{
    uint64_t seen = bz_load_acquire(&from->head); /* [C] */
    for (;;) {
        struct head h = unpack(seen);
        if (h.steal != h.real)
            return 0; /* another thief is at work */
        uint32_t queued = distance(h.real, bz_load_acquire(&from->tail)); /* [A] */
        if (queued == 0)
            return 0;
        uint32_t half = queued - queued / 2;
        *first = h.real;
        if (bz_cas_weak_acq_acq(&from->head, &seen, pack(h.steal, h.real + half))) /* [C] */
            return half;
    }
}

/* Phase 3: steal catches up with real, wherever the owner has taken that to meanwhile. */
static void release_claim(struct bz_runq *from)
{
    uint64_t seen = bz_load_relaxed(&from->head); /* relaxed: a first guess, the CAS decides */
    struct head h;
    do {
        h = unpack(seen);
        BZ_ASSERT(h.steal != h.real);                                         /* I3 */
    } while (!bz_cas_weak_rel_rlx(&from->head, &seen, pack(h.real, h.real))); /* [B] [C] */
}

bz_entry bz_runq_steal(struct bz_runq *from, struct bz_runq *to)
{
    uint32_t tail = bz_load_relaxed(&to->tail);           /* relaxed: we are its only writer, I2 */
    struct head own = unpack(bz_load_acquire(&to->head)); /* [B] */
    if (distance(own.steal, tail) > BZ_RUNQ_CAP / 2)
        return 0; /* half a ring might not fit */
    uint32_t first, count = claim_half(from, &first);
    if (count == 0)
        return 0;
    for (uint32_t i = 0; i + 1 < count; i++) /* phase 2 */
        bz_set(slot_at(to, tail + i), bz_get(slot_at(from, first + i)));
    bz_entry newest = bz_get(slot_at(from, first + count - 1));
    release_claim(from);
    if (count > 1)
        bz_store_release(&to->tail, (tail + count - 1) & INDEX_MASK); /* [A] */
    return newest;
}

/* ---- looking ---- */

unsigned bz_runq_count(struct bz_runq *q)
{
    struct head h = unpack(bz_load_relaxed(&q->head));             /* relaxed: a guess */
    uint32_t queued = distance(h.real, bz_load_relaxed(&q->tail)); /* relaxed: a guess */
    return queued <= BZ_RUNQ_CAP ? queued : 0;
}

uint32_t bz_runq_taken(struct bz_runq *q)
{
    return unpack(bz_load_relaxed(&q->head)).real; /* relaxed: a guess */
}

void bz_runq_check(struct bz_runq *q)
{
    struct head h = unpack(bz_load_relaxed(&q->head)); /* relaxed: nobody is at work */
    uint32_t tail = bz_load_relaxed(&q->tail);         /* relaxed: nobody is at work */
    BZ_CHECK(h.steal == h.real, "runq %p: steal %u, real %u", (void *)q, h.steal, h.real);
    BZ_CHECK(distance(h.real, tail) <= BZ_RUNQ_CAP, "runq %p: from %u to %u", (void *)q, h.real,
             tail); /* I1 */
    for (uint32_t i = h.real; i != tail; i = (i + 1) & INDEX_MASK)
        BZ_CHECK(bz_get(slot_at(q, i)) != 0, "runq %p: slot %u is empty", (void *)q, i);
}
