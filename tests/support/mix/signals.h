/*
 * signals.h - the scenes of condition and notify: a signal wakes one waiter, and is not lost.
 *
 * condition: a bounded buffer. Each put signals one taker, each take one putter; holders keep the
 * mutex busy. When the putters have left and the buffer is empty, all takers are woken to leave. A
 * signal that is lost leaves an item in the buffer and the keeper asleep.
 *
 * notify: producers add work and notify one consumer. A consumer takes work until none is left
 * before it waits; one that leaves earlier passes its notification on.
 */
#ifndef MIX_SIGNALS_H
#define MIX_SIGNALS_H

#include "support/mix/round.h"

enum { SIGNALS_PUT, SIGNALS_TAKE, SIGNALS_HOLD, SIGNALS_SHOUT };

static struct {
    blitz_mutex mutex;
    blitz_condition is_filled, is_emptied;
    unsigned capacity, items, putters; /* guarded by the mutex */
    bool is_closed;                    /* guarded by the mutex */
    blitz_notify notify;
    struct mix_count work, debt, is_done;
} signals;

/* p->scratch: is the mutex held; does it owe a notification; does it pause before it unlocks. */
enum { SIGNALS_HELD, SIGNALS_OWES, SIGNALS_LINGERS };

/* ---- condition ---- */

static void condition_make(struct mix_round *r)
{
    static const unsigned capacities[] = {1, 2, 7, 64};
    memset(&signals, 0, sizeof signals);
    blitz_mutex_init(&signals.mutex);
    blitz_condition_init(&signals.is_filled);
    blitz_condition_init(&signals.is_emptied);
    signals.capacity = capacities[mix_die(&r->dice, 4)];
    mix_join_in(r, SIGNALS_TAKE, true);
    mix_join_in(r, SIGNALS_PUT, mix_one_in(&r->dice, 2));
    for (uint64_t n = mix_die(&r->dice, mix_one_in(&r->dice, 2) ? 3 : 8); n > 0; n--)
        mix_join_in(r, (unsigned)mix_die(&r->dice, 3), mix_one_in(&r->dice, 3));
    uint64_t most = mix_one_in(&r->dice, 2) ? 3 : 20;
    for (unsigned i = 0; i < r->count; i++) {
        r->party[i].left = 1 + (unsigned)mix_die(&r->dice, most);
        signals.putters += r->party[i].role == SIGNALS_PUT;
    }
    mix_say(r, " capacity %u", signals.capacity);
}

static blitz_condition *condition_of(const struct mix_party *p)
{
    return p->role == SIGNALS_PUT ? &signals.is_emptied : &signals.is_filled;
}

static bool condition_next(struct mix_party *p)
{
    bool is_unbounded = p->role == SIGNALS_TAKE && p->is_keeper;
    if (p->scratch[SIGNALS_HELD]) {
        p->op.with = &signals.mutex;
        p->op.n = mix_die(&p->dice, 30) * BLITZ_US;
        bool is_pause = p->role == SIGNALS_HOLD || p->scratch[SIGNALS_LINGERS];
        p->scratch[SIGNALS_LINGERS] = 0;
        mix_begin(p, is_pause ? &mix_pause : &mix_condition, condition_of(p));
        return true;
    }
    if (!is_unbounded && p->left == 0)
        return false;
    mix_begin(p, &mix_lock, &signals.mutex);
    return true;
}

static void condition_unlock(struct mix_party *p)
{
    p->scratch[SIGNALS_HELD] = 0;
    blitz_mutex_unlock(&signals.mutex);
}

/* With the mutex: the last item is gone, and no more will come. */
static void condition_maybe_close(void)
{
    if (signals.putters != 0 || signals.items != 0)
        return;
    signals.is_closed = true;
    blitz_condition_broadcast(&signals.is_filled);
}

/* Tell one waiter of the other side that there is an item, or room. Some keep the mutex for a while
 * after that: the waiter has its signal then, and waits for the mutex. */
static void condition_tell(struct mix_party *p)
{
    blitz_condition *other = p->role == SIGNALS_PUT ? &signals.is_filled : &signals.is_emptied;
    uint64_t way = mix_die(&p->dice, 3);
    if (way == 0)
        condition_unlock(p);
    blitz_condition_signal(other);
    if (way == 1)
        condition_unlock(p);
    else if (way == 2)
        p->scratch[SIGNALS_LINGERS] = 1;
}

/* With the mutex: put or take if that can be done, else go on to wait. */
static void condition_act(struct mix_party *p)
{
    p->scratch[SIGNALS_HELD] = 1;
    if (p->role == SIGNALS_HOLD) {
        p->left--;
    } else if (p->role == SIGNALS_PUT && signals.items < signals.capacity) {
        signals.items++;
        p->left--;
        condition_tell(p);
    } else if (p->role == SIGNALS_TAKE && signals.items > 0) {
        signals.items--;
        p->left -= p->left > 0;
        condition_maybe_close();
        condition_tell(p);
    } else if (p->role == SIGNALS_TAKE && signals.is_closed) {
        p->is_over = true;
        condition_unlock(p);
    }
}

