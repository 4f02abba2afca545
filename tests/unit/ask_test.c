/* proc/ask.c, blitz/yield.h: a task that was asked lets others run, and only then. */
#include "harness.h"

#include <pthread.h>

#include "proc/state.h"

#include "support/alone.h"
#include "support/on_each.h"

static int ran; /* by others, on the one proc there is */

static int other(void *arg)
{
    (void)arg;
    ran++;
    return 0;
}

static blitz_task *another(void)
{
    blitz_task *t;
    CHECK_EQ(blitz_spawn(other, NULL, NULL, &t), 0);
    return t;
}

static void on_one_proc(int (*fn)(void *))
{
    ran = 0;
    CHECK_EQ(t_run_alone(fn, NULL), 0);
}

static int polls_unasked(void *arg)
{
    (void)arg;
    blitz_task *t = another();
    for (int i = 0; i < 1000; i++)
        BLITZ_POLL();
    CHECK_EQ(ran, 0);
    return blitz_task_join(t, NULL, BLITZ_FOREVER);
}

/* It is there to be written into the hottest of loops. */
TEST(ask, a_task_that_was_not_asked_goes_on)
{
    on_one_proc(polls_unasked);
}

static int polls_asked(void *arg)
{
    (void)arg;
    blitz_task *t = another();
    bz_machine_ask(bz_machine_self());
    BLITZ_POLL();
    CHECK_EQ(ran, 1);
    CHECK_EQ(bz_machine_self()->deque.ends.asked_, 0);
    return blitz_task_join(t, NULL, BLITZ_FOREVER);
}

TEST(ask, a_task_that_was_asked_lets_others_run)
{
    on_one_proc(polls_asked);
}

static int polls_alone(void *arg)
{
    (void)arg;
    bz_machine_ask(bz_machine_self());
    BLITZ_POLL();
    CHECK_EQ(bz_machine_self()->deque.ends.asked_, 0);
    return 0;
}

TEST(ask, without_other_ready_tasks_it_continues_and_clears_the_flag)
{
    on_one_proc(polls_alone);
}

static int polls_paused(void *arg)
{
    (void)arg;
    blitz_task *t = another();
    blitz_preempt_pause();
    blitz_preempt_pause();
    bz_machine_ask(bz_machine_self());
    BLITZ_POLL();
    blitz_preempt_resume();
    BLITZ_POLL();
    CHECK_EQ(ran, 0); /* they nest */
    blitz_preempt_resume();
    BLITZ_POLL();
    CHECK_EQ(ran, 1);
    return blitz_task_join(t, NULL, BLITZ_FOREVER);
}

/* For code that holds a lock unknown to blitz. */
TEST(ask, between_pause_and_resume_no_other_task_runs)
{
    on_one_proc(polls_paused);
}

static int nothing(void *arg)
{
    (void)arg;
    return 7;
}

static int joins_asked(void *arg)
{
    (void)arg;
    blitz_task *t = another();
    blitz_job job;
    blitz_fork(&job, nothing, NULL);
    bz_machine_ask(bz_machine_self());
    CHECK_EQ(ran, 0); /* a fork does not suspend, and asking does nothing by itself */
    CHECK_EQ(blitz_join(&job), 7);
    CHECK_EQ(ran, 1);
    return blitz_task_join(t, NULL, BLITZ_FOREVER);
}

/* A tree of forks may run for seconds without waiting once. */
TEST(ask, a_join_looks_at_the_flag)
{
    on_one_proc(joins_asked);
}

static blitz_poll ready(blitz_future *f, const blitz_waker *w)
{
    (void)f;
    (void)w;
    return BLITZ_READY;
}

static int awaits_asked(void *arg)
{
    static const blitz_future_ops ops = {.poll = ready};
    blitz_future f = {&ops};
    (void)arg;
    blitz_task *t = another();
    bz_machine_ask(bz_machine_self());
    CHECK_EQ(blitz_await(&f, BLITZ_FOREVER), 0);
    CHECK_EQ(ran, 1);
    return blitz_task_join(t, NULL, BLITZ_FOREVER);
}

/* A future that is always ready would starve other tasks. */
TEST(ask, an_await_of_a_ready_future_checks_the_flag)
{
    on_one_proc(awaits_asked);
}

static int sleeps_asked(void *arg)
{
    (void)arg;
    blitz_task *t = another();
    bz_machine_ask(bz_machine_self());
    CHECK_EQ(blitz_sleep_until(0), 0);
    CHECK_EQ(ran, 1);
    return blitz_task_join(t, NULL, BLITZ_FOREVER);
}

TEST(ask, a_sleep_until_a_time_that_is_past_looks_at_the_flag)
{
    on_one_proc(sleeps_asked);
}

static void *polls_on_a_thread(void *arg)
{
    BLITZ_POLL();
    blitz_preempt_pause();
    blitz_preempt_resume();
    return arg;
}

TEST(ask, on_a_plain_thread_it_does_nothing)
{
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, polls_on_a_thread, NULL), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    polls_on_a_thread(NULL);
}

static int fib(void *arg)
{
    intptr_t n = (intptr_t)arg;
    blitz_job job;
    BLITZ_POLL();
    if (n < 2)
        return (int)n;
    if (n == 9)
        bz_machine_ask(bz_machine_self());
    blitz_fork(&job, fib, (void *)(n - 2));
    int left = fib((void *)(n - 1));
    return left + blitz_join(&job);
}

static int fib_beside_others(void *arg)
{
    (void)arg;
    blitz_task *t[8];
    for (int i = 0; i < 8; i++)
        CHECK_EQ(blitz_spawn(fib, (void *)(intptr_t)16, NULL, &t[i]), 0);
    for (int i = 0; i < 8; i++) {
        int result;
        CHECK_EQ(blitz_task_join(t[i], &result, BLITZ_FOREVER), 0);
        CHECK_EQ(result, 987);
    }
    return 0;
}

/* Asked in the middle of a tree, with jobs pending: they go to the queues and still run. */
TEST(ask, trees_that_are_asked_all_the_time_come_to_the_same)
{
    t_on_each(fib_beside_others, NULL, 0);
}
