/*
 * rate.c - a bucket of permits that fills with time.
 *
 * The bucket's level is counted in parts of a permit, so that no rate is rounded: a permit is `per` parts, and `permits`
 * parts come in each nanosecond. (100 permits in a second: a permit is 10^9 parts, 100 come each nanosecond.)
 * The level is brought up to date when a caller looks at it. So a rate needs no timer and no thread.
 *
 * Waiting. The waiters take turns at a semaphore with one permit, which is fair. The waiter that has the turn sleeps
 * until the bucket has enough. While there are waiters no other caller takes permits, so the waiter with the turn
 * knows the time exactly and sleeps once.
 *
 * The operation is written once, as a future. The blocking call tries without waiting, and then awaits the future.
 *
 * Rejected: reserving a time when a caller comes, and sleeping until then (no queue is needed). A cancelled
 * reservation leaves a hole, and later waiters sleep through it.
 *
 * I1  level <= burst * per. It only grows with time, and falls by n * per when n permits are taken.
 * I2  waiters is the number of futures in the states TURN and SLEEP. If it is not 0, only the future with
 *     the turn takes permits.
 */
#include "blitz/rate.h"

#include <assert.h>
#include <errno.h>

#include "base/compiler.h"
#include "os/lock.h"
#include "wait/waker.h"

struct rate {
    const struct bz_os *os; /* constant, as are the next three */
    uint64_t permits, per;  /* parts that come each nanosecond; parts of a permit */
    uint64_t most;          /* burst * per */
    uint64_t level,
        level_at; /* in parts; the time for which it is right. Guarded by lock, as is the next */
    uint64_t waiters;
    struct bz_lock lock;
};

static_assert(sizeof(struct rate) <= sizeof(((blitz_rate *)NULL)->inside), "it has room");

enum { NEW, TURN, SLEEP, OVER };

static struct rate *rate_of(blitz_rate *r)
{
    return (struct rate *)r->inside;
}

/* ---- the bucket: under the lock ---- */

static void fill(struct rate *r, uint64_t now)
{
    if (now <= r->level_at)
        return;
    uint64_t spent = now - r->level_at, room = r->most - r->level;
    r->level = spent > room / r->permits ? r->most : r->level + spent * r->permits;
    r->level_at = now;
}

/* Take n permits. Return 0, or the time until which there are too few. */
static uint64_t take_or_when(struct rate *r, uint64_t n)
{
    uint64_t wanted = n * r->per, now = blitz_now();
    fill(r, now);
    if (r->level < wanted)
        return blitz_time_add(now, (wanted - r->level + r->permits - 1) / r->permits);
    r->level -= wanted;
    return 0;
}

/* ---- without waiting ---- */

int blitz_rate_init(blitz_rate *rate, uint64_t permits, blitz_duration per, uint64_t burst)
{
    struct rate *r = rate_of(rate);
    if (permits == 0 || per == 0 || burst == 0 || burst > INT64_MAX / per || permits > INT64_MAX)
        return -EINVAL;
    blitz_semaphore_init(&rate->turn, 1);
    *r = (struct rate){.os = bz_os_here(), .permits = permits, .per = per, .most = burst * per};
    r->level = r->most;
    r->level_at = blitz_now();
    bz_lock_init(&r->lock);
    return 0;
}

int blitz_rate_try_acquire(blitz_rate *rate, uint64_t n)
{
    struct rate *r = rate_of(rate);
    if (n > r->most / r->per)
        return -EINVAL;
    bz_lock_take(&r->lock, r->os);
    int rc = r->waiters == 0 && take_or_when(r, n) == 0 ? 0 : -EAGAIN; /* I2 */
    bz_lock_drop(&r->lock, r->os);
    return rc;
}

uint64_t blitz_rate_permits(blitz_rate *rate)
{
    struct rate *r = rate_of(rate);
    bz_lock_take(&r->lock, r->os);
    fill(r, blitz_now());
    uint64_t permits = r->level / r->per;
    bz_lock_drop(&r->lock, r->os);
    return permits;
}

