/*
 * gate_model.c - a waiter sees all writes before the opening, and may free the gate.
 *
 *   covers: src/sync/gate.c src/sync/waitq.c
 *   needs: src/park/park.c src/park/request.c src/os/lock.c src/os/self.c src/task/word.c
 *   needs: src/wait/arbiter.c src/wait/wake.c src/life/cancel.c
 *   defines: BZ_LOCK_SPINS=1
 */
#include "sync_toy.h"

struct frame {
    blitz_wait_group group;
    bz_shared(int) data[2];
};

static struct frame *frame; /* the waiter's; gone when it has waited */

static void given(uint32_t count)
{
    frame = m_alloc(sizeof *frame);
    blitz_wait_group_init(&frame->group);
    (void)blitz_wait_group_add(&frame->group, count);
}

static void waits(void)
{
    struct frame *f = frame;
    if (blitz_wait_group_wait(&f->group, BLITZ_FOREVER) != 0)
        return;
    m_assert(bz_get(&f->data[0]) == 1);
    m_free(f);
}

static void waits_for_two(void)
{
    struct frame *f = frame;
    if (blitz_wait_group_wait(&f->group, BLITZ_FOREVER) != 0)
        return;
    m_assert(bz_get(&f->data[0]) == 1 && bz_get(&f->data[1]) == 1);
    m_free(f);
}

static void does_the_first(void)
{
    struct frame *f = frame;
    bz_set(&f->data[0], 1);
    (void)blitz_wait_group_done(&f->group);
}

static void does_the_second(void)
{
    struct frame *f = frame;
    bz_set(&f->data[1], 1);
    (void)blitz_wait_group_done(&f->group);
}

/* [G], and nothing is touched after the last one who waits has gone. */
MODEL(gate, a_released_waiter_may_free_it)
{
    given(1);
    m_threads(waits, does_the_first);
}

/* One who waits and one who counts speak for another who counted before. */
MODEL(gate, a_released_waiter_sees_the_writes_of_all_counters)
{
    given(2);
    m_threads(waits_for_two, does_the_first, does_the_second);
}

static bool has_freed;

static void waits_for_a_while(void)
{
    struct frame *f = frame;
    if (blitz_wait_group_wait(&f->group, 1000) != 0)
        return;
    m_assert(bz_get(&f->data[0]) == 1);
    has_freed = true;
    m_free(f);
}

MODEL(gate, a_cancelled_waiter_does_not_block_the_opener)
{
    given(1);
    has_freed = false;
    m_threads(waits_for_a_while, does_the_first);
    m_sometimes(has_freed);
    m_sometimes(!has_freed);
    if (!has_freed)
        m_free(frame);
}

/* ---- a group that is used on ---- */

static blitz_sync_future future;

/* A waiter is registered, so that the gate is opened under its lock. */
static void given_with_a_waiter(uint32_t count)
{
    given(count);
    bz_atomic_init(&rung, 0);
    blitz_wait_group_wait_future_init(&future, &frame->group);
    m_assert(!toy_poll(&future));
}

static void adds(void)
{
    (void)blitz_wait_group_add(&frame->group, 1);
}

static void looks(void)
{
    if (blitz_wait_group_left(&frame->group) == 0)
        m_assert(bz_get(&frame->data[0]) == 1);
}

/* [G], for one who only looks. */
MODEL(gate, a_reader_of_the_open_gate_sees_earlier_writes)
{
    given_with_a_waiter(1);
    m_threads(does_the_first, looks);
    m_assert(toy_poll(&future));
    m_free(frame);
}

MODEL(gate, an_added_count_is_seen_by_the_opener)
{
    given_with_a_waiter(1);
    m_threads(does_the_first, adds);
    m_assert(blitz_wait_group_left(&frame->group) == 1);
    toy_cancel(&future);
    m_free(frame);
}

static void waits_once(void)
{
    (void)!blitz_wait_group_wait(&frame->group, 1000);
}

MODEL(gate, an_added_count_is_seen_by_a_waiter)
{
    given_with_a_waiter(1);
    (void)blitz_wait_group_done(&frame->group);
    m_assert(toy_poll(&future));
    m_threads(waits_once, adds);
    m_assert(blitz_wait_group_left(&frame->group) == 1);
    m_free(frame);
}
