/* proc/selfcheck.h: in test builds the scheduler notices when it forgets work or doubles a task. */
#include "harness.h"

#include "blitz.h"
#include "proc/state.h"

#if defined(BZ_WATCH)

/* ---- one task, one worker ---- */

static struct bz_machine machine[2];
static struct bz_task task;
static const struct bz_task_ops ops = {.kind = "test"};

static void given_two_machines_and_a_task(void)
{
    for (unsigned i = 0; i < 2; i++)
        machine[i].index = i;
    task.ops = &ops;
    task.id = 7;
    bz_task_init_watch(&task);
}

TEST(watch, a_task_goes_from_worker_to_worker)
{
    given_two_machines_and_a_task();
    for (int i = 0; i < 4; i++) {
        bz_watch_begin(&machine[i % 2], &task);
        bz_watch_end(&machine[i % 2], &task);
    }
}

static void begin_on_both(void *arg)
{
    (void)arg;
    bz_watch_begin(&machine[0], &task);
    bz_watch_begin(&machine[1], &task);
}

static void end_on_the_other(void *arg)
{
    (void)arg;
    bz_watch_begin(&machine[0], &task);
    bz_watch_end(&machine[1], &task);
}

TEST(watch, bug_04_a_task_on_two_workers_is_named_with_both)
{
    given_two_machines_and_a_task();
    CHECK_ABORTS(begin_on_both, NULL, "task 7 (test) runs on machine 0 and on machine 1");
    CHECK_ABORTS(end_on_the_other, NULL, "task 7 (test) leaves machine 1, but runs on 0");
}

/* ---- no work beside a sleeper ---- */

static bz_atomic(unsigned) done;

static int count(void *arg)
{
    (void)arg;
    bz_fetch_add_relaxed(&done, 1);
    return 0;
}

static int until_both_have_started(void *arg)
{
    struct bz_runtime *rt = bz_machine_self()->rt;
    (void)arg;
    while (bz_load_acquire(&rt->procs[1].state) == bz_proc_word(BZ_PROC_FREE, 0))
        blitz_yield();
    return 0;
}

/* Not by the idle set: one that was to be roused, and was not, is no longer in it. */
static bool is_anyone_asleep(struct bz_runtime *rt)
{
    for (unsigned i = 0; i < rt->proc_count; i++)
        if (bz_proc_state_of(bz_load_acquire(&rt->procs[i].state)) == BZ_PROC_ASLEEP)
            return true;
    return false;
}

/* Spawns while the other worker sleeps, and keeps its own busy until that one has run them. */
static int spawn_and_burn(void *arg)
{
    struct bz_runtime *rt = bz_machine_self()->rt;
    unsigned n = *(unsigned *)arg;
    while (!is_anyone_asleep(rt))
        bz_os_relax(&bz_os_system, 100);
    bz_store_relaxed(&done, 0);
    for (unsigned i = 0; i < n; i++)
        CHECK_EQ(blitz_spawn(count, NULL, NULL, NULL), 0);
    while (bz_load_relaxed(&done) < n)
        bz_os_relax(&bz_os_system, 100);
    return 0;
}

/* The live check itself: with canary 86 no worker is roused, and the sleeper reports it. */
TEST(watch, bug_01_work_is_not_left_beside_a_sleeper)
{
    blitz_runtime *rt;
    unsigned n = 3;
    CHECK_EQ(blitz_runtime_new(&(blitz_runtime_opts){.procs = 2}, &rt), 0);
    blitz_spawn_opts opts = {.runtime = rt};
    for (int i = 0; i < 2; i++)
        CHECK_EQ(blitz_spawn(until_both_have_started, NULL, &opts, NULL), 0);
    CHECK_EQ(blitz_runtime_block_on(rt, until_both_have_started, NULL), 0);
    CHECK_EQ(blitz_runtime_block_on(rt, spawn_and_burn, &n), 0);
    CHECK_EQ(blitz_runtime_shutdown(rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref(rt), 0);
}

#else

TEST(watch, bug_04_a_task_on_two_workers_is_named_with_both)
{
    t_skip("the scheduler does not watch itself in this build: see debug and sanitizer builds");
}

#endif
