/*
 * deadlock.h - tasks wait, and no thread is left that could wake them.
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
 * Every proc of rt sleeps, and the calling monitor is about to sleep. Check whether that is for ever. If so,
 * log it with a dump, once.
 * Returns: when to check again; BZ_OS_FOREVER: never.
 */
uint64_t bz_deadlock_look(struct bz_runtime *rt, uint64_t now_ns);

/* The time of the first check. */
#define BZ_DEADLOCK_FIRST_NS 50000000

/* monitor_wake.c: a machine is about to sleep until `until`. Return until when it may sleep before it must make sure that there is a
 * monitor. Any machine, as for the next. */
uint64_t bz_deadlock_patience(struct bz_runtime *rt, uint64_t until);
void bz_deadlock_wants_monitor(struct bz_runtime *rt);

/* deadlock.c: a proc woke up: count the looks from 0 again. */
void bz_deadlock_over(struct bz_runtime *rt);

#endif
