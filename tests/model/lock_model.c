/*
 * lock_model.c - os/lock.h: the runtime's own lock, on a sleep word.
 *
 *   covers: src/os/lock.h src/os/lock.c
 *   defines: BZ_LOCK_SPINS=1
 *
 * What the lock guards is a plain field: two holders at once, or one that does not see what the last
 * one wrote, would race. A waiter that is forgotten would sleep for ever.
 */
#include "os/lock.h"

#include "model.h"
#include "model_os.h"

static struct bz_lock lock;
static bz_shared(int) guarded;

static void adds_one(void)
{
    bz_lock_take(&lock, &m_os);
    bz_set(&guarded, bz_get(&guarded) + 1);
    bz_lock_drop(&lock, &m_os);
}

static void adds_two(void)
{
    adds_one();
    adds_one();
}

static void tries(void)
{
    if (!bz_lock_try(&lock))
        return;
    bz_set(&guarded, bz_get(&guarded) + 1);
    bz_lock_drop(&lock, &m_os);
}

static void given_a_free_lock(void)
{
    bz_lock_init(&lock);
    m_settings()->spin_tries = 1; /* it gives up spinning, and sleeps */
    m_settings()->spurious = 0;
}

MODEL(lock, two_take_it_in_turn_and_no_waiter_is_lost)
{
    given_a_free_lock();
    m_threads(adds_one, adds_one);
    m_assert(bz_get(&guarded) == 2);
}

MODEL(lock, it_is_taken_again_and_again)
{
    given_a_free_lock();
    m_threads(adds_two, adds_one);
    m_assert(bz_get(&guarded) == 3);
}

/* A lost wake is a deadlock, two holders are a race. */
MODEL(lock, two_threads_take_turns)
{
    given_a_free_lock();
    m_threads(adds_two, adds_two);
    m_assert(bz_get(&guarded) == 4);
    m_assert(bz_load_relaxed(&lock.word) == BZ_LOCK_FREE);
}

MODEL(lock, a_try_does_not_wait)
{
    given_a_free_lock();
    m_threads(adds_one, tries);
    m_sometimes(bz_get(&guarded) == 1);
    m_sometimes(bz_get(&guarded) == 2);
}

/* Two sleepers, one wake at a time: the one that is woken knows that there may be another. */
MODEL(lock, three_take_it_in_turn)
{
    given_a_free_lock();
    m_threads(adds_one, adds_one, adds_one);
    m_assert(bz_get(&guarded) == 3);
}

MODEL(lock, a_sleeper_that_wakes_for_no_reason_looks_again)
{
    given_a_free_lock();
    m_settings()->spurious = 1;
    m_threads(adds_one, adds_one);
    m_assert(bz_get(&guarded) == 2);
}
