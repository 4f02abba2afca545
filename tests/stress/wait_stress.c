/*
 * Waits on real threads: values put by tasks and plain threads, takers with deadlines of a few
 * microseconds, and cancels at the same time. No wake-up is lost and no waiter is left; sanitizers
 * check the stack frames.
 */
#include "harness.h"

#include "base/rng.h"
#include "blitz.h"
#include "support/box.h"

enum { TAKERS = 64, PUTTERS = 2, ROUNDS = 600 };

static struct box box;
static bz_atomic(int) taken, put, late, cancelled;

static int takes_a_few(void *arg)
{
    struct bz_rng rng;
    bz_rng_init(&rng, (uint64_t)(uintptr_t)arg);
    for (int i = 0; i < 8; i++) {
        uint64_t us = bz_rng_below(&rng, 8);
        int err = box_take(&box, us == 0 ? BLITZ_FOREVER : blitz_after(us * BLITZ_US));
        if (err == 0)
            bz_fetch_add_relaxed(&taken, 1); /* relaxed: a count */
        else
            bz_fetch_add_relaxed(err == -ETIMEDOUT ? &late : &cancelled, 1); /* relaxed: a count */
        if (err == -ECANCELED)
            return err;
    }
    return 0;
}

static int puts_some(void *arg)
{
    int count = (int)(intptr_t)arg;
    for (int i = 0; i < count; i++) {
        bz_fetch_add_relaxed(&put, 1); /* relaxed: a count */
        box_put(&box);
        if (i % 16 == 0)
            blitz_yield(); /* nothing on a plain thread */
    }
    return 0;
}

static void thread_puts(void *arg)
{
    puts_some(arg);
}

static void cancel_and_join(blitz_task **t, struct bz_rng *rng)
{
    for (int i = 0; i < TAKERS; i += 1 + (int)bz_rng_below(rng, 3))
        blitz_task_cancel(t[i]);
    blitz_yield();
    for (int i = 0; i < TAKERS; i++) {
        int result = 1;
        blitz_task_cancel(t[i]);
        CHECK_EQ(blitz_task_join(t[i], &result, BLITZ_FOREVER), 0);
        CHECK(result == 0 || result == -ECANCELED);
    }
}

static int round_of_takers(void *arg)
{
    struct bz_rng *rng = arg;
    blitz_task *taker[TAKERS], *putter[PUTTERS];
    struct bz_os_thread thread;
    for (int i = 0; i < TAKERS; i++)
        CHECK_EQ(blitz_spawn(takes_a_few, (void *)(uintptr_t)bz_rng_next(rng), NULL, &taker[i]), 0);
    for (int i = 0; i < PUTTERS; i++)
        CHECK_EQ(blitz_spawn(puts_some, (void *)(intptr_t)100, NULL, &putter[i]), 0);
    CHECK_EQ(bz_os_thread_start(&bz_os_system, &thread, NULL, thread_puts, (void *)(intptr_t)100),
             0);
    blitz_yield();
    cancel_and_join(taker, rng);
    for (int i = 0; i < PUTTERS; i++)
        CHECK_EQ(blitz_task_join(putter[i], NULL, BLITZ_FOREVER), 0);
    CHECK_EQ(bz_os_thread_join(&bz_os_system, &thread), 0);
    return 0;
}

TEST(wait, bug_22_nothing_is_lost_between_wakes_deadlines_and_cancels)
{
    struct bz_rng rng;
    uint64_t all = 0;
    bz_rng_init(&rng, t_random());
    for (int i = 0, n = (int)t_scaled(ROUNDS); i < n; i++) {
        box_init(&box, &bz_os_system);
        bz_store_relaxed(&taken, 0);
        bz_store_relaxed(&put, 0);
        blitz_runtime_opts config = {.procs = 1 + (unsigned)bz_rng_below(&rng, 4)};
        CHECK_EQ(blitz_run(round_of_takers, &rng, &config), 0);
        CHECK(bz_list_is_empty(&box.takers));
        CHECK_EQ(bz_load_relaxed(&taken) + box.values, bz_load_relaxed(&put));
        all += (uint64_t)bz_load_relaxed(&taken);
    }
    t_note("%llu takes, %d too late, %d cancelled", (unsigned long long)all, bz_load_relaxed(&late),
           bz_load_relaxed(&cancelled));
}
