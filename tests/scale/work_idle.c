/*
 * work_idle.c - procs without work: how they sleep, search and are roused, and spawns from outside.
 */
#include "scale/work.h"

static int burn_20us(void *arg)
{
    (void)arg;
    world_burn(20000);
    return 0;
}

/* One task at a time on a machine that is idle otherwise. */
static uint64_t run_lone(const struct work_scene *s)
{
    unsigned rounds = s->rounds / 4;
    for (unsigned i = 0; i < rounds; i++) {
        blitz_task *t = spawn(burn_20us, NULL);
        must(blitz_sleep(100000), "sleep");
        join(t);
    }
    return rounds;
}

/* Bursts: one producer spawns a task for each proc, then all are idle again. */
static uint64_t run_burst(const struct work_scene *s)
{
    unsigned rounds = s->rounds / 20;
    blitz_task **t = work_array(s->procs, sizeof *t);
    for (unsigned i = 0; i < rounds; i++) {
        for (unsigned k = 0; k < s->procs; k++)
            t[k] = spawn(burn_20us, NULL);
        for (unsigned k = 0; k < s->procs; k++)
            join(t[k]);
        must(blitz_sleep(200000), "sleep");
    }
    free(t);
    return (uint64_t)rounds * s->procs;
}

/* Half of the procs have work at any time, in pieces of 10 µs. */
static int burn_and_sleep(void *arg)
{
    for (unsigned n = *(unsigned *)arg; n > 0; n--) {
        world_burn(10000);
        must(blitz_sleep(10000), "sleep");
    }
    return 0;
}

struct count {
    unsigned n;
    char own_line[128 - sizeof(unsigned)];
};

static uint64_t run_half(const struct work_scene *s)
{
    struct count *counts = work_array(s->procs, sizeof *counts);
    for (unsigned i = 0; i < s->procs; i++)
        counts[i].n = s->rounds / 4;
    work_on_each(s, s->procs, burn_and_sleep, counts, sizeof *counts);
    free(counts);
    return (uint64_t)s->rounds / 4 * s->procs;
}

/* ---- from outside ----------------------------------------------------------------------------- */

struct thread {
    const struct work_scene *s;
    struct bz_os_thread os;
    unsigned rounds;
};

static int burn_1us(void *arg)
{
    (void)arg;
    world_burn(1000);
    return 0;
}

/* A spawner keeps at most this many tasks in flight, as a server with back-pressure does. */
#define AHEAD 32u

static void spawn_from_outside(void *arg)
{
    struct thread *me = arg;
    blitz_task *t[AHEAD];
    for (unsigned i = 0; i < me->rounds + AHEAD; i++) {
        if (i >= AHEAD)
            join(t[i % AHEAD]);
        if (i < me->rounds)
            must(blitz_spawn(burn_1us, NULL, &(blitz_spawn_opts){.runtime = me->s->rt},
                             &t[i % AHEAD]),
                 "spawn");
    }
}

static uint64_t run_inject(const struct work_scene *s)
{
    unsigned count = s->procs / 4 > 0 ? s->procs / 4 : 1;
    struct thread *all = work_array(count, sizeof *all);
    for (unsigned i = 0; i < count; i++) {
        all[i] = (struct thread){.s = s, .rounds = s->rounds / 2};
        must(bz_os_thread_start(s->os, &all[i].os, NULL, spawn_from_outside, &all[i]), "thread");
    }
    for (unsigned i = 0; i < count; i++)
        must(bz_os_thread_join(s->os, &all[i].os), "join");
    free(all);
    return (uint64_t)count * (s->rounds / 2);
}

const struct work work_idle[] = {
    {"idle-lone", WORK_CPU, "one task of 20 µs each 100 µs, all other procs idle", run_lone},
    {"idle-burst", WORK_CPU, "task of 20 µs, one for each proc at once, then a pause", run_burst},
    {"idle-half", WORK_CPU, "turn of a task that burns 10 µs and sleeps 10 µs", run_half},
    {"inject", WORK_OUTSIDE, "spawn from a plain thread, one thread for four procs", run_inject},
    {0},
};
