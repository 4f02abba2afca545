/*
 * retake.c - the slow halves: a machine that comes back while the monitor takes, and the taker's side.
 *
 * The design, its invariant and its pairings are in retake.h. The code here is rare: the monitor
 * takes from a proc only if the proc has run one task during two looks of the monitor.
 *
 * The machine spins while the monitor takes from it. It spins for the length of a barrier at most,
 * tens of microseconds, and only if it comes back in just that moment. Sleeping and being
 * woken would take longer than most of these waits.
 *
 * Rejected: a CAS on `where` by both sides (9.4 ns each time a task is entered and left, instead of
 * 1.3), and a fence in enter (8.8). A fence on the taker's side alone is not enough: 465 violations
 * in 144,000 rounds of a small program.
 */
#include "queue/retake.h"

void bz_retake_init(struct bz_retake *r, const struct bz_os *os, bool fences)
{
    bz_atomic_init(&r->where, BZ_IN_RUNTIME);
    bz_atomic_init(&r->retake, BZ_TAKING_NONE);
    r->fences = fences;
    r->os = os;
}

bool bz_retake_wait(struct bz_retake *r)
{
    for (unsigned round = 0;; round++) {
        uint32_t retake = bz_load_acquire(&r->retake); /* [B] */
        if (retake == BZ_TAKING_NONE)
            return true;
        /* relaxed: no thread waits for it. I2: it may be asked once more, before we know */
        if (retake == BZ_TAKING_GONE && bz_cas_strong_rlx_rlx(&r->retake, &retake, BZ_TAKING_NONE))
            return false;
        bz_os_relax(r->os, round);
    }
}

bool bz_retake_ask(struct bz_retake *r)
{
    uint32_t was =
        bz_xchg_relaxed(&r->retake, BZ_TAKING_ASKED); /* relaxed: a barrier follows, [C] */
    return was == BZ_TAKING_GONE;
}

bool bz_retake_may(struct bz_retake *r)
{
    uint32_t where = bz_load_acquire(&r->where); /* [A] [C] */
    return where != BZ_IN_RUNTIME && where != BZ_IN_BRIEF;
}

void bz_retake_outlast_brief(struct bz_retake *r)
{
    for (unsigned round = 0; bz_load_acquire(&r->where) == BZ_IN_BRIEF; round++) /* [W] [E] */
        bz_os_relax(r->os, round);
}

void bz_retake_end(struct bz_retake *r, bool is_gone)
{
    bz_store_release(&r->retake, is_gone ? BZ_TAKING_GONE : BZ_TAKING_NONE); /* [B] */
}
