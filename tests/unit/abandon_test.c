/* A runtime that ends before a blocking call has returned, which its caller has left. */
#include "harness.h"

#include <errno.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "base/compiler.h"
#include "blitz.h"
#include "support/leave.h"

static atomic_int begun, dropped;

static int read_byte(void *arg)
{
    char byte;
    int *fd = arg;
    atomic_fetch_add(&begun, 1);
    return (int)read(fd[0], &byte, 1);
}

static void drop(void *arg, void *ctx)
{
    (void)ctx;
    (void)arg;
    atomic_fetch_add(&dropped, 1);
}

static void await(atomic_int *count, int want)
{
    while (atomic_load(count) < want) /* lint: allow test-sleep: it polls for a condition */
        nanosleep(&(struct timespec){0, 100000}, NULL);
}

/* Leaves a call behind that reads from an empty pipe. It is left once it has begun: a call that is left before
 * that may begin a moment later, or not at all. */
static int leave_a_call(void *arg)
{
    int before = atomic_load(&begun);
    blitz_waker none = {NULL, NULL};
    blitz_blocking_future f;
    blitz_blocking_future_init(&f, read_byte, arg, &(blitz_blocking_opts){.drop = drop});
    CHECK_EQ(f.future.ops->poll(&f.future, &none), BLITZ_PENDING);
    await(&begun, before + 1);
    f.future.ops->cancel(&f.future);
    return 0;
}

static blitz_runtime *with_a_call(int *fd)
{
    blitz_runtime *rt;
    atomic_store(&dropped, 0);
    CHECK_EQ(pipe(fd), 0);
    CHECK_EQ(blitz_runtime_new(&(blitz_runtime_opts){.procs = 2}, &rt), 0);
    CHECK_EQ(blitz_runtime_block_on(rt, leave_a_call, fd), 0);
    return rt;
}

static void close_both(const int *fd)
{
    close(fd[0]);
    close(fd[1]);
}

/* The header says that a shutdown that timed out may be repeated, so the runtime must still be there. */
TEST(abandon, unref_is_refused_while_a_blocking_call_is_under_way)
{
    int fd[2];
    blitz_runtime *rt = with_a_call(fd);
    blitz_log_set(NULL, NULL, BLITZ_LOG_ERROR);
    int gone = atomic_load(&dropped);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(blitz_runtime_shutdown(rt, blitz_after(BLITZ_MS)), -ETIMEDOUT);
        CHECK_EQ(blitz_runtime_unref(rt), -EBUSY);
    }
    CHECK_EQ(write(fd[1], "a", 1), 1);
    CHECK_EQ(blitz_runtime_shutdown(rt, BLITZ_FOREVER), 0);
    CHECK_EQ(atomic_load(&dropped), gone + 1);
    CHECK_EQ(blitz_runtime_unref(rt), 0);
    close_both(fd);
}

/* The call returns when the runtime's memory is gone. */
TEST(abandon, an_abandoned_call_outlives_its_runtime)
{
    int fd[2];
    t_may_leave(T_THREADS); /* its thread ends a moment after the drop */
    blitz_log_set(NULL, NULL, BLITZ_LOG_ERROR);
    for (int i = 0; i < 20; i++) {
        blitz_runtime *rt = with_a_call(fd);
        int gone = atomic_load(&dropped);
        if (i % 2)
            CHECK_EQ(blitz_runtime_shutdown(rt, blitz_after(BLITZ_MS)), -ETIMEDOUT);
        CHECK_EQ(blitz_runtime_abandon(rt, BLITZ_FOREVER), 0);
        CHECK_EQ(blitz_runtime_unref(rt), 0);
        CHECK_EQ(atomic_load(&dropped), gone);
        CHECK_EQ(write(fd[1], "a", 1), 1);
        await(&dropped, gone + 1);
        close_both(fd);
    }
}

static int stay_until_told(void *arg)
{
    atomic_int *is_told = arg;
    blitz_shield();
    while (!atomic_load(is_told))
        CHECK_EQ(blitz_sleep(BLITZ_MS), 0);
    blitz_unshield();
    return 0;
}

/* A runtime whose tasks have not ended in time keeps its calls: the shutdown may be repeated, with or without them. */
TEST(abandon, no_call_is_abandoned_before_every_task_has_ended)
{
    int fd[2];
    atomic_int is_told = 0;
    blitz_task *t;
    blitz_runtime *rt = with_a_call(fd);
    int gone = atomic_load(&dropped);
    blitz_log_set(NULL, NULL, BLITZ_LOG_ERROR);
    CHECK_EQ(blitz_spawn(stay_until_told, &is_told, &(blitz_spawn_opts){.runtime = rt}, &t), 0);
    CHECK_EQ(blitz_runtime_abandon(rt, blitz_after(BLITZ_MS)), -ETIMEDOUT);
    atomic_store(&is_told, 1);
    CHECK_EQ(blitz_task_join(t, NULL, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_shutdown(rt, blitz_after(BLITZ_MS)),
             -ETIMEDOUT); /* the call is under way */
    CHECK_EQ(write(fd[1], "a", 1), 1);
    CHECK_EQ(blitz_runtime_shutdown(rt, BLITZ_FOREVER), 0);
    CHECK_EQ(atomic_load(&dropped), gone + 1);
    CHECK_EQ(blitz_runtime_unref(rt), 0);
    close_both(fd);
}

/* ---- calls that return just then ---- */

enum { CALLS = 4 };

static int return_soon(void *arg)
{
    long ns = (long)(intptr_t)arg;
    if (ns > 0) /* lint: allow test-sleep: a blocking call of random length */
        nanosleep(&(struct timespec){0, ns}, NULL);
    return 0;
}

static atomic_int left;

static int leave_calls(void *arg)
{
    struct t_rng *rng = arg;
    for (int i = 0; i < CALLS; i++) {
        void *ns = (void *)(intptr_t)t_rng_below(rng, 100000);
        uint64_t patience_ns = t_rng_below(rng, 100) * BLITZ_US;
        int err = leave_at(return_soon, ns, drop, NULL, blitz_after(patience_ns));
        CHECK(err == 0 || err == -ETIMEDOUT);
        atomic_fetch_add(&left, err != 0);
    }
    return 0;
}

static void race(unsigned procs)
{
    t_may_leave(T_THREADS);
    blitz_log_set(NULL, NULL, BLITZ_LOG_ERROR);
    for (uint64_t round = 0, rounds = t_scaled(2000); round < rounds; round++) {
        struct t_rng rng = t_rng_of(t_random());
        blitz_runtime *rt;
        atomic_store(&dropped, 0);
        atomic_store(&left, 0);
        CHECK_EQ(blitz_runtime_new(&(blitz_runtime_opts){.procs = procs}, &rt), 0);
        CHECK_EQ(blitz_runtime_block_on(rt, leave_calls, &rng), 0);
        CHECK_EQ(blitz_runtime_abandon(rt, BLITZ_FOREVER), 0);
        CHECK_EQ(blitz_runtime_unref(rt), 0);
        await(&dropped, atomic_load(&left));
    }
}

TEST_LIMIT(abandon, calls_that_return_while_they_are_abandoned_on_1_proc, 300)
{
    race(1);
}

TEST_LIMIT(abandon, calls_that_return_while_they_are_abandoned_on_2_procs, 300)
{
    race(2);
}

TEST_LIMIT(abandon, calls_that_return_while_they_are_abandoned_on_3_procs, 300)
{
    race(3);
}

TEST_LIMIT(abandon, calls_that_return_while_they_are_abandoned_on_8_procs, 300)
{
    race(8);
}
