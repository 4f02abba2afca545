/* Parallel calls from threads that are no workers. */
#include "support/on_each.h"

#include <pthread.h>
#include <sched.h>

#include "base/bz_atomic.h"
#include "proc/state.h"
#include "runtime/runtime.h"
#include "support/faults.h"
#include "support/outside.h"

static blitz_runtime *begin(unsigned procs)
{
    blitz_runtime *rt;
    t_watch("%u procs", procs);
    CHECK_EQ(blitz_runtime_new(&(blitz_runtime_opts){.procs = procs}, &rt), 0);
    return rt;
}

static void end(blitz_runtime *rt)
{
    CHECK_EQ(blitz_runtime_shutdown(rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref(rt), 0);
}

/* ---- where it runs ---- */

static int has_a_task(void *arg)
{
    *(uint64_t *)arg = blitz_task_id(NULL);
    return blitz_worker_() != NULL;
}

TEST(outside, a_call_is_a_task_of_the_processs_runtime)
{
    uint64_t id = 0;
    CHECK_EQ(blitz_par_run(NULL, has_a_task, &id), 1);
    CHECK(id != 0);
    CHECK_EQ(blitz_par_call_(has_a_task, &id), 1);
    CHECK(blitz_worker_() == NULL); /* we are as we were */
    CHECK(blitz_par_runtime() == blitz_par_runtime());
    CHECK_EQ(blitz_par_end(), 0);
}

static int ends_it(void *arg)
{
    (void)arg;
    return blitz_par_end();
}

/* It can be destroyed when no call is in progress, and is made again on demand. */
TEST(outside, the_processs_runtime_ends_when_told_to)
{
    CHECK_EQ(blitz_par_end(), 0); /* there was none */
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(blitz_par_run(NULL, t_visit_forks, (void *)5), 5);
        CHECK_EQ(blitz_par_run(NULL, ends_it, NULL), -EBUSY);
        CHECK_EQ(blitz_par_end(), 0);
    }
}

static int calls_again(void *arg)
{
    uint64_t outer = blitz_task_id(NULL), inner = 0;
    (void)arg;
    CHECK_EQ(blitz_par_run(NULL, has_a_task, &inner), 1);
    return outer == inner;
}

TEST(outside, in_a_task_it_is_a_call)
{
    CHECK_EQ(blitz_par_run(NULL, calls_again, NULL), 1);
    CHECK_EQ(blitz_par_end(), 0);
    t_on_each(calls_again, NULL, 1);
}

static int is_in(void *rt)
{
    return blitz_par_runtime() == rt;
}

static int crosses_over(void *rt)
{
    CHECK_EQ(blitz_par_run(rt, is_in, rt), 1);
    return is_in(rt);
}

/* Also from a task of another one, which waits meanwhile. */
TEST(outside, a_runtime_that_was_named_is_the_one)
{
    blitz_runtime *rt = begin(2);
    CHECK_EQ(blitz_par_run(rt, is_in, rt), 1);
    CHECK_EQ(blitz_run(crosses_over, rt, &(blitz_runtime_opts){.procs = 1}), 0);
    blitz_par_use(rt);
    CHECK(blitz_par_runtime() == rt);
    CHECK_EQ(blitz_par_call_(is_in, rt), 1);
    blitz_par_use(NULL);
    CHECK_EQ(blitz_par_call_(is_in, rt), 0);
    CHECK_EQ(blitz_par_end(), 0);
    end(rt);
}

TEST(outside, without_a_function_there_is_nothing_to_run)
{
    CHECK_EQ(blitz_par_run(NULL, NULL, NULL), -EINVAL);
}

