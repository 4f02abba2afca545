/* Channels: sent values arrive once and in order; waits and how they end. */
#include "harness.h"

#include <errno.h>

#include "blitz.h"
#include "chan/chan.h"
#include "support/alone.h"
#include "support/on_each.h"
#include "support/tasks.h"
#include "support/test_alloc.h"

static blitz_chan *chan_of_ints(size_t capacity)
{
    blitz_chan *c;
    CHECK_EQ(blitz_chan_new(sizeof(int), capacity, NULL, &c), 0);
    return c;
}

static int receive_now(blitz_chan *c)
{
    int value = -1;
    CHECK_EQ(blitz_chan_try_recv(c, &value), 0);
    return value;
}

static void send_now(blitz_chan *c, int value)
{
    CHECK_EQ(blitz_chan_try_send(c, &value), 0);
}

/* ---- without waiting ---- */

TEST(chan, values_come_out_in_the_order_they_went_in)
{
    blitz_chan *c = chan_of_ints(3);
    for (int round = 0; round < 10; round++) { /* the ring wraps */
        send_now(c, 1);
        send_now(c, 2);
        CHECK_EQ(receive_now(c), 1);
        send_now(c, 3);
        send_now(c, 4);
        CHECK_EQ(blitz_chan_try_send(c, &round), -EAGAIN);
        CHECK_EQ(blitz_chan_len(c), 3u);
        CHECK_EQ(receive_now(c), 2);
        CHECK_EQ(receive_now(c), 3);
        CHECK_EQ(receive_now(c), 4);
        CHECK_EQ(blitz_chan_try_recv(c, &round), -EAGAIN);
    }
    CHECK_EQ(blitz_chan_capacity(c), 3u);
    blitz_chan_unref(c);
}

TEST(chan, bad_input_is_refused)
{
    blitz_chan *c = NULL;
    CHECK_EQ(blitz_chan_new(0, 1, NULL, &c), -EINVAL);
    CHECK_EQ(blitz_chan_new(8, 1, NULL, NULL), -EINVAL);
    CHECK_EQ(blitz_chan_new(SIZE_MAX / 2, 4, NULL, &c), -EINVAL);
    CHECK_EQ(blitz_chan_new(8, SIZE_MAX / 16, NULL, &c), -EINVAL);
    CHECK_EQ(blitz_chan_new(SIZE_MAX / 4, BLITZ_UNBOUNDED, NULL, &c), -EINVAL);
    CHECK_NULL(c);
    blitz_chan_unref(NULL);
}

/* Sizes with a specialised copy, and others. */
TEST(chan, values_of_any_size_arrive_whole)
{
    static const size_t sizes[] = {1, 3, 4, 8, 12, 16, 100, 5000};
    for (size_t i = 0; i < BZ_ARRAY_LEN(sizes); i++) {
        static const size_t capacities[] = {1, 7, BLITZ_UNBOUNDED};
        for (size_t k = 0; k < BZ_ARRAY_LEN(capacities); k++) {
            unsigned char in[5000], out[5000];
            blitz_chan *c;
            CHECK_EQ(blitz_chan_new(sizes[i], capacities[k], NULL, &c), 0);
            for (int round = 0; round < 20; round++) {
                memset(in, round, sizeof in);
                memset(out, 0xee, sizeof out);
                CHECK_EQ(blitz_chan_try_send(c, in), 0);
                CHECK_EQ(blitz_chan_try_recv(c, out), 0);
                CHECK_MEM_EQ(out, in, sizes[i]);
                CHECK(sizes[i] == sizeof out || out[sizes[i]] == 0xee);
            }
            blitz_chan_unref(c);
        }
    }
}

/* An unbounded channel frees the memory by which it has grown. */
TEST(chan, an_unbounded_one_grows_and_shrinks)
{
    struct test_alloc memory = TEST_ALLOC;
    blitz_allocator alloc = test_allocator(&memory);
    blitz_chan *c;
    int sent = 0, received = 0;
    CHECK_EQ(blitz_chan_new(sizeof(int), BLITZ_UNBOUNDED, &(blitz_chan_opts){.alloc = &alloc}, &c),
             0);
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < 5000; i++)
            send_now(c, sent++);
        for (int i = 0; i < 5000; i++)
            CHECK_EQ(receive_now(c), received++);
        CHECK_LE(memory.live, 3u);
    }
    send_now(c, 1);
    blitz_chan_unref(c);
    CHECK_EQ(memory.live, 0u);
}

