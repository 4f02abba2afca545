/*
 * loop.h - the loop of a machine: find a task, switch to it. machine.c, find.c and search.c have the rules.
 */
#ifndef BZ_SCHED_LOOP_H
#define BZ_SCHED_LOOP_H

#include "proc/state.h"

/* The functions of rt->mains: the thread of a machine, and the bottom of a stack for one task. */
void bz_machine_main(void *arg);
void bz_class_main(void *arg);

/* ---- switching: machine.c ---- */

/* Leave the stack of the current task; hook(arg) runs after the switch. Returns when the task is
 * resumed, perhaps on another machine. */
void bz_suspend(bz_ctx_hook *hook, void *arg);
/* Park the current task until it is woken. Return at once if it was woken since it last ran. */
void bz_park(void);
/* On g0: resume a task that has a stack. Returns when the machine switches back to g0. */
void bz_resume_from_home(struct bz_machine *m, struct bz_task *t);
/* blitz_yield without its fast path. */
void bz_yield(void);
/* Start t on m, a guest with a spare stack. Call from a plain thread. Returns when t has ended or
 * waits. */
void bz_guest_run(struct bz_machine *m, struct bz_task *t);
/* Park or requeue a task that returned before its end and has no stack. */
void bz_task_set_aside(struct bz_task *t, enum bz_ran ran);

/* ---- choosing: find.c, search.c ---- */

/* Take an entry from its own slot, batch or ring; 0 if all are empty. */
bz_entry bz_take_own(struct bz_machine *m);
/* Take an entry without stealing or sleeping; 0 if there is none. */
bz_entry bz_find_near(struct bz_machine *m);
/* Do the duties that are due: they cost one turn in many. Between bz_enter and bz_leave, with a proc, which may be lost.
 * Return false if none is due. *e: the entry to run next, or 0. */
BZ_MUST_USE bool bz_find_duties(struct bz_machine *m, bz_entry *e);
/* Return the next task to run on this machine; sleep if there is none. 0: the runtime ends, or the
 * machine has lost its proc. */
bz_entry bz_find(struct bz_machine *m);
/* Take a batch from the injector: return one entry, push the rest on the ring. */
bz_entry bz_take_injected(struct bz_machine *m);
/* Steal from other machines, unless enough searchers do so already; 0 if there was nothing. */
bz_entry bz_search(struct bz_machine *m);
/* Sleep until work arrives. False: another machine took the proc meanwhile. */
BZ_MUST_USE bool bz_go_to_sleep(struct bz_machine *m);

#endif
