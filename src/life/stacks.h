/*
 * stacks.h - stacks for machines and for tasks that begin. stacks.c has the rules.
 */
#ifndef BZ_LIFE_STACKS_H
#define BZ_LIFE_STACKS_H

#include "proc/state.h"

/* True if the system has refused a stack, and not given one since. A hint. */
static inline bool bz_is_short(struct bz_runtime *rt)
{
    return bz_load_relaxed(&rt->tasks.is_short) != 0; /* relaxed: a hint */
}

/* Traits for a new task: while stacks are short, the task starts on a stack that its spawn has
 * taken. */
static inline unsigned bz_reserve_traits(struct bz_runtime *rt)
{
    return BZ_UNLIKELY(bz_is_short(rt)) ? BZ_TASK_CLASS | BZ_TASK_STAYS : 0;
}

/* While stacks are short: a machine that goes to sleep gives its unused stacks to the pool. */
void bz_machine_share_stacks(struct bz_machine *m);
/* Make sure of a spare stack; false if none is available. */
BZ_MUST_USE bool bz_machine_has_spare(struct bz_machine *m);
/* Stacks are not short any more, or the runtime ends. */
void bz_shortage_ends(struct bz_runtime *rt);
/* Take the stack for a task whose class differs from the runtime's, or give it back if the task
 * does not start. Any thread. */
BZ_MUST_USE int bz_task_take_stack(struct bz_task *t);
void bz_task_give_stack(struct bz_task *t);
/* Let t, which has no stack, begin on s. The caller has claimed t. */
void bz_task_begin_on(struct bz_task *t, struct bz_stack *s);

#endif
