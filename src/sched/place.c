/*
 * place.c - where a task goes that has become runnable, and whom to rouse for it.
 *
 * On a worker of its runtime it stays near: what it is about to touch is likely to be in that CPU's
 * cache. It goes into the proc's `next` slot, and what stood there moves on into the ring. From
 * anywhere else it goes to the injector.
 *
 * While hogs hold procs (monitor.h), a woken task that would go into the ring or the injector goes into the
 * injector's urgent lane instead: the ring may be full of hogs, each of which takes 10 ms.
 *
 * A push to where others can take the task asks the idle set whether a proc must be roused. rouse.c has the policy.
 * A lone task in `next` rouses no proc: usually it is about to run here, and a wake-up costs more than
 * most tasks do. If its machine is long at what it does the monitor fetches it out.
 *
 * A full ring gives its oldest to the injector, but for tombstones that joiners who claimed their
 * children left behind: those are dropped. Others are claimed when they are in the injector already; so
 * whoever puts more into it first takes out what is dead at its front, twice as many as it brings.
 * A task that spawns and joins for ever so never fills the injector, even if it never waits and
 * its worker never gets a turn to look there.
 *
 * Threads start lazily: a proc that never had a machine counts as asleep, and to rouse it is to
 * start a thread for it. If the system refuses, that proc is out of the game until the monitor has use
 * for it and tries again, and another one is roused in its stead; proc 0's machine is started with
 * the runtime, so there is always one. A task
 * that was asked to begin on a certain proc goes into that proc's inbox, and exactly that proc is
 * roused; if it has no thread and gets none, the inbox is emptied into the injector.
 *
 * A worker pushes and asks with plain stores and loads; idle.c has the reason why that is enough. The
 * plain form has no slot, and its idle set makes every push fence.
 *
 */
#include "sched/sched.h"

#include "base/log.h"

enum { SPILL = BZ_RUNQ_CAP < 256 ? BZ_RUNQ_CAP / 2 : 128 };

/* Nobody else holds it, perhaps: whatever its end calls must not cost us the proc, in the middle of
 * what we do. */
void bz_drop_tombstone(bz_entry e)
{
    struct bz_machine *m = bz_machine_self();
    if (m != NULL)
        m->holds_on++;
    bz_task_unref(bz_entry_task(e));
    if (m != NULL)
        m->holds_on--;
}

/* Returns how many are left. */
static unsigned drop_tombstones(bz_entry *entries, unsigned count)
{
    unsigned left = 0;
    for (unsigned i = 0; i < count; i++)
        if (bz_entry_is_tombstone(entries[i]) && !BZ_BROKEN(53))
            bz_drop_tombstone(entries[i]);
        else
            entries[left++] = entries[i];
    return left;
}

unsigned bz_tidy_injector(struct bz_runtime *rt)
{
    bz_entry dead[2 * SPILL];
    if (BZ_BROKEN(53))
        return 0;
    unsigned count = bz_injector_take_dead(&rt->injector, bz_entry_is_tombstone, dead, 2 * SPILL);
    for (unsigned i = 0; i < count; i++)
        bz_drop_tombstone(dead[i]);
    return count;
}

/* The ring is full. While entries are on their way to the injector they are in no queue: somebody may
 * have looked just then and gone to sleep. So there is a look for sleepers at the end. */
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

int bz_proc_start(struct bz_proc *p, bool is_searching)
{
    struct bz_runtime *rt = p->rt;
    int err = 0;
    if (BZ_BROKEN(85))
        bz_lock_take(&rt->injector.lock, rt->os);
    bz_lock_take(&rt->start_lock, rt->os);
    if (!bz_load_relaxed(&rt->is_ending)) /* relaxed: set under the lock */
        err = bz_machine_start(p, is_searching);
    bz_lock_drop(&rt->start_lock, rt->os);
    if (err != 0)
        bz_proc_abandon(p);
    if (err != 0) /* not under the lock: whoever listens to the log may spawn */
        bz_log_once(BLITZ_LOG_WARN,
                    "a worker thread could not be started (error %d): going on with fewer", -err);
    else
        (void)!bz_monitor_is_up(rt); /* from the second machine on there is work for it */
    return err;
}

/* The proc will never run anything: what was to begin there begins anywhere. */
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
            /* One that a machine has just taken knows from the idle set that it was roused. */
            if (!is_free && (!BZ_BROKEN(86) || bz_machine_self() == NULL))
                bz_poll_rouse(&p->poll);
            count_wake(rt);
            return;
        }
        if (BZ_BROKEN(90))
            return; /* nobody looks, and one is counted as looking */
        give_away_inbox(rt, p);
        proc = bz_idle_found(&rt->idle); /* send another instead */
    }
}

void bz_rouse_one(struct bz_runtime *rt)
{
    if (!BZ_BROKEN(86))
        bz_rouse(rt, bz_idle_published(&rt->idle));
}

/* A task that has waited does not wait again for hogs that stand in the queue before it. */
static bool is_urgent(struct bz_runtime *rt, bz_entry e)
{
    return BZ_UNLIKELY(bz_monitor_sees_hogs(rt)) && bz_entry_tag(e) == BZ_ENTRY_RESUMED &&
           !BZ_BROKEN(270);
}

void bz_place_evicted(struct bz_machine *m, bz_entry e)
{
    if (BZ_LIKELY(!is_urgent(m->rt, e))) {
        bz_push_for_all(m, e);
        return;
    }
    bz_injector_push_urgent(&m->rt->injector, e);
    bz_proc_hurry(m->proc);
    bz_rouse_one(m->rt);
}

/* Not a worker of this runtime, or one without a proc: no first question, the second one fences. What
 * e points to may be gone as soon as it is queued. */
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

void bz_place_on(struct bz_runtime *rt, unsigned proc, bz_entry e)
{
    bz_os_delay(rt->os, BZ_OS_AT_PUBLISH);
    if (!bz_inbox_push(&rt->procs[proc].inbox, rt->os, e)) {
        bz_place(rt, e);
        return;
    }
    int wanted = bz_idle_wanted(&rt->idle, proc);
    if (wanted != BZ_NOBODY)
        bz_rouse(rt, wanted);
    else
        bz_monitor_nudge(rt); /* it may be at one task for long */
}
