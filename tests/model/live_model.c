/*
 * live_model.c - task/live.c: a runtime that stops against tasks that spawn and end.
 *
 *   covers: src/task/live.h src/task/live.c
 *
 * Tasks are slots with a plain field that the task writes before it ends; the shutdown reads every
 * field after all tasks have ended. A shutdown that returned too early would find a task that has
 * not ended, or race with it; one without a wake-up would sleep forever. Each test is run with
 * barriers and with fences.
 */
#include "task/live.h"

#include "model.h"
#include "model_os.h"

enum { TASKS = 3 };

static struct bz_live live;
static struct bz_live_count count[2];
static bz_atomic(uint32_t) got_in[TASKS]; /* 1: counted in; found by the closer */
static bz_shared(int) is_over[TASKS];     /* the task's own memory */
static bz_atomic(uint32_t) was_let_in;    /* 1: the spawn of task 1 succeeded, 2: not */
static bz_atomic(uint32_t) handed;        /* likewise, where the other proc is to run it */

/* Tasks of proc 0 and proc 1 that live when the threads begin. */
static void given(bool is_plain, int on_0, int on_1)
{
    bz_live_init(&live, &m_os, is_plain, count, sizeof count[0], 2);
    bz_atomic_init(&count[0].spawned, (uint64_t)on_0);
    bz_atomic_init(&count[1].spawned, (uint64_t)on_1);
    for (int i = 0; i < TASKS; i++) {
        bz_atomic_init(&got_in[i], i < on_0 + on_1);
        bz_set(&is_over[i], 0);
    }
    m_settings()->spurious = 0;
}

static void end_task(int i, struct bz_live_count *mine)
{
    bz_set(&is_over[i], 1);
    bz_live_end(&live, mine);
}

static void proc_0_ends_its_task(void)
{
    end_task(0, &count[0]);
}

static void proc_1_ends_its_task(void)
{
    end_task(1, &count[1]);
}

static bool spawn_task_1(struct bz_live_count *mine, bz_atomic(uint32_t) *says_so)
{
    bz_store_relaxed(&got_in[1], 1); /* the header can be found before it is counted */
    bool is_in = bz_live_spawn(&live, mine);
    if (!is_in)
        bz_store_relaxed(&got_in[1], 0);
    bz_store_release(says_so, is_in ? 1 : 2);
    return is_in;
}

/* Task 0 spawns task 1 and ends; then task 1 runs. */
static void proc_0_spawns_and_ends(void)
{
    bool is_in = spawn_task_1(&count[0], &was_let_in);
    end_task(0, &count[0]);
    if (is_in)
        end_task(1, &count[0]);
}

/* Task 0 spawns task 1, which ends on the other proc. */
static void proc_0_spawns_for_the_other(void)
{
    spawn_task_1(&count[0], &handed);
    end_task(0, &count[0]);
}

static void proc_1_runs_what_it_is_handed(void)
{
    uint32_t got;
    while ((got = bz_load_acquire(&handed)) == 0)
        m_relax();
    if (got == 1)
        end_task(1, &count[1]);
}

static void outsider_spawns(void)
{
    if (spawn_task_1(NULL, &was_let_in))
        end_task(1, &count[1]); /* as if proc 1 had run it at once */
}

static int found;

/* Stop: close, find all that got in, wait for the last. */
static void stops(void)
{
    bz_live_close(&live);
    found = 0;
    for (int i = 0; i < TASKS; i++)
        found += (int)bz_load_relaxed(&got_in[i]);
    bz_live_await_last(&live);
    while (!bz_live_is_drained(&live))
        bz_os_wait(&m_os, &live.drained, 0, BZ_OS_FOREVER);
    m_assert(bz_get(&is_over[0]) == 1);
    if (bz_load_relaxed(&was_let_in) == 1)
        m_assert(bz_get(&is_over[1]) == 1);
}

/* When all is over: who got in has ended, and was found, and could have been cancelled. */
static void nobody_was_overlooked(void)
{
    m_assert(bz_live_spawned(&live) == bz_live_ended(&live));
    if (bz_load_relaxed(&got_in[1])) {
        m_assert(bz_get(&is_over[1]) == 1);
        m_assert(found >= 2);
    }
}

/* live.c [E]: the last end is noticed, by it or by who waits. */
MODEL(live, bug_37_the_last_end_is_noticed)
{
    given(false, 1, 0);
    m_threads(proc_0_ends_its_task, stops);
    nobody_was_overlooked();
}

MODEL(live, bug_37_the_last_end_is_noticed_with_fences)
{
    given(true, 1, 0);
    m_threads(proc_0_ends_its_task, stops);
    nobody_was_overlooked();
}

/* live.c [F]: two that end at once, each the other's last but one. */
MODEL(live, of_two_that_end_last_one_says_so)
{
    given(false, 1, 1);
    m_threads(proc_0_ends_its_task, proc_1_ends_its_task, stops);
    nobody_was_overlooked();
}

MODEL(live, of_two_that_end_last_one_says_so_with_fences)
{
    given(true, 1, 1);
    m_threads(proc_0_ends_its_task, proc_1_ends_its_task, stops);
    nobody_was_overlooked();
}

/* live.c [S]: a spawn gets in and is found, or is turned away. */
MODEL(live, bug_37_a_spawn_is_found_or_turned_away)
{
    given(false, 1, 0);
    m_threads(proc_0_spawns_and_ends, stops);
    nobody_was_overlooked();
    m_sometimes(bz_load_relaxed(&got_in[1]) == 1);
    m_sometimes(bz_load_relaxed(&got_in[1]) == 0);
}

MODEL(live, bug_37_a_spawn_is_found_or_turned_away_with_fences)
{
    given(true, 1, 0);
    m_threads(proc_0_spawns_and_ends, stops);
    nobody_was_overlooked();
    m_sometimes(bz_load_relaxed(&got_in[1]) == 1);
    m_sometimes(bz_load_relaxed(&got_in[1]) == 0);
}

/* The end is counted on another proc than the spawn: it must not be seen without it [C]. */
MODEL(live, a_task_that_ends_elsewhere_is_not_counted_out_before_in)
{
    given(false, 1, 0);
    m_threads(proc_0_spawns_for_the_other, proc_1_runs_what_it_is_handed, stops);
    nobody_was_overlooked();
}

MODEL(live, a_task_that_ends_elsewhere_is_not_counted_out_before_in_with_fences)
{
    given(true, 1, 0);
    m_threads(proc_0_spawns_for_the_other, proc_1_runs_what_it_is_handed, stops);
    nobody_was_overlooked();
}

MODEL(live, threads_without_a_proc_are_counted_too)
{
    given(false, 1, 0);
    m_threads(proc_0_ends_its_task, outsider_spawns, stops);
    nobody_was_overlooked();
}

static void outsider_spawns_and_ends(void)
{
    m_assert(bz_live_spawn(&live, NULL));
    bz_live_end(&live, NULL);
}

/* They share a count. */
MODEL(live, two_threads_without_a_proc_are_both_counted)
{
    given(false, 0, 0);
    m_threads(outsider_spawns_and_ends, outsider_spawns_and_ends);
    m_assert(bz_live_spawned(&live) == 2);
    m_assert(bz_live_ended(&live) == 2);
}
