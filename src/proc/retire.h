/*
 * retire.h - procs that run no tasks: blitz_runtime_resize(). sched/retire.c has the rules.
 */
#ifndef BZ_PROC_RETIRE_H
#define BZ_PROC_RETIRE_H

#include "proc/state.h"

/* The number of procs that run tasks: those with a smaller index. */
static inline unsigned bz_procs_active(struct bz_runtime *rt)
{
    return bz_load_relaxed(&rt->idle.active); /* relaxed: retire.c [R] */
}

/* True if this proc runs no tasks, or will soon run none. */
static inline bool bz_proc_is_retired(const struct bz_proc *p)
{
    return BZ_UNLIKELY(p->index >= bz_procs_active(p->rt));
}

/* Rouse exactly this proc, retired or not: it has a task in its inbox or a new first timer. Any thread. Return false if
 * it is awake. */
bool bz_rouse_for(struct bz_proc *p);

/* retire.c: move all tasks that are queued on the machine's proc, which is retired, to other procs. In the runtime. */
void bz_retire_shed(struct bz_machine *m);
/* The machine's proc is retired: serve its timers and its files until that changes, or until the runtime ends. */
void bz_retire_serve(struct bz_machine *m);

#endif
