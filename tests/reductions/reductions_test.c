/* libblitz-reductions: code that was built for it yields after so many steps, where it may. */
#include "harness.h"

#include <errno.h>
#include <pthread.h>

#include "blitz.h"
#include "blitz/reductions.h"
#include "counted.h"
#include "support/on_each.h"

static atomic_int is_over;

static int spins(void *arg)
{
    (void)arg;
    counted_until(&is_over);
    return 0;
}

static uint64_t yields(void)
{
    blitz_stats s;
    CHECK_EQ(blitz_stats_read(NULL, &s), 0);
    return s.yielded;
}

/* If the loop did not yield, this task would not run, or would have no task to yield to. */
static int is_beside_a_loop(void *arg)
{
    blitz_task *t;
    (void)arg;
    atomic_store(&is_over, 0);
    CHECK_EQ(blitz_spawn(spins, NULL, NULL, &t), 0);
    uint64_t before = yields();
    while (yields() < before + 1000)
        blitz_yield();
    atomic_store(&is_over, 1);
    return blitz_task_join(t, NULL, BLITZ_FOREVER);
}

/* The loop has no call in it. With one worker all other tasks wait for it. */
TEST(reductions, a_loop_without_end_yields_to_others_on_the_only_worker)
{
    CHECK_EQ(blitz_run(is_beside_a_loop, NULL, &(blitz_runtime_opts){.procs = 1}), 0);
}

static bool is_asked(void)
{
    return blitz_worker_()->asked_ != 0;
}

static int steps_paused(void *arg)
{
    (void)arg;
    blitz_reductions_pause();
    counted_times(20000);
    CHECK(is_asked()); /* it is time, and nothing was done */
    blitz_reductions_resume();
    do
        counted_times(20000);
    while (is_asked()); /* the monitor may ask, too */
    return 0;
}

TEST(reductions, between_pause_and_resume_nothing_is_done)
{
    CHECK_EQ(blitz_run(steps_paused, NULL, &(blitz_runtime_opts){.procs = 1}), 0);
}

static int keeps_errno(void *arg)
{
    blitz_task *t;
    (void)arg;
    atomic_store(&is_over, 0);
    CHECK_EQ(blitz_spawn(spins, NULL, NULL, &t), 0);
    errno = 4711;
    counted_times(100000); /* on one worker the thread stays, but others run in between */
    int seen = errno;
    atomic_store(&is_over, 1);
    CHECK_EQ(seen, 4711);
    return blitz_task_join(t, NULL, BLITZ_FOREVER);
}

TEST(reductions, errno_is_carried_over)
{
    CHECK_EQ(blitz_run(keeps_errno, NULL, &(blitz_runtime_opts){.procs = 1}), 0);
}

static int fibs(void *arg)
{
    blitz_task *t[4];
    (void)arg;
    for (int i = 0; i < 4; i++)
        CHECK_EQ(blitz_spawn(counted_fib, (void *)(intptr_t)18, NULL, &t[i]), 0);
    for (int i = 0; i < 4; i++) {
        int result;
        CHECK_EQ(blitz_task_join(t[i], &result, BLITZ_FOREVER), 0);
        CHECK_EQ(result, 2584);
    }
    return 0;
}

/* The inline code of fork and join must not be interrupted in its middle: it knows its worker. */
TEST(reductions, forks_and_joins_are_whole)
{
    CHECK_EQ(blitz_reductions_set(7), 0);
    for (uint64_t round = 0; round < t_scaled(20); round++)
        t_on_each(fibs, NULL, 0);
}

static void *steps(void *arg)
{
    counted_times(100000);
    return arg;
}

TEST(reductions, on_a_plain_thread_steps_are_steps)
{
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, steps, NULL), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
}

TEST(reductions, at_least_one_step_is_taken)
{
    CHECK_EQ(blitz_reductions_set(0), -EINVAL);
    CHECK_EQ(blitz_reductions_set(-1), -EINVAL);
    CHECK_EQ(blitz_reductions_set(1), 0);
}
