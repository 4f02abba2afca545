/* Oneshots: one value, once; every order of sends and drops. */
#include "harness.h"

#include <errno.h>

#include "blitz.h"
#include "support/bell.h"
#include "support/on_each.h"

static blitz_oneshot *oneshot(void)
{
    blitz_oneshot *o;
    CHECK_EQ(blitz_oneshot_new(sizeof(int), NULL, &o), 0);
    return o;
}

TEST(oneshot, a_sent_value_is_received)
{
    blitz_oneshot *o = oneshot();
    int out = 0;
    CHECK_EQ(blitz_oneshot_try_recv(o, &out), -EAGAIN);
    CHECK_EQ(blitz_oneshot_recv(o, &out, 0), -ETIMEDOUT);
    CHECK_EQ(blitz_oneshot_is_closed(o), 0);
    CHECK_EQ(blitz_oneshot_send(o, &(int){5}), 0);
    CHECK_EQ(blitz_oneshot_recv(o, &out, 0), 0);
    CHECK_EQ(out, 5);
    blitz_oneshot_receiver_drop(o);
}

TEST(oneshot, a_receive_leaves_the_end_with_the_receiver)
{
    blitz_oneshot *o = oneshot();
    int out = 0, more = 1;
    CHECK_EQ(blitz_oneshot_send(o, &(int){5}), 0);
    CHECK_EQ(blitz_oneshot_try_recv(o, &out), 0);
    CHECK_EQ(blitz_oneshot_try_recv(o, &more), -EPIPE);
    CHECK_EQ(blitz_oneshot_recv(o, &more, BLITZ_FOREVER), -EPIPE);
    CHECK_EQ(out, 5);
    CHECK_EQ(more, 1); /* the value comes once */
    blitz_oneshot_receiver_drop(o);
}

TEST(oneshot, bad_input_is_refused)
{
    blitz_oneshot *o;
    CHECK_EQ(blitz_oneshot_new(0, NULL, &o), -EINVAL);
    CHECK_EQ(blitz_oneshot_new(SIZE_MAX, NULL, &o), -EINVAL);
    CHECK_EQ(blitz_oneshot_new(4, NULL, NULL), -EINVAL);
}

TEST(oneshot, bug_24_either_end_may_go_first)
{
    int out = 3;
    blitz_oneshot *o = oneshot();
    blitz_oneshot_sender_drop(o);
    CHECK_EQ(blitz_oneshot_recv(o, &out, BLITZ_FOREVER), -EPIPE);
    blitz_oneshot_receiver_drop(o);
    o = oneshot();
    blitz_oneshot_sender_drop(o);
    CHECK_EQ(blitz_oneshot_try_recv(o, &out), -EPIPE);
    blitz_oneshot_receiver_drop(o);
    o = oneshot();
    blitz_oneshot_receiver_drop(o);
    CHECK_EQ(blitz_oneshot_is_closed(o), 1);
    CHECK_EQ(blitz_oneshot_send(o, &out), -EPIPE);
    o = oneshot();
    blitz_oneshot_receiver_drop(o);
    blitz_oneshot_sender_drop(o);
    o = oneshot();
    blitz_oneshot_sender_drop(o);
    blitz_oneshot_receiver_drop(o);
    CHECK_EQ(out, 3);
}

static int dropped;

static void drops(void *value, void *ctx)
{
    (void)ctx;
    dropped += *(int *)value;
}

