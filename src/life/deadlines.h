/*
 * deadlines.h - callbacks at a point in time. deadlines.c has the rules.
 */
#ifndef BZ_LIFE_DEADLINES_H
#define BZ_LIFE_DEADLINES_H

#include "proc/proc_timer.h"

/* The proc for the caller's timers, which have a lock: the proc that the machine has, or had. */
static inline struct bz_proc *bz_proc_for_timers(void)
{
    return bz_machine_self()->last;
}

/* If the task exists to wake a foreign waker, wake it here and end the task. For a machine
 * on g0 that has claimed the task and has no stack for it: the waker may end the shortage. The proc
 * may be lost on return. */
BZ_MUST_USE bool bz_timer_wake_here(struct bz_task *t);
/* Wake it; if it is foreign, a task wakes it. */
void bz_waker_wake_apart(struct bz_runtime *rt, blitz_waker *w);
/* A timer of proc p, not armed yet. */
void bz_timer_init(struct bz_timer *timer, struct bz_proc *p,
                   struct bz_wake (*fire)(struct bz_timer *timer));
void bz_timer_arm(struct bz_timer *timer, uint64_t when); /* any thread */
/* Disarm it; harmless if it has fired. Returns true if it was armed. Any thread. */
bool bz_timer_disarm(struct bz_timer *timer);
/* The steps of bz_timer_arm, for a caller that does more under the lock. */
void bz_timers_lock(struct bz_proc *p);
void bz_timer_arm_locked(struct bz_timer *timer, uint64_t when);
void bz_timers_unlock(struct bz_proc *p);
/* Rouse p if it sleeps and is not the caller's: the new timer may be its first. Any thread. */
void bz_timers_armed(struct bz_proc *p);
/* Fire due timers, one batch at most; true if there were any. Any thread. A foreign waker is called
 * outside the runtime: a machine may have lost its proc on return. */
bool bz_timers_fire(struct bz_proc *p, uint64_t now);

#endif
