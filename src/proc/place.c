/*
 * place.c - queue a task that has become runnable, and rouse a proc for it.
 *
 * On a worker of its runtime the task stays near: the data it is about to touch is likely to be in that CPU's
 * cache. It goes into the proc's `next` slot, and the previous entry of the slot moves on into the ring. From
 * any other thread it goes to the injector.
 *
 * While hogs hold procs (monitor.h), a woken task does not go into the ring or the injector's normal lane. It goes
 * into the injector's urgent lane: the ring may be full of hogs, each of which takes 10 ms.
 *
 * After a push to a shared queue, the pusher asks the idle set whether a proc must be roused. rouse.c has the policy.
 * A lone task in `next` rouses no proc: usually it is about to run here, and a wake-up costs more than
 * most tasks do. If its machine runs its current task for too long, the monitor takes the lone task out.
 *
 * A full ring spills its oldest entries to the injector, except tombstones: joiners that claimed their children
 * left these behind, and they are dropped. Other entries become tombstones while they are in the injector. So a
 * pusher that adds to the injector first drops the tombstones at its front, twice as many as it brings.
 * Thus a task that spawns and joins for ever never fills the injector, even if it never waits and
 * its worker never gets to check the injector.
 *
 * A task that must start on a certain proc goes into that proc's inbox, and exactly that proc is
 * roused. If the proc has no thread and gets none, its inbox is emptied into the injector.
 *
 * A worker pushes and checks with plain stores and loads; idle.c has the reason why that is enough. The
 * plain form has no slot, and its idle set makes every push fence.
 *
 */
#include "proc/enter.h"
#include "proc/fresh.h"
#include "proc/monitor_wake.h"
#include "proc/place.h"
#include "proc/retire.h"
#include "proc/state.h"

enum { SPILL = BZ_RUNQ_CAP < 256 ? BZ_RUNQ_CAP / 2 : 128 };

/* Drop a tombstone. This may be the last reference. The task's destructor must not lose the proc in
 * the middle of the caller's work. */
void bz_drop_tombstone(bz_entry e)
{
    struct bz_machine *m = bz_machine_self();
    if (m != NULL)
        m->holds_on++;
    bz_task_unref(bz_entry_task(e));
    if (m != NULL)
        m->holds_on--;
}

/* Return how many are left. */
static unsigned drop_tombstones(bz_entry *entries, unsigned count)
{
    unsigned left = 0;
    for (unsigned i = 0; i < count; i++)
        if (bz_entry_is_tombstone(entries[i]))
            bz_drop_tombstone(entries[i]);
        else
            entries[left++] = entries[i];
    return left;
}

unsigned bz_tidy_injector(struct bz_runtime *rt)
{
    bz_entry dead[2 * SPILL];
    unsigned count = bz_injector_take_dead(&rt->injector, bz_entry_is_tombstone, dead, 2 * SPILL);
    for (unsigned i = 0; i < count; i++)
        bz_drop_tombstone(dead[i]);
    return count;
}

/* Push on a full ring. While entries are on their way to the injector they are in no queue: a
 * machine may have checked just then and gone to sleep. So check for sleepers at the end. */
BZ_NOINLINE void bz_push_full(struct bz_machine *m, bz_entry e)
{
    bz_entry spill[SPILL];
    unsigned count = bz_runq_take_some(&m->proc->ring, spill, SPILL);
    count = drop_tombstones(spill, count);
    bz_tidy_injector(m->rt);
    bz_os_delay(m->rt->os, BZ_OS_AT_PUBLISH);
    bz_injector_push_all(&m->rt->injector, spill, count);
    if (!bz_runq_try_push(&m->proc->ring, e)) /* a thief is still copying */
        bz_injector_push(&m->rt->injector, e);
    bz_rouse_one(m->rt);
}

/* The proc will never run anything: start the tasks of its inbox on any proc. */
static void give_away_inbox(struct bz_runtime *rt, struct bz_proc *p)
{
    struct bz_entries left = bz_inbox_close(&p->inbox, rt->os);
    bz_os_delay(rt->os, BZ_OS_AT_PUBLISH);
    for (bz_entry e; (e = bz_entries_take(&left)) != 0;)
        bz_injector_push(&rt->injector, e);
}

static void count_wake(struct bz_runtime *rt)
{
    uint32_t was;
    struct bz_machine *m = bz_enter(&was);
    if (m != NULL && m->rt == rt)
        bz_count(&m->proc->counters, wakes);
    else
        bz_count_shared(&rt->counters, wakes);
    bz_leave(was);
}

void bz_rouse(struct bz_runtime *rt, int proc)
{
    while (proc != BZ_NOBODY) {
        struct bz_proc *p = &rt->procs[proc];
        bool is_free = bz_proc_adopt(p);
        if (!is_free || bz_proc_start(p, true) == 0) {
            /* A machine that has just taken the proc learns from the idle set that it was
             * roused. */
            if (!is_free)
                bz_poll_rouse(&p->poll);
            count_wake(rt);
            return;
        }
        give_away_inbox(rt, p);
        proc = bz_idle_found(&rt->idle); /* rouse another instead */
    }
}

