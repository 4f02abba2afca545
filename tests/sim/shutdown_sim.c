/*
 * Bug class 37: a shutdown that comes at every single point of a run, one after the other.
 *
 * The same seed is run again and again; the k-th time the shutdown comes at the k-th point of choice
 * (sim/sim.h, poke). It must return, and not before the last task has ended; nothing may be left. A
 * shutdown that hangs is a deadlock and reported as such.
 */
#include "support/sim.h"

#include "blitz.h"
#include "sim/fault.h"
#include "proc/state.h"
#include "runtime/runtime.h"

static bz_os_word stop_now; /* poked */
/* The rest is relaxed throughout: one thread runs at a time, so the atomics are only for TSan. */
static bz_atomic(int) bodies;        /* tasks that have begun and not ended */
static bz_atomic(int) turned_away;   /* spawns */
static bz_atomic(bool) is_shut_down; /* shutdown has returned */
static unsigned procs;

/* ---- a bit of everything ---- */

static void begin(void)
{
    CHECK(!bz_load_relaxed(&is_shut_down)); /* relaxed: as above */
    bz_fetch_add_relaxed(&bodies, 1);       /* relaxed: as above */
}

static int finish(int result)
{
    bz_fetch_sub_relaxed(&bodies, 1); /* relaxed: as above */
    return result;
}

static int yields(void *arg)
{
    (void)arg;
    begin();
    for (int i = 0; i < 3; i++)
        blitz_yield();
    return finish(0);
}

static int sleeps(void *arg)
{
    (void)arg;
    begin();
    int err = blitz_sleep(20 * BLITZ_US);
    CHECK(err == 0 || err == -ECANCELED);
    return finish(err);
}

static int cleans_up_under_a_shield(void *arg)
{
    (void)arg;
    begin();
    int err = blitz_sleep_until(blitz_after(30 * BLITZ_US));
    blitz_shield();
    CHECK_EQ(blitz_sleep(5 * BLITZ_US), 0);
    blitz_unshield();
    return finish(err);
}

static int job(void *arg)
{
    (void)arg;
    blitz_yield();
    return 1;
}

static int forks(void *arg)
{
    blitz_job a, b;
    (void)arg;
    begin();
    blitz_fork(&a, job, NULL);
    blitz_fork(&b, job, NULL);
    blitz_yield();
    CHECK_EQ(blitz_join(&b) + blitz_join(&a), 2);
    return finish(0);
}

static int spawns(void *arg);

static void spawn(int (*fn)(void *), void *arg, blitz_task **out)
{
    int err = blitz_spawn(fn, arg, NULL, out);
    CHECK(err == 0 || err == -ESHUTDOWN);
    bz_fetch_add_relaxed(&turned_away, err != 0); /* relaxed: as above */
}

static int spawns(void *arg)
{
    intptr_t depth = (intptr_t)arg;
    blitz_task *t[4] = {NULL, NULL, NULL, NULL};
    begin();
    if (depth > 0) {
        spawn(spawns, (void *)(depth - 1), &t[0]);
        spawn(sleeps, NULL, &t[1]);
        spawn(yields, NULL, NULL);
        spawn(forks, NULL, &t[2]);
        spawn(cleans_up_under_a_shield, NULL, &t[3]);
    }
    for (int i = 0; i < 4; i++)
        if (t[i] != NULL)
            CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
    return finish(0);
}

/* ---- the stopper ---- */

struct stage {
    const struct bz_os *os;
    blitz_runtime *rt;
};

static void stops(void *arg)
{
    struct stage *s = arg;
    while (bz_load_acquire(&stop_now) == 0) /* os.h, sleep words */
        bz_os_wait(s->os, &stop_now, 0, BZ_OS_FOREVER);
    CHECK_EQ(blitz_runtime_shutdown(s->rt, BLITZ_FOREVER), 0);
    CHECK_EQ(bz_load_relaxed(&bodies), 0); /* relaxed: as above. Not before the last has ended */
    bz_store_relaxed(&is_shut_down, true); /* relaxed: as above */
    blitz_stats stats;
    CHECK_EQ(blitz_stats_read(s->rt, &stats), 0);
    CHECK_EQ(stats.spawned, stats.ended);
}

