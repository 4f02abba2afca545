/*
 * blitz_thread_lock in virtual time, on many seeds: the task continues on its thread after any
 * wait, and no other task runs there. A simulated thread is known by its machine, which it keeps.
 */
#include "runtime/runtime.h"
#include "support/sim_faults.h"

#define MS UINT64_C(1000000)

enum { MACHINES = 64 };
/* by machine: the task that has locked it; one simulation runs at a time */
static unsigned holds[MACHINES];

static unsigned here(void)
{
    return bz_machine_self()->index;
}

/* Any task, at any time: check that this thread is not locked by another task. */
static void may_run_here(void)
{
    unsigned id = (unsigned)blitz_task_id(NULL), by = holds[here()];
    CHECK(by == 0 || by == id);
}

static int child(void *arg)
{
    may_run_here();
    CHECK_EQ(blitz_sleep((uint64_t)(uintptr_t)arg), 0);
    may_run_here();
    return 1;
}

static void waits_in_every_way(unsigned i)
{
    blitz_task *t;
    int got = 0;
    blitz_job job;
    CHECK_EQ(blitz_sleep(i % 3 * MS), 0);
    may_run_here();
    blitz_yield();
    may_run_here();
    CHECK_EQ(blitz_spawn(child, (void *)(i % 2 * MS), NULL, &t), 0);
    CHECK_EQ(blitz_task_join(t, &got, BLITZ_FOREVER), 0);
    may_run_here();
    blitz_fork(&job, child, (void *)MS);
    blitz_yield();
    if (blitz_join(&job) != 1)
        FAIL("a job was lost");
    may_run_here();
}

static int locked(void *arg)
{
    unsigned i = (unsigned)(uintptr_t)arg;
    waits_in_every_way(i);
    CHECK_EQ(blitz_thread_unlock(), -EPERM);
    CHECK_EQ(blitz_thread_lock(), 0);
    unsigned mine = here();
    holds[mine] = (unsigned)blitz_task_id(NULL);
    for (unsigned k = 0; k < 3; k++) {
        waits_in_every_way(i + k);
        CHECK_EQ(here(), mine);
    }
    CHECK_EQ(blitz_thread_lock(), 0); /* they nest */
    CHECK_EQ(blitz_thread_unlock(), 0);
    CHECK_EQ(blitz_sleep(MS), 0);
    CHECK_EQ(here(), mine);
    holds[mine] = 0;
    if (i % 2 == 0) /* the others end with it locked */
        CHECK_EQ(blitz_thread_unlock(), 0);
    return 1;
}

static int beside(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < 20; i++) {
        may_run_here();
        CHECK_EQ(blitz_sleep(i % 2 * MS), 0);
        blitz_yield();
    }
    return 1;
}

static int a_few_of_each(void *arg)
{
    enum { N = 6 };
    blitz_task *t[N];
    int sum = 0, got = 0;
    (void)arg;
    for (unsigned i = 0; i < MACHINES; i++)
        holds[i] = 0;
    for (unsigned i = 0; i < N; i++)
        CHECK_EQ(blitz_spawn(i < 3 ? locked : beside, (void *)(uintptr_t)i, NULL, &t[i]), 0);
    for (unsigned i = 0; i < N; i++) {
        CHECK_EQ(blitz_task_join(t[i], &got, BLITZ_FOREVER), 0);
        sum += got;
    }
    CHECK_EQ(bz_load_relaxed(&bz_machine_self()->rt->locked), 0u); /* relaxed: all have ended */
    return sum;
}

TEST(locked, only_the_task_continues_on_its_thread)
{
    sim_on_seeds(a_few_of_each, NULL, 6, 300);
}

/* ---- in calls, beside a hog ---- */

static int blocks(void *arg)
{
    const struct bz_os *os = bz_machine_self()->rt->os;
    bz_os_word never = 0;
    uint64_t until = bz_os_now(os) + (uint64_t)(uintptr_t)arg;
    while (bz_os_wait(os, &never, 0, until) != -ETIMEDOUT)
        ;
    return 1;
}

static int locked_in_calls(void *arg)
{
    (void)arg;
    CHECK_EQ(blitz_thread_lock(), 0);
    unsigned mine = here();
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(blitz_block_in_place(blocks, (void *)(5 * MS)), 1);
        CHECK_EQ(here(), mine);
        bz_sim_burn(15 * MS); /* and loses its proc as a hog */
        blitz_yield();
        CHECK_EQ(here(), mine);
    }
    return 1;
}

