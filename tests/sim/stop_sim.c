/*
 * A shutdown that is begun by a signal at every single point of a run, one after the other, and forced by a second one.
 * Work enters, leaves and is cut off meanwhile. Every listener is told, all work has ended when the run returns, and
 * each hook has run once.
 */
#include "support/sched_sim.h"

#include <signal.h>

#include "sim/sim_signals.h"

static bz_os_word raise_now; /* poked */
static blitz_shutdown *stop;
/* The rest is relaxed throughout: one thread runs at a time, so the atomics are only for TSan. */
static bz_atomic(int) inside, hooks, told;
static unsigned procs;

static void hook(void *arg)
{
    (void)arg;
    CHECK_EQ(bz_load_relaxed(&inside), 0); /* relaxed: as above */
    bz_fetch_add_relaxed(&hooks, 1);       /* relaxed: as above */
}

/* A listener that starts work until it is told. */
static int work(void *arg)
{
    blitz_duration lasts = (uintptr_t)arg % 2 == 0 ? 5 * BLITZ_US : 3600 * BLITZ_S;
    if (blitz_shutdown_enter(stop) != 0)
        return 0;
    bz_fetch_add_relaxed(&inside, 1); /* relaxed: as above */
    int rc = blitz_token_wait(blitz_shutdown_token(stop), blitz_after(lasts));
    CHECK(rc == 0 || rc == -ETIMEDOUT);
    bz_fetch_sub_relaxed(&inside, 1); /* relaxed: as above */
    blitz_shutdown_leave(stop);
    return 0;
}

static int accepts(void *arg)
{
    blitz_sync_future begun;
    blitz_sleep_future next;
    blitz_scope s;
    (void)arg;
    CHECK_EQ(blitz_scope_open(&s, NULL, BLITZ_FOREVER), 0);
    for (uintptr_t i = 0;; i++) {
        blitz_shutdown_wait_future_init(&begun, stop);
        blitz_sleep_until_future_init(&next, blitz_after(10 * BLITZ_US));
        if (blitz_first_of((blitz_future *[]){&begun.future, &next.future}, 2, BLITZ_FOREVER) == 0)
            break;
        if (i < 4)
            CHECK_EQ(blitz_scope_spawn(&s, work, (void *)i, NULL), 0);
    }
    bz_fetch_add_relaxed(&told, 1); /* relaxed: as above */
    return blitz_scope_close(&s);
}

static int program(void *arg)
{
    blitz_task *t[2];
    (void)arg;
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(blitz_shutdown_hook(stop, hook, NULL), 0);
        CHECK_EQ(blitz_spawn(accepts, NULL, NULL, &t[i]), 0);
    }
    int rc = blitz_shutdown_run(stop, BLITZ_FOREVER);
    CHECK(rc == 0 || rc == 1);
    CHECK_EQ(bz_load_relaxed(&inside), 0); /* relaxed: as above */
    CHECK_EQ(bz_load_relaxed(&hooks), 2);  /* relaxed: as above */
    for (int i = 0; i < 2; i++)
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
    CHECK_EQ(bz_load_relaxed(&told), 2); /* relaxed: as above */
    return 0;
}

/* The first signal may come before the run listens, and is then its default action. The program would have ended. So
 * this thread sends until one was heard. */
static void raises(void *arg)
{
    const struct bz_os *os = arg;
    bz_os_word word = 0;
    while (bz_load_acquire(&raise_now) == 0) /* os.h, sleep words */
        bz_os_wait(os, &raise_now, 0, BZ_OS_FOREVER);
    while (bz_sim_raise(SIGTERM) == 0)
        (void)bz_os_wait(os, &word, 0, bz_os_now(os) + 3000);
    (void)bz_os_wait(os, &word, 0, bz_os_now(os) + 20000);
    (void)bz_sim_raise(SIGINT); /* the second one; too late if all is over */
}

static void play(const struct bz_os *os, void *arg)
{
    struct bz_os_thread raiser;
    (void)arg;
    bz_store_relaxed(&inside, 0); /* relaxed: no task runs */
    bz_store_relaxed(&hooks, 0);  /* relaxed: likewise */
    bz_store_relaxed(&told, 0);   /* relaxed: likewise */
    bz_sim_signals_begin();
    CHECK_EQ(blitz_shutdown_new(&(blitz_shutdown_opts){.drain = BLITZ_S}, &stop), 0);
    struct bz_runtime *rt = sim_begin(os, procs);
    CHECK_EQ(bz_os_thread_start(os, &raiser, NULL, raises, (void *)os), 0);
    CHECK_EQ(blitz_runtime_block_on((blitz_runtime *)rt, program, NULL), 0);
    CHECK_EQ(bz_os_thread_join(os, &raiser), 0);
    sim_end(rt);
    blitz_shutdown_unref(stop);
    CHECK_EQ(bz_sim_signals_end(), 0);
}

TEST_LIMIT(stop_sim, bug_37_a_signal_at_every_point_ends_the_program_in_order, 300)
{
    uint64_t runs = 0;
    for (int i = 0; i < 6; i++) {
        uint64_t seed = t_random(), points = t_scaled(400);
        procs = 1 + (unsigned)(seed % 3);
        for (uint64_t k = 1; k <= points; k++, runs++) {
            bz_store_relaxed(&raise_now, 0); /* relaxed: no task runs */
            t_watch("simulation seed 0x%llx, %u procs, signal at point %llu",
                    (unsigned long long)seed, procs, (unsigned long long)(k * 3));
            struct bz_sim_config config = {.seed = seed, .poke = &raise_now, .poke_at = k * 3};
            CHECK_EQ(bz_sim_run(&config, play, NULL, NULL), 0);
        }
    }
    t_note("%llu runs", (unsigned long long)runs);
}
