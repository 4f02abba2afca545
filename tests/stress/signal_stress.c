/*
 * signal_stress.c - bug classes 12, 34 and 35 on the whole runtime: processes that are frozen, storms of
 * signals, and children that are forked at any point.
 */
#include "support/random_program.h"

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/hogs.h"
#include "support/sanitizers.h"
#include "support/tasks.h"

static void program_burn(uint64_t ns)
{
    uint64_t until = bz_os_now(&bz_os_system) + ns;
    while (bz_os_now(&bz_os_system) < until)
        bz_os_relax(&bz_os_system, 0);
}

/* ---- 34: a storm ---- */

static atomic_ullong handled;
static atomic_bool is_calm;

static void on_signal(int signal)
{
    (void)signal;
    atomic_fetch_add_explicit(&handled, 1, memory_order_relaxed);
}

/* A signal to every thread there is but this one, again and again. */
static void one_wave(int self)
{
    DIR *tasks = opendir("/proc/self/task");
    CHECK_NOT_NULL(tasks);
    for (struct dirent *e; (e = readdir(tasks)) != NULL;) {
        int tid = atoi(e->d_name);
        if (tid > 0 && tid != self)
            syscall(SYS_tgkill, getpid(), tid, SIGUSR1); /* it may have ended */
    }
    closedir(tasks);
}

static void *storm(void *arg)
{
    while (!atomic_load(&is_calm)) {
        one_wave(t_tid());
        sched_yield();
    }
    return arg;
}

static void in_a_storm(int flags, void (*fn)(void))
{
    struct sigaction act = {.sa_handler = on_signal, .sa_flags = flags};
    pthread_t thread;
    if (T_TSAN)
        t_skip("this sanitizer keeps signals back");
    CHECK_EQ(sigaction(SIGUSR1, &act, NULL), 0);
    CHECK_EQ(pthread_create(&thread, NULL, storm, NULL), 0);
    fn();
    atomic_store(&is_calm, true);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    t_note("%llu signals handled", atomic_load(&handled));
}

static void random_programs(void)
{
    static const unsigned procs[] = {1, 2, 3, 8};
    for (uint64_t i = 0, n = t_scaled(150); i < n || atomic_load(&handled) < n; i++) {
        uint64_t seed = t_random();
        struct program p = {seed, procs[seed % 4], (int)(seed >> 4 & 1)};
        t_watch("program 0x%llx, %u procs", (unsigned long long)seed, p.procs);
        play_program(&bz_os_system, &p);
    }
}

/* A handler that does not restart system calls: every wait of ours may be interrupted. */
TEST_LIMIT(signal, bug_34_random_programs_in_a_storm_of_signals, 120)
{
    in_a_storm(SA_ONSTACK, random_programs);
}

static int blocks(void *arg)
{
    (void)arg;
    return (int)usleep(100); /* lint: allow test-sleep: a system call that a signal ends early */
}

static int calls_that_block(void *arg)
{
    (void)arg;
    for (uint64_t i = 0, n = t_scaled(300); i < n || atomic_load(&handled) < n; i++) {
        int rc = blitz_blocking(blocks, NULL);
        CHECK(rc == 0 || rc == -1); /* the result of the call, interrupted or not */
        CHECK_EQ(blitz_sleep(50 * BLITZ_US), 0);
    }
    return 0;
}

static void blocking_calls(void)
{
    CHECK_EQ(blitz_run(calls_that_block, NULL, &(blitz_runtime_opts){.procs = 2}), 0);
}

TEST_LIMIT(signal, bug_34_calls_that_block_in_a_storm_of_signals, 120)
{
    in_a_storm(SA_ONSTACK, blocking_calls);
}

/* ---- 34: listeners in a storm ---- */

enum { LISTENERS = 3 };
static atomic_ullong heard[LISTENERS];

static int listens(void *arg)
{
    uint64_t mine = 0, own = (uint64_t)(uintptr_t)arg;
    blitz_signal *s;
    blitz_signal_event got;
    unsigned long long before = atomic_load(&handled); /* before the listener hears any */
    CHECK_EQ(blitz_signal_listen(&(int){SIGUSR1}, 1, &(blitz_signal_opts){.chains = true}, &s), 0);
    for (uint64_t i = 0, n = t_scaled(300); i < n || mine < n; i++) {
        int rc = blitz_signal_recv(s, &got, blitz_after(50 * BLITZ_US));
        CHECK(rc == 0 || rc == -ETIMEDOUT);
        mine += rc == 0 ? got.count : 0;
    }
    CHECK_LE(mine, atomic_load(&handled) - before + 100); /* handlers between count and chain */
    atomic_store(&heard[own], mine);
    blitz_signal_unref(s);
    return 0;
}

static int listeners(void *arg)
{
    blitz_task *t[LISTENERS];
    for (uintptr_t i = 0; i < LISTENERS; i++)
        CHECK_EQ(blitz_spawn(listens, (void *)i, NULL, &t[i]), 0);
    for (int i = 0; i < LISTENERS; i++)
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
    (void)arg;
    return 0;
}

static void listening(void)
{
    CHECK_EQ(blitz_run(listeners, NULL, &(blitz_runtime_opts){.procs = 2}), 0);
}