static int calls_and_ticks(void *arg)
{
    blitz_task *t[3];
    int sum = 0, got = 0;
    (void)arg;
    for (int i = 0; i < 3; i++)
        CHECK_EQ(blitz_spawn(i < 2 ? locked_in_calls : beside, NULL, NULL, &t[i]), 0);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(blitz_task_join(t[i], &got, BLITZ_FOREVER), 0);
        sum += got;
    }
    return sum;
}

TEST(locked, a_locked_task_that_lost_its_proc_gets_one_and_not_another_thread)
{
    for (unsigned i = 0; i < MACHINES; i++)
        holds[i] = 0;
    sim_on_seeds(calls_and_ticks, NULL, 3, 200);
}

/* ---- the limit ---- */

static int locks_and_naps(void *arg)
{
    int err = blitz_thread_lock();
    CHECK(err == 0 || err == -EAGAIN);
    bz_fetch_add_relaxed((bz_atomic(int) *)arg, err == 0); /* relaxed: a count */
    CHECK_EQ(blitz_sleep(5 * MS), 0);
    return 0;
}

static int more_than_there_are_threads(void *arg)
{
    enum { N = 10 };
    blitz_task *t[N];
    bz_atomic(int) locked_count = 0;
    (void)arg;
    for (int i = 0; i < N; i++)
        CHECK_EQ(blitz_spawn(locks_and_naps, &locked_count, NULL, &t[i]), 0);
    for (int i = 0; i < N; i++)
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
    return bz_load_relaxed(&locked_count); /* relaxed: all have ended */
}

static void play_limit(const struct bz_os *os, void *arg)
{
    struct bz_runtime *rt;
    (void)arg;
    CHECK_EQ(bz_runtime_new(os, &(blitz_runtime_opts){.procs = 2, .threads_max = 5}, &rt), 0);
    int locked_count =
        blitz_runtime_block_on((blitz_runtime *)rt, more_than_there_are_threads, NULL);
    CHECK_GE(locked_count, 1); /* threads_max - procs at a time, if there were that many threads */
    CHECK_EQ(blitz_runtime_shutdown((blitz_runtime *)rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref((blitz_runtime *)rt), 0);
}

/* Every thread locked and asleep, and none left for the procs: that must not come to be. */
TEST(locked, there_always_are_threads_for_the_procs)
{
    for (uint64_t i = sim_seeds(200); i > 0; i--) {
        uint64_t seed = sim_next_seed();
        t_watch("seed 0x%llx", (unsigned long long)seed);
        CHECK_EQ(t_sim(seed, play_limit, NULL), 0);
    }
}

/* ---- refused system calls ---- */

static int tries_to_lock(void *arg)
{
    int err = blitz_thread_lock();
    CHECK(err == 0 || err == -EAGAIN || err == -ENOMEM);
    unsigned mine = here();
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(blitz_sleep((uint64_t)(uintptr_t)arg * MS), 0);
        blitz_yield();
        if (err == 0)
            CHECK_EQ(here(), mine);
    }
    return 1;
}

static int some_try(void *arg)
{
    blitz_task *t[4];
    int started = 0, sum = 0, got = 0;
    (void)arg;
    for (uintptr_t i = 0; i < 4; i++)
        started += blitz_spawn(tries_to_lock, (void *)i, NULL, &t[started]) == 0;
    for (int i = 0; i < started; i++) {
        CHECK_EQ(blitz_task_join(t[i], &got, BLITZ_FOREVER), 0);
        sum += got;
    }
    return sum == started ? 0 : 1;
}

/* Bug class 30: a lock is refused rather than that all wait for a thread that cannot be made. */
TEST(locked, bug_30_an_unavailable_thread_blocks_no_other_task)
{
    for (uint64_t i = t_scaled(10); i > 0; i--) {
        CHECK_GE(sim_each_fault(BZ_FAULT_THREAD, false, some_try), 3u);
        CHECK_GE(sim_each_fault(BZ_FAULT_THREAD, true, some_try), 3u);
    }
    for (uint64_t i = t_scaled(4); i > 0; i--)
        CHECK_GE(sim_each_fault(BZ_FAULT_MEMORY, false, some_try), 3u);
}
