/* Reserving several slots of a channel: all or none, in turn, and nothing kept by a caller that has left. */
#include "harness.h"

#include <errno.h>

#include "blitz.h"
#include "chan/chan.h"
#include "support/alone.h"
#include "support/bell.h"
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

/* ---- without waiting ---- */

TEST(permits, a_batch_has_room_for_all_or_for_none)
{
    blitz_chan *c = chan_of_ints(3);
    blitz_permits two, more;
    CHECK_EQ(blitz_chan_try_reserve_many(c, 2, &two), 0);
    CHECK_EQ(blitz_permits_left(&two), 2u);
    CHECK_EQ(blitz_chan_try_reserve_many(c, 2, &more), -EAGAIN);
    CHECK_EQ(blitz_permits_left(&more), 0u);
    CHECK_EQ(blitz_chan_reserve_many(c, 2, &more, 0),
             -ETIMEDOUT); /* it had one slot, and gave it back */
    CHECK_EQ(blitz_chan_try_send(c, &(int){1}), 0);
    CHECK_EQ(blitz_chan_try_send(c, &(int){2}), -EAGAIN);
    blitz_permits_send(&two, &(int){3});
    CHECK_EQ(blitz_permits_left(&two), 1u);
    blitz_permits_drop(&two);
    CHECK_EQ(blitz_permits_left(&two), 0u);
    blitz_permits_drop(&two); /* ignored */
    CHECK_EQ(blitz_chan_try_send(c, &(int){4}), 0);
    CHECK_EQ(receive_now(c), 1);
    CHECK_EQ(receive_now(c), 3);
    CHECK_EQ(receive_now(c), 4);
    CHECK_EQ(blitz_chan_reserve_many(c, 3, &two, 0), 0);
    blitz_chan_unref(c); /* the permits hold a reference */
    for (int i = 0; i < 3; i++)
        blitz_permits_send(&two, &i);
}

TEST(permits, bad_numbers_are_refused)
{
    static const size_t capacities[] = {0, 1, 2, BLITZ_UNBOUNDED};
    for (int i = 0; i < 4; i++) {
        blitz_chan *c = chan_of_ints(capacities[i]);
        int wrong = i == 0 ? -EOPNOTSUPP : -EINVAL;
        blitz_permits p = {c, 7};
        blitz_chan_future f;
        CHECK_EQ(blitz_chan_reserve_many(c, 0, &p, BLITZ_FOREVER), wrong);
        CHECK_EQ(blitz_permits_left(&p), 0u);
        CHECK_EQ(blitz_chan_try_reserve_many(c, i == 3 ? SIZE_MAX : capacities[i] + 1, &p), wrong);
        blitz_chan_reserve_many_future_init(&f, c, 0, &p);
        CHECK_EQ(f.future.ops->poll(&f.future, NULL), BLITZ_READY); /* needs no waker */
        CHECK_EQ(f.result, wrong);
        CHECK_EQ(blitz_permits_left(&p), 0u);
        blitz_permits_drop(&p);
        blitz_chan_unref(c);
    }
}

TEST(permits, an_unbounded_channel_has_room_for_thousands_or_says_so)
{
    enum { N = 3000 };
    struct test_alloc memory = TEST_ALLOC;
    blitz_allocator alloc = test_allocator(&memory);
    blitz_permits p, q;
    blitz_chan *c;
    CHECK_EQ(blitz_chan_new(sizeof(int), BLITZ_UNBOUNDED, &(blitz_chan_opts){.alloc = &alloc}, &c),
             0);
    for (size_t k = 1; k < 4; k++) { /* the first, the second or the third block is refused */
        memory.fail_at = memory.calls + k;
        CHECK_EQ(blitz_chan_try_reserve_many(c, N * k, &p), -ENOMEM);
        CHECK_EQ(blitz_permits_left(&p), 0u);
    }
    CHECK_EQ(blitz_chan_try_reserve_many(c, N, &p), 0);
    memory.fail_at = memory.calls + 1;
    for (int i = 0; i < N; i++)
        blitz_permits_send(&p, &i); /* no more memory is needed */
    CHECK_EQ(memory.fail_at, memory.calls + 1);
    memory.fail_at = 0;
    CHECK_EQ(blitz_chan_reserve_many(c, 2, &q, 0), 0);
    for (int i = 0; i < N; i++)
        CHECK_EQ(receive_now(c), i);
    blitz_permits_drop(&q);
    blitz_chan_unref(c);
    CHECK_EQ(memory.live, 0u);
}

static int dropped;

static void drops(void *value, void *ctx)
{
    (void)ctx;
    dropped += *(int *)value;
}

