/* Commands, children and their pipes, on every I/O backend. */
#include "support/proc.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io/attempt.h"
#include "os/os.h"
#include "support/keepers.h"
#include "support/sanitizers.h"

/* The child of a start shares our memory until it executes the program, and says there why it could not. */
static void needs_shared_memory(void)
{
    t_skip_if_emulated("gives a child a copy of the memory, so the error of a start is lost");
}

static int check_out(blitz_command *c, const char *want)
{
    blitz_output o = t_output(c);
    CHECK_EQ(o.exit.code, 0);
    CHECK_STR_EQ(o.out, want);
    blitz_output_drop(&o);
    return 0;
}

/* ---- ends ---- */

static int ends(void *arg)
{
    blitz_exit e = t_end_of(t_start(t_shell("exit 3")));
    char text[64];
    (void)arg;
    CHECK_EQ(e.code, 3);
    CHECK_EQ(e.signal, 0);
    CHECK(!blitz_exit_is_ok(&e));
    CHECK_EQ(blitz_exit_format(&e, text, sizeof text), 11);
    CHECK_STR_EQ(text, "exit code 3");
    e = t_end_of(t_start(t_shell("kill -9 $$")));
    CHECK_EQ(e.code, -1);
    CHECK_EQ(e.signal, SIGKILL);
    CHECK_GT(blitz_exit_format(&e, text, sizeof text), 0);
    CHECK_STR_EQ(text, "SIGKILL");
    e = t_end_of(t_start(t_command("true", NULL)));
    CHECK(blitz_exit_is_ok(&e));
    return 0;
}

TEST(process, an_end_is_a_code_or_a_signal)
{
    t_on_keepers(ends, NULL);
}

static int wait_with_deadlines(void *arg)
{
    blitz_exit e;
    blitz_command *c = t_command("cat", NULL);
    (void)arg;
    blitz_command_stdio(c, 0, BLITZ_STDIO_TO_CHILD);
    blitz_process *p = t_start(c);
    CHECK_EQ(blitz_process_try_wait(p, &e), -EAGAIN);
    CHECK_EQ(blitz_process_wait(p, &e, 0), -ETIMEDOUT);
    CHECK_EQ(blitz_process_wait(p, &e, blitz_after(BLITZ_MS)), -ETIMEDOUT);
    blitz_process_close(p, 0);
    CHECK_EQ(blitz_process_wait(p, &e, BLITZ_FOREVER), 0);
    CHECK_EQ(e.code, 0);
    CHECK_EQ(blitz_process_wait(p, &e, 0), 0); /* and again */
    CHECK_EQ(blitz_process_try_wait(p, NULL), 0);
    CHECK_EQ(blitz_process_signal(p, SIGTERM), -ESRCH);
    blitz_process_unref(p);
    return 0;
}

TEST(process, a_wait_ends_with_its_deadline_and_the_child_goes_on)
{
    t_on_keepers(wait_with_deadlines, NULL);
}

static int waits(void *arg)
{
    blitz_exit e;
    int rc = blitz_process_wait(arg, &e, BLITZ_FOREVER);
    return rc == 0 ? e.code : rc;
}

static void *waits_on_a_thread(void *arg)
{
    return (void *)(intptr_t)waits(arg);
}

struct polled {
    blitz_frame frame;
    blitz_process *of;
    blitz_process_future f;
};

static blitz_poll waits_stackless(void *state, blitz_cx *cx)
{
    struct polled *me = state;
    int rc;
    BLITZ_BEGIN(&me->frame, cx);
    blitz_process_wait_future_init(&me->f, me->of);
    BLITZ_AWAIT(rc, &me->f.future);
    BLITZ_END(rc == 0 ? me->f.exit.code : rc);
}

static int waits_in_a_job(void *arg)
{
    blitz_job j;
    blitz_fork(&j, waits, arg);
    return blitz_join(&j);
}