/* It still runs: on this thread. */
TEST(outside, a_runtime_that_was_shut_down_is_done_without)
{
    uint64_t id = 1;
    blitz_runtime *rt = begin(2);
    CHECK_EQ(blitz_runtime_shutdown(rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_par_run(rt, has_a_task, &id), 0);
    CHECK_EQ(id, 0u);
    CHECK_EQ(blitz_par_run(rt, t_visit_forks, (void *)3), 3);
    CHECK_EQ(blitz_runtime_unref(rt), 0);
}

/* ---- allowed actions ---- */

TEST(outside, a_call_may_do_everything_that_tasks_do)
{
    static const unsigned procs[] = {1, 2, 3, 8};
    for (size_t i = 0; i < BZ_ARRAY_LEN(procs); i++) {
        blitz_runtime *rt = begin(procs[i]);
        for (int v = 0; v < 4 * T_VISITS; v++)
            CHECK_EQ(blitz_par_run(rt, t_visits[v % T_VISITS], (void *)(intptr_t)v), v);
        end(rt);
    }
}

static unsigned stacks_of(const struct bz_machine *m)
{
    unsigned count = m->spare != NULL;
    for (int class = 0; class < BZ_STACK_CLASSES; class ++)
        count += m->stacks.warm[class].count;
    return count;
}

/* It keeps a stack for its next call, unless a task needs that stack more. */
TEST(outside, a_guest_at_home_gives_its_stacks_up_when_stacks_are_short)
{
#if defined(BZ_PLAIN)
    t_skip("the plain form has no guests");
#endif
    blitz_runtime *rt = begin(1);
    struct bz_runtime *inside = (struct bz_runtime *)rt;
    CHECK_EQ(blitz_par_run(rt, t_visit_forks, (void *)5), 5);
    CHECK_NOT_NULL(inside->guests.idle);
    CHECK_GE(stacks_of(inside->guests.idle), 1u);
    bz_shortage_begins(inside);
    CHECK_EQ(stacks_of(inside->guests.idle), 0u);
    CHECK_EQ(blitz_par_run(rt, t_visit_forks, (void *)5), 5);
    end(rt);
}

static int announces_a_call(void *arg)
{
    struct bz_machine *m = bz_machine_self();
    CHECK(bz_machine_is_guest(m));
    blitz_syscall_enter();
    blitz_syscall_enter(); /* they nest */
    blitz_syscall_leave();
    blitz_syscall_leave();
    CHECK_EQ(bz_retake_where(&m->taken), BZ_IN_USER);
    return t_visit_forks(arg);
}

/* A plain thread has no proc that could be moved meanwhile; the call is over when it has been left. */
TEST(outside, a_call_that_is_announced_ends_when_it_is_left)
{
#if defined(BZ_PLAIN)
    t_skip("the plain form has no guests");
#endif
    blitz_runtime *rt = begin(2);
    CHECK_EQ(blitz_par_run(rt, announces_a_call, (void *)3), 3);
    end(rt);
}

typedef bz_atomic(int) flag;

static int says_so(void *arg)
{
    bz_store_release((flag *)arg, 1); /* pairs with the load in waits_for_help */
    return 5;
}

/* The thread itself is busy, so a worker reports this. */
static int waits_for_help(void *arg)
{
    flag has_begun = 0;
    blitz_job job;
    (void)arg;
    blitz_fork(&job, says_so, &has_begun);
    while (!bz_load_acquire(&has_begun)) {
        blitz_share();
        sched_yield(); /* the thread's: this frame does not leave its stack */
    }
    return blitz_join(&job);
}

TEST(outside, workers_that_slept_help)
{
    static const unsigned procs[] = {1, 2, 8};
    for (size_t i = 0; i < BZ_ARRAY_LEN(procs); i++) {
        blitz_runtime *rt = begin(procs[i]);
        if (!bz_is_plain((struct bz_runtime *)rt) || procs[i] > 1) /* else it takes the only proc */
            for (int n = 0; n < 20; n++)
                CHECK_EQ(blitz_par_run(rt, waits_for_help, NULL), 5);
        end(rt);
    }
}

/* ---- many at once ---- */

enum { THREADS = 6 };

static void *visits_often(void *rt)
{
    uint64_t n = t_scaled(2000);
    for (uint64_t i = 0; i < n; i++) {
        int v = (int)(t_random() % (4 * T_VISITS));
        CHECK_EQ(blitz_par_run(rt, t_visits[v % T_VISITS], (void *)(intptr_t)v), v);
    }
    return NULL;
}

static void visit_together(blitz_runtime *rt)
{
    pthread_t thread[THREADS];
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_create(&thread[i], NULL, visits_often, rt), 0);
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_join(thread[i], NULL), 0);
}

TEST(outside, threads_come_and_go_at_the_same_time)
{
    blitz_runtime *rt = begin(2);
    visit_together(rt);
    end(rt);
}

/* All of them find no runtime, and one is left in the end. */
TEST(outside, the_first_calls_of_all_threads_make_one_runtime)
{
    visit_together(NULL);
    blitz_stats s;
    CHECK_EQ(blitz_stats_read(blitz_par_runtime(), &s), 0);
    CHECK_GT(s.spawned, 0u);
    CHECK_EQ(blitz_par_end(), 0);
}

/* ---- the end ---- */

struct sleeper {
    blitz_runtime *rt;
    flag is_in;
};

static int sleeps_for_ever(void *arg)
{
    struct sleeper *s = arg;
    blitz_job job;
    blitz_fork(&job, t_visit_returns, (void *)0);
    bz_store_release(&s->is_in, 1); /* pairs with the load below */
    int err = blitz_sleep_until(BLITZ_FOREVER);
    return err + blitz_join(&job);
}

static void *calls_and_waits(void *arg)
{
    struct sleeper *s = arg;
    return (void *)(intptr_t)blitz_par_run(s->rt, sleeps_for_ever, s);
}

