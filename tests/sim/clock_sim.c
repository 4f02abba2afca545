/*
 * A virtual clock under any order of events: it moves when every task waits, never before, and never too late.
 */
#include "support/clock_program.h"
#include "support/sched_sim.h"

struct scene {
    uint64_t seed;
    unsigned procs;
    blitz_clock_mode mode;
};

static struct bz_runtime *begin(const struct bz_os *os, const struct scene *s)
{
    struct bz_runtime *rt;
    blitz_runtime_opts opts = {.procs = s->procs, .clock = s->mode, .allocator = &sim_counted};
    sim_blocks = 0;
    CHECK_EQ(bz_runtime_new(os, &opts, &rt), 0);
    return rt;
}

static void plays(const struct bz_os *os, void *arg)
{
    struct scene *s = arg;
    struct bz_runtime *rt = begin(os, s);
    CHECK_EQ(blitz_runtime_block_on((blitz_runtime *)rt, clock_program, &s->seed), 0);
    sim_end(rt);
}

static void drives(const struct bz_os *os, void *arg)
{
    struct scene *s = arg;
    struct bz_runtime *rt = begin(os, s);
    clock_drive((blitz_runtime *)rt, s->seed, 6);
    sim_end(rt);
}

static void on_seeds(void (*main)(const struct bz_os *os, void *arg), blitz_clock_mode mode,
                     uint64_t seeds)
{
    for (uint64_t n = sim_seeds(seeds); n > 0; n--) {
        uint64_t seed = sim_next_seed();
        struct scene s = {seed, 1 + (unsigned)(seed % 4), mode};
        t_watch("simulation seed 0x%llx, %u procs", (unsigned long long)seed, s.procs);
        CHECK_EQ(bz_sim_run(&(struct bz_sim_config){.seed = seed}, main, &s, NULL), 0);
    }
}

TEST(clock_sim, each_wait_ends_at_its_moment)
{
    on_seeds(plays, BLITZ_CLOCK_AUTO, 150);
}

TEST(clock_sim, a_caller_sees_all_that_was_due)
{
    on_seeds(drives, BLITZ_CLOCK_MANUAL, 300);
}

/* The clock is paused and resumed while tasks sleep: no sleep is early, and each ends. */
static int sleeps_some(void *arg)
{
    struct bz_rng dice;
    bz_rng_init(&dice, *(uint64_t *)arg);
    for (int i = 0; i < 10; i++) {
        blitz_instant until = blitz_after(bz_rng_below(&dice, 3 * BLITZ_MS));
        CHECK_EQ(blitz_sleep_until(until), 0);
        CHECK_GE(blitz_now(), until);
    }
    return 0;
}

static void pauses(const struct bz_os *os, void *arg)
{
    struct scene *s = arg;
    struct bz_runtime *rt = begin(os, s);
    blitz_runtime *public = (blitz_runtime *)rt;
    blitz_task *t[4];
    uint64_t seed[4];
    blitz_instant last = 0;
    struct bz_rng dice;
    bz_rng_init(&dice, s->seed);
    for (int i = 0; i < 4; i++) {
        seed[i] = s->seed + (unsigned)i;
        CHECK_EQ(blitz_spawn(sleeps_some, &seed[i], &(blitz_spawn_opts){.runtime = public}, &t[i]),
                 0);
    }
    for (int i = 0; i < 12; i++) {
        bool is_auto = bz_rng_below(&dice, 2);
        CHECK_EQ(blitz_clock_pause(public, is_auto ? BLITZ_CLOCK_AUTO : BLITZ_CLOCK_MANUAL), 0);
        if (bz_rng_below(&dice, 2))
            CHECK_EQ(blitz_clock_advance(public, bz_rng_below(&dice, BLITZ_MS), BLITZ_FOREVER), 0);
        CHECK_GE(blitz_clock_now(public), last);
        last = blitz_clock_now(public);
        CHECK_EQ(blitz_clock_resume(public), 0);
        CHECK_GE(blitz_clock_now(public), last);
        CHECK_EQ(blitz_sleep(bz_rng_below(&dice, BLITZ_MS)), 0);
    }
    for (int i = 0; i < 4; i++)
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
    sim_end(rt);
}

TEST(clock_sim, it_is_paused_and_resumed_beside_sleepers)
{
    on_seeds(pauses, BLITZ_CLOCK_RUNS, 200);
}

/* ---- a machine that relies on another ---- */

static int naps(void *arg)
{
    (void)arg;
    return blitz_sleep(BLITZ_S);
}