/* ---- waiting ---- */

static blitz_rate_future *of(blitz_future *f)
{
    return BZ_CONTAINER_OF(f, blitz_rate_future, future);
}

static void count_waiters(struct rate *r, uint64_t change)
{
    bz_lock_take(&r->lock, r->os);
    r->waiters += change;
    bz_lock_drop(&r->lock, r->os);
}

static blitz_poll end(blitz_rate_future *f, int result)
{
    f->state = OVER;
    f->result = result;
    return BLITZ_READY;
}

/* Leave the queue. A waiter that has the turn passes it on. */
static void leave(blitz_rate_future *f)
{
    count_waiters(rate_of(f->of), (uint64_t)-1);
    if (f->state == SLEEP)
        (void)blitz_semaphore_release(&f->of->turn, 1); /* cannot fail: there is one permit */
}

/* With the turn: take the permits, or set the sleep. True if they were taken. */
static bool take(blitz_rate_future *f)
{
    struct rate *r = rate_of(f->of);
    bz_lock_take(&r->lock, r->os);
    uint64_t when = take_or_when(r, f->n);
    bz_lock_drop(&r->lock, r->os);
    if (when != 0)
        blitz_sleep_until_future_init(&f->sleep, when);
    return when == 0;
}

static blitz_poll begin(blitz_rate_future *f)
{
    int rc = blitz_rate_try_acquire(f->of, f->n);
    if (rc != -EAGAIN)
        return end(f, rc);
    count_waiters(rate_of(f->of), 1);
    f->state = TURN;
    blitz_semaphore_acquire_future_init(&f->turn, &f->of->turn, 1);
    return BLITZ_PENDING;
}

static blitz_poll rate_poll(blitz_future *future, const blitz_waker *waker)
{
    blitz_rate_future *f = of(future);
    if (f->state == NEW && begin(f) == BLITZ_READY)
        return BLITZ_READY;
    if (f->state == TURN) {
        if (f->turn.future.ops->poll(&f->turn.future, waker) == BLITZ_PENDING)
            return BLITZ_PENDING;
        f->state = SLEEP;
        blitz_sleep_until_future_init(&f->sleep, 0);
    }
    while (f->state == SLEEP) {
        if (f->sleep.future.ops->poll(&f->sleep.future, waker) == BLITZ_PENDING)
            return BLITZ_PENDING;
        if (take(f)) {
            leave(f);
            return end(f, 0);
        }
    }
    return BLITZ_READY;
}

static void rate_cancel(blitz_future *future)
{
    blitz_rate_future *f = of(future);
    if (f->state == TURN)
        f->turn.future.ops->cancel(&f->turn.future);
    else if (f->state == SLEEP)
        f->sleep.future.ops->cancel(&f->sleep.future);
    if (f->state == TURN || f->state == SLEEP)
        leave(f);
    f->state = OVER;
}

static int rate_output(blitz_future *future)
{
    return of(future)->result;
}

void blitz_rate_acquire_future_init(blitz_rate_future *f, blitz_rate *r, uint64_t n)
{
    static const blitz_future_ops ops = {"rate", BLITZ_REVOCABLE, rate_poll, rate_cancel,
                                         rate_output};
    f->future.ops = &ops;
    f->result = -EINPROGRESS;
    f->state = NEW;
    f->of = r;
    f->n = n;
}

int blitz_rate_acquire(blitz_rate *r, uint64_t n, blitz_deadline until)
{
    blitz_rate_future f;
    int rc = blitz_rate_try_acquire(r, n);
    if (rc != -EAGAIN)
        return rc;
    blitz_rate_acquire_future_init(&f, r, n);
    rc = blitz_await(&f.future, until);
    return rc == 0 ? f.result : rc;
}
