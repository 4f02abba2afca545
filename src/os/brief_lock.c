/*
 * brief_lock.c - waiting at a lock that is dropped by a store. The essay is in brief_lock.h.
 */
#include "os/brief_lock.h"

#if !defined(BZ_PLAIN)

/* Some 20 us: then a running holder is done, or it has lost its CPU. Models make it small. */
#if !defined(BZ_BRIEF_SPINS)
#define BZ_BRIEF_SPINS 14
#endif
enum { NAP_NS = 50 * 1000, NAP_DOUBLINGS = 5 };

static void wait_a_round(struct bz_lock *l, const struct bz_os *os, unsigned round)
{
    if (round < BZ_BRIEF_SPINS) {
        bz_os_relax(os, round);
        return;
    }
    unsigned naps = round - BZ_BRIEF_SPINS;
    uint64_t nap = (uint64_t)NAP_NS << (naps < NAP_DOUBLINGS ? naps : NAP_DOUBLINGS);
    bz_os_delay(os, BZ_OS_AT_LOCK);
    (void)bz_os_wait(os, &l->word, BZ_LOCK_HELD, bz_os_now(os) + nap);
}

void bz_brief_wait(struct bz_lock *l, const struct bz_os *os)
{
    unsigned round = 0;
    do
        wait_a_round(l, os, round++);
    /* relaxed: a check before the CAS, which has the order */
    while (bz_load_relaxed(&l->word) != BZ_LOCK_FREE || !bz_brief_grab_(l));
}

#endif
