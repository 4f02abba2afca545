/*
 * Calls made in place, in virtual time, on many seeds: other tasks meanwhile, and the return of the
 * task. The bounds are of virtual time, and generous: the monitor looks after 20 us at best.
 */
#include "support/sched_sim.h"

#define MS UINT64_C(1000000)

/* A blocking call: its thread sleeps. */
static void block(uint64_t ns)
{
    const struct bz_os *os = bz_machine_self()->rt->os;
    bz_os_word never = 0;
    uint64_t until = bz_os_now(os) + ns;
    while (bz_os_wait(os, &never, 0, until) != -ETIMEDOUT)
        ;
}

static int blocks(void *arg)
{
    block((uint64_t)(uintptr_t)arg);
    return 1;
}

static blitz_stats figures(void)
{
    blitz_stats s;
    CHECK_EQ(blitz_stats_read(NULL, &s), 0);
    return s;
}

/* ---- others go on ---- */

struct race {
    uint64_t begun, quick, slow; /* when */
    unsigned proc_before, proc_after;
};

static int quick(void *arg)
{
    ((struct race *)arg)->quick = blitz_now();
    return 0;
}

static int slow(void *arg)
{
    struct race *r = arg;
    blitz_task *t;
    r->begun = blitz_now();
    CHECK_EQ(blitz_spawn(quick, r, NULL, &t), 0);
    r->proc_before = bz_machine_self()->proc->index; /* the proc is not taken within these lines */
    CHECK_EQ(blitz_block_in_place(blocks, (void *)(100 * MS)), 1);
    r->slow = blitz_now();
    CHECK_EQ(blitz_task_join(t, NULL, BLITZ_FOREVER), 0);
    return 0;
}

static int quick_first(void *arg)
{
    struct race r = {0};
    (void)arg;
    CHECK_EQ(slow(&r), 0);
    CHECK_LT(r.quick, r.slow);
    CHECK_LT(r.quick - r.begun, 12 * MS);
    CHECK_GE(r.slow - r.begun, 100 * MS);
    return 0;
}

TEST(syscall, a_quick_task_finishes_before_one_that_blocks_100_ms)
{
    sim_on_seeds(quick_first, NULL, 0, 200);
    sim_on_procs(quick_first, NULL, 0, 100, 1, 1);
}

/* On one proc: it was moved, and it lies idle when the call is over. */
static int same_proc(void *arg)
{
    struct race r = {0};
    (void)arg;
    CHECK_EQ(slow(&r), 0);
    CHECK_EQ(figures().calls_moved, 1u);
    CHECK_EQ(figures().calls_regained, 1u);
    return 0;
}

TEST(syscall, the_proc_is_regained_when_it_is_free)
{
    sim_on_procs(same_proc, NULL, 0, 200, 1, 1);
}

/* Many tasks in calls, with ticks beside them: every task returns to its own proc. */
static int calls_and_notes(void *arg)
{
    unsigned before = bz_machine_self()->proc->index;
    CHECK_EQ(blitz_block_in_place(blocks, arg), 1);
    unsigned after = bz_machine_self()->proc->index;
    return before == after;
}

static int one_each(void *arg)
{
    blitz_task *t[8];
    unsigned n = bz_machine_self()->rt->proc_count;
    int same = 0;
    (void)arg;
    for (unsigned i = 0; i < n; i++)
        CHECK_EQ(blitz_spawn(calls_and_notes, (void *)(20 * MS + i * MS),
                             &(blitz_spawn_opts){.proc = BLITZ_ON_PROC(i)}, &t[i]),
                 0);
    CHECK_EQ(blitz_sleep(5 * MS), 0); /* a timer fires meanwhile, on any proc */
    for (unsigned i = 0; i < n; i++) {
        int got = 0;
        CHECK_EQ(blitz_task_join(t[i], &got, BLITZ_FOREVER), 0);
        same += got;
    }
    /* a task that was not moved is on its old proc */
    CHECK_GE(same + (int)figures().calls_moved, (int)n);
    return 0;
}

TEST(syscall, all_procs_in_calls_and_a_timer_fires)
{
    sim_on_procs(one_each, NULL, 0, 150, 1, 4);
}

/* ---- coming back to a full house ---- */

static int hogs(void *arg)
{
    bz_sim_burn(50 * MS);
    *(bool *)arg = true;
    return 0;
}

