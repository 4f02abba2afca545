/*
 * runq.c - the run queue of a proc.
 *
 * A ring of BZ_RUNQ_CAP entries. The owner pushes at the tail; the owner and thieves take at the
 * head. A thief takes half of it at once, in three phases, because copying takes a while and
 * the owner must neither wait nor overwrite slots that are being copied:
 *
 *     claim    advance `real` past the half: it is the thief's, the owner continues behind it
 *     copy     into the thief's own ring, behind its tail, not yet visible
 *     release  let `steal` catch up with `real`: the slots may be filled again
 *
 * So the head is two indices in one word: `real`, and how far `steal` is behind it, the number of
 * slots `claimed` and not released. The owner takes at `real` and may push as far as `steal` allows.
 * While anything is claimed a thief is at work, and a second thief goes elsewhere.
 *
 *          steal      real                tail
 *       ...  |--copied--|----queued---------|  free ...
 *
 * Full: the caller takes some of the oldest entries out and gives them to the injector. If a thief is
 * still copying then, it gives the new entry too. It drops tombstones on that occasion (a joiner that claims its
 * child leaves the child's entry behind).
 *
 * The batch. The owner may take several at once, to spill them or into a private batch: the CAS, most of the cost of
 * a take, is paid once for all of them. Others cannot reach the entries of a batch. So it is half plus one
 * at most, and the monitor empties the batch of an owner that does not come back to it.
 *
 * Lone. A runtime of one proc has no thieves, and its owner uses a store instead of the CAS.
 *
 * Rejected:
 *  - a mutex: every push would pay for a rare thief;
 *  - a growing deque: freeing the old array under a reader needs reclamation. And a bound is wanted anyhow: others
 *    should see the spilled entries;
 *  - a sweep that takes tombstones out of a full ring in place: it held thieves up, and looked at each entry again
 *    and again. Dropping those that are spilled is as good;
 *  - one head index: a thief would have to copy before it claims, and throw the copy away when it loses;
 *  - two full indices in the head, 16 or 32 bits each. 16 bits wrap while a thief is descheduled, after 65536
 *    takes, and its claim succeeds on a ring that has moved on. 32 bits wrap after four billion takes, which is half a
 *    minute of them. A count needs few bits and leaves the index 53, which wrap after years.
 *
 * I1  tail - steal <= CAP; steal = real - claimed. Indices run free and wrap; compare differences.
 * I2  Only the owner writes tail and slots. [steal, real) belongs to one thief, [real, tail) to
 *     the queue.
 * I3  While steal != real, only that thief changes steal; the owner changes real alone.
 * I4  Of a lone ring others read only the count.
 * I5  The indices of a lone ring do not wrap: its owner calls bz_runq_rebase_lone() with its other duties (sched/find.c).
 *
 * [A] push: tail release -> steal: tail acquire     a slot is filled before it can be claimed
 * [B] release: head release -> push: head acquire   a slot is copied before it is filled again
 * [C] advance, release: head release -> claim: head acquire   a thread that sees the head moved sees a
 *     tail at least as far. The owner takes only entries it pushed, and a thief releases only after it
 *     saw the tail. So tail - real is never negative for the next thief
 */
#include "queue/runq.h"

#include <assert.h>

static_assert(BZ_RUNQ_BITS > BZ_RUNQ_LOG2, "indices can tell full from empty");
static_assert(BZ_RUNQ_BITS + BZ_RUNQ_LOG2 + 1 <= 64, "a claim of the whole ring can be counted");

void bz_runq_init(struct bz_runq *q, bool is_lone)
{
    bz_atomic_init(&q->head, 0);
    bz_atomic_init(&q->tail, 0);
    q->is_lone = is_lone;
}

/* ---- the owner ---- */

/* Return how many of `queued` entries the owner may take at once. */
static unsigned handful(struct bz_runq *q, uint64_t queued, unsigned max)
{
    if (!q->is_lone && queued > 0)
        queued = queued / 2 + 1;
    return queued < max ? (unsigned)queued : max;
}

unsigned bz_runq_take_some(struct bz_runq *q, bz_entry *out, unsigned max)
{
    uint64_t tail = bz_load_relaxed(&q->tail); /* relaxed: we are its only writer, I2 */
    for (;;) {
        uint64_t seen = bz_load_relaxed(&q->head); /* relaxed: a guess, the CAS decides */
        uint64_t real = bz_runq_real(seen);
        unsigned n = handful(q, bz_runq_queued(seen, tail), max);
        if (n == 0)
            return 0;
        if (!bz_runq_advance(q, seen, n))
            continue;
        for (unsigned i = 0; i < n; i++)
            out[i] = bz_get(bz_runq_slot(q, real + i));
        return n;
    }
}

