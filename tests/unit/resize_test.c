/* The number of procs changes while the runtime runs: tasks, timers, files and pinned tasks go on. */
#include "harness.h"

#include <errno.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bz_atomic.h"
#include "blitz.h"
#include "support/keepers.h"

static blitz_runtime *runtime_of(unsigned procs, unsigned procs_max)
{
    blitz_runtime *rt;
    blitz_runtime_opts opts = {.procs = procs, .procs_max = procs_max};
    CHECK_EQ(blitz_runtime_new(&opts, &rt), 0);
    return rt;
}

static void runtime_end(blitz_runtime *rt)
{
    CHECK_EQ(blitz_runtime_shutdown(rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref(rt), 0);
}

TEST(resize, numbers_out_of_range_are_refused)
{
    blitz_runtime *rt = runtime_of(2, 3);
    CHECK_EQ(blitz_runtime_resize(NULL, 1), -EINVAL);
    CHECK_EQ(blitz_runtime_resize(rt, 0), -EINVAL);
    CHECK_EQ(blitz_runtime_resize(rt, 4), -EINVAL);
    blitz_stats s;
    CHECK_EQ(blitz_stats_read(rt, &s), 0);
    CHECK_EQ(s.procs, 2u);
    CHECK_EQ(blitz_runtime_resize(rt, 3), 0);
    CHECK_EQ(blitz_runtime_resize(rt, 3), 0);
    CHECK_EQ(blitz_stats_read(rt, &s), 0);
    CHECK_EQ(s.procs, 3u);
    runtime_end(rt);
    rt = runtime_of(2, 0); /* no room unless asked for */
    CHECK_EQ(blitz_runtime_resize(rt, 3), -EINVAL);
    CHECK_EQ(blitz_runtime_resize(rt, 1), 0);
    runtime_end(rt);
    CHECK_EQ(blitz_runtime_new(&(blitz_runtime_opts){.procs = 3, .procs_max = 2}, &rt), -EINVAL);
}

/* How many tasks run at a time. */
struct crowd {
    bz_atomic(int) inside, most;
};

static int stands_in_crowd(void *arg)
{
    struct crowd *c = arg;
    int n = bz_fetch_add_seqcst(&c->inside, 1) + 1; /* seq_cst: counts of the test */
    if (n > 1)
        bz_store_seqcst(&c->most, n); /* seq_cst: likewise */
    for (volatile int i = 0; i < 2000; i++)
        ;
    bz_fetch_sub_seqcst(&c->inside, 1); /* seq_cst: likewise */
    return 0;
}

static int spawns_crowd(void *arg)
{
    enum { MANY = 400 };
    blitz_task *t[MANY];
    for (int i = 0; i < MANY; i++)
        CHECK_EQ(blitz_spawn(stands_in_crowd, arg, NULL, &t[i]), 0);
    blitz_yield();
    for (int i = 0; i < MANY; i++)
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
    return 0;
}

/* On one proc no two tasks run at a time. A machine may be late to notice, if the system gives it no CPU. */
TEST(resize, no_more_tasks_run_at_a_time_than_there_are_procs)
{
    blitz_runtime *rt = runtime_of(8, 8);
    for (int i = 0; i < 5; i++) {
        struct crowd many = {.inside = 0}, one = {.inside = 0};
        int alone = 0;
        CHECK_EQ(blitz_runtime_resize(rt, 8), 0);
        CHECK_EQ(blitz_runtime_block_on(rt, spawns_crowd, &many), 0);
        CHECK_EQ(blitz_runtime_resize(rt, 1), 0);
        for (int tries = 0; alone < 10 && tries < 1000; tries++) {
            bz_store_seqcst(&one.most, 0); /* seq_cst: likewise */
            CHECK_EQ(blitz_runtime_block_on(rt, spawns_crowd, &one), 0);
            alone = bz_load_seqcst(&one.most) == 0 ? alone + 1 : 0; /* seq_cst: likewise */
        }
        CHECK_EQ(alone, 10);
    }
    runtime_end(rt);
}

static int count_workers(void *arg)
{
    *(unsigned *)arg = blitz_worker_count();
    return 0;
}

TEST(resize, parallel_calls_use_the_new_number)
{
    blitz_runtime *rt = runtime_of(1, 6);
    for (unsigned n = 1; n <= 6; n++) {
        unsigned count = 0;
        CHECK_EQ(blitz_runtime_resize(rt, n), 0);
        CHECK_EQ(blitz_runtime_block_on(rt, count_workers, &count), 0);
        CHECK_EQ(count, n);
    }
    runtime_end(rt);
}

/* ---- a proc goes away with timers, files and pinned tasks ---- */

struct sleeper {
    blitz_runtime *rt;
    bz_atomic(int) *asleep;
    int fd;
};

static int sleeps(void *arg)
{
    struct sleeper *s = arg;
    bz_fetch_add_seqcst(s->asleep, 1); /* seq_cst: a count of the test */
    return blitz_sleep(20 * BLITZ_MS);
}

static int reads(void *arg)
{
    struct sleeper *s = arg;
    char byte;
    bz_fetch_add_seqcst(s->asleep, 1); /* seq_cst: a count of the test */
    CHECK_EQ(blitz_fd_wait(s->fd, BLITZ_FD_READ, BLITZ_FOREVER), BLITZ_FD_READ);
    return read(s->fd, &byte, 1) == 1 ? 0 : -EIO;
}

/* Timers and reads begin on each of the procs; then there is one proc. */
static void shrinks_beside(int (*fn)(void *), const char *io, unsigned procs)
{
    enum { EACH = 6 };
    int fd[8 * EACH][2];
    struct sleeper s[8 * EACH];
    blitz_task *t[8 * EACH];
    bz_atomic(int) asleep = 0;
    blitz_runtime *rt;
    unsigned count = procs * EACH;
    CHECK_EQ(blitz_runtime_new(&(blitz_runtime_opts){.procs = procs, .io = io}, &rt), 0);
    for (unsigned i = 0; i < count; i++) {
        blitz_spawn_opts opts = {.runtime = rt, .proc = BLITZ_ON_PROC(i % procs)};
        CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fd[i]), 0);
        s[i] = (struct sleeper){rt, &asleep, fd[i][0]};
        CHECK_EQ(blitz_spawn(fn, &s[i], &opts, &t[i]), 0);
    }
    while (bz_load_seqcst(&asleep) < (int)count) /* seq_cst: a count of the test */
        sched_yield();
    CHECK_EQ(blitz_runtime_resize(rt, 1), 0);
    for (unsigned i = 0; i < count; i++)
        CHECK_EQ(write(fd[i][1], "x", 1), 1);
    for (unsigned i = 0; i < count; i++) {
        int result = 1;
        CHECK_EQ(blitz_task_join(t[i], &result, BLITZ_FOREVER), 0);
        CHECK_EQ(result, 0);
        close(fd[i][0]);
        close(fd[i][1]);
    }
    runtime_end(rt);
}