void bz_rouse_one(struct bz_runtime *rt)
{
    bz_rouse(rt, bz_idle_published(&rt->idle));
}

/* True if e is a woken task that should not wait behind hogs in the queue: it has waited
 * already. */
static bool is_urgent(struct bz_runtime *rt, bz_entry e)
{
    return BZ_UNLIKELY(bz_monitor_sees_hogs(rt)) && bz_entry_tag(e) == BZ_ENTRY_RESUMED;
}

/* Keep a first-run entry private if that delays no other proc: fresh.c. */
static bool is_kept(struct bz_machine *m, bz_entry e)
{
    if (bz_entry_tag(e) != BZ_ENTRY_FIRST || m->proc->is_plain || bz_monitor_is_down(m->rt))
        return false;
    if (BZ_LIKELY(bz_fresh_keep(m, e)))
        return true;
    if (bz_fresh_count(m->proc) == BZ_FRESH_MAX && bz_idle_is_quiet(&m->rt->idle)) {
        bz_fresh_publish_half(m);
        return bz_fresh_keep(m, e);
    }
    if (bz_fresh_count(m->proc) > 0)
        bz_fresh_publish(m); /* they come before e */
    return false;
}

void bz_place_evicted(struct bz_machine *m, bz_entry e)
{
    if (is_kept(m, e))
        return;
    if (BZ_LIKELY(!is_urgent(m->rt, e))) {
        bz_push_for_all(m, e);
        return;
    }
    bz_injector_push_urgent(&m->rt->injector, e);
    bz_proc_hurry(m->proc);
    bz_rouse_one(m->rt);
}

int bz_place_evicts(struct bz_machine *m, bz_entry old)
{
    bz_place_evicted(m, old);
    bz_leave_on(m, BZ_IN_USER);
    return 0;
}

/* The caller is not a worker of this runtime, or has no proc. Skip the unfenced idle check;
 * bz_idle_published() has the fence. The object of e may be gone as soon as it is queued. */
static void place_outside(struct bz_runtime *rt, bz_entry e, bool goes_first)
{
    bz_os_delay(rt->os, BZ_OS_AT_PUBLISH);
    if (goes_first)
        bz_injector_push_urgent(&rt->injector, e);
    else
        bz_injector_push(&rt->injector, e);
    int proc = bz_idle_published(&rt->idle);
    if (proc != BZ_NOBODY)
        bz_rouse(rt, proc);
    else
        bz_monitor_nudge(rt);
}

BZ_NOINLINE void bz_place_outside(struct bz_runtime *rt, bz_entry e)
{
    place_outside(rt, e, false);
}

static BZ_NOINLINE void place_from_outside(struct bz_runtime *rt, bz_entry e)
{
    place_outside(rt, e, is_urgent(rt, e));
}

void bz_place(struct bz_runtime *rt, bz_entry e)
{
    uint32_t was;
    struct bz_machine *m = bz_enter(&was);
    bz_os_delay(rt->os, BZ_OS_AT_PUBLISH);
    if (BZ_LIKELY(m != NULL && m->rt == rt))
        bz_place_near(m, e);
    else
        place_from_outside(rt, e);
    bz_leave(was);
}

/* A retired proc: its machine sleeps in its poll, or it has none. */
static bool rouse_retired(struct bz_proc *p)
{
    uint32_t word = bz_load_acquire(&p->state); /* retire.c [S] */
    if (bz_proc_state_of(word) == BZ_PROC_RETIRED) {
        bz_poll_rouse(&p->poll);
        return true;
    }
    if (bz_proc_state_of(word) != BZ_PROC_UNUSED)
        return false;
    /* acquire: what its last machine left there. A failure: another thread starts it */
    if (bz_cas_strong_acq_rlx(&p->state, &word, bz_proc_word(BZ_PROC_STARTING, 0)) &&
        bz_proc_start(p, false) != 0)
        give_away_inbox(p->rt, p);
    return true;
}

bool bz_rouse_for(struct bz_proc *p)
{
    int wanted = bz_idle_wanted(&p->rt->idle, p->index);
    if (wanted == BZ_NOBODY)
        return rouse_retired(p);
    bz_rouse(p->rt, wanted);
    return true;
}

void bz_place_on(struct bz_runtime *rt, unsigned proc, bz_entry e)
{
    bz_os_delay(rt->os, BZ_OS_AT_PUBLISH);
    if (!bz_inbox_push(&rt->procs[proc].inbox, rt->os, e)) {
        bz_place(rt, e);
        return;
    }
    if (!bz_rouse_for(&rt->procs[proc]))
        bz_monitor_nudge(rt); /* it may run one task for long */
}

void bz_task_wake(struct bz_task *t)
{
    bz_os_delay(t->rt->os, BZ_OS_AT_PUBLISH);
    if (bz_word_step(&t->word, BZ_WAKE) == BZ_OWES_ENQUEUE) {
        bz_trace_wake(t, 0);
        bz_place(t->rt, bz_entry_resumed(t));
    }
}
