/*
 * Tasks that are ready and find no stack (sched/host.c), under seeds: each scene must end.
 */
#include "harness.h"

#include "support/sched_sim.h"
#include "support/shortage.h"

static struct shortage shortage;

struct short_scene {
    unsigned procs;
    int (*fn)(void *);
};

static void play(const struct bz_os *os, void *arg)
{
    const struct short_scene *scene = arg;
    shortage_play(&shortage, os, scene->procs, scene->fn);
}

static void play_one(int (*fn)(void *), const char *name, unsigned least)
{
    uint64_t seed = sim_next_seed();
    struct short_scene scene = {least + (unsigned)(seed % 3), fn};
    t_watch("scene %s, simulation seed 0x%llx, %u procs", name, (unsigned long long)seed,
            scene.procs);
    int err = t_sim(seed, play, &scene);
    if (err != 0)
        FAIL("scene %s, seed 0x%llx, %u procs: error %d\n%s", name, (unsigned long long)seed,
             scene.procs, err, t_sim_report.text);
}

TEST_LIMIT(host_sim, every_wait_ends_without_stacks, 240)
{
    blitz_log_set(NULL, NULL, BLITZ_LOG_ERROR); /* the warnings that follow are wanted */
    for (uint64_t n = sim_seeds(200), i = 0; i < n; i++)
        for (size_t k = 0; k < BZ_ARRAY_LEN(shortage_scenes); k++)
            play_one(shortage_scenes[k].fn, shortage_scenes[k].name, 1);
}

/* A stack that is free on one proc is of use on another one. */
TEST_LIMIT(host_sim, stacks_come_back_to_procs_that_need_them, 240)
{
    blitz_log_set(NULL, NULL, BLITZ_LOG_ERROR);
    for (uint64_t n = sim_seeds(1000), i = 0; i < n; i++)
        play_one(scene_stacks_come_back, "stacks_come_back", 2);
}

TEST_LIMIT(host_sim, machines_without_work_hold_no_stack, 240)
{
    blitz_log_set(NULL, NULL, BLITZ_LOG_ERROR);
    for (uint64_t n = sim_seeds(200), i = 0; i < n; i++)
        play_one(scene_sleepers_hold_none, "sleepers_hold_none", 2);
}
