/* Listeners of signals: several of them, handlers that come and go, and every form of waiter. */
#include "harness.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "blitz.h"
#include "os/os.h"
#include "os/signals.h"
#include "os/sigquit.h"
#include "sim/fault.h"
#include "support/sanitizers.h"

static bz_atomic(int) told_before;

static void on_before(int signal)
{
    (void)signal;
    bz_fetch_add_relaxed(&told_before, 1); /* relaxed: a count */
}

static void given_a_handler(int signal, void (*handler)(int))
{
    struct sigaction a = {.sa_handler = handler};
    CHECK_EQ(sigaction(signal, &a, NULL), 0);
}

static void *handler_of(int signal)
{
    struct sigaction now;
    CHECK_EQ(sigaction(signal, NULL, &now), 0);
    return (void *)now.sa_handler;
}

static blitz_signal *listener_of(int signal)
{
    blitz_signal *s;
    CHECK_EQ(blitz_signal_listen(&signal, 1, NULL, &s), 0);
    return s;
}

/* raise() returns after the handler has run. */
static void check_next(blitz_signal *s, int signal, uint64_t count)
{
    blitz_signal_event got;
    CHECK_EQ(blitz_signal_try_recv(s, &got), 0);
    CHECK_EQ(got.signal, signal);
    CHECK_EQ(got.count, count);
}

static void check_none(blitz_signal *s)
{
    blitz_signal_event got;
    CHECK_EQ(blitz_signal_try_recv(s, &got), -EAGAIN);
}

/* ---- handlers ---- */

/* A library that takes a signal unasked breaks the program that uses it. */
TEST(signals, bug_34_no_handler_is_installed_until_a_listener_asks)
{
    given_a_handler(SIGTERM, SIG_DFL);
    given_a_handler(SIGUSR1, SIG_DFL);

    blitz_signal *s = listener_of(SIGUSR1);

    CHECK(handler_of(SIGTERM) == (void *)SIG_DFL);
    CHECK(handler_of(SIGUSR1) != (void *)SIG_DFL);
    blitz_signal_unref(s);
    CHECK(handler_of(SIGUSR1) == (void *)SIG_DFL);
}

TEST(signals, the_last_listener_restores_the_earlier_handler)
{
    given_a_handler(SIGUSR1, on_before);
    blitz_signal *a = listener_of(SIGUSR1), *b = listener_of(SIGUSR1);

    blitz_signal_unref(a);
    CHECK(handler_of(SIGUSR1) != (void *)on_before);
    blitz_signal_unref(b);
    CHECK(handler_of(SIGUSR1) == (void *)on_before);

    CHECK_EQ(raise(SIGUSR1), 0);
    CHECK_EQ(bz_load_relaxed(&told_before), 1); /* relaxed: our own handler */
}

TEST(signals, an_earlier_handler_is_called_only_if_a_listener_chains)
{
    blitz_signal *chaining;
    given_a_handler(SIGUSR1, on_before);
    blitz_signal *s = listener_of(SIGUSR1);
    CHECK_EQ(raise(SIGUSR1), 0);
    CHECK_EQ(bz_load_relaxed(&told_before), 0); /* relaxed: our own handler, as below */

    CHECK_EQ(
        blitz_signal_listen(&(int){SIGUSR1}, 1, &(blitz_signal_opts){.chains = true}, &chaining),
        0);
    CHECK_EQ(raise(SIGUSR1), 0);
    CHECK_EQ(bz_load_relaxed(&told_before), 1); /* relaxed: as above */
    blitz_signal_unref(chaining);
    CHECK_EQ(raise(SIGUSR1), 0);
    CHECK_EQ(bz_load_relaxed(&told_before), 1); /* relaxed: as above */

    check_next(s, SIGUSR1, 3);
    blitz_signal_unref(s);
}

/* The handler of the program, installed after ours: it must not vanish when our listener goes. */
TEST(signals, bug_34_a_handler_above_ours_is_left_alone)
{
    blitz_signal *s = listener_of(SIGUSR1);
    given_a_handler(SIGUSR1, on_before);

    blitz_signal_unref(s);

    CHECK(handler_of(SIGUSR1) == (void *)on_before);
}

static struct sigaction below;

