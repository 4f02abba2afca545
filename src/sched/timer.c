/*
 * timer.c - deadlines of waiting tasks: a wheel a proc, and a lock around it.
 *
 * A timer is armed on the proc its task waits on, and fired by that proc's machine; it may be
 * disarmed from any, because the task may have been woken elsewhere. The lock is nearly always
 * free: a contended one would mean that many tasks migrate between arming and disarming.
 *
 * I1  timer_first is what bz_wheel_next says whenever the lock is free: never later than the first
 *     deadline.
 *
 * Firing wakes the task while the lock is held: the timer lies in the frame of the task, which may
 * return as soon as the timer is disarmed, and disarming takes the lock.
 */
#include "sched/sched.h"

/* I1 */
static void publish_first(struct bz_proc *p)
{
    /* relaxed: its reader is the machine that armed, or will look under the lock */
    bz_store_relaxed(&p->timer_first, bz_wheel_next(&p->wheel));
}

void bz_timer_arm(struct bz_timer *timer, struct bz_proc *p, uint64_t when, struct bz_task *t)
{
    timer->proc = p;
    timer->task = t;
    bz_wheel_timer_init(&timer->in);
    bz_lock_take(&p->timer_lock, p->rt->os);
    bz_wheel_arm(&p->wheel, &timer->in, when);
    publish_first(p);
    if (!BZ_BROKEN(84))
        bz_lock_drop(&p->timer_lock, p->rt->os);
}

void bz_timer_disarm(struct bz_timer *timer)
{
    struct bz_proc *p = timer->proc;
    bz_lock_take(&p->timer_lock, p->rt->os);
    bz_wheel_disarm(&p->wheel, &timer->in); /* harmless if it has fired */
    publish_first(p);
    bz_lock_drop(&p->timer_lock, p->rt->os);
}

bool bz_timers_fire(struct bz_proc *p, uint64_t now)
{
    struct bz_list due;
    if (bz_timers_first(p) > now)
        return false;
    bz_list_init(&due);
    bz_lock_take(&p->timer_lock, p->rt->os);
    size_t fired = bz_wheel_expire(&p->wheel, now, &due);
    for (struct bz_wheel_timer *t; (t = bz_wheel_take(&due)) != NULL;)
        bz_task_wake(BZ_CONTAINER_OF(t, struct bz_timer, in)->task);
    publish_first(p);
    bz_lock_drop(&p->timer_lock, p->rt->os);
    return fired > 0;
}
