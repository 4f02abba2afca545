/*
 * Hogs in a process to which things are done from outside: it is stopped and continued, and it gets half
 * a CPU. The monitor goes by a clock, and both make it lie: every thread "has been at one thing" for as
 * long as the process stood still. Nothing may come of that but a proc that moves once too often.
 */
#include "support/fair_scenes.h"

#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void hog_step(void)
{
    bz_os_relax(&bz_os_system, 0);
}

/* In a child process: all other tasks make progress beside two hogs on two procs. Exit on
 * failure. */
static void live_beside_hogs(void)
{
    if (blitz_run(others_beside_hogs, (void *)(uintptr_t)2, &(blitz_runtime_opts){.procs = 2}) != 0)
        _exit(1);
}

/* ---- stopped and continued ---- */

/* Stop it, let it go on for a while, again, until it has ended. Returns its status. */
static int stop_and_go(pid_t child, unsigned *stops)
{
    int status = -1;
    for (;;) {
        CHECK_EQ(kill(child, SIGSTOP), 0);
        CHECK_EQ(waitpid(child, &status, WUNTRACED), child);
        if (!WIFSTOPPED(status))
            return status;
        ++*stops;
        CHECK_EQ(kill(child, SIGCONT), 0);
        CHECK_EQ(waitpid(child, &status, WCONTINUED), child);
        if (!WIFCONTINUED(status))
            return status;
        for (int i = 0; i < 500; i++)
            sched_yield();
    }
}

TEST(fair, a_process_that_is_stopped_and_continued_goes_on)
{
    int ready[2];
    unsigned stops = 0;
    char c;
    CHECK_EQ(pipe(ready), 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        CHECK_EQ(write(ready[1], "r", 1), 1);
        for (uint64_t i = t_scaled(20); i > 0; i--)
            live_beside_hogs();
        _exit(0);
    }
    CHECK_EQ(read(ready[0], &c, 1), 1);
    int status = stop_and_go(child, &stops);
    CHECK(WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), 0);
    t_note("stopped %u times", stops);
    close(ready[0]);
    close(ready[1]);
}

/* ---- half a CPU ---- */

/* On a system so busy that the group gets less than its quota it never runs out of it. */
enum { ROUNDS = 30 };

static bool write_text(const char *dir, const char *file, const char *text)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", dir, file);
    FILE *f = fopen(path, "w");
    if (f == NULL)
        return false;
    bool ok = fputs(text, f) >= 0;
    return fclose(f) == 0 && ok;
}

/* How often the group ran out of its quota. */
static unsigned long throttled(const char *dir)
{
    char path[512], line[128];
    unsigned long count = 0;
    snprintf(path, sizeof path, "%s/cpu.stat", dir);
    FILE *f = fopen(path, "r");
    while (f != NULL && fgets(line, sizeof line, f) != NULL)
        if (sscanf(line, "nr_throttled %lu", &count) == 1)
            break;
    if (f != NULL)
        fclose(f);
    return count;
}

static int live_in_the_group(const char *dir)
{
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        char pid[32];
        snprintf(pid, sizeof pid, "%d\n", (int)getpid());
        if (!write_text(dir, "cgroup.procs", pid))
            _exit(255);
        for (int i = 0; i < ROUNDS && throttled(dir) < 3; i++)
            live_beside_hogs();
        _exit(0);
    }
    int status = -1;
    CHECK_EQ(waitpid(child, &status, 0), child);
    return status;
}

/* In half of every 100 ms no thread runs, not even the monitor. */
TEST(fair, bug_09_with_half_a_cpu_all_tasks_run_beside_hogs)
{
    char dir[128];
    snprintf(dir, sizeof dir, "/sys/fs/cgroup/cpu/blitz-fair-%d", (int)getpid());
    if (mkdir(dir, 0755) != 0)
        t_skip("the cpu controller of cgroup v1 cannot be written: %s", strerror(errno));
    bool is_set = write_text(dir, "cpu.cfs_period_us", "100000") &&
                  write_text(dir, "cpu.cfs_quota_us", "50000");
    int status = is_set ? live_in_the_group(dir) : -1;
    unsigned long times = throttled(dir);
    rmdir(dir);
    if (!is_set || (WIFEXITED(status) && WEXITSTATUS(status) == 255))
        t_skip("the cpu controller of cgroup v1 takes no quota here");
    CHECK(WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), 0);
    t_note("throttled %lu times", times);
}
