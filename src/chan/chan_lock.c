/*
 * chan_lock.c - waiting at a channel's lock. The essay is in chan_lock.h.
 */
#include "chan/chan_lock.h"

#if !defined(BZ_PLAIN)

#if !defined(BZ_GATE_SPINS)
#define BZ_GATE_SPINS 14 /* some 20 us: then a running holder is done, or it has lost its CPU */
#endif
enum { NAP_NS = 50 * 1000, NAP_LOG2_MAX = 5 };

/* A use takes some ten nanoseconds. With more than one use in this many ns, the gate is held a good part of the
 * time. */
enum { HOT_NS_A_USE = 32 };
/* The wait before the first retry at a hot gate, in rounds of 64 pauses: some 30 us. */
enum { HOT_ROUNDS = 24, HOT_RELAX = 6 };

/* Update is_hot. The caller has waited for the gate and holds it now. */
static void take_its_temperature(struct bz_chan_lock *g, const struct bz_os *os)
{
    uint64_t now = bz_os_now(os);
    uint64_t ns = now - g->ns_seen, uses = g->uses - g->uses_seen;
    bz_store_relaxed(&g->is_hot, ns > 0 && uses > ns / HOT_NS_A_USE); /* relaxed: a hint */
    g->ns_seen = now;
    g->uses_seen = g->uses;
}

static void wait_a_round(struct bz_chan_lock *g, const struct bz_os *os, unsigned round)
{
    if (round < BZ_GATE_SPINS) {
        bz_os_relax(os, round);
        return;
    }
    unsigned log2 = round - BZ_GATE_SPINS;
    uint64_t nap = (uint64_t)NAP_NS << (log2 < NAP_LOG2_MAX ? log2 : NAP_LOG2_MAX);
    bz_os_delay(os, BZ_OS_AT_LOCK);
    (void)bz_os_wait(os, &g->lock.word, BZ_LOCK_HELD, bz_os_now(os) + nap);
}

void bz_chan_lock_wait(struct bz_chan_lock *g, const struct bz_os *os)
{
    if (bz_load_relaxed(&g->is_hot)) /* relaxed: a hint */
        for (unsigned i = 0; i < HOT_ROUNDS; i++)
            bz_os_relax(os, HOT_RELAX);
    unsigned round = 0;
    do
        wait_a_round(g, os, round++);
    /* relaxed: a check before the CAS, which has the order */
    while (bz_load_relaxed(&g->lock.word) != BZ_LOCK_FREE || !bz_chan_lock_try_(g));
    take_its_temperature(g, os);
}

#endif
