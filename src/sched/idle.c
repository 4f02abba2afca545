/*
 * idle.c - the idle set: no work waits while a proc sleeps, and nobody is roused for nothing.
 *
 * A proc without work searches the others' queues; at most half of them do at once, because a
 * crowd of searchers finds nothing but each other's cache lines. A proc that finds nothing
 * announces its sleep, looks at everything once more, and sleeps. Whoever publishes work looks
 * whether anybody has to be roused for it.
 *
 *      publisher                               proc that goes to sleep
 *      1  push the work                        1  set my bit, stop searching
 *      2  full fence                           2  full fence
 *      3  nobody searching? a bit set?         3  look at every queue
 *         clear the bit, rouse that proc          work? take the bit back : sleep
 *
 * Either the publisher sees the bit, or the sleeper sees the work: with a full fence between store
 * and load on both sides, they cannot both miss [F]. If the publisher sees a searcher it need not
 * rouse anybody: a searcher answers for all work published before it stops. It stops in one of two
 * ways. It finds work: then, if it was the last searcher, it does what a publisher does and sends
 * another one to look, because there may be more. It finds none: then it goes through the
 * announcement above, and its look at step 3 sees the work.
 *
 * Who is roused is counted as searching before its bit is cleared, by the publisher, who stands in
 * for it until then. (Cleared first and counted then, the roused proc could wake by itself, find
 * work and take itself out of a count it was not in yet.) A publisher that stood in and found no
 * bit to clear was a searcher that answers for nobody, and others may have trusted it meanwhile; so
 * it gives up like any searcher does: it leaves the count, fences, and looks again. BZ_BREAK 50
 * leaves that out. Clearing the bit decides who rouses: one fetch_and wins.
 *
 * This is the dull form: publishers fence. The fast form has them store only, and lets the last
 * searcher pay for both sides with a membarrier.
 *
 * I1  sleeping is the number of set bits, but for operations under way.
 * I2  A proc whose bit is clear is awake or has been roused; rousing is one-to-one with clearing.
 * I3  searching counts the procs between search (or being roused) and found (or announce).
 *
 * [F] published: fence, loads of searching and sleeper -> announce: store of the bit and of
 *     searching, fence; the store-buffer pattern, forbidden by a full fence on each side
 * [G] announce: bit release -> published: bit acquire   the sleeper has cleared its sleep word before
 *     whoever claims it sets it
 */
#include "sched/idle.h"

#include "base/bits.h"
#include "base/check.h"

void bz_idle_init(struct bz_idle *idle, unsigned procs)
{
    BZ_CHECK(procs >= 1 && procs <= BZ_PROCS_MAX, "%u procs", procs);
    idle->procs = procs;
    bz_atomic_init(&idle->searching, 0);
    bz_atomic_init(&idle->sleeping, 0);
    for (unsigned w = 0; w < BZ_IDLE_WORDS; w++)
        bz_atomic_init(&idle->sleeper[w], 0);
}

static uint64_t bit_of(unsigned proc)
{
    return UINT64_C(1) << (proc % 64);
}

/* Clear the bit. True if it was us who did. */
static bool claim(struct bz_idle *idle, unsigned proc)
{
    uint64_t was = bz_fetch_and_acquire(&idle->sleeper[proc / 64], ~bit_of(proc)); /* [G] */
    if (!(was & bit_of(proc)))
        return false;
    bz_fetch_sub_relaxed(&idle->sleeping, 1); /* relaxed: a hint, I1 */
    return true;
}

/* Claim any sleeper; BZ_NOBODY if there is none. */
static int claim_any(struct bz_idle *idle)
{
    for (unsigned w = 0; w * 64 < idle->procs; w++) {
        uint64_t bits = bz_load_relaxed(&idle->sleeper[w]); /* relaxed: the claim decides; [F] */
        while (bits != 0) {
            unsigned proc = w * 64 + bz_bits_lowest(bits);
            if (claim(idle, proc))
                return (int)proc;
            bits &= bits - 1;
        }
    }
    return BZ_NOBODY;
}

