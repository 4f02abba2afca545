/*
 * select_fiber_model.c - selects of fibers, as select_model.c does for plain threads: a hook on
 * another stack publishes the wait, a worker claims it, and a cancel may end it.
 *
 *   covers: src/chan/select.c
 *   needs: src/chan/chan_lock.c src/chan/core.c src/chan/chan_request.c src/chan/calls.c
 *   needs: src/park/closed.c src/chan/chan.c src/chan/values.c src/park/park.c src/park/request.c
 *   needs: src/wait/arbiter.c src/wait/wake.c src/life/cancel.c
 *   needs: src/os/lock.c src/task/word.c src/base/list.c
 *   defines: BZ_LOCK_SPINS=1 BZ_GATE_SPINS=1000000
 */
#include "fiber_toy.h"

#include "chan_toy.h"

#include "chan/select.h"
#include "life/handle.h"

uint64_t blitz_now(void)
{
    return 0;
}

int bz_select_await(blitz_select_case *cases, size_t count, unsigned how, blitz_deadline until)
{
    (void)cases;
    (void)count;
    (void)how;
    (void)until;
    return -EINVAL; /* no futures here */
}

static blitz_chan *a, *b;
static int chosen[2], got[2]; /* by fiber */
static int sent;              /* by others */

static void given(size_t capacity, bool is_alone)
{
    given_fibers(is_alone);
    memset(got, 0, sizeof got);
    chosen[0] = chosen[1] = sent = 0;
    m_assert(blitz_chan_new(sizeof(int), capacity, NULL, &a) == 0);
    m_assert(blitz_chan_new(sizeof(int), capacity, NULL, &b) == 0);
    if ((uintptr_t)a > (uintptr_t)b) { /* so that both orders are what they are called */
        blitz_chan *c = a;
        a = b;
        b = c;
    }
}

static void then_nobody_is_in_line(void)
{
    blitz_chan *c[] = {a, b};
    then_no_fiber_waits();
    for (int i = 0; i < 2; i++) {
        bz_chan_check(c[i]);
        m_assert(bz_list_is_empty(&c[i]->receivers) && bz_list_is_empty(&c[i]->senders));
        blitz_chan_unref(c[i]);
    }
}

static int select_two(blitz_chan *to, blitz_chan *from)
{
    int i = m_self() - 1, in = 10 + i;
    blitz_select_case cases[] = {blitz_case_send(to, &in), blitz_case_recv(from, &got[i])};
    return blitz_select_wait(cases, 2, BLITZ_SELECT_BIASED, BLITZ_FOREVER);
}

static void sends_a_or_receives_b(void)
{
    chosen[0] = select_two(a, b);
}

static void sends_b_or_receives_a(void)
{
    chosen[1] = select_two(b, a);
}

/* The fiber that leaves its stack second finds the other one in both wait queues, and claims one
 * wait for one case. */
MODEL(select, bug_25_two_fibers_that_meet_exchange_one_message)
{
    given(0, true);
    m_threads(sends_a_or_receives_b, sends_b_or_receives_a);
    m_assert(chosen[0] != chosen[1]);
    m_assert(chosen[0] == 0 ? got[1] == 10 && got[0] == 0 : got[0] == 11 && got[1] == 0);
    m_sometimes(chosen[0] == 0);
    m_sometimes(chosen[1] == 0);
    then_nobody_is_in_line();
}

static void selects_on_one(void)
{
    chosen[0] = select_two(a, a);
}

static void receives_a(void)
{
    m_assert(blitz_chan_recv(a, &got[1], BLITZ_FOREVER) == 0);
}

/* It sends to a and receives from a: the other one is who it meets. */
MODEL(select, a_fiber_never_meets_itself)
{
    given(0, true);
    m_threads(selects_on_one, receives_a);
    m_assert(chosen[0] == 0 && got[1] == 10 && got[0] == 0);
    then_nobody_is_in_line();
}

/* ---- one fiber, and its hook on another stack ---- */

static int receive_either(void)
{
    blitz_select_case cases[] = {blitz_case_recv(a, &got[0]), blitz_case_recv(b, &got[1])};
    return blitz_select_wait(cases, 2, BLITZ_SELECT_BIASED, BLITZ_FOREVER);
}

static void receives_from_either(void)
{
    chosen[0] = receive_either();
    toy_ends();
}

static void sends_to_both(void)
{
    sent += blitz_chan_try_send(a, &(int){7}) == 0;
    sent += blitz_chan_try_send(b, &(int){8}) == 0;
}

/* The wait is won by one of two channels; the other one's value stays where it is. The fiber may be
 * gone while its hook still drops the locks. */
MODEL(select, a_fiber_in_two_lines_is_served_by_one)
{
    given(1, false);
    toy_self[2] = &toy_worker;
    m_threads(receives_from_either, toy_next_stack, sends_to_both);
    m_assert(sent == 2);
    m_assert(chosen[0] == 0 ? got[0] == 7 && got[1] == 0 : got[1] == 8 && got[0] == 0);
    m_assert(blitz_chan_len(chosen[0] == 0 ? b : a) == 1);
    m_assert(blitz_chan_len(chosen[0] == 0 ? a : b) == 0);
    then_nobody_is_in_line();
}

static void sends_to_b(void)
{
    sent += blitz_chan_try_send(b, &(int){8}) == 0;
}

static void sends_and_cancels(void)
{
    sends_to_b();
    bz_task_cancel(&toy_fiber[0].task);
}

static void cancels_and_sends(void)
{
    bz_task_cancel(&toy_fiber[0].task);
    sends_to_b();
}

static void receives_alone(void)
{
    chosen[0] = receive_either();
}

static void then_it_was_served_or_cancelled(void)
{
    m_assert(sent == 1);
    m_assert(chosen[0] == 1 || chosen[0] == -ECANCELED);
    m_assert((got[1] == 8) == (chosen[0] == 1));
    m_assert(blitz_chan_len(b) == (chosen[0] != 1));
    then_nobody_is_in_line();
}

/* Bug class 22: cancelled, and nothing was taken; or served, and that is all. */
MODEL(select, bug_22_a_fiber_that_is_cancelled_has_taken_nothing)
{
    given(1, true);
    toy_self[2] = &toy_worker;
    m_threads(receives_alone, cancels_and_sends);
    m_sometimes(chosen[0] == 1);
    m_sometimes(chosen[0] == -ECANCELED);
    then_it_was_served_or_cancelled();
}

MODEL(select, bug_22_a_fiber_that_is_served_is_not_cancelled_as_well)
{
    given(1, true);
    toy_self[2] = &toy_worker;
    m_threads(receives_alone, sends_and_cancels);
    m_sometimes(chosen[0] == 1);
    m_sometimes(chosen[0] == -ECANCELED);
    then_it_was_served_or_cancelled();
}
