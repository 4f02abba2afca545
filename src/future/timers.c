/*
 * timers.c - timers that can be moved, and intervals.
 *
 * Most timers are moved or stopped long before they expire: the idle timeout of a connection is moved
 * with every message. So a timer is only a number until a task waits for it. Then the waiter's poll has a
 * sleep in the timer wheel, which only the waiter uses. Moving a timer changes the number. If the new time is earlier
 * than the end of the waiter's sleep, the mover wakes the waiter, which reads the number and
 * sleeps again. If it is later, the waiter is not woken: when its sleep is over, it finds that the
 * number is still ahead, and sleeps for the rest. So a timer that is moved back a thousand times wakes
 * its waiter once.
 *
 * Rejected: moving the entry in the wheel. Each move would take a lock of the wheel instead of the timer's own, which
 * is uncontended. Also, the mover may be a thread without a wheel, or on another proc, while the entry is firing
 * (bug class 11).
 *
 * An interval is a sleep whose deadline advances by a period when it is over. Only its owner
 * touches it.
 *
 * I1  A timer is ready if and only if the number it has at that moment is not ahead of the clock.
 * I2  armed is not later than the time the waiter's sleep is set for; BLITZ_FOREVER: there is no waiter.
 */
#include <assert.h>
#include <errno.h>

#include "base/compiler.h"
#include "blitz/timer.h"
#include "os/lock.h"
#include "proc/state.h"
#include "wait/waker.h"

/* ---- a timer that can be moved ---- */

struct timer {
    const struct bz_os *os; /* constant */
    struct bz_lock lock;
    blitz_deadline when;      /* guarded by lock, as are the next two */
    blitz_deadline armed;     /* the end of the waiter's sleep: I2 */
    blitz_waker waker;        /* set while there is a waiter */
    blitz_sleep_future sleep; /* used by the waiter only */
};

static_assert(sizeof(struct timer) <= sizeof(((blitz_timer *)NULL)->inside), "it has room");

static struct timer *timer_of(blitz_future *f)
{
    return (struct timer *)BZ_CONTAINER_OF(f, blitz_timer, future)->inside;
}

/* Register the new waker, and leave the old one in *waker for the caller to drop. Return the time to wait for. */
static blitz_deadline enlist(struct timer *t, blitz_waker *waker)
{
    bz_lock_take(&t->lock, t->os);
    blitz_waker old = t->waker;
    t->waker = *waker;
    t->armed = t->when; /* I2 */
    blitz_deadline when = t->when;
    bz_lock_drop(&t->lock, t->os);
    *waker = old;
    return when;
}

static void timer_cancel(blitz_future *f)
{
    struct timer *t = timer_of(f);
    blitz_waker none = {NULL, NULL};
    t->sleep.future.ops->cancel(&t->sleep.future);
    bz_lock_take(&t->lock, t->os);
    blitz_waker old = t->waker;
    t->waker = none;
    t->armed = BLITZ_FOREVER;
    bz_lock_drop(&t->lock, t->os);
    blitz_waker_drop(&old);
}

/* Poll the sleep. If it is set for another time, restart it first. */
static blitz_poll sleep_for(struct timer *t, blitz_deadline when, const blitz_waker *waker)
{
    blitz_future *f = &t->sleep.future;
    if (t->sleep.when != when) {
        f->ops->cancel(f);
        blitz_sleep_until_future_init(&t->sleep, when);
    }
    return f->ops->poll(f, waker);
}

static blitz_poll timer_poll(blitz_future *f, const blitz_waker *waker)
{
    struct timer *t = timer_of(f);
    blitz_waker mine = blitz_waker_clone(waker); /* not under the lock: it is user code */
    blitz_deadline when = enlist(t, &mine);
    blitz_waker_drop(&mine);
    if (sleep_for(t, when, waker) == BLITZ_PENDING)
        return BLITZ_PENDING;
    if (blitz_timer_when(BZ_CONTAINER_OF(f, blitz_timer, future)) > when) {
        blitz_waker_wake_by_ref(waker); /* moved just now: I1; poll again */
        return BLITZ_PENDING;
    }
    timer_cancel(f);
    return BLITZ_READY;
}

