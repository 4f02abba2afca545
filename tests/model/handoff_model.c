/*
 * handoff_model.c - a thread that waits for a hand-off, and the giver.
 *
 *   covers: src/queue/handoff.h
 *
 * The handed-off value is a plain field: a read before the write would race. A waiter without a
 * wake-up would sleep forever.
 */
#include "queue/handoff.h"

#include "model.h"
#include "model_os.h"

static bz_os_word word;
static bz_shared(int) offer;
static bz_atomic(int) rounds; /* the waiter's progress, for the giver */
static int spun, slept;

static void gives(void)
{
    bz_set(&offer, 1);
    bz_handoff_give(&word, &m_os);
}

/* As the pool does: look once, doze off, sleep. */
static void waits(void)
{
    if (bz_handoff_is_given(&word)) {
        spun++;
    } else {
        bz_handoff_doze(&word);
        m_assert(bz_handoff_sleep(&word, &m_os, BZ_OS_FOREVER));
        slept++;
    }
    m_assert(bz_get(&offer) == 1);
    bz_set(&offer, 0);
}

MODEL(given, the_hand_off_is_seen_and_no_thread_sleeps_forever)
{
    bz_handoff_rest(&word, true);
    bz_set(&offer, 0);
    spun = slept = 0;
    m_threads(gives, waits);
    m_sometimes(spun == 1);
    m_sometimes(slept == 1);
    m_assert(bz_get(&offer) == 0);
}

/* Again: it rests, asleep at once, and says so by another word (in the pool: by the lock). */
static void gives_twice(void)
{
    gives();
    while (bz_load_acquire(&rounds) == 0) /* waits_twice */
        m_relax();
    gives();
}

static void waits_twice(void)
{
    waits();
    bz_handoff_rest(&word, false);
    bz_store_release(&rounds, 1); /* gives_twice */
    m_assert(bz_handoff_sleep(&word, &m_os, BZ_OS_FOREVER));
    m_assert(bz_get(&offer) == 1);
}

MODEL(given, it_is_used_again)
{
    bz_handoff_rest(&word, true);
    bz_atomic_init(&rounds, 0);
    bz_set(&offer, 0);
    m_threads(gives_twice, waits_twice);
}
