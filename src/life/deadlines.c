/*
 * deadlines.c - callbacks at a point in time: one timer wheel for each proc, with a lock.
 *
 * A timer is armed on the proc its task waits on, and fired by that proc's machine. Any machine may
 * disarm it, because the task may have been woken elsewhere. The lock is nearly always
 * free: contention would mean that many tasks migrate between arming and disarming.
 *
 * Firing takes a batch under the lock and collects the wake-up of each timer. A timer's memory is
 * in the frame of the waiter. The waiter may leave that frame as soon as the timer is disarmed, and disarming
 * takes the lock. The wake-ups (queueing a task, waking a waker) are delivered after unlock. A million timers due at
 * once are a million/BATCH turns of the loop, and tasks and other machines run in between.
 *
 * A waker may be foreign code, and take for ever. The thread that fires timers holds wake-ups of other tasks, may
 * be in the middle of a task's suspension, or be the monitor. So a foreign waker is woken by a task of
 * its own, and delays others no more than any task does. If there can be no such task (no memory, the limit on
 * tasks, the runtime is shutting down), the waker is woken here, after all others. Rejected: calling it from the
 * loop alone (the due timers of a proc whose tasks hand over to each other would be late).
 *
 * If a thread arms a timer on another machine's proc and the timer is now the first, the thread rouses that proc: it
 * may sleep until a later one.
 *
 * I1  timer_first is the result of bz_wheel_next whenever the lock is free: never later than the first
 *     deadline.
 *
 * [A] arm: timer_first, then the full fence of idle.c, wanted -> the full fence of idle.c, announce,
 *     then timer_first (search.c): a machine sees what was armed before it sleeps, or is seen asleep
 */
#include "blitz/poll.h"
#include "life/deadlines.h"
#include "life/finish.h"
#include "life/spawn.h"
#include "proc/enter.h"
#include "proc/place.h"
#include "proc/retire.h"
#include "wait/wait.h"
#include "wait/waker.h"

enum { BATCH = 32 };

void bz_timers_lock(struct bz_proc *p)
{
    bz_lock_take(&p->timer_lock, p->rt->os);
}

void bz_timers_unlock(struct bz_proc *p)
{
    /* relaxed: its reader is the machine that armed, or will read under the lock, or [A] */
    bz_store_relaxed(&p->timer_first, bz_wheel_next(&p->wheel)); /* I1 */
    bz_lock_drop(&p->timer_lock, p->rt->os);
}

void bz_timer_init(struct bz_timer *timer, struct bz_proc *p,
                   struct bz_wake (*fire)(struct bz_timer *timer))
{
    bz_wheel_timer_init(&timer->in);
    timer->proc = p;
    timer->fire = fire;
}

void bz_timer_arm_locked(struct bz_timer *timer, uint64_t when)
{
    bz_wheel_arm(&timer->proc->wheel, &timer->in, when);
}

/* Rouse its machine, which may sleep until a later timer, or for ever. */
void bz_timers_armed(struct bz_proc *p)
{
    uint32_t was;
    struct bz_machine *m = bz_enter(&was);
    if (m == NULL || m->proc != p)
        (void)bz_rouse_for(p); /* [A] */
    bz_leave(was);
}

void bz_timer_arm(struct bz_timer *timer, uint64_t when)
{
    struct bz_proc *p = timer->proc;
    bz_timers_lock(p);
    bz_timer_arm_locked(timer, when);
    bool is_first = bz_wheel_next(&p->wheel) >= when;
    bz_timers_unlock(p); /* from here on it may have fired and be gone */
    if (is_first)
        bz_timers_armed(p);
}

bool bz_timer_disarm(struct bz_timer *timer)
{
    struct bz_proc *p = timer->proc;
    bz_timers_lock(p);
    bool was_armed = bz_wheel_disarm(&p->wheel, &timer->in);
    bz_timers_unlock(p);
    return was_armed;
}

/* Take up to BATCH due timers and collect their wake-ups. Returns how many there were. */
static size_t fire_batch(struct bz_proc *p, uint64_t now, struct bz_wake *wakes)
{
    struct bz_list due;
    size_t count = 0;
    bz_list_init(&due);
    bz_timers_lock(p);
    bz_wheel_expire_some(&p->wheel, now, &due, BATCH);
    for (struct bz_wheel_timer *t; (t = bz_wheel_take(&due)) != NULL;) {
        struct bz_timer *timer = BZ_CONTAINER_OF(t, struct bz_timer, in);
        wakes[count++] = timer->fire(timer);
    }
    bz_timers_unlock(p);
    return count;
}

static blitz_poll wake_it(void *waker, blitz_cx *cx)
{
    (void)cx;
    blitz_waker_wake(waker);
    return BLITZ_READY;
}

/* Spawn a task that wakes w. */
static bool wake_by_task(struct bz_runtime *rt, const blitz_waker *w)
{
    blitz_spawn_opts opts = {.runtime = (blitz_runtime *)rt, .name = "waker of a timer"};
    return blitz_spawn_poll(wake_it, w, sizeof *w, &opts, NULL) == 0;
}

bool bz_timer_wake_here(struct bz_task *t)
{
    blitz_waker *w = bz_poll_state_if(t, wake_it);
    if (w == NULL)
        return false;
    blitz_waker_wake(w);
    bz_task_finish(t);
    return true;
}

void bz_waker_wake_apart(struct bz_runtime *rt, blitz_waker *w)
{
    if (bz_waker_is_ours(w) || !wake_by_task(rt, w))
        blitz_waker_wake(w);
}

bool bz_timers_fire(struct bz_proc *p, uint64_t now)
{
    struct bz_runtime *rt = p->rt;
    struct bz_wake wakes[BATCH];
    if (bz_timers_first(p) > now)
        return false;
    size_t count = fire_batch(p, now, wakes), left = 0;
    for (size_t i = 0; i < count; i++) {
        struct bz_wake *wake = &wakes[i];
        bool is_waker = wake->kind == BZ_WAKE_WAKER;
        if (wake->kind == BZ_WAKE_TASK || wake->kind == BZ_WAKE_HELD_TASK)
            bz_trace(rt, timer, wake->task->id, 0, NULL);
        if (!is_waker || bz_waker_is_ours(&wake->waker))
            bz_wake_deliver(wake);
        else if (!wake_by_task(rt, &wake->waker))
            wakes[left++] = *wake; /* left <= i: those are delivered */
    }
    for (size_t i = 0; i < left; i++)
        bz_wake_deliver(&wakes[i]);
    return count > 0;
}
