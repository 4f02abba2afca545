/* Sleeps and joins as values, awaited by fibers and by plain threads. */
#include "harness.h"
#include "support/alone.h"
#include "support/bell.h"
#include "support/on_each.h"

#include <pthread.h>

static int seven(void *arg)
{
    (void)arg;
    CHECK_EQ(blitz_sleep(200 * BLITZ_US), 0);
    return 7;
}

static int for_ever(void *arg)
{
    (void)arg;
    return blitz_sleep_until(BLITZ_FOREVER);
}

/* ---- sleeping ---- */

static int await_sleeps(void *arg)
{
    blitz_sleep_future f;
    (void)arg;
    blitz_deadline until = blitz_after(300 * BLITZ_US);
    blitz_sleep_until_future_init(&f, until);
    CHECK_EQ(blitz_await(&f.future, BLITZ_FOREVER), 0);
    CHECK_GE(blitz_now(), until);
    CHECK_EQ(blitz_await(&f.future, BLITZ_FOREVER), 0); /* ready stays ready */
    blitz_sleep_until_future_init(&f, 0);
    CHECK_EQ(blitz_await(&f.future, 0), 0); /* ready comes before the deadline */
    until = blitz_after(200 * BLITZ_US);
    blitz_sleep_until_future_init(&f, BLITZ_FOREVER);
    CHECK_EQ(blitz_await(&f.future, until), -ETIMEDOUT);
    CHECK_GE(blitz_now(), until);
    blitz_sleep_until_future_init(&f, blitz_after(BLITZ_S * 3600));
    CHECK_EQ(blitz_await(&f.future, blitz_after(200 * BLITZ_US)), -ETIMEDOUT);
    return 0;
}

TEST(futures, a_sleep_is_ready_at_its_moment)
{
    t_on_each(await_sleeps, NULL, 0);
    await_sleeps(NULL); /* a plain thread, too */
}

static int sleep_by_future(void *arg)
{
    blitz_sleep_future f;
    blitz_sleep_until_future_init(&f, *(blitz_deadline *)arg);
    return blitz_await(&f.future, BLITZ_FOREVER);
}

static int many_sleep(void *arg)
{
    enum { N = 200 };
    static blitz_task *t[N];
    static blitz_deadline until[N];
    (void)arg;
    for (int i = 0; i < N; i++) {
        until[i] = blitz_after((uint64_t)(i % 7) * 100 * BLITZ_US); /* dozens at one moment */
        CHECK_EQ(blitz_spawn(sleep_by_future, &until[i], NULL, &t[i]), 0);
    }
    for (int i = 0; i < N; i++) {
        int result = -1;
        CHECK_EQ(blitz_task_join(t[i], &result, BLITZ_FOREVER), 0);
        CHECK_EQ(result, 0);
    }
    return 0;
}

/* More of them due at once than are rung in one go. */
TEST(futures, hundreds_of_sleeps_all_end)
{
    t_on_each(many_sleep, NULL, 0);
}

static int cancel_sleeps(void *arg)
{
    blitz_deadline until = BLITZ_S * 3600 + blitz_now();
    (void)arg;
    for (int i = 0; i < 20; i++) {
        blitz_task *t;
        int result = -1;
        CHECK_EQ(blitz_spawn(sleep_by_future, &until, NULL, &t), 0);
        if (i % 2)
            blitz_yield();
        blitz_task_cancel(t);
        CHECK_EQ(blitz_task_join(t, &result, BLITZ_FOREVER), 0);
        CHECK_EQ(result, -ECANCELED);
    }
    return 0;
}

TEST(futures, a_cancelled_sleep_is_undone)
{
    t_on_each(cancel_sleeps, NULL, 0);
}

/* ---- joining ---- */

static int await_joins(void *arg)
{
    blitz_join_future f;
    blitz_task *t;
    (void)arg;
    CHECK_EQ(blitz_spawn(seven, NULL, NULL, &t), 0);
    blitz_task_join_future_init(&f, t);
    CHECK_EQ(blitz_await(&f.future, BLITZ_FOREVER), 0);
    CHECK_EQ(f.result, 0);
    CHECK_NULL(f.pointer);
    CHECK_EQ(f.value, 7);
    CHECK_EQ(blitz_await(&f.future, 0), 0); /* ready stays ready, and takes nothing twice */
    CHECK_EQ(f.value, 7);
    CHECK_EQ(blitz_spawn(for_ever, NULL, NULL, &t), 0);
    blitz_task_join_future_init(&f, t);
    CHECK_EQ(blitz_await(&f.future, blitz_after(200 * BLITZ_US)), -ETIMEDOUT);
    blitz_task_cancel(t); /* still ours */
    CHECK_EQ(blitz_await(&f.future, BLITZ_FOREVER), 0);
    CHECK_EQ(f.value, -ECANCELED);
    blitz_task_join_future_init(&f, NULL);
    CHECK_EQ(blitz_await(&f.future, 0), 0);
    CHECK_EQ(f.result, -EINVAL);
    return 0;
}

