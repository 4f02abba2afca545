/*
 * chan_mix_model.c - polled and blocking parties on one channel: threads that wait in the channel beside
 * threads that poll a future, alone or in a select.
 *
 *   covers: src/chan/chan_future.c src/chan/select_future.c src/chan/core.c
 *   needs: src/chan/chan_lock.c src/chan/chan_request.c src/chan/calls.c src/chan/select.c
 *   needs: src/park/closed.c src/chan/chan.c src/chan/values.c src/park/park.c src/park/request.c
 *   needs: src/wait/arbiter.c src/wait/wake.c src/life/cancel.c
 *   needs: src/os/lock.c src/os/self.c src/task/word.c src/base/list.c
 *   defines: BZ_LOCK_SPINS=1 BZ_GATE_SPINS=1000000
 */
#include "chan_toy.h"

#include "blitz/futures.h"
#include "chan/select.h"
#include "poll_toy.h"

/* No case is a time, and no select with a future is awaited here. */
uint64_t blitz_now(void)
{
    return 0;
}

void blitz_sleep_until_future_init(blitz_sleep_future *f, blitz_deadline until)
{
    (void)f;
    (void)until;
    m_assert(!"a time");
}

int blitz_await(blitz_future *f, blitz_deadline until)
{
    (void)f;
    (void)until;
    m_assert(!"awaited");
    return 0;
}

static blitz_chan *a, *b;
static int sent, received, got[4]; /* by thread, or counted by single threads */
static int chosen;

static void given(size_t capacity)
{
    given_bells();
    sent = received = 0;
    chosen = -1;
    memset(got, 0, sizeof got);
    m_assert(blitz_chan_new(sizeof(int), capacity, NULL, &a) == 0);
    m_assert(blitz_chan_new(sizeof(int), capacity, NULL, &b) == 0);
}

static void then_nothing_is_left(void)
{
    blitz_chan *c[] = {a, b};
    for (int i = 0; i < 2; i++) {
        bz_chan_check(c[i]);
        m_assert(bz_list_is_empty(&c[i]->receivers) && bz_list_is_empty(&c[i]->senders));
        m_assert(c[i]->notified_receivers + c[i]->notified_senders + c[i]->values.count == 0);
        blitz_chan_unref(c[i]);
    }
}

/* ---- one operation each ---- */

/* (Two threads, or the search does not come to an end. Three parties all the same: the first thread
 * polls for two of them, whose first polls were before.) */
static blitz_chan_future polled[2];
static int value[2];

static void poll_both(bool is_ready[2])
{
    blitz_waker w = toy_bell_of(1);
    for (int i = 0; i < 2; i++)
        is_ready[i] =
            is_ready[i] || polled[i].future.ops->poll(&polled[i].future, &w) == BLITZ_READY;
}

static void given_two_that_poll(bool is_send)
{
    bool is_ready[2] = {false, false};
    for (int i = 0; i < 2; i++) {
        value[i] = is_send ? i + 1 : 0;
        if (is_send)
            blitz_chan_send_future_init(&polled[i], a, &value[i]);
        else
            blitz_chan_recv_future_init(&polled[i], a, &value[i]);
    }
    poll_both(is_ready);
    m_assert(!is_ready[0] && !is_ready[1]);
}

static void polls_for_two(void)
{
    bool is_ready[2] = {false, false};
    while (!is_ready[0] || !is_ready[1]) {
        toy_wait();
        poll_both(is_ready);
    }
    m_assert(polled[0].result == 0 && polled[1].result == 0);
}

static void receives(void)
{
    m_assert(blitz_chan_recv(a, &got[1], BLITZ_FOREVER) == 0);
}

static void receives_two(void)
{
    for (int i = 0; i < 2; i++)
        m_assert(blitz_chan_recv(a, &got[i], BLITZ_FOREVER) == 0);
}

/* Bug class 41: no party waits forever although its event has happened. */
MODEL(chan_mix, bug_41_senders_that_poll_and_a_receiver_that_waits_share_a_slot)
{
    given(1);
    m_assert(blitz_chan_try_send(a, &(int){9}) == 0);
    given_two_that_poll(true);
    m_assert(blitz_chan_try_recv(a, &got[2]) == 0 && got[2] == 9);
    m_threads(polls_for_two, receives);
    m_assert(blitz_chan_try_recv(a, &got[0]) == 0);
    m_assert(got[0] + got[1] == 3);
    then_nothing_is_left();
}

MODEL(chan_mix, bug_41_senders_that_poll_and_a_receiver_that_waits_share_a_rendezvous)
{
    given(0);
    given_two_that_poll(true);
    m_threads(polls_for_two, receives_two);
    m_assert(got[0] + got[1] == 3);
    then_nothing_is_left();
}

