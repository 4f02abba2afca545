/*
 * condition_model.c - a signal reaches one waiter, whatever phase a cancelled future was in.
 *
 *   covers: src/sync/condition.c
 *   needs: src/sync/mutex.c src/sync/waitq.c src/park/park.c src/park/request.c src/os/lock.c src/os/self.c
 *   needs: src/wait/arbiter.c src/wait/wake.c src/life/cancel.c
 *   needs: src/task/word.c
 *   defines: BZ_LOCK_SPINS=1 BZ_MUTEX_SPINS=0
 *
 * Two futures wait, in this order. The first is polled once more and then cancelled, while another
 * thread signals once with the mutex locked. The second one must get the signal unless the first did.
 */
#include "sync_toy.h"

static blitz_mutex mutex;
static blitz_condition condition;
static blitz_sync_future future[2];
static bool has_first, was_second_phase;

/* Nothing is locked again here but by futures. */
void blitz_shield(void) {}

void blitz_unshield(void) {}

static void given(void)
{
    blitz_mutex_init(&mutex);
    blitz_condition_init(&condition);
    bz_atomic_init(&rung, 0);
    has_first = was_second_phase = false;
    for (int i = 0; i < 2; i++) {
        m_assert(blitz_mutex_try_lock(&mutex) == 0);
        blitz_condition_wait_future_init(&future[i], &condition, &mutex);
        m_assert(!toy_poll(&future[i])); /* unlocks */
    }
}

static void asks_and_gives_up(void)
{
    const blitz_future_ops *ops = future[0].future.ops;
    has_first = toy_poll(&future[0]);
    was_second_phase = future[0].future.ops != ops;
    if (has_first)
        blitz_mutex_unlock(&mutex);
    else
        toy_cancel(&future[0]);
}

static void signals(void)
{
    if (blitz_mutex_try_lock(&mutex) != 0)
        m_ignore(); /* the first future has it, signalled before: not this story */
    blitz_condition_signal(&condition);
    blitz_mutex_unlock(&mutex);
}

MODEL(condition, bug_52_a_signal_outlives_a_cancel_in_either_phase)
{
    given();
    m_threads(asks_and_gives_up, signals);
    m_assert(toy_poll(&future[1]) == !has_first);
    m_sometimes(has_first);
    m_sometimes(!has_first && was_second_phase);
    m_sometimes(!has_first && !was_second_phase);
    if (has_first)
        toy_cancel(&future[1]);
    else
        blitz_mutex_unlock(&mutex);
    m_assert(!blitz_mutex_is_locked(&mutex));
}

static void broadcasts(void)
{
    blitz_condition_broadcast(&condition);
}

MODEL(condition, a_broadcast_reaches_both)
{
    given();
    m_threads(asks_and_gives_up, broadcasts);
    m_assert(toy_poll(&future[1]));
    blitz_mutex_unlock(&mutex);
    m_assert(!blitz_mutex_is_locked(&mutex));
}

/* ---- a thread that calls ---- */

static bz_shared(int) token;

static void waits_for_a_token(void)
{
    int err = blitz_mutex_lock(&mutex, BLITZ_FOREVER);
    while (err == 0 && bz_get(&token) == 0)
        err = blitz_condition_wait(&condition, &mutex, BLITZ_FOREVER);
    m_assert(err == 0);
    blitz_mutex_unlock(&mutex);
}

static void brings_a_token(void)
{
    m_assert(blitz_mutex_lock(&mutex, BLITZ_FOREVER) == 0);
    bz_set(&token, 1);
    blitz_mutex_unlock(&mutex);
    blitz_condition_signal(&condition);
}

/* No signal falls between the unlock and the wait. */
MODEL(condition, a_thread_that_waits_hears_of_the_token)
{
    blitz_mutex_init(&mutex);
    blitz_condition_init(&condition);
    bz_set(&token, 0);
    m_settings()->spurious = 0;
    m_threads(waits_for_a_token, brings_a_token);
    m_assert(!blitz_mutex_is_locked(&mutex));
}
