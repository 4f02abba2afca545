/*
 * chan_model.c - a channel with waiters: each value is received once, with all earlier writes of
 * its sender, and no party waits forever.
 *
 *   covers: src/chan/chan_lock.h src/chan/chan_lock.c src/chan/core.c src/chan/chan_request.c src/chan/calls.c
 *   covers: src/chan/chan.h src/chan/chan.c
 *   needs: src/park/closed.c src/chan/values.c src/park/park.c src/park/request.c
 *   needs: src/wait/arbiter.c src/wait/wake.c src/life/cancel.c
 *   needs: src/os/lock.c src/os/self.c src/task/word.c src/base/list.c
 *   defines: BZ_LOCK_SPINS=1 BZ_GATE_SPINS=1000000
 */
#include "chan_toy.h"

static blitz_chan *c;
static bz_shared(int) before; /* written before the send, read after the receive */
static int got[3], result[3]; /* by thread */

static void given(size_t capacity)
{
    memset(got, 0, sizeof got);
    memset(result, 0, sizeof result);
    bz_set(&before, 0);
    m_assert(blitz_chan_new(sizeof(int), capacity, NULL, &c) == 0);
}

static void then_it_is_empty(void)
{
    bz_chan_check(c);
    m_assert(bz_list_is_empty(&c->receivers) && bz_list_is_empty(&c->senders));
    blitz_chan_unref(c);
}

static void sends_7(void)
{
    bz_set(&before, 1);
    m_assert(blitz_chan_send(c, &(int){7}, BLITZ_FOREVER) == 0);
}

static void receives_7(void)
{
    m_assert(blitz_chan_recv(c, &got[0], BLITZ_FOREVER) == 0);
    m_assert(got[0] == 7);
    m_assert(bz_get(&before) == 1);
}

/* chan_lock.h [A]: the party that comes second passes the value. */
MODEL(chan, a_rendezvous_passes_the_value_and_earlier_writes)
{
    given(0);
    m_threads(sends_7, receives_7);
    then_it_is_empty();
}

MODEL(chan, a_slot_passes_the_value_and_earlier_writes)
{
    given(1);
    m_threads(sends_7, receives_7);
    then_it_is_empty();
}

static void sends_two(void)
{
    m_assert(blitz_chan_send(c, &(int){1}, BLITZ_FOREVER) == 0);
    m_assert(blitz_chan_send(c, &(int){2}, BLITZ_FOREVER) == 0);
}

static void receives_two(void)
{
    m_assert(blitz_chan_recv(c, &got[0], BLITZ_FOREVER) == 0);
    m_assert(blitz_chan_recv(c, &got[1], BLITZ_FOREVER) == 0);
    m_assert(got[0] == 1 && got[1] == 2);
}

/* Both wait: the sender for room, the receiver for values. */
MODEL(chan, both_ends_wait_for_each_other_in_order)
{
    given(1);
    m_threads(sends_two, receives_two);
    then_it_is_empty();
}

static void receives_a_while(void)
{
    int i = m_self() - 1;
    result[i] = blitz_chan_recv(c, &got[i], TOY_SOON);
}

static void sends_once(void)
{
    result[2] = blitz_chan_try_send(c, &(int){9});
}

/* A deadline may pass at any moment: then the value is still there, or was not taken. */
MODEL(chan, bug_22_a_receive_that_times_out_loses_nothing)
{
    given(1);
    m_threads(receives_a_while, sends_once);
    m_assert(result[2] == 0);
    m_assert((result[0] == 0) != (blitz_chan_len(c) == 1));
    m_assert(result[0] == 0 || result[0] == -ETIMEDOUT);
    m_sometimes(result[0] == 0);
    m_sometimes(result[0] != 0);
    then_it_is_empty();
}

static void closes(void)
{
    blitz_chan_close(c);
}

static void receives_till_the_end(void)
{
    result[0] = blitz_chan_recv(c, &got[0], BLITZ_FOREVER);
}

/* Bug class 24: a close at any moment of a send and a receive. */
MODEL(chan, bug_24_a_close_ends_a_wait)
{
    given(0);
    m_threads(receives_till_the_end, closes);
    m_assert(result[0] == -EPIPE);
    then_it_is_empty();
}

static void waits_for_the_close(void)
{
    result[0] = blitz_chan_wait_closed(c, BLITZ_FOREVER);
    blitz_chan_unref(c);
}

static void closes_and_lets_go(void)
{
    blitz_chan_close(c);
    blitz_chan_unref(c);
}

