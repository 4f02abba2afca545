/*
 * monitor_wake.h - is the monitor up, and what has it seen? monitor_wake.c wakes it.
 */
#ifndef BZ_PROC_MONITOR_WAKE_H
#define BZ_PROC_MONITOR_WAKE_H

#include "proc/state.h"

/* True if the monitor can rescue a task from a next slot that its machine does not reach. Starts it
 * if need be. */
static inline bool bz_monitor_is_up(struct bz_runtime *rt)
{
    /* relaxed: monitor.c [S] */
    return BZ_LIKELY(bz_load_relaxed(&rt->monitor.state) >= BZ_MONITOR_UP) || bz_monitor_raise(rt);
}

/* The same without starting it: true if it is not up now. */
static BZ_ALWAYS_INLINE bool bz_monitor_is_down(struct bz_runtime *rt)
{
    /* relaxed: monitor.c [S] */
    return BZ_UNLIKELY(bz_below_relaxed(&rt->monitor.state, BZ_MONITOR_UP));
}

/* True if tasks have kept a proc for too long, or machines without a proc still run a hog. */
static inline bool bz_monitor_sees_hogs(struct bz_runtime *rt)
{
    return bz_load_relaxed(&rt->monitor.sees_hogs) != 0; /* relaxed: a hint */
}

static inline bool bz_monitor_is_slow(struct bz_runtime *rt)
{
    return bz_load_relaxed(&rt->monitor.state) == BZ_MONITOR_SLOW; /* relaxed: a hint */
}

#endif
