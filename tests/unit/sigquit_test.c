/* A dump on SIGQUIT: only on request, in any state of the procs, and no other handler is lost. */
#include "harness.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include "blitz.h"
#include "os/sigquit.h"
#include "proc/state.h"

static bz_atomic(int) hogs_run, hogs_end, told_before, told;

static int hogs(void *arg)
{
    (void)arg;
    bz_fetch_add_relaxed(&hogs_run, 1);     /* relaxed: a count */
    while (bz_load_relaxed(&hogs_end) == 0) /* relaxed: a flag; no call into blitz, on purpose */
        continue;
    return 0;
}

static void on_quit_before(int signal)
{
    (void)signal;
    bz_fetch_add_relaxed(&told_before, 1); /* relaxed: a count */
}

static struct sigaction action(void)
{
    struct sigaction now;
    CHECK_EQ(sigaction(SIGQUIT, NULL, &now), 0);
    return now;
}

/* A shell that runs us in the background has it ignored. */
static void as_by_default(void)
{
    CHECK(signal(SIGQUIT, SIG_DFL) != SIG_ERR);
}

static void given_an_earlier_handler(void)
{
    struct sigaction before = {.sa_handler = on_quit_before};
    CHECK_EQ(sigaction(SIGQUIT, &before, NULL), 0);
}

/* Standard error goes to where we can read it. Returns that. */
static int given_a_readable_stderr(void)
{
    int fds[2];
    CHECK_EQ(pipe2(fds, O_CLOEXEC), 0);
    CHECK_EQ(fcntl(fds[1], F_SETPIPE_SZ, 1 << 20) >= 65536, true);
    CHECK_EQ(dup2(fds[1], 2), 2);
    close(fds[1]);
    return fds[0];
}

/* Read until the text has come; the case's time limit ends a wait for what never does. */
static void read_until(int fd, const char *text)
{
    static char said[1 << 16];
    size_t used = 0;
    while (strstr(said, text) == NULL) {
        ssize_t n = read(fd, said + used, sizeof said - 1 - used);
        if (n < 0 && errno == EINTR)
            continue;
        CHECK_GT(n, 0);
        used += (size_t)n;
        said[used] = '\0';
    }
}

TEST(sigquit, bug_34_a_dump_is_written_while_every_proc_is_hogged)
{
    as_by_default();
    blitz_runtime *rt;
    blitz_task *hog[2];
    given_an_earlier_handler();
    int err = given_a_readable_stderr();
    CHECK_EQ(blitz_runtime_new(&(blitz_runtime_opts){.procs = 2, .dump_on_sigquit = 1}, &rt), 0);
    for (unsigned i = 0; i < 2; i++) {
        blitz_spawn_opts opts = {.runtime = rt, .name = "hog", .proc = i + 1};
        CHECK_EQ(blitz_spawn(hogs, NULL, &opts, &hog[i]), 0);
    }
    while (bz_load_relaxed(&hogs_run) < 2) /* relaxed: a count */
        sched_yield();

    CHECK_EQ(kill(getpid(), SIGQUIT), 0);

    read_until(err, "\"hog\" (fiber): running");
    while (bz_load_relaxed(&told_before) ==
           0) /* relaxed: a count. The previous handler is called, too */
        sched_yield();
    bz_store_relaxed(&hogs_end, 1); /* relaxed: a flag */
    for (int i = 0; i < 2; i++)
        CHECK_EQ(blitz_task_join(hog[i], NULL, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_shutdown(rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref(rt), 0);
    CHECK(action().sa_handler == on_quit_before);
    close(err);
}

static int returns(void *arg)
{
    (void)arg;
    return 0;
}

static int looks_at_the_handler(void *arg)
{
    (void)arg;
    CHECK(action().sa_handler == SIG_DFL);
    return 0;
}

/* A library installs no signal handler by default. */
TEST(sigquit, bug_34_the_handler_is_unchanged_by_default)
{
    as_by_default();
    CHECK_EQ(blitz_run(looks_at_the_handler, NULL, NULL), 0);
}

TEST(sigquit, can_be_asked_for_from_outside)
{
    as_by_default();
    setenv("BLITZ_DUMP_ON_SIGQUIT", "1", 1);
    blitz_runtime *rt;
    CHECK_EQ(blitz_runtime_new(&(blitz_runtime_opts){.procs = 1}, &rt), 0);
    CHECK(action().sa_flags & SA_SIGINFO);
    CHECK_EQ(blitz_runtime_block_on(rt, returns, NULL), 0);
    CHECK_EQ(blitz_runtime_shutdown(rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref(rt), 0);
    CHECK(action().sa_handler == SIG_DFL);
    setenv("BLITZ_DUMP_ON_SIGQUIT", "yes", 1);
    CHECK_EQ(blitz_runtime_new(&(blitz_runtime_opts){.procs = 1, .log = NULL}, &rt), -EINVAL);
}

static void on_told(void *count)
{
    bz_fetch_add_relaxed((bz_atomic(int) *)count, 1); /* relaxed: a count */
}

TEST(sigquit, every_watcher_is_called_and_no_other)
{
    as_by_default();
    static bz_atomic(int) count[BZ_SIGQUIT_MAX + 1];
    for (int i = 0; i < BZ_SIGQUIT_MAX; i++)
        CHECK_EQ(bz_sigquit_watch(on_told, &count[i]), 0);
    CHECK_EQ(bz_sigquit_watch(on_told, &count[BZ_SIGQUIT_MAX]), -EAGAIN);
    bz_sigquit_unwatch(&count[3]);
    bz_sigquit_unwatch(&told); /* a context that never watched */
    CHECK_EQ(raise(SIGQUIT), 0);
    for (int i = 0; i <= BZ_SIGQUIT_MAX; i++)
        CHECK_EQ(bz_load_relaxed(&count[i]), i != 3 && i != BZ_SIGQUIT_MAX); /* relaxed: a count */
    for (int i = 0; i < BZ_SIGQUIT_MAX; i++)
        bz_sigquit_unwatch(&count[i]);
    CHECK(action().sa_handler == SIG_DFL);
}

/* Another handler was installed over ours and calls ours: ours stays and forwards. */
static struct sigaction beneath;

static void on_quit_above(int signal, siginfo_t *info, void *context)
{
    beneath.sa_sigaction(signal, info, context);
}

TEST(sigquit, bug_34_a_handler_above_ours_is_left_alone)
{
    as_by_default();
    static bz_atomic(int) count;
    struct sigaction above = {.sa_sigaction = on_quit_above, .sa_flags = SA_SIGINFO};
    given_an_earlier_handler();
    CHECK_EQ(bz_sigquit_watch(on_told, &count), 0);
    CHECK_EQ(sigaction(SIGQUIT, &above, &beneath), 0);
    CHECK_EQ(raise(SIGQUIT), 0);
    CHECK_EQ(bz_load_relaxed(&count), 1); /* relaxed: our own thread's */
    bz_sigquit_unwatch(&count);
    CHECK(action().sa_sigaction == on_quit_above);
    CHECK_EQ(raise(SIGQUIT), 0);
    CHECK_EQ(bz_load_relaxed(&count), 1);       /* relaxed: our own thread's */
    CHECK_EQ(bz_load_relaxed(&told_before), 2); /* relaxed: our own thread's */
}