/* A shutdown cancels what guests have left behind, and the runtime may go as soon as it is over. */
TEST(outside, a_shutdown_ends_the_wait_of_a_thread)
{
    for (uint64_t n = t_scaled(50); n > 0; n--) {
        pthread_t thread;
        void *result;
        struct sleeper s = {begin(2), 0};
        CHECK_EQ(pthread_create(&thread, NULL, calls_and_waits, &s), 0);
        while (!bz_load_acquire(&s.is_in))
            sched_yield();
        end(s.rt);
        CHECK_EQ(pthread_join(thread, &result), 0);
        CHECK_EQ((int)(intptr_t)result, -ECANCELED);
    }
}

/* ---- a guest that was locked to its thread ---- */

static bz_atomic(int) is_over;

/* A fiber of the runtime: no guest may run it. */
static int stays_with_workers(void *arg)
{
    (void)arg;
    while (!bz_load_acquire(&is_over)) {
        blitz_yield();
        CHECK(!bz_machine_is_guest(bz_machine_self()));
    }
    return 0;
}

/* The lock gave the guest's machine a proc, which has fibers in its ring. The end of the lock leaves it the proc, until it
 * yields or waits. */
static int locks_and_goes_on(void *arg)
{
    (void)arg;
    CHECK_EQ(blitz_thread_lock(), 0);
    CHECK_EQ(blitz_sleep(BLITZ_MS), 0);
    CHECK_EQ(blitz_thread_unlock(), 0);
    const struct bz_machine *at = bz_machine_self();
    if (bz_machine_is_guest(bz_machine_self()))
        CHECK(!bz_deque_is_usual(&at->deque));
    for (int i = 0; i < 1000 && bz_machine_self() == at; i++)
        blitz_yield();
    return 7;
}

TEST(outside, a_guest_that_was_locked_runs_no_task_but_its_own)
{
    for (unsigned procs = 1; procs <= 3; procs++) {
        blitz_runtime *rt = begin(procs);
        blitz_task *fiber[2];
        for (uint64_t n = t_scaled(60); n > 0; n--) {
            bz_store_release(&is_over, 0);
            for (int i = 0; i < 2; i++)
                CHECK_EQ(blitz_spawn(stays_with_workers, NULL, &(blitz_spawn_opts){.runtime = rt},
                                     &fiber[i]),
                         0);
            CHECK_EQ(blitz_par_run(rt, locks_and_goes_on, NULL), 7);
            bz_store_release(&is_over, 1);
            for (int i = 0; i < 2; i++)
                CHECK_EQ(blitz_task_join(fiber[i], NULL, BLITZ_FOREVER), 0);
        }
        end(rt);
    }
}

/* The call is made even if resources are missing. */
static int call_in_need(const struct bz_os *os, const blitz_allocator *memory, void *arg)
{
    struct bz_runtime *rt;
    (void)arg;
    int err = bz_runtime_new(os, &(blitz_runtime_opts){.procs = 2, .allocator = memory}, &rt);
    if (err != 0)
        return err;
    for (int i = 0; i < 3; i++)
        CHECK_EQ(blitz_par_run((blitz_runtime *)rt, t_visit_forks, (void *)7), 7);
    end((blitz_runtime *)rt);
    return 1; /* with or without help */
}

static int call_or_fail(const struct bz_os *os, const blitz_allocator *memory, void *arg)
{
    int err = call_in_need(os, memory, arg);
    return err == 1 ? 0 : err;
}

/* How many calls fail while a runtime is made: those come back as errors. */
static int only_make(const struct bz_os *os, const blitz_allocator *memory, void *arg)
{
    struct bz_runtime *rt;
    (void)arg;
    int err = bz_runtime_new(os, &(blitz_runtime_opts){.procs = 2, .allocator = memory}, &rt);
    if (err == 0)
        end((blitz_runtime *)rt);
    return err;
}

TEST(outside, the_call_is_made_despite_any_failure)
{
    for (uint64_t nth = 1;; nth++) {
        struct bz_fault fault;
        struct bz_fault_plan plan = {.kind = BZ_FAULT_ANY, .nth = nth};
        bz_fault_init(&fault, &bz_os_system, NULL, &plan);
        int err = call_or_fail(&fault.os, &fault.allocator, NULL);
        struct bz_fault_books left = bz_fault_books(&fault);
        CHECK_EQ(left.threads, 0);
        CHECK_EQ(left.slabs, 0);
        CHECK_EQ(left.blocks, 0);
        if (bz_fault_failed(&fault) == BZ_FAULT_NONE) {
            CHECK_EQ(err, 0);
            CHECK_GT(nth, 10u);
            break;
        }
        bz_fault_init(&fault, &bz_os_system, NULL, &plan);
        if (err != 0)
            CHECK_EQ(only_make(&fault.os, &fault.allocator, NULL), err);
    }
}
