/* Failures of the system while a process is started and waited for: an error each, and nothing is left. */
#include "support/proc.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io/attempt.h"
#include "support/keepers.h"

/* ---- the n-th call of a name fails ---- */

static struct {
    const char *call;
    int nth, error;
} plan;

static int fail_nth(const char *call)
{
    if (plan.call == NULL || strcmp(call, plan.call) != 0 || plan.nth == 0 || --plan.nth > 0)
        return 0;
    return plan.error;
}

static bool has_children(void)
{
    siginfo_t info;
    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

static int open_descriptors(void)
{
    int count = 0;
    for (int fd = 0; fd < 256; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

/* A command with everything that can fail. */
static blitz_command *given_a_command(void)
{
    blitz_command *c = t_command("cat", NULL);
    blitz_command_stdio(c, 0, BLITZ_STDIO_TO_CHILD);
    blitz_command_stdio(c, 1, BLITZ_STDIO_FROM_CHILD);
    blitz_command_stdio(c, 2, BLITZ_STDIO_NULL);
    blitz_command_file(c, 5, "/dev/null", BLITZ_FILE_READ);
    return c;
}

struct fault {
    const char *call;
    int nth, error;
    blitz_start_step step;
};

static int start_with_faults(void *arg)
{
    static const struct fault faults[] = {
        {"clone", 1, EAGAIN, BLITZ_START_PROCESS}, {"clone", 1, ENOMEM, BLITZ_START_PROCESS},
        {"clone", 1, EMFILE, BLITZ_START_PROCESS}, {"pipe2", 1, EMFILE, BLITZ_START_OPEN},
        {"pipe2", 2, ENFILE, BLITZ_START_OPEN},    {"open", 1, EMFILE, BLITZ_START_OPEN},
        {"open", 2, EACCES, BLITZ_START_OPEN},
    };
    (void)arg;
    blitz_command *c = given_a_command();
    blitz_process_unref(t_start(t_command("true", NULL))); /* the driver has its descriptors now */
    while (has_children())
        blitz_process_unref(t_start(t_command("true", NULL)));
    for (size_t i = 0; i < BZ_ARRAY_LEN(faults); i++) {
        const struct fault *f = &faults[i];
        blitz_process *p = NULL;
        blitz_start_failure why = {.name = NULL};
        int before = open_descriptors();
        plan.call = f->call;
        plan.error = f->error;
        plan.nth = f->nth;
        t_watch("%s, call %d, error %d", f->call, f->nth, f->error);
        CHECK_EQ(blitz_command_start(c, &why, &p), -f->error);
        CHECK_EQ(plan.nth, 0); /* it was called */
        CHECK_EQ(why.step, f->step);
        CHECK_NULL(p);
        CHECK_EQ(open_descriptors(), before);
        CHECK(!has_children());
    }
    plan.call = NULL;
    blitz_command_unref(c);
    return 0;
}

TEST(process_fault, every_refused_call_of_a_start_is_an_error_and_leaks_nothing)
{
    bz_io_fault = fail_nth;
    t_on_keepers(start_with_faults, NULL);
    bz_io_fault = NULL;
}

/* ---- no pidfds ---- */

static int refuses_pidfds(const char *call)
{
    return strcmp(call, "pidfd") == 0 ? ENOSYS : 0;
}

static int without_pidfds(void *arg)
{
    enum { CHILDREN = 12 };
    blitz_process *p[CHILDREN];
    char text[64];
    blitz_exit e;
    (void)arg;
    for (int i = 0; i < CHILDREN; i++) {
        snprintf(text, sizeof text, "exit %d", i);
        p[i] = t_start(t_shell(text));
    }
    for (int i = 0; i < CHILDREN; i++)
        CHECK_EQ(t_end_of(p[i]).code, i);
    p[0] = t_start(t_command("sleep", "1000", NULL));
    CHECK_EQ(blitz_process_wait(p[0], &e, blitz_after(2 * BLITZ_MS)), -ETIMEDOUT);
    CHECK_EQ(blitz_process_stop(p[0], BLITZ_FOREVER / 4, &e, BLITZ_FOREVER), 0);
    CHECK_EQ(e.signal, SIGTERM);
    blitz_process_unref(p[0]);
    blitz_output o = t_output(t_shell("echo text"));
    CHECK_STR_EQ(o.out, "text\n");
    blitz_output_drop(&o);
    return 0;
}

static bz_atomic(int) told_before;

static void on_child(int signal)
{
    (void)signal;
    bz_fetch_add_relaxed(&told_before, 1); /* relaxed: a count */
}

/* Old systems and sandboxes have none: SIGCHLD takes their place, and the program's handler is still called. */
TEST(process_fault, bug_18_without_pidfds_a_wait_hears_of_the_end)
{
    struct sigaction now, before = {.sa_handler = on_child, .sa_flags = SA_RESTART};
    CHECK_EQ(sigaction(SIGCHLD, &before, NULL), 0);
    bz_io_fault = refuses_pidfds;
    t_on_keepers(without_pidfds, NULL);
    bz_io_fault = NULL;
    CHECK_EQ(sigaction(SIGCHLD, NULL, &now), 0);
    CHECK(now.sa_handler == on_child);
    CHECK_GT(bz_load_relaxed(&told_before), 0); /* relaxed: a count */
}

static int foreign_without_pidfds(void *arg)
{
    int foreign = fork(), status;
    (void)arg;
    if (foreign == 0)
        _exit(42);
    CHECK_EQ(t_end_of(t_start(t_shell("exit 1"))).code, 1);
    while (waitpid(foreign, &status, 0) < 0)
        CHECK_EQ(errno, EINTR);
    CHECK_EQ(WEXITSTATUS(status), 42);
    return 0;
}

TEST(process_fault, bug_36_without_pidfds_children_of_other_code_are_not_reaped)
{
    bz_io_fault = refuses_pidfds;
    t_on_keepers(foreign_without_pidfds, NULL);
    bz_io_fault = NULL;
}

/* ---- a real shortage ---- */

static int with_few_descriptors(void *arg)
{
    struct rlimit was, few;
    blitz_command *c = given_a_command();
    int failed = 0, started = 0;
    (void)arg;
    blitz_process_unref(t_start(t_command("true", NULL)));
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &was), 0);
    int base = open_descriptors();
    for (int room = 0; room < 14; room++) {
        blitz_process *p;
        few = was;
        few.rlim_cur = (rlim_t)base + (rlim_t)room;
        CHECK_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
        int err = blitz_command_start(c, NULL, &p);
        CHECK_EQ(setrlimit(RLIMIT_NOFILE, &was), 0);
        if (err == 0) {
            blitz_process_close(p, 0);
            (void)t_end_of(p);
        }
        CHECK(err == 0 || err == -EMFILE || err == -EBADF || err == -EINVAL);
        failed += err != 0;
        started += err == 0;
    }
    CHECK_GT(failed, 0);
    CHECK_GT(started, 0);
    while (has_children())
        blitz_process_unref(t_start(t_command("true", NULL)));
    blitz_command_unref(c);
    return 0;
}

TEST(process_fault, with_every_number_of_free_descriptors_a_start_works_or_fails_cleanly)
{
    t_on_keepers(with_few_descriptors, NULL);
}

/* ---- pipes ---- */

/* A child that never reads: the pipe fills, and a write waits until its deadline. */
static int full_pipe(void *arg)
{
    static char data[1 << 20];
    size_t done = 0;
    (void)arg;
    blitz_command *c = t_command("sleep", "1000", NULL);
    blitz_command_stdio(c, 0, BLITZ_STDIO_TO_CHILD);
    blitz_process *p = t_start(c);
    blitz_writer w = blitz_process_writer(p, 0);
    CHECK_EQ(blitz_writer_write_all(w, data, sizeof data, &done, blitz_after(5 * BLITZ_MS)),
             -ETIMEDOUT);
    CHECK_GT(done, 0);
    CHECK_LT(done, sizeof data);
    /* The child is killed: the pipe breaks, without a signal for us. */
    CHECK_EQ(blitz_process_kill(p), 0);
    CHECK_EQ(blitz_process_wait(p, NULL, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_writer_write(w, data, 1, BLITZ_FOREVER), -EPIPE);
    blitz_process_unref(p);
    return 0;
}

TEST(process_fault, a_full_pipe_waits_and_a_killed_child_breaks_it)
{
    t_on_keepers(full_pipe, NULL);
}

static int killed_while_it_writes(void *arg)
{
    char text[64];
    (void)arg;
    blitz_command *c = t_shell("printf half; kill -9 $$");
    blitz_command_stdio(c, 1, BLITZ_STDIO_FROM_CHILD);
    blitz_process *p = t_start(c);
    size_t done = 0;
    CHECK_EQ(blitz_reader_read_exact(blitz_process_reader(p, 1), text, 10, &done, BLITZ_FOREVER),
             -EPIPE);
    CHECK_EQ(done, 4);
    CHECK_EQ(t_end_of(p).signal, SIGKILL);
    return 0;
}

TEST(process_fault, what_a_killed_child_wrote_is_there_and_then_the_end)
{
    t_on_keepers(killed_while_it_writes, NULL);
}
