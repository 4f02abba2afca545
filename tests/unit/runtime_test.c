/* blitz/runtime.h: config and environment, limits, hooks, several runtimes, fork, held handles. */
#include "harness.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bz_atomic.h"
#include "base/compiler.h"
#include "blitz.h"
#include "sim/fault.h"
#include "proc/proc_timer.h"
#include "proc/state.h"
#include "support/sanitizers.h"

static int seven(void *arg)
{
    (void)arg;
    return 7;
}

static int naps(void *arg)
{
    (void)arg;
    return blitz_sleep_until(BLITZ_FOREVER);
}

static void end(blitz_runtime *rt)
{
    CHECK_EQ(blitz_runtime_shutdown(rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref(rt), 0);
}

/* ---- log messages ---- */

static char said[4096];
static pthread_mutex_t said_lock = PTHREAD_MUTEX_INITIALIZER;

static void note(void *ctx, blitz_log_level level, const char *message)
{
    (void)ctx;
    (void)level;
    pthread_mutex_lock(&said_lock);
    size_t used = strlen(said);
    snprintf(said + used, sizeof said - used, "%s\n", message);
    pthread_mutex_unlock(&said_lock);
}

static int run_with(blitz_runtime_opts config)
{
    said[0] = '\0';
    config.log = note;
    return blitz_run(seven, NULL, &config);
}

/* How often `what` was said. */
static int times_said(const char *what)
{
    int n = 0;
    for (const char *at = said; (at = strstr(at, what)) != NULL; at++)
        n++;
    return n;
}

/* ---- config ---- */

/* A value that cannot be is refused, by name, with what could be. */
TEST(runtime, a_bad_config_is_refused_by_name)
{
    CHECK_EQ(run_with((blitz_runtime_opts){.procs = BZ_PROCS_MAX + 1}), -EINVAL);
    CHECK_EQ(times_said("config.procs = 1025: must be 1 to 1024"), 1);
    CHECK_EQ(run_with((blitz_runtime_opts){.stack_bytes = (8 << 20) + 1}), -EINVAL);
    CHECK_EQ(times_said("config.stack_bytes = 8388609: must be bytes, 1 to 8M"), 1);
    CHECK_EQ(run_with((blitz_runtime_opts){.tasks_max = UINT64_MAX}), -EINVAL);
    CHECK_EQ(times_said("config.tasks_max = "), 1);
    CHECK_EQ(run_with((blitz_runtime_opts){.threads_max = 1}), -EINVAL);
    CHECK_EQ(times_said("config.threads_max = 1: must be 2 to 64K"), 1);
    CHECK_EQ(run_with((blitz_runtime_opts){.procs = 3, .threads_max = 3}), -EINVAL);
    CHECK_EQ(times_said("threads_max = 3: must be more than the 3 procs"), 1);
    CHECK_EQ(run_with((blitz_runtime_opts){.procs = 2, .stack_bytes = 1, .tasks_max = 1}), 7);
    CHECK_STR_EQ(said, "");
}

TEST(runtime, a_bad_environment_is_refused_by_name)
{
    static const struct {
        const char *name, *value, *must;
    } bad[] = {
        {"BLITZ_PROCS", "0", "BLITZ_PROCS=0: must be 1 to 1024"},
        {"BLITZ_PROCS", "-1", "BLITZ_PROCS=-1: must be 1 to 1024"},
        {"BLITZ_PROCS", "O8", "BLITZ_PROCS=O8: must be"},
        {"BLITZ_PROCS", "8 ", "BLITZ_PROCS=8 : must be"},
        {"BLITZ_PROCS", "2K", "BLITZ_PROCS=2K: must be"},
        {"BLITZ_PROCS", "99999999999999999999", "BLITZ_PROCS=99999999999999999999: must be"},
        {"BLITZ_STACK", "9M", "BLITZ_STACK=9M: must be bytes, 1 to 8M"},
        {"BLITZ_STACK", "64KB", "BLITZ_STACK=64KB: must be"},
        {"BLITZ_STACK", "17592186044416M", "BLITZ_STACK=17592186044416M: must be"},
        {"BLITZ_TASKS_MAX", "many", "BLITZ_TASKS_MAX=many: must be 1 to 1024G"},
        {"BLITZ_THREADS_MAX", "1", "BLITZ_THREADS_MAX=1: must be 2 to 64K"},
        {"BLITZ_PLAIN", "yes", "BLITZ_PLAIN=yes: must be 0 or 1"},
        {"BLITZ_NO_ROTATION", "2", "BLITZ_NO_ROTATION=2: must be 0 or 1"},
        {"BLITZ_BURNING_MAX", "0", "BLITZ_BURNING_MAX=0: must be 1 to 1M"},
        {"BLITZ_DUMP_ON_SIGQUIT", "on", "BLITZ_DUMP_ON_SIGQUIT=on: must be 0 or 1"},
        {"BLITZ_TRACE_RECORDS", "1", "BLITZ_TRACE_RECORDS=1: must be 16 to 16M"},
        {"BLITZ_IO", "select",
         "BLITZ_IO=select: must be best, epoll, iocp, kqueue, poll, uring or none"},
    };
    for (size_t i = 0; i < BZ_ARRAY_LEN(bad); i++) {
        t_watch("%s=%s", bad[i].name, bad[i].value);
        setenv(bad[i].name, bad[i].value, 1);
        CHECK_EQ(run_with((blitz_runtime_opts){.procs = 0}), -EINVAL);
        CHECK_EQ(times_said(bad[i].must), 1);
        setenv(bad[i].name, "", 1); /* empty is unset */
    }
    CHECK_EQ(run_with((blitz_runtime_opts){.procs = 0}), 7);
}

/* The config overrides the environment. */
TEST(runtime, the_config_overrides_the_environment)
{
    blitz_runtime *rt;
    setenv("BLITZ_PROCS", "3", 1);
    setenv("BLITZ_STACK", "1M", 1);
    setenv("BLITZ_TASKS_MAX", "5", 1);
    setenv("BLITZ_PLAIN", "1", 1);
    setenv("BLITZ_IO", "poll", 1);
    CHECK_EQ(blitz_runtime_new(NULL, &rt), 0);
    struct bz_runtime *in = (struct bz_runtime *)rt;
    CHECK_EQ(in->proc_count, 3u);
    CHECK_EQ(in->stack_class, BZ_STACK_1M);
    CHECK_EQ(in->tasks.max, 5u);
    CHECK(bz_is_plain(in));
    CHECK_STR_EQ(in->procs[0].poll.ops->name, "poll");
    end(rt);
    CHECK_EQ(blitz_runtime_new(
                 &(blitz_runtime_opts){
                     .procs = 2, .stack_bytes = 100 << 10, .tasks_max = 1 << 20, .io = "none"},
                 &rt),
             0);
    in = (struct bz_runtime *)rt;
    CHECK_EQ(in->proc_count, 2u);
    CHECK_EQ(in->stack_class, BZ_STACK_256K);
    CHECK_EQ(in->tasks.max, 1u << 20);
    CHECK_STR_EQ(in->procs[0].poll.ops->name, "none");
    end(rt);
}

/* ---- limits ---- */

/* Exactly this many tasks may live; one more spawn fails, and succeeds when a task has ended. */
TEST(runtime, a_spawn_beyond_the_limit_returns_eagain)
{
    enum { MAX = 10 };
    blitz_runtime *rt;
    blitz_task *t[MAX], *more;
    CHECK_EQ(blitz_runtime_new(&(blitz_runtime_opts){.procs = 2, .tasks_max = MAX}, &rt), 0);
    blitz_spawn_opts opts = {.runtime = rt};
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < MAX; i++)
            CHECK_EQ(blitz_spawn(naps, NULL, &opts, &t[i]), 0);
        CHECK_EQ(blitz_spawn(naps, NULL, &opts, &more), -EAGAIN);
        CHECK_EQ(blitz_spawn(naps, NULL, &opts, NULL), -EAGAIN);
        for (int i = 0; i < MAX; i++) {
            blitz_task_cancel(t[i]);
            CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
        }
        int err;
        while ((err = blitz_spawn(seven, NULL, &opts, NULL)) == -EAGAIN)
            sched_yield(); /* joined, but perhaps not counted out yet */
        CHECK_EQ(err, 0);
        while (bz_load_relaxed(&((struct bz_runtime *)rt)->tasks.alive) > 0) /* relaxed: a poll */
            sched_yield();
    }
    end(rt);
}