TEST(resize, bug_08_timers_of_a_proc_that_goes_away_fire)
{
    for (unsigned procs = 2; procs <= 8; procs += 3)
        shrinks_beside(sleeps, NULL, procs);
}

TEST(resize, bug_08_operations_of_a_proc_that_goes_away_complete)
{
    static const char *const keepers[] = {"epoll", "poll", "uring"};
    for (size_t i = 0; i < BZ_ARRAY_LEN(keepers) - !t_has_rings(); i++)
        for (unsigned procs = 2; procs <= 8; procs += 3) {
            t_watch("%s, %u procs", keepers[i], procs);
            shrinks_beside(reads, keepers[i], procs);
        }
}

static int returns_seven(void *arg)
{
    (void)arg;
    return 7;
}

/* A task that asks for a proc that runs none begins elsewhere, also if that proc never had a thread. */
TEST(resize, tasks_pinned_to_a_retired_proc_begin_elsewhere)
{
    blitz_runtime *rt = runtime_of(1, 8);
    for (unsigned n = 8; n > 0; n--) {
        for (unsigned proc = 0; proc < 8; proc++) {
            blitz_spawn_opts opts = {.runtime = rt, .proc = BLITZ_ON_PROC(proc)};
            int result = 0;
            blitz_task *t;
            CHECK_EQ(blitz_spawn(returns_seven, NULL, &opts, &t), 0);
            CHECK_EQ(blitz_task_join(t, &result, BLITZ_FOREVER), 0);
            CHECK_EQ(result, 7);
        }
        CHECK_EQ(blitz_runtime_resize(rt, n), 0);
    }
    runtime_end(rt);
}