static void condition_done(struct mix_party *p, int rc)
{
    CHECK(rc == 0 || rc == -ETIMEDOUT || rc == -ECANCELED);
    if (p->op.verb == &mix_condition)
        p->scratch[SIGNALS_HELD] = p->op.is_held;
    if (p->op.verb != &mix_pause && rc == 0)
        condition_act(p);
    else if (p->scratch[SIGNALS_HELD])
        condition_unlock(p);
    if (rc == -ECANCELED && p->scratch[SIGNALS_HELD])
        condition_unlock(p);
}

static void condition_leave(struct mix_party *p)
{
    if (p->role != SIGNALS_PUT)
        return;
    blitz_shield();
    CHECK_EQ(blitz_mutex_lock(&signals.mutex, BLITZ_FOREVER), 0);
    signals.putters--;
    condition_maybe_close();
    blitz_mutex_unlock(&signals.mutex);
    blitz_unshield();
}

static void condition_check(struct mix_round *r)
{
    (void)r;
    CHECK_EQ(signals.items, 0);
    CHECK(signals.is_closed);
    CHECK(!blitz_mutex_is_locked(&signals.mutex));
}

static const struct mix_scene mix_scene_condition = {
    "condition",    4, condition_make, condition_next, condition_done, condition_leave,
    condition_check};

/* ---- notify ---- */

static void notify_make(struct mix_round *r)
{
    memset(&signals, 0, sizeof signals);
    blitz_notify_init(&signals.notify);
    mix_join_in(r, SIGNALS_TAKE, true);
    mix_join_in(r, SIGNALS_PUT, false);
    for (uint64_t n = mix_die(&r->dice, 8); n > 0; n--)
        mix_join_in(r, (unsigned)mix_die(&r->dice, 2), mix_one_in(&r->dice, 3));
    if (mix_one_in(&r->dice, 4))
        mix_join_in(r, SIGNALS_SHOUT, false);
    for (unsigned i = 0; i < r->count; i++) {
        r->party[i].left = 1 + (unsigned)mix_die(&r->dice, 12);
        if (r->party[i].role == SIGNALS_PUT)
            mix_add(&signals.debt, INT64_C(1) << 32);
    }
}

/* debt: the producers << 32, plus the work that is not done. */
static void notify_owe(int64_t by)
{
    if (mix_add(&signals.debt, by) != 0)
        return;
    mix_set(&signals.is_done, 1);
    blitz_notify_one(&signals.notify); /* each consumer that leaves notifies the next */
}

static bool notify_take(struct mix_party *p)
{
    int64_t work = mix_get(&signals.work);
    while (work > 0 &&
           !bz_cas_weak_sc_sc(&signals.work.n, &work, work - 1)) /* seq_cst: as mix_add() */
        ;
    if (work <= 0) {
        p->scratch[SIGNALS_OWES] = 0;
        return false;
    }
    p->left -= p->left > 0;
    notify_owe(-1);
    return true;
}

static bool notify_next(struct mix_party *p)
{
    if (p->left == 0 && !(p->is_keeper && p->role == SIGNALS_TAKE))
        return false;
    if (p->role != SIGNALS_TAKE) {
        p->op.n = mix_die(&p->dice, 3) * mix_die(&p->dice, 10) * BLITZ_US;
        mix_begin(p, &mix_pause, NULL);
        return true;
    }
    if (notify_take(p))
        return true;
    if (mix_get(&signals.is_done))
        return false;
    if (mix_one_in(&p->dice, 8) && blitz_notify_try_wait(&signals.notify) == 0) {
        p->scratch[SIGNALS_OWES] = 1;
        return true;
    }
    mix_begin(p, &mix_notify, &signals.notify);
    return true;
}

static void notify_done(struct mix_party *p, int rc)
{
    CHECK(rc == 0 || rc == -ETIMEDOUT || rc == -ECANCELED);
    if (p->role == SIGNALS_TAKE) {
        p->scratch[SIGNALS_OWES] |= rc == 0;
        return;
    }
    p->left--;
    if (p->role == SIGNALS_SHOUT) {
        blitz_notify_all(&signals.notify);
        return;
    }
    mix_add(&signals.debt, 1);
    mix_add(&signals.work, 1);
    blitz_notify_one(&signals.notify);
}

static void notify_leave(struct mix_party *p)
{
    if (p->role == SIGNALS_PUT)
        notify_owe(-(INT64_C(1) << 32));
    else if (p->role == SIGNALS_TAKE && (p->scratch[SIGNALS_OWES] || mix_get(&signals.is_done)))
        blitz_notify_one(&signals.notify);
}

static void notify_check(struct mix_round *r)
{
    (void)r;
    CHECK_EQ(mix_get(&signals.work), 0);
}

static const struct mix_scene mix_scene_notify = {
    "notify", 2, notify_make, notify_next, notify_done, notify_leave, notify_check};

#endif
