/*
 * Loops in virtual time, from seeds: whoever takes a part and whenever, every index is run once, sums
 * are in order, errors and cancels stop them, and others go on meanwhile.
 */
#include "support/sched_sim.h"

#include "support/loop_scenes.h"

/* The scene's dice come from the seed as well, so that it alone repeats a failure. */
static void on_seeds(int (*fn)(void *), uint64_t seeds, unsigned least, unsigned most)
{
    for (uint64_t i = 0, n = sim_seeds(seeds); i < n; i++) {
        struct loop_dice d = {sim_next_seed(), 60, 3};
        struct sim_scene s = {least + (unsigned)(d.state % (most - least + 1)), fn, &d, 0};
        sim_one(d.state, &s);
    }
}

/* ---- twins ---- */

static int twins(void *arg)
{
    struct loop_dice d = *(struct loop_dice *)arg;
    loop_check_for(&d);
    loop_check_2d(&d);
    loop_check_reduce(&d);
    loop_check_scan(&d);
    return 0;
}

TEST(loop_sim, each_function_does_what_its_sequential_twin_does)
{
    on_seeds(twins, 200, 1, 8);
}

static int twin_pipes(void *arg)
{
    struct loop_dice d = *(struct loop_dice *)arg;
    loop_check_scan_values(&d);
    loop_check_pipeline(&d);
    loop_check_workers();
    return 0;
}

TEST(loop_sim, pipelines_and_workers_likewise)
{
    on_seeds(twin_pipes, 150, 1, 8);
}

/* ---- stopping ---- */

struct stopping {
    size_t at;
    bz_atomic(size_t) after;
    bz_atomic(int) has_failed;
};

static int fails_at(size_t i, void *arg)
{
    struct stopping *s = arg;
    if (bz_load_relaxed(&s->has_failed)) /* relaxed: one thread at a time */
        bz_fetch_add_relaxed(&s->after, 1);
    loop_waver(2, i);
    if (i != s->at)
        return 0;
    bz_store_relaxed(&s->has_failed, 1); /* relaxed: likewise */
    return -EIO;
}

static int stop_early(void *arg)
{
    struct stopping s = {.at = (size_t)loop_roll(arg, 64)};
    CHECK_EQ(blitz_for_each(64, fails_at, &s, &(blitz_par_opts){1, 1, 0}), -EIO);
    CHECK_LE(bz_load_relaxed(&s.after), blitz_worker_count());
    return 0;
}

TEST(loop_sim, an_error_stops_the_others)
{
    on_seeds(stop_early, 300, 1, 4);
}

struct cancelled {
    bz_atomic(size_t) begun, running;
    size_t at_end;
};

static int takes_long(size_t i, void *arg)
{
    struct cancelled *c = arg;
    (void)i;
    bz_fetch_add_relaxed(&c->begun, 1);
    bz_fetch_add_relaxed(&c->running, 1);
    bz_sim_burn(10 * BLITZ_US);
    bz_fetch_sub_relaxed(&c->running, 1);
    return 0;
}

static int loops_for_ever(void *arg)
{
    struct cancelled *c = arg;
    int err = blitz_for_each(SIZE_MAX, takes_long, c, NULL);
    CHECK_EQ(bz_load_relaxed(&c->running), 0u); /* joins wait for what runs */
    c->at_end = bz_load_relaxed(&c->begun);
    return err;
}

static int cancel_it(void *arg)
{
    struct cancelled c = {0, 0, 0};
    blitz_task *t;
    int result = 0;
    CHECK_EQ(blitz_spawn(loops_for_ever, &c, NULL, &t), 0);
    CHECK_EQ(blitz_sleep(loop_roll(arg, 2 * BLITZ_MS)), 0);
    size_t begun = bz_load_relaxed(&c.begun);
    blitz_task_cancel(t);
    CHECK_EQ(blitz_task_join(t, BLITZ_FOREVER, &result), 0);
    CHECK_EQ(result, -ECANCELED);
    /* A chunk of each worker, some 20 us of 10 us an index, and the first ones are 4. */
    CHECK_LE(c.at_end - begun, 8 * (size_t)blitz_worker_count());
    return 0;
}

TEST(loop_sim, a_cancel_at_any_moment_stops_a_loop_at_the_next_border)
{
    on_seeds(cancel_it, 100, 1, 4);
}

/* ---- a lock held over a loop: rayon#592 ---- */

static blitz_mutex mutex;
static bz_atomic(int) inside;

static int burns_a_little(size_t i, void *arg)
{
    (void)arg;
    bz_sim_burn((1 + i % 4) * 10 * BLITZ_US);
    return 0;
}

static int locks_and_loops(size_t i, void *arg)
{
    (void)i;
    CHECK_EQ(blitz_mutex_lock(&mutex, BLITZ_FOREVER), 0);
    CHECK_EQ(bz_fetch_add_relaxed(&inside, 1), 0);
    CHECK_EQ(blitz_for_each(6, burns_a_little, arg, NULL), 0);
    CHECK_EQ(bz_fetch_sub_relaxed(&inside, 1), 1);
    blitz_mutex_unlock(&mutex);
    return 0;
}

static int loops_that_lock(void *arg)
{
    blitz_mutex_init(&mutex);
    bz_store_relaxed(&inside, 0); /* relaxed: nobody is there yet */
    return blitz_for_each(6, locks_and_loops, arg, &(blitz_par_opts){1, 1, 0});
}

TEST(loop_sim, bug_27_a_mutex_held_over_a_parallel_loop)
{
    on_seeds(loops_that_lock, 150, 1, 4);
}