/* One proc is left, and a task never waits there: the others go on, on a thread that takes the proc. */
static int burns(void *arg)
{
    while (bz_load_seqcst((bz_atomic(int) *)arg) == 0) /* seq_cst: a flag of the test */
        ;
    return 0;
}

static int ticks(void *arg)
{
    for (int i = 0; i < 5; i++)
        CHECK_EQ(blitz_sleep(BLITZ_MS), 0);
    bz_store_seqcst((bz_atomic(int) *)arg, 1); /* seq_cst: a flag of the test */
    return 0;
}

TEST(resize, an_endless_loop_on_the_last_proc_stops_no_other_task)
{
    blitz_runtime *rt = runtime_of(6, 6);
    bz_atomic(int) stop = 0;
    blitz_task *hog, *t;
    struct crowd many = {.inside = 0};
    CHECK_EQ(blitz_runtime_block_on(rt, spawns_crowd, &many), 0); /* all procs have threads */
    CHECK_EQ(blitz_runtime_resize(rt, 1), 0);
    CHECK_EQ(blitz_spawn(burns, &stop, &(blitz_spawn_opts){.runtime = rt}, &hog), 0);
    CHECK_EQ(blitz_spawn(ticks, &stop, &(blitz_spawn_opts){.runtime = rt}, &t), 0);
    CHECK_EQ(blitz_task_join(t, NULL, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_task_join(hog, NULL, BLITZ_FOREVER), 0);
    runtime_end(rt);
}

/* A virtual clock goes to timers of retired procs, too. */
static int sleeps_for_hours(void *arg)
{
    blitz_instant at = blitz_now();
    (void)arg;
    CHECK_EQ(blitz_sleep(3600 * BLITZ_S), 0);
    CHECK_EQ(blitz_now(), at + 3600 * BLITZ_S);
    return 0;
}

TEST(resize, a_virtual_clock_moves_beside_retired_procs)
{
    blitz_runtime *rt;
    blitz_runtime_opts opts = {.procs = 4, .clock = BLITZ_CLOCK_MANUAL};
    blitz_task *t[8];
    CHECK_EQ(blitz_runtime_new(&opts, &rt), 0);
    for (unsigned i = 0; i < 8; i++) {
        blitz_spawn_opts on = {.runtime = rt, .proc = BLITZ_ON_PROC(i % 4)};
        CHECK_EQ(blitz_spawn(sleeps_for_hours, NULL, &on, &t[i]), 0);
    }
    CHECK_EQ(blitz_clock_advance(rt, 1, BLITZ_FOREVER), 0); /* they sleep */
    CHECK_EQ(blitz_runtime_resize(rt, 1), 0);
    CHECK_EQ(blitz_clock_advance(rt, 3600 * BLITZ_S, BLITZ_FOREVER), 0);
    for (unsigned i = 0; i < 8; i++)
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
    runtime_end(rt);
}

static int resizes_its_own(void *arg)
{
    (void)arg;
    CHECK_EQ(blitz_runtime_resize(NULL, 1), 0);
    CHECK_EQ(blitz_runtime_resize(NULL, 4), 0);
    CHECK_EQ(blitz_runtime_resize(NULL, 5), -EINVAL);
    return 0;
}

TEST(resize, a_task_names_its_own_runtime_by_null)
{
    CHECK_EQ(blitz_run(resizes_its_own, NULL, &(blitz_runtime_opts){.procs = 2, .procs_max = 4}),
             0);
}