static void sends_two(void)
{
    m_assert(blitz_chan_send(a, &(int){1}, BLITZ_FOREVER) == 0);
    m_assert(blitz_chan_send(a, &(int){2}, BLITZ_FOREVER) == 0);
}

MODEL(chan_mix, bug_41_receivers_that_poll_and_a_sender_that_waits_share_a_slot)
{
    given(1);
    given_two_that_poll(false);
    m_threads(polls_for_two, sends_two);
    m_assert(value[0] + value[1] == 3);
    then_nothing_is_left();
}

static void polls_for_one_of_two(void)
{
    bool is_ready[2] = {false, false};
    while (!is_ready[0] && !is_ready[1]) {
        toy_wait();
        poll_both(is_ready);
    }
    polled[is_ready[0]].future.ops->cancel(&polled[is_ready[0]].future);
}

static void sends_one(void)
{
    m_assert(blitz_chan_send(a, &(int){1}, BLITZ_FOREVER) == 0);
}

MODEL(chan_mix, bug_41_receivers_that_poll_and_a_sender_that_waits_share_a_rendezvous)
{
    given(0);
    given_two_that_poll(false);
    m_threads(polls_for_one_of_two, sends_one);
    m_assert(value[0] + value[1] == 1);
    then_nothing_is_left();
}

/* One of two gives up after its first poll, notified or not; the other one gets what is sent. */
static void gives_one_of_two_up(void)
{
    blitz_chan_future f[2];
    for (int i = 0; i < 2; i++)
        blitz_chan_recv_future_init(&f[i], a, &got[i]);
    bool is_ready = toy_poll(&f[0].future) == BLITZ_READY;
    if (!is_ready && toy_poll(&f[1].future) == BLITZ_PENDING) {
        f[0].future.ops->cancel(&f[0].future);
        toy_await(&f[1].future);
    } else {
        f[is_ready].future.ops->cancel(&f[is_ready].future);
    }
    m_assert((f[0].result == 0) != (f[1].result == 0));
}

MODEL(chan_mix, bug_22_a_receiver_that_gives_up_passes_its_notification_on)
{
    given(1);
    m_threads(gives_one_of_two_up, sends_one);
    m_assert(got[0] + got[1] == 1);
    then_nothing_is_left();
}

/* ---- in a select ---- */

static void polls_two_sends_once(void)
{
    blitz_select_future f;
    blitz_select_case cases[] = {blitz_case_send(a, &(int){1}), blitz_case_send(b, &(int){2})};
    blitz_select_wait_future_init(&f, cases, 2, BLITZ_SELECT_BIASED);
    if (toy_poll(&f.future) == BLITZ_PENDING)
        f.future.ops->cancel(&f.future);
    chosen = f.result;
}

static void tries_a(void)
{
    m_assert(blitz_chan_try_recv(a, &got[0]) == 0 ? got[0] == 1 : got[0] == 0);
}

static void tries_b(void)
{
    m_assert(blitz_chan_try_recv(b, &got[1]) == 0 ? got[1] == 2 : got[1] == 0);
}

/* Bug class 51: two receivers at two channels take one value, and the select knows which. */
MODEL(chan_mix, bug_51_of_two_sends_in_a_select_at_most_one_is_received)
{
    given(0);
    m_threads(polls_two_sends_once, tries_a, tries_b);
    m_assert(got[0] + got[1] == (chosen < 0 ? 0 : chosen + 1));
    m_sometimes(chosen == 0);
    m_sometimes(chosen == 1);
    m_sometimes(chosen < 0);
    then_nothing_is_left();
}

static void selects_both_ends_polled(void)
{
    blitz_select_future f;
    blitz_select_case cases[] = {blitz_case_recv(a, &got[0]), blitz_case_send(a, &(int){1})};
    blitz_select_wait_future_init(&f, cases, 2, BLITZ_SELECT_BIASED);
    toy_await(&f.future);
    chosen = f.result;
}

/* A select that receives from a channel and sends to it meets the other thread, not itself. */
MODEL(chan_mix, a_polled_select_never_meets_itself)
{
    given(0);
    m_threads(selects_both_ends_polled, receives);
    m_assert(chosen == 1 && got[0] == 0 && got[1] == 1);
    then_nothing_is_left();
}

static void waits_for_both_ends(void)
{
    blitz_select_case cases[] = {blitz_case_recv(a, &got[1]), blitz_case_send(a, &(int){2})};
    sent = blitz_select_wait(cases, 2, BLITZ_SELECT_BIASED, BLITZ_FOREVER);
}

MODEL(chan_mix, a_polled_select_meets_a_waiting_one)
{
    given(0);
    m_threads(selects_both_ends_polled, waits_for_both_ends);
    m_assert(chosen + sent == 1);
    m_assert(chosen == 1 ? got[1] == 1 && got[0] == 0 : got[0] == 2 && got[1] == 0);
    then_nothing_is_left();
}