/* Our handler in the storm: it comes and goes with its listeners, chains, and each listener hears. */
TEST_LIMIT(signal, bug_34_listeners_in_a_storm_of_signals, 120)
{
    in_a_storm(SA_ONSTACK, listening);
    t_note("heard %llu, %llu, %llu", atomic_load(&heard[0]), atomic_load(&heard[1]),
           atomic_load(&heard[2]));
}

/* ---- hogs that are stopped, for the rest ---- */

enum { HOGS = 4 };
static struct t_hog hog[HOGS];

static int spins(void *arg)
{
    t_hog_burn(arg);
    return 0;
}

/* More loops than CPUs: they take turns, where threads can be interrupted. */
static blitz_runtime *with_loops(blitz_task *t[HOGS])
{
    blitz_runtime *rt;
    CHECK_EQ(blitz_runtime_new(&(blitz_runtime_opts){.procs = 2}, &rt), 0);
    for (int i = 0; i < HOGS; i++) {
        atomic_init(&hog[i].turns, 0);
        atomic_init(&hog[i].is_over, false);
        CHECK_EQ(blitz_spawn(spins, &hog[i], &(blitz_spawn_opts){.runtime = rt}, &t[i]), 0);
    }
    for (int i = 0; i < HOGS; i++)
        t_hog_until_it_runs(&hog[i]);
    return rt;
}

static void end_loops(blitz_runtime *rt, blitz_task *t[HOGS])
{
    for (int i = 0; i < HOGS; i++)
        atomic_store(&hog[i].is_over, true);
    for (int i = 0; i < HOGS; i++)
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_shutdown(rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref(rt), 0);
}

/* ---- 35: fork ---- */

static int status_of(pid_t pid)
{
    int status = -1;
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int fork_and_leave(void *how)
{
    pid_t pid = fork();
    CHECK_GE(pid, 0);
    if (pid == 0) {
        if (how == NULL)
            _exit(3);
        execl("/bin/sh", "sh", "-c", "exit 3", (char *)NULL);
        _exit(4);
    }
    CHECK_EQ(status_of(pid), 3);
    return 0;
}

/* From outside, from a task, and beside threads that are stopped in a handler: the child has none of
 * them, and the parent does not notice. */
TEST_LIMIT(signal, bug_35_a_child_forked_beside_stopped_threads_may_exec_or_exit, 120)
{
    blitz_task *t[HOGS];
    blitz_runtime *rt = with_loops(t);
    for (uint64_t i = 0, n = t_scaled(60); i < n; i++) {
        void *how = i % 2 == 0 ? NULL : rt;
        fork_and_leave(how);
        CHECK_EQ(blitz_runtime_block_on(rt, fork_and_leave, how), 0);
    }
    end_loops(rt, t);
}

/* ---- 12: frozen ---- */

enum { TICKS = 60, PERIOD_MS = 5 };

/* Ticks by absolute times: those that were missed are made up for, none is lost. */
static int ticks(void *arg)
{
    uint64_t start = blitz_now();
    for (int i = 1; i <= TICKS; i++) {
        uint64_t when = start + (uint64_t)i * PERIOD_MS * BLITZ_MS;
        CHECK_EQ(blitz_sleep_until(when), 0);
        CHECK_GE(blitz_now(), when);
        atomic_fetch_add((atomic_ullong *)arg, 1);
    }
    return 0;
}

static int computes(void *arg)
{
    atomic_ullong *ticked = arg;
    while (atomic_load(ticked) < 2 * TICKS)
        ;
    return 0;
}

static int lives_on(void *arg)
{
    blitz_task *t[4];
    CHECK_EQ(blitz_spawn(computes, arg, NULL, &t[0]), 0);
    CHECK_EQ(blitz_spawn(computes, arg, NULL, &t[1]), 0);
    CHECK_EQ(blitz_spawn(ticks, arg, NULL, &t[2]), 0);
    CHECK_EQ(blitz_spawn(ticks, arg, NULL, &t[3]), 0);
    for (int i = 0; i < 4; i++)
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
    return 7;
}

/* Stop the whole process, wait until it is stopped, continue it; repeat until it has ended. Returns
 * how it ended. */
static int freeze_again_and_again(pid_t pid, int *times)
{
    for (int status;; (*times)++) {
        CHECK_EQ(kill(pid, SIGSTOP), 0);
        CHECK_EQ(waitpid(pid, &status, WUNTRACED), pid);
        if (!WIFSTOPPED(status))
            return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
        usleep(12000); /* lint: allow test-sleep: the time of the freeze is the input */
        CHECK_EQ(kill(pid, SIGCONT), 0);
        usleep(3000); /* lint: allow test-sleep: likewise, the time it may run */
    }
}

/* Hogs, timers and the monitor resume after a freeze: every tick comes, and the gap is not mistaken
 * for a hang. */
TEST_LIMIT(signal, bug_12_a_process_that_is_frozen_again_and_again_goes_on, 120)
{
    static atomic_ullong ticked;
    int times = 0;
    pid_t pid = fork();
    CHECK_GE(pid, 0);
    if (pid == 0) {
        raise(SIGSTOP); /* once for certain */
        _exit(blitz_run(lives_on, &ticked, &(blitz_runtime_opts){.procs = 2}));
    }
    CHECK_EQ(freeze_again_and_again(pid, &times), 7);
    t_note("frozen %d times", times);
    CHECK_GT(times, 0);
}
