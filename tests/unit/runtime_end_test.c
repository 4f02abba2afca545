/* The table of blitz/shutdown.h, row by row: what the end of a runtime waits for, cancels and abandons. */
#include "support/proc.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/os.h"
#include "support/keepers.h"

static bz_atomic(int) began, ended; /* relaxed throughout: counts */

static void begin(void)
{
    bz_fetch_add_relaxed(&began, 1); /* relaxed: as above */
}

static void await_began(int count)
{
    while (bz_load_relaxed(&began) < count) /* relaxed: as above */
        bz_os_relax(&bz_os_system, 100);
}

static blitz_runtime *given_a_runtime(void)
{
    blitz_runtime *rt;
    CHECK_EQ(blitz_runtime_new(&(blitz_runtime_opts){.procs = 2}, &rt), 0);
    return rt;
}

static blitz_task *given_a_task(blitz_runtime *rt, int (*fn)(void *), void *arg)
{
    blitz_task *t;
    CHECK_EQ(blitz_spawn(fn, arg, &(blitz_spawn_opts){.runtime = rt, .name = "row"}, &t), 0);
    await_began(1);
    return t;
}

static int result_of(blitz_task *t)
{
    int result;
    CHECK_EQ(blitz_task_join(t, &result, BLITZ_FOREVER), 0);
    return result;
}