TEST(runtime, a_limit_of_one_task_lets_one_after_another_in)
{
    blitz_runtime *rt;
    CHECK_EQ(blitz_runtime_new(&(blitz_runtime_opts){.procs = 1, .tasks_max = 1}, &rt), 0);
    for (int i = 0; i < 3; i++) {
        int err;
        blitz_task *t;
        while ((err = blitz_spawn(seven, NULL, &(blitz_spawn_opts){.runtime = rt}, &t)) == -EAGAIN)
            sched_yield(); /* the last one was joined, but perhaps not counted out yet */
        CHECK_EQ(err, 0);
        CHECK_EQ(blitz_task_join(t, NULL, BLITZ_FOREVER), 0);
    }
    end(rt);
}

/* ---- hooks ---- */

struct threads {
    bz_atomic(int) started, stopped;
};

static _Thread_local int is_one_of_ours;

static void on_start(void *ctx)
{
    struct threads *t = ctx;
    bz_fetch_add_relaxed(&t->started, 1); /* relaxed: a count */
    is_one_of_ours = 1;
}

static void on_stop(void *ctx)
{
    struct threads *t = ctx;
    CHECK_EQ(is_one_of_ours, 1);
    bz_fetch_add_relaxed(&t->stopped, 1); /* relaxed: a count */
}