TEST(oneshot, an_unreceived_value_is_dropped_once)
{
    blitz_oneshot *o;
    int out;
    dropped = 0;
    CHECK_EQ(blitz_oneshot_new(sizeof(int), &(blitz_oneshot_opts){.drop = drops}, &o), 0);
    CHECK_EQ(blitz_oneshot_send(o, &(int){7}), 0);
    blitz_oneshot_receiver_drop(o);
    CHECK_EQ(dropped, 7);
    CHECK_EQ(blitz_oneshot_new(sizeof(int), &(blitz_oneshot_opts){.drop = drops}, &o), 0);
    CHECK_EQ(blitz_oneshot_send(o, &(int){7}), 0);
    CHECK_EQ(blitz_oneshot_recv(o, &out, 0), 0);
    blitz_oneshot_receiver_drop(o);
    CHECK_EQ(dropped, 7); /* a received value is the receiver's */
    CHECK_EQ(blitz_oneshot_new(sizeof(int), &(blitz_oneshot_opts){.drop = drops}, &o), 0);
    blitz_oneshot_receiver_drop(o);
    CHECK_EQ(blitz_oneshot_send(o, &(int){7}), -EPIPE);
    CHECK_EQ(dropped, 7);
}

/* ---- waiting ---- */

struct ask {
    blitz_oneshot *o;
    int out;
};

static int receives(void *arg)
{
    struct ask *a = arg;
    return blitz_oneshot_recv(a->o, &a->out, BLITZ_FOREVER);
}

static int waits_and_is_served(void *arg)
{
    (void)arg;
    for (int i = 0; i < 200; i++) {
        struct ask a = {oneshot(), 0};
        blitz_task *t;
        int result = 1;
        CHECK_EQ(blitz_spawn(receives, &a, NULL, &t), 0);
        if (i % 2)
            blitz_yield();
        if (i % 5 == 4)
            blitz_oneshot_sender_drop(a.o);
        else
            CHECK_EQ(blitz_oneshot_send(a.o, &i), 0);
        CHECK_EQ(blitz_task_join(t, &result, BLITZ_FOREVER), 0);
        CHECK_EQ(result, i % 5 == 4 ? -EPIPE : 0);
        CHECK_EQ(a.out, i % 5 == 4 ? 0 : i);
        blitz_oneshot_receiver_drop(a.o);
    }
    return 0;
}

TEST(oneshot, a_send_or_a_drop_wakes_the_waiter)
{
    t_on_each(waits_and_is_served, NULL, 0);
}

static int gives_up(void *arg)
{
    struct ask a = {oneshot(), 0};
    blitz_task *t;
    int result = 1;
    (void)arg;
    CHECK_EQ(blitz_oneshot_recv(a.o, &a.out, blitz_after(BLITZ_MS)), -ETIMEDOUT);
    CHECK_EQ(blitz_spawn(receives, &a, NULL, &t), 0);
    blitz_yield();
    blitz_task_cancel(t);
    CHECK_EQ(blitz_task_join(t, &result, BLITZ_FOREVER), 0);
    CHECK_EQ(result, -ECANCELED);
    CHECK_EQ(blitz_oneshot_send(a.o, &(int){4}), 0); /* the end is still ours */
    CHECK_EQ(blitz_oneshot_recv(a.o, &a.out, BLITZ_FOREVER), 0);
    CHECK_EQ(a.out, 4);
    blitz_oneshot_receiver_drop(a.o);
    return 0;
}

TEST(oneshot, a_cancelled_receive_may_be_repeated)
{
    t_on_each(gives_up, NULL, 0);
    CHECK_EQ(blitz_run(gives_up, NULL, NULL), 0);
}

/* ---- as a future ---- */

