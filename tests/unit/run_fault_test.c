/*
 * The scheduler when the system says no: every call of a run fails in turn, on real threads and in
 * simulation. After any failure the run either works with less or returns an error, ends, and
 * leaves nothing.
 */
#include "harness.h"

#include <sys/resource.h>
#include <unistd.h>

#include "blitz.h"
#include "sim/fault.h"
#include "sim/sim.h"
#include "proc/state.h"
#include "runtime/runtime.h"
#include "support/deny.h"

enum { NOBODY = 65534 };

static int naps(void *arg)
{
    blitz_yield();
    return blitz_sleep((uint64_t)(intptr_t)arg * BLITZ_US);
}

/* Spawns as many as it can; a failed spawn returns an error and the rest continues. */
static int crowd(void *arg)
{
    enum { N = 6 };
    blitz_task *t[N];
    blitz_job job;
    int started = 0, refused = 0;
    (void)arg;
    blitz_fork(&job, naps, (void *)5); /* cannot fail, on any thread */
    for (int i = 0; i < N; i++) {
        int err = blitz_spawn(naps, (void *)(intptr_t)(10 * i), NULL, &t[started]);
        CHECK(err == 0 || err == -ENOMEM);
        started += err == 0;
        refused += err != 0;
    }
    for (int i = 0; i < started; i++)
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_join(&job), 0);
    return refused;
}

struct faulty {
    struct bz_fault_plan plan;
    enum bz_fault_kind failed;
    int err;
};

static void run_faulty(const struct bz_os *os, void *arg)
{
    struct faulty *f = arg;
    struct bz_fault fault;
    struct bz_runtime *rt;
    bz_fault_init(&fault, os, NULL, &f->plan);
    f->err = bz_runtime_new(&fault.os,
                            &(blitz_runtime_opts){.procs = 3, .allocator = &fault.allocator}, &rt);
    if (f->err == 0) {
        f->err = blitz_runtime_block_on((blitz_runtime *)rt, crowd, NULL);
        /* Again, from outside and with sleeping workers. */
        int again = blitz_runtime_block_on((blitz_runtime *)rt, crowd, NULL);
        f->err = f->err != 0 ? f->err : again;
        CHECK_EQ(blitz_runtime_shutdown((blitz_runtime *)rt, BLITZ_FOREVER), 0);
        CHECK_EQ(blitz_runtime_unref((blitz_runtime *)rt), 0);
    }
    f->failed = bz_fault_failed(&fault);
    struct bz_fault_books left = bz_fault_books(&fault);
    CHECK_EQ(left.threads, 0);
    CHECK_EQ(left.slabs, 0);
    CHECK_EQ(left.blocks, 0);
}

/* With n = 1, 2, 3 ... until the plan is not reached: then it must have gone well. */
static uint64_t each_fault(enum bz_fault_kind kind, void (*run)(struct faulty *f))
{
    for (uint64_t n = 1;; n++) {
        struct faulty f = {.plan = {.kind = kind, .nth = n}};
        t_watch("the %llu-th call of kind %d fails", (unsigned long long)n, (int)kind);
        run(&f);
        if (f.failed == BZ_FAULT_NONE) {
            CHECK_EQ(f.err, 0);
            return n;
        }
        CHECK(f.err == 0 || f.err == 1 || f.err == -ENOMEM || f.err == -EAGAIN);
        if (kind == BZ_FAULT_THREAD && n > 1)
            CHECK_EQ(f.err, 0); /* continuing with fewer */
    }
}

static void on_threads(struct faulty *f)
{
    run_faulty(&bz_os_system, f);
}

static void on_a_seed(struct faulty *f)
{
    uint64_t seed = t_random();
    t_watch("simulation seed 0x%llx, call %llu of kind %d fails", (unsigned long long)seed,
            (unsigned long long)f->plan.nth, (int)f->plan.kind);
    CHECK_EQ(bz_sim_run(&(struct bz_sim_config){.seed = seed}, run_faulty, f, NULL), 0);
}

/* Bug class 30: a thread that cannot be made costs speed, never a task. */
TEST(run_fault, bug_30_every_thread_that_fails_to_start)
{
    for (int i = 0; i < 20; i++)
        CHECK_GE(each_fault(BZ_FAULT_THREAD, on_threads), 2u);
    for (int i = 0; i < 20; i++)
        each_fault(BZ_FAULT_THREAD, on_a_seed);
}

