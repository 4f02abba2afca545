/*
 * The counters of what one proc never does: stealing, waking each other, for nothing sometimes. Which
 * seed does which is not promised; that all of it is counted, over many seeds, is.
 */
#include "support/sim.h"

#include "blitz.h"
#include "proc/state.h"
#include "runtime/runtime.h"

/* Uses its CPU for a while, so that others come into play. */
static int leaf(void *arg)
{
    (void)arg;
    bz_sim_burn(50 * BLITZ_US);
    blitz_yield();
    return 1;
}

static int crowd(void *arg)
{
    enum { N = 24 };
    blitz_task *t[N];
    (void)arg;
    for (int i = 0; i < N; i++)
        CHECK_EQ(blitz_spawn(leaf, NULL, NULL, &t[i]), 0);
    for (int i = 0; i < N; i++)
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
    return N + 1;
}

static int fork_tree(void *arg)
{
    intptr_t depth = (intptr_t)arg;
    blitz_job left;
    if (depth == 0)
        return leaf(NULL);
    blitz_fork(&left, fork_tree, (void *)(depth - 1));
    int right = fork_tree((void *)(depth - 1));
    if (depth == 2)
        CHECK_EQ(blitz_sleep(BLITZ_US), 0); /* jobs of the frames beneath must go */
    return right + blitz_join(&left);
}

static int forks(void *arg)
{
    (void)arg;
    CHECK_EQ(fork_tree((void *)(intptr_t)4), 16);
    return 1;
}

struct scene {
    int (*fn)(void *);
    blitz_stats s;
};

/* Add up what the procs have counted, and what threads without a proc have. */
static blitz_stats sums_of(blitz_runtime *rt, unsigned procs)
{
    struct bz_counters *outside = &((struct bz_runtime *)rt)->counters;
    blitz_stats one, sum = {0};
    for (unsigned i = 0; i < procs; i++) {
        CHECK_EQ(blitz_stats_read_proc(rt, i, &one), 0);
#define ADD(name) sum.name += one.name;
        BZ_COUNTERS(ADD)
#undef ADD
    }
#define ADD(name) sum.name += bz_load_relaxed(&outside->name); /* relaxed: statistics */
    BZ_COUNTERS(ADD)
#undef ADD
    return sum;
}

/* Every counter of the total is the sum over the procs and the other threads. Machines still go to sleep
 * after a shutdown, so the total lies between a sum from before it and one from after it. */
static void check_sums(blitz_runtime *rt, unsigned procs)
{
    blitz_stats before = sums_of(rt, procs), total, after;
    CHECK_EQ(blitz_stats_read(rt, &total), 0);
    after = sums_of(rt, procs);
#define COMPARE(name)                  \
    CHECK_LE(before.name, total.name); \
    CHECK_LE(total.name, after.name);
    BZ_COUNTERS(COMPARE)
#undef COMPARE
}

static void play(const struct bz_os *os, void *arg)
{
    struct scene *scene = arg;
    struct bz_runtime *in;
    CHECK_EQ(bz_runtime_new(os, &(blitz_runtime_opts){.procs = 3}, &in), 0);
    blitz_runtime *rt = (blitz_runtime *)in;
    int tasks = blitz_runtime_block_on(rt, scene->fn, NULL);
    CHECK_EQ(blitz_runtime_shutdown(rt, BLITZ_FOREVER), 0);
    blitz_stats *s = &scene->s;
    CHECK_EQ(blitz_stats_read(rt, s), 0);
    CHECK_EQ(s->spawned, (uint64_t)tasks);
    CHECK_EQ(s->ended, (uint64_t)tasks);
    CHECK_GE(s->run + s->claimed, s->ended);
    CHECK_GE(s->stolen, s->steals);
    CHECK_GE(s->searches, s->steals + s->jobs_stolen);
    CHECK_LE(s->useless_wakes, s->wakes);
    CHECK_LE(s->useless_wakes, s->sleeps);
    check_sums(rt, s->procs);
    CHECK_EQ(blitz_runtime_unref(rt), 0);
}

static blitz_stats over_seeds(int (*fn)(void *))
{
    blitz_stats sum = {0};
    for (uint64_t i = 0, n = 20 + t_scaled(200); i < n; i++) {
        uint64_t seed = t_random();
        struct scene scene = {.fn = fn};
        t_watch("simulation seed 0x%llx", (unsigned long long)seed);
        CHECK_EQ(bz_sim_run(&(struct bz_sim_config){.seed = seed}, play, &scene, NULL), 0);
        sum.searches += scene.s.searches;
        sum.steals += scene.s.steals;
        sum.stolen += scene.s.stolen;
        sum.sleeps += scene.s.sleeps;
        sum.wakes += scene.s.wakes;
        sum.useless_wakes += scene.s.useless_wakes;
        sum.forks_shared += scene.s.forks_shared;
        sum.jobs_stolen += scene.s.jobs_stolen;
        sum.jobs_evacuated += scene.s.jobs_evacuated;
    }
    return sum;
}

TEST(stats, steals_sleeps_and_wakes_are_counted)
{
    blitz_stats sum = over_seeds(crowd);
    CHECK_GT(sum.steals, 0u);
    CHECK_GT(sum.searches, sum.steals); /* not every one finds something */
    CHECK_GT(sum.stolen, sum.steals);
    CHECK_GT(sum.sleeps, 0u);
    CHECK_GT(sum.wakes, 0u);
    uint64_t useless = sum.useless_wakes; /* rare, as they should be: proc/rouse.c */
    for (int round = 0; round < 100 && useless == 0; round++)
        useless = over_seeds(crowd).useless_wakes;
    CHECK_GT(useless, 0u);
}

TEST(stats, stolen_and_evacuated_jobs_are_counted)
{
    blitz_stats sum = over_seeds(forks);
    CHECK_GT(sum.forks_shared, 0u);
    CHECK_GT(sum.jobs_stolen, 0u);
    CHECK_GT(sum.jobs_evacuated, 0u);
    CHECK_GE(sum.forks_shared, sum.jobs_stolen);
}
