/*
 * proc_timer.h - a timer in the wheel of a proc. life/deadlines.h has its operations.
 */
#ifndef BZ_PROC_TIMER_H
#define BZ_PROC_TIMER_H

#include "proc/state.h"

/* A callback at a point in time. Its memory belongs to the waiting frame. */
struct bz_timer {
    struct bz_wheel_timer in; /* proc->wheel while armed; guarded by the proc's timer_lock */
    struct bz_proc *proc;     /* its proc; constant while armed */
    /* Called once, under the lock, when the timer is due. The timer is no longer armed then, and
     * its memory may be gone as soon as the lock is dropped. Returns the wake-up to deliver, or
     * BZ_WAKE_NONE. */
    struct bz_wake (*fire)(struct bz_timer *timer);
};

/* When the first timer of the proc is due. A hint for other threads. */
static inline uint64_t bz_timers_first(struct bz_proc *p)
{
    return bz_load_relaxed(&p->timer_first); /* relaxed: its machine armed those that matter */
}

#endif
