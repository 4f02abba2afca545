/* Fork and join as users see them, with one worker, two, and more than there are CPUs. */
#include "support/on_each.h"

#include <pthread.h>

#include "base/bz_atomic.h"
#include "base/compiler.h"
#include "blitz.h"

/* ---- results ---- */

static int fib(void *arg)
{
    intptr_t n = (intptr_t)arg;
    blitz_job job;
    if (n < 2)
        return (int)n;
    blitz_fork(&job, fib, (void *)(n - 2));
    int left = fib((void *)(n - 1));
    return left + blitz_join(&job);
}

TEST(par, a_tree_of_forks_adds_up)
{
    t_on_each(fib, (void *)(intptr_t)24, 46368);
}

static int double_it(void *arg)
{
    *(int *)arg *= 2;
    return *(int *)arg;
}

static int fork_one(void *arg)
{
    int value = 21;
    blitz_job job;
    (void)arg;
    blitz_fork(&job, double_it, &value);
    CHECK_EQ(blitz_join(&job), 42);
    CHECK_EQ(value, 42);
    return 0;
}

TEST(par, a_lone_fork_runs_once_and_its_result_comes_back)
{
    t_on_each(fork_one, NULL, 0);
}

/* No worker steals from a plain thread: the join calls the job. */
TEST(par, on_a_plain_thread_the_join_calls)
{
    CHECK_EQ(fib((void *)(intptr_t)12), 144);
    CHECK_EQ(fork_one(NULL), 0);
}

/* ---- many at once, and in the wrong order ---- */

enum { MANY = 1000 };

static int fork_many(void *arg)
{
    static blitz_job job[MANY];
    static int value[MANY];
    bool is_forward = arg != NULL;
    for (int i = 0; i < MANY; i++) {
        value[i] = i;
        blitz_fork(&job[i], double_it, &value[i]);
    }
    for (int i = 0; i < MANY; i++) {
        int k = is_forward ? i : MANY - 1 - i;
        CHECK_EQ(blitz_join(&job[k]), 2 * k);
    }
    return 0;
}

/* More than a deque has places to begin with. */
TEST(par, a_thousand_pending_jobs_each_run_once)
{
    t_on_each(fork_many, NULL, 0);
}

TEST(par, joins_in_another_order_find_their_jobs)
{
    t_on_each(fork_many, (void *)1, 0);
}

/* ---- jobs that wait ---- */

static int yields_and_gives(void *arg)
{
    for (int i = 0; i < 5; i++)
        blitz_yield();
    return (int)(intptr_t)arg;
}

static int sleeps_and_gives(void *arg)
{
    CHECK_EQ(blitz_sleep(BLITZ_US), 0);
    return (int)(intptr_t)arg;
}

static int spawns_and_gives(void *arg)
{
    blitz_task *t;
    int result = -1;
    CHECK_EQ(blitz_spawn(yields_and_gives, arg, NULL, &t), 0);
    CHECK_EQ(blitz_task_join(t, &result, BLITZ_FOREVER), 0);
    return result;
}

static int forks_and_gives(void *arg)
{
    blitz_job a, b;
    intptr_t n = (intptr_t)arg;
    blitz_fork(&a, yields_and_gives, (void *)(n - 1));
    blitz_fork(&b, sleeps_and_gives, (void *)(intptr_t)1);
    blitz_yield(); /* both are pending: they leave with the frame */
    int one = blitz_join(&b);
    return blitz_join(&a) + one;
}

static int (*const waits[])(void *) = {yields_and_gives, sleeps_and_gives, spawns_and_gives,
                                       forks_and_gives};

/* A frame with pending jobs waits itself, between all forks and joins. */
static int all_wait(void *arg)
{
    enum { N = 40 };
    blitz_job job[N];
    (void)arg;
    for (int i = 0; i < N; i++) {
        blitz_fork(&job[i], waits[i % 4], (void *)(intptr_t)(i + 1));
        if (i % 7 == 3)
            blitz_yield();
        if (i % 11 == 5)
            CHECK_EQ(blitz_sleep(BLITZ_US), 0);
    }
    for (int i = N - 1; i >= 0; i--)
        CHECK_EQ(blitz_join(&job[i]), i + 1);
    return 0;
}

