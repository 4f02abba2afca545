/*
 * gate.c - waiting at a channel's lock. The essay is in gate.h.
 */
#include "chan/gate.h"

#if !defined(BZ_PLAIN)

#if !defined(BZ_GATE_SPINS)
#define BZ_GATE_SPINS 14 /* some 20 us: the holder is at it, or has lost its CPU */
#endif
enum { NAP_NS = 50 * 1000, NAP_LOG2_MAX = 5 };

void bz_gate_wait(struct bz_lock *l, const struct bz_os *os)
{
    for (unsigned round = 0;; round++) {
        if (round < BZ_GATE_SPINS) {
            bz_os_relax(os, round);
        } else {
            unsigned log2 = round - BZ_GATE_SPINS;
            uint64_t nap = (uint64_t)NAP_NS << (log2 < NAP_LOG2_MAX ? log2 : NAP_LOG2_MAX);
            bz_os_delay(os, BZ_OS_AT_LOCK);
            (void)bz_os_wait(os, &l->word, BZ_LOCK_HELD, bz_os_now(os) + nap);
        }
        /* relaxed: a look before the CAS, which has the order */
        if (bz_load_relaxed(&l->word) == BZ_LOCK_FREE && bz_gate_try_(l))
            return;
    }
}

#endif
