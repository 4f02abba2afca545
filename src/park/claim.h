/*
 * claim.h - a join that runs the child itself. claim.c has the rules.
 */
#ifndef BZ_PARK_CLAIM_H
#define BZ_PARK_CLAIM_H

#include "proc/state.h"

/* Run a claimed child on the caller's stack. In a program with C++ (bz_run_apart) it sees none of the
 * joiner's exceptions, which may come back to another thread. */
BZ_NOINLINE enum bz_ran bz_run_apart(struct bz_task *t);
static BZ_ALWAYS_INLINE enum bz_ran bz_run_child(struct bz_task *t)
{
    return bz_eh_is_used() ? bz_run_apart(t) : t->ops->run(t);
}
/* Run a child that has not started on the calling task's stack. False: nothing was done.
 * True: the child ran with result *ran, and the caller must do the loop's work after a run. */
BZ_MUST_USE bool bz_claim(struct bz_task *t, enum bz_ran *ran);
/* Run t, which the caller has claimed, on the stack of the current task. The caller must do the
 * loop's work after a run. */
enum bz_ran bz_run_here(struct bz_task *t);

/* True if the calling task's stack has the room that a child is promised. */
static BZ_ALWAYS_INLINE bool bz_claim_has_room(struct bz_machine *m)
{
    return (char *)__builtin_frame_address(0) >= m->runner->claim_low;
}

/* Drop tombstones at the front of the injector. The task just claimed may be there, still in our cache. */
void bz_claim_tidy(struct bz_machine *m);

/* Drop the tombstones that are left in the queues. Every machine has left. */
void bz_drop_tombstones_left(struct bz_runtime *rt);

#endif