MODEL(chan, bug_24_a_close_ends_the_wait_for_it)
{
    given(1);
    (void)blitz_chan_ref(c);
    (void)blitz_chan_ref(c);
    m_threads(waits_for_the_close, closes_and_lets_go);
    m_assert(result[0] == 0);
    then_it_is_empty();
}

/* ---- counted senders, and a weak one ---- */

static void drops_its_sender(void)
{
    blitz_chan_sender_drop(c);
}

static void sends_by_a_weak_sender(void)
{
    result[0] = blitz_chan_sender_add(c);
    if (result[0] != 0)
        return;
    m_assert(blitz_chan_try_send(c, &(int){7}) == 0); /* its sender keeps the channel open */
    blitz_chan_sender_drop(c);
}

MODEL(chan, bug_24_a_sender_that_is_added_as_the_last_one_goes_finds_it_open_or_learns_of_the_end)
{
    given(1);
    m_assert(blitz_chan_sender_add(c) == 0);
    m_threads(drops_its_sender, sends_by_a_weak_sender);
    m_assert(blitz_chan_is_closed(c) && blitz_chan_senders(c) == 0);
    m_assert(result[0] == 0 ? blitz_chan_len(c) == 1 : result[0] == -EPIPE);
    m_sometimes(result[0] == 0);
    m_sometimes(result[0] != 0);
    (void)blitz_chan_shut(c);
    then_it_is_empty();
}

/* ---- a batch collects its slots while a receiver makes room ---- */

static void sends_a_batch(void)
{
    blitz_permits p;
    result[0] = blitz_chan_reserve_many(c, 2, &p, BLITZ_FOREVER);
    m_assert(result[0] == 0);
    blitz_permits_send(&p, &(int){7});
    blitz_permits_send(&p, &(int){8});
}

static void receives_6(void)
{
    m_assert(blitz_chan_recv(c, &got[1], BLITZ_FOREVER) == 0);
    m_assert(got[1] == 6);
}

MODEL(chan, a_batch_waits_for_its_last_slot)
{
    given(2);
    m_assert(blitz_chan_try_send(c, &(int){6}) == 0);
    m_threads(sends_a_batch, receives_6);
    m_assert(blitz_chan_try_recv(c, &got[0]) == 0 && got[0] == 7);
    m_assert(blitz_chan_try_recv(c, &got[0]) == 0 && got[0] == 8);
    then_it_is_empty();
}

static void gives_a_batch_up(void)
{
    blitz_permits p;
    result[0] = blitz_chan_reserve_many(c, 2, &p, TOY_SOON);
    blitz_permits_drop(&p);
}

MODEL(chan, bug_22_a_batch_that_is_given_up_returns_its_slots)
{
    given(2);
    m_assert(blitz_chan_try_send(c, &(int){6}) == 0);
    m_threads(gives_a_batch_up, receives_6);
    m_assert(result[0] == 0 || result[0] == -ETIMEDOUT);
    m_sometimes(result[0] == 0);
    m_sometimes(result[0] != 0);
    for (int i = 0; i < 2; i++)
        m_assert(blitz_chan_try_send(c, &i) == 0); /* both slots are free again */
    (void)blitz_chan_shut(c);
    then_it_is_empty();
}

/* ---- the last holder ---- */

static bz_shared(int) used[2]; /* by holder: before it lets go */
static int drops;

static void drop_after_all_uses(void *value, void *ctx)
{
    (void)value;
    (void)ctx;
    m_assert(bz_get(&used[0]) == 1 && bz_get(&used[1]) == 1);
    drops++;
}

static void first_lets_go(void)
{
    bz_set(&used[0], 1);
    blitz_chan_unref(c);
}

static void second_lets_go(void)
{
    bz_set(&used[1], 1);
    blitz_chan_unref(c);
}

/* chan.c [A]. */
MODEL(chan, the_last_holder_comes_after_all_uses_and_ends_it_once)
{
    blitz_chan_opts opts = {.drop = drop_after_all_uses};
    bz_set(&used[0], 0);
    bz_set(&used[1], 0);
    drops = 0;
    m_assert(blitz_chan_new(sizeof(int), 1, &opts, &c) == 0);
    m_assert(blitz_chan_try_send(c, &(int){7}) == 0);
    (void)blitz_chan_ref(c);
    m_threads(first_lets_go, second_lets_go);
    m_assert(drops == 1);
}

static void refs_and_lets_go(void)
{
    blitz_chan_unref(blitz_chan_ref(c));
}

MODEL(chan, references_that_come_and_go_are_all_counted)
{
    given(1);
    m_threads(refs_and_lets_go, refs_and_lets_go);
    then_it_is_empty();
}