static void on_above(int signal)
{
    siginfo_t info = {.si_signo = signal};
    below.sa_sigaction(signal, &info, NULL);
}

/* A handler above ours that chains to ours still reaches the handler below ours. */
TEST(signals, bug_34_ours_forwards_when_it_has_no_listener_any_more)
{
    given_a_handler(SIGUSR1, on_before);
    blitz_signal *s = listener_of(SIGUSR1);
    struct sigaction above = {.sa_handler = on_above};
    CHECK_EQ(sigaction(SIGUSR1, &above, &below), 0);
    CHECK_EQ(raise(SIGUSR1), 0);
    check_next(s, SIGUSR1, 1);
    CHECK_EQ(bz_load_relaxed(&told_before), 0); /* relaxed: our own handler, as below */

    blitz_signal_unref(s);
    CHECK_EQ(raise(SIGUSR1), 0);

    CHECK_EQ(bz_load_relaxed(&told_before), 1); /* relaxed: as above */
}

TEST(signals, bug_34_the_handler_keeps_errno_and_restarts_calls)
{
    struct sigaction now;
    blitz_signal *s = listener_of(SIGUSR1);
    CHECK_EQ(sigaction(SIGUSR1, NULL, &now), 0);
    CHECK(now.sa_flags & SA_RESTART);
    CHECK(now.sa_flags & SA_ONSTACK);

    errno = E2BIG;
    CHECK_EQ(raise(SIGUSR1), 0);

    CHECK_EQ(errno, E2BIG);
    blitz_signal_unref(s);
}

TEST(signals, signals_of_faults_and_of_the_runtime_are_refused)
{
    static const int refused[] = {0,      -1,     65,     SIGKILL, SIGSTOP, SIGSEGV,
                                  SIGBUS, SIGFPE, SIGILL, SIGURG,  32,      33};
    blitz_signal *s;
    for (size_t i = 0; i < BZ_ARRAY_LEN(refused); i++)
        CHECK_EQ(blitz_signal_listen(&refused[i], 1, NULL, &s), -EINVAL);
    CHECK_EQ(blitz_signal_listen((int[]){SIGUSR1, SIGUSR1}, 2, NULL, &s), -EINVAL);
    CHECK_EQ(blitz_signal_listen(NULL, 1, NULL, &s), -EINVAL);
    CHECK_EQ(blitz_signal_listen((int[]){SIGUSR1}, 0, NULL, &s), -EINVAL);
    CHECK_EQ(blitz_signal_listen((int[]){SIGUSR1}, 1, NULL, NULL), -EINVAL);
    CHECK(handler_of(SIGUSR1) == (void *)SIG_DFL);
}

/* If the second signal is refused by the system, the first one's handler goes back. */
TEST(signals, a_listener_without_a_thread_leaves_no_handler)
{
    struct bz_fault fault;
    blitz_signal *s;
    bz_fault_init(&fault, &bz_os_system, NULL,
                  &(struct bz_fault_plan){.kind = BZ_FAULT_THREAD, .nth = 1});
    bz_os_process = &fault.os;
    int err = blitz_signal_listen((int[]){SIGUSR1, SIGUSR2}, 2, NULL, &s);
    bz_os_process = &bz_os_system;

    CHECK_EQ(err, -EAGAIN);
    CHECK(handler_of(SIGUSR1) == (void *)SIG_DFL);
    CHECK(handler_of(SIGUSR2) == (void *)SIG_DFL);
    s = listener_of(SIGUSR1); /* and the next one works */
    CHECK_EQ(raise(SIGUSR1), 0);
    check_next(s, SIGUSR1, 1);
    blitz_signal_unref(s);
}

static bz_atomic(int) dumps;

static void on_dump(void *ctx)
{
    (void)ctx;
    bz_fetch_add_relaxed(&dumps, 1); /* relaxed: a count */
}

/* SIGQUIT belongs to dumps as well. The dump and the listener may go in either order: the other still hears it, and the
 * default comes back. */