TEST(chan, no_memory_is_an_error_and_nothing_is_lost)
{
    struct test_alloc memory = TEST_ALLOC;
    blitz_allocator alloc = test_allocator(&memory);
    blitz_chan_opts opts = {.alloc = &alloc};
    blitz_chan *c = NULL;
    blitz_permit permit;
    int sent = 0, received = 0;
    memory.fail_at = 1;
    CHECK_EQ(blitz_chan_new(sizeof(int), 4, &opts, &c), -ENOMEM);
    CHECK_NULL(c);
    CHECK_EQ(blitz_chan_new(sizeof(int), BLITZ_UNBOUNDED, &opts, &c), 0);
    for (int round = 0; round < 10; round++) {
        int rc;
        memory.fail_at = memory.calls + 3;
        while ((rc = blitz_chan_try_send(c, &sent)) == 0)
            sent++;
        CHECK_EQ(rc, -ENOMEM);
        memory.fail_at = memory.calls + 1;
        CHECK_EQ(blitz_chan_send(c, &sent, BLITZ_FOREVER), -ENOMEM);
        memory.fail_at = memory.calls + 1;
        CHECK_EQ(blitz_chan_try_reserve(c, &permit), -ENOMEM);
        memory.fail_at = memory.calls + 1;
        size_t many = 1;
        CHECK_EQ(blitz_chan_send_many(c, (int[]){1, 2}, 2, &many, BLITZ_FOREVER), -ENOMEM);
        CHECK_EQ(many, 0u);
        while (received < sent)
            CHECK_EQ(receive_now(c), received++);
    }
    blitz_chan_unref(c);
    CHECK_EQ(memory.live, 0u);
}

/* ---- the end ---- */

TEST(chan, after_a_close_receivers_drain_and_senders_are_turned_away)
{
    blitz_chan *c = chan_of_ints(4);
    int value = 9;
    send_now(c, 1);
    send_now(c, 2);
    CHECK_EQ(blitz_chan_is_closed(c), 0);
    blitz_chan_close(c);
    blitz_chan_close(c);
    CHECK_EQ(blitz_chan_is_closed(c), 1);
    CHECK_EQ(blitz_chan_try_send(c, &value), -EPIPE);
    CHECK_EQ(blitz_chan_send(c, &value, BLITZ_FOREVER), -EPIPE);
    CHECK_EQ(receive_now(c), 1);
    CHECK_EQ(blitz_chan_recv(c, &value, BLITZ_FOREVER), 0);
    CHECK_EQ(value, 2);
    CHECK_EQ(blitz_chan_recv(c, &value, BLITZ_FOREVER), -EPIPE);
    CHECK_EQ(value, 2); /* not written */
    blitz_chan_unref(c);
}

struct bin {
    blitz_chan *c;
    int count, sum;
};

static void throw_away(void *value, void *ctx)
{
    struct bin *b = ctx;
    int left;
    b->count++;
    b->sum += *(int *)value;
    if (b->c != NULL) /* it may use the channel */
        CHECK_EQ(blitz_chan_try_recv(b->c, &left), -EPIPE);
}

/* Bug class 23: the hook is foreign code, so it is not called under the lock. */
TEST(chan, bug_23_values_dropped_by_shut_may_use_the_channel_in_their_hook)
{
    static const size_t capacities[] = {10, BLITZ_UNBOUNDED};
    for (size_t i = 0; i < 2; i++) {
        struct bin bin = {NULL, 0, 0};
        blitz_chan_opts opts = {.drop = throw_away, .ctx = &bin};
        CHECK_EQ(blitz_chan_new(sizeof(int), capacities[i], &opts, &bin.c), 0);
        for (int k = 1; k <= 4; k++)
            send_now(bin.c, k);
        CHECK_EQ(receive_now(bin.c), 1);
        CHECK_EQ(blitz_chan_shut(bin.c), 3u);
        CHECK_EQ(blitz_chan_shut(bin.c), 0u);
        CHECK_EQ(bin.count, 3);
        CHECK_EQ(bin.sum, 9);
        CHECK_EQ(blitz_chan_len(bin.c), 0u);
        blitz_chan_unref(bin.c);
        CHECK_EQ(bin.count, 3);
    }
}

