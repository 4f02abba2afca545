/* Channel operations as futures: polled, notified, cancelled, and beside blocking waiters. */
#include "harness.h"

#include <errno.h>

#include "blitz.h"
#include "chan/chan.h"
#include "support/alone.h"
#include "support/bell.h"
#include "support/on_each.h"

static blitz_chan *chan_of_ints(size_t capacity)
{
    blitz_chan *c;
    CHECK_EQ(blitz_chan_new(sizeof(int), capacity, NULL, &c), 0);
    return c;
}

static void send_now(blitz_chan *c, int value)
{
    CHECK_EQ(blitz_chan_try_send(c, &value), 0);
}

static int receive_now(blitz_chan *c)
{
    int value = -1;
    CHECK_EQ(blitz_chan_try_recv(c, &value), 0);
    return value;
}

static bool is_ready(blitz_chan_future *f, struct t_bell *bell)
{
    blitz_waker w = t_bell_waker(bell);
    return f->future.ops->poll(&f->future, &w) == BLITZ_READY;
}

static void cancel(blitz_chan_future *f)
{
    f->future.ops->cancel(&f->future);
}

TEST(chan_future, is_ready_at_once_if_it_can_be)
{
    blitz_chan *c = chan_of_ints(1);
    struct t_bell bell = {.holders = 1};
    blitz_chan_future f;
    int value = 7, out = 0;
    blitz_chan_send_future_init(&f, c, &value);
    CHECK(is_ready(&f, &bell));
    CHECK(is_ready(&f, &bell)); /* asked for no reason */
    CHECK_EQ(f.result, 0);
    CHECK_EQ(f.future.ops->output(&f.future), 0);
    blitz_chan_recv_future_init(&f, c, &out);
    CHECK(is_ready(&f, &bell));
    CHECK_EQ(out, 7);
    blitz_chan_close(c);
    blitz_chan_recv_future_init(&f, c, &out);
    CHECK(is_ready(&f, &bell));
    CHECK_EQ(f.result, -EPIPE);
    CHECK_EQ(bell.holders, 1);
    blitz_chan_unref(c);
}

TEST(chan_future, is_notified_when_a_value_arrives)
{
    blitz_chan *c = chan_of_ints(1);
    struct t_bell bell = {.holders = 1};
    blitz_chan_future f;
    int out = 0;
    blitz_chan_recv_future_init(&f, c, &out);
    CHECK(!is_ready(&f, &bell));
    CHECK(!is_ready(&f, &bell));
    CHECK_EQ(bell.holders, 2); /* the newest waker, and no other */
    send_now(c, 5);
    CHECK_EQ(bell.rung, 1);
    CHECK_EQ(out, 0); /* notified, without a value */
    CHECK(is_ready(&f, &bell));
    CHECK_EQ(out, 5);
    CHECK_EQ(bell.holders, 1);
    blitz_chan_unref(c);
}

/* A new receiver may be faster; then the future keeps waiting, and is notified first. */
TEST(chan_future, that_comes_too_late_waits_on_at_the_head)
{
    blitz_chan *c = chan_of_ints(2);
    struct t_bell a = {.holders = 1}, b = {.holders = 1};
    blitz_chan_future fa, fb;
    int out_a = 0, out_b = 0;
    blitz_chan_recv_future_init(&fa, c, &out_a);
    blitz_chan_recv_future_init(&fb, c, &out_b);
    CHECK(!is_ready(&fa, &a) && !is_ready(&fb, &b));
    send_now(c, 1);
    CHECK_EQ(receive_now(c), 1);
    CHECK(!is_ready(&fa, &a));
    send_now(c, 2);
    CHECK_EQ(a.rung, 2);
    CHECK_EQ(b.rung, 0);
    send_now(c, 3);
    CHECK_EQ(b.rung, 1);
    CHECK(is_ready(&fb, &b) && is_ready(&fa, &a));
    CHECK_EQ(out_b, 2); /* the oldest value goes to the first poll */
    CHECK_EQ(out_a, 3);
    blitz_chan_unref(c);
}

