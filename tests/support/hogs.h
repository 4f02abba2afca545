/*
 * hogs.h - tasks that burn, and checks on them from outside.
 */
#ifndef T_HOGS_H
#define T_HOGS_H

#include "harness.h"

#include <sched.h>
#include <stdatomic.h>

#include "proc/state.h"

struct t_hog {
    atomic_ullong turns;             /* grows while it runs */
    atomic_bool is_over;             /* it shall return */
    _Atomic(struct bz_machine *) on; /* the machine it burns on, once it does */
};

/* The burning itself: one loop, and no call in it. */
static __attribute__((unused, noinline)) void t_hog_burn(struct t_hog *h)
{
    while (!atomic_load_explicit(&h->is_over, memory_order_relaxed))
        atomic_fetch_add_explicit(&h->turns, 1, memory_order_relaxed);
}

static inline struct bz_machine *t_hog_machine(struct t_hog *h)
{
    struct bz_machine *m;
    while ((m = atomic_load(&h->on)) == NULL || atomic_load(&h->turns) == 0)
        sched_yield();
    return m;
}

/* Return once it has got on. */
static inline void t_hog_until_it_runs(struct t_hog *h)
{
    unsigned long long before = atomic_load(&h->turns);
    while (atomic_load(&h->turns) == before)
        sched_yield();
}

#endif
