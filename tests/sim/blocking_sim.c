/*
 * blitz/blocking.h in virtual time, on many seeds: calls that take their time, beside tasks that must
 * not notice; and with a system that refuses threads and memory.
 */
#include "runtime/runtime.h"
#include "support/leave.h"
#include "support/sim_faults.h"

#define MS UINT64_C(1000000)

static const struct bz_os *os_of_run; /* one simulation at a time runs */

/* A blocking call: its thread sleeps. */
static int blocks(void *arg)
{
    bz_os_word never = 0;
    uint64_t until = bz_os_now(os_of_run) + (uint64_t)(uintptr_t)arg;
    while (bz_os_wait(os_of_run, &never, 0, until) != -ETIMEDOUT)
        ;
    return 1;
}

static int calls(void *arg)
{
    return blitz_blocking(blocks, arg);
}

static int crowd_blocks(void *arg)
{
    enum { N = 100 };
    blitz_task *t[N];
    int sum = 0;
    (void)arg;
    os_of_run = bz_machine_self()->rt->os;
    uint64_t begun = blitz_now();
    for (int i = 0; i < N; i++)
        CHECK_EQ(blitz_spawn(calls, (void *)(50 * MS), NULL, &t[i]), 0);
    for (int i = 0; i < N; i++) {
        int got = 0;
        CHECK_EQ(blitz_task_join(t[i], &got, BLITZ_FOREVER), 0);
        sum += got;
    }
    uint64_t took = blitz_now() - begun;
    CHECK_GE(took, 50 * MS);
    CHECK_LE(took, 60 * MS);
    return sum;
}

/* As many threads as calls: together they take little longer than one. */
TEST(blocking, a_hundred_calls_of_50_ms_take_60_at_most)
{
    sim_on_seeds(crowd_blocks, NULL, 100, 20);
}

/* ---- refused system calls ---- */

static int tries_all(void *arg)
{
    enum { N = 6 };
    blitz_task *t[N];
    int started = 0, sum = 0;
    (void)arg;
    os_of_run = bz_machine_self()->rt->os;
    for (int i = 0; i < N; i++)
        started += blitz_spawn(calls, (void *)((uintptr_t)i * MS / 2), NULL, &t[started]) == 0;
    for (int i = 0; i < started; i++) {
        int got = 0;
        CHECK_EQ(blitz_task_join(t[i], &got, BLITZ_FOREVER), 0);
        sum += got;
    }
    int got = 0, err = leave_at(blocks, NULL, NULL, &got, BLITZ_FOREVER);
    CHECK(err == 0 || err == -ENOMEM);
    CHECK_EQ(sum, started);
    return 0;
}

/* Bug class 30: no thread for a call, once or permanently: the call is still made. */
TEST(blocking, bug_30_a_thread_that_cannot_be_had_loses_no_call)
{
    for (uint64_t i = t_scaled(10); i > 0; i--) {
        CHECK_GE(sim_each_fault(BZ_FAULT_THREAD, false, tries_all), 3u);
        CHECK_GE(sim_each_fault(BZ_FAULT_THREAD, true, tries_all), 3u);
    }
}

TEST(blocking, no_memory_for_a_thread_loses_no_call)
{
    for (uint64_t i = t_scaled(4); i > 0; i--) /* for good: tasks would wait for a stack for ever */
        CHECK_GE(sim_each_fault(BZ_FAULT_MEMORY, false, tries_all), 3u);
}

/* ---- leaving ---- */

struct left {
    unsigned called, dropped;
};

static int notes_call(void *arg)
{
    ((struct left *)arg)->called++;
    return blocks((void *)(20 * MS));
}

static void notes_drop(void *arg, void *ctx)
{
    (void)ctx;
    ((struct left *)arg)->dropped++;
}

static int leaves(void *arg)
{
    return leave_at(notes_call, arg, notes_drop, NULL, blitz_after(5 * MS));
}

/* Four calls of 20 ms, one thread: one starts, three leave the queue; all have left after 5 ms. */
static int four_leave(void *arg)
{
    enum { N = 4 };
    struct left *left = arg;
    blitz_task *t[N];
    int got = 0;
    os_of_run = bz_machine_self()->rt->os;
    uint64_t begun = blitz_now();
    for (int i = 0; i < N; i++)
        CHECK_EQ(blitz_spawn(leaves, &left[i], NULL, &t[i]), 0);
    for (int i = 0; i < N; i++) {
        CHECK_EQ(blitz_task_join(t[i], &got, BLITZ_FOREVER), 0);
        CHECK_EQ(got, -ETIMEDOUT);
    }
    CHECK_LE(blitz_now() - begun, 8 * MS);
    return 0;
}

static void play_leaving(const struct bz_os *os, void *arg)
{
    struct left left[4] = {{0, 0}};
    struct bz_runtime *rt;
    unsigned called = 0;
    (void)arg;
    CHECK_EQ(bz_runtime_new(os, &(blitz_runtime_opts){.procs = 2, .threads_max = 3}, &rt), 0);
    CHECK_EQ(blitz_runtime_block_on((blitz_runtime *)rt, four_leave, left), 0);
    CHECK_EQ(blitz_runtime_shutdown((blitz_runtime *)rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref((blitz_runtime *)rt), 0); /* waits for the one that runs */
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(left[i].dropped, 1u); /* exactly once, begun or not */
        called += left[i].called;
    }
    CHECK_EQ(called, 1u);
}

TEST(blocking, cancelled_waiting_calls_never_run_and_all_are_dropped_once)
{
    for (uint64_t i = sim_seeds(200); i > 0; i--)
        CHECK_EQ(t_sim(sim_next_seed(), play_leaving, NULL), 0);
}

/* ---- the end ---- */

static void play_shutdown(const struct bz_os *os, void *arg)
{
    struct left left[4] = {{0, 0}};
    struct bz_runtime *rt;
    (void)arg;
    CHECK_EQ(bz_runtime_new(os, &(blitz_runtime_opts){.procs = 2}, &rt), 0);
    CHECK_EQ(blitz_runtime_block_on((blitz_runtime *)rt, four_leave, left), 0);
    CHECK_EQ(blitz_runtime_shutdown((blitz_runtime *)rt, bz_os_now(os) + MS), -ETIMEDOUT);
    CHECK_EQ(blitz_runtime_shutdown((blitz_runtime *)rt, BLITZ_FOREVER), 0);
    for (int i = 0; i < 4; i++)
        CHECK_EQ(left[i].dropped, 1u); /* it has waited for them */
    CHECK_EQ(blitz_runtime_unref((blitz_runtime *)rt), 0);
}

/* A call of 20 ms that its caller has left after 5: shutdown returns by its deadline, and says so. */
TEST(blocking, a_shutdown_waits_for_calls_that_were_left_until_its_deadline)
{
    for (uint64_t i = sim_seeds(100); i > 0; i--)
        CHECK_EQ(t_sim(sim_next_seed(), play_shutdown, NULL), 0);
}
