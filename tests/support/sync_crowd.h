/*
 * sync_crowd.h - fibers, stackless tasks and plain threads that do the same at the same time.
 *
 *     crowd_run(&(struct crowd){fiber, poll, rounds}, procs);
 *
 * The fiber gets the number of rounds, and so does the thread; the stackless one finds them in its
 * struct crowd_state.
 */
#ifndef T_SYNC_CROWD_H
#define T_SYNC_CROWD_H

#include "harness.h"

#include "blitz.h"
#include "os/os.h"

struct crowd_state {
    blitz_frame frame;
    blitz_sync_future f;
    int left; /* rounds */
};

enum { CROWD_FIBERS = 6, CROWD_POLLS = 4, CROWD_THREADS = 2 };

struct crowd {
    int (*fiber)(void *rounds); /* (intptr_t) */
    blitz_poll (*poll)(void *state, blitz_cx *cx);
    int rounds;
};

static inline int crowd_main(void *arg)
{
    const struct crowd *c = arg;
    blitz_task *t[CROWD_FIBERS + CROWD_POLLS];
    int n = 0;
    for (int i = 0; i < CROWD_FIBERS; i++)
        CHECK_EQ(blitz_spawn(c->fiber, (void *)(intptr_t)c->rounds, NULL, &t[n++]), 0);
    for (int i = 0; i < CROWD_POLLS; i++) {
        struct crowd_state state = {.left = c->rounds};
        CHECK_EQ(blitz_spawn_poll(c->poll, &state, sizeof state, NULL, &t[n++]), 0);
    }
    for (int i = 0; i < n; i++) {
        int result = 1;
        CHECK_EQ(blitz_task_join(t[i], &result, BLITZ_FOREVER), 0);
        CHECK_EQ(result, 0);
    }
    return 0;
}

static inline void crowd_thread(void *arg)
{
    const struct crowd *c = arg;
    CHECK_EQ(c->fiber((void *)(intptr_t)c->rounds), 0);
}

/* All of them, in two runtimes of that many procs, with plain threads beside. */
static inline void crowd_run(struct crowd *c, unsigned procs)
{
    struct bz_os_thread thread[CROWD_THREADS];
    blitz_runtime *rt[2];
    for (int i = 0; i < 2; i++)
        CHECK_EQ(blitz_runtime_new(&(blitz_runtime_opts){.procs = procs}, &rt[i]), 0);
    blitz_task *main_task;
    CHECK_EQ(blitz_spawn(crowd_main, c, &(blitz_spawn_opts){.runtime = rt[0]}, &main_task), 0);
    for (int i = 0; i < CROWD_THREADS; i++)
        CHECK_EQ(bz_os_thread_start(&bz_os_system, &thread[i], NULL, crowd_thread, c), 0);
    CHECK_EQ(blitz_runtime_block_on(rt[1], crowd_main, c), 0);
    CHECK_EQ(blitz_task_join(main_task, NULL, BLITZ_FOREVER), 0);
    for (int i = 0; i < CROWD_THREADS; i++)
        CHECK_EQ(bz_os_thread_join(&bz_os_system, &thread[i]), 0);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(blitz_runtime_shutdown(rt[i], BLITZ_FOREVER), 0);
        CHECK_EQ(blitz_runtime_unref(rt[i]), 0);
    }
}

/* How many counts that makes. */
static inline int crowd_counts(const struct crowd *c)
{
    return (2 * (CROWD_FIBERS + CROWD_POLLS) + CROWD_THREADS) * c->rounds;
}

#endif
