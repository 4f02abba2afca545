/*
 * counters.h - events on a proc, counted by its machine with plain stores.
 *
 * One list defines the fields here, those of blitz/stats.h (stats.c checks one against the other) and
 * the sums. A counter is an atomic only so that other threads may read it while it changes. Its one
 * writer adds without a lock (arch/own.h). Threads without a
 * proc count their events (they rouse machines) in a separate set, by RMW.
 */
#ifndef BZ_COUNTERS_H
#define BZ_COUNTERS_H

#include <stdint.h>

#include "arch/own.h"
#include "base/bz_atomic.h"

#define BZ_COUNTERS(X)    \
    X(run)                \
    X(parked)             \
    X(yielded)            \
    X(switches)           \
    X(claimed)            \
    X(next_hits)          \
    X(injector_batches)   \
    X(injected)           \
    X(searches)           \
    X(steals)             \
    X(stolen)             \
    X(sleeps)             \
    X(wakes)              \
    X(useless_wakes)      \
    X(forks_shared)       \
    X(jobs_stolen)        \
    X(jobs_evacuated)     \
    X(joins_suspended)    \
    X(joins_out_of_order) \
    X(calls_moved)        \
    X(calls_regained)

#define BZ_COUNTER_FIELD_(name) bz_atomic(uint64_t) name;
struct bz_counters {
    BZ_COUNTERS(BZ_COUNTER_FIELD_)
    /* One counter that stands for several, so that a fast path counts once: stats.c. */
    bz_atomic(uint64_t) turns; /* yields to a task at hand: run, yielded, switches */
    bz_atomic(uint64_t)
        loops; /* yields of a stackless task to one that its loop calls: run, yielded */
    bz_atomic(uint64_t) relays; /* parks with a switch to a task at hand: run, parked, switches */
};

/* Add n to a counter of our own proc. */
#define bz_count_many(set, name, n) bz_own_add(&(set)->name, n)
#define bz_count(set, name) bz_count_many(set, name, 1)

/* The same for the set that threads without a proc share. */
#define bz_count_many_shared(set, name, n) \
    ((void)bz_fetch_add_relaxed(&(set)->name, (uint64_t)(n))) /* relaxed: statistics */
#define bz_count_shared(set, name) bz_count_many_shared(set, name, 1)

static inline void bz_counters_init(struct bz_counters *c)
{
#define BZ_COUNTER_INIT_(name) bz_atomic_init(&c->name, 0);
    BZ_COUNTERS(BZ_COUNTER_INIT_)
    BZ_COUNTER_INIT_(turns)
    BZ_COUNTER_INIT_(loops)
    BZ_COUNTER_INIT_(relays)
#undef BZ_COUNTER_INIT_
}

#endif