void blitz_timer_init(blitz_timer *timer, blitz_deadline when)
{
    static const blitz_future_ops ops = {"timer", BLITZ_REVOCABLE, timer_poll, timer_cancel, NULL};
    struct timer *t = timer_of(&timer->future);
    timer->future.ops = &ops;
    *t = (struct timer){.os = bz_os_here(), .when = when, .armed = BLITZ_FOREVER};
    bz_lock_init(&t->lock);
    blitz_sleep_until_future_init(&t->sleep, BLITZ_FOREVER);
}

void blitz_timer_reset(blitz_timer *timer, blitz_deadline when)
{
    struct timer *t = timer_of(&timer->future);
    blitz_waker waiter = {NULL, NULL};
    bz_lock_take(&t->lock, t->os);
    t->when = when;
    if (when < t->armed) {
        waiter = t->waker;
        t->waker = (blitz_waker){NULL, NULL};
    }
    bz_lock_drop(&t->lock, t->os);
    blitz_waker_wake(&waiter);
}

blitz_deadline blitz_timer_when(blitz_timer *timer)
{
    struct timer *t = timer_of(&timer->future);
    bz_lock_take(&t->lock, t->os);
    blitz_deadline when = t->when;
    bz_lock_drop(&t->lock, t->os);
    return when;
}

/* ---- intervals ---- */

static blitz_interval *interval_of(blitz_future *f)
{
    return BZ_CONTAINER_OF(f, blitz_interval, future);
}

/* Return the first tick after `now`, and set i->skipped to the number of ticks passed over. */
static blitz_instant next_multiple(blitz_interval *i, blitz_instant now)
{
    blitz_instant next = blitz_time_add(i->ticked, i->period);
    if (now < next)
        return next;
    i->skipped = (now - next) / i->period + 1;
    return blitz_time_add(next, blitz_duration_of(i->skipped, i->period));
}

/* Advance to the next tick, after the tick of i->next was taken. */
static void move_on(blitz_interval *i)
{
    blitz_instant now = blitz_now(), next;
    i->ticked = i->next.when;
    i->skipped = 0;
    switch (i->missed) {
    case BLITZ_DELAY:
        next = blitz_time_add(now, i->period);
        break;
    case BLITZ_SKIP:
        next = next_multiple(i, now);
        break;
    default:
        next = blitz_time_add(i->ticked, i->period);
    }
    blitz_sleep_until_future_init(&i->next, next);
}

static blitz_poll interval_poll(blitz_future *f, const blitz_waker *waker)
{
    blitz_interval *i = interval_of(f);
    if (i->next.future.ops->poll(&i->next.future, waker) == BLITZ_PENDING)
        return BLITZ_PENDING;
    move_on(i);
    return BLITZ_READY;
}

static void interval_cancel(blitz_future *f)
{
    blitz_interval *i = interval_of(f);
    i->next.future.ops->cancel(&i->next.future);
}

int blitz_interval_init(blitz_interval *i, blitz_instant first, blitz_duration period,
                        blitz_missed missed)
{
    static const blitz_future_ops ops = {"interval", BLITZ_REVOCABLE, interval_poll,
                                         interval_cancel, NULL};
    if (period == 0 || (unsigned)missed > BLITZ_SKIP)
        return -EINVAL;
    i->future.ops = &ops;
    i->ticked = first;
    i->skipped = 0;
    i->period = period;
    i->missed = missed;
    blitz_sleep_until_future_init(&i->next, first);
    return 0;
}

int blitz_interval_tick(blitz_interval *i, blitz_deadline until)
{
    return blitz_await(&i->future, until);
}

void blitz_interval_reset(blitz_interval *i)
{
    blitz_sleep_until_future_init(&i->next, blitz_after(i->period));
}
