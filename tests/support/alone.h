/*
 * alone.h - one proc, on which the order of events is a fact.
 *
 * Without this, a thread that the system does not run for 10 ms would look like a hog, and its proc
 * would move to another thread (handover.c). A test that counts on the order says here that it does
 * not mean hogs.
 */
#ifndef T_ALONE_H
#define T_ALONE_H

#include "blitz.h"
#include "monitor/monitor.h"

/* From here on no proc of this process moves because of the time its task takes. */
static inline void t_hold_procs(void)
{
    bz_hog_ns = 3600 * BLITZ_S;
}

static inline int t_run_alone(int (*fn)(void *), void *arg)
{
    t_hold_procs();
    return blitz_run(fn, arg, &(blitz_runtime_opts){.procs = 1});
}

#endif