static void end(blitz_runtime *rt)
{
    CHECK_EQ(blitz_runtime_shutdown(rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref(rt), 0);
}

/* ---- fibers ---- */

static int sleeps_and_cleans_up(void *arg)
{
    (void)arg;
    begin();
    int err = blitz_sleep(3600 * BLITZ_S);
    blitz_shield();
    CHECK_EQ(blitz_sleep(BLITZ_MS), 0); /* its clean-up is waited for */
    blitz_unshield();
    bz_store_relaxed(&ended, 1); /* relaxed: as above */
    return err;
}

TEST(runtime_end, fibers_and_timers_are_cancelled_and_waited_for)
{
    blitz_runtime *rt = given_a_runtime();
    blitz_task *t = given_a_task(rt, sleeps_and_cleans_up, NULL);
    CHECK_EQ(blitz_runtime_shutdown(rt, BLITZ_FOREVER), 0);
    CHECK_EQ(bz_load_relaxed(&ended), 1); /* relaxed: as above */
    CHECK_EQ(result_of(t), -ECANCELED);
    CHECK_EQ(blitz_runtime_unref(rt), 0);
}

/* ---- stackless tasks, and futures ---- */

struct polled {
    blitz_frame frame;
    blitz_sleep_future nap;
};

static blitz_poll sleeps_stackless(void *state, blitz_cx *cx)
{
    struct polled *me = state;
    int rc;
    BLITZ_BEGIN(&me->frame, cx);
    begin();
    BLITZ_SLEEP(rc, &me->nap, 3600 * BLITZ_S);
    BLITZ_END(rc);
}

TEST(runtime_end, stackless_tasks_and_their_futures_are_cancelled)
{
    blitz_runtime *rt = given_a_runtime();
    struct polled state = {0};
    blitz_task *t;
    CHECK_EQ(blitz_spawn_poll(sleeps_stackless, &state, sizeof state,
                              &(blitz_spawn_opts){.runtime = rt}, &t),
             0);
    await_began(1);
    end(rt);
    CHECK_EQ(result_of(t), -ECANCELED);
}

/* ---- forked jobs ---- */

static int job(void *arg)
{
    (void)arg;
    begin();
    return blitz_sleep(3600 * BLITZ_S);
}

static int forks(void *arg)
{
    blitz_job a, b;
    (void)arg;
    blitz_fork(&a, job, NULL);
    blitz_fork(&b, job, NULL);
    int rb = blitz_join(&b), ra = blitz_join(&a);
    CHECK_EQ(ra, -ECANCELED);
    return rb;
}

TEST(runtime_end, forked_jobs_end_with_their_task)
{
    blitz_runtime *rt = given_a_runtime();
    blitz_task *t = given_a_task(rt, forks, NULL);
    end(rt);
    CHECK_EQ(result_of(t), -ECANCELED);
}

/* ---- blocking calls ---- */

static int fds[2];

static int blocks(void *arg)
{
    char c;
    (void)arg;
    begin();
    return read(fds[0], &c, 1) == 1 ? 5 : -1;
}

static int calls(void *arg)
{
    (void)arg;
    return blitz_blocking(blocks, NULL);
}

static void *writes_late(void *arg)
{
    blitz_runtime *rt = arg;
    CHECK_EQ(blitz_runtime_shutdown(rt, blitz_after(5 * BLITZ_MS)), -ETIMEDOUT);
    CHECK_EQ(write(fds[1], "x", 1), 1);
    return NULL;
}

TEST(runtime_end, a_blocking_call_is_waited_for)
{
    pthread_t thread;
    CHECK_EQ(pipe(fds), 0);
    blitz_runtime *rt = given_a_runtime();
    blitz_task *t = given_a_task(rt, calls, NULL);
    CHECK_EQ(pthread_create(&thread, NULL, writes_late, rt), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    end(rt);
    CHECK_EQ(result_of(t), 5);
    close(fds[0]);
    close(fds[1]);
}

static bz_atomic(bool) is_dropped;

static void dropped(void *value, void *ctx)
{
    (void)value;
    (void)ctx;
    bz_store_release(&is_dropped,
                     true); /* pairs with the loop of the test: the call has returned */
}

static int calls_and_leaves(void *arg)
{
    blitz_blocking_future f;
    (void)arg;
    blitz_blocking_future_init(&f, blocks, NULL, &(blitz_blocking_opts){.drop = dropped});
    return blitz_await(&f.future, blitz_after(5 * BLITZ_MS));
}

TEST(runtime_end, abandon_leaves_a_blocking_call_behind)
{
    CHECK_EQ(pipe(fds), 0);
    t_may_leave(T_THREADS); /* the abandoned thread ends a moment later */
    blitz_runtime *rt = given_a_runtime();
    blitz_task *t = given_a_task(rt, calls_and_leaves, NULL);
    CHECK_EQ(result_of(t), -ETIMEDOUT);
    CHECK_EQ(blitz_runtime_shutdown(rt, blitz_after(5 * BLITZ_MS)), -ETIMEDOUT);
    CHECK_EQ(blitz_runtime_abandon(rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref(rt), 0);
    CHECK_EQ(write(fds[1], "x", 1), 1);
    while (!bz_load_acquire(&is_dropped)) /* pairs with dropped() */
        bz_os_relax(&bz_os_system, 100);
    close(fds[0]);
    close(fds[1]);
}

/* ---- operations in flight ---- */

static int reads(void *arg)
{
    blitz_tcp *pair[2];
    char c;
    (void)arg;
    CHECK_EQ(blitz_unix_pair(pair), 0);
    begin();
    int64_t n = blitz_tcp_read(pair[0], &c, 1, BLITZ_FOREVER);
    blitz_tcp_close(pair[0]);
    blitz_tcp_close(pair[1]);
    return (int)n;
}

TEST(runtime_end, an_operation_in_flight_is_taken_back)
{
    static const char *const keepers[] = {"epoll", "poll", "uring"};
    for (size_t i = 0; i < BZ_ARRAY_LEN(keepers) - !t_has_rings(); i++) {
        blitz_runtime *rt;
        bz_store_relaxed(&began, 0); /* relaxed: as above */
        CHECK_EQ(blitz_runtime_new(&(blitz_runtime_opts){.procs = 2, .io = keepers[i]}, &rt), 0);
        blitz_task *t = given_a_task(rt, reads, NULL);
        end(rt);
        CHECK_EQ(result_of(t), -ECANCELED);
    }
}

/* ---- endless loops ---- */

static bz_atomic(bool) is_enough;

static int spins(void *arg)
{
    (void)arg;
    begin();
    while (!bz_load_relaxed(&is_enough)) /* relaxed: a flag; no call into blitz, on purpose */
        continue;
    return 0;
}

static bz_atomic(int) named;

static void hears(void *ctx, blitz_log_level level, const char *line)
{
    (void)ctx;
    (void)level;
    if (strstr(line, "row") != NULL)
        bz_fetch_add_relaxed(&named, 1); /* relaxed: as above */
}

TEST(runtime_end, an_endless_loop_is_named_at_the_deadline)
{
    CHECK_EQ(blitz_log_set(hears, NULL, BLITZ_LOG_WARN), 0);
    blitz_runtime *rt = given_a_runtime();
    blitz_task *t = given_a_task(rt, spins, NULL);
    CHECK_EQ(blitz_runtime_shutdown(rt, blitz_after(5 * BLITZ_MS)), -ETIMEDOUT);
    CHECK_GT(bz_load_relaxed(&named), 0); /* relaxed: as above */
    CHECK_EQ(blitz_runtime_unref(rt), -EBUSY);
    bz_store_relaxed(&is_enough, true); /* relaxed: a flag */
    end(rt);
    CHECK_EQ(result_of(t), 0);
    CHECK_EQ(blitz_log_set(NULL, NULL, BLITZ_LOG_WARN), 0);
}

static int polls(void *arg)
{
    (void)arg;
    begin();
    while (!blitz_is_cancelled())
        BLITZ_POLL();
    return -ECANCELED;
}

TEST(runtime_end, a_loop_that_looks_at_its_cancel_ends)
{
    blitz_runtime *rt = given_a_runtime();
    blitz_task *t = given_a_task(rt, polls, NULL);
    end(rt);
    CHECK_EQ(result_of(t), -ECANCELED);
}

/* ---- not of the runtime ---- */

static int pid;
static blitz_signal *listener;

static int starts(void *arg)
{
    (void)arg;
    blitz_process *p = t_start(t_command("sleep", "1000", NULL));
    pid = blitz_process_pid(p);
    CHECK_EQ(blitz_signal_listen(&(int){SIGUSR1}, 1, NULL, &listener), 0);
    blitz_process_unref(p);
    return 0;
}

TEST(runtime_end, processes_and_signal_listeners_are_not_touched)
{
    blitz_signal_event got;
    CHECK_EQ(blitz_run(starts, NULL, NULL), 0);
    CHECK_EQ(kill(pid, 0), 0); /* it runs */
    CHECK_EQ(raise(SIGUSR1), 0);
    CHECK_EQ(blitz_signal_recv(listener, &got, BLITZ_FOREVER), 0);
    blitz_signal_unref(listener);
    CHECK_EQ(kill(pid, SIGKILL), 0);
    siginfo_t info;
    CHECK_EQ(waitid(P_PID, (id_t)pid, &info, WEXITED), 0);
}

static void *joins(void *arg)
{
    return (void *)(intptr_t)result_of(arg);
}

TEST(runtime_end, a_plain_thread_that_waits_for_a_task_goes_on)
{
    pthread_t thread;
    void *result;
    blitz_runtime *rt = given_a_runtime();
    blitz_task *t = given_a_task(rt, sleeps_and_cleans_up, NULL);
    CHECK_EQ(pthread_create(&thread, NULL, joins, t), 0);
    end(rt);
    CHECK_EQ(pthread_join(thread, &result), 0);
    CHECK_EQ((intptr_t)result, -ECANCELED);
}
