/*
 * timer.c - deadlines of waiting tasks, a sorted list a proc.
 *
 * The dull form, for the time wheel to be measured against: arming walks the list from its end, so
 * deadlines that come in order cost nothing and a hundred thousand that come in no order cost too
 * much. A timer is armed on the proc its task waits on, and fired by that proc's machine; it may be
 * disarmed from any, because the task may have been woken elsewhere.
 *
 * I1  timers is sorted by moment, earlier first; equal ones in the order they were armed.
 * I2  timer_first is the first one's moment, BZ_OS_FOREVER if there is none, whenever the lock is
 *     free.
 *
 * Firing wakes the task while the lock is held: the timer lies in the frame of the task, which may
 * return as soon as the timer is disarmed, and disarming takes the lock.
 */
#include "sched/sched.h"

static struct bz_timer *timer_of(struct bz_list *link)
{
    return BZ_CONTAINER_OF(link, struct bz_timer, in);
}

/* I2 */
static void publish_first(struct bz_proc *p)
{
    struct bz_list *first = bz_list_first(&p->timers);
    uint64_t when = first != NULL ? timer_of(first)->when : BZ_OS_FOREVER;
    bz_store_relaxed(&p->timer_first, when); /* relaxed: its reader arms or looks under the lock */
}

void bz_timer_arm(struct bz_timer *timer, struct bz_proc *p, uint64_t when, struct bz_task *t)
{
    *timer = (struct bz_timer){.proc = p, .when = when, .task = t};
    bz_list_init(&timer->in);
    bz_lock_take(&p->timer_lock, p->rt->os);
    struct bz_list *after = p->timers.prev;
    while (after != &p->timers && timer_of(after)->when > when)
        after = after->prev;
    bz_list_insert_after(after, &timer->in); /* I1 */
    publish_first(p);
    bz_lock_drop(&p->timer_lock, p->rt->os);
}

void bz_timer_disarm(struct bz_timer *timer)
{
    struct bz_proc *p = timer->proc;
    bz_lock_take(&p->timer_lock, p->rt->os);
    bz_list_remove(&timer->in); /* harmless if it has fired */
    publish_first(p);
    bz_lock_drop(&p->timer_lock, p->rt->os);
}

bool bz_timers_fire(struct bz_proc *p, uint64_t now)
{
    bool has_fired = false;
    if (bz_timers_first(p) > now)
        return false;
    bz_lock_take(&p->timer_lock, p->rt->os);
    for (struct bz_list *l; (l = bz_list_first(&p->timers)) != NULL && timer_of(l)->when <= now;) {
        bz_list_remove(l);
        bz_task_wake(timer_of(l)->task);
        has_fired = true;
    }
    publish_first(p);
    bz_lock_drop(&p->timer_lock, p->rt->os);
    return has_fired;
}