TEST(chan, the_hook_drops_values_left_at_the_end)
{
    struct bin bin = {NULL, 0, 0};
    blitz_chan *c;
    CHECK_EQ(
        blitz_chan_new(sizeof(int), 4, &(blitz_chan_opts){.drop = throw_away, .ctx = &bin}, &c), 0);
    send_now(c, 5);
    send_now(c, 6);
    blitz_chan_ref(c);
    blitz_chan_unref(c);
    CHECK_EQ(bin.count, 0);
    blitz_chan_unref(c);
    CHECK_EQ(bin.sum, 11);
}

TEST(chan, the_last_sender_closes_and_the_last_receiver_shuts)
{
    blitz_chan *c = chan_of_ints(4);
    int value;
    CHECK_EQ(blitz_chan_sender_add(c), 0);
    CHECK_EQ(blitz_chan_sender_add(c), 0);
    CHECK_EQ(blitz_chan_receiver_add(c), 0);
    blitz_chan_unref(c);
    send_now(c, 1);
    blitz_chan_sender_drop(c);
    CHECK_EQ(blitz_chan_is_closed(c), 0);
    blitz_chan_sender_drop(c);
    CHECK_EQ(blitz_chan_is_closed(c), 1);
    CHECK_EQ(blitz_chan_sender_add(c), -EPIPE);
    CHECK_EQ(blitz_chan_receiver_add(c), 0); /* there is something to receive */
    CHECK_EQ(receive_now(c), 1);
    blitz_chan_receiver_drop(c);
    CHECK_EQ(blitz_chan_try_recv(c, &value), -EPIPE);
    blitz_chan_receiver_drop(c);
}

static void drop_one_too_many(void *c)
{
    blitz_chan_sender_drop(c);
}

/* A reference is a weak sender: it can become a sender as long as there is one. */
TEST(chan, a_weak_sender_does_not_keep_the_channel_open)
{
    blitz_chan *c = chan_of_ints(1), *weak = blitz_chan_ref(c);
    CHECK_EQ(blitz_chan_senders(c), 0u);
    CHECK_EQ(blitz_chan_sender_add(c), 0);
    CHECK_EQ(blitz_chan_sender_add(weak), 0);
    CHECK_EQ(blitz_chan_senders(c), 2u);
    CHECK_EQ(blitz_chan_receivers(c), 0u);
    blitz_chan_sender_drop(c);
    CHECK(!blitz_chan_is_closed(weak));
    blitz_chan_sender_drop(weak);
    CHECK(blitz_chan_is_closed(weak));
    CHECK_EQ(blitz_chan_sender_add(weak), -EPIPE);
    CHECK_EQ(blitz_chan_senders(c), 0u);
    CHECK_EQ(blitz_chan_receiver_add(c), 0);
    CHECK_EQ(blitz_chan_receivers(c), 1u);
    blitz_chan_receiver_drop(c);
    blitz_chan_unref(weak);
    blitz_chan_unref(c);
}

TEST(chan, a_handle_too_many_is_a_bug_that_names_itself)
{
    blitz_chan *c = chan_of_ints(1);
    CHECK_ABORTS(drop_one_too_many, c, "more handles are dropped than were added");
    blitz_chan_unref(c);
}

/* ---- permits ---- */