TEST(run_fault, every_allocation_that_fails)
{
    CHECK_GE(each_fault(BZ_FAULT_MEMORY, on_threads), 8u);
    for (int i = 0; i < 5; i++)
        each_fault(BZ_FAULT_MEMORY, on_a_seed);
}

TEST(run_fault, every_mapping_and_guard_that_fails)
{
    CHECK_GE(each_fault(BZ_FAULT_RESERVE, on_threads), 2u);
    CHECK_GE(each_fault(BZ_FAULT_GUARD, on_threads), 2u);
    for (int i = 0; i < 20; i++) {
        each_fault(BZ_FAULT_RESERVE, on_a_seed);
        each_fault(BZ_FAULT_GUARD, on_a_seed);
    }
}

TEST(run_fault, every_wait_that_returns_for_no_reason_and_no_entropy)
{
    each_fault(BZ_FAULT_ENTROPY, on_threads);
    for (int i = 0; i < 5; i++)
        each_fault(BZ_FAULT_WAIT, on_a_seed);
}

/* From the n-th call on the system has nothing more to give. In every case all spawned tasks
 * end. */
static uint64_t each_shortage(enum bz_fault_kind kind, void (*run)(struct faulty *f))
{
    for (uint64_t n = 1;; n++) {
        struct faulty f = {.plan = {.kind = kind, .nth = n, .for_good = true}};
        t_watch("from the %llu-th call of kind %d on all fail", (unsigned long long)n, (int)kind);
        run(&f);
        CHECK(f.err >= 0 || f.err == -ENOMEM || f.err == -EAGAIN);
        if (f.failed == BZ_FAULT_NONE)
            return n;
    }
}

TEST(run_fault, bug_43_memory_that_is_gone_for_good)
{
    CHECK_GE(each_shortage(BZ_FAULT_MEMORY, on_threads), 8u);
    for (int i = 0; i < 5; i++)
        each_shortage(BZ_FAULT_MEMORY, on_a_seed);
}

TEST(run_fault, bug_43_stacks_that_are_gone_for_good)
{
    CHECK_GE(each_shortage(BZ_FAULT_RESERVE, on_threads), 2u);
    for (int i = 0; i < 20; i++)
        each_shortage(BZ_FAULT_RESERVE, on_a_seed);
}

TEST(run_fault, bug_43_threads_that_are_gone_for_good)
{
    CHECK_GE(each_shortage(BZ_FAULT_THREAD, on_threads), 2u);
    for (int i = 0; i < 20; i++)
        each_shortage(BZ_FAULT_THREAD, on_a_seed);
}

