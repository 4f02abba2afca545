/*
 * A backend whose calls begin to fail after the start, for a while or for good, under seeds.
 */
#include "harness.h"

#include <errno.h>
#include <stdatomic.h>

#include "io/attempt.h"
#include "support/net_sim.h"

static atomic_int refusal; /* the errno of each enter; 0: none is refused */

static int refuse(const char *call)
{
    return strcmp(call, "io_uring_enter") == 0 ? refusal : 0;
}

enum { ROUNDS = 20 };

static int echo(void *arg)
{
    char byte;
    for (int i = 0; i < ROUNDS; i++) {
        CHECK_EQ(blitz_tcp_read(arg, &byte, 1, BLITZ_FOREVER), 1);
        CHECK_EQ(blitz_tcp_write(arg, &byte, 1, BLITZ_FOREVER), 1);
    }
    return 0;
}

static int ask(void *arg)
{
    char byte = 3;
    for (int i = 0; i < ROUNDS; i++) {
        CHECK_EQ(blitz_tcp_write(arg, &byte, 1, BLITZ_FOREVER), 1);
        CHECK_EQ(blitz_tcp_read(arg, &byte, 1, BLITZ_FOREVER), 1);
    }
    return 0;
}

static int wait_and_give_up(void *arg)
{
    char byte;
    for (int i = 0; i < ROUNDS; i++)
        CHECK_EQ(blitz_tcp_read(arg, &byte, 1, blitz_after(BLITZ_MS / 4)), -ETIMEDOUT);
    return 0;
}

/* Enters are refused for a few milliseconds, again and again. Each operation is done, each deadline kept. */
static int refused_for_now(void *arg)
{
    static const int errors[] = {ENOMEM, EAGAIN, EBUSY};
    blitz_tcp *end[2], *idle[2];
    blitz_task *t[3];
    (void)arg;
    CHECK_EQ(blitz_unix_pair(end), 0);
    CHECK_EQ(blitz_unix_pair(idle), 0);
    CHECK_EQ(blitz_spawn(echo, end[1], NULL, &t[0]), 0);
    CHECK_EQ(blitz_spawn(ask, end[0], NULL, &t[1]), 0);
    CHECK_EQ(blitz_spawn(wait_and_give_up, idle[0], NULL, &t[2]), 0);
    for (int i = 0; i < 10; i++) {
        refusal = errors[net_dice(BZ_ARRAY_LEN(errors))];
        CHECK_EQ(blitz_sleep((1 + net_dice(3)) * BLITZ_MS), 0);
        refusal = 0;
        CHECK_EQ(blitz_sleep(net_dice(500) * BLITZ_US), 0);
    }
    for (size_t i = 0; i < BZ_ARRAY_LEN(t); i++)
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
    for (int i = 0; i < 2; i++) {
        blitz_tcp_unref(end[i]);
        blitz_tcp_unref(idle[i]);
    }
    return 0;
}

static int read_until(void *arg)
{
    char byte;
    return (int)blitz_tcp_read(arg, &byte, 1, blitz_after(2 * BLITZ_MS));
}

static int read_for_ever(void *arg)
{
    char byte;
    return (int)blitz_tcp_read(arg, &byte, 1, BLITZ_FOREVER);
}

static int nothing(void *arg)
{
    (void)arg;
    return 0;
}

/* Enters are refused for good: deadlines and cancels hold, procs are roused, new operations fail. */
static int refused_for_good(void *arg)
{
    static const int errors[] = {EPERM, EACCES, ENOSYS};
    blitz_tcp *end[2];
    blitz_task *timed, *cancelled, *t;
    char byte = 1;
    int result = 0;
    (void)arg;
    CHECK_EQ(blitz_unix_pair(end), 0);
    bool is_early = net_dice(2) == 0; /* if not, the last proc sleeps in its ring without a timer */
    if (is_early)
        CHECK_EQ(blitz_spawn(read_until, end[0], NULL, &timed), 0);
    blitz_spawn_opts last = {.proc = blitz_worker_count()};
    CHECK_EQ(blitz_spawn(read_for_ever, end[1], &last, &cancelled), 0);
    CHECK_EQ(blitz_sleep(net_dice(2000) * BLITZ_US), 0);
    refusal = errors[net_dice(BZ_ARRAY_LEN(errors))];
    for (unsigned i = 0; i < 2 * blitz_worker_count(); i++) {
        blitz_spawn_opts opts = {.proc = 1 + i % blitz_worker_count()};
        CHECK_EQ(blitz_spawn(nothing, NULL, &opts, &t), 0);
        CHECK_EQ(blitz_task_join(t, NULL, blitz_after(60 * BLITZ_S)), 0);
    }
    if (!is_early)
        CHECK_EQ(blitz_spawn(read_until, end[0], NULL, &timed), 0);
    CHECK_EQ(blitz_task_join(timed, &result, BLITZ_FOREVER), 0);
    CHECK(result == -ETIMEDOUT || result == -EIO);
    blitz_task_cancel(cancelled);
    CHECK_EQ(blitz_task_join(cancelled, &result, BLITZ_FOREVER), 0);
    CHECK(result == -ECANCELED || result == -EIO ||
          result == 0); /* 0: the other end was shut down */
    CHECK_LE(blitz_tcp_read(end[0], &byte, 1, blitz_after(BLITZ_MS)), 0);
    blitz_tcp_unref(end[0]);
    blitz_tcp_unref(end[1]);
    return 0;
}

static void say_nothing(void *ctx, blitz_log_level level, const char *message)
{
    (void)ctx;
    (void)level;
    (void)message;
}

static void play(int (*fn)(void *), uint64_t seeds)
{
    blitz_log_set(say_nothing, NULL, BLITZ_LOG_ERROR); /* the lines that follow are wanted */
    for (uint64_t i = 0, n = sim_seeds(seeds); i < n; i++) {
        uint64_t seed = sim_next_seed();
        struct net_scene s = {.scene = {1 + (unsigned)(seed % 4), fn, NULL, 0}, .io = "uring"};
        refusal = 0;
        bz_io_fault = refuse;
        t_watch("simulation seed 0x%llx, %u procs", (unsigned long long)seed, s.scene.procs);
        int err = t_sim(seed, net_play, &s);
        bz_io_fault = NULL;
        if (err != 0)
            FAIL("simulation seed 0x%llx, %u procs: error %d\n%s", (unsigned long long)seed,
                 s.scene.procs, err, t_sim_report.text);
    }
}

TEST_LIMIT(refused_sim, bug_46_operations_are_done_after_enters_were_refused_for_now, 120)
{
    play(refused_for_now, 100);
}

TEST_LIMIT(refused_sim, bug_46_deadlines_hold_when_enters_are_refused_for_good, 120)
{
    play(refused_for_good, 300);
}
