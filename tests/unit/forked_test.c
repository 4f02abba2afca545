/* Calls of blitz in the child of a fork whose parent had a runtime. */
#include "harness.h"

#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

#include "blitz.h"
#include "support/death.h"
#include "support/sanitizers.h"

static int nothing(void *arg)
{
    (void)arg;
    return 0;
}

/* The status with which fn(arg) leaves the child; it has five seconds. */
static int in_a_child(int (*fn)(void *arg), void *arg)
{
    int status;
    fflush(NULL);
    pid_t pid = fork();
    CHECK_GE(pid, 0);
    if (pid == 0) {
        alarm(5);
        _exit(fn(arg));
    }
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void hush(void *ctx, blitz_log_level level, const char *line)
{
    (void)ctx;
    (void)level;
    (void)line;
}

static int calls_that_fail(void *arg)
{
    blitz_runtime *rt = arg, *other;
    blitz_task *t;
    blitz_spawn_opts opts = {.runtime = rt};
    (void)blitz_log_set(hush, NULL, BLITZ_LOG_ERROR);
    if (blitz_spawn(nothing, NULL, &opts, &t) != -EINVAL)
        return 1;
    if (blitz_runtime_new(NULL, &other) != -EBUSY || blitz_run(nothing, NULL, NULL) != -EBUSY)
        return 2;
    if (blitz_runtime_shutdown(rt, BLITZ_FOREVER) != -EBUSY || blitz_runtime_unref(rt) != -EBUSY)
        return 3;
    return blitz_runtime_block_on(rt, nothing, NULL) == -EINVAL ? 42 : 4;
}

static int add(size_t from, size_t to, void *arg)
{
    for (size_t i = from; i < to; i++)
        *(size_t *)arg += i; /* one thread: no race */
    return 0;
}

static int computes_alone(void *arg)
{
    size_t sum = 0;
    (void)arg;
    return blitz_for(1000, add, &sum, NULL) == 0 && sum == 499500 ? 42 : 1;
}

TEST(forked, bug_35_calls_of_a_child_that_can_fail_do)
{
    t_skip_if_emulated("aborts in the forked child of a program with threads"); /* qemu-user 7.2 */
    blitz_runtime *rt;
    CHECK_EQ(blitz_runtime_new(&(blitz_runtime_opts){.procs = 2}, &rt), 0);
    CHECK_EQ(in_a_child(calls_that_fail, rt), 42);
    CHECK_EQ(in_a_child(computes_alone, NULL), 42);
    CHECK_EQ(blitz_runtime_shutdown(rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref(rt), 0);
}

/* ---- waits ---- */

static blitz_chan *channel;

static int forks_and_waits(void *arg)
{
    int value;
    (void)arg;
    DIES("was forked beside a runtime",
         (alarm(5), (void)!blitz_chan_recv(channel, &value, BLITZ_FOREVER)));
    DIES("was forked beside a runtime", (alarm(5), (void)!blitz_sleep(BLITZ_MS)));
    return 0;
}

static int stays(void *arg)
{
    (void)arg;
    return blitz_sleep(3600 * BLITZ_S);
}

/* From a task and from a plain thread; the parent continues. */
TEST(forked, bug_35_a_wait_of_a_child_that_would_not_end_aborts_with_words)
{
    t_skip_if_emulated("aborts in the forked child of a program with threads"); /* qemu-user 7.2 */
    blitz_runtime *rt;
    blitz_task *t;
    int value;
    CHECK_EQ(blitz_chan_new(sizeof(int), 1, NULL, &channel), 0);
    CHECK_EQ(blitz_runtime_new(&(blitz_runtime_opts){.procs = 2}, &rt), 0);
    blitz_spawn_opts opts = {.runtime = rt};
    CHECK_EQ(blitz_spawn(stays, NULL, &opts, &t), 0);
    CHECK_EQ(blitz_runtime_block_on(rt, forks_and_waits, NULL), 0);
    DIES("was forked beside a runtime", (alarm(5), (void)!blitz_task_join(t, NULL, BLITZ_FOREVER)));
    DIES("was forked beside a runtime",
         (alarm(5), (void)!blitz_chan_recv(channel, &value, BLITZ_FOREVER)));
    blitz_task_cancel(t);
    CHECK_EQ(blitz_task_join(t, NULL, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_shutdown(rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref(rt), 0);
    blitz_chan_unref(channel);
}

/* ---- forks that are fine ---- */

static int runs(void *arg)
{
    (void)arg;
    return blitz_run(nothing, NULL, &(blitz_runtime_opts){.procs = 2}) == 0 ? 42 : 1;
}

TEST(forked, bug_35_a_child_forked_before_or_after_a_runtime_may_have_one)
{
    CHECK_EQ(in_a_child(runs, NULL), 42);
    CHECK_EQ(runs(NULL), 42);
    CHECK_EQ(in_a_child(runs, NULL), 42);
}