TEST(par, jobs_and_their_forkers_may_wait)
{
    t_on_each(all_wait, NULL, 0);
}

static int tree_that_waits(void *arg)
{
    intptr_t depth = (intptr_t)arg;
    blitz_job job;
    blitz_task *t;
    if (depth == 0)
        return 1;
    blitz_fork(&job, tree_that_waits, (void *)(depth - 1));
    CHECK_EQ(blitz_spawn(tree_that_waits, (void *)(depth - 1), NULL, &t), 0);
    int sum = 0, mine = 0;
    if (depth % 3 == 0)
        blitz_yield();
    CHECK_EQ(blitz_task_join(t, &mine, BLITZ_FOREVER), 0);
    sum += mine;
    return sum + blitz_join(&job);
}

/* A spawned child may be called on its joiner's stack, and fork on the same deque. */
TEST(par, spawns_and_forks_mix)
{
    t_on_each(tree_that_waits, (void *)(intptr_t)10, 1024);
}

/* ---- names and cancels ---- */

static int my_id_is(void *arg)
{
    blitz_yield();
    return blitz_task_id(NULL) == *(uint64_t *)arg;
}

static int compare_ids(void *arg)
{
    uint64_t id = blitz_task_id(NULL);
    blitz_job job;
    (void)arg;
    blitz_fork(&job, my_id_is, &id);
    blitz_yield(); /* it leaves with the frame, and runs under a header of its own */
    return blitz_join(&job);
}

TEST(par, a_job_has_the_id_of_the_task_that_forked_it)
{
    t_on_each(compare_ids, NULL, 1);
}

static int yields_once(void *arg)
{
    blitz_yield(); /* the joiner's jobs leave with the joiner's frame, below this one */
    return (int)(intptr_t)arg;
}

static int ids_below_a_child(void *arg)
{
    enum { N = 3 };
    uint64_t id = blitz_task_id(NULL);
    blitz_job job[N], later;
    blitz_task *t;
    (void)arg;
    for (int i = 0; i < N; i++)
        blitz_fork(&job[i], my_id_is, &id);
    CHECK_EQ(blitz_spawn(yields_once, NULL, NULL, &t), 0);
    CHECK_EQ(blitz_task_join(t, NULL, BLITZ_FOREVER), 0);
    blitz_fork(&later, my_id_is, &id);
    blitz_yield();
    CHECK_EQ(blitz_join(&later), 1);
    for (int i = N - 1; i >= 0; i--)
        CHECK_EQ(blitz_join(&job[i]), 1);
    return 0;
}

/* A child that its joiner runs on its own stack is not whose the older jobs are. */
TEST(par, jobs_below_a_claimed_child_are_the_joiners)
{
    t_on_each(ids_below_a_child, NULL, 0);
}

static int waits_for_ever(void *arg)
{
    (void)arg;
    return blitz_sleep_until(BLITZ_FOREVER);
}

static int forks_waiters(void *arg)
{
    blitz_job a, b;
    blitz_fork(&a, waits_for_ever, NULL);
    blitz_fork(&b, waits_for_ever, NULL);
    CHECK_EQ(blitz_sleep_until(BLITZ_FOREVER), -ECANCELED);
    CHECK_EQ(blitz_join(&b), -ECANCELED);
    CHECK_EQ(blitz_join(&a), -ECANCELED);
    (void)arg;
    return 5;
}

static int cancel_the_forker(void *arg)
{
    blitz_task *t;
    int result = 0;
    (void)arg;
    CHECK_EQ(blitz_spawn(forks_waiters, NULL, NULL, &t), 0);
    for (int i = 0; i < 20; i++)
        blitz_yield();
    blitz_task_cancel(t);
    CHECK_EQ(blitz_task_join(t, &result, BLITZ_FOREVER), 0);
    return result;
}

TEST(par, a_cancel_reaches_the_jobs_others_run)
{
    t_on_each(cancel_the_forker, NULL, 5);
}

static int leave_a_forker(void *arg)
{
    (void)arg;
    CHECK_EQ(blitz_spawn(forks_waiters, NULL, NULL, NULL), 0);
    for (int i = 0; i < 20; i++)
        blitz_yield();
    return 3;
}

TEST(par, shutdown_ends_jobs_that_wait)
{
    t_on_each(leave_a_forker, NULL, 3);
}