/* Fibers, stackless tasks, jobs and a plain thread at one process; one of them is cancelled. */
static int many_waiters(void *arg)
{
    enum { TASKS = 7 };
    blitz_task *t[TASKS];
    pthread_t thread;
    int result;
    void *thread_result;
    blitz_command *c = t_shell("read x; exit 7");
    (void)arg;
    blitz_command_stdio(c, 0, BLITZ_STDIO_TO_CHILD);
    blitz_process *p = t_start(c);
    struct polled state = {.of = p};
    for (int i = 0; i < 3; i++)
        CHECK_EQ(blitz_spawn(waits, p, NULL, &t[i]), 0);
    for (int i = 3; i < 5; i++)
        CHECK_EQ(blitz_spawn_poll(waits_stackless, &state, sizeof state, NULL, &t[i]), 0);
    for (int i = 5; i < TASKS; i++)
        CHECK_EQ(blitz_spawn(waits_in_a_job, p, NULL, &t[i]), 0);
    CHECK_EQ(pthread_create(&thread, NULL, waits_on_a_thread, p), 0);
    for (int i = 0; i < 10; i++)
        blitz_yield();
    blitz_task_cancel(t[0]);
    CHECK_EQ(blitz_task_join(t[0], &result, BLITZ_FOREVER), 0);
    CHECK_EQ(result, -ECANCELED);
    blitz_process_close(p, 0);
    for (int i = 1; i < TASKS; i++) {
        CHECK_EQ(blitz_task_join(t[i], &result, BLITZ_FOREVER), 0);
        CHECK_EQ(result, 7);
    }
    blitz_syscall_enter();
    CHECK_EQ(pthread_join(thread, &thread_result), 0);
    blitz_syscall_leave();
    CHECK_EQ((intptr_t)thread_result, 7);
    blitz_process_unref(p);
    return 0;
}

TEST(process, every_form_of_waiter_hears_of_the_end)
{
    t_on_keepers(many_waiters, NULL);
}

/* ---- whose children ---- */

static int beside_foreign_children(void *arg)
{
    int foreign = fork(), status;
    (void)arg;
    if (foreign == 0)
        _exit(42);
    siginfo_t info;
    CHECK_EQ(waitid(P_PID, (id_t)foreign, &info, WEXITED | WNOWAIT), 0); /* it has ended */
    for (int i = 0; i < 3; i++)
        CHECK_EQ(t_end_of(t_start(t_shell("exit 1"))).code, 1);
    CHECK_EQ(waitpid(foreign, &status, WNOHANG), foreign);
    CHECK_EQ(WEXITSTATUS(status), 42);
    return 0;
}

TEST(process, bug_36_children_of_other_code_are_never_reaped)
{
    t_on_keepers(beside_foreign_children, NULL);
}

static int reaped_by_others(void *arg)
{
    blitz_process *p = t_start(t_command("true", NULL));
    int status;
    (void)arg;
    while (waitpid(blitz_process_pid(p), &status, 0) < 0)
        CHECK_EQ(errno, EINTR);
    CHECK_EQ(blitz_process_wait(p, NULL, BLITZ_FOREVER), -ECHILD);
    CHECK_EQ(blitz_process_signal(p, SIGTERM), -ESRCH);
    blitz_process_unref(p);
    return 0;
}

TEST(process, bug_36_a_child_that_other_code_reaped_is_an_error)
{
    CHECK_EQ(blitz_run(reaped_by_others, NULL, NULL), 0);
}

