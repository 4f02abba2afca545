/*
 * first.c - the lowest index found so far, which stops a search early.
 *
 * The spans of blitz/iter_find.h scan their indexes in order. Every 64 elements they check whether
 * the search can stop: because any match was found (find_any), or one with a lower index
 * (find_first, try_for_each). They check one word, the lowest index found so far; it never rises.
 *
 * So the lowest index is always found: no worker leaves a span whose next index is below the word,
 * and the word is never below the lowest match. Workers above the word stop when they see it. A
 * late read only costs time, and the result is read after all joins. So every access is relaxed.
 *
 * Rejected: stopping the loop by a result (as blitz_for() does, also for find_any). It stops lower
 *           chunks, too, so the lowest match of the chunks that ran need not be the lowest match.
 *
 * I1  at_ never rises.
 */
#include "base/bz_atomic.h"
#include "base/compiler.h"
#include "blitz/iter_find.h"

void blitz_first_found_(struct blitz_first_ *first, size_t at)
{
    bz_atomic(uintptr_t) *word = (bz_atomic(uintptr_t) *)&first->at_;
    uintptr_t lowest = bz_load_relaxed(word); /* relaxed: a first guess, the CAS decides */
    while (at < lowest) {
        /* relaxed: a hint while the loop runs, and its joins order the rest */
        if (bz_cas_weak_rlx_rlx(word, &lowest, at))
            return; /* I1 */
    }
}
