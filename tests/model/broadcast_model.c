/*
 * broadcast_model.c - broadcasts and watches: every change wakes the waiters.
 *
 *   covers: src/chan/broadcast.c src/chan/watch.c src/chan/listeners.c
 *   needs: src/park/park.c src/park/request.c src/os/lock.c src/os/self.c src/task/word.c
 *   needs: src/wait/arbiter.c src/wait/wake.c src/life/cancel.c
 *   needs: src/park/closed.c src/base/list.c
 *   defines: BZ_LOCK_SPINS=1
 */
#include "chan_toy.h"

#include "blitz/broadcast.h"
#include "blitz/watch.h"

static blitz_broadcast *b;
static blitz_broadcast_rx rx;
static blitz_watch *w;
static bz_shared(int) before; /* written before the send, read after the receive */
static int got;

static void sends_two(void)
{
    bz_set(&before, 1);
    m_assert(blitz_broadcast_send(b, &(int){1}) == 0);
    m_assert(blitz_broadcast_send(b, &(int){2}) == 0);
}

static void receives_one(void)
{
    uint64_t missed;
    m_assert(blitz_broadcast_recv(&rx, &got, &missed, BLITZ_FOREVER) == 0);
    m_assert(bz_get(&before) == 1);
    m_assert(got == (int)missed + 1);
    m_sometimes(missed == 1);
    m_sometimes(missed == 0);
}

/* Of one slot: it gets the first, or the second and the number of those before it. */
MODEL(broadcast, each_value_or_the_number_of_those_it_missed)
{
    bz_set(&before, 0);
    m_assert(blitz_broadcast_new(sizeof(int), 1, &b) == 0);
    blitz_broadcast_subscribe(b, &rx);
    m_threads(sends_two, receives_one);
    blitz_broadcast_unsubscribe(&rx);
    blitz_broadcast_unref(b);
}

static void changes(void)
{
    bz_set(&before, 1);
    m_assert(blitz_watch_send(w, &(int){2}) == 0);
}

static void follows(void)
{
    uint64_t seen = 1;
    m_assert(blitz_watch_recv(w, &got, &seen, BLITZ_FOREVER) == 0);
    m_assert(bz_get(&before) == 1);
    m_assert(got == 2 && seen == 2);
}

MODEL(watch, a_waiter_sees_the_new_value_with_earlier_writes)
{
    bz_set(&before, 0);
    m_assert(blitz_watch_new(sizeof(int), &(int){1}, &w) == 0);
    m_threads(changes, follows);
    blitz_watch_unref(w);
}

/* ---- the last holder frees ---- */

static void looks_and_goes(void)
{
    int value;
    blitz_watch_get(w, &value);
    blitz_watch_unref(w);
}

static void shares_and_goes(void)
{
    blitz_watch_unref(blitz_watch_ref(w));
    blitz_watch_unref(w);
}

/* watch.c [A] */
MODEL(watch, the_last_holder_frees_it_after_all_others)
{
    m_assert(blitz_watch_new(sizeof(int), &(int){1}, &w) == 0);
    blitz_watch_ref(w);
    m_threads(looks_and_goes, shares_and_goes);
}

static void sends_and_goes(void)
{
    m_assert(blitz_broadcast_send(b, &(int){1}) == 0);
    blitz_broadcast_unref(b);
}

static void shares_it_and_goes(void)
{
    blitz_broadcast_unref(blitz_broadcast_ref(b));
    blitz_broadcast_unref(b);
}

/* broadcast.c [A] */
MODEL(broadcast, the_last_holder_frees_it_after_all_others)
{
    m_assert(blitz_broadcast_new(sizeof(int), 1, &b) == 0);
    blitz_broadcast_ref(b);
    m_threads(sends_and_goes, shares_it_and_goes);
}

/* ---- a sender waits until no receiver is left ---- */

static void waits_for_the_last_receiver(void)
{
    m_assert(blitz_broadcast_wait_closed(b, BLITZ_FOREVER) == 0);
    blitz_broadcast_unref(b);
}

static void unsubscribes(void)
{
    blitz_broadcast_unsubscribe(&rx);
}

/* closed.c: the sender continues as soon as it is claimed, and may be the last but one to let go. */
MODEL(broadcast, bug_24_the_last_receiver_that_goes_ends_the_wait_of_the_sender)
{
    m_assert(blitz_broadcast_new(sizeof(int), 1, &b) == 0);
    blitz_broadcast_subscribe(b, &rx);
    m_threads(waits_for_the_last_receiver, unsubscribes);
}

static int waited;

static void waits_a_while(void)
{
    waited = blitz_broadcast_wait_closed(b, TOY_SOON);
    blitz_broadcast_unref(b);
}

MODEL(broadcast, bug_22_a_sender_that_gives_its_wait_up_is_not_touched_again)
{
    m_assert(blitz_broadcast_new(sizeof(int), 1, &b) == 0);
    blitz_broadcast_subscribe(b, &rx);
    m_threads(waits_a_while, unsubscribes);
    m_assert(waited == 0 || waited == -ETIMEDOUT);
    m_sometimes(waited == 0);
    m_sometimes(waited != 0);
}