TEST(oneshot, the_future_completes_or_is_cancelled)
{
    struct t_bell bell = {.holders = 1};
    blitz_waker w = t_bell_waker(&bell);
    for (int round = 0; round < 3; round++) {
        blitz_oneshot *o = oneshot();
        blitz_oneshot_future f;
        int out = 0;
        bell.rung = 0;
        blitz_oneshot_recv_future_init(&f, o, &out);
        CHECK_EQ(f.future.ops->poll(&f.future, &w), BLITZ_PENDING);
        CHECK_EQ(f.future.ops->poll(&f.future, &w), BLITZ_PENDING);
        CHECK_EQ(bell.holders, 2);
        if (round == 2) {
            f.future.ops->cancel(&f.future);
            f.future.ops->cancel(&f.future);
            CHECK_EQ(blitz_oneshot_send(o, &(int){1}), 0);
            CHECK_EQ(bell.rung, 0);
            CHECK_EQ(blitz_oneshot_try_recv(o, &out), 0);
            blitz_oneshot_receiver_drop(o);
            break;
        }
        if (round == 0)
            CHECK_EQ(blitz_oneshot_send(o, &(int){1}), 0);
        else
            blitz_oneshot_sender_drop(o);
        CHECK_EQ(bell.rung, 1);
        CHECK_EQ(f.future.ops->poll(&f.future, &w), BLITZ_READY);
        CHECK_EQ(f.future.ops->poll(&f.future, &w), BLITZ_READY);
        CHECK_EQ(f.result, round == 0 ? 0 : -EPIPE);
        CHECK_EQ(f.future.ops->output(&f.future), f.result);
        CHECK_EQ(out, round == 0);
        CHECK_EQ(bell.holders, 1);
        blitz_oneshot_receiver_drop(o);
    }
    CHECK_EQ(bell.holders, 1);
}

/* A waker that sends the value while the future keeps a copy of it: between the future's two looks. */
struct sender {
    struct t_bell bell;
    blitz_oneshot *o;
};

static void sender_clone(void *arg)
{
    struct sender *s = arg;
    t_bell_clone(&s->bell);
    CHECK_EQ(blitz_oneshot_send(s->o, &(int){7}), 0);
}

static void sender_wake(void *arg)
{
    t_bell_wake(&((struct sender *)arg)->bell);
}

static void sender_wake_by_ref(void *arg)
{
    t_bell_wake_by_ref(&((struct sender *)arg)->bell);
}

static void sender_drop(void *arg)
{
    t_bell_drop(&((struct sender *)arg)->bell);
}

TEST(oneshot, a_future_that_finds_the_value_as_it_begins_to_wait_drops_its_waker)
{
    static const blitz_waker_ops ops = {sender_clone, sender_wake, sender_wake_by_ref, sender_drop};
    struct sender s = {{.holders = 1}, oneshot()};
    blitz_waker w = {&ops, &s};
    blitz_oneshot_future f;
    int out = 0;
    blitz_oneshot_recv_future_init(&f, s.o, &out);
    CHECK_EQ(f.future.ops->poll(&f.future, &w), BLITZ_READY);
    CHECK_EQ(f.result, 0);
    CHECK_EQ(out, 7);
    CHECK_EQ(s.bell.holders, 1);
}

/* ---- blocks that are used again: life/small_block.h ---- */

enum { LARGEST = 200 };

static blitz_oneshot *oneshot_with(size_t size, char fill)
{
    char value[LARGEST];
    blitz_oneshot *o;
    memset(value, fill, size);
    CHECK_EQ(blitz_oneshot_new(size, NULL, &o), 0);
    CHECK_EQ(blitz_oneshot_send(o, value), 0);
    return o;
}

static void then_it_has(blitz_oneshot *o, size_t size, char fill)
{
    char value[LARGEST];
    CHECK_EQ(blitz_oneshot_recv(o, value, BLITZ_FOREVER), 0);
    blitz_oneshot_receiver_drop(o);
    for (size_t i = 0; i < size; i++)
        CHECK_EQ(value[i], fill);
}

static int of_every_size(void *arg)
{
    (void)arg;
    for (size_t size = 1; size <= LARGEST; size++) {
        blitz_oneshot *a = oneshot_with(size, 'a'), *b = oneshot_with(LARGEST + 1 - size, 'b');
        then_it_has(a, size, 'a');
        blitz_oneshot *c = oneshot_with(size, 'c'); /* in what a has left, perhaps */
        then_it_has(b, LARGEST + 1 - size, 'b');
        then_it_has(c, size, 'c');
    }
    return 0;
}

/* One that takes the block of another has it for itself, and it is as large as it must be. */
TEST(oneshot, those_alive_at_once_do_not_share_memory)
{
    CHECK_EQ(blitz_run(of_every_size, NULL, &(blitz_runtime_opts){.procs = 1}), 0);
    of_every_size(NULL); /* and on a plain thread */
}