TEST(signals, bug_34_dumps_on_sigquit_and_listeners_do_not_disturb_each_other)
{
    given_a_handler(SIGQUIT, SIG_DFL);
    for (int first = 0; first < 2; first++) {
        CHECK_EQ(bz_sigquit_watch(on_dump, &dumps), 0);
        blitz_signal *s = listener_of(SIGQUIT);
        bz_store_relaxed(&dumps, 0); /* relaxed: our own handler, as below */
        CHECK_EQ(raise(SIGQUIT), 0);
        check_next(s, SIGQUIT, 1);
        CHECK_EQ(bz_load_relaxed(&dumps), 1); /* relaxed: as above */
        if (first == 0)
            bz_sigquit_unwatch(&dumps);
        else
            blitz_signal_unref(s);
        CHECK_EQ(raise(SIGQUIT), 0);
        if (first == 0)
            check_next(s, SIGQUIT, 1);
        else
            CHECK_EQ(bz_load_relaxed(&dumps), 2); /* relaxed: as above */
        if (first == 0)
            blitz_signal_unref(s);
        else
            bz_sigquit_unwatch(&dumps);
        CHECK(handler_of(SIGQUIT) == (void *)SIG_DFL);
    }
}

/* ---- arrivals ---- */

TEST(signals, each_listener_gets_each_signal)
{
    blitz_signal *a = listener_of(SIGUSR1), *b = listener_of(SIGUSR1),
                 *other = listener_of(SIGUSR2);

    CHECK_EQ(raise(SIGUSR1), 0);

    check_next(a, SIGUSR1, 1);
    check_next(b, SIGUSR1, 1);
    check_none(a);
    check_none(other);
    blitz_signal_unref(a);
    CHECK_EQ(raise(SIGUSR1), 0);
    check_next(b, SIGUSR1, 1);
    blitz_signal_unref(b);
    blitz_signal_unref(other);
}

TEST(signals, arrivals_before_the_listener_looks_are_one_event_with_a_count)
{
    blitz_signal *s = listener_of(SIGUSR1);
    for (int i = 0; i < 5; i++)
        CHECK_EQ(raise(SIGUSR1), 0);

    check_next(s, SIGUSR1, 5);

    check_none(s);
    blitz_signal_unref(s);
}

/* A signal that comes all the time must not hide another. */
TEST(signals, different_signals_of_a_listener_take_turns)
{
    blitz_signal *s;
    blitz_signal_event got;
    int seen[3] = {0};
    CHECK_EQ(blitz_signal_listen((int[]){SIGUSR1, SIGUSR2, SIGHUP}, 3, NULL, &s), 0);
    CHECK_EQ(raise(SIGHUP), 0);
    CHECK_EQ(raise(SIGUSR2), 0);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(raise(SIGUSR1), 0);
        CHECK_EQ(blitz_signal_try_recv(s, &got), 0);
        seen[got.signal == SIGUSR1 ? 0 : got.signal == SIGUSR2 ? 1 : 2]++;
    }
    for (int i = 0; i < 3; i++)
        CHECK_EQ(seen[i], 1);
    blitz_signal_unref(s);
}

TEST(signals, a_new_listener_gets_nothing_that_came_before)
{
    blitz_signal *a = listener_of(SIGUSR1);
    CHECK_EQ(raise(SIGUSR1), 0);
    blitz_signal *b = listener_of(SIGUSR1);
    check_none(b);
    check_next(a, SIGUSR1, 1);
    blitz_signal_unref(a);
    blitz_signal_unref(b);
}

TEST(signals, a_signal_that_every_other_thread_blocks_arrives)
{
    sigset_t set;
    blitz_signal_event got;
    if (T_TSAN)
        t_skip("this sanitizer keeps signals back");
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
    blitz_signal *other = listener_of(SIGUSR2); /* the thread exists already */
    blitz_signal *s = listener_of(SIGUSR1);

    CHECK_EQ(kill(getpid(), SIGUSR1), 0);

    CHECK_EQ(blitz_signal_recv(s, &got, BLITZ_FOREVER), 0);
    CHECK_EQ(got.signal, SIGUSR1);
    blitz_signal_unref(s);
    blitz_signal_unref(other);
}

