/* The number of procs changes at random, beside tasks of many kinds, under any order of events. */
#include "support/resize_program.h"
#include "support/sched_sim.h"

struct scene {
    struct resize_program p;
    uint64_t seed;
};

static int players(void *arg)
{
    return resize_players(arg);
}

static void naps(void *dice)
{
    CHECK_EQ(blitz_sleep(bz_rng_below(dice, 200) * BLITZ_US), 0);
}

/* The first thread resizes, as a plain thread. */
static void plays(const struct bz_os *os, void *arg)
{
    struct scene *s = arg;
    struct bz_runtime *rt;
    struct bz_rng dice;
    blitz_runtime_opts opts = {.procs = 1 + (unsigned)(s->seed % RESIZE_PROCS),
                               .procs_max = RESIZE_PROCS,
                               .allocator = &sim_counted};
    blitz_task *t;
    sim_blocks = 0;
    bz_rng_init(&dice, s->seed);
    CHECK_EQ(bz_runtime_new(os, &opts, &rt), 0);
    resize_begin(&s->p, (blitz_runtime *)rt, s->seed);
    blitz_spawn_opts in = {.runtime = (blitz_runtime *)rt};
    CHECK_EQ(blitz_spawn(players, &s->p, &in, &t), 0);
    resize_often(&s->p, naps, &dice);
    CHECK_EQ(blitz_task_join(t, NULL, BLITZ_FOREVER), 0);
    resize_end(&s->p);
    sim_end(rt);
}

TEST(resize_sim, bug_08_nothing_is_lost)
{
    for (uint64_t n = sim_seeds(200); n > 0; n--) {
        struct scene s = {.seed = sim_next_seed()};
        t_watch("simulation seed 0x%llx", (unsigned long long)s.seed);
        CHECK_EQ(bz_sim_run(&(struct bz_sim_config){.seed = s.seed}, plays, &s, NULL), 0);
    }
}
