/*
 * A virtual clock that moves by itself stands while a task runs anywhere, a call blocks, or an operation waits for the
 * kernel. In each case another task sleeps for an hour, and must not wake too early.
 */
#include "harness.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/bz_atomic.h"
#include "base/compiler.h"
#include "blitz.h"
#include "support/keepers.h"

#define HOUR (3600 * BLITZ_S)

struct scene {
    blitz_runtime *rt;
    blitz_instant at; /* when it began */
    bz_atomic(int) is_over, began, left;
};

static void on_auto(int (*fn)(void *), struct scene *s)
{
    static const unsigned procs[] = {1, 2, 3, 8};
    for (size_t i = 0; i < BZ_ARRAY_LEN(procs); i++) {
        blitz_runtime_opts opts = {.procs = procs[i], .clock = BLITZ_CLOCK_AUTO};
        t_watch("%u procs", procs[i]);
        *s = (struct scene){.rt = NULL};
        CHECK_EQ(blitz_runtime_new(&opts, &s->rt), 0);
        s->at = blitz_clock_now(s->rt);
        CHECK_EQ(blitz_runtime_block_on(s->rt, fn, s), 0);
        CHECK_EQ(blitz_runtime_shutdown(s->rt, BLITZ_FOREVER), 0);
        CHECK_EQ(blitz_runtime_unref(s->rt), 0);
    }
}