TEST(signals, conveniences_listen_to_their_signal)
{
    int (*const make[])(blitz_signal **) = {blitz_signal_ctrl_c, blitz_signal_terminate,
                                            blitz_signal_hangup, blitz_signal_child};
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGCHLD};
    for (size_t i = 0; i < BZ_ARRAY_LEN(make); i++) {
        blitz_signal *s;
        CHECK_EQ(make[i](&s), 0);
        CHECK_EQ(raise(signals[i]), 0);
        check_next(s, signals[i], 1);
        blitz_signal_unref(blitz_signal_ref(s));
        blitz_signal_unref(s);
    }
}

TEST(signals, names)
{
    CHECK_STR_EQ(blitz_signal_name(SIGTERM), "SIGTERM");
    CHECK_STR_EQ(blitz_signal_name(SIGRTMIN + 1), "SIGRT");
    CHECK_STR_EQ(blitz_signal_name(0), "signal");
    CHECK_STR_EQ(blitz_signal_name(99), "signal");
}

/* ---- every form of waiter ---- */

static bz_atomic(int) waiting;

static int receives(void *arg)
{
    blitz_signal_event got;
    bz_fetch_add_relaxed(&waiting, 1); /* relaxed: a count */
    int rc = blitz_signal_recv(arg, &got, BLITZ_FOREVER);
    return rc == 0 ? got.signal : rc;
}

struct polled {
    blitz_frame frame;
    blitz_signal *of;
    blitz_signal_future f;
};

static blitz_poll receives_stackless(void *state, blitz_cx *cx)
{
    struct polled *me = state;
    int rc;
    BLITZ_BEGIN(&me->frame, cx);
    bz_fetch_add_relaxed(&waiting, 1); /* relaxed: a count */
    blitz_signal_recv_future_init(&me->f, me->of);
    BLITZ_AWAIT(rc, &me->f.future);
    BLITZ_END(rc == 0 ? me->f.event.signal : rc);
}

static void *receives_on_a_thread(void *arg)
{
    return (void *)(intptr_t)receives(arg);
}

static int receives_in_a_job(void *arg)
{
    blitz_job j;
    blitz_fork(&j, receives, arg);
    return blitz_join(&j);
}