static bool has_sleeper(struct bz_idle *idle)
{
    for (unsigned w = 0; w * 64 < idle->procs; w++)
        if (bz_load_relaxed(&idle->sleeper[w]) != 0) /* relaxed: after the fence, [F] */
            return true;
    return false;
}

/* Count as the only searcher, on behalf of whoever will be claimed. False if there is one. */
static bool stand_in(struct bz_idle *idle)
{
    uint32_t none = 0;
    return bz_cas_strong_rlx_rlx(&idle->searching, &none, 1); /* relaxed: after the fence, [F] */
}

int bz_idle_published(struct bz_idle *idle)
{
    for (;;) {
        bz_fence_seqcst(); /* [F] */
        if (!has_sleeper(idle) || !stand_in(idle))
            return BZ_NOBODY; /* all are awake, or a searcher answers for it */
        int proc = claim_any(idle);
        if (proc != BZ_NOBODY)
            return proc;                           /* the count is its now, I3 */
        bz_fetch_sub_relaxed(&idle->searching, 1); /* relaxed: the fence follows, [F] */
        if (BZ_BROKEN(50))
            return BZ_NOBODY;
    }
}

bool bz_idle_search(struct bz_idle *idle)
{
    uint32_t searching = bz_load_relaxed(&idle->searching); /* relaxed: a limit, roughly kept */
    if (2 * searching >= idle->procs && searching > 0)
        return false;
    bz_fetch_add_relaxed(&idle->searching, 1); /* relaxed: a count */
    return true;
}

int bz_idle_found(struct bz_idle *idle)
{
    uint32_t was = bz_fetch_sub_relaxed(&idle->searching, 1); /* relaxed: the fence follows, [F] */
    BZ_ASSERT(was > 0);
    return was == 1 ? bz_idle_published(idle) : BZ_NOBODY;
}

void bz_idle_announce(struct bz_idle *idle, unsigned me, bool was_searching)
{
    uint64_t was = bz_fetch_or_release(&idle->sleeper[me / 64], bit_of(me)); /* [G] */
    BZ_ASSERT(!(was & bit_of(me)));
    (void)was;
    bz_fetch_add_relaxed(&idle->sleeping, 1); /* relaxed: a hint, I1 */
    if (was_searching)
        bz_fetch_sub_relaxed(&idle->searching, 1); /* relaxed: the fence follows, [F] */
    bz_fence_seqcst();                             /* [F] */
}

bool bz_idle_stay(struct bz_idle *idle, unsigned me)
{
    return claim(idle, me);
}

unsigned bz_idle_sleeping(struct bz_idle *idle)
{
    return bz_load_relaxed(&idle->sleeping); /* relaxed: a hint */
}

unsigned bz_idle_searching(struct bz_idle *idle)
{
    return bz_load_relaxed(&idle->searching); /* relaxed: a hint */
}

bool bz_idle_is_asleep(struct bz_idle *idle, unsigned proc)
{
    return (bz_load_relaxed(&idle->sleeper[proc / 64]) & bit_of(proc)) != 0; /* relaxed: a hint */
}

void bz_idle_check(struct bz_idle *idle)
{
    unsigned bits = 0;
    for (unsigned w = 0; w < BZ_IDLE_WORDS; w++)
        bits += bz_bits_count(bz_load_relaxed(&idle->sleeper[w])); /* relaxed: nobody is at work */
    BZ_CHECK(bits == bz_idle_sleeping(idle), "idle set: %u bits, says %u", bits,
             bz_idle_sleeping(idle)); /* I1 */
    BZ_CHECK(bits <= idle->procs, "idle set: %u bits for %u procs", bits, idle->procs);
    BZ_CHECK(bz_idle_searching(idle) <= idle->procs, "idle set: %u of %u procs search",
             bz_idle_searching(idle), idle->procs); /* I3 */
}
