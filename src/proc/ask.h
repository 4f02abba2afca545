/*
 * ask.h - a task that has run for long is asked to let others run.
 *
 * The monitor raises a flag in the machine; blitz/yield.h and the calls that may wait look at it.
 * ask.c has the rules.
 */
#ifndef BZ_ASK_H
#define BZ_ASK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "blitz/yield.h"

struct bz_machine;
struct bz_proc;

/* Ask the task on that machine to let others run, when it next looks. Any thread; the machine is not
 * freed meanwhile. */
void bz_machine_ask(struct bz_machine *m);
/* The same, if it is still at the run that began with that tick of that proc. */
void bz_machine_ask_run(struct bz_machine *m, const struct bz_proc *p, uint32_t tick);

/* True if the flag was meant for an earlier task on this machine, which has ended or waits. */
bool bz_ask_is_stale(struct bz_machine *m, uintptr_t asked);

/* True if the task on this thread may be interrupted here and now. Called by that thread, in user code or in
 * a signal handler that interrupted it. */
bool bz_machine_may_interrupt(struct bz_machine *m);

/* Let other tasks run if the flag is up. For every call that may wait, because it may also return at once. A call
 * that gives the caller something that others may want (a lock, a permit) looks before it does so; other calls look
 * at their end. Not in try_ calls, which never suspend. In a task or on a plain thread, in user code, with no lock
 * of ours held. */
static inline void bz_look_up(void)
{
    blitz_poll_();
}

/* True if bz_look_up() has something to do. For a fast path that makes its calls at its ends only. */
static BZ_ALWAYS_INLINE bool bz_must_look_up(void)
{
    return BZ_UNLIKELY(blitz_poll_is_due_());
}

#endif