/* One listener each: every waiter gets the one signal that is sent when all of them wait or are about to. */
TEST(signals, fibers_stackless_tasks_jobs_and_threads_receive)
{
    enum { EACH = 6 };
    blitz_signal *s[4 * EACH];
    blitz_task *task[3 * EACH];
    pthread_t thread[EACH];
    blitz_runtime *rt;
    CHECK_EQ(blitz_runtime_new(&(blitz_runtime_opts){.procs = 2}, &rt), 0);
    blitz_spawn_opts opts = {.runtime = rt};
    for (int i = 0; i < 4 * EACH; i++)
        s[i] = listener_of(SIGUSR1);
    for (int i = 0; i < EACH; i++) {
        struct polled state = {.of = s[EACH + i]};
        CHECK_EQ(blitz_spawn(receives, s[i], &opts, &task[i]), 0);
        CHECK_EQ(blitz_spawn_poll(receives_stackless, &state, sizeof state, &opts, &task[EACH + i]),
                 0);
        CHECK_EQ(blitz_spawn(receives_in_a_job, s[2 * EACH + i], &opts, &task[2 * EACH + i]), 0);
        CHECK_EQ(pthread_create(&thread[i], NULL, receives_on_a_thread, s[3 * EACH + i]), 0);
    }
    while (bz_load_relaxed(&waiting) < 4 * EACH) /* relaxed: a count */
        bz_os_relax(&bz_os_system, 100);

    CHECK_EQ(raise(SIGUSR1), 0);

    for (int i = 0; i < 3 * EACH; i++) {
        int result;
        CHECK_EQ(blitz_task_join(task[i], &result, BLITZ_FOREVER), 0);
        CHECK_EQ(result, SIGUSR1);
    }
    for (int i = 0; i < EACH; i++) {
        void *result;
        CHECK_EQ(pthread_join(thread[i], &result), 0);
        CHECK_EQ((intptr_t)result, SIGUSR1);
    }
    for (int i = 0; i < 4 * EACH; i++)
        blitz_signal_unref(s[i]);
    CHECK_EQ(blitz_runtime_shutdown(rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref(rt), 0);
}

/* A receive that ends early must leave the signal for the next. */
static int deadlines_and_cancels(void *arg)
{
    blitz_signal *s = arg;
    blitz_signal_event got;
    blitz_signal_future f;
    blitz_task *t;
    CHECK_EQ(blitz_signal_recv(s, &got, 0), -ETIMEDOUT);
    CHECK_EQ(blitz_signal_recv(s, &got, blitz_after(BLITZ_MS)), -ETIMEDOUT);
    CHECK_EQ(blitz_spawn(receives, s, NULL, &t), 0);
    blitz_yield();
    blitz_task_cancel(t);
    int result;
    CHECK_EQ(blitz_task_join(t, &result, BLITZ_FOREVER), 0);
    CHECK_EQ(result, -ECANCELED);
    blitz_signal_recv_future_init(&f, s);
    CHECK_EQ(blitz_await(&f.future, blitz_after(BLITZ_MS)), -ETIMEDOUT);
    CHECK_EQ(f.result, -ECANCELED);

    CHECK_EQ(raise(SIGUSR1), 0);

    CHECK_EQ(blitz_signal_recv(s, &got, 0), 0);
    CHECK_EQ(got.count, 1);
    return 0;
}

TEST(signals, a_receive_that_ends_early_takes_nothing)
{
    blitz_signal *s = listener_of(SIGUSR1);
    CHECK_EQ(blitz_run(deadlines_and_cancels, s, NULL), 0);
    blitz_signal_unref(s);
}

/* The usual loop of a server: whichever comes first, a signal or a request. */
static int selects(void *arg)
{
    blitz_signal *s = arg;
    blitz_signal_future f;
    blitz_chan *c;
    int value = 7, got = 0, first = -1;
    CHECK_EQ(blitz_chan_new(sizeof(int), 1, NULL, &c), 0);
    blitz_signal_recv_future_init(&f, s);
    CHECK_EQ(raise(SIGUSR1), 0);
    blitz_select_case cases[] = {blitz_case_recv(c, &got), blitz_case_future(&f.future)};
    first = blitz_select_wait(cases, 2, 0, BLITZ_FOREVER);
    CHECK_EQ(first, 1);
    CHECK_EQ(f.event.signal, SIGUSR1);

    CHECK_EQ(blitz_chan_send(c, &value, BLITZ_FOREVER), 0);
    blitz_signal_recv_future_init(&f, s);
    cases[1] = blitz_case_future(&f.future);
    first = blitz_select_wait(cases, 2, 0, BLITZ_FOREVER);
    CHECK_EQ(first, 0);
    CHECK_EQ(got, 7);
    blitz_chan_unref(c);
    return 0;
}

TEST(signals, a_select_waits_for_a_signal_or_a_message)
{
    blitz_signal *s = listener_of(SIGUSR1);
    CHECK_EQ(blitz_run(selects, s, NULL), 0);
    blitz_signal_unref(s);
}

/* Two tasks at one listener: each signal goes to one of them, and none is lost to a cancel of the other. */
static int shares(void *arg)
{
    blitz_task *t[2];
    int result[2];
    for (int i = 0; i < 2; i++)
        CHECK_EQ(blitz_spawn(receives, arg, NULL, &t[i]), 0);
    for (int i = 0; i < 10; i++)
        blitz_yield();
    CHECK_EQ(raise(SIGUSR1), 0);
    blitz_task_cancel(t[0]);
    CHECK_EQ(blitz_task_join(t[0], &result[0], BLITZ_FOREVER), 0);
    if (result[0] == SIGUSR1)
        blitz_task_cancel(t[1]);
    CHECK_EQ(blitz_task_join(t[1], &result[1], BLITZ_FOREVER), 0);
    CHECK_EQ(result[0] == SIGUSR1 ? result[1] : result[0], -ECANCELED);
    CHECK_EQ(result[0] == SIGUSR1 ? result[0] : result[1], SIGUSR1);
    return 0;
}

TEST(signals, bug_22_a_signal_is_not_lost_to_a_cancelled_receiver)
{
    blitz_signal *s = listener_of(SIGUSR1);
    for (int i = 0; i < 50; i++)
        CHECK_EQ(blitz_run(shares, s, &(blitz_runtime_opts){.procs = 2}), 0);
    blitz_signal_unref(s);
}
