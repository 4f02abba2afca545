/*
 * chan_fiber_model.c - sends and receives of fibers. A hook on another stack registers the wait. A worker of the same
 * runtime hands the value over by the fast path. A cancel may end the wait first.
 *
 *   covers: src/park/grant.h
 *   needs: src/chan/chan_lock.c src/chan/core.c src/chan/chan_request.c src/chan/calls.c
 *   needs: src/park/closed.c src/chan/chan.c src/chan/values.c src/park/park.c src/park/request.c
 *   needs: src/wait/arbiter.c src/wait/wake.c src/life/cancel.c
 *   needs: src/os/lock.c src/task/word.c src/base/list.c
 *   defines: BZ_LOCK_SPINS=1 BZ_GATE_SPINS=1000000
 *
 * chan_model.c does the same with plain threads, which take the slow path. The toy (fiber_toy.h) aborts if a fiber is
 * queued twice for one wait, and the checker reports a fiber that is never queued.
 */
#include "fiber_toy.h"

#include "chan_toy.h"

#include "life/handle.h"

static blitz_chan *c;
static bz_shared(int) before; /* written before the send, read after the receive */
static int got, result, sent; /* of the fiber, of the fiber, of the worker */

static void given(size_t capacity, bool is_alone)
{
    given_fibers(is_alone);
    toy_self[2] = &toy_worker;
    toy_self[3] = &toy_worker;
    got = result = sent = 0;
    bz_set(&before, 0);
    m_assert(blitz_chan_new(sizeof(int), capacity, NULL, &c) == 0);
}

static void then_nothing_waits(void)
{
    then_no_fiber_waits();
    bz_chan_check(c);
    m_assert(bz_list_is_empty(&c->receivers) && bz_list_is_empty(&c->senders));
    blitz_chan_unref(c);
}

static void receives(void)
{
    result = blitz_chan_recv(c, &got, BLITZ_FOREVER);
    toy_ends();
}

static void sends_7(void)
{
    bz_set(&before, 1);
    m_assert(blitz_chan_send(c, &(int){7}, BLITZ_FOREVER) == 0);
}

/* The sender finds the fiber in the queue, or comes before it. The fiber may go on while its hook still drops the lock. */
MODEL(chan_fiber, a_send_to_a_fiber_passes_the_value_and_earlier_writes)
{
    given(1, false);
    m_threads(receives, toy_next_stack, sends_7);
    m_assert(result == 0 && got == 7);
    m_assert(bz_get(&before) == 1);
    then_nothing_waits();
}

static void tries_to_send_7(void)
{
    sent += blitz_chan_try_send(c, &(int){7}) == 0;
}

static void sends_and_cancels(void)
{
    sends_7();
    bz_task_cancel(&toy_fiber[0].task);
}

/* Bug class 22: a receive that is cancelled leaves the value to the next receiver. */
MODEL(chan_fiber, bug_22_a_cancel_and_a_send_end_one_wait_once)
{
    given(1, false);
    m_threads(receives, toy_next_stack, sends_and_cancels);
    m_assert(result == 0 || result == -ECANCELED);
    m_assert(result == 0 ? got == 7 : blitz_chan_len(c) == 1);
    then_nothing_waits();
}

static void sends_from_a_worker(void)
{
    sends_7();
}

static void cancels(void)
{
    bz_task_cancel(&toy_fiber[0].task);
}

/* The same with the cancel on a thread of its own, so that it may come between the sender's look and its claim. */
MODEL(chan_fiber, bug_22_a_cancel_beside_a_send_loses_nothing)
{
    given(1, true);
    toy_self[2] = &toy_worker;
    m_threads(receives, sends_from_a_worker, cancels);
    m_assert(result == 0 || result == -ECANCELED);
    m_assert(result == 0 ? got == 7 : blitz_chan_len(c) == 1);
    m_sometimes(result == 0);
    m_sometimes(result != 0);
    then_nothing_waits();
}

static void sends_at_a_rendezvous(void)
{
    result = blitz_chan_send(c, &(int){9}, BLITZ_FOREVER);
    toy_ends();
}

static void takes_9(void)
{
    int value = 0;
    m_assert(blitz_chan_recv(c, &value, BLITZ_FOREVER) == 0);
    m_assert(value == 9);
}

static void fiber_two_takes_9(void)
{
    takes_9();
}

/* Either may come first: then it waits, and the other one takes its value or hands it over. */
MODEL(chan_fiber, two_fibers_meet_at_a_rendezvous)
{
    given(0, true);
    toy_self[2] = &toy_fiber[1].machine;
    m_threads(sends_at_a_rendezvous, fiber_two_takes_9);
    m_assert(result == 0);
    then_nothing_waits();
}

/* A try finds the fiber in the queue, or there is room. */
MODEL(chan_fiber, a_try_reaches_a_fiber_that_waits)
{
    given(1, false);
    m_threads(receives, toy_next_stack, tries_to_send_7);
    m_assert(sent == 1 && result == 0 && got == 7);
    then_nothing_waits();
}
