/* sched/turns.c on real threads: a hog is stopped only where that is allowed, and continues. */
#include "harness.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "os/lock.h"
#include "os/interrupt.h"
#include "proc/enter.h"
#include "support/hogs.h"
#include "support/tasks.h"

static struct t_hog hog;
static blitz_runtime *rt;
static blitz_task *task;

static int nothing(void *arg)
{
    (void)arg;
    return 0;
}

static void watch_or_skip(void)
{
    int err = bz_os_interrupt_watch(&bz_os_system, bz_turns_interrupted);
    if (err == -ENOSYS)
        t_skip("threads cannot be interrupted in this build");
    CHECK_EQ(err, 0);
}

/* The test is the monitor: the runtime's own lets hogs be. With one proc the hog has lost it once another task has run. */
static struct bz_machine *given_a_hog(int (*fn)(void *), unsigned procs)
{
    watch_or_skip();
    CHECK_EQ(blitz_runtime_new(&(blitz_runtime_opts){.procs = procs, .no_rotation = 1}, &rt), 0);
    atomic_init(&hog.turns, 0);
    atomic_init(&hog.is_over, false);
    atomic_init(&hog.on, NULL);
    CHECK_EQ(blitz_spawn(fn, &hog, &(blitz_spawn_opts){.runtime = rt}, &task), 0);
    struct bz_machine *m = t_hog_machine(&hog);
    CHECK_EQ(blitz_runtime_block_on(rt, nothing, NULL), 0);
    return m;
}

