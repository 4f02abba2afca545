/* Broadcasts: every receiver, every value, or the number of those it missed. */
#include "harness.h"

#include <errno.h>

#include "blitz.h"
#include "support/bell.h"
#include "support/on_each.h"

static blitz_broadcast *broadcast(size_t capacity)
{
    blitz_broadcast *b;
    CHECK_EQ(blitz_broadcast_new(sizeof(int), capacity, &b), 0);
    return b;
}

static int next_of(blitz_broadcast_rx *rx, uint64_t *missed)
{
    int out = -1;
    CHECK_EQ(blitz_broadcast_try_recv(rx, &out, missed), 0);
    return out;
}

TEST(broadcast, bad_input_is_refused)
{
    blitz_broadcast *b;
    CHECK_EQ(blitz_broadcast_new(0, 1, &b), -EINVAL);
    CHECK_EQ(blitz_broadcast_new(1, 0, &b), -EINVAL);
    CHECK_EQ(blitz_broadcast_new(1, 1, NULL), -EINVAL);
    CHECK_EQ(blitz_broadcast_new(SIZE_MAX / 8, 16, &b), -EINVAL);
    blitz_broadcast_unref(NULL);
}

TEST(broadcast, receivers_get_all_values_sent_since_they_subscribed)
{
    blitz_broadcast *b = broadcast(4);
    blitz_broadcast_rx x, y;
    int out = -1;
    blitz_broadcast_subscribe(b, &x);
    CHECK_EQ(blitz_broadcast_send(b, &(int){1}), 0);
    blitz_broadcast_subscribe(b, &y);
    CHECK_EQ(blitz_broadcast_send(b, &(int){2}), 0);
    CHECK_EQ(next_of(&x, NULL), 1);
    CHECK_EQ(next_of(&x, NULL), 2);
    CHECK_EQ(next_of(&y, NULL), 2);
    CHECK_EQ(blitz_broadcast_try_recv(&y, &out, NULL), -EAGAIN);
    CHECK_EQ(blitz_broadcast_recv(&y, &out, NULL, 0), -ETIMEDOUT);
    CHECK_EQ(blitz_broadcast_send(b, &(int){3}), 0);
    blitz_broadcast_close(b);
    CHECK_EQ(blitz_broadcast_send(b, &(int){4}), -EPIPE);
    CHECK_EQ(next_of(&x, NULL), 3);
    CHECK_EQ(blitz_broadcast_recv(&x, &out, NULL, BLITZ_FOREVER), -EPIPE);
    CHECK_EQ(out, -1);
    CHECK_EQ(next_of(&y, NULL), 3);
    blitz_broadcast_unsubscribe(&x);
    blitz_broadcast_unsubscribe(&y);
    blitz_broadcast_unref(b);
}

/* Compared with a list: a receiver gets each value, or counts it as missed. */
TEST(broadcast, a_lagging_receiver_learns_how_many_values_it_missed)
{
    for (int round = 0; round < 300; round++) {
        size_t capacity = 1 + t_random_below(5);
        blitz_broadcast *b = broadcast(capacity);
        blitz_broadcast_rx rx[3];
        int sent = 0;
        uint64_t had[3] = {0, 0, 0};
        for (int i = 0; i < 3; i++)
            blitz_broadcast_subscribe(b, &rx[i]);
        for (int step = 0; step < 60; step++) {
            size_t i = t_random_below(5);
            uint64_t missed = 9;
            int out = -1;
            if (i >= 3) {
                CHECK_EQ(blitz_broadcast_send(b, &sent), 0);
                sent++;
            } else if (had[i] == (uint64_t)sent) {
                CHECK_EQ(blitz_broadcast_try_recv(&rx[i], &out, &missed), -EAGAIN);
                CHECK_EQ(missed, 0u);
            } else {
                uint64_t behind = (uint64_t)sent - had[i];
                CHECK_EQ(blitz_broadcast_try_recv(&rx[i], &out, &missed), 0);
                CHECK_EQ(missed, behind > capacity ? behind - capacity : 0);
                CHECK_EQ(out, had[i] + missed);
                had[i] += missed + 1;
            }
        }
        for (int i = 0; i < 3; i++)
            blitz_broadcast_unsubscribe(&rx[i]);
        blitz_broadcast_unref(b);
    }
}

/* ---- waiting ---- */

enum { N = 40, ROUNDS = 50 };
static blitz_broadcast *shared;

static int receives_all(void *arg)
{
    blitz_broadcast_rx *rx = arg;
    uint64_t had = 0, missed;
    int out, rc;
    while ((rc = blitz_broadcast_recv(rx, &out, &missed, blitz_after(1000 * BLITZ_S))) == 0) {
        had += missed;
        CHECK_EQ(out, had);
        had++;
    }
    CHECK_EQ(rc, -EPIPE);
    CHECK_EQ(had, ROUNDS);
    return 0;
}

static int sends_to_many(void *arg)
{
    static blitz_broadcast_rx rx[N];
    static blitz_task *t[N];
    shared = broadcast(*(size_t *)arg);
    for (int i = 0; i < N; i++) {
        blitz_broadcast_subscribe(shared, &rx[i]);
        CHECK_EQ(blitz_spawn(receives_all, &rx[i], NULL, &t[i]), 0);
    }
    for (int i = 0; i < ROUNDS; i++) {
        if (i % 3 == 0)
            blitz_yield();
        CHECK_EQ(blitz_broadcast_send(shared, &i), 0);
    }
    blitz_broadcast_close(shared);
    for (int i = 0; i < N; i++) {
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
        blitz_broadcast_unsubscribe(&rx[i]);
    }
    blitz_broadcast_unref(shared);
    return 0;
}