static void play(const struct bz_os *os, void *arg)
{
    struct bz_fault books;
    struct bz_runtime *rt;
    struct bz_os_thread stopper;
    (void)arg;
    bz_fault_init(&books, os, NULL, &(struct bz_fault_plan){.nth = 0});
    CHECK_EQ(bz_runtime_new(&books.os,
                            &(blitz_runtime_opts){.procs = procs, .allocator = &books.allocator},
                            &rt),
             0);
    struct stage s = {os, (blitz_runtime *)rt};
    CHECK_EQ(bz_os_thread_start(os, &stopper, NULL, stops, &s), 0);
    int err = blitz_runtime_block_on(s.rt, spawns, (void *)(intptr_t)2);
    CHECK(err == 0 || err == -ESHUTDOWN);
    bz_store_release(&stop_now, 1); /* os.h, sleep words: it did not come to that */
    bz_os_wake(os, &stop_now, 1);
    CHECK_EQ(bz_os_thread_join(os, &stopper), 0);
    CHECK_EQ(blitz_runtime_shutdown(s.rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref(s.rt), 0);
    struct bz_fault_books left = bz_fault_books(&books);
    CHECK_EQ(left.threads, 0);
    CHECK_EQ(left.blocks, 0);
    CHECK_EQ(left.slabs, 0);
}

/* One run with the shutdown at point k; how many points it had. */
static uint64_t play_with_stop_at(uint64_t seed, uint64_t k, bool has_no_barrier)
{
    struct bz_sim_result r;
    bz_store_relaxed(&stop_now, 0);         /* relaxed: no task runs */
    bz_store_relaxed(&bodies, 0);           /* relaxed: likewise */
    bz_store_relaxed(&is_shut_down, false); /* relaxed: likewise */
    t_watch("simulation seed 0x%llx, %u procs, shutdown at point %llu%s", (unsigned long long)seed,
            procs, (unsigned long long)k, has_no_barrier ? ", no barriers" : "");
    struct bz_sim_config config = {
        .seed = seed, .poke = &stop_now, .poke_at = k, .has_no_barrier = has_no_barrier};
    CHECK_EQ(bz_sim_run(&config, play, NULL, &r), 0);
    return r.steps;
}

/* Every point in its turn, where there is time for it; else some, begun somewhere else each time. */
static uint64_t at_every_point(bool has_no_barrier, uint64_t points)
{
    uint64_t seed = t_random(), runs = 0;
    procs = 1 + (unsigned)(seed % 3);
    uint64_t all = play_with_stop_at(seed, UINT64_MAX, has_no_barrier);
    uint64_t stride = all / points > 0 ? all / points : 1;
    for (uint64_t k = 1 + seed % stride; k <= all; k += stride, runs++)
        play_with_stop_at(seed, k, has_no_barrier); /* up to k it is the same run */
    return runs;
}

TEST_LIMIT(shutdown, bug_37_at_every_point_of_a_run, 300)
{
    uint64_t runs = 0;
    bz_store_relaxed(&turned_away, 0); /* relaxed: no task runs */
    for (int i = 0; i < 8; i++)
        runs += at_every_point(false, t_scaled(2000));
    CHECK_GE(runs, 4u);
    CHECK_GT(bz_load_relaxed(&turned_away), 0); /* relaxed: likewise. Some came upon a spawn */
    t_note("%llu runs", (unsigned long long)runs);
}

TEST_LIMIT(shutdown, bug_37_at_every_point_of_a_run_without_barriers, 300)
{
    uint64_t runs = 0;
    for (int i = 0; i < 4; i++)
        runs += at_every_point(true, t_scaled(2000));
    CHECK_GE(runs, 2u);
}
