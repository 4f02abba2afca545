/*
 * finish.h - the end of a task. finish.c has the rules.
 */
#ifndef BZ_FINISH_H
#define BZ_FINISH_H

#include "life/spawn.h"
#include "proc/enter.h"
#include "proc/state.h"

/* The task has ended and is marked: wake its joiners, and drop `refs` references. */
void bz_task_wake_joiners(struct bz_task *t, unsigned refs);

/* Keep the header of a task that no thread refers to, if it is a fiber's, as most are. False: drop it. */
static BZ_ALWAYS_INLINE bool bz_task_is_kept(struct bz_machine *m, struct bz_task *t)
{
    return BZ_LIKELY(t->ops == &bz_fiber_ops) && bz_task_stash(&m->proc->tasks, t);
}

/* Complete a task that has returned. The caller gives up `refs` references with it: one step if no task waits. Inline:
 * a call costs a join that runs its child 20 of 560 instructions. */
static BZ_ALWAYS_INLINE void bz_task_complete(struct bz_task *t, unsigned refs)
{
    struct bz_runtime *rt = t->rt;
    uint32_t was;
    struct bz_machine *m = bz_machine_self(); /* one of ours, with a proc or without */
    bool has_proc = bz_enter_on(m, &was);     /* once for all that follows */
    bz_os_delay(rt->os, BZ_OS_AT_PUBLISH);
    switch (bz_word_exit(&t->word, refs)) {
    case BZ_EXIT_TELL:
        bz_task_wake_joiners(t, refs);
        break;
    case BZ_EXIT_LAST:
        if (!has_proc || !bz_task_is_kept(m, t))
            t->ops->drop(t);
        break;
    case BZ_EXIT_DONE:
        break;
    }
    bz_task_strike(rt); /* after that the runtime may end, but for its machines */
    bz_leave_on(m, was);
}

/* finish.c: its `run` returned BZ_RAN_DONE. */
void bz_task_finish(struct bz_task *t);

#endif
