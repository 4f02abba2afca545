/*
 * place.h - queue a task, rouse a proc, start a thread for it. place.c, rouse.c and start.c have the rules.
 */
#ifndef BZ_PROC_PLACE_H
#define BZ_PROC_PLACE_H

#include "proc/enter.h"
#include "proc/monitor_wake.h"
#include "proc/state.h"

/* An urgent task waits in the injector: check the injector after the current run. */
static inline void bz_proc_hurry(struct bz_proc *p)
{
    bz_pace_hurry(&p->pace);
    bz_tick_hurry(&p->tick);
}

static inline bool bz_next_is_set(struct bz_proc *p)
{
    return bz_load_relaxed(&p->next) != 0; /* relaxed: ours to touch */
}

/* Start a thread for a proc that is STARTING. On error it stays STARTING. Under start_lock. */
BZ_MUST_USE int bz_machine_start(struct bz_proc *p, bool is_searching);
/* The same for any caller: 0, also if the runtime ends; on error the proc is an ORPHAN. */
BZ_MUST_USE int bz_proc_start(struct bz_proc *p, bool is_searching);
/* Queue a task that has become runnable and is in no queue, and rouse a proc if needed. Any
 * thread. */
void bz_place(struct bz_runtime *rt, bz_entry e);
/* Queue a task that must start on that proc. */
void bz_place_on(struct bz_runtime *rt, unsigned proc, bz_entry e);
/* Rouse a proc that the idle set has chosen, or start its thread; BZ_NOBODY: do nothing. */
void bz_rouse(struct bz_runtime *rt, int proc);
/* Other procs can take new work: rouse one if needed. */
void bz_rouse_one(struct bz_runtime *rt);
/* rouse.c: several tasks were queued at once: rouse a proc, unless this proc reaches them soon. */
void bz_rouse_for_batch(struct bz_machine *m);
/* ... A searcher has found a task, or a forked job, and runs it: stop counting it as a searcher. */
void bz_search_ended(struct bz_machine *m, bool is_job);
/* Drop the tombstones at the injector's front. Returns how many. */
unsigned bz_tidy_injector(struct bz_runtime *rt);
/* A tombstone was taken from a queue: drop its reference. */
void bz_drop_tombstone(bz_entry e);
/* Push although the machine's ring is full: spill its oldest entries to the injector. Rouses. */
void bz_push_full(struct bz_machine *m, bz_entry e);

/* Push on the machine's own ring. Rouses no proc, unless the ring was full. */
static inline void bz_push_here(struct bz_machine *m, bz_entry e)
{
    if (BZ_UNLIKELY(!bz_runq_try_push(&m->proc->ring, e)))
        bz_push_full(m, e);
}

/* The same, and rouse a proc that may take it. The object of e may be gone on return. */
static BZ_ALWAYS_INLINE void bz_push_for_all(struct bz_machine *m, bz_entry e)
{
    struct bz_runtime *rt = m->rt;
    if (BZ_UNLIKELY(!bz_runq_try_push(&m->proc->ring, e)))
        bz_push_full(m, e);
    else if (BZ_UNLIKELY(bz_idle_may_rouse(&rt->idle)))
        bz_rouse_one(rt);
}

void bz_place_evicted(struct bz_machine *m, bz_entry e); /* the same, not inline */

/* The end of a fast path that has put a task into the `next` slot: queue the task that was there, and leave the runtime.
 * Returns: 0. */
int bz_place_evicts(struct bz_machine *m, bz_entry old);

/* bz_place on the caller's machine m, which is of the task's runtime. In the runtime. */
static BZ_ALWAYS_INLINE void bz_place_near(struct bz_machine *m, bz_entry e)
{
    struct bz_proc *p = m->proc;
    bz_entry old = e;
    if (bz_monitor_is_up(m->rt) && !bz_is_plain(m->rt)) {
        old = bz_load_relaxed(&p->next); /* relaxed: ours to touch */
        bz_store_relaxed(&p->next, e);   /* relaxed: likewise */
    }
    if (old != 0)
        bz_place_evicted(m, old);
}

/* bz_place of a task of the fast form, by m, the calling machine, which is of the task's runtime. */
static BZ_ALWAYS_INLINE void bz_place_by(struct bz_machine *m, bz_entry e)
{
#if !defined(BZ_MODEL) /* it has a toy scheduler, behind bz_place */
    uint32_t was;
    bool has_proc = bz_enter_on(m, &was);
    bz_os_delay(m->rt->os, BZ_OS_AT_PUBLISH);
    if (BZ_LIKELY(has_proc && bz_monitor_is_up(m->rt))) {
        struct bz_proc *p = m->proc;
        bz_entry old = bz_load_relaxed(&p->next); /* relaxed: ours to touch */
        bz_store_relaxed(&p->next, e);            /* relaxed: likewise */
        if (BZ_UNLIKELY(old != 0))
            bz_place_evicted(m, old);
        bz_leave_on(m, was);
        return;
    }
    bz_leave_on(m, was);
#endif
    bz_place(m->rt, e);
}

/* The same, if the machine is in user code and nothing unusual holds. False: nothing was done. */
BZ_MUST_USE static BZ_ALWAYS_INLINE bool bz_place_usual(struct bz_machine *m, bz_entry e)
{
#if !defined(BZ_MODEL) && !defined(BZ_PLAIN)
    if (BZ_UNLIKELY(!bz_retake_is_away(&m->taken)))
        return false;
    bool is_in = bz_retake_enter_usual(&m->taken);
    struct bz_proc *p = m->proc;
    if (BZ_UNLIKELY(!is_in || p == NULL || bz_monitor_is_down(m->rt))) {
        bz_leave_on(m, BZ_IN_USER);
        return false;
    }
    bz_os_delay(m->rt->os, BZ_OS_AT_PUBLISH);
    bz_entry old = bz_load_relaxed(&p->next); /* relaxed: ours to touch */
    bz_store_relaxed(&p->next, e);            /* relaxed: likewise */
    if (BZ_UNLIKELY(old != 0))
        bz_place_evicted(m, old);
    bz_leave_on(m, BZ_IN_USER);
    return true;
#else
    (void)m;
    (void)e;
    return false;
#endif
}

/* Push to the injector, for any proc to take. Any thread. */
void bz_place_outside(struct bz_runtime *rt, bz_entry e);

/* Push a task that yielded to the end of this machine's ring. In the runtime. */
static BZ_ALWAYS_INLINE void bz_place_last(bz_entry e)
{
    struct bz_machine *m = bz_machine_self();
    bz_os_delay(m->rt->os, BZ_OS_AT_PUBLISH);
    if (BZ_LIKELY(m->proc != NULL))
        bz_push_for_all(m, e);
    else
        bz_place_outside(m->rt, e);
}

/* True if it is the entry of a claimed task. It stays true. */
static inline bool bz_entry_is_tombstone(bz_entry e)
{
    return bz_entry_tag(e) == BZ_ENTRY_FIRST && bz_word_is_started(&bz_entry_task(e)->word);
}

/* place.c: wake a parked task. Any thread with a reference. */
void bz_task_wake(struct bz_task *t);

#endif
