/* Waits for quiet actors on real threads: the scene of the simulation, and drivers that are plain threads. */
#include "harness.h"

#include <pthread.h>

#include "support/quiet_scene.h"

enum { THREADS = 3 };

static void *drive(void *driver)
{
    CHECK_EQ(quiet_drive(driver), 0);
    return NULL;
}

/* Threads send to actors of a runtime beside them, which plays the scene as well. */
static void play(uint64_t seed, unsigned procs)
{
    struct quiet_scene inside = {.seed = seed, .rounds = 40};
    struct quiet_scene outside = {.seed = ~seed, .rounds = 60};
    struct quiet_driver driver[THREADS];
    pthread_t thread[THREADS];
    blitz_runtime *rt;
    CHECK_EQ(blitz_runtime_new(&(blitz_runtime_opts){.procs = procs}, &rt), 0);
    outside.runtime = rt;
    quiet_begin(&outside);
    for (int i = 0; i < THREADS; i++) {
        quiet_driver_init(&driver[i], &outside, (uint64_t)i);
        CHECK_EQ(pthread_create(&thread[i], NULL, drive, &driver[i]), 0);
    }
    CHECK_EQ(blitz_runtime_block_on(rt, quiet_play, &inside), 0);
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_join(thread[i], NULL), 0);
    CHECK_EQ(blitz_actors_wait_quiet(rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_shutdown(rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref(rt), 0);
}

TEST_LIMIT(quiet_stress, bug_37_quiet_comes_when_all_messages_are_handled_and_not_before, 120)
{
    uint64_t rounds = (uint64_t)t_scaled(24);
    for (uint64_t i = 0; i < rounds; i++) {
        unsigned procs = 1 + (unsigned)(i % 4);
        t_watch("round %llu, %u procs", (unsigned long long)i, procs);
        play(t_seed() + i, procs);
    }
}
