/*
 * semaphore_model.c - permits are handed on with what was done under them, and none is lost on one who
 * has given up.
 *
 *   covers: src/sync/semaphore.c src/sync/waitq.h src/sync/waitq.c
 *   needs: src/park/park.c src/park/request.c src/os/lock.c src/os/self.c src/task/word.c
 *   needs: src/wait/arbiter.c src/wait/wake.c src/life/cancel.c
 *   defines: BZ_LOCK_SPINS=1
 */
#include "sync_toy.h"

static blitz_semaphore semaphore;
static bz_shared(int) data; /* guarded by a single permit */
static int got;             /* acquires that succeeded, for the end */

static void given(uint32_t permits)
{
    blitz_semaphore_init(&semaphore, permits);
    got = 0;
}

static void uses_it(void)
{
    int err = blitz_semaphore_acquire(&semaphore, 1, BLITZ_FOREVER);
    m_assert(err == 0);
    bz_set(&data, bz_get(&data) + 1);
    err = blitz_semaphore_release(&semaphore, 1);
    m_assert(err == 0);
}

static void gives_up_perhaps(void)
{
    int err = blitz_semaphore_acquire(&semaphore, 1, 1000);
    if (err == 0) {
        got++;
        bz_set(&data, bz_get(&data) + 1);
        err = blitz_semaphore_release(&semaphore, 1);
    }
}

static void releases(void)
{
    bz_set(&data, 7);
    (void)blitz_semaphore_release(&semaphore, 1);
}

static void takes(void)
{
    if (blitz_semaphore_acquire(&semaphore, 1, BLITZ_FOREVER) == 0)
        m_assert(bz_get(&data) >= 7);
}

static void takes_until(void)
{
    if (blitz_semaphore_acquire(&semaphore, 1, 1000) == 0) {
        m_assert(bz_get(&data) == 7);
        got++;
    }
}

/* [P], by the fast paths and by the line. */
MODEL(semaphore, a_single_permit_is_a_lock)
{
    given(1);
    bz_set(&data, 0);
    m_threads(uses_it, uses_it);
    m_assert(bz_get(&data) == 2);
    m_assert(blitz_semaphore_permits(&semaphore) == 1);
}

MODEL(semaphore, a_waiter_sees_the_writes_before_the_release)
{
    given(0);
    m_threads(takes, releases);
    m_assert(blitz_semaphore_permits(&semaphore) == 0);
}

/* Bug class 22. */
MODEL(semaphore, bug_22_a_permit_is_not_lost_to_a_cancelled_waiter)
{
    given(0);
    m_threads(takes_until, releases);
    m_assert((int)blitz_semaphore_permits(&semaphore) + got == 1);
    m_sometimes(got == 1);
    m_sometimes(got == 0);
}

MODEL(semaphore, bug_22_a_cancelled_waiter_does_not_block_the_next)
{
    given(1);
    bz_set(&data, 0);
    m_threads(uses_it, gives_up_perhaps);
    m_assert(blitz_semaphore_permits(&semaphore) == 1);
    m_assert(bz_get(&data) == 1 + got);
}

/* ---- others at the same time ---- */

static bz_shared(int) left_by[2];

static void releases_first(void)
{
    bz_set(&left_by[0], 1);
    (void)blitz_semaphore_release(&semaphore, 1);
}

static void releases_second(void)
{
    bz_set(&left_by[1], 1);
    (void)blitz_semaphore_release(&semaphore, 1);
}

static blitz_sync_future future;

static void polls_for_two(void)
{
    if (toy_poll(&future)) {
        m_assert(bz_get(&left_by[0]) == 1 && bz_get(&left_by[1]) == 1);
        got++;
    }
}

/* [P] in serve: the thread that hands the permits over need not be the one that released them. */
MODEL(semaphore, two_permits_carry_the_writes_of_both_releasers)
{
    given(0);
    bz_atomic_init(&rung, 0);
    blitz_semaphore_acquire_future_init(&future, &semaphore, 2);
    m_assert(!toy_poll(&future));
    m_threads(polls_for_two, releases_first, releases_second);
    m_sometimes(got == 1);
    m_assert(blitz_semaphore_permits(&semaphore) == 0);
}

static void takes_one_until(void)
{
    got += blitz_semaphore_acquire(&semaphore, 1, 1000) == 0;
}

static void tries(void)
{
    got += blitz_semaphore_try_acquire(&semaphore, 1) == 0;
}

/* One permit, for one who comes out of the line and one who only tries. */
MODEL(semaphore, one_permit_is_had_by_one)
{
    given(0);
    m_threads(takes_one_until, releases_first, tries);
    m_assert((int)blitz_semaphore_permits(&semaphore) + got == 1);
}

static void releases_and_closes(void)
{
    blitz_semaphore_close(&semaphore);
}

MODEL(semaphore, a_close_and_a_release_both_happen)
{
    given(0);
    m_threads(releases_first, releases_and_closes);
    m_assert(blitz_semaphore_permits(&semaphore) == 1);
    m_assert(blitz_semaphore_try_acquire(&semaphore, 1) == -EPIPE);
}

/* ---- a future ---- */

static void polls_then_cancels(void)
{
    blitz_semaphore_acquire_future_init(&future, &semaphore, 1);
    if (!toy_poll(&future))
        toy_cancel(&future);
    else if (future.result == 0)
        got++;
}

MODEL(semaphore, bug_22_a_permit_given_to_a_future_that_is_cancelled_comes_back)
{
    given(0);
    bz_atomic_init(&rung, 0);
    m_threads(polls_then_cancels, releases);
    m_assert((int)blitz_semaphore_permits(&semaphore) + got == 1);
}

static void polls_twice(void)
{
    blitz_semaphore_acquire_future_init(&future, &semaphore, 1);
    if (toy_poll(&future) || (bz_load_acquire(&rung) && toy_poll(&future))) {
        m_assert(bz_get(&data) == 7);
        got++;
    } else {
        toy_cancel(&future);
    }
}

MODEL(semaphore, a_future_that_was_rung_is_ready)
{
    given(0);
    bz_atomic_init(&rung, 0);
    m_threads(polls_twice, releases);
    m_assert((int)blitz_semaphore_permits(&semaphore) + got == 1);
    m_sometimes(got == 1);
}

static void cancels(void)
{
    toy_cancel(&future);
}

/* It stands in line; whatever it was given comes back beside what is released meanwhile. */
MODEL(semaphore, bug_22_a_cancel_beside_two_releases_leaves_two_permits)
{
    given(0);
    bz_atomic_init(&rung, 0);
    blitz_semaphore_acquire_future_init(&future, &semaphore, 1);
    m_assert(!toy_poll(&future));
    m_threads(cancels, releases_first, releases_second);
    m_assert(blitz_semaphore_permits(&semaphore) == 2);
}

/* ---- closing ---- */

static void closes(void)
{
    blitz_semaphore_close(&semaphore);
}

static void is_turned_away(void)
{
    int err = blitz_semaphore_acquire(&semaphore, 1, BLITZ_FOREVER);
    m_assert(err == -EPIPE);
}

MODEL(semaphore, a_close_is_heard_whenever_it_comes)
{
    given(0);
    m_threads(is_turned_away, closes);
}