static bool has_children(void)
{
    siginfo_t info;
    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

/* A process that was given up while it ran is reaped by a later call. */
static int gives_up(void *arg)
{
    blitz_command *c = t_command("sleep", "1000", NULL);
    (void)arg;
    blitz_command_kill_on_unref(c);
    blitz_process *p = t_start(c);
    blitz_process_unref(p);
    while (has_children())
        blitz_process_unref(t_start(t_command("true", NULL)));
    return 0;
}

TEST(process, bug_36_a_killed_orphan_leaves_no_zombie)
{
    t_on_keepers(gives_up, NULL);
}

/* ---- descriptors ---- */

static bz_atomic(bool) is_calm;

/* Foreign code that opens descriptors without close-on-exec, all the time. */
static void *opens_carelessly(void *arg)
{
    while (!bz_load_relaxed(&is_calm)) { /* relaxed: a flag */
        int fd = open("/dev/null", O_RDONLY), copy = dup(fd);
        close(fd);
        close(copy);
    }
    return arg;
}

static int starts_beside_it(void *arg)
{
    (void)arg;
    for (uint64_t i = 0, n = t_scaled(100); i < n; i++) {
        blitz_output o = t_output(t_shell("cd /proc/self/fd && echo *"));
        CHECK_STR_EQ(o.out, "0 1 2 3\n"); /* the shell has opened the directory */
        blitz_output_drop(&o);
    }
    return 0;
}

TEST(process, bug_36_no_descriptor_leaks_into_a_child)
{
    pthread_t thread;
    int held = open("/dev/null", O_RDONLY), high = fcntl(held, F_DUPFD, 200);
    CHECK_EQ(pthread_create(&thread, NULL, opens_carelessly, NULL), 0);
    t_on_keepers(starts_beside_it, NULL);
    bz_store_relaxed(&is_calm, true); /* relaxed: a flag */
    CHECK_EQ(pthread_join(thread, NULL), 0);
    close(held);
    close(high);
}

/* Write a program, close it, and run it, while others start children that hold its descriptor for a moment. */
static int writes_and_runs(void *arg)
{
    char path[64];
    static const char script[] = "#!/bin/sh\nexit 5\n";
    for (uint64_t i = 0, n = t_scaled(40); i < n; i++) {
        snprintf(path, sizeof path, "/tmp/blitz-busy-%d-%d-%d", getpid(), (int)(intptr_t)arg,
                 (int)i);
        int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
        CHECK_GE(fd, 0);
        CHECK_EQ(write(fd, script, sizeof script - 1), sizeof script - 1);
        close(fd);
        CHECK_EQ(t_end_of(t_start(t_command(path, NULL))).code, 5);
        unlink(path);
    }
    return 0;
}

static int busy_storm(void *arg)
{
    blitz_task *t[4];
    (void)arg;
    for (intptr_t i = 0; i < 4; i++)
        CHECK_EQ(blitz_spawn(writes_and_runs, (void *)i, NULL, &t[i]), 0);
    for (int i = 0; i < 4; i++)
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
    return 0;
}

TEST(process, bug_36_a_storm_of_starts_makes_no_program_busy)
{
    needs_shared_memory();
    CHECK_EQ(blitz_run(busy_storm, NULL, &(blitz_runtime_opts){.procs = 4}), 0);
}

static int moves_descriptors(void *arg)
{
    int a = open("/dev/null", O_RDONLY | O_CLOEXEC), pipes[2];
    char path[] = "/tmp/blitz-proc-XXXXXX";
    int file = mkstemp(path);
    (void)arg;
    /* Two that change places, and one that is in the way of another. */
    CHECK_EQ(pipe2(pipes, O_CLOEXEC), 0);
    blitz_command *c = t_shell("echo to-three >&3; echo to-two >&2; read x <&7; echo got $x");
    blitz_command_fd(c, 3, 2);
    blitz_command_fd(c, 2, file);
    blitz_command_stdio(c, 7, BLITZ_STDIO_TO_CHILD);
    blitz_command_stdio(c, 1, BLITZ_STDIO_FROM_CHILD);
    blitz_command_fd(c, 3, pipes[1]);
    blitz_process *p = t_start(c);
    CHECK_EQ(blitz_writer_write_all(blitz_process_writer(p, 7), "word\n", 5, NULL, BLITZ_FOREVER),
             0);
    char text[64] = {0};
    CHECK_EQ(blitz_reader_read(blitz_process_reader(p, 1), text, sizeof text, BLITZ_FOREVER), 9);
    CHECK_STR_EQ(text, "got word\n");
    CHECK_EQ(t_end_of(p).code, 0);
    memset(text, 0, sizeof text);
    CHECK_EQ(read(pipes[0], text, sizeof text), 9);
    CHECK_STR_EQ(text, "to-three\n");
    memset(text, 0, sizeof text);
    CHECK_EQ(pread(file, text, sizeof text, 0), 7);
    CHECK_STR_EQ(text, "to-two\n");
    close(a), close(file), close(pipes[0]), close(pipes[1]);
    unlink(path);
    return 0;
}

TEST(process, descriptors_are_put_where_the_command_says)
{
    t_on_keepers(moves_descriptors, NULL);
}

static int files_and_null(void *arg)
{
    char path[] = "/tmp/blitz-proc-XXXXXX";
    (void)arg;
    close(mkstemp(path));
    blitz_command *c = t_shell("cat; echo one; echo two >&2");
    blitz_command_stdio(c, 0, BLITZ_STDIO_NULL);
    blitz_command_file(c, 1, path, BLITZ_FILE_WRITE);
    blitz_command_same(c, 2, 1);
    CHECK_EQ(t_end_of(t_start(c)).code, 0);
    c = t_shell("echo three");
    blitz_command_file(c, 1, path, BLITZ_FILE_APPEND);
    CHECK_EQ(t_end_of(t_start(c)).code, 0);
    c = t_command("cat", NULL);
    blitz_command_file(c, 0, path, BLITZ_FILE_READ);
    check_out(c, "one\ntwo\nthree\n");
    unlink(path);
    return 0;
}

TEST(process, files_and_null_and_the_same_as_another)
{
    CHECK_EQ(blitz_run(files_and_null, NULL, NULL), 0);
}

/* ---- everything else of a command ---- */

static int environment(void *arg)
{
    (void)arg;
    setenv("BLITZ_TEST_A", "kept", 1);
    setenv("BLITZ_TEST_B", "removed", 1);
    blitz_command *c = t_shell("echo $BLITZ_TEST_A-$BLITZ_TEST_B-$BLITZ_TEST_C");
    blitz_command_env(c, "BLITZ_TEST_B", NULL);
    blitz_command_env(c, "BLITZ_TEST_C", "first");
    blitz_command_env(c, "BLITZ_TEST_C", "set");
    check_out(c, "kept--set\n");
    c = t_command("env", NULL);
    blitz_command_env_clear(c);
    blitz_command_env(c, "X", "1");
    check_out(c, "X=1\n");
    return 0;
}

TEST(process, the_environment_is_changed_as_the_command_says)
{
    CHECK_EQ(blitz_run(environment, NULL, NULL), 0);
}

static int places(void *arg)
{
    (void)arg;
    blitz_command *c = t_command("pwd", NULL);
    blitz_command_dir(c, "/usr");
    check_out(c, "/usr\n");
    c = t_shell("ulimit -n; ulimit -Hn");
    blitz_command_limit(c, RLIMIT_NOFILE, 40, 50);
    check_out(c, "40\n50\n");
    c = t_shell("test $(ps -o pgid= -p $$) = $$ && echo own");
    blitz_command_group(c, 0);
    check_out(c, "own\n");
    c = t_shell("test $(ps -o sid= -p $$) = $$ && echo own");
    blitz_command_session(c);
    check_out(c, "own\n");
    return 0;
}

TEST(process, directory_limits_group_and_session)
{
    CHECK_EQ(blitz_run(places, NULL, NULL), 0);
}

static int user(void *arg)
{
    (void)arg;
    blitz_command *c = t_shell("id -u; id -g; id -G");
    blitz_command_user(c, 65534, 65534);
    return check_out(c, "65534\n65534\n65534\n");
}

TEST(process, another_user_without_other_groups)
{
    if (getuid() != 0)
        t_skip("only root may become another user");
    CHECK_EQ(blitz_run(user, NULL, NULL), 0);
}

static void on_usr1(int signal)
{
    (void)signal;
}

static int signal_state(void *arg)
{
    sigset_t set;
    (void)arg;
    for (int s = SIGHUP; s <= SIGTERM; s++)
        (void)signal(s, SIG_DFL); /* nohup and shells leave some ignored */
    sigfillset(&set);
    CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
    CHECK(signal(SIGUSR1, on_usr1) != SIG_ERR);
    CHECK(signal(SIGPIPE, SIG_IGN) != SIG_ERR);
    CHECK(signal(SIGUSR2, SIG_IGN) != SIG_ERR);
    /* Of the ignored ones only SIGUSR2 (bit 11) is left, and none is blocked or caught. */
    blitz_command *c =
        t_command("sed", "-n", "s/^Sig\\(Blk\\|Ign\\|Cgt\\):.*\\(.\\{4\\}\\)$/\\1 \\2/p",
                  "/proc/self/status", NULL);
    check_out(c, "Blk 0000\nIgn 0800\nCgt 0000\n");
    CHECK_EQ(pthread_sigmask(SIG_UNBLOCK, &set, NULL), 0);
    return 0;
}

TEST(process, bug_34_a_child_begins_with_default_signals_and_no_mask)
{
    CHECK_EQ(blitz_run(signal_state, NULL, NULL), 0);
}

/* ---- a start that fails ---- */

static void check_failure(blitz_command *c, int want, blitz_start_step step)
{
    blitz_process *p = NULL;
    blitz_start_failure why = {.name = NULL};
    CHECK_EQ(blitz_command_start(c, &why, &p), want);
    CHECK_EQ(why.step, step);
    CHECK_NOT_NULL(why.name);
    CHECK_NULL(p);
    blitz_command_unref(c);
}

static int failures(void *arg)
{
    (void)arg;
    check_failure(t_command("/no/such/program", NULL), -ENOENT, BLITZ_START_EXEC);
    check_failure(t_command("no-such-program", NULL), -ENOENT, BLITZ_START_EXEC);
    check_failure(t_command("/proc/self/status", NULL), -EACCES, BLITZ_START_EXEC);
    blitz_command *c = t_command("true", NULL);
    blitz_command_dir(c, "/no/such/directory");
    check_failure(c, -ENOENT, BLITZ_START_DIR);
    c = t_command("true", NULL);
    blitz_command_file(c, 0, "/no/such/file", BLITZ_FILE_READ);
    check_failure(c, -ENOENT, BLITZ_START_OPEN);
    c = t_command("true", NULL);
    blitz_command_fd(c, 5, 999);
    check_failure(c, -EBADF, BLITZ_START_OPEN);
    c = t_command("true", NULL);
    blitz_command_limit(c, 9999, 1, 1);
    check_failure(c, -EINVAL, BLITZ_START_LIMIT);
    c = t_command("true", NULL);
    blitz_command_group(c, 1);
    check_failure(c, -EPERM, BLITZ_START_GROUP);
    c = t_command("true", NULL);
    blitz_command_arg(c, NULL);
    blitz_command_arg(c, "more");
    check_failure(c, -EINVAL, BLITZ_START_COMMAND);
    CHECK(!has_children());
    return 0;
}

TEST(process, a_failed_start_tells_the_step_and_leaves_nothing)
{
    needs_shared_memory();
    t_on_keepers(failures, NULL);
}

TEST(process, commands_refuse_wrong_words)
{
    blitz_command *c;
    CHECK_EQ(blitz_command_new(NULL, &c), -EINVAL);
    CHECK_EQ(blitz_command_new("", &c), -EINVAL);
    CHECK_EQ(blitz_command_new("x", NULL), -EINVAL);
    blitz_command_unref(NULL);
    blitz_process *p;
    c = t_command("true", NULL);
    CHECK_EQ(blitz_command_start(c, NULL, &p), -EOPNOTSUPP); /* not in a task */
    blitz_command_unref(c);
}

/* ---- stopping ---- */

static int stops(void *arg)
{
    blitz_exit e;
    (void)arg;
    blitz_process *p = t_start(t_command("sleep", "1000", NULL));
    CHECK_EQ(blitz_process_stop(p, BLITZ_FOREVER / 4, &e, BLITZ_FOREVER), 0);
    CHECK_EQ(e.signal, SIGTERM);
    CHECK_EQ(blitz_process_stop(p, 0, &e, BLITZ_FOREVER), 0); /* again: it has ended */
    blitz_process_unref(p);
    /* One that does not hear: only SIGKILL ends it. */
    blitz_command *c = t_shell("trap '' TERM; sleep 1000 & echo ready; while :; do wait; done");
    blitz_command_stdio(c, 1, BLITZ_STDIO_FROM_CHILD);
    blitz_command_group(c, 0);
    p = t_start(c);
    char text[16];
    CHECK_EQ(blitz_reader_read(blitz_process_reader(p, 1), text, sizeof text, BLITZ_FOREVER), 6);
    CHECK_EQ(blitz_process_stop(p, 5 * BLITZ_MS, &e, BLITZ_FOREVER), 0);
    CHECK_EQ(e.signal, SIGKILL);
    CHECK_EQ(blitz_process_signal_group(p, SIGKILL), 0); /* its sleep */
    blitz_process_unref(p);
    p = t_start(t_command("sleep", "1000", NULL));
    CHECK_EQ(blitz_process_kill(p), 0);
    CHECK_EQ(t_end_of(p).signal, SIGKILL);
    return 0;
}

TEST(process, a_stop_asks_first_and_kills_after_the_grace)
{
    t_on_keepers(stops, NULL);
}

/* ---- output ---- */

static char *many(size_t bytes)
{
    char *data = malloc(bytes);
    CHECK_NOT_NULL(data);
    for (size_t i = 0; i < bytes; i++)
        data[i] = (char)('a' + i % 23);
    return data;
}

/* More than the pipes hold, in both directions at once: a program that wrote first would hang. */
static int both_ways(void *arg)
{
    enum { BYTES = 1 << 20 };
    char *data = many(BYTES);
    blitz_output o;
    blitz_output_opts opts = {.input = data, .input_bytes = BYTES};
    (void)arg;
    blitz_command *c = t_shell("tee /proc/self/fd/2");
    CHECK_EQ(blitz_command_output(c, &opts, &o, BLITZ_FOREVER), 0);
    CHECK_EQ(o.exit.code, 0);
    CHECK_EQ(o.out_bytes, BYTES);
    CHECK_EQ(o.err_bytes, BYTES);
    CHECK_MEM_EQ(o.out, data, BYTES);
    CHECK_MEM_EQ(o.err, data, BYTES);
    blitz_output_drop(&o);
    blitz_command_unref(c);
    /* A child that does not want its input. */
    c = t_command("true", NULL);
    CHECK_EQ(blitz_command_output(c, &opts, &o, BLITZ_FOREVER), 0);
    CHECK_EQ(o.out_bytes, 0);
    blitz_output_drop(&o);
    blitz_command_unref(c);
    free(data);
    return 0;
}

TEST(process, output_and_input_at_once_do_not_deadlock)
{
    t_on_keepers(both_ways, NULL);
}

static int limits(void *arg)
{
    blitz_output o;
    blitz_output_opts opts = {.max_bytes = 1000};
    (void)arg;
    blitz_command *c = t_command("yes", NULL);
    CHECK_EQ(blitz_command_output(c, &opts, &o, BLITZ_FOREVER), -EMSGSIZE);
    CHECK_EQ(o.out_bytes, 1000);
    CHECK_EQ(o.exit.signal, SIGKILL);
    blitz_output_drop(&o);
    blitz_command_unref(c);
    c = t_shell("head -c 1000 /dev/zero");
    CHECK_EQ(blitz_command_output(c, &opts, &o, BLITZ_FOREVER), 0);
    CHECK_EQ(o.out_bytes, 1000);
    blitz_output_drop(&o);
    blitz_command_unref(c);
    /* The deadline: what came is there, also if a grandchild holds the pipe. */
    c = t_shell("echo early; sleep 1 & exec sleep 1000");
    CHECK_EQ(blitz_command_output(c, NULL, &o, blitz_after(100 * BLITZ_MS)), -ETIMEDOUT);
    CHECK_EQ(o.exit.signal, SIGKILL);
    blitz_output_drop(&o);
    blitz_command_unref(c);
    CHECK(!has_children());
    return 0;
}

TEST(process, output_is_limited_by_bytes_and_by_time)
{
    t_skip_if_emulated("hands no orphans over to the harness"); /* no PR_SET_CHILD_SUBREAPER */
    t_on_keepers(limits, NULL);
}

static int outputs(void *arg)
{
    blitz_output o;
    int rc = blitz_command_output(arg, NULL, &o, BLITZ_FOREVER);
    blitz_output_drop(&o);
    return rc;
}

static int output_cancelled(void *arg)
{
    blitz_command *c = t_command("sleep", "1000", NULL);
    blitz_task *t;
    int result;
    (void)arg;
    for (int yields = 0; yields < 4; yields++) {
        CHECK_EQ(blitz_spawn(outputs, c, NULL, &t), 0);
        for (int i = 0; i < yields; i++)
            blitz_yield();
        blitz_task_cancel(t);
        CHECK_EQ(blitz_task_join(t, &result, BLITZ_FOREVER), 0);
        CHECK_EQ(result, -ECANCELED);
    }
    CHECK(!has_children());
    blitz_command_unref(c);
    return 0;
}

TEST(process, bug_21_a_cancelled_output_has_killed_and_reaped)
{
    t_on_keepers(output_cancelled, NULL);
}

static int failing_output(void *arg)
{
    blitz_output o;
    blitz_command *c = t_command("no-such-program", NULL);
    (void)arg;
    CHECK_EQ(blitz_command_output(c, NULL, &o, BLITZ_FOREVER), -ENOENT);
    CHECK_EQ(o.failure.step, BLITZ_START_EXEC);
    CHECK_STR_EQ(o.failure.name, "exec");
    blitz_output_drop(&o);
    blitz_command_unref(c);
    return 0;
}

TEST(process, output_of_a_command_that_cannot_start_is_its_error)
{
    needs_shared_memory();
    CHECK_EQ(blitz_run(failing_output, NULL, NULL), 0);
}

/* ---- pipelines and terminals ---- */

static int pipelines(void *arg)
{
    blitz_command *c[3] = {t_shell("printf 'b\\na\\nb\\n'"), t_command("sort", NULL),
                           t_command("uniq", NULL)};
    blitz_process *p[3];
    char text[16] = {0};
    (void)arg;
    blitz_command_stdio(c[2], 1, BLITZ_STDIO_FROM_CHILD);
    CHECK_EQ(blitz_command_pipeline((const blitz_command *const *)c, 3, NULL, p), 0);
    CHECK_EQ(blitz_reader_read_exact(blitz_process_reader(p[2], 1), text, 4, NULL, BLITZ_FOREVER),
             0);
    CHECK_STR_EQ(text, "a\nb\n");
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(t_end_of(p[i]).code, 0);
        blitz_command_unref(c[i]);
    }
    /* The second one cannot start: the first is killed. */
    blitz_command *d[2] = {t_command("sleep", "1000", NULL), t_command("no-such-program", NULL)};
    blitz_start_failure why;
    CHECK_EQ(blitz_command_pipeline((const blitz_command *const *)d, 2, &why, p), -ENOENT);
    CHECK_EQ(why.index, 1);
    CHECK_EQ(why.step, BLITZ_START_EXEC);
    CHECK(!has_children());
    blitz_command_unref(d[0]);
    blitz_command_unref(d[1]);
    return 0;
}

