/*
 * deadlock.h - tasks wait, and nobody is left who could wake them.
 *
 * deadlock.c has the rule. The monitor asks when it is about to sleep for good.
 */
#ifndef BZ_DEADLOCK_H
#define BZ_DEADLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bz_atomic.h"

struct bz_runtime;

struct bz_deadlock {
    unsigned looks;               /* in this spell of idleness; the monitor's, as is the next */
    bool is_reported;             /* once is enough */
    bz_atomic(uint32_t) is_blind; /* there is no monitor to be had: no report */
};

/*
 * Every proc of rt sleeps and the monitor, which calls, is about to: is that for ever? If so, it is
 * logged with a dump, once.
 * Returns: when to ask again; BZ_OS_FOREVER: no more.
 */
uint64_t bz_deadlock_look(struct bz_runtime *rt, uint64_t now_ns);

/* A machine is about to sleep until then: how long may it, before it sees to it that there is a
 * monitor to ask? Any machine, as for the next. */
uint64_t bz_deadlock_patience(struct bz_runtime *rt, uint64_t until);
void bz_deadlock_wants_monitor(struct bz_runtime *rt);

/* Somebody woke up: the next spell begins anew. */
void bz_deadlock_over(struct bz_runtime *rt);

#endif