/* Bug class 22: its notification goes to another waiter. */
TEST(chan_future, bug_22_a_cancelled_future_passes_its_notification_on)
{
    blitz_chan *c = chan_of_ints(1);
    struct t_bell a = {.holders = 1}, b = {.holders = 1};
    blitz_chan_future fa, fb;
    int out = 0;
    for (int is_send = 0; is_send < 2; is_send++) {
        if (is_send) {
            send_now(c, 9);
            blitz_chan_send_future_init(&fa, c, &out);
            blitz_chan_send_future_init(&fb, c, &out);
        } else {
            blitz_chan_recv_future_init(&fa, c, &out);
            blitz_chan_recv_future_init(&fb, c, &out);
        }
        a.rung = b.rung = 0;
        CHECK(!is_ready(&fa, &a) && !is_ready(&fb, &b));
        if (is_send)
            CHECK_EQ(receive_now(c), 9);
        else
            send_now(c, 4);
        CHECK_EQ(a.rung, 1);
        CHECK_EQ(b.rung, 0);
        cancel(&fa);
        CHECK_EQ(fa.result, -ECANCELED);
        CHECK_EQ(b.rung, 1);
        CHECK(is_ready(&fb, &b));
        CHECK_EQ(out, 4);
    }
    CHECK_EQ(receive_now(c), 4);
    CHECK_EQ(a.holders + b.holders, 2);
    blitz_chan_unref(c);
}

static int receives(void *c)
{
    int value = -1;
    CHECK_EQ(blitz_chan_recv(c, &value, BLITZ_FOREVER), 0);
    return value;
}

static int send_past_a_future(void *arg)
{
    blitz_chan *c = chan_of_ints(2);
    struct t_bell bell = {.holders = 1};
    blitz_chan_future f;
    blitz_task *t;
    int out = 0, first = 0;
    (void)arg;
    blitz_chan_recv_future_init(&f, c, &out);
    CHECK(!is_ready(&f, &bell));
    CHECK_EQ(blitz_spawn(receives, c, NULL, &t), 0);
    while (c->receivers.next->next == &c->receivers)
        blitz_yield(); /* until it is queued behind the future */
    send_now(c, 1);
    CHECK_EQ(bell.rung, 1); /* the value is kept for it */
    send_now(c, 2);
    CHECK_EQ(blitz_task_join(t, &first, BLITZ_FOREVER), 0);
    CHECK_EQ(first, 1); /* the present receiver takes the oldest value */
    CHECK(is_ready(&f, &bell));
    CHECK_EQ(out, 2);
    blitz_chan_unref(c);
    return 0;
}

/* Bug class 24: first in, first out, also past a future that was notified and has not polled
 * yet. */
TEST(chan_future, bug_24_no_value_overtakes_one_that_is_kept_for_it)
{
    CHECK_EQ(t_run_alone(send_past_a_future, NULL), 0);
}

static int sends_two(void *c)
{
    return blitz_chan_send(c, &(int){2}, BLITZ_FOREVER);
}

static int hand_off_after_a_notification(void *arg)
{
    blitz_chan *c = chan_of_ints(1);
    struct t_bell bell = {.holders = 1};
    blitz_chan_future f;
    blitz_task *sender, *receiver;
    int value = 1, got = 0;
    (void)arg;
    send_now(c, 9);
    blitz_chan_send_future_init(&f, c, &value);
    CHECK(!is_ready(&f, &bell));
    CHECK_EQ(blitz_spawn(sends_two, c, NULL, &sender), 0);
    while (c->senders.next->next == &c->senders)
        blitz_yield(); /* until the sender waits behind the future */
    CHECK_EQ(receive_now(c), 9);
    CHECK_EQ(bell.rung, 1); /* the slot is free, and the future knows */
    CHECK_EQ(blitz_spawn(receives, c, NULL, &receiver), 0);
    while (bz_list_is_empty(&c->receivers))
        blitz_yield();
    CHECK(is_ready(&f, &bell)); /* its value goes to the receiver, past the slot */
    CHECK(bz_list_is_empty(&c->senders));
    CHECK_EQ(blitz_task_join(receiver, &got, BLITZ_FOREVER), 0);
    CHECK_EQ(got, 1);
    CHECK_EQ(blitz_task_join(sender, NULL, BLITZ_FOREVER), 0);
    CHECK_EQ(receive_now(c), 2);
    blitz_chan_unref(c);
    return 0;
}

