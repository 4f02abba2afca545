/* The primitive of docs/writing-a-primitive.md, waited for by fibers, stackless tasks, futures and plain threads. */
#include "harness.h"

#include <errno.h>
#include <pthread.h>

#include "blitz.h"
#include "support/countdown.h"

enum { PARTIES = 40 }; /* more than fit into one list of wake-ups */

static struct countdown countdown;

static int waits(void *arg)
{
    (void)arg;
    return countdown_wait(&countdown, BLITZ_FOREVER);
}

static void *waits_on_a_thread(void *arg)
{
    (void)arg;
    CHECK_EQ(countdown_wait(&countdown, BLITZ_FOREVER), 0);
    return NULL;
}

static int waits_by_a_future(void *arg)
{
    struct countdown_future f;
    (void)arg;
    countdown_wait_future_init(&f, &countdown);
    return blitz_await(&f.future, BLITZ_FOREVER) != 0 ? 1 : f.result;
}

struct polled {
    struct countdown_future f;
};

static blitz_poll waits_without_a_stack(void *state, blitz_cx *cx)
{
    struct polled *p = state;
    if (p->f.future.ops == NULL)
        countdown_wait_future_init(&p->f, &countdown);
    return p->f.future.ops->poll(&p->f.future, cx->waker);
}

static int all_forms(void *arg)
{
    blitz_task *t[PARTIES];
    (void)arg;
    countdown_init(&countdown, 2);
    for (int i = 0; i < PARTIES; i++) {
        static const struct polled none;
        if (i % 3 == 2)
            CHECK_EQ(blitz_spawn_poll(waits_without_a_stack, &none, sizeof none, NULL, &t[i]), 0);
        else
            CHECK_EQ(blitz_spawn(i % 3 == 0 ? waits : waits_by_a_future, NULL, NULL, &t[i]), 0);
    }
    countdown_down(&countdown);
    blitz_yield();
    countdown_down(&countdown);
    for (int i = 0; i < PARTIES; i++) {
        int result;
        CHECK_EQ(blitz_task_join(t[i], &result, BLITZ_FOREVER), 0);
        CHECK_EQ(result, 0);
    }
    CHECK(bz_list_is_empty(&countdown.waiting));
    return 0;
}

TEST(countdown, the_last_count_wakes_waiters_of_every_form)
{
    for (unsigned procs = 1; procs <= 3; procs++) {
        blitz_runtime_opts opts = {.procs = procs};
        for (int round = 0; round < 100; round++)
            CHECK_EQ(blitz_run(all_forms, NULL, &opts), 0);
    }
}

static int counts_down(void *arg)
{
    (void)arg;
    countdown_down(&countdown);
    return 0;
}

TEST(countdown, a_plain_thread_waits_for_a_task)
{
    for (int round = 0; round < 100; round++) {
        pthread_t thread;
        countdown_init(&countdown, 1);
        CHECK_EQ(pthread_create(&thread, NULL, waits_on_a_thread, NULL), 0);
        CHECK_EQ(blitz_run(counts_down, NULL, NULL), 0);
        CHECK_EQ(pthread_join(thread, NULL), 0);
    }
}

/* A deadline, and a cancelled future: both leave the queue, and the others are not disturbed. */
static int leaves(void *arg)
{
    struct countdown_future f;
    blitz_waker none = {NULL, NULL};
    (void)arg;
    countdown_init(&countdown, 1);
    CHECK_EQ(countdown_wait(&countdown, blitz_after(1000)), -ETIMEDOUT);
    CHECK(bz_list_is_empty(&countdown.waiting));
    countdown_wait_future_init(&f, &countdown);
    CHECK_EQ(f.future.ops->poll(&f.future, &none), BLITZ_PENDING);
    f.future.ops->cancel(&f.future);
    CHECK_EQ(f.result, -ECANCELED);
    CHECK(bz_list_is_empty(&countdown.waiting));
    countdown_down(&countdown);
    return countdown_wait(&countdown, 0);
}

TEST(countdown, a_deadline_and_a_cancel_leave_the_queue)
{
    CHECK_EQ(blitz_run(leaves, NULL, NULL), 0);
}