unsigned bz_runq_take_first_runs(struct bz_runq *q, bz_entry *out, unsigned max)
{
    uint64_t tail = bz_load_relaxed(&q->tail); /* relaxed: we are its only writer, I2 */
    uint64_t seen = bz_load_relaxed(&q->head); /* relaxed: a guess, the CAS decides */
    unsigned most = handful(q, bz_runq_queued(seen, tail), max), n = 0;
    for (; n < most; n++) {
        out[n] = bz_get(bz_runq_slot(q, seen + n)); /* slots are ours to write: I2 */
        if (bz_entry_tag(out[n]) != BZ_ENTRY_FIRST)
            break;
    }
    return n > 0 && bz_runq_advance(q, seen, n) ? n : 0;
}

/* ---- thieves ---- */

/* Phase 1. Returns how many were claimed, the first at *first; 0 if there is nothing to steal. */
static unsigned claim_half(struct bz_runq *from, uint64_t *first)
{
    uint64_t seen = bz_load_acquire(&from->head); /* [C] */
    for (;;) {
        if (bz_runq_claimed(seen) > 0)
            return 0; /* another thief is at work */
        uint64_t queued = bz_runq_queued(seen, bz_load_acquire(&from->tail)); /* [A] */
        uint64_t half = queued - queued / 2, real = bz_runq_real(seen);
        if (queued == 0)
            return 0;
        if (bz_cas_weak_acq_acq(&from->head, &seen, bz_runq_pack(half, real + half))) { /* [C] */
            *first = real;
            return (unsigned)half;
        }
    }
}

/* Phase 3: steal catches up with real, which the owner may have advanced meanwhile. */
static void release_claim(struct bz_runq *from)
{
    uint64_t seen = bz_load_relaxed(&from->head); /* relaxed: a first guess, the CAS decides */
    do {
        BZ_ASSERT(bz_runq_claimed(seen) > 0);                               /* I3 */
    } while (!bz_cas_weak_rel_rlx(&from->head, &seen, bz_runq_real(seen))); /* [B] [C] */
}

bz_entry bz_runq_steal(struct bz_runq *from, struct bz_runq *to)
{
    BZ_ASSERT(!from->is_lone);                  /* I4 */
    uint64_t tail = bz_load_relaxed(&to->tail); /* relaxed: we are its only writer, I2 */
    uint64_t head = bz_load_acquire(&to->head); /* [B] */
    if (bz_runq_queued(head, tail) + bz_runq_claimed(head) > BZ_RUNQ_CAP / 2)
        return 0; /* half of a full ring might not fit */
    uint64_t first;
    unsigned count = claim_half(from, &first);
    if (count == 0)
        return 0;
    for (unsigned i = 0; i + 1 < count; i++) /* phase 2 */
        bz_set(bz_runq_slot(to, tail + i), bz_get(bz_runq_slot(from, first + i)));
    bz_entry newest = bz_get(bz_runq_slot(from, first + count - 1));
    release_claim(from);
    if (count > 1)
        bz_store_release(&to->tail, (tail + count - 1) & BZ_RUNQ_MASK); /* [A] */
    return newest;
}

/* ---- looking ---- */

unsigned bz_runq_count(struct bz_runq *q)
{
    uint64_t head = bz_load_relaxed(&q->head);                         /* relaxed: a guess */
    uint64_t queued = bz_runq_queued(head, bz_load_relaxed(&q->tail)); /* relaxed: a guess */
    return queued <= BZ_RUNQ_CAP ? (unsigned)queued : 0;
}

uint32_t bz_runq_taken(struct bz_runq *q)
{
    return (uint32_t)bz_runq_real(bz_load_relaxed(&q->head)); /* relaxed: a guess */
}

void bz_runq_check(struct bz_runq *q)
{
    uint64_t head = bz_load_relaxed(&q->head); /* relaxed: no thread is at work */
    uint64_t tail = bz_load_relaxed(&q->tail); /* relaxed: no thread is at work */
    unsigned long long real = bz_runq_real(head), claimed = bz_runq_claimed(head);
    BZ_CHECK(claimed == 0, "runq %p: %llu claimed before %llu", (void *)q, claimed, real);
    BZ_CHECK(bz_runq_queued(head, tail) <= BZ_RUNQ_CAP, "runq %p: from %llu to %llu", (void *)q,
             real, (unsigned long long)tail); /* I1 */
    for (uint64_t i = real; i != tail; i = (i + 1) & BZ_RUNQ_MASK)
        BZ_CHECK(bz_get(bz_runq_slot(q, i)) != 0, "runq %p: slot %llu is empty", (void *)q,
                 (unsigned long long)i);
}