/* A send future was notified of a free slot and does not need it: the next sender gets the slot. */
TEST(chan_future, bug_41_a_notified_send_that_is_received_directly_gives_up_its_slot)
{
    CHECK_EQ(t_run_alone(hand_off_after_a_notification, NULL), 0);
}

TEST(chan_future, that_is_cancelled_has_done_nothing)
{
    blitz_chan *c = chan_of_ints(1);
    struct t_bell bell = {.holders = 1};
    blitz_chan_future f;
    blitz_permit permit;
    int out = 3;
    blitz_chan_recv_future_init(&f, c, &out);
    cancel(&f); /* never polled */
    blitz_chan_recv_future_init(&f, c, &out);
    CHECK(!is_ready(&f, &bell));
    cancel(&f);
    cancel(&f);
    send_now(c, 1);
    CHECK_EQ(bell.rung, 0);
    blitz_chan_send_future_init(&f, c, &out);
    CHECK(!is_ready(&f, &bell));
    cancel(&f);
    blitz_chan_reserve_future_init(&f, c, &permit);
    CHECK(!is_ready(&f, &bell));
    cancel(&f);
    CHECK_NULL(permit.chan);
    CHECK_EQ(receive_now(c), 1);
    CHECK_EQ(blitz_chan_len(c), 0u);
    CHECK_EQ(bell.holders, 1);
    blitz_chan_unref(c);
}

TEST(chan_future, reserves)
{
    blitz_chan *c = chan_of_ints(1);
    struct t_bell bell = {.holders = 1};
    blitz_chan_future f;
    blitz_permit permit;
    send_now(c, 1);
    blitz_chan_reserve_future_init(&f, c, &permit);
    CHECK(!is_ready(&f, &bell));
    CHECK_EQ(receive_now(c), 1);
    CHECK_EQ(bell.rung, 1);
    CHECK(is_ready(&f, &bell));
    blitz_permit_send(&permit, &(int){2});
    CHECK_EQ(receive_now(c), 2);
    blitz_chan_unref(c);
}

/* Of two polling parties, the sender is passive: its receiver takes the value. */
TEST(chan_future, a_rendezvous_of_two_futures)
{
    for (int receiver_first = 0; receiver_first < 2; receiver_first++) {
        blitz_chan *c = chan_of_ints(0);
        struct t_bell a = {.holders = 1}, b = {.holders = 1};
        blitz_chan_future s, r;
        int value = 6, out = 0;
        blitz_chan_send_future_init(&s, c, &value);
        blitz_chan_recv_future_init(&r, c, &out);
        if (receiver_first)
            CHECK(!is_ready(&r, &b));
        CHECK(!is_ready(&s, &a));
        CHECK_EQ(b.rung, receiver_first);
        CHECK(is_ready(&r, &b));
        CHECK_EQ(out, 6);
        CHECK_EQ(a.rung, 1);
        if (receiver_first)
            CHECK(is_ready(&s, &a));
        else
            cancel(&s); /* too late, and it says so */
        CHECK_EQ(s.result, 0);
        CHECK_EQ(a.holders + b.holders, 2);
        blitz_chan_unref(c);
    }
}

