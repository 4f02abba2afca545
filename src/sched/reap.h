/*
 * reap.h - what a poll of files has completed. reap.c has the rules.
 */
#ifndef BZ_REAP_H
#define BZ_REAP_H

#include "io/poll.h"
#include "proc/state.h"

/* Deliver a wake-up; a foreign waker is called by a task of its own, as in deadlines.c. No lock is held. */
void bz_io_wake(struct bz_runtime *rt, struct bz_wake *wake);
/* Deliver the ready list: queue or wake its waiters. Returns true if there were any. */
bool bz_io_deliver(struct bz_proc *p, struct bz_reaped *reaped);
/* Poll the kernel for a proc, and deliver what is ready. Any thread; the ready list is the caller's own. */
bool bz_io_reap(struct bz_proc *p, struct bz_reaped *reaped);

#endif
