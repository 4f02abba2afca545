/*
 * first.c - the lowest index that was found: what stops a search that can end early.
 *
 * The spans of blitz/iter_find.h go through their indexes in order, and look every 64 elements whether what
 * they look for is still wanted: any of it was found (find_any), or an index below theirs (find_first,
 * try_for_each). What they look at is one word, the lowest index found so far; it only ever falls.
 *
 * So the lowest index is always found: nobody leaves a span whose next index is below the word, and the
 * word is never below the lowest one. What is above is left as soon as it is seen; to see it late
 * costs time and nothing else, and the result is read when all have been joined. So every access is
 * relaxed.
 *
 * Rejected: to stop the loop by a result (blitz_for() does that for find_any as well): it stops chunks
 * below, too, and the lowest index of those that ran is not the lowest there is.
 *
 * I1  at_ falls, or stays.
 */
#include "base/bz_atomic.h"
#include "base/compiler.h"
#include "blitz/iter_find.h"

void blitz_first_found_(struct blitz_first_ *first, size_t at)
{
    bz_atomic(uintptr_t) *word = (bz_atomic(uintptr_t) *)&first->at_;
    uintptr_t lowest = bz_load_relaxed(word); /* relaxed: a first guess, the CAS decides */
    while (at < lowest || BZ_BROKEN(135)) {
        if (BZ_BROKEN(136))
            return;
        /* relaxed: a hint while the loop runs, and its joins order the rest */
        if (bz_cas_weak_rlx_rlx(word, &lowest, at))
            return; /* I1 */
    }
}
