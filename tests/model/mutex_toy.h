/* The cases of mutex_model.c and mutex_fair_model.c. */
#ifndef MODEL_MUTEX_TOY_H
#define MODEL_MUTEX_TOY_H

#include "sync_toy.h"

static blitz_mutex mutex;
static bz_shared(int) data; /* guarded by it */
static int got;             /* for the end */

static void given(void)
{
    blitz_mutex_init(&mutex);
    bz_set(&data, 0);
    bz_atomic_init(&rung, 0);
    got = 0;
}

static void counts(void)
{
    bz_set(&data, bz_get(&data) + 1);
    blitz_mutex_unlock(&mutex);
}

static void locks(void)
{
    if (blitz_mutex_lock(&mutex, BLITZ_FOREVER) == 0)
        counts();
}

static void locks_until(void)
{
    if (blitz_mutex_lock(&mutex, 1000) == 0) {
        counts();
        got++;
    }
}

static void tries(void)
{
    if (blitz_mutex_try_lock(&mutex) == 0) {
        counts();
        got++;
    }
}

/* [L], by fast paths and line; a wake that is lost is a deadlock. */
MODEL(mutex, two_are_inside_one_after_the_other)
{
    given();
    m_threads(locks, locks);
    m_assert(bz_get(&data) == 2);
    m_assert(!blitz_mutex_is_locked(&mutex));
}

#if defined(BZ_MUTEX_PATIENCE_NS) /* without it there are too many ways in which it can be passed */
/* It is held when this begins. */
static void unlocks_and_tries(void)
{
    counts();
    tries();
}

/* The one in line may be passed, and is not forgotten. */
MODEL(mutex, an_overtaken_waiter_is_woken_by_the_task_that_overtook_it)
{
    given();
    m_assert(blitz_mutex_try_lock(&mutex) == 0);
    m_threads(unlocks_and_tries, locks);
    m_assert(bz_get(&data) == 2 + got);
    m_assert(!blitz_mutex_is_locked(&mutex));
    m_sometimes(got == 1);
}
#endif

MODEL(mutex, one_that_tries_does_not_wait)
{
    given();
    m_threads(locks, tries);
    m_assert(bz_get(&data) == 1 + got);
    m_assert(!blitz_mutex_is_locked(&mutex));
}

/* Bug class 22: the wake-up of a cancelled waiter goes to another waiter, if there is one. */
MODEL(mutex, bug_22_a_cancelled_waiter_leaves_the_mutex_free)
{
    given();
    m_threads(locks, locks_until);
    m_assert(bz_get(&data) == 1 + got);
    m_assert(!blitz_mutex_is_locked(&mutex));
    m_sometimes(got == 0);
    m_sometimes(got == 1);
}

static blitz_sync_future future;

static void polls_then_cancels(void)
{
    blitz_mutex_lock_future_init(&future, &mutex);
    if (toy_poll(&future)) {
        counts();
        got++;
    } else {
        toy_cancel(&future);
    }
}

MODEL(mutex, bug_22_a_future_that_is_cancelled_passes_its_turn_on)
{
    given();
    m_threads(locks, polls_then_cancels);
    m_assert(bz_get(&data) == 1 + got);
    m_assert(!blitz_mutex_is_locked(&mutex));
}

static blitz_sync_future second;

static void unlocks(void)
{
    counts();
}

static void cancels(void)
{
    toy_cancel(&future);
}

static void nothing_rings(void *data_)
{
    (void)data_;
}

/* Two futures stand in line. The first, told or handed, is cancelled; then the second must have been
 * rung and get it. */
MODEL(mutex, bug_22_the_waiter_behind_a_cancelled_future_is_woken)
{
    static const blitz_waker_ops silent = {nothing_rings, nothing_rings, nothing_rings,
                                           nothing_rings};
    blitz_waker first_waker = {&silent, NULL};
    given();
    m_assert(blitz_mutex_try_lock(&mutex) == 0);
    blitz_mutex_lock_future_init(&future, &mutex);
    blitz_mutex_lock_future_init(&second, &mutex);
    m_assert(future.future.ops->poll(&future.future, &first_waker) == BLITZ_PENDING);
    m_assert(!toy_poll(&second));
    m_threads(unlocks, cancels);
    m_assert(bz_load_relaxed(&rung));
    m_assert(toy_poll(&second));
    counts();
    m_assert(bz_get(&data) == 2);
    m_assert(!blitz_mutex_is_locked(&mutex));
}

/* ---- lockers that arrive while a waiter waits ---- */

/* Held, with two futures in line. */
static void given_two_in_line(void)
{
    given();
    m_assert(blitz_mutex_try_lock(&mutex) == 0);
    blitz_mutex_lock_future_init(&future, &mutex);
    blitz_mutex_lock_future_init(&second, &mutex);
    m_assert(!toy_poll(&future));
    m_assert(!toy_poll(&second));
}

static void then_it_comes_free(void)
{
    if (toy_poll(&future))
        blitz_mutex_unlock(&mutex);
    else
        toy_cancel(&future);
    toy_cancel(&second);
    m_assert(!blitz_mutex_is_locked(&mutex));
}

/* [L] where the unlock notifies another waiter: a thread that overtakes it sees the writes. */
MODEL(mutex, an_overtaking_locker_sees_the_holders_writes)
{
    given_two_in_line();
    m_threads(unlocks, tries);
    m_assert(bz_get(&data) == 1 + got);
    then_it_comes_free();
}

MODEL(mutex, a_locker_after_the_last_waiter_sees_the_holders_writes)
{
    given();
    m_assert(blitz_mutex_try_lock(&mutex) == 0);
    blitz_mutex_lock_future_init(&future, &mutex);
    m_assert(!toy_poll(&future));
    m_threads(unlocks, cancels, tries);
    m_assert(bz_get(&data) == 1 + got);
    m_assert(!blitz_mutex_is_locked(&mutex));
}

#if !defined(BZ_MUTEX_PATIENCE_NS) /* with a patience of 0 no waiter is ever notified to retry */

static void cancels_second(void)
{
    toy_cancel(&second);
}

/* The last waiter leaves while another thread overtakes: the flag is cleared beside a lock. */
MODEL(mutex, a_leaving_waiter_does_not_unlock_for_another)
{
    given_two_in_line();
    blitz_mutex_unlock(&mutex); /* the first is told */
    m_threads(cancels_second, tries);
    m_assert(bz_get(&data) == got && got == 1);
    then_it_comes_free();
}

/* The one that was told is cancelled, between two that pass. */
MODEL(mutex, a_passed_on_turn_carries_earlier_writes)
{
    given_two_in_line();
    blitz_mutex_unlock(&mutex); /* the first is told */
    m_threads(tries, cancels, tries);
    m_assert(bz_get(&data) == got);
    m_assert(bz_load_relaxed(&rung));
    toy_cancel(&second);
    m_assert(!blitz_mutex_is_locked(&mutex));
}

#endif

#endif