static int burns_beside_a_sleeper(void *arg)
{
    blitz_spawn_opts there = {.proc = BLITZ_ON_PROC(1)};
    blitz_stats before, after;
    blitz_task *t;
    (void)arg;
    CHECK_EQ(blitz_spawn(naps, NULL, &there, &t), 0);
    CHECK_EQ(blitz_sleep(BLITZ_MS), 0); /* both procs have slept */
    CHECK_EQ(blitz_stats_read(NULL, &before), 0);
    bz_sim_burn(50 * BLITZ_MS);
    CHECK_EQ(blitz_stats_read(NULL, &after), 0);
    CHECK_LT(after.sleeps - before.sleeps, 20u);
    return blitz_task_join(t, NULL, BLITZ_FOREVER);
}

static void relies(const struct bz_os *os, void *arg)
{
    struct scene *s = arg;
    s->procs = 2;
    struct bz_runtime *rt = begin(os, s);
    CHECK_EQ(blitz_runtime_block_on((blitz_runtime *)rt, burns_beside_a_sleeper, NULL), 0);
    sim_end(rt);
}

/* A machine that finds another one awake leaves the look to that one. It would wake a thousand times else. */
TEST(clock_sim, a_machine_beside_a_busy_one_sleeps)
{
    on_seeds(relies, BLITZ_CLOCK_AUTO, 30);
}

/* ---- a pause while all machines sleep ---- */

static void pauses_late(const struct bz_os *os, void *arg)
{
    struct bz_runtime *rt = begin(os, arg);
    blitz_runtime *public = (blitz_runtime *)rt;
    blitz_task *t;
    CHECK_EQ(blitz_spawn(naps, NULL, &(blitz_spawn_opts){.runtime = public}, &t), 0);
    CHECK_EQ(blitz_sleep(10 * BLITZ_MS), 0); /* of this thread: the task sleeps by now */
    uint64_t before = bz_os_now(os);
    CHECK_EQ(blitz_clock_pause(public, BLITZ_CLOCK_AUTO), 0);
    CHECK_EQ(blitz_task_join(t, NULL, BLITZ_FOREVER), 0);
    CHECK_LT(bz_os_now(os) - before, 100 * BLITZ_MS); /* of the second that the task sleeps */
    sim_end(rt);
}

/* A machine that sleeps until its first timer, by the time of the system, must look at the clock. */
TEST(clock_sim, a_pause_rouses_a_machine_that_moves_the_clock)
{
    on_seeds(pauses_late, BLITZ_CLOCK_RUNS, 50);
}

/* ---- the number of procs changes ---- */

struct resized {
    uint64_t seed;
    bz_atomic(uint32_t) is_over;
};

/* Retired procs have timers, and pass on the tasks that these wake. */
static int resizes(void *arg)
{
    struct resized *r = arg;
    struct bz_rng dice;
    bz_rng_init(&dice, ~r->seed);
    while (!bz_load_seqcst(&r->is_over)) { /* seq_cst: a flag of the test */
        blitz_instant until = clock_moment(&dice);
        CHECK_EQ(blitz_runtime_resize(NULL, 1 + (unsigned)bz_rng_below(&dice, 4)), 0);
        CHECK_EQ(blitz_sleep_until(until), 0);
        CHECK_EQ(blitz_now(), until);
    }
    return 0;
}

static int plays_resized(void *arg)
{
    struct resized *r = arg;
    blitz_task *t;
    CHECK_EQ(blitz_spawn(resizes, r, NULL, &t), 0);
    CHECK_EQ(clock_program(&r->seed), 0);
    bz_store_seqcst(&r->is_over, 1); /* seq_cst: a flag of the test */
    return blitz_task_join(t, NULL, BLITZ_FOREVER);
}

static void plays_while_resized(const struct bz_os *os, void *arg)
{
    struct scene *s = arg;
    struct bz_runtime *rt;
    struct resized r = {.seed = s->seed};
    blitz_runtime_opts opts = {
        .procs = s->procs, .procs_max = 4, .clock = s->mode, .allocator = &sim_counted};
    sim_blocks = 0;
    bz_atomic_init(&r.is_over, 0);
    CHECK_EQ(bz_runtime_new(os, &opts, &rt), 0);
    CHECK_EQ(blitz_runtime_block_on((blitz_runtime *)rt, plays_resized, &r), 0);
    sim_end(rt);
}

TEST(clock_sim, each_wait_ends_at_its_moment_while_procs_retire)
{
    on_seeds(plays_while_resized, BLITZ_CLOCK_AUTO, 150);
}