static int runs_on_one_of_them(void *arg)
{
    (void)arg;
    return is_one_of_ours;
}

static int many_look(void *arg)
{
    enum { N = 50 };
    blitz_task *t[N];
    (void)arg;
    for (int i = 0; i < N; i++)
        CHECK_EQ(blitz_spawn(runs_on_one_of_them, NULL, NULL, &t[i]), 0);
    for (int i = 0; i < N; i++) {
        int result = 0;
        CHECK_EQ(blitz_task_join(t[i], &result, BLITZ_FOREVER), 0);
        CHECK_EQ(result, 1);
    }
    return 0;
}

TEST(runtime, every_worker_thread_is_announced_and_seen_off)
{
    struct threads t = {0, 0};
    blitz_runtime_opts config = {
        .procs = 3, .thread_start = on_start, .thread_stop = on_stop, .thread_ctx = &t};
    for (int i = 0; i < 20; i++)
        CHECK_EQ(blitz_run(many_look, NULL, &config), 0);
    CHECK_GE(bz_load_relaxed(&t.started), 20); /* relaxed: all threads were joined */
    CHECK_EQ(bz_load_relaxed(&t.started), bz_load_relaxed(&t.stopped)); /* relaxed: likewise */
}

/* One thread at the start; the others when there is work for them. */
TEST(runtime, threads_start_lazily)
{
    struct threads t = {0, 0};
    blitz_runtime *rt;
    CHECK_EQ(
        blitz_runtime_new(
            &(blitz_runtime_opts){.procs = 16, .thread_start = on_start, .thread_ctx = &t}, &rt),
        0);
    CHECK_LE(bz_load_relaxed(&t.started), 1); /* relaxed: a count */
    CHECK_EQ(blitz_runtime_block_on(rt, seven, NULL), 7);
    CHECK_LE(bz_load_relaxed(&t.started), 3); /* relaxed: a count. One for the task, one to look */
    end(rt);
}

static int my_thread_name(void *arg)
{
    return pthread_getname_np(pthread_self(), arg, 16);
}

/* So that they can be told apart in ps: the runtime's name, as far as it fits, and a number. */
TEST(runtime, worker_threads_have_the_name_they_were_given_and_a_number)
{
    char name[16];
    CHECK_EQ(blitz_run(my_thread_name, name, &(blitz_runtime_opts){.procs = 1}), 0);
    CHECK_STR_EQ(name, "blitz-1");
    CHECK_EQ(blitz_run(my_thread_name, name,
                       &(blitz_runtime_opts){.procs = 1, .name = "a rather long name"}),
             0);
    CHECK_STR_EQ(name, "a rather long-1");
}

/* All memory of blitz comes from the hook and is returned to it. */
TEST(runtime, the_allocator_gets_back_all_it_gave)
{
    struct bz_fault books;
    bz_fault_init(&books, &bz_os_system, NULL, &(struct bz_fault_plan){.nth = 0});
    CHECK_EQ(blitz_run(many_look, NULL,
                       &(blitz_runtime_opts){.procs = 2,
                                             .allocator = &books.allocator,
                                             .thread_start = on_start,
                                             .thread_ctx = &(struct threads){0, 0}}),
             0);
    CHECK_EQ(bz_fault_books(&books).blocks, 0);
}