TEST(permits, a_close_leaves_them_and_a_shut_drops_their_values)
{
    for (int is_shut = 0; is_shut < 2; is_shut++) {
        blitz_chan *c;
        blitz_permits p;
        int out;
        dropped = 0;
        CHECK_EQ(blitz_chan_new(sizeof(int), 4, &(blitz_chan_opts){.drop = drops}, &c), 0);
        CHECK_EQ(blitz_chan_try_reserve_many(c, 3, &p), 0);
        if (is_shut)
            CHECK_EQ(blitz_chan_shut(c), 0u);
        else
            blitz_chan_close(c);
        blitz_permits_send(&p, &(int){5});
        CHECK_EQ(dropped, is_shut ? 5 : 0);
        if (!is_shut) {
            CHECK_EQ(receive_now(c), 5);
            CHECK_EQ(blitz_chan_try_recv(c, &out), -EAGAIN); /* two permits are left */
        }
        blitz_permits_drop(&p);
        CHECK_EQ(blitz_chan_try_recv(c, &out), -EPIPE);
        blitz_chan_unref(c);
    }
}

static void sends_too_often(void *arg)
{
    blitz_permits_send(arg, &(int){1});
}

TEST(permits, a_send_too_many_is_a_bug_that_names_itself)
{
    blitz_permits none = {NULL, 0};
    CHECK_ABORTS(sends_too_often, &none, "all are used already");
}

/* ---- waiting: one proc, where the order of events is a fact ---- */

static blitz_chan *shared;
static blitz_task *tasks[8];

static void spawn_parked(int i, int (*fn)(void *), void *arg)
{
    CHECK_EQ(blitz_spawn(fn, arg, NULL, &tasks[i]), 0);
    blitz_yield(); /* it has run until it waits */
}

static int result_of(int i)
{
    int result = 1;
    CHECK_EQ(blitz_task_join(tasks[i], &result, BLITZ_FOREVER), 0);
    return result;
}

static int sends_one(void *value)
{
    return blitz_chan_send(shared, value, BLITZ_FOREVER);
}

/* Send as many values as *n says, and then store 0. */
static int sends_a_batch(void *n)
{
    blitz_permits p;
    int count = *(int *)n, rc = blitz_chan_reserve_many(shared, (size_t)count, &p, BLITZ_FOREVER);
    for (int i = 0; i < count && rc == 0; i++)
        blitz_permits_send(&p, &(int){10 * count + i});
    *(int *)n = 0;
    return rc;
}

/* Slots come one by one. Neither a later send nor a caller that does not wait gets one of them. */
static int batch_first(void *arg)
{
    int three = 3, later = 99;
    (void)arg;
    shared = chan_of_ints(3);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(blitz_chan_try_send(shared, &i), 0);
    spawn_parked(0, sends_a_batch, &three);
    spawn_parked(1, sends_one, &later);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(three, 3);
        CHECK_EQ(receive_now(shared), i);
        CHECK_EQ(blitz_chan_try_send(shared, &(int){-1}), -EAGAIN); /* the slot is taken */
        bz_chan_lock(shared);
        bz_chan_check(shared);
        bz_chan_unlock(shared);
    }
    CHECK_EQ(result_of(0), 0);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(receive_now(shared), 30 + i);
    CHECK_EQ(result_of(1), 0);
    CHECK_EQ(receive_now(shared), 99);
    blitz_chan_unref(shared);
    return 0;
}

TEST(permits, bug_25_a_batch_that_waits_is_not_overtaken)
{
    CHECK_EQ(t_run_alone(batch_first, NULL), 0);
}

/* A batch that has some of its slots leaves: the next waiters have them. */
static int batch_leaves(void *arg)
{
    int three = 3, two = 2, one = 50;
    (void)arg;
    shared = chan_of_ints(3);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(blitz_chan_try_send(shared, &i), 0);
    spawn_parked(0, sends_a_batch, &three);
    spawn_parked(1, sends_a_batch, &two);
    spawn_parked(2, sends_one, &one);
    CHECK_EQ(receive_now(shared), 0);
    CHECK_EQ(receive_now(shared), 1); /* the first batch has two slots of three */
    blitz_task_cancel(tasks[0]);
    CHECK_EQ(result_of(0), -ECANCELED);
    CHECK_EQ(result_of(1), 0);
    CHECK_EQ(receive_now(shared), 2);
    CHECK_EQ(result_of(2), 0);
    CHECK_EQ(receive_now(shared), 20);
    CHECK_EQ(receive_now(shared), 21);
    CHECK_EQ(receive_now(shared), 50);
    blitz_chan_unref(shared);
    return 0;
}

TEST(permits, bug_22_a_batch_that_leaves_returns_its_slots)
{
    CHECK_EQ(t_run_alone(batch_leaves, NULL), 0);
}