static int returns_to_a_hog(void *arg)
{
    bool is_over = false;
    blitz_task *t;
    (void)arg;
    CHECK_EQ(blitz_spawn(hogs, &is_over, NULL, &t), 0);
    CHECK_EQ(blitz_block_in_place(blocks, (void *)(30 * MS)), 1);
    blitz_stats s = figures();
    CHECK_EQ(s.calls_moved, 1u);
    CHECK_EQ(s.calls_regained, 0u);
    CHECK_NOT_NULL(bz_machine_self()->proc); /* and did not go on without one */
    CHECK_EQ(blitz_task_join(t, NULL, BLITZ_FOREVER), 0);
    CHECK(is_over);
    return 0;
}

/* The proc is busy with a hog: the task is queued, and the hog's proc is moved for it, or ends. */
TEST(syscall, a_task_that_returns_to_busy_procs_is_queued)
{
    sim_on_procs(returns_to_a_hog, NULL, 0, 200, 1, 1);
}

/* ---- nesting, waiting, jobs ---- */

static int nests(void *arg)
{
    (void)arg;
    for (int i = 0; i < 3; i++)
        blitz_syscall_enter();
    block(MS);
    blitz_syscall_leave();
    CHECK_EQ(blitz_sleep(MS), 0); /* it may wait in there, and go on elsewhere */
    blitz_yield();
    blitz_syscall_leave();
    block(MS);
    CHECK_EQ(bz_retake_where(&bz_machine_self()->taken), BZ_IN_SYSCALL);
    blitz_syscall_leave();
    CHECK_EQ(bz_retake_where(&bz_machine_self()->taken), BZ_IN_USER);
    return 1;
}

static int many_nest(void *arg)
{
    blitz_task *t[4];
    int sum = 0, got = 0;
    (void)arg;
    for (int i = 0; i < 4; i++)
        CHECK_EQ(blitz_spawn(nests, NULL, NULL, &t[i]), 0);
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(blitz_task_join(t[i], &got, BLITZ_FOREVER), 0);
        sum += got;
    }
    return sum;
}

TEST(syscall, calls_nest_and_a_task_may_wait_in_one)
{
    sim_on_seeds(many_nest, NULL, 4, 200);
}

static int adds(void *arg)
{
    bz_fetch_add_relaxed((bz_atomic(int) *)arg, 1); /* relaxed: a count */
    return 0;
}

static int forks_and_blocks(void *arg)
{
    enum { N = 4 };
    bz_atomic(int) done = 0;
    blitz_job job[N];
    (void)arg;
    for (int i = 0; i < N; i++)
        blitz_fork(&job[i], adds, &done);
    blitz_syscall_enter();
    block(50 * MS);
    int before = bz_load_relaxed(&done); /* relaxed: a count; all were long done */
    blitz_syscall_leave();
    for (int i = N; i-- > 0;)
        CHECK_EQ(blitz_join(&job[i]), 0);
    return before;
}

TEST(syscall, forked_jobs_do_not_wait_for_the_end_of_the_call)
{
    sim_on_seeds(forks_and_blocks, NULL, 4, 200);
}

/* ---- without a stack ---- */

struct polled {
    blitz_frame frame;
    blitz_sleep_future nap;
    int left;
};

static blitz_poll polls(void *state, blitz_cx *cx)
{
    struct polled *me = state;
    int rc;
    BLITZ_BEGIN(&me->frame, cx);
    while (me->left-- > 0) {
        blitz_syscall_enter();
        block(2 * MS);
        blitz_syscall_leave();
        BLITZ_SLEEP(rc, &me->nap, MS);
        if (rc != 0)
            BLITZ_RETURN(rc);
    }
    BLITZ_END(7);
}

static int poll_and_ticks(void *arg)
{
    struct polled state = {.left = 5};
    blitz_task *t;
    int got = 0;
    (void)arg;
    CHECK_EQ(blitz_spawn_poll(polls, &state, sizeof state, NULL, &t), 0);
    for (int i = 0; i < 10; i++)
        CHECK_EQ(blitz_sleep(MS / 2), 0);
    CHECK_EQ(blitz_task_join(t, &got, BLITZ_FOREVER), 0);
    return got;
}

TEST(syscall, a_poll_makes_calls_too)
{
    sim_on_seeds(poll_and_ticks, NULL, 7, 100);
}