static void done(void)
{
    atomic_store(&hog.is_over, true);
    CHECK_EQ(blitz_task_join(task, NULL, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_shutdown(rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref(rt), 0);
    bz_os_interrupt_unwatch(&bz_os_system);
}

static uint64_t now(void)
{
    return bz_os_now(&bz_os_system);
}

static bool is_stopped(struct bz_machine *m)
{
    return bz_halt_is_stopped(&m->turn.halt);
}

static void until_stopped(struct bz_machine *m)
{
    while (!is_stopped(m)) {
        bz_turns_stop(m, now());
        sched_yield();
    }
}

static void until_refused(struct bz_machine *m, uint64_t times)
{
    while (bz_load_relaxed(&m->turn.refused) < times) {
        bz_turns_stop(m, now());
        CHECK(!is_stopped(m));
        sched_yield();
    }
}

static int burns(void *h)
{
    atomic_store(&hog.on, bz_machine_self());
    t_hog_burn(h);
    return 0;
}

/* ---- stop and go ---- */

TEST(turns_signal, a_hog_stops_where_it_stands_and_goes_on)
{
    struct bz_machine *m = given_a_hog(burns, 1);
    for (uint64_t round = 0; round < t_scaled(50); round++) {
        until_stopped(m);
        unsigned long long turns = atomic_load(&hog.turns);
        sched_yield();
        unsigned long long later = atomic_load(&hog.turns);
        if (is_stopped(m)) /* else it has found that the monitor does not look */
            CHECK_EQ(later, turns);
        bz_turns_go(m, now());
        t_hog_until_it_runs(&hog);
    }
    CHECK_GT(bz_load_relaxed(&m->turn.stopped), (uint64_t)0);
    done();
}

/* turns.c rule 2: the monitor may wait for a lock that a stopped hog holds. Here it does not look at all. */
TEST(turns_signal, a_stopped_hog_goes_on_by_itself_if_the_monitor_does_not_look)
{
    struct bz_machine *m = given_a_hog(burns, 1);
    until_stopped(m);
    t_hog_until_it_runs(&hog);
    done();
}

static void refuses(int (*fn)(void *), unsigned procs)
{
    struct bz_machine *m = given_a_hog(fn, procs);
    until_refused(m, 5);
    CHECK(!is_stopped(m));
    bz_turns_go(m, now());
    done();
}

static int burns_paused(void *h)
{
    atomic_store(&hog.on, bz_machine_self());
    blitz_preempt_pause();
    t_hog_burn(h);
    blitz_preempt_resume();
    return 0;
}

TEST(turns_signal, between_pause_and_resume_a_hog_is_not_stopped)
{
    refuses(burns_paused, 1);
}

static int burns_in_the_runtime(void *h)
{
    uint32_t was;
    atomic_store(&hog.on, bz_machine_self());
    (void)!bz_enter(&was);
    t_hog_burn(h);
    bz_leave(was);
    return 0;
}

TEST(turns_signal, in_the_runtime_a_hog_is_not_stopped)
{
    refuses(burns_in_the_runtime, 2);
}

static int burns_with_a_lock(void *h)
{
    struct bz_lock lock = BZ_LOCK_INIT;
    atomic_store(&hog.on, bz_machine_self());
    bz_lock_take(&lock, &bz_os_system);
    t_hog_burn(h);
    bz_lock_drop(&lock, &bz_os_system);
    return 0;
}

TEST(turns_signal, a_hog_that_holds_a_lock_of_the_runtime_is_not_stopped)
{
    refuses(burns_with_a_lock, 1);
}

/* Two procs, and nothing waits: the hog keeps its proc. */
TEST(turns_signal, a_hog_with_a_proc_is_not_stopped)
{
    refuses(burns, 2);
}

#if !defined(__SANITIZE_ADDRESS__)
enum { BYTES = 64 << 20 };
static char *bytes;

static int burns_in_libc(void *h)
{
    atomic_store(&hog.on, bz_machine_self());
    atomic_store(&hog.turns, 1);
    while (!atomic_load(&((struct t_hog *)h)->is_over))
        memset(bytes, 1, BYTES);
    return 0;
}

/* It might hold malloc's lock. */
TEST(turns_signal, a_hog_in_the_c_library_is_not_stopped)
{
    bytes = malloc(BYTES);
    CHECK_NOT_NULL(bytes);
    refuses(burns_in_libc, 1);
    free(bytes);
}
#endif

TEST(turns_signal, a_go_before_the_signal_has_come_is_a_go)
{
    struct bz_machine *m = given_a_hog(burns, 1);
    for (uint64_t round = 0; round < t_scaled(1000); round++) {
        bz_turns_stop(m, now());
        bz_turns_go(m, now());
    }
    t_hog_until_it_runs(&hog);
    done();
}

/* An idle worker sleeps in the runtime, and a thread may be gone when the monitor signals it. */
TEST(turns_signal, a_thread_that_is_gone_is_left_alone)
{
    struct bz_machine *m = given_a_hog(burns, 1);
    atomic_store(&hog.is_over, true);
    CHECK_EQ(blitz_task_join(task, NULL, BLITZ_FOREVER), 0);
    uint64_t stopped = bz_load_relaxed(&m->turn.stopped);
    bz_turns_stop(m, now());
    CHECK_EQ(bz_os_thread_interrupt(&bz_os_system, 0x3ffffffe), -ESRCH);
    CHECK_EQ(bz_load_relaxed(&m->turn.stopped), stopped);
    bz_turns_go(m, now());
    CHECK_EQ(blitz_spawn(burns, &hog, &(blitz_spawn_opts){.runtime = rt}, &task), 0);
    done();
}

static int burns_and_keeps_errno(void *h)
{
    atomic_store(&hog.on, bz_machine_self());
    errno = 4711;
    t_hog_burn(h);
    CHECK_EQ(errno, 4711);
    return 0;
}

TEST(turns_signal, errno_is_as_it_was)
{
    struct bz_machine *m = given_a_hog(burns_and_keeps_errno, 1);
    until_stopped(m);
    bz_turns_go(m, now());
    done();
}

/* ---- which code ---- */

static int some_code(void)
{
    return 1;
}

TEST(turns_signal, code_of_the_program_may_be_stopped_and_the_c_library_may_not)
{
    static const char *const names[] = {"malloc", "free", "fwrite", "dlopen", "pthread_create"};
    bz_code_find();
    CHECK(bz_code_may_stop((uintptr_t)some_code));
    for (size_t i = 0; i < BZ_ARRAY_LEN(names); i++) {
        void *at = dlsym(RTLD_DEFAULT, names[i]);
        t_watch("%s", names[i]);
        if (at != NULL)
            CHECK(!bz_code_may_stop((uintptr_t)at));
    }
}

/* ---- handlers ---- */

static volatile sig_atomic_t earlier;

static void earlier_handler(int signal)
{
    (void)signal;
    earlier++;
}

static bool is_installed(void (*handler)(int))
{
    struct sigaction now_is;
    CHECK_EQ(sigaction(SIGURG, NULL, &now_is), 0);
    return now_is.sa_handler == handler;
}

TEST(turns_signal, a_runtime_without_hogs_installs_no_handler)
{
    blitz_runtime *plain;
    CHECK_EQ(blitz_runtime_new(NULL, &plain), 0);
    CHECK_EQ(blitz_runtime_block_on(plain, nothing, NULL), 0);
    CHECK(is_installed(SIG_DFL));
    CHECK_EQ(blitz_runtime_shutdown(plain, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref(plain), 0);
}

/* Bug class 34: a handler of the program's own gets its signals and not ours, and is back at the end. */
TEST(turns_signal, bug_34_an_earlier_handler_gets_foreign_signals_and_is_restored)
{
    struct sigaction action = {.sa_handler = earlier_handler};
    CHECK_EQ(sigaction(SIGURG, &action, NULL), 0);
    struct bz_machine *m = given_a_hog(burns, 1);
    CHECK(!is_installed(earlier_handler));

    raise(SIGURG);
    CHECK_EQ((int)earlier, 1);
    until_stopped(m);
    bz_turns_go(m, now());
    CHECK_EQ((int)earlier, 1);

    done();
    CHECK(is_installed(earlier_handler));
}

TEST(turns_signal, two_runtimes_share_the_handler_and_the_last_takes_it_down)
{
    watch_or_skip();
    watch_or_skip();
    bz_os_interrupt_unwatch(&bz_os_system);
    CHECK(!is_installed(SIG_DFL));
    bz_os_interrupt_unwatch(&bz_os_system);
    CHECK(is_installed(SIG_DFL));
}

/* A handler that comes later and does not call ours: ours is not called, and does not take it down. */
TEST(turns_signal, a_handler_put_over_ours_stays)
{
    struct sigaction action = {.sa_handler = earlier_handler};
    watch_or_skip();
    CHECK_EQ(sigaction(SIGURG, &action, NULL), 0);
    bz_os_interrupt_unwatch(&bz_os_system);
    CHECK(is_installed(earlier_handler));
}

TEST(turns_signal, a_sleeping_thread_is_told_from_one_that_runs)
{
    uint32_t me = bz_os_thread_id(&bz_os_system);
    int sleeps = bz_os_thread_sleeps(&bz_os_system, me);
    CHECK(sleeps == 0 || sleeps == -ENOSYS);
    CHECK_EQ(bz_os_thread_sleeps(&bz_os_system, 0x3ffffffe), -ESRCH);
}
