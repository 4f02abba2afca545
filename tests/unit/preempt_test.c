/* sched/preempt.c on real threads: stopped where it may be, refused where not, and let go. */
#include "harness.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "os/urge.h"
#include "support/hogs.h"
#include "support/tasks.h"

static struct t_hog hog;
static blitz_runtime *rt;
static blitz_task *task;

/* The test is the monitor: the runtime's own leaves these machines alone. */
static struct bz_machine *given_a_hog(int (*fn)(void *))
{
    rt = t_preemptive_runtime(2);
    atomic_init(&hog.turns, 0);
    atomic_init(&hog.is_over, false);
    atomic_init(&hog.on, NULL);
    CHECK_EQ(blitz_spawn(fn, &hog, &(blitz_spawn_opts){.runtime = rt}, &task), 0);
    struct bz_machine *m = t_hog_machine(&hog);
    ((struct bz_runtime *)rt)->is.is_preemptive = false;
    return m;
}

static void done(void)
{
    atomic_store(&hog.is_over, true);
    CHECK_EQ(blitz_task_join(task, BLITZ_FOREVER, NULL), 0);
    ((struct bz_runtime *)rt)->is.is_preemptive = true;
    CHECK_EQ(blitz_runtime_shutdown(rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref(rt), 0);
}

static uint64_t now(void)
{
    return bz_os_now(&bz_os_linux);
}

static void until_stopped(struct bz_machine *m)
{
    while (!bz_preempt_is_stopped(m)) {
        bz_preempt_stop(m, now());
        sched_yield();
    }
}

static void until_refused(struct bz_machine *m, uint64_t times)
{
    while (bz_load_relaxed(&m->seat.refused) < times) {
        bz_preempt_stop(m, now());
        CHECK(!bz_preempt_is_stopped(m));
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

TEST(preempt, registered_code_is_stopped_where_it_is_and_goes_on)
{
    struct bz_machine *m = given_a_hog(burns);
    CHECK_EQ(blitz_preempt_register_marked(), 0);

    for (uint64_t round = 0; round < t_scaled(50); round++) {
        until_stopped(m);
        unsigned long long turns = atomic_load(&hog.turns);
        sched_yield();
        CHECK_EQ(atomic_load(&hog.turns), turns);
        bz_preempt_go(m, now());
        t_hog_until_it_runs(&hog);
    }
    CHECK_GE(bz_load_relaxed(&m->seat.stopped),
             (uint64_t)t_scaled(50) - 1); /* the last may be leaving */
    done();
}

static int burns_elsewhere(void *h)
{
    atomic_store(&hog.on, bz_machine_self());
    t_hog_burn_elsewhere(h);
    return 0;
}

/* It might be malloc. */
TEST(preempt, other_code_is_not_stopped)
{
    struct bz_machine *m = given_a_hog(burns_elsewhere);
    CHECK_EQ(blitz_preempt_register_marked(), 0);

    until_refused(m, 5);

    CHECK(!bz_preempt_is_stopped(m));
    t_hog_until_it_runs(&hog);
    bz_preempt_go(m, now());
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

/* It may hold a lock that blitz knows nothing of. */
TEST(preempt, between_pause_and_resume_nothing_is_stopped)
{
    struct bz_machine *m = given_a_hog(burns_paused);
    CHECK_EQ(blitz_preempt_register_marked(), 0);

    until_refused(m, 5);

    CHECK(!bz_preempt_is_stopped(m));
    bz_preempt_go(m, now());
    done();
}

static int burns_in_the_runtime(void *h)
{
    uint32_t was;
    (void)!bz_enter(&was);
    atomic_store(&hog.on, bz_machine_self());
    t_hog_burn(h);
    bz_leave(was);
    return 0;
}

/* A hook of the program's own, called from the middle of the runtime, is registered code, too. */
TEST(preempt, in_the_runtime_nothing_is_stopped)
{
    struct bz_machine *m = given_a_hog(burns_in_the_runtime);
    CHECK_EQ(blitz_preempt_register_marked(), 0);

    until_refused(m, 5);

    CHECK(!bz_preempt_is_stopped(m));
    bz_preempt_go(m, now());
    done();
}

TEST(preempt, code_that_is_unregistered_is_not_stopped_any_more)
{
    struct bz_machine *m = given_a_hog(burns);
    CHECK_EQ(blitz_preempt_register_marked(), 0);
    until_stopped(m);
    bz_preempt_go(m, now());

    CHECK_EQ(blitz_preempt_unregister(blitz_marked_begin_, blitz_marked_end_), 0);

    uint64_t before = bz_load_relaxed(&m->seat.refused);
    until_refused(m, before + 5);
    CHECK(!bz_preempt_is_stopped(m));
    bz_preempt_go(m, now());
    done();
}

/* It has to unwind, and who waits for its end must not wait for its turn. */
TEST(preempt, a_stopped_task_that_is_cancelled_goes_on_and_is_not_stopped_again)
{
    struct bz_machine *m = given_a_hog(burns);
    CHECK_EQ(blitz_preempt_register_marked(), 0);
    until_stopped(m);

    blitz_task_cancel(task);

    t_hog_until_it_runs(&hog);
    until_refused(m, bz_load_relaxed(&m->seat.refused) + 5);
    CHECK(!bz_preempt_is_stopped(m));
    bz_preempt_go(m, now());
    done();
}

TEST(preempt, a_go_before_the_signal_has_come_is_a_go)
{
    struct bz_machine *m = given_a_hog(burns);
    CHECK_EQ(blitz_preempt_register_marked(), 0);

    for (uint64_t round = 0; round < t_scaled(1000); round++) {
        bz_preempt_stop(m, now());
        bz_preempt_go(m, now());
    }

    t_hog_until_it_runs(&hog);
    done();
}

/* An idle worker sleeps in the runtime, and a thread may be gone when we want to signal it. */
TEST(preempt, a_machine_in_the_runtime_and_a_thread_that_is_gone_are_left_alone)
{
    struct bz_machine *m = given_a_hog(burns);
    CHECK_EQ(blitz_preempt_register_marked(), 0);
    atomic_store(&hog.is_over, true);
    CHECK_EQ(blitz_task_join(task, BLITZ_FOREVER, NULL), 0);
    uint64_t stopped = bz_load_relaxed(&m->seat.stopped);

    if (bz_load_relaxed(&m->seat.thread) != 0) /* it is home, or on its way */
        until_refused(m, bz_load_relaxed(&m->seat.refused) + 3);
    CHECK_EQ(bz_os_thread_urge(&bz_os_linux, 0x3ffffffe), -ESRCH);

    CHECK_EQ(bz_load_relaxed(&m->seat.stopped), stopped);
    bz_preempt_go(m, now());
    CHECK_EQ(blitz_spawn(burns, &hog, &(blitz_spawn_opts){.runtime = rt}, &task), 0);
    done();
}

static int burns_and_keeps_errno(void *h)
{
    atomic_store(&hog.on, bz_machine_self());
    errno = 4711;
    t_hog_burn(h);
    return errno == 4711 ? 0 : -1;
}

TEST(preempt, errno_is_as_it_was)
{
    struct bz_machine *m = given_a_hog(burns_and_keeps_errno);
    CHECK_EQ(blitz_preempt_register_marked(), 0);
    until_stopped(m);
    bz_preempt_go(m, now());
    done();
}

/* ---- registering ---- */

static int some_code(void)
{
    return 1;
}

TEST(preempt, ranges_that_cannot_be_are_refused)
{
    const char *code = (const char *)(uintptr_t)some_code;
    CHECK_EQ(blitz_preempt_register(NULL, code), -EINVAL);
    CHECK_EQ(blitz_preempt_register(code, code), -EINVAL);
    CHECK_EQ(blitz_preempt_register(code + 1, code), -EINVAL);
    CHECK_EQ(blitz_preempt_register((const void *)1, (const void *)UINTPTR_MAX), -EINVAL);
    CHECK_EQ(blitz_preempt_unregister(NULL, NULL), -ENOENT);
    CHECK_EQ(blitz_preempt_unregister(code, code + 1), -ENOENT);
}

/* This program has blitz in it, and a thread that is stopped in there could hold anything. */
TEST(preempt, a_program_with_blitz_in_it_is_not_registered_as_a_whole)
{
    CHECK_EQ(blitz_preempt_register_program(), -EINVAL);
}

TEST(preempt, there_is_room_for_64_ranges_and_again_when_one_goes)
{
    const char *code = (const char *)(uintptr_t)some_code;
    for (int i = 0; i < 64; i++)
        CHECK_EQ(blitz_preempt_register(code + i, code + i + 1), 0);
    CHECK_EQ(blitz_preempt_register(code, code + 100), -ENOSPC);
    CHECK_EQ(blitz_preempt_unregister(code + 7, code + 8), 0);
    CHECK_EQ(blitz_preempt_register(code, code + 100), 0);
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

TEST(preempt, without_being_asked_there_is_no_handler)
{
    blitz_runtime *plain;
    CHECK_EQ(blitz_runtime_new(NULL, &plain), 0);
    CHECK(is_installed(SIG_DFL));
    CHECK_EQ(blitz_runtime_shutdown(plain, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref(plain), 0);
}

/* bug_34: a handler of the program's own gets its signals and not ours, and is back at the end. */
TEST(preempt, bug_34_an_earlier_handler_gets_what_is_not_ours_and_is_back_at_the_end)
{
    struct sigaction action = {.sa_handler = earlier_handler};
    CHECK_EQ(sigaction(SIGURG, &action, NULL), 0);
    struct bz_machine *m = given_a_hog(burns);
    CHECK_EQ(blitz_preempt_register_marked(), 0);
    CHECK(!is_installed(earlier_handler));

    raise(SIGURG);
    CHECK_EQ((int)earlier, 1);
    until_stopped(m);
    bz_preempt_go(m, now());
    CHECK_EQ((int)earlier, 1);

    done();
    CHECK(is_installed(earlier_handler));
}

TEST(preempt, two_runtimes_share_the_handler_and_the_last_takes_it_down)
{
    blitz_runtime *first = t_preemptive_runtime(1), *second = t_preemptive_runtime(1);
    CHECK_EQ(blitz_runtime_shutdown(first, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref(first), 0);
    CHECK(!is_installed(SIG_DFL));
    CHECK_EQ(blitz_runtime_shutdown(second, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref(second), 0);
    CHECK(is_installed(SIG_DFL));
}

/* Somebody who comes later and does not call us: then we are not called, and do not take him down. */
TEST(preempt, a_handler_put_over_ours_stays)
{
    blitz_runtime *r = t_preemptive_runtime(1);
    struct sigaction action = {.sa_handler = earlier_handler};
    CHECK_EQ(sigaction(SIGURG, &action, NULL), 0);
    CHECK_EQ(blitz_runtime_shutdown(r, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref(r), 0);
    CHECK(is_installed(earlier_handler));
}

/* ---- the switch ---- */

static void quiet(void *ctx, blitz_log_level level, const char *message)
{
    (void)ctx;
    (void)level;
    (void)message;
}

TEST(preempt, the_switch_is_0_or_1_in_the_config_and_the_environment)
{
    blitz_runtime *r;
    CHECK_EQ(blitz_log_set(quiet, NULL, BLITZ_LOG_WARN), 0);
    CHECK_EQ(blitz_runtime_new(&(blitz_config){.preempt = 2}, &r), -EINVAL);
    CHECK_EQ(blitz_runtime_new(&(blitz_config){.preempt = -1}, &r), -EINVAL);
    setenv("BLITZ_PREEMPT", "yes", 1);
    CHECK_EQ(blitz_runtime_new(NULL, &r), -EINVAL);
    setenv("BLITZ_PREEMPT", "1", 1);
    int err = blitz_runtime_new(&(blitz_config){.procs = 1}, &r);
    unsetenv("BLITZ_PREEMPT");
    if (err == -ENOSYS)
        t_skip("threads cannot be interrupted in this build");
    CHECK_EQ(err, 0);
    CHECK(!is_installed(SIG_DFL));
    CHECK_EQ(blitz_runtime_shutdown(r, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref(r), 0);
}
