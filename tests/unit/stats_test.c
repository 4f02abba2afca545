/* blitz/stats.h: each counter counts what it says. On one proc, where everything is certain. */
#include "harness.h"

#include <pthread.h>
#include <sched.h>

#include "base/compiler.h"
#include "blitz.h"
#include "io/attempt.h"
#include "proc/enter.h"
#include "proc/state.h"
#include "support/alone.h"
#include "support/event.h"

static int returns(void *arg)
{
    (void)arg;
    return 0;
}

static int yields_ten_times(void *arg)
{
    (void)arg;
    for (int i = 0; i < 10; i++)
        blitz_yield();
    return 0;
}

static int sets(void *arg)
{
    t_event_set(arg);
    return 0;
}

/* Certainly parks: on one proc no task sets the event before this one has left it. */
static int waits(void *arg)
{
    struct t_event e;
    (void)arg;
    t_event_init(&e, &bz_os_system);
    CHECK_EQ(blitz_spawn(sets, &e, NULL, NULL), 0);
    return t_event_await_until(&e, BLITZ_FOREVER);
}

static int naps(void *arg)
{
    (void)arg;
    return blitz_sleep(10 * BLITZ_US);
}

/* The statistics that `fn` adds on a runtime with one proc, as a task there. */
struct measured {
    int (*fn)(void *);
    void *arg;
    bool is_plain; /* built so, or the system has no barriers */
    blitz_stats before, after;
};

static int measures(void *arg)
{
    struct measured *m = arg;
    m->is_plain = bz_is_plain(bz_machine_self()->rt);
    CHECK_EQ(blitz_stats_read(NULL, &m->before), 0);
    CHECK_EQ(m->fn(m->arg), 0);
    CHECK_EQ(blitz_stats_read(NULL, &m->after), 0);
    return 0;
}

static struct measured measure(int (*fn)(void *), void *arg)
{
    struct measured m = {.fn = fn, .arg = arg};
    CHECK_EQ(t_run_alone(measures, &m), 0);
    return m;
}

#define ADDED(m, name) ((m).after.name - (m).before.name)

/* ---- tasks ---- */

enum { N = 20 };

static int spawns_and_joins(void *arg)
{
    blitz_task *t[N];
    for (int i = 0; i < N; i++)
        CHECK_EQ(blitz_spawn((int (*)(void *))arg, NULL, NULL, &t[i]), 0);
    for (int i = 0; i < N; i++)
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
    return 0;
}

TEST(stats, spawned_and_ended)
{
    struct measured m = measure(spawns_and_joins, (void *)returns);
    CHECK_EQ(m.before.procs, 1u);
    CHECK_EQ(m.before.spawned, 1u); /* the one that measures */
    CHECK_EQ(ADDED(m, spawned), N);
    CHECK_EQ(ADDED(m, ended), N);
}

/* In the fast form the joiner runs every child; in the plain form the loop does. */
TEST(stats, claimed_or_run)
{
    struct measured m = measure(spawns_and_joins, (void *)returns);
    CHECK_EQ(ADDED(m, claimed) + ADDED(m, run) - ADDED(m, parked), N);
    CHECK_EQ(ADDED(m, claimed), m.is_plain ? 0u : N);
    if (!m.is_plain)
        CHECK_EQ(ADDED(m, switches), 0u);
}

static int detaches(void *arg)
{
    (void)arg;
    for (int i = 0; i < N; i++)
        CHECK_EQ(blitz_spawn(returns, NULL, NULL, NULL), 0);
    return waits(NULL);
}

