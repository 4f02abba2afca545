/*
 * The program of rayon#592, in virtual time: tasks that fork and join with a lock held. There a
 * worker that waited for a stolen part ran other work, such as a task that needed the same lock, on
 * top of the frame that held it: a deadlock with itself. Here a join whose part was stolen
 * suspends.
 */
#include "support/sched_sim.h"

#include "support/fiber_mutex.h"

enum { TASKS = 6, PARTS = 4 };

static struct t_mutex mutex;
static bz_atomic(int) inside, done; /* atomic for readers: one thread runs at a time */

static int part(void *arg)
{
    bz_sim_burn((uint64_t)(uintptr_t)arg * 10 * BLITZ_US); /* long enough to be stolen from */
    return 1;
}

/* A parallel loop with the lock held. */
static int parts_under_the_lock(void)
{
    blitz_job job[PARTS];
    int sum = 0;
    for (int i = 0; i < PARTS; i++)
        blitz_fork(&job[i], part, (void *)(uintptr_t)(i + 1));
    for (int i = PARTS - 1; i >= 0; i--)
        sum += blitz_join(&job[i]);
    return sum;
}

static int locks_and_forks(void *arg)
{
    (void)arg;
    t_mutex_take(&mutex);
    CHECK_EQ(bz_fetch_add_relaxed(&inside, 1), 0); /* no task on top of us */
    CHECK_EQ(parts_under_the_lock(), PARTS);
    CHECK_EQ(bz_fetch_sub_relaxed(&inside, 1), 1);
    t_mutex_drop(&mutex);
    bz_fetch_add_relaxed(&done, 1);
    return 0;
}

static int all_at_once(void *arg)
{
    blitz_task *t[TASKS];
    (void)arg;
    t_mutex_init(&mutex, bz_machine_self()->rt->os);
    bz_store_relaxed(&inside, 0);
    bz_store_relaxed(&done, 0);
    for (int i = 0; i < TASKS; i++)
        CHECK_EQ(blitz_spawn(locks_and_forks, NULL, NULL, &t[i]), 0);
    for (int i = 0; i < TASKS; i++)
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
    CHECK_EQ(bz_load_relaxed(&done), TASKS);
    return 0;
}

TEST(rayon, bug_27_a_join_with_a_lock_held_runs_no_task_that_wants_it)
{
    sim_on_seeds(all_at_once, NULL, 0, 400);
}

/* The lock is taken by the jobs themselves, forked by a task that holds none: the other half of the
 * report. */
static int jobs_that_lock(void *arg)
{
    blitz_job job[PARTS];
    (void)arg;
    t_mutex_init(&mutex, bz_machine_self()->rt->os);
    bz_store_relaxed(&inside, 0);
    bz_store_relaxed(&done, 0);
    for (int i = 0; i < PARTS; i++)
        blitz_fork(&job[i], locks_and_forks, NULL);
    for (int i = PARTS - 1; i >= 0; i--)
        CHECK_EQ(blitz_join(&job[i]), 0);
    CHECK_EQ(bz_load_relaxed(&done), PARTS);
    return 0;
}

TEST(rayon, bug_27_jobs_that_wait_for_each_other_all_end)
{
    sim_on_seeds(jobs_that_lock, NULL, 0, 400);
}

/* ---- the same with the lock that users have ---- */

static blitz_mutex public_mutex;

static int locks_and_invokes(void *arg)
{
    (void)arg;
    CHECK_EQ(blitz_mutex_lock(&public_mutex, BLITZ_FOREVER), 0);
    CHECK_EQ(bz_fetch_add_relaxed(&inside, 1), 0); /* no task on top of us */
    CHECK_EQ(parts_under_the_lock(), PARTS);
    blitz_call calls[] = {{part, (void *)1}, {part, (void *)2}, {part, (void *)3}};
    CHECK_EQ(blitz_invoke(calls, 3), 1); /* the result of the first one */
    CHECK_EQ(bz_fetch_sub_relaxed(&inside, 1), 1);
    blitz_mutex_unlock(&public_mutex);
    bz_fetch_add_relaxed(&done, 1);
    return 0;
}

static int users_at_once(void *arg)
{
    blitz_task *t[TASKS];
    blitz_job job[PARTS];
    (void)arg;
    blitz_mutex_init(&public_mutex);
    bz_store_relaxed(&inside, 0);
    bz_store_relaxed(&done, 0);
    for (int i = 0; i < TASKS; i++)
        CHECK_EQ(blitz_spawn(locks_and_invokes, NULL, NULL, &t[i]), 0);
    for (int i = 0; i < PARTS; i++)
        blitz_fork(&job[i], locks_and_invokes, NULL);
    for (int i = PARTS - 1; i >= 0; i--)
        CHECK_EQ(blitz_join(&job[i]), 0);
    for (int i = 0; i < TASKS; i++)
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
    CHECK_EQ(bz_load_relaxed(&done), TASKS + PARTS);
    return 0;
}

TEST(rayon, bug_27_a_blitz_mutex_held_over_joins_is_not_entered_beneath_them)
{
    sim_on_seeds(users_at_once, NULL, 0, 200);
}
