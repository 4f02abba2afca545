/*
 * oneshot_model.c - one value, two ends: received with all earlier writes, and freed once by the
 * last end.
 *
 *   covers: src/chan/oneshot.c src/park/closed.c
 *   needs: src/park/park.c src/park/request.c src/os/lock.c src/os/self.c src/task/word.c
 *   needs: src/wait/arbiter.c src/wait/wake.c src/life/cancel.c
 *   defines: BZ_LOCK_SPINS=1
 */
#include "chan_toy.h"

#include "blitz/oneshot.h"
#include "poll_toy.h"

static blitz_oneshot *o;
static bz_shared(int) before; /* written before the send, read after the receive */
static int sent, received, got, dropped;

static void drops(void *value, void *ctx)
{
    (void)ctx;
    dropped += *(int *)value;
}

static void given(void)
{
    given_bells();
    got = dropped = 0;
    bz_set(&before, 0);
    m_assert(blitz_oneshot_new(sizeof(int), &(blitz_oneshot_opts){.drop = drops}, &o) == 0);
}

static void sends(void)
{
    bz_set(&before, 1);
    sent = blitz_oneshot_send(o, &(int){5});
}

static void receives(void)
{
    received = blitz_oneshot_recv(o, &got, BLITZ_FOREVER);
    blitz_oneshot_receiver_drop(o);
    if (received == 0)
        m_assert(bz_get(&before) == 1);
}

/* oneshot.c [A] [B] */
MODEL(oneshot, arrives_with_earlier_writes_and_is_freed_once)
{
    given();
    m_threads(sends, receives);
    m_assert(sent == 0 && received == 0 && got == 5);
}

static blitz_oneshot *both[2];

static void sends_on_both(void)
{
    for (int i = 0; i < 2; i++)
        (void)!blitz_oneshot_send(both[i], &(int){5 + i});
}

static void receives_from_both(void)
{
    for (int i = 0; i < 2; i++) {
        m_assert(blitz_oneshot_recv(both[i], &got, BLITZ_FOREVER) == 0);
        m_assert(got == 5 + i);
        blitz_oneshot_receiver_drop(both[i]);
    }
}

/* Bug class 53. The second wait lies where the first one lay: the sender of the first value must not
 * touch it any more. */
MODEL(oneshot, bug_53_a_frame_belongs_to_the_receiver_again_once_it_goes_on)
{
    for (int i = 0; i < 2; i++)
        m_assert(blitz_oneshot_new(sizeof(int), &(blitz_oneshot_opts){.drop = drops}, &both[i]) ==
                 0);
    m_threads(sends_on_both, receives_from_both);
}

static void drops_the_sender(void)
{
    blitz_oneshot_sender_drop(o);
}

MODEL(oneshot, bug_24_a_sender_that_goes_ends_the_wait)
{
    given();
    m_threads(drops_the_sender, receives);
    m_assert(received == -EPIPE);
}

static void drops_the_receiver(void)
{
    blitz_oneshot_receiver_drop(o);
}

/* Sent and dropped by the hook, or not sent. */
MODEL(oneshot, bug_24_a_dropped_receiver_drops_the_sent_value)
{
    given();
    m_threads(sends, drops_the_receiver);
    m_assert(sent == 0 ? dropped == 5 : sent == -EPIPE && dropped == 0);
    m_sometimes(sent == 0);
    m_sometimes(sent != 0);
}

static void gives_up(void)
{
    received = blitz_oneshot_recv(o, &got, TOY_SOON);
    if (received == -ETIMEDOUT)
        received = blitz_oneshot_try_recv(o, &got);
    blitz_oneshot_receiver_drop(o);
    if (received == 0)
        m_assert(bz_get(&before) == 1);
}

MODEL(oneshot, bug_22_a_cancel_at_any_moment_leaves_nothing_behind)
{
    given();
    m_threads(sends, gives_up);
    if (received == 0)
        m_assert(sent == 0 && got == 5 && dropped == 0);
    else
        m_assert(sent == 0 ? dropped == 5 : dropped == 0);
    m_sometimes(received != 0);
    m_sometimes(received == 0);
}

/* ---- polled ---- */

static void receives_polled(void)
{
    blitz_oneshot_future f;
    blitz_oneshot_recv_future_init(&f, o, &got);
    toy_await(&f.future);
    received = f.result;
    blitz_oneshot_receiver_drop(o);
    if (received == 0)
        m_assert(bz_get(&before) == 1);
}

MODEL(oneshot, a_polling_receiver_gets_the_value_with_earlier_writes)
{
    given();
    m_threads(sends, receives_polled);
    m_assert(sent == 0 && received == 0 && got == 5);
}

MODEL(oneshot, bug_24_a_sender_that_goes_ends_a_polled_wait)
{
    given();
    m_threads(drops_the_sender, receives_polled);
    m_assert(received == -EPIPE);
}

/* Cancelled after one poll, told or not; then it waits on a stack, or goes. */
static void gives_its_future_up(void)
{
    blitz_oneshot_future f;
    blitz_oneshot_recv_future_init(&f, o, &got);
    if (toy_poll(&f.future) == BLITZ_READY) {
        received = f.result;
    } else {
        f.future.ops->cancel(&f.future);
        received = blitz_oneshot_recv(o, &got, BLITZ_FOREVER);
    }
    blitz_oneshot_receiver_drop(o);
}

MODEL(oneshot, bug_22_a_future_that_is_cancelled_leaves_the_value_where_it_is)
{
    given();
    m_threads(sends, gives_its_future_up);
    m_assert(sent == 0 && received == 0 && got == 5);
}

/* ---- the sender waits until the receiver has gone ---- */

static int closed;

static void waits_for_the_end(void)
{
    closed = blitz_oneshot_wait_closed(o, BLITZ_FOREVER);
    sent = blitz_oneshot_send(o, &(int){5});
}

MODEL(oneshot, bug_24_a_receiver_that_goes_ends_the_wait_of_the_sender)
{
    given();
    m_threads(waits_for_the_end, drops_the_receiver);
    m_assert(closed == 0 && sent == -EPIPE && dropped == 0);
}

static void waits_for_the_end_by_polls(void)
{
    blitz_closed_future f;
    blitz_oneshot_wait_closed_future_init(&f, o);
    toy_await(&f.future);
    closed = f.result;
    blitz_oneshot_sender_drop(o);
}

MODEL(oneshot, bug_24_a_receiver_that_goes_ends_a_polled_wait_of_the_sender)
{
    given();
    m_threads(waits_for_the_end_by_polls, drops_the_receiver);
    m_assert(closed == 0 && dropped == 0);
}

/* A wait that is given up, then a send: the value is dropped by the hook, or stays the sender's. */
static void gives_its_wait_up(void)
{
    blitz_closed_future f;
    blitz_oneshot_wait_closed_future_init(&f, o);
    if (toy_poll(&f.future) == BLITZ_PENDING)
        f.future.ops->cancel(&f.future);
    sent = blitz_oneshot_send(o, &(int){5});
    m_assert(f.result != 0 || sent == -EPIPE); /* it was told of the end */
}

MODEL(oneshot, bug_22_a_wait_that_is_given_up_leaves_the_oneshot_as_it_was)
{
    given();
    m_threads(gives_its_wait_up, drops_the_receiver);
    m_assert(sent == 0 ? dropped == 5 : sent == -EPIPE && dropped == 0);
    m_sometimes(sent == 0);
    m_sometimes(sent != 0);
}