/* Real time passes, for a bug that would move the clock, and the clock stands. */
static void stands_for(struct scene *s, long ns)
{
    struct timespec begin, now;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    do {
        CHECK_EQ(blitz_clock_now(s->rt), s->at);
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((now.tv_sec - begin.tv_sec) * 1000000000 + now.tv_nsec - begin.tv_nsec < ns);
}

static int hour_passes(void *arg)
{
    struct scene *s = arg;
    CHECK_EQ(blitz_sleep_until(s->at + HOUR), 0);
    CHECK_EQ(blitz_now(), s->at + HOUR);
    CHECK_EQ(bz_load_seqcst(&s->is_over), 1); /* seq_cst: a flag of the test */
    return 0;
}

static void over(struct scene *s)
{
    bz_store_seqcst(&s->is_over, 1); /* seq_cst: a flag of the test */
}

/* ---- calls that block ---- */

static int blocks(void *arg)
{
    stands_for(arg, 5000000);
    over(arg);
    return 0;
}

static int beside_a_call(void *arg)
{
    blitz_task *t;
    CHECK_EQ(blitz_spawn(hour_passes, arg, NULL, &t), 0);
    CHECK_EQ(blitz_blocking(blocks, arg), 0);
    return blitz_task_join(t, NULL, BLITZ_FOREVER);
}

TEST(clock_hold, a_blocking_call)
{
    struct scene s;
    on_auto(beside_a_call, &s);
}

static int beside_a_call_in_place(void *arg)
{
    blitz_task *t;
    CHECK_EQ(blitz_spawn(hour_passes, arg, NULL, &t), 0);
    CHECK_EQ(blitz_block_in_place(blocks, arg), 0);
    return blitz_task_join(t, NULL, BLITZ_FOREVER);
}

TEST(clock_hold, a_call_in_place)
{
    struct scene s;
    on_auto(beside_a_call_in_place, &s);
}

/* A call whose caller has left wakes no task when it ends. The clock moves all the same. */
static int blocks_apart(void *arg)
{
    struct scene *s = arg;
    bz_store_seqcst(&s->began, 1);        /* seq_cst: a flag of the test */
    while (bz_load_seqcst(&s->left) == 0) /* seq_cst: likewise */
        sched_yield();
    return blocks(arg);
}

static int awaits_call(void *arg)
{
    blitz_blocking_future f;
    blitz_blocking_future_init(&f, blocks_apart, arg, NULL);
    return blitz_await(&f.future, BLITZ_FOREVER);
}

static int beside_a_call_that_was_left(void *arg)
{
    struct scene *s = arg;
    int left = 0;
    blitz_task *t;
    CHECK_EQ(blitz_spawn(awaits_call, s, NULL, &t), 0);
    while (bz_load_seqcst(&s->began) == 0) /* seq_cst: a flag of the test */
        blitz_yield();
    blitz_task_cancel(t);
    CHECK_EQ(blitz_task_join(t, &left, BLITZ_FOREVER), 0);
    CHECK_EQ(left, -ECANCELED);
    bz_store_seqcst(&s->left, 1); /* seq_cst: a flag of the test */
    CHECK_EQ(blitz_spawn(hour_passes, arg, NULL, &t), 0);
    return blitz_task_join(t, NULL, BLITZ_FOREVER);
}

TEST(clock_hold, a_blocking_call_that_was_left)
{
    struct scene s;
    on_auto(beside_a_call_that_was_left, &s);
}

/* ---- tasks ---- */

/* It computes for so long that it loses its proc, which then sleeps. */
static int computes(void *arg)
{
    stands_for(arg, 60000000);
    over(arg);
    return 0;
}

/* The clock stands while fn(arg) runs beside a task that waits for an hour. */
static int beside(int (*fn)(void *), void *arg)
{
    blitz_task *t, *other;
    CHECK_EQ(blitz_spawn(hour_passes, arg, NULL, &t), 0);
    CHECK_EQ(blitz_spawn(fn, arg, NULL, &other), 0);
    CHECK_EQ(blitz_task_join(other, NULL, BLITZ_FOREVER), 0);
    return blitz_task_join(t, NULL, BLITZ_FOREVER);
}

static int beside_a_hog(void *arg)
{
    return beside(computes, arg);
}

TEST(clock_hold, a_task_that_computes_without_a_proc)
{
    struct scene s;
    on_auto(beside_a_hog, &s);
}

static int takes_turns(void *arg)
{
    for (int i = 0; i < 20000; i++) {
        CHECK_EQ(blitz_now(), ((struct scene *)arg)->at);
        blitz_yield();
    }
    over(arg);
    return 0;
}

static int beside_turns(void *arg)
{
    return beside(takes_turns, arg);
}

TEST(clock_hold, a_task_that_takes_turns)
{
    struct scene s;
    on_auto(beside_turns, &s);
}

/* Two tasks on threads of their own hand a value to and fro, and then sleep: in the right order. */
static int plays(void *arg)
{
    blitz_chan **c = arg;
    int value = 0;
    blitz_instant at = blitz_now();
    CHECK_EQ(blitz_thread_lock(), 0);
    for (int i = 0; i < 50; i++) {
        CHECK_EQ(blitz_chan_recv(c[0], &value, BLITZ_FOREVER), 0);
        CHECK_EQ(blitz_now(), at);
        CHECK_EQ(blitz_chan_send(c[1], &value, BLITZ_FOREVER), 0);
    }
    for (int i = 1; i <= 20; i++) {
        CHECK_EQ(blitz_sleep(BLITZ_S), 0);
        CHECK_EQ(blitz_now(), at + (unsigned)i * BLITZ_S);
    }
    CHECK_EQ(blitz_thread_unlock(), 0);
    return 0;
}

static int locked_players(void *arg)
{
    struct scene *s = arg;
    blitz_chan *c[3]; /* the first again as the last: each player has a pair */
    blitz_task *t[3];
    CHECK_EQ(blitz_spawn(hour_passes, arg, NULL, &t[2]), 0);
    CHECK_EQ(blitz_chan_new(sizeof(int), 1, NULL, &c[0]), 0);
    CHECK_EQ(blitz_chan_new(sizeof(int), 1, NULL, &c[1]), 0);
    c[2] = c[0];
    CHECK_EQ(blitz_spawn(plays, &c[0], NULL, &t[0]), 0);
    CHECK_EQ(blitz_spawn(plays, &c[1], NULL, &t[1]), 0);
    CHECK_EQ(blitz_chan_send(c[0], &(int){1}, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_task_join(t[0], NULL, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_task_join(t[1], NULL, BLITZ_FOREVER), 0);
    over(s);
    CHECK_EQ(blitz_task_join(t[2], NULL, BLITZ_FOREVER), 0);
    blitz_chan_unref(c[0]);
    blitz_chan_unref(c[1]);
    return 0;
}

TEST(clock_hold, tasks_on_threads_of_their_own)
{
    struct scene s;
    on_auto(locked_players, &s);
}

/* ---- operations ---- */

struct talk {
    blitz_fd fd[2];
    blitz_instant at;
};

static int reads(void *arg)
{
    struct talk *talk = arg;
    char byte = 0;
    CHECK_EQ(blitz_fd_wait(talk->fd[0], BLITZ_FD_READ, talk->at + HOUR), BLITZ_FD_READ);
    CHECK_EQ(blitz_now(), talk->at);
    CHECK_EQ(read(talk->fd[0], &byte, 1), 1);
    return 0;
}

/* A plain thread, so that every task waits meanwhile. */
static void *writes(void *arg)
{
    struct talk *talk = arg;
    struct timespec begin, now;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    do
        clock_gettime(CLOCK_MONOTONIC, &now);
    while ((now.tv_sec - begin.tv_sec) * 1000000000 + now.tv_nsec - begin.tv_nsec < 5000000);
    CHECK_EQ(write(talk->fd[1], "x", 1), 1);
    return NULL;
}

static int waits_for_a_byte(void *arg)
{
    struct talk talk = {.at = blitz_now()};
    pthread_t thread;
    blitz_task *t;
    (void)arg;
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, talk.fd), 0);
    CHECK_EQ(blitz_clock_pause(NULL, BLITZ_CLOCK_AUTO), 0);
    talk.at = blitz_now();
    CHECK_EQ(pthread_create(&thread, NULL, writes, &talk), 0);
    CHECK_EQ(blitz_spawn(reads, &talk, NULL, &t), 0);
    CHECK_EQ(blitz_task_join(t, NULL, BLITZ_FOREVER), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    /* Nothing is under way any more: the clock moves. A deadline of a read comes by advance alone. */
    CHECK_EQ(blitz_sleep(HOUR), 0);
    CHECK_EQ(blitz_now(), talk.at + HOUR);
    CHECK_EQ(close(talk.fd[0]), 0);
    CHECK_EQ(close(talk.fd[1]), 0);
    return 0;
}

static int deadline_of_a_read(void *arg)
{
    struct talk *talk = arg;
    CHECK_EQ(blitz_fd_wait(talk->fd[0], BLITZ_FD_READ, talk->at + HOUR), -ETIMEDOUT);
    CHECK_EQ(blitz_now(), talk->at + HOUR);
    return 0;
}

static int advances_past_a_read(void *arg)
{
    struct talk talk;
    blitz_task *t;
    (void)arg;
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, talk.fd), 0);
    CHECK_EQ(blitz_clock_pause(NULL, BLITZ_CLOCK_AUTO), 0);
    talk.at = blitz_now();
    CHECK_EQ(blitz_spawn(deadline_of_a_read, &talk, NULL, &t), 0);
    CHECK_EQ(blitz_clock_advance(NULL, HOUR - 1, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_now(), talk.at + HOUR - 1);
    CHECK_EQ(blitz_clock_advance(NULL, 1, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_task_join(t, NULL, BLITZ_FOREVER), 0);
    CHECK_EQ(close(talk.fd[0]), 0);
    CHECK_EQ(close(talk.fd[1]), 0);
    return 0;
}

static void on_backends(int (*fn)(void *))
{
    static const char *const keepers[] = {"epoll", "poll", "uring"};
    size_t count = BZ_ARRAY_LEN(keepers) - !t_has_rings();
    for (size_t i = 0; i < count * 3; i++) {
        blitz_runtime_opts opts = {
            .procs = 1 + (unsigned)(i % 3), .io = keepers[i / 3], .clock = BLITZ_CLOCK_RUNS};
        t_watch("%s, %u procs", opts.io, opts.procs);
        CHECK_EQ(blitz_run(fn, NULL, &opts), 0);
    }
}

TEST(clock_hold, an_operation_that_waits_for_the_kernel)
{
    on_backends(waits_for_a_byte);
}

TEST(clock_hold, but_an_advance_does_not_wait_for_operations)
{
    on_backends(advances_past_a_read);
}