/* The system's own limit, as a user without privileges meets it: one thread is all there is. */
TEST(run_fault, bug_30_a_limit_on_processes_costs_speed_only)
{
    struct bz_runtime *rt;
    CHECK_EQ(bz_runtime_new(&bz_os_system, &(blitz_runtime_opts){.procs = 4}, &rt), 0);
    if (getuid() == 0 && setresuid(NOBODY, NOBODY, NOBODY) != 0)
        t_skip("cannot become somebody whom limits bind: %s", strerror(errno));
    t_has_denied = true; /* the leak check starts a thread */
    CHECK_EQ(setrlimit(RLIMIT_NPROC, &(struct rlimit){0, 0}), 0);
    CHECK_EQ(blitz_runtime_block_on((blitz_runtime *)rt, crowd, NULL), 0);
    blitz_stats s;
    CHECK_EQ(blitz_stats_read((blitz_runtime *)rt, &s), 0);
    for (unsigned i = 1; i < 4; i++) {
        CHECK_EQ(blitz_stats_read_proc((blitz_runtime *)rt, i, &s), 0);
        CHECK_EQ(s.run, 0u); /* it has no thread */
    }
    CHECK_EQ(blitz_runtime_shutdown((blitz_runtime *)rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref((blitz_runtime *)rt), 0);
    blitz_runtime *none;
    CHECK_EQ(blitz_runtime_new(&(blitz_runtime_opts){.procs = 4}, &none),
             -EAGAIN); /* not even one */
}

static int adds_one(void *arg)
{
    return 1 + *(int *)arg;
}

static int calls_ten_times(void *arg)
{
    int sum = 0;
    (void)arg;
    for (int i = 0; i < 10; i++)
        sum = blitz_blocking(adds_one, &sum);
    return sum;
}

/* The same for calls that block: no thread but the worker's, so they are made in place. */
TEST(run_fault, bug_30_a_limit_on_processes_loses_no_blocking_call)
{
    blitz_runtime *rt;
    blitz_stats s;
    CHECK_EQ(blitz_runtime_new(&(blitz_runtime_opts){.procs = 1}, &rt), 0);
    if (getuid() == 0 && setresuid(NOBODY, NOBODY, NOBODY) != 0)
        t_skip("cannot become somebody whom limits bind: %s", strerror(errno));
    t_has_denied = true; /* the leak check starts a thread */
    CHECK_EQ(setrlimit(RLIMIT_NPROC, &(struct rlimit){0, 0}), 0);
    CHECK_EQ(blitz_runtime_block_on(rt, calls_ten_times, NULL), 10);
    CHECK_EQ(blitz_stats_read(rt, &s), 0);
    CHECK_EQ(s.blocking, 0u);
    CHECK_EQ(blitz_runtime_shutdown(rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref(rt), 0);
}

/* Bug class 9: a fraction of a CPU is one worker, and everything works with one. */
static int one_cpu(const struct bz_os *os)
{
    (void)os;
    return 1; /* the effect of a quota of half a CPU: os_cpus_test.c */
}

static int tree(void *arg)
{
    intptr_t depth = (intptr_t)arg;
    blitz_task *left;
    int sum = 0;
    if (depth == 0)
        return 1;
    CHECK_EQ(blitz_spawn(tree, (void *)(depth - 1), NULL, &left), 0);
    blitz_yield();
    int right = tree((void *)(depth - 1));
    CHECK_EQ(blitz_sleep(BLITZ_US), 0);
    CHECK_EQ(blitz_task_join(left, &sum, BLITZ_FOREVER), 0);
    return sum + right;
}

TEST(run_fault, bug_09_a_quota_below_one_cpu_is_one_worker_that_does_it_all)
{
    unsetenv("BLITZ_PROCS"); /* it would overrule the quota */
    struct bz_os os = bz_os_system;
    struct bz_runtime *rt;
    os.cpus = one_cpu;
    CHECK_EQ(bz_runtime_new(&os, NULL, &rt), 0);
    CHECK_EQ(rt->proc_count, 1u);
    CHECK_EQ(blitz_runtime_block_on((blitz_runtime *)rt, crowd, NULL), 0);
    CHECK_EQ(blitz_runtime_block_on((blitz_runtime *)rt, tree, (void *)(intptr_t)7), 128);
    CHECK_EQ(blitz_spawn(naps, (void *)(intptr_t)1000000,
                         &(blitz_spawn_opts){.runtime = (blitz_runtime *)rt}, NULL),
             0);
    CHECK_EQ(blitz_runtime_shutdown((blitz_runtime *)rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref((blitz_runtime *)rt), 0);
}

/* ---- reports ---- */

#if defined(BZ_WATCH)
static int told; /* by the log, of a failure */

static void listen_without_locks(void *ctx, blitz_log_level level, const char *message)
{
    (void)ctx;
    (void)level;
    (void)message;
    told++;
    CHECK_EQ(bz_held_count(), 0u);
}

/* Bug class 23: a log hook may call blitz again, and must not meet our locks. */
TEST(run_fault, bug_23_the_log_is_called_with_no_lock_held)
{
    static const enum bz_fault_kind kinds[] = {BZ_FAULT_THREAD, BZ_FAULT_RESERVE, BZ_FAULT_GUARD,
                                               BZ_FAULT_MEMORY};
    CHECK_EQ(blitz_log_set(listen_without_locks, NULL, BLITZ_LOG_DEBUG), 0);
    for (size_t i = 0; i < BZ_ARRAY_LEN(kinds); i++)
        each_fault(kinds[i], on_threads);
    CHECK_GT(told, 0);
}
#endif
