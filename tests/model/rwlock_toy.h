/* The cases of rwlock_model.c and rwlock_fair_model.c. */
#ifndef MODEL_RWLOCK_TOY_H
#define MODEL_RWLOCK_TOY_H

#include "sync_toy.h"

static blitz_rwlock lock;
static bz_shared(int) data; /* guarded by it */
static int got;

static void given(void)
{
    blitz_rwlock_init(&lock);
    bz_set(&data, 0);
    got = 0;
}

static void writes(void)
{
    if (blitz_rwlock_write(&lock, BLITZ_FOREVER) == 0) {
        bz_set(&data, bz_get(&data) + 1);
        blitz_rwlock_write_unlock(&lock);
    }
}

static void reads(void)
{
    if (blitz_rwlock_read(&lock, BLITZ_FOREVER) == 0) {
        m_assert(bz_get(&data) <= 2);
        blitz_rwlock_read_unlock(&lock);
    }
}

static void writes_until(void)
{
    if (blitz_rwlock_write(&lock, 1000) == 0) {
        bz_set(&data, bz_get(&data) + 1);
        got++;
        blitz_rwlock_write_unlock(&lock);
    }
}

static void writes_then_reads(void)
{
    if (blitz_rwlock_write(&lock, BLITZ_FOREVER) == 0) {
        bz_set(&data, bz_get(&data) + 1);
        blitz_rwlock_downgrade(&lock);
        m_assert(bz_get(&data) >= 1);
        blitz_rwlock_read_unlock(&lock);
    }
}

static void then_it_is_free(void)
{
    m_assert(blitz_rwlock_try_write(&lock) == 0);
}

/* [R]: writer to writer, writer to reader and reader to writer; a race is reported by itself. */
MODEL(rwlock, writers_are_alone)
{
    given();
    m_threads(writes, writes);
    m_assert(bz_get(&data) == 2);
    then_it_is_free();
}

MODEL(rwlock, a_reader_and_a_writer_are_apart)
{
    given();
    m_threads(reads, writes);
    then_it_is_free();
}

static void unlocks_writing(void)
{
    bz_set(&data, 1);
    blitz_rwlock_write_unlock(&lock);
}

static blitz_sync_future future;

MODEL(rwlock, a_writer_lets_all_readers_in)
{
    given();
    m_assert(blitz_rwlock_try_write(&lock) == 0);
    blitz_rwlock_read_future_init(&future, &lock);
    m_assert(!toy_poll(&future));
    m_threads(unlocks_writing, reads);
    m_assert(toy_poll(&future));
    m_assert(bz_get(&data) == 1);
    blitz_rwlock_read_unlock(&lock);
    then_it_is_free();
}

MODEL(rwlock, a_writer_that_goes_on_reading_lets_no_writer_between)
{
    given();
    m_threads(writes_then_reads, writes);
    m_assert(bz_get(&data) == 2);
    then_it_is_free();
}

/* Bug class 22: also with readers behind the writer that gives up. */
MODEL(rwlock, bug_22_a_cancelled_writer_blocks_no_other_waiter)
{
    given();
    m_threads(reads, writes_until);
    m_assert(bz_get(&data) == got);
    then_it_is_free();
}

static void unlocks_reading(void)
{
    m_assert(bz_get(&data) == 0);
    blitz_rwlock_read_unlock(&lock);
}

/* The lock is read-locked; two writers wait. The last reader lets the next one in. */
MODEL(rwlock, the_last_reader_lets_a_writer_in)
{
    given();
    m_assert(blitz_rwlock_try_read(&lock) == 0);
    m_assert(blitz_rwlock_try_read(&lock) == 0);
    m_threads(unlocks_reading, unlocks_reading, writes);
    m_assert(bz_get(&data) == 1);
    then_it_is_free();
}

/* ---- others at the same time ---- */

static void tries_reading(void)
{
    if (blitz_rwlock_try_read(&lock) == 0) {
        m_assert(bz_get(&data) <= 1);
        blitz_rwlock_read_unlock(&lock);
    }
}

#if defined(BZ_RWLOCK_PATIENCE_NS) /* without it there are too many ways to be passed */
/* A writer that is let in as it comes to the line, and one who reads by the fast path. */
MODEL(rwlock, a_try_read_never_succeeds_beside_a_writer)
{
    given();
    m_assert(blitz_rwlock_try_read(&lock) == 0);
    m_threads(unlocks_reading, writes, tries_reading);
    m_assert(bz_get(&data) == 1);
    then_it_is_free();
}

static void unlocks_and_tries_again(void)
{
    unlocks_reading();
    tries_reading();
}

/* Another comes as soon as the first one leaves. */
MODEL(rwlock, a_writer_that_is_passed_has_its_turn)
{
    given();
    m_assert(blitz_rwlock_try_read(&lock) == 0);
    m_threads(unlocks_and_tries_again, writes);
    m_assert(bz_get(&data) == 1);
    then_it_is_free();
}
#endif

static void writes_and_downgrades(void)
{
    bz_set(&data, 1);
    blitz_rwlock_downgrade(&lock);
}

static void reads_what_was_written(void)
{
    if (blitz_rwlock_try_read(&lock) == 0) {
        m_assert(bz_get(&data) == 1);
        got++;
        blitz_rwlock_read_unlock(&lock);
    }
}

MODEL(rwlock, a_reader_sees_the_writes_of_the_last_writer)
{
    given();
    m_assert(blitz_rwlock_try_write(&lock) == 0);
    m_threads(writes_and_downgrades, reads_what_was_written);
    m_sometimes(got == 1);
}

static void cancels(void)
{
    toy_cancel(&future);
}

MODEL(rwlock, bug_22_a_cancelled_reader_leaves_beside_another)
{
    given();
    m_assert(blitz_rwlock_try_read(&lock) == 0);
    blitz_rwlock_write_future_init(&future, &lock);
    m_assert(!toy_poll(&future));
    m_threads(cancels, unlocks_reading, tries_reading);
    then_it_is_free();
}

/* Given to a future and taken back, while another reader leaves. */
MODEL(rwlock, bug_22_the_grant_of_a_cancelled_reader_is_not_lost)
{
    given();
    m_assert(blitz_rwlock_try_write(&lock) == 0);
    blitz_rwlock_read_future_init(&future, &lock);
    m_assert(!toy_poll(&future));
    blitz_rwlock_write_unlock(&lock);
    m_assert(blitz_rwlock_try_read(&lock) == 0);
    m_threads(cancels, unlocks_reading);
    then_it_is_free();
}

static void reads_until(void)
{
    if (blitz_rwlock_read(&lock, 1000) == 0)
        blitz_rwlock_read_unlock(&lock);
}

/* I4: a reader that comes in vain is the last to leave, perhaps. */
MODEL(rwlock, a_guest_does_not_cost_a_writer_its_turn)
{
    given();
    m_assert(blitz_rwlock_try_write(&lock) == 0);
    blitz_rwlock_write_future_init(&future, &lock);
    m_assert(!toy_poll(&future));
    m_threads(unlocks_writing, reads_until);
    m_assert(toy_poll(&future));
    blitz_rwlock_write_unlock(&lock);
    then_it_is_free();
}

#endif
