/*
 * Tasks that are ready and find no stack (sched/host.c), on real threads.
 */
#include "harness.h"

#include "runtime/runtime.h"
#include "support/shortage.h"

static struct shortage shortage;

static void play(int (*fn)(void *))
{
    static const unsigned procs[] = {1, 2, 3, 8};
    blitz_log_set(NULL, NULL, BLITZ_LOG_ERROR); /* the warnings that follow are wanted */
    for (unsigned round = 0; round < 5; round++)
        for (size_t i = 0; i < BZ_ARRAY_LEN(procs); i++) {
            t_watch("%u procs, round %u", procs[i], round);
            shortage_play(&shortage, &bz_os_system, procs[i], fn);
        }
}

TEST(host, bug_43_the_deadline_of_a_scope_holds_without_a_stack_for_its_task)
{
    play(scene_scope_deadline);
}

TEST(host, the_close_of_a_scope_runs_a_task_that_finds_no_stack)
{
    play(scene_scope_hosts);
}

TEST(host, a_join_without_a_deadline_runs_a_task_that_finds_no_stack)
{
    play(scene_join_hosts);
}

TEST(host, a_linked_join_runs_a_task_that_finds_no_stack)
{
    play(scene_linked_join_hosts);
}

TEST(host, a_cancelled_task_ends_without_a_stack_from_the_pool)
{
    play(scene_cancelled_ends);
}

TEST(host, a_cancelled_task_runs_the_task_that_it_joins)
{
    play(scene_cancelled_joins);
}

TEST(host, a_stackless_task_is_polled_without_a_stack_from_the_pool)
{
    play(scene_stackless_deadline);
}

TEST(host, tasks_of_a_pinned_future_end_at_its_deadline)
{
    play(scene_all_cancelled);
}

TEST(host, a_machine_without_work_gives_its_stack_to_another)
{
    play(scene_stacks_come_back);
}

TEST(host, machines_without_work_hold_no_stack)
{
    play(scene_sleepers_hold_none);
}

/* ---- a plain thread closes the scope ---- */

struct outside {
    struct shortage *s;
    blitz_scope *scope;
    struct shortage_member m;
    blitz_event is_ready;
    blitz_task *sleepers_end;
};

static int occupy_from_inside(void *arg)
{
    struct outside *o = arg;
    bz_fault_shut(&o->s->fault, true);
    shortage_occupy(o->s);
    CHECK_EQ(blitz_scope_spawn(o->scope, shortage_member_waits, &o->m, NULL), 0);
    shortage_occupy(o->s);
    blitz_event_set(&o->is_ready);
    CHECK_EQ(blitz_event_wait(&o->s->never, BLITZ_FOREVER), 0);
    return 0;
}

/* A plain thread has no stack to lend. */
TEST(host, the_deadline_of_a_scope_that_a_plain_thread_closes_holds)
{
    struct bz_fault_plan plan = {.kind = BZ_FAULT_RESERVE};
    blitz_runtime_opts config = {.procs = 1, .stack_bytes = (size_t)8 << 20};
    blitz_scope scope;
    struct outside o = {.s = &shortage, .scope = &scope, .m = {&shortage, false, 0}};
    struct bz_runtime *rt;
    blitz_task *t;
    blitz_log_set(NULL, NULL, BLITZ_LOG_ERROR);
    shortage.is_sure = true;
    bz_fault_init(&shortage.fault, &bz_os_system, NULL, &plan);
    blitz_event_init(&shortage.never);
    blitz_event_init(&o.is_ready);
    CHECK_EQ(bz_runtime_new(&shortage.fault.os, &config, &rt), 0);
    blitz_scope_opts opts = {.runtime = (blitz_runtime *)rt};
    CHECK_EQ(blitz_scope_open(&scope, &opts, blitz_after(50 * BLITZ_MS)), 0);
    CHECK_EQ(blitz_spawn(occupy_from_inside, &o,
                         &(blitz_spawn_opts){.runtime = (blitz_runtime *)rt}, &t),
             0);
    CHECK_EQ(blitz_event_wait(&o.is_ready, BLITZ_FOREVER), 0);

    CHECK_EQ(blitz_scope_close(&scope), -ETIMEDOUT);

    CHECK(o.m.has_run);
    CHECK_EQ(o.m.result, -ECANCELED);
    bz_fault_shut(&shortage.fault, false);
    blitz_event_set(&shortage.never);
    CHECK_EQ(blitz_task_join(t, NULL, BLITZ_FOREVER), 0);
    for (size_t i = 0; i < shortage.sleepers; i++)
        CHECK_EQ(blitz_task_join(shortage.sleeper[i], NULL, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_shutdown((blitz_runtime *)rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref((blitz_runtime *)rt), 0);
}

/* ---- the end ---- */

static int leave_them(void *arg)
{
    struct shortage *s = arg;
    blitz_task *x = shortage_spawn(s, shortage_wait, &s->never);
    blitz_task_detach(x);
    for (size_t i = 0; i < s->sleepers; i++)
        blitz_task_detach(s->sleeper[i]);
    return 0;
}

/* Shutdown cancels tasks that have not begun and find no stack; each is called and ends. */
TEST(host, shutdown_ends_tasks_that_find_no_stack)
{
    struct bz_fault_plan plan = {.kind = BZ_FAULT_RESERVE};
    blitz_runtime_opts config = {.procs = 1, .stack_bytes = (size_t)8 << 20};
    struct bz_runtime *rt;
    blitz_log_set(NULL, NULL, BLITZ_LOG_ERROR);
    shortage.is_sure = true;
    bz_fault_init(&shortage.fault, &bz_os_system, NULL, &plan);
    blitz_event_init(&shortage.never);
    CHECK_EQ(bz_runtime_new(&shortage.fault.os, &config, &rt), 0);
    CHECK_EQ(blitz_runtime_block_on((blitz_runtime *)rt, leave_them, &shortage), 0);
    CHECK_EQ(blitz_runtime_shutdown((blitz_runtime *)rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref((blitz_runtime *)rt), 0);
}
