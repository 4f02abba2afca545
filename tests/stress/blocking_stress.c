/*
 * Calls that block in every way, tasks locked to threads and tasks that merely wait, all at once, on
 * real threads: every result comes, and locked tasks never find themselves elsewhere.
 */
#include "harness.h"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include "blitz.h"
#include "base/bz_atomic.h"
#include "base/rng.h"
#include "support/leave.h"
#include "support/on_each.h"

static int computes(void *arg)
{
    uint64_t n = *(uint64_t *)arg;
    if (n % 5 == 0)
        usleep(n % 300); /* lint: allow test-sleep: a thread that blocks is the subject */
    return (int)(n % 1000);
}

struct parcel {
    uint64_t n;
    bz_atomic(unsigned) *dropped;
};

static int computes_parcel(void *arg)
{
    return computes(&((struct parcel *)arg)->n);
}

static void drops_parcel(void *arg, void *ctx)
{
    (void)ctx;
    struct parcel *p = arg;
    bz_fetch_add_relaxed(p->dropped, 1); /* relaxed: a count */
    free(p);
}

static bz_atomic(unsigned) dropped, left; /* parcels that were dropped, and left behind */

static void sends_parcel(uint64_t n)
{
    struct parcel *p = malloc(sizeof *p);
    int got = -1;
    CHECK_NOT_NULL(p);
    *p = (struct parcel){n, &dropped};
    int err = leave_at(computes_parcel, p, drops_parcel, &got, blitz_after(n % 400 * BLITZ_US / 4));
    if (err == -ETIMEDOUT) {
        bz_fetch_add_relaxed(&left, 1); /* relaxed: a count */
        return;
    }
    CHECK_EQ(err, 0);
    CHECK_EQ(got, (int)(n % 1000));
    free(p);
}

static void one_of_each(uint64_t n)
{
    switch (n % 6) {
    case 0:
        CHECK_EQ(blitz_blocking(computes, &n), (int)(n % 1000));
        break;
    case 1:
    case 2:
        CHECK_EQ(blitz_block_in_place(computes, &n), (int)(n % 1000));
        break;
    case 3:
        sends_parcel(n);
        break;
    case 4:
        CHECK_EQ(blitz_sleep(n % 50 * BLITZ_US), 0);
        break;
    default:
        blitz_yield();
    }
}

static int works(void *arg)
{
    struct bz_rng rng;
    bz_rng_init(&rng, (uint64_t)(uintptr_t)arg);
    bool is_locked = bz_rng_below(&rng, 4) == 0 && blitz_thread_lock() == 0;
    pthread_t mine = pthread_self();
    for (uint64_t i = t_scaled(300); i > 0; i--) {
        one_of_each(bz_rng_next(&rng));
        if (is_locked)
            CHECK(pthread_equal(mine, pthread_self()));
    }
    return 0;
}

static int crowd(void *arg)
{
    enum { N = 24 };
    blitz_task *t[N];
    (void)arg;
    for (uintptr_t i = 0; i < N; i++)
        CHECK_EQ(blitz_spawn(works, (void *)(uintptr_t)t_random(), NULL, &t[i]), 0);
    for (int i = 0; i < N; i++)
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
    return 0;
}

TEST(blocking, everything_at_once)
{
    t_on_each(crowd, NULL, 0);
    CHECK_EQ(bz_load_relaxed(&dropped),
             bz_load_relaxed(&left)); /* relaxed: all threads are joined */
}

/* The same with hardly any threads to spare. */
TEST(blocking, everything_at_once_on_few_threads)
{
    for (unsigned procs = 1; procs <= 3; procs++)
        CHECK_EQ(
            blitz_run(crowd, NULL, &(blitz_runtime_opts){.procs = procs, .threads_max = procs + 2}),
            0);
    CHECK_EQ(bz_load_relaxed(&dropped),
             bz_load_relaxed(&left)); /* relaxed: all threads are joined */
}
