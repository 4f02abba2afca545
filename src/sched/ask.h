/*
 * ask.h - a task that has run for long is asked to let others run.
 *
 * The monitor raises a flag in the machine; blitz/yield.h and the calls that may wait look at it.
 * ask.c has the rules.
 */
#ifndef BZ_ASK_H
#define BZ_ASK_H

#include <stdbool.h>

#include "blitz/yield.h"

struct bz_machine;

/* The task on that machine shall let others run, when it next looks. Any thread; the machine is not
 * freed meanwhile. */
void bz_machine_ask(struct bz_machine *m);

/* May the thread be taken away from the task that runs on it, here and now? Asked by that thread, in
 * user code or a signal handler that interrupted it. */
bool bz_machine_may_interrupt(struct bz_machine *m);

/* At the end of a call that may wait and did not: let others run if it is time. In a task or on a
 * plain thread, in user code. */
static inline void bz_look_up(void)
{
    blitz_poll_();
}

#endif
