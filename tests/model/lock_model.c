/*
 * lock_model.c - the runtime's lock: one holder at a time, and nobody sleeps through a drop.
 *
 *   covers: src/os/lock.h src/os/lock.c
 *   defines: BZ_LOCK_SPINS=1
 */
#include "model.h"

#include "os/lock.h"

static int model_wait(const struct bz_os *os, bz_os_word *word, uint32_t expected, uint64_t until)
{
    (void)os;
    (void)until;
    return m_word_wait(word, expected);
}

static int model_wake(const struct bz_os *os, bz_os_word *word, uint32_t count)
{
    (void)os;
    return m_word_wake(word, (int)count);
}

static void model_relax(const struct bz_os *os, unsigned round)
{
    (void)os;
    (void)round;
    m_relax();
}

static const struct bz_os model_os = {.wait = model_wait, .wake = model_wake, .relax = model_relax};

static struct bz_lock lock;
static bz_shared(int) count; /* guarded by lock: two holders at once are a data race */

static void adds(void)
{
    bz_lock_take(&lock, &model_os);
    bz_set(&count, bz_get(&count) + 1);
    bz_lock_drop(&lock, &model_os);
}

static void adds_twice(void)
{
    adds();
    adds();
}

/* lock.h [A]: a lost wake is a deadlock, two holders are a race. */
MODEL(lock, two_threads_take_turns)
{
    bz_lock_init(&lock);
    bz_set(&count, 0);
    m_threads(adds_twice, adds_twice);
    m_assert(bz_get(&count) == 4);
    m_assert(bz_load_relaxed(&lock.word) == BZ_LOCK_FREE);
}

/* Three: the one that was roused must not forget the other who still sleeps. */
MODEL(lock, of_two_sleepers_neither_is_forgotten)
{
    bz_lock_init(&lock);
    bz_set(&count, 0);
    m_threads(adds, adds, adds);
    m_assert(bz_get(&count) == 3);
}

static void tries(void)
{
    if (bz_lock_try(&lock)) {
        bz_set(&count, bz_get(&count) + 1);
        bz_lock_drop(&lock, &model_os);
    }
}

MODEL(lock, a_try_that_succeeds_holds_it_alone)
{
    bz_lock_init(&lock);
    bz_set(&count, 0);
    m_threads(adds, tries);
    m_sometimes(bz_get(&count) == 1);
    m_sometimes(bz_get(&count) == 2);
}