/* One after the other, also if the notified one is cancelled. */
TEST(chan_future, receivers_of_a_rendezvous_are_notified_in_turn)
{
    blitz_chan *c = chan_of_ints(0);
    struct t_bell bell[5];
    blitz_chan_future s[2], r[3];
    int value[2] = {1, 2}, out[3] = {0, 0, 0};
    for (int i = 0; i < 5; i++)
        bell[i] = (struct t_bell){.holders = 1};
    for (int i = 0; i < 3; i++) {
        blitz_chan_recv_future_init(&r[i], c, &out[i]);
        CHECK(!is_ready(&r[i], &bell[i]));
    }
    for (int i = 0; i < 2; i++) {
        blitz_chan_send_future_init(&s[i], c, &value[i]);
        CHECK(!is_ready(&s[i], &bell[3 + i]));
    }
    CHECK_EQ(bell[0].rung, 1);
    CHECK_EQ(bell[1].rung + bell[2].rung, 0); /* the two senders will be served in turn as well */
    cancel(&r[0]);
    CHECK_EQ(bell[1].rung, 1);
    CHECK_EQ(bell[2].rung, 0);
    CHECK(is_ready(&r[1], &bell[1]));
    CHECK_EQ(bell[2].rung, 1);
    CHECK(is_ready(&r[2], &bell[2]));
    CHECK(is_ready(&s[0], &bell[3]) && is_ready(&s[1], &bell[4]));
    CHECK_EQ(out[1], 1);
    CHECK_EQ(out[2], 2);
    blitz_chan_unref(c);
}

TEST(chan_future, a_close_tells_all_that_wait)
{
    for (size_t capacity = 0; capacity < 2; capacity++) {
        blitz_chan *c = chan_of_ints(capacity);
        enum { N = 40 };
        static struct t_bell bell[N];
        static blitz_chan_future f[N];
        int value = 1;
        if (capacity > 0)
            send_now(c, 1);
        for (int i = 0; i < N; i++) {
            bell[i] = (struct t_bell){.holders = 1};
            if (capacity > 0)
                blitz_chan_send_future_init(&f[i], c, &value);
            else
                blitz_chan_recv_future_init(&f[i], c, &value);
            CHECK(!is_ready(&f[i], &bell[i]));
        }
        blitz_chan_close(c);
        for (int i = 0; i < N; i++) {
            CHECK_EQ(bell[i].rung, 1);
            CHECK(is_ready(&f[i], &bell[i]));
            CHECK_EQ(f[i].result, -EPIPE);
        }
        blitz_chan_unref(c);
    }
}

/* ---- beside blocking waiters ---- */

enum { ROUNDS = 300 };

static int awaits_all(void *arg)
{
    for (int i = 0; i < ROUNDS; i++) {
        blitz_chan_future f;
        int value = -1;
        blitz_chan_recv_future_init(&f, arg, &value);
        CHECK_EQ(blitz_await(&f.future, BLITZ_FOREVER), 0);
        CHECK_EQ(f.result, 0);
    }
    return 0;
}

static int receives_all(void *arg)
{
    int value;
    for (int i = 0; i < ROUNDS; i++)
        CHECK_EQ(blitz_chan_recv(arg, &value, BLITZ_FOREVER), 0);
    return 0;
}

static int sends_by_turns(void *arg)
{
    for (int i = 0; i < ROUNDS; i++) {
        blitz_chan_future f;
        if (i % 2) {
            CHECK_EQ(blitz_chan_send(arg, &i, BLITZ_FOREVER), 0);
            continue;
        }
        blitz_chan_send_future_init(&f, arg, &i);
        CHECK_EQ(blitz_await(&f.future, BLITZ_FOREVER), 0);
        CHECK_EQ(f.result, 0);
    }
    return 0;
}

static int all_at_once(void *arg)
{
    static const size_t capacities[] = {0, 1, 4, BLITZ_UNBOUNDED};
    (void)arg;
    for (size_t k = 0; k < BZ_ARRAY_LEN(capacities); k++) {
        blitz_chan *c = chan_of_ints(capacities[k]);
        int (*const fn[])(void *) = {awaits_all, receives_all, sends_by_turns, sends_by_turns};
        blitz_task *t[4];
        for (int i = 0; i < 4; i++)
            CHECK_EQ(blitz_spawn(fn[i], c, NULL, &t[i]), 0);
        for (int i = 0; i < 4; i++)
            CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
        CHECK_EQ(blitz_chan_len(c), 0u);
        bz_chan_lock(c);
        bz_chan_check(c);
        bz_chan_unlock(c);
        blitz_chan_unref(c);
    }
    return 0;
}

TEST(chan_future, futures_and_stacks_share_a_channel)
{
    t_on_each(all_at_once, NULL, 0);
}