static int batch_times_out(void *arg)
{
    blitz_permits p;
    (void)arg;
    shared = chan_of_ints(2);
    CHECK_EQ(blitz_chan_try_send(shared, &(int){1}), 0);
    CHECK_EQ(blitz_chan_reserve_many(shared, 2, &p, blitz_after(BLITZ_MS)), -ETIMEDOUT);
    CHECK_EQ(blitz_permits_left(&p), 0u);
    CHECK_EQ(blitz_chan_try_send(shared, &(int){2}), 0);
    CHECK_EQ(blitz_chan_shut(shared), 2u);
    blitz_chan_unref(shared);
    return 0;
}

TEST(permits, a_batch_that_times_out_has_nothing)
{
    CHECK_EQ(t_run_alone(batch_times_out, NULL), 0);
    CHECK_EQ(batch_times_out(NULL), 0); /* on a plain thread */
}

/* A close ends the wait of a batch with some of its slots, and the channel is drained without them. */
static int batch_and_close(void *arg)
{
    int two = 2, out;
    (void)arg;
    shared = chan_of_ints(2);
    CHECK_EQ(blitz_chan_try_send(shared, &(int){1}), 0);
    spawn_parked(0, sends_a_batch, &two);
    blitz_chan_close(shared);
    CHECK_EQ(result_of(0), -EPIPE);
    CHECK_EQ(receive_now(shared), 1);
    CHECK_EQ(blitz_chan_try_recv(shared, &out), -EPIPE);
    blitz_chan_unref(shared);
    return 0;
}

TEST(permits, bug_24_a_close_ends_the_wait_of_a_batch)
{
    CHECK_EQ(t_run_alone(batch_and_close, NULL), 0);
}

/* ---- as a future ---- */

TEST(permits, a_future_has_its_slots_when_it_is_woken)
{
    for (int end = 0; end < 4; end++) {
        struct t_bell bell = {.holders = 1};
        blitz_waker w = t_bell_waker(&bell);
        blitz_chan *c = chan_of_ints(2);
        blitz_permits p = {c, 9};
        blitz_chan_future f;
        t_watch("end %d", end);
        CHECK_EQ(blitz_chan_try_send(c, &(int){1}), 0);
        blitz_chan_reserve_many_future_init(&f, c, 2, &p);
        CHECK_EQ(f.future.ops->poll(&f.future, &w), BLITZ_PENDING); /* has one slot */
        CHECK_EQ(f.future.ops->poll(&f.future, &w), BLITZ_PENDING);
        CHECK_EQ(blitz_chan_try_send(c, &(int){2}), -EAGAIN);
        if (end == 0) { /* cancelled with one slot */
            f.future.ops->cancel(&f.future);
        } else if (end == 1) { /* closed with one slot */
            blitz_chan_close(c);
            CHECK_EQ(bell.rung, 1);
            CHECK_EQ(f.future.ops->poll(&f.future, &w), BLITZ_READY);
        } else {
            CHECK_EQ(receive_now(c), 1);
            CHECK_EQ(bell.rung, 1);
            CHECK_EQ(blitz_chan_try_send(c, &(int){2}), -EAGAIN); /* both are its own */
            if (end == 2)
                CHECK_EQ(f.future.ops->poll(&f.future, &w), BLITZ_READY);
            else
                f.future.ops->cancel(&f.future);
        }
        CHECK_EQ(f.result, end == 1 ? -EPIPE : end == 2 ? 0 : -ECANCELED);
        CHECK_EQ(blitz_permits_left(&p), end == 2 ? 2u : 0u);
        CHECK_EQ(bell.holders, 1);
        blitz_permits_drop(&p);
        CHECK_EQ(blitz_chan_shut(c), end < 2 ? 1u : 0u);
        blitz_chan_unref(c);
    }
}

/* A cancelled future that had all of its slots passes them on. */
TEST(permits, bug_22_a_future_that_is_cancelled_with_its_slots_wakes_the_next)
{
    struct t_bell first = {.holders = 1}, second = {.holders = 1};
    blitz_waker a = t_bell_waker(&first), b = t_bell_waker(&second);
    blitz_chan *c = chan_of_ints(2);
    blitz_permits p;
    blitz_chan_future f, g;
    CHECK_EQ(blitz_chan_try_send(c, &(int){1}), 0);
    blitz_chan_reserve_many_future_init(&f, c, 2, &p);
    CHECK_EQ(f.future.ops->poll(&f.future, &a), BLITZ_PENDING);
    blitz_chan_send_future_init(&g, c, &(int){7});
    CHECK_EQ(g.future.ops->poll(&g.future, &b), BLITZ_PENDING);
    CHECK_EQ(receive_now(c), 1);
    CHECK_EQ(first.rung, 1);
    CHECK_EQ(second.rung, 0);
    f.future.ops->cancel(&f.future);
    CHECK_EQ(second.rung, 1);
    CHECK_EQ(g.future.ops->poll(&g.future, &b), BLITZ_READY);
    CHECK_EQ(receive_now(c), 7);
    blitz_chan_unref(c);
}