static void *used_alloc(void *ctx, size_t size, size_t align)
{
    void *block = bz_alloc(&bz_allocator_libc, size, align);
    (void)ctx;
    return block != NULL ? memset(block, 0x5a, size) : NULL;
}

static void used_free(void *ctx, void *block, size_t size)
{
    (void)ctx;
    bz_free(&bz_allocator_libc, block, size);
}

/* An allocator need not clear its memory. A wrong first timer or a dump that was not asked for does no great harm: only
 * a look at the fields finds them. */
TEST(runtime, in_memory_with_old_content_it_begins_without_timers_and_dumps)
{
    blitz_allocator used = {used_alloc, used_free, NULL};
    blitz_runtime *made;
    CHECK_EQ(blitz_runtime_new(&(blitz_runtime_opts){.procs = 3, .allocator = &used}, &made), 0);
    struct bz_runtime *rt = (struct bz_runtime *)made;
    for (unsigned i = 0; i < 3; i++)
        CHECK_EQ(bz_timers_first(&rt->procs[i]), BZ_OS_FOREVER);
    CHECK_EQ(bz_load_relaxed(&rt->dump_asked), 0u); /* relaxed: no signal comes here */
    CHECK_EQ(blitz_runtime_block_on(made, seven, NULL), 7);
    CHECK_EQ(blitz_runtime_shutdown(made, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref(made), 0);
}

/* ---- several ---- */

struct bounce {
    blitz_runtime *other;
    int left;
};

/* A task that alternates between both runtimes. */
static int bounces(void *arg)
{
    struct bounce *b = arg;
    blitz_runtime *there = b->other;
    blitz_task *t;
    int result = 0;
    if (b->left-- == 0)
        return 42;
    b->other = (blitz_runtime *)bz_machine_self()->rt;
    CHECK_EQ(blitz_spawn(bounces, b, &(blitz_spawn_opts){.runtime = there}, &t), 0);
    CHECK_EQ(blitz_task_join(t, &result, BLITZ_FOREVER), 0);
    return result;
}

TEST(runtime, several_live_side_by_side_and_call_each_other)
{
    blitz_runtime *one, *two;
    CHECK_EQ(blitz_runtime_new(&(blitz_runtime_opts){.procs = 1}, &one), 0);
    CHECK_EQ(blitz_runtime_new(&(blitz_runtime_opts){.procs = 2}, &two), 0);
    struct bounce b = {two, 101};
    CHECK_EQ(blitz_runtime_block_on(one, bounces, &b), 42);
    end(one);
    b = (struct bounce){two, 0};
    CHECK_EQ(blitz_runtime_block_on(two, bounces, &b), 42);
    end(two);
}

/* ---- ending ---- */

TEST(runtime, a_runtime_that_was_not_shut_down_is_not_freed)
{
    blitz_runtime *rt;
    CHECK_EQ(blitz_runtime_new(&(blitz_runtime_opts){.procs = 1}, &rt), 0);
    CHECK_EQ(blitz_runtime_unref(rt), -EBUSY);
    CHECK_EQ(blitz_runtime_block_on(rt, seven, NULL), 7);
    end(rt);
    CHECK_EQ(blitz_runtime_unref(NULL), 0);
}

static void *shuts_down(void *arg)
{
    return (void *)(intptr_t)blitz_runtime_shutdown(arg, BLITZ_FOREVER);
}

TEST(runtime, two_that_shut_down_at_once_both_return)
{
    for (uint64_t i = 0, n = t_scaled(200); i < n; i++) {
        pthread_t thread;
        void *result;
        blitz_runtime *rt;
        CHECK_EQ(blitz_runtime_new(&(blitz_runtime_opts){.procs = 2}, &rt), 0);
        for (int k = 0; k < 5; k++)
            CHECK_EQ(blitz_spawn(naps, NULL, &(blitz_spawn_opts){.runtime = rt}, NULL), 0);
        CHECK_EQ(pthread_create(&thread, NULL, shuts_down, rt), 0);
        CHECK_EQ(blitz_runtime_shutdown(rt, BLITZ_FOREVER), 0);
        CHECK_EQ(pthread_join(thread, &result), 0);
        CHECK_NULL(result);
        CHECK_EQ(blitz_runtime_block_on(rt, seven, NULL), -ESHUTDOWN);
        CHECK_EQ(blitz_runtime_unref(rt), 0);
    }
}

/* Each once, by number and name; detached tasks are not listed. */
TEST(runtime, handles_that_are_still_held_are_named)
{
    blitz_runtime *rt;
    blitz_task *held, *given_up;
    char line[100];
    said[0] = '\0';
    CHECK_EQ(blitz_runtime_new(&(blitz_runtime_opts){.procs = 1, .log = note}, &rt), 0);
    blitz_spawn_opts a = {.runtime = rt, .name = "forgotten"}, b = {.runtime = rt, .name = "kept"};
    CHECK_EQ(blitz_spawn(naps, NULL, &a, &held), 0);
    CHECK_EQ(blitz_spawn(naps, NULL, &b, &given_up), 0);
    snprintf(line, sizeof line, "unref: task %llu (forgotten) has ended and is still held",
             (unsigned long long)blitz_task_id(held));
    blitz_task_detach(given_up);
    end(rt);
    CHECK_EQ(times_said(line), 1);
    CHECK_EQ(times_said("unref"), 1);
    blitz_task_detach(held);
}

TEST(runtime, of_many_handles_that_are_still_held_ten_are_named)
{
    enum { HELD = 14, NAMED = 10 };
    blitz_runtime *rt;
    blitz_task *held[HELD];
    said[0] = '\0';
    CHECK_EQ(blitz_runtime_new(&(blitz_runtime_opts){.procs = 1, .log = note}, &rt), 0);
    for (int i = 0; i < HELD; i++)
        CHECK_EQ(blitz_spawn(naps, NULL, &(blitz_spawn_opts){.runtime = rt}, &held[i]), 0);
    end(rt);
    CHECK_EQ(times_said("unref: task "), NAMED);
    for (int i = 0; i < HELD; i++)
        blitz_task_detach(held[i]);
}

/* ---- fork ---- */

static bz_atomic(int) is_enough;

static int keeps_busy(void *arg)
{
    while (!bz_load_relaxed(&is_enough)) { /* relaxed: a flag */
        blitz_task *t;
        if (blitz_spawn(seven, NULL, NULL, &t) == 0)
            CHECK_EQ(blitz_task_join(t, NULL, BLITZ_FOREVER), 0);
        CHECK_EQ(blitz_sleep((uint64_t)(intptr_t)arg * BLITZ_US), 0);
    }
    return 0;
}

static int status_of(pid_t pid)
{
    int status = -1;
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void fork_and_leave(int how)
{
    pid_t pid = fork();
    CHECK_GE(pid, 0);
    if (pid == 0) {
        if (how == 0)
            _exit(3);
        execl("/bin/sh", "sh", "-c", "exit 3", (char *)NULL);
        _exit(4);
    }
    CHECK_EQ(status_of(pid), 3);
}

static int forks_in_a_task(void *arg)
{
    fork_and_leave((int)(intptr_t)arg);
    return 0;
}

/* From a plain thread and from a task, at any point; the parent continues. */
TEST(runtime, bug_35_a_child_forked_at_any_point_may_exec_or_exit)
{
    blitz_runtime *rt;
    blitz_task *t[4];
    CHECK_EQ(blitz_runtime_new(&(blitz_runtime_opts){.procs = 2}, &rt), 0);
    blitz_spawn_opts opts = {.runtime = rt};
    for (int i = 0; i < 4; i++)
        CHECK_EQ(blitz_spawn(keeps_busy, (void *)(intptr_t)(i * 10), &opts, &t[i]), 0);
    for (uint64_t i = 0, n = t_scaled(100); i < n; i++) {
        fork_and_leave((int)(i % 2));
        CHECK_EQ(blitz_runtime_block_on(rt, forks_in_a_task, (void *)(intptr_t)(i % 2)), 0);
    }
    bz_store_relaxed(&is_enough, 1); /* relaxed: a flag */
    for (int i = 0; i < 4; i++)
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
    end(rt);
}