TEST(process, a_pipeline_passes_bytes_on_and_fails_as_a_whole)
{
    needs_shared_memory();
    t_on_keepers(pipelines, NULL);
}

static int terminal(void *arg)
{
    char room[256], *data;
    blitz_buffered_reader in;
    (void)arg;
    blitz_command *c = t_shell("test -t 0 && test -t 1 && stty size && read x && echo got-$x");
    blitz_command_pty(c, 33, 77);
    blitz_process *p = t_start(c);
    CHECK_EQ(blitz_buffered_reader_init(&in, blitz_process_reader(p, 0), room, sizeof room), 0);
    CHECK_EQ(blitz_buffered_line(&in, 100, (const char **)&data, BLITZ_FOREVER), 5);
    CHECK_MEM_EQ(data, "33 77", 5);
    CHECK_EQ(blitz_process_resize(p, 10, 20), 0);
    CHECK_EQ(blitz_process_resize(p, 10, 20), 0);
    CHECK_EQ(blitz_writer_write_all(blitz_process_writer(p, 0), "hi\n", 3, NULL, BLITZ_FOREVER), 0);
    bool has_answer = false;
    for (int64_t n; (n = blitz_buffered_line(&in, 100, (const char **)&data, BLITZ_FOREVER)) > 0;)
        has_answer |= n >= 6 && memcmp(data, "got-hi", 6) == 0;
    CHECK(has_answer);
    CHECK_EQ(t_end_of(p).code, 0);
    return 0;
}

TEST(process, a_terminal_of_its_own)
{
    t_on_keepers(terminal, NULL);
}

static int no_pipes(void *arg)
{
    char c;
    blitz_fd fd;
    (void)arg;
    blitz_process *p = t_start(t_command("true", NULL));
    CHECK_EQ(blitz_reader_read(blitz_process_reader(p, 1), &c, 1, BLITZ_FOREVER), -EBADF);
    CHECK_EQ(blitz_writer_write(blitz_process_writer(p, 0), "", 1, BLITZ_FOREVER), -EBADF);
    CHECK_EQ(blitz_process_fd(p, 1, &fd), -EBADF);
    CHECK_EQ(blitz_process_resize(p, 1, 1), -EBADF);
    blitz_process_close(p, 1);
    CHECK_EQ(blitz_process_signal(p, -1), -EINVAL);
    CHECK_EQ(t_end_of(blitz_process_ref(p)).code, 0);
    blitz_process_unref(p);
    return 0;
}

TEST(process, a_target_without_a_pipe_is_an_error)
{
    CHECK_EQ(blitz_run(no_pipes, NULL, NULL), 0);
}