TEST(stats, run_and_parked)
{
    blitz_runtime *rt;
    blitz_stats s;
    t_hold_procs();
    CHECK_EQ(blitz_runtime_new(&(blitz_runtime_opts){.procs = 1}, &rt), 0);
    CHECK_EQ(blitz_runtime_block_on(rt, detaches, NULL), 0);
    CHECK_EQ(blitz_runtime_shutdown(rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_stats_read(rt, &s), 0);
    CHECK_EQ(s.run, N + 3); /* N; the waiter, twice; and the task that ended the wait */
    CHECK_EQ(s.parked, 1u);
    CHECK_GE(s.switches, 2u); /* away and back */
    CHECK_EQ(blitz_runtime_unref(rt), 0);
}

static int two_take_turns(void *arg)
{
    blitz_task *t;
    (void)arg;
    CHECK_EQ(blitz_spawn(yields_ten_times, NULL, NULL, &t), 0);
    for (int i = 0; i < 10; i++)
        blitz_yield();
    return blitz_task_join(t, NULL, BLITZ_FOREVER);
}

TEST(stats, yielded_and_switches)
{
    struct measured m = measure(two_take_turns, NULL);
    CHECK_GE(ADDED(m, yielded), 19u); /* the last task has no other task to yield to */
    CHECK_LE(ADDED(m, yielded), 20u);
    CHECK_GE(ADDED(m, switches), 19u);
}

static int yields_alone(void *arg)
{
    (void)arg;
    return yields_ten_times(NULL);
}

/* In the plain form a yield always leaves. */
TEST(stats, a_yield_without_other_tasks_is_not_counted)
{
    struct measured m = measure(yields_alone, NULL);
    CHECK_EQ(ADDED(m, yielded), m.is_plain ? 10u : 0u);
    if (!m.is_plain)
        CHECK_EQ(ADDED(m, switches), 0u);
}

TEST(stats, next_hits)
{
    struct measured m = measure(waits, NULL);
    if (m.is_plain)
        CHECK_EQ(ADDED(m, next_hits), 0u); /* there is no such slot */
    else
        CHECK_GE(ADDED(m, next_hits), 1u);
}

/* ---- from outside ---- */

TEST(stats, injected_and_wakes)
{
    blitz_runtime *rt;
    blitz_stats s;
    t_hold_procs();
    CHECK_EQ(blitz_runtime_new(&(blitz_runtime_opts){.procs = 1}, &rt), 0);
    blitz_spawn_opts opts = {.runtime = rt};
    for (int i = 0; i < N; i++) {
        blitz_task *t;
        CHECK_EQ(blitz_spawn(returns, NULL, &opts, &t), 0);
        CHECK_EQ(blitz_task_join(t, NULL, BLITZ_FOREVER), 0);
    }
    CHECK_EQ(blitz_runtime_shutdown(rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_stats_read(rt, &s), 0);
    CHECK_EQ(s.spawned, N);
    CHECK_EQ(s.ended, N);
    CHECK_EQ(s.run, N);
    CHECK_EQ(s.injected, N);
    CHECK_GE(s.injector_batches, 1u);
    CHECK_LE(s.injector_batches, N);
    CHECK_LE(s.useless_wakes, s.wakes);
    CHECK_LE(s.wakes, N);
    CHECK_GE(s.stacks, 1u);
    CHECK_GT(s.task_bytes, 0u);
    CHECK_EQ(blitz_runtime_unref(rt), 0);
}

static int naps_often(void *arg)
{
    for (int i = 0; i < N; i++)
        CHECK_EQ(naps(arg), 0);
    return 0;
}

/* A task that a timer wakes on its own proc takes no way round. */
TEST(stats, a_sleeper_is_woken_where_it_slept)
{
    struct measured m = measure(naps_often, NULL);
    CHECK_EQ(ADDED(m, injected), 0u);
}

/* ---- fork and join ---- */

static int job_returns(void *arg)
{
    (void)arg;
    return 0;
}

static int forks_and_waits(void *arg)
{
    blitz_job a, b;
    (void)arg;
    blitz_fork(&a, job_returns, NULL);
    blitz_fork(&b, job_returns, NULL);
    CHECK_EQ(waits(NULL), 0); /* both must leave the deque */
    CHECK_EQ(blitz_join(&b), 0);
    return blitz_join(&a);
}

TEST(stats, forks_shared_and_evacuated)
{
    struct measured m = measure(forks_and_waits, NULL);
    CHECK_GE(ADDED(m, forks_shared), 1u);
    CHECK_EQ(ADDED(m, jobs_evacuated), 2u);
    CHECK_EQ(ADDED(m, jobs_stolen), 0u); /* there is no other task */
}

/* Go the slow way once more, as if a thief had looked. */
static void ask(void)
{
    uint32_t was;
    bz_deque_ask(&bz_enter_as(&was)->deque);
    bz_leave(was);
}

static int forks_many(void *arg)
{
    blitz_job job[N];
    (void)arg;
    for (int i = 0; i < N; i++) {
        blitz_fork(&job[i], job_returns, NULL);
        ask();
    }
    for (int i = N; i-- > 0;)
        CHECK_EQ(blitz_join(&job[i]), 0);
    return 0;
}

/* The first job stays exposed for as long as no thread takes it. The monitor may take it if this thread is held up. */
TEST(stats, a_job_that_stays_exposed_is_shared_once)
{
    struct measured m = measure(forks_many, NULL);
    CHECK_GE(ADDED(m, forks_shared), 1u);
    CHECK_LE(ADDED(m, forks_shared), 3u);
}

/* ---- reading ---- */

static int burst(void *arg)
{
    (void)arg;
    CHECK_EQ(spawns_and_joins((void *)naps), 0);
    return spawns_and_joins((void *)yields_ten_times);
}

/* The total is the sum of the procs and of what came from outside. */
TEST(stats, procs_add_up_to_the_total)
{
    blitz_runtime *rt;
    blitz_stats total, one, sum = {0};
    CHECK_EQ(blitz_runtime_new(&(blitz_runtime_opts){.procs = 3}, &rt), 0);
    CHECK_EQ(blitz_runtime_block_on(rt, burst, NULL), 0);
    CHECK_EQ(blitz_runtime_shutdown(rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_stats_read(rt, &total), 0);
    CHECK_EQ(total.procs, 3u);
    for (unsigned i = 0; i < 3; i++) {
        CHECK_EQ(blitz_stats_read_proc(rt, i, &one), 0);
        CHECK_EQ(one.procs, 1u);
        sum.spawned += one.spawned;
        sum.ended += one.ended;
        sum.run += one.run;
        sum.steals += one.steals;
        sum.stolen += one.stolen;
        sum.yielded += one.yielded;
        sum.sleeps += one.sleeps;
        sum.next_hits += one.next_hits;
        sum.injector_batches += one.injector_batches;
    }
    CHECK_EQ(total.spawned, sum.spawned + 1); /* the first came from outside */
    CHECK_EQ(total.spawned, 2 * N + 1);
    CHECK_EQ(total.ended, sum.ended);
    CHECK_EQ(total.ended, total.spawned);
    CHECK_EQ(total.run, sum.run);
    CHECK_EQ(total.steals, sum.steals);
    CHECK_GE(total.stolen, total.steals);
    CHECK_EQ(total.yielded, sum.yielded);
    CHECK_EQ(total.sleeps, sum.sleeps);
    CHECK_EQ(total.next_hits, sum.next_hits);
    CHECK_EQ(total.injector_batches, sum.injector_batches);
    CHECK_EQ(blitz_stats_read_proc(rt, 3, &one), -EINVAL);
    CHECK_EQ(blitz_runtime_unref(rt), 0);
}

static int sleeps_until_it_is_counted(void *arg)
{
    blitz_stats s;
    (void)arg;
    do { /* the worker may find the timer due before it sleeps */
        CHECK_EQ(blitz_sleep(5 * BLITZ_MS), 0);
        CHECK_EQ(blitz_stats_read_proc(NULL, 0, &s), 0);
    } while (s.sleeps == 0);
    return 0;
}

/* A worker whose only task sleeps has nothing to do, and its own figures say so. */
TEST(stats, the_sleeps_of_a_worker_are_counted)
{
    CHECK_EQ(t_run_alone(sleeps_until_it_is_counted, NULL), 0);
}

TEST(stats, without_a_runtime_there_is_nothing_to_read)
{
    blitz_stats s = {.run = 77};
    CHECK_EQ(blitz_stats_read(NULL, &s), -EINVAL);
    CHECK_EQ(blitz_stats_read_proc(NULL, 0, &s), -EINVAL);
    CHECK_EQ(s.run, 77u);
}

/* ---- for people ---- */

TEST(stats, every_figure_has_its_line)
{
    blitz_stats s;
    char text[4096], small[40];
    uint64_t *figure = (uint64_t *)&s;
    size_t lines = 0, figures = offsetof(blitz_stats, io) / sizeof *figure;
    for (size_t i = 0; i < figures; i++)
        figure[i] = 1000 + i;
    s.io = s.io_why = "words";
    size_t length = blitz_stats_format(&s, text, sizeof text);
    CHECK_EQ(length, strlen(text));
    for (size_t i = 0; i < figures; i++) {
        char number[24];
        snprintf(number, sizeof number, " %llu ", (unsigned long long)figure[i]);
        CHECK_NOT_NULL(strstr(text, number));
    }
    for (const char *at = text; (at = strchr(at, '\n')) != NULL; at++)
        lines++;
    CHECK_EQ(lines, figures + 1);                                  /* and the backend */
    CHECK_EQ(blitz_stats_format(&s, small, sizeof small), length); /* cut, and says so */
    CHECK_EQ(strlen(small), sizeof small - 1);
    CHECK_EQ(blitz_stats_format(&s, NULL, 0), length);
}

/* ---- with a second worker ---- */

static bz_atomic(int) elsewhere; /* runs on another thread than the first */

static int runs_anywhere(void *arg)
{
    if (!pthread_equal(pthread_self(), *(pthread_t *)arg))
        bz_fetch_add_relaxed(&elsewhere, 1); /* relaxed: a count */
    return 0;
}

static void join_all(blitz_task **t)
{
    for (int i = 0; i < N; i++)
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
}

/* Its own worker runs only this task: another worker runs the spawned tasks, or none does. On a busy machine the monitor
 * may hand all of them over before they are stolen; then spawn again. */
static int spawns_and_keeps_its_worker(void *arg)
{
    enum { LOOKS = 1000 };
    pthread_t here = pthread_self();
    blitz_task *t[N];
    blitz_stats s = {.steals = 0};
    (void)arg;
    for (;;) {
        for (int i = 0; i < N; i++)
            CHECK_EQ(blitz_spawn(runs_anywhere, &here, NULL, &t[i]), 0);
        for (int i = 0; i < LOOKS && s.steals == 0; i++) {
            sched_yield(); /* the thread's: the task stays */
            CHECK_EQ(blitz_stats_read(NULL, &s), 0);
        }
        if (s.steals > 0)
            break;
        join_all(t);
    }
    CHECK_GE(s.stolen, s.steals);
    while (bz_load_relaxed(&elsewhere) == 0) /* relaxed: a count */
        sched_yield();
    join_all(t);
    return 0;
}

TEST(stats, a_worker_without_work_steals_and_is_counted)
{
    t_hold_procs();
    CHECK_EQ(blitz_run(spawns_and_keeps_its_worker, NULL, &(blitz_runtime_opts){.procs = 2}), 0);
}

static int forks_and_keeps_its_worker(void *arg)
{
    pthread_t here = pthread_self();
    blitz_job job;
    blitz_stats s;
    (void)arg;
    blitz_fork(&job, runs_anywhere, &here);
    do {
        blitz_share();
        sched_yield();
        CHECK_EQ(blitz_stats_read(NULL, &s), 0);
    } while (s.jobs_stolen == 0);
    CHECK_EQ(blitz_join(&job), 0);
    CHECK_EQ(bz_load_relaxed(&elsewhere), 1); /* relaxed: joined */
    return 0;
}

TEST(stats, a_job_that_another_worker_takes_is_counted)
{
    t_hold_procs();
    CHECK_EQ(blitz_run(forks_and_keeps_its_worker, NULL, &(blitz_runtime_opts){.procs = 2}), 0);
}

/* ---- the I/O backend ---- */

static int no_ring(const char *call)
{
    return strcmp(call, "io_uring_setup") == 0 ? ENOSYS : 0;
}

static void needs_epoll(void)
{
    if (!bz_poll_epoll_is_there())
        t_skip("this system has no epoll");
}

static int reads_io(void *arg)
{
    return blitz_stats_read(NULL, arg);
}

/* A user must see which backend runs, and why it is not the one that was asked for. */
TEST(stats, the_io_backend_and_its_reason_are_named)
{
    static const char *const names[] = {"epoll", "poll", "none"};
    needs_epoll();
    for (size_t i = 0; i < BZ_ARRAY_LEN(names); i++) {
        blitz_stats s;
        CHECK_EQ(blitz_run(reads_io, &s, &(blitz_runtime_opts){.io = names[i]}), 0);
        CHECK_STR_EQ(s.io, names[i]);
        CHECK_STR_EQ(s.io_why, "it was asked for");
    }
}

/* Without rings a runtime that asks for them works all the same, and says so. */
TEST(stats, a_ring_that_is_refused_is_the_reason_for_another_backend)
{
    blitz_stats s;
    char text[4096];
    needs_epoll();
    bz_io_fault = no_ring;
    CHECK_EQ(blitz_run(reads_io, &s, &(blitz_runtime_opts){.io = "uring"}), 0);
    bz_io_fault = NULL;
    CHECK_STR_EQ(s.io, "epoll");
    CHECK_STR_EQ(s.io_why, "the system refuses a ring");
    CHECK_GT(blitz_stats_format(&s, text, sizeof text), 0);
    CHECK(strstr(text, "the system refuses a ring") != NULL);
}
