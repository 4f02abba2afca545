/*
 * now.h - the time, as far as a machine knows it without a system call.
 */
#ifndef BZ_PROC_NOW_H
#define BZ_PROC_NOW_H

#include "proc/state.h"

/* The approximate time for a new task of rt. A plain thread reads the clock, because the last
 * update may be old. */
static inline uint32_t bz_age_here(struct bz_runtime *rt)
{
    struct bz_machine *m = bz_machine_self();
    if (m == NULL || m->rt != rt)
        bz_age_update(&rt->clock, bz_os_now(rt->os));
    return bz_age_now(&rt->clock);
}

/*
 * True if the time `when` has passed. Programs create millions of timers, and nearly all are far ahead. For those
 * the machine's last reading of the clock is enough, and the clock is not read (25 ns of the 80 that a timer took).
 * If a task has run for longer than BZ_FAR_NS, the answer may be "no" for a time that has just passed; a timer
 * for that time fires at the next check. A plain thread reads the clock of `os`.
 */
#define BZ_FAR_NS (100 * UINT64_C(1000000))

static inline uint64_t bz_machine_now(struct bz_machine *m)
{
    if (BZ_UNLIKELY(m->now_ns == 0))
        m->now_ns = bz_os_now(m->time); /* its first task */
    return m->now_ns;
}

static inline bool bz_has_passed(const struct bz_os *os, uint64_t when)
{
    struct bz_machine *m = bz_machine_self();
    if (when == BLITZ_FOREVER)
        return false;
    if (BZ_UNLIKELY(m == NULL))
        return bz_os_now(os) >= when;
    return when <= bz_machine_now(m) + BZ_FAR_NS && bz_os_now(m->time) >= when;
}

/* The time for the caller's deadlines: on a machine its runtime's, elsewhere the system's. */
static inline uint64_t bz_time_here(void)
{
    struct bz_machine *m = bz_machine_self();
    return bz_os_now(m != NULL ? m->time : bz_os_outside());
}

#endif