TEST(chan, a_permit_holds_a_slot_until_it_is_used_or_dropped)
{
    blitz_chan *c = chan_of_ints(2);
    blitz_permit a, b, none;
    int value = 0;
    CHECK_EQ(blitz_chan_reserve(c, &a, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_chan_try_reserve(c, &b), 0);
    CHECK_EQ(blitz_chan_try_reserve(c, &none), -EAGAIN);
    CHECK_EQ(blitz_chan_reserve(c, &none, 0), -ETIMEDOUT);
    CHECK_EQ(blitz_chan_try_send(c, &value), -EAGAIN);
    CHECK_EQ(blitz_chan_len(c), 0u);
    blitz_permit_send(&b, &(int){7});
    blitz_permit_drop(&a);
    blitz_permit_drop(&a);
    send_now(c, 8);
    CHECK_EQ(receive_now(c), 7);
    CHECK_EQ(receive_now(c), 8);
    blitz_chan_unref(c);
}

/* "Cannot fail" also means: not by a close that comes between. */
TEST(chan, a_closed_channel_ends_when_its_permits_do)
{
    blitz_chan *c = chan_of_ints(2);
    blitz_permit a, b;
    int value;
    CHECK_EQ(blitz_chan_reserve(c, &a, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_chan_reserve(c, &b, BLITZ_FOREVER), 0);
    blitz_chan_close(c);
    CHECK_EQ(blitz_chan_try_recv(c, &value), -EAGAIN);
    blitz_permit_send(&a, &(int){7});
    CHECK_EQ(receive_now(c), 7);
    CHECK_EQ(blitz_chan_try_recv(c, &value), -EAGAIN);
    blitz_permit_drop(&b);
    CHECK_EQ(blitz_chan_try_recv(c, &value), -EPIPE);
    blitz_chan_unref(c);
}

TEST(chan, a_permit_of_a_channel_that_was_shut_drops_its_value)
{
    struct bin bin = {NULL, 0, 0};
    blitz_chan_opts opts = {.drop = throw_away, .ctx = &bin};
    blitz_permit a;
    CHECK_EQ(blitz_chan_new(sizeof(int), 2, &opts, &bin.c), 0);
    CHECK_EQ(blitz_chan_try_reserve(bin.c, &a), 0);
    CHECK_EQ(blitz_chan_shut(bin.c), 0u);
    blitz_chan *c = bin.c;
    blitz_permit_send(&a, &(int){7});
    CHECK_EQ(bin.sum, 7);
    blitz_chan_unref(c);
}

TEST(chan, a_rendezvous_has_no_room_to_reserve)
{
    blitz_chan *c = chan_of_ints(0);
    blitz_permit a;
    CHECK_EQ(blitz_chan_reserve(c, &a, BLITZ_FOREVER), -EOPNOTSUPP);
    CHECK_EQ(blitz_chan_try_reserve(c, &a), -EOPNOTSUPP);
    blitz_permit_drop(&a);
    blitz_chan_unref(c);
}

TEST(chan, permits_of_an_unbounded_channel_have_their_room)
{
    blitz_chan *c = chan_of_ints(BLITZ_UNBOUNDED);
    enum { N = 3000 };
    static blitz_permit permit[N];
    for (int i = 0; i < N; i++) {
        CHECK_EQ(blitz_chan_try_reserve(c, &permit[i]), 0);
        send_now(c, -i);
    }
    for (int i = 0; i < N; i++)
        blitz_permit_send(&permit[i], &i);
    for (int i = 0; i < N; i++)
        CHECK_EQ(receive_now(c), -i);
    for (int i = 0; i < N; i++)
        CHECK_EQ(receive_now(c), i);
    blitz_chan_unref(c);
}

/* ---- many ---- */

TEST(chan, many_at_a_time_say_how_many)
{
    blitz_chan *c = chan_of_ints(5);
    int out[8] = {0};
    size_t n = 99;
    CHECK_EQ(blitz_chan_send_many(c, (int[]){1, 2, 3}, 3, &n, 0), 0);
    CHECK_EQ(n, 3u);
    CHECK_EQ(blitz_chan_send_many(c, (int[]){4, 5, 6, 7}, 4, &n, 0), -ETIMEDOUT);
    CHECK_EQ(n, 2u);
    CHECK_EQ(blitz_chan_recv_many(c, out, 0, &n, 0), -EINVAL);
    CHECK_EQ(n, 0u);
    CHECK_EQ(blitz_chan_recv_many(c, out, 2, &n, 0), 0);
    CHECK_EQ(n, 2u);
    CHECK_EQ(blitz_chan_recv_many(c, out + 2, 6, &n, 0), 0);
    CHECK_EQ(n, 3u);
    for (int i = 0; i < 5; i++)
        CHECK_EQ(out[i], i + 1);
    CHECK_EQ(blitz_chan_recv_many(c, out, 6, &n, 0), -ETIMEDOUT);
    CHECK_EQ(n, 0u);
    CHECK_EQ(blitz_chan_send_many(c, out, 0, NULL, 0), 0);
    blitz_chan_close(c);
    CHECK_EQ(blitz_chan_send_many(c, out, 1, &n, BLITZ_FOREVER), -EPIPE);
    CHECK_EQ(blitz_chan_recv_many(c, out, 1, &n, BLITZ_FOREVER), -EPIPE);
    blitz_chan_unref(c);
}

/* ---- waiting ---- */

enum { ROUNDS = 500 };

static int send_all(void *arg)
{
    for (int i = 0; i < ROUNDS; i++)
        CHECK_EQ(blitz_chan_send(arg, &i, i % 3 ? BLITZ_FOREVER : blitz_after(1000 * BLITZ_S)), 0);
    return 0;
}

static int one_to_one(void *arg)
{
    static const size_t capacities[] = {0, 1, 2, 100, BLITZ_UNBOUNDED};
    (void)arg;
    for (size_t k = 0; k < BZ_ARRAY_LEN(capacities); k++) {
        blitz_chan *c = chan_of_ints(capacities[k]);
        blitz_task *t;
        CHECK_EQ(blitz_spawn(send_all, c, NULL, &t), 0);
        for (int i = 0; i < ROUNDS; i++) {
            int value = -1;
            CHECK_EQ(
                blitz_chan_recv(c, &value, i % 2 ? BLITZ_FOREVER : blitz_after(1000 * BLITZ_S)), 0);
            CHECK_EQ(value, i);
        }
        CHECK_EQ(blitz_task_join(t, NULL, BLITZ_FOREVER), 0);
        blitz_chan_unref(c);
    }
    return 0;
}

TEST(chan, one_sender_and_one_receiver_take_turns)
{
    t_on_each(one_to_one, NULL, 0);
}

static blitz_chan *shared;
static blitz_task *tasks[8];

static int receives_one(void *arg)
{
    return blitz_chan_recv(shared, arg, BLITZ_FOREVER);
}

static int sends_one(void *arg)
{
    return blitz_chan_send(shared, arg, BLITZ_FOREVER);
}

static int reserves_one(void *arg)
{
    return blitz_chan_reserve(shared, arg, BLITZ_FOREVER);
}

static void spawn_parked(int i, int (*fn)(void *), void *arg)
{
    CHECK_EQ(blitz_spawn(fn, arg, NULL, &tasks[i]), 0);
    blitz_yield(); /* one proc: it has run until it waits */
}

static int result_of(int i)
{
    int result = 1;
    CHECK_EQ(blitz_task_join(tasks[i], &result, BLITZ_FOREVER), 0);
    return result;
}

static int closes_on_waiters(void *arg)
{
    static const size_t capacities[] = {0, 1};
    (void)arg;
    for (int k = 0; k < 2; k++) {
        int out[3];
        shared = chan_of_ints(capacities[k]);
        for (int i = 0; i < 3; i++)
            spawn_parked(i, receives_one, &out[i]);
        blitz_chan_close(shared);
        for (int i = 0; i < 3; i++)
            CHECK_EQ(result_of(i), -EPIPE);
        blitz_chan_unref(shared);
        shared = chan_of_ints(capacities[k]);
        if (k == 1)
            send_now(shared, 0);
        for (int i = 0; i < 3; i++)
            spawn_parked(i, sends_one, &out[i]);
        blitz_chan_close(shared);
        for (int i = 0; i < 3; i++)
            CHECK_EQ(result_of(i), -EPIPE);
        CHECK_EQ(blitz_chan_len(shared), capacities[k]);
        blitz_chan_unref(shared);
    }
    return 0;
}

/* A waiter for a value that can no longer come must be woken. */
TEST(chan, close_wakes_waiting_receivers_and_senders)
{
    CHECK_EQ(t_run_alone(closes_on_waiters, NULL), 0);
}

static int closes_on_many(void *arg)
{
    enum { N = 100 };
    static blitz_task *t[N];
    int out;
    (void)arg;
    shared = chan_of_ints(0);
    for (int i = 0; i < N; i++)
        CHECK_EQ(blitz_spawn(receives_one, &out, NULL, &t[i]), 0);
    for (int i = 0; i < 5; i++)
        blitz_yield();
    blitz_chan_close(shared);
    for (int i = 0; i < N; i++) {
        int result = 0;
        CHECK_EQ(blitz_task_join(t[i], &result, BLITZ_FOREVER), 0);
        CHECK_EQ(result, -EPIPE);
    }
    blitz_chan_unref(shared);
    return 0;
}

/* More than can be owed at a time. */
TEST(chan, a_close_wakes_a_hundred)
{
    t_on_each(closes_on_many, NULL, 0);
}

static int cancels_and_times_out(void *arg)
{
    int value = 5;
    (void)arg;
    shared = chan_of_ints(1);
    CHECK_EQ(blitz_chan_recv(shared, &value, blitz_after(BLITZ_MS)), -ETIMEDOUT);
    CHECK_EQ(blitz_chan_recv(shared, &value, 0), -ETIMEDOUT);
    spawn_parked(0, receives_one, &value);
    blitz_task_cancel(tasks[0]);
    CHECK_EQ(result_of(0), -ECANCELED);
    CHECK_EQ(value, 5); /* nothing happened */
    send_now(shared, 1);
    CHECK_EQ(blitz_chan_send(shared, &value, blitz_after(BLITZ_MS)), -ETIMEDOUT);
    spawn_parked(0, sends_one, &value);
    spawn_parked(1, sends_one, &(int){6});
    blitz_task_cancel(tasks[0]);
    CHECK_EQ(result_of(0), -ECANCELED);
    CHECK_EQ(receive_now(shared), 1);
    CHECK_EQ(result_of(1), 0);
    CHECK_EQ(receive_now(shared), 6);
    CHECK_EQ(blitz_chan_len(shared), 0u);
    blitz_chan_unref(shared);
    return 0;
}

TEST(chan, a_deadline_or_a_cancel_leaves_nothing_behind)
{
    CHECK_EQ(t_run_alone(cancels_and_times_out, NULL), 0);
}

static int reserves_in_line(void *arg)
{
    blitz_permit permit[2];
    int value = 3;
    (void)arg;
    shared = chan_of_ints(1);
    send_now(shared, 1);
    spawn_parked(0, reserves_one, &permit[0]);
    spawn_parked(1, sends_one, &value);
    CHECK_EQ(receive_now(shared), 1);
    CHECK_EQ(result_of(0), 0);
    CHECK_EQ(blitz_chan_len(shared), 0u); /* the slot is reserved, the sender waits on */
    blitz_permit_send(&permit[0], &(int){2});
    CHECK_EQ(receive_now(shared), 2);
    CHECK_EQ(result_of(1), 0);
    CHECK_EQ(receive_now(shared), 3);
    spawn_parked(0, receives_one, &value);
    CHECK_EQ(blitz_chan_reserve(shared, &permit[0], BLITZ_FOREVER), 0);
    blitz_permit_send(&permit[0], &(int){4});
    CHECK_EQ(result_of(0), 0);
    CHECK_EQ(value, 4);
    blitz_chan_unref(shared);
    return 0;
}

TEST(chan, reservers_and_senders_share_one_wait_queue)
{
    CHECK_EQ(t_run_alone(reserves_in_line, NULL), 0);
}

static int serves_in_order(void *arg)
{
    int out[6];
    (void)arg;
    for (int k = 0; k < 2; k++) {
        shared = chan_of_ints(k == 0 ? 0 : 4);
        for (int i = 0; i < 6; i++)
            spawn_parked(i, receives_one, &out[i]);
        for (int i = 0; i < 6; i++)
            send_now(shared, i);
        for (int i = 0; i < 6; i++) {
            CHECK_EQ(result_of(i), 0);
            CHECK_EQ(out[i], i);
        }
        blitz_chan_unref(shared);
    }
    return 0;
}

/* Bug class 25: no later receiver overtakes. */
TEST(chan, bug_25_waiters_are_served_in_order)
{
    CHECK_EQ(t_run_alone(serves_in_order, NULL), 0);
}

/* ---- plain threads ---- */

static void echo_thread(void *arg)
{
    blitz_chan **c = arg;
    for (int i = 0; i < ROUNDS; i++) {
        int value;
        CHECK_EQ(blitz_chan_recv(c[0], &value, BLITZ_FOREVER), 0);
        CHECK_EQ(blitz_chan_send(c[1], &value, BLITZ_FOREVER), 0);
    }
}

static int talks_to_a_thread(void *arg)
{
    blitz_chan **c = arg;
    for (int i = 0; i < ROUNDS; i++) {
        int value;
        CHECK_EQ(blitz_chan_send(c[0], &i, BLITZ_FOREVER), 0);
        CHECK_EQ(blitz_chan_recv(c[1], &value, BLITZ_FOREVER), 0);
        CHECK_EQ(value, i);
    }
    return 0;
}

static void talk(void *arg, int index)
{
    if (index == 0)
        echo_thread(arg);
    else
        CHECK_EQ(blitz_run(talks_to_a_thread, arg, NULL), 0);
}

TEST(chan, a_task_and_a_plain_thread_talk)
{
    for (size_t capacity = 0; capacity < 2; capacity++) {
        blitz_chan *c[2] = {chan_of_ints(capacity), chan_of_ints(capacity)};
        t_threads(2, talk, c);
        blitz_chan_unref(c[0]);
        blitz_chan_unref(c[1]);
    }
}

TEST(chan, a_plain_thread_waits_until_its_deadline)
{
    blitz_chan *c = chan_of_ints(1);
    int value = 1;
    CHECK_EQ(blitz_chan_recv(c, &value, blitz_after(BLITZ_MS)), -ETIMEDOUT);
    send_now(c, 1);
    CHECK_EQ(blitz_chan_send(c, &value, blitz_after(BLITZ_MS)), -ETIMEDOUT);
    bz_chan_lock(c);
    bz_chan_check(c);
    bz_chan_unlock(c);
    blitz_chan_unref(c);
}

/* ---- by type ---- */

struct point {
    short x, y, z;
};
BLITZ_CHAN_OF(points, struct point);

TEST(chan, a_typed_channel_takes_and_gives_its_type)
{
    points p;
    struct point out = {0, 0, 0};
    CHECK_EQ(points_new(2, NULL, &p), 0);
    CHECK_EQ(points_send(p, (struct point){1, 2, 3}, BLITZ_FOREVER), 0);
    CHECK_EQ(points_try_send(p, (struct point){4, 5, 6}), 0);
    CHECK_EQ(points_recv(p, &out, BLITZ_FOREVER), 0);
    CHECK_EQ(out.y, 2);
    CHECK_EQ(points_try_recv(p, &out), 0);
    CHECK_EQ(out.z, 6);
    points_close(p);
    CHECK_EQ(points_recv(p, &out, BLITZ_FOREVER), -EPIPE);
    points_unref(p);
}

/* ---- two that grow at once ---- */

/* An allocator that sends to the channel that it allocates for: another sender has been faster. */
static struct {
    blitz_chan *c;
    bool is_armed;
    int blocks;
} rival;

static void *rival_alloc(void *ctx, size_t size, size_t align)
{
    (void)ctx;
    if (rival.is_armed) {
        rival.is_armed = false;
        CHECK_EQ(blitz_chan_try_send(rival.c, &(int){-1}), 0);
    }
    rival.blocks++;
    return bz_alloc(&bz_allocator_libc, size, align);
}

static void rival_free(void *ctx, void *block, size_t size)
{
    (void)ctx;
    rival.blocks--;
    bz_free(&bz_allocator_libc, block, size);
}

/* Two senders find a channel without room and each brings a block: one is used, the other given back. */
TEST(chan, of_two_concurrent_block_allocations_one_is_taken_back)
{
    blitz_allocator a = {rival_alloc, rival_free, NULL};
    int got, sum = 0;
    rival.blocks = 0;
    CHECK_EQ(
        blitz_chan_new(sizeof(int), BLITZ_UNBOUNDED, &(blitz_chan_opts){.alloc = &a}, &rival.c), 0);
    for (int i = 0; i < 5000; i++) {
        rival.is_armed = true;
        CHECK_EQ(blitz_chan_try_send(rival.c, &(int){1}), 0);
        rival.is_armed = false;
    }
    while (blitz_chan_try_recv(rival.c, &got) == 0)
        sum += got == 1;
    CHECK_EQ(sum, 5000);
    blitz_chan_unref(rival.c);
    CHECK_EQ(rival.blocks, 0);
}
