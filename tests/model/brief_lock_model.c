/*
 * brief_lock_model.c - os/brief_lock.h: a lock that is dropped by a store.
 *
 *   covers: src/os/brief_lock.h src/os/brief_lock.c
 *   defines: BZ_BRIEF_SPINS=1
 *
 * The lock guards a plain field. Two holders at once, or a holder that does not see the writes of the last one, are a
 * race. A waiter sleeps with a timeout, so that a drop need not rouse it.
 */
#include "os/brief_lock.h"

#include "model.h"
#include "model_os.h"

static struct bz_lock lock;
static bz_shared(int) guarded;

static void adds_one(void)
{
    bz_brief_take(&lock, &m_os);
    bz_set(&guarded, bz_get(&guarded) + 1);
    bz_brief_drop(&lock, &m_os);
}

static void adds_two(void)
{
    adds_one();
    adds_one();
}

static void given_a_free_lock(void)
{
    bz_lock_init(&lock);
    m_settings()->spin_tries = 1; /* it gives up spinning, and sleeps */
}

MODEL(brief_lock, two_threads_take_turns)
{
    given_a_free_lock();
    m_threads(adds_two, adds_one);
    m_assert(bz_get(&guarded) == 3);
    m_assert(bz_load_relaxed(&lock.word) == BZ_LOCK_FREE);
}

/* No drop rouses a sleeper: each wakes at its timeout. */
MODEL(brief_lock, three_threads_take_it_and_none_waits_forever)
{
    given_a_free_lock();
    m_threads(adds_one, adds_one, adds_one);
    m_assert(bz_get(&guarded) == 3);
}