/* More than can be woken at a time. */
TEST(broadcast, reaches_forty_that_wait)
{
    t_on_each(sends_to_many, &(size_t){2}, 0);
    t_on_each(sends_to_many, &(size_t){100}, 0);
}

static int waits_for_one(void *arg)
{
    int out;
    return blitz_broadcast_recv(arg, &out, NULL, BLITZ_FOREVER);
}

static int is_cancelled(void *arg)
{
    blitz_broadcast *b = broadcast(2);
    blitz_broadcast_rx rx;
    blitz_task *t;
    int result = 1;
    (void)arg;
    blitz_broadcast_subscribe(b, &rx);
    CHECK_EQ(blitz_spawn(waits_for_one, &rx, NULL, &t), 0);
    blitz_yield();
    blitz_task_cancel(t);
    CHECK_EQ(blitz_task_join(t, &result, BLITZ_FOREVER), 0);
    CHECK_EQ(result, -ECANCELED);
    CHECK_EQ(blitz_broadcast_send(b, &(int){6}), 0);
    CHECK_EQ(next_of(&rx, NULL), 6); /* nothing was received by it */
    blitz_broadcast_unsubscribe(&rx);
    blitz_broadcast_unref(b);
    return 0;
}

TEST(broadcast, a_cancelled_receive_has_received_nothing)
{
    t_on_each(is_cancelled, NULL, 0);
}

TEST(broadcast, the_future_completes_or_is_cancelled)
{
    blitz_broadcast *b = broadcast(2);
    struct t_bell bell = {.holders = 1};
    blitz_waker w = t_bell_waker(&bell);
    blitz_broadcast_rx rx;
    blitz_broadcast_future f;
    int out = 0;
    blitz_broadcast_subscribe(b, &rx);
    blitz_broadcast_recv_future_init(&f, &rx, &out);
    CHECK_EQ(f.future.ops->poll(&f.future, &w), BLITZ_PENDING);
    CHECK_EQ(f.future.ops->poll(&f.future, &w), BLITZ_PENDING);
    for (int i = 1; i <= 5; i++)
        CHECK_EQ(blitz_broadcast_send(b, &i), 0);
    CHECK_EQ(bell.rung, 1);
    CHECK_EQ(f.future.ops->poll(&f.future, &w), BLITZ_READY);
    CHECK_EQ(f.result, 0);
    CHECK_EQ(out, 4);
    CHECK_EQ(f.missed, 3u);
    CHECK_EQ(next_of(&rx, NULL), 5);
    blitz_broadcast_recv_future_init(&f, &rx, &out);
    CHECK_EQ(f.future.ops->poll(&f.future, &w), BLITZ_PENDING);
    f.future.ops->cancel(&f.future);
    CHECK_EQ(bell.holders, 1);
    CHECK_EQ(blitz_broadcast_send(b, &(int){6}), 0);
    CHECK_EQ(next_of(&rx, NULL), 6);
    blitz_broadcast_close(b);
    blitz_broadcast_recv_future_init(&f, &rx, &out);
    CHECK_EQ(f.future.ops->poll(&f.future, &w), BLITZ_READY);
    CHECK_EQ(f.future.ops->output(&f.future), -EPIPE);
    blitz_broadcast_unsubscribe(&rx);
    blitz_broadcast_unref(b);
}

TEST(broadcast, counts_its_receivers_and_what_each_can_receive)
{
    blitz_broadcast *b;
    blitz_broadcast_rx a, c;
    uint64_t missed = 0;
    int got = 0;
    CHECK_EQ(blitz_broadcast_new(sizeof(int), 4, &b), 0);
    CHECK_EQ(blitz_broadcast_receivers(b), 0u);
    blitz_broadcast_subscribe(b, &a);
    CHECK_EQ(blitz_broadcast_length(&a), 0u);
    for (int i = 0; i < 6; i++) {
        CHECK_EQ(blitz_broadcast_send(b, &i), 0);
        CHECK_EQ(blitz_broadcast_length(&a), i < 4 ? (size_t)i + 1 : 4u);
    }
    CHECK_EQ(blitz_broadcast_try_recv(&a, &got, &missed), 0);
    CHECK_EQ(missed, 2u);
    CHECK_EQ(got, 2);
    CHECK_EQ(blitz_broadcast_length(&a), 3u);
    blitz_broadcast_resubscribe(&a, &c);
    CHECK_EQ(blitz_broadcast_receivers(b), 2u);
    CHECK_EQ(blitz_broadcast_length(&c), 3u);
    blitz_broadcast_unsubscribe(&a);
    CHECK_EQ(blitz_broadcast_receivers(b), 1u);
    for (int i = 3; i < 6; i++) {
        CHECK_EQ(blitz_broadcast_try_recv(&c, &got, NULL), 0);
        CHECK_EQ(got, i);
    }
    blitz_broadcast_unsubscribe(&c);
    blitz_broadcast_unref(b);
}
