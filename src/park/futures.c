/*
 * futures.c - sleeps and joins as futures, for tasks that have no stack to wait on.
 *
 * A sleep is an alarm (deadlines.c) in the wheel of the proc on which it was first polled. A plain thread
 * has no wheel: the future tells it when to poll again at the latest, and it sleeps no longer than
 * that. A join is the one of join.c, with a result.
 *
 * Only the newest waker is kept. It is cloned before a lock is taken and the old one dropped
 * afterwards, since both calls may run foreign code.
 */
#include <assert.h>
#include <errno.h>

#include "blitz/futures.h"
#include "life/deadlines.h"
#include "life/handle.h"
#include "life/joiner.h"
#include "park/join.h"
#include "proc/now.h"
#include "proc/state.h"
#include "wait/waker.h"

/* ---- sleeping ---- */

struct bz_alarm {
    struct bz_timer timer; /* its proc is NULL until it is first armed, and once it is disarmed */
    blitz_waker waker;     /* while armed; guarded by the proc's timer lock */
};

static_assert(sizeof(struct bz_alarm) <= sizeof((blitz_sleep_future){{NULL}, 0, {NULL}}.inside),
              "it has room");

static struct bz_alarm *alarm_of(blitz_future *future)
{
    return (struct bz_alarm *)BZ_CONTAINER_OF(future, blitz_sleep_future, future)->inside;
}

static struct bz_wake alarm_fire(struct bz_timer *timer)
{
    struct bz_wake wake;
    bz_wake_set_waker(&wake, &BZ_CONTAINER_OF(timer, struct bz_alarm, timer)->waker);
    return wake;
}

/* Arm the alarm, on a machine. It takes the waker over. */
static void alarm_arm(struct bz_alarm *a, uint64_t when, blitz_waker waker)
{
    bz_timer_init(&a->timer, bz_proc_for_timers(), alarm_fire);
    a->waker = waker;
    bz_timer_arm(&a->timer, when);
}

/* For an alarm that was armed: return true if it has fired, else store the new waker. */
static bool alarm_has_fired(struct bz_alarm *a, const blitz_waker *waker)
{
    blitz_waker spare = blitz_waker_clone(waker); /* not under the lock: foreign code */
    bz_timers_lock(a->timer.proc);
    bool has_fired = !bz_wheel_timer_is_armed(&a->timer.in);
    if (!has_fired) {
        blitz_waker old = a->waker;
        a->waker = spare;
        spare = old;
    }
    bz_timers_unlock(a->timer.proc);
    blitz_waker_drop(&spare);
    return has_fired;
}

static void sleep_cancel(blitz_future *future)
{
    struct bz_alarm *a = alarm_of(future);
    if (a->timer.proc == NULL)
        return;
    bz_timer_disarm(&a->timer);
    a->timer.proc = NULL;
    blitz_waker_drop(&a->waker); /* empty if it has fired */
}

/* A plain thread has no timers: tell its waker when to poll again. */
static blitz_poll sleep_poll_outside(blitz_sleep_future *s, const blitz_waker *waker)
{
    if (bz_os_now(bz_waker_by(waker, s->when)) < s->when)
        return BLITZ_PENDING;
    sleep_cancel(&s->future);
    return BLITZ_READY;
}

/* The first poll checks whether the moment has passed; later polls check whether the timer has fired. */
static blitz_poll sleep_poll(blitz_future *future, const blitz_waker *waker)
{
    blitz_sleep_future *s = BZ_CONTAINER_OF(future, blitz_sleep_future, future);
    struct bz_alarm *a = alarm_of(future);
    struct bz_machine *m = bz_machine_self();
    if (m == NULL)
        return sleep_poll_outside(s, waker);
    if (a->timer.proc != NULL) {
        if (!alarm_has_fired(a, waker))
            return BLITZ_PENDING;
        a->timer.proc = NULL;
        return BLITZ_READY;
    }
    if (bz_has_passed(m->rt->os, s->when))
        return BLITZ_READY;
    if (s->when != BLITZ_FOREVER)
        alarm_arm(a, s->when, blitz_waker_clone(waker));
    return BLITZ_PENDING;
}

void blitz_sleep_until_future_init(blitz_sleep_future *f, blitz_deadline when)
{
    static const blitz_future_ops ops = {"sleep", BLITZ_REVOCABLE, sleep_poll, sleep_cancel, NULL};
    f->future.ops = &ops;
    f->when = when;
    *alarm_of(&f->future) = (struct bz_alarm){.timer = {.proc = NULL}, .waker = {NULL, NULL}};
}

/* ---- joining ---- */

static_assert(sizeof(struct bz_join) <= sizeof(((blitz_join_future *)NULL)->inside), "it has room");

static struct bz_join *join_of(blitz_future *future)
{
    return (struct bz_join *)BZ_CONTAINER_OF(future, blitz_join_future, future)->inside;
}

static void join_cancel(blitz_future *future)
{
    struct bz_join *j = join_of(future);
    if (j->task != NULL)
        bz_join_cancel(&j->f);
}

/* Cancel of a pinned join: cancel the task; the wait goes on. */
static void join_cancel_child(blitz_future *future)
{
    struct bz_join *j = join_of(future);
    if (j->task != NULL)
        bz_task_cancel(j->task);
}

static blitz_poll join_poll(blitz_future *future, const blitz_waker *waker)
{
    blitz_join_future *f = BZ_CONTAINER_OF(future, blitz_join_future, future);
    struct bz_join *j = join_of(future);
    struct bz_task *t = j->task;
    if (t == NULL)
        return BLITZ_READY; /* as before */
    if (t == bz_task_self()) {
        f->result = -EDEADLK;
        return BLITZ_READY;
    }
    if (bz_join_poll(&j->f, waker) == BLITZ_PENDING)
        return BLITZ_PENDING;
    bz_join_cancel(&j->f); /* the finisher may still hold our node */
    f->value = bz_task_result(t);
    f->pointer = bz_task_take_pointer(t);
    f->result = 0;
    j->task = NULL;
    bz_task_unref(t);
    return BLITZ_READY;
}

/* Return the task's result, or the reason why there was nothing to join. */
static int join_output(blitz_future *future)
{
    blitz_join_future *f = BZ_CONTAINER_OF(future, blitz_join_future, future);
    return f->result != 0 ? f->result : f->value;
}

static void join_init(blitz_join_future *f, blitz_task *t, const blitz_future_ops *ops)
{
    f->future.ops = ops;
    f->value = 0;
    f->result = t == NULL ? -EINVAL : -EINPROGRESS;
    f->pointer = NULL;
    bz_join_init(join_of(&f->future), ops, (struct bz_task *)t);
}

void blitz_task_join_future_init(blitz_join_future *f, blitz_task *t)
{
    static const blitz_future_ops ops = {"join", BLITZ_REVOCABLE, join_poll, join_cancel,
                                         join_output};
    join_init(f, t, &ops);
}

void blitz_task_join_linked_future_init(blitz_join_future *f, blitz_task *t)
{
    static const blitz_future_ops ops = {"join", BLITZ_PINNED, join_poll, join_cancel_child,
                                         join_output};
    join_init(f, t, &ops);
}
