/*
 * select_model.c - selects that meet: one case of each, the two halves of one message, in both orders
 * of addresses; and a select that never meets itself.
 *
 *   covers: src/chan/select.c
 *   needs: src/chan/chan_lock.c src/chan/core.c src/chan/chan_request.c src/chan/calls.c
 *   needs: src/park/closed.c src/chan/chan.c src/chan/values.c src/park/park.c src/park/request.c
 *   needs: src/wait/arbiter.c src/wait/wake.c src/life/cancel.c
 *   needs: src/os/lock.c src/os/self.c src/task/word.c src/base/list.c
 *   defines: BZ_LOCK_SPINS=1 BZ_GATE_SPINS=1000000
 */
#include "chan_toy.h"

#include "chan/select.h"

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
static int chosen[2], got[2];

static void given(void)
{
    memset(got, 0, sizeof got);
    m_assert(blitz_chan_new(sizeof(int), 0, NULL, &a) == 0);
    m_assert(blitz_chan_new(sizeof(int), 0, NULL, &b) == 0);
}

static void then_nothing_is_left(void)
{
    blitz_chan *c[] = {a, b};
    for (int i = 0; i < 2; i++) {
        bz_chan_check(c[i]);
        m_assert(bz_list_is_empty(&c[i]->receivers) && bz_list_is_empty(&c[i]->senders));
        blitz_chan_unref(c[i]);
    }
}

static int select_two(blitz_chan *to, blitz_chan *from, int i, blitz_deadline until)
{
    int in = 10 + i;
    blitz_select_case cases[] = {blitz_case_send(to, &in), blitz_case_recv(from, &got[i])};
    return blitz_select_wait(cases, 2, BLITZ_SELECT_BIASED, until);
}

static void sends_a_or_receives_b(void)
{
    chosen[0] = select_two(a, b, 0, BLITZ_FOREVER);
}

static void sends_b_or_receives_a(void)
{
    chosen[1] = select_two(b, a, 1, BLITZ_FOREVER);
}

/* One sends what the other one receives, and nothing else happens. */
MODEL(select, bug_25_two_that_meet_exchange_one_message)
{
    given();
    m_threads(sends_a_or_receives_b, sends_b_or_receives_a);
    m_assert(chosen[0] != chosen[1]);
    m_assert(chosen[0] == 0 ? got[1] == 10 && got[0] == 0 : got[0] == 11 && got[1] == 0);
    m_sometimes(chosen[0] == 0);
    m_sometimes(chosen[1] == 0);
    then_nothing_is_left();
}

static void selects_on_one(void)
{
    chosen[0] = select_two(a, a, 0, BLITZ_FOREVER);
}

static void receives_a(void)
{
    m_assert(blitz_chan_recv(a, &got[1], BLITZ_FOREVER) == 0);
}

/* It sends to a and receives from a: the other one is who it meets. */
MODEL(select, never_meets_itself)
{
    given();
    m_threads(selects_on_one, receives_a);
    m_assert(chosen[0] == 0 && got[1] == 10 && got[0] == 0);
    then_nothing_is_left();
}

static void selects_for_a_while(void)
{
    chosen[0] = select_two(a, b, 0, TOY_SOON);
}

static void tries_to_receive_a(void)
{
    chosen[1] = blitz_chan_try_recv(a, &got[1]);
}

/* A deadline at any moment: sent and received, or neither. */
MODEL(select, bug_22_one_that_times_out_has_done_nothing)
{
    given();
    m_threads(selects_for_a_while, tries_to_receive_a);
    m_assert((chosen[0] == 0) == (chosen[1] == 0));
    m_assert(chosen[0] == 0 || chosen[0] == -ETIMEDOUT);
    then_nothing_is_left();
}