TEST(futures, a_join_is_ready_at_the_end_of_the_task)
{
    t_on_each(await_joins, NULL, 0);
}

/* A linked join forwards its deadline as a cancel, and still waits for the end. */
static int await_linked(void *arg)
{
    blitz_join_future f;
    blitz_task *t;
    (void)arg;
    CHECK_EQ(blitz_spawn(for_ever, NULL, NULL, &t), 0);
    blitz_task_join_linked_future_init(&f, t);
    CHECK_EQ(blitz_await(&f.future, blitz_after(200 * BLITZ_US)), -ETIMEDOUT);
    CHECK_EQ(f.result, 0);
    CHECK_EQ(f.value, -ECANCELED);
    return 0;
}

TEST(futures, a_linked_join_passes_a_cancel_on)
{
    t_on_each(await_linked, NULL, 0);
}

static int join_myself(void *arg)
{
    blitz_join_future f;
    (void)arg;
    blitz_task_join_future_init(&f, blitz_task_current());
    CHECK_EQ(blitz_await(&f.future, BLITZ_FOREVER), 0);
    return f.result;
}

TEST(futures, a_task_that_joins_itself_gets_an_error)
{
    t_on_each(join_myself, NULL, -EDEADLK);
}

static void *wait_on_a_thread(void *task)
{
    blitz_join_future f;
    blitz_task_join_future_init(&f, task);
    CHECK_EQ(blitz_await(&f.future, blitz_after(100 * BLITZ_US)), -ETIMEDOUT);
    blitz_task_cancel(task);
    CHECK_EQ(blitz_await(&f.future, BLITZ_FOREVER), 0);
    CHECK_EQ(f.value, -ECANCELED);
    return await_sleeps(NULL) == 0 ? task : NULL;
}

TEST(futures, a_plain_thread_awaits_them_too)
{
    blitz_runtime *rt;
    blitz_task *t;
    pthread_t thread;
    void *p;
    CHECK_EQ(blitz_runtime_new(&(blitz_runtime_opts){.procs = 2}, &rt), 0);
    CHECK_EQ(blitz_spawn(for_ever, NULL, &(blitz_spawn_opts){.runtime = rt}, &t), 0);
    CHECK_EQ(pthread_create(&thread, NULL, wait_on_a_thread, t), 0);
    CHECK_EQ(pthread_join(thread, &p), 0);
    CHECK(p == t);
    CHECK_EQ(blitz_runtime_shutdown(rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref(rt), 0);
}

/* ---- asked by hand: the newest waker counts ---- */

static int by_hand(void *arg)
{
    struct t_bell a = {0}, b = {0};
    blitz_waker wa = t_bell_waker(&a), wb = t_bell_waker(&b);
    blitz_sleep_future s;
    blitz_join_future j;
    blitz_task *t;
    (void)arg;
    blitz_sleep_until_future_init(&s, blitz_after(500 * BLITZ_MS)); /* not over before the polls */
    CHECK_EQ(blitz_spawn(seven, NULL, NULL, &t), 0);
    blitz_task_join_future_init(&j, t);
    CHECK_EQ(s.future.ops->poll(&s.future, &wa), BLITZ_PENDING);
    CHECK_EQ(j.future.ops->poll(&j.future, &wa), BLITZ_PENDING);
    CHECK_EQ(a.holders, 2);
    CHECK_EQ(s.future.ops->poll(&s.future, &wb), BLITZ_PENDING);
    CHECK_EQ(j.future.ops->poll(&j.future, &wb), BLITZ_PENDING);
    CHECK_EQ(a.holders, 0);
    CHECK_EQ(b.holders, 2);
    while (b.rung < 2)
        CHECK_EQ(blitz_sleep(100 * BLITZ_US), 0);
    CHECK_EQ(b.holders, 0);
    CHECK_EQ(a.rung, 0);
    CHECK_EQ(s.future.ops->poll(&s.future, &wa), BLITZ_READY);
    CHECK_EQ(j.future.ops->poll(&j.future, &wa), BLITZ_READY);
    CHECK_EQ(a.holders, 0);
    blitz_sleep_until_future_init(&s, blitz_after(BLITZ_S));
    CHECK_EQ(s.future.ops->poll(&s.future, &wa), BLITZ_PENDING);
    s.future.ops->cancel(&s.future);
    s.future.ops->cancel(&s.future); /* twice is once */
    CHECK_EQ(a.holders, 0);
    return 0;
}

/* On one proc, so that no ring comes during the check. */
TEST(futures, the_newest_waker_counts_and_none_is_kept)
{
    CHECK_EQ(t_run_alone(by_hand, NULL), 0);
}
