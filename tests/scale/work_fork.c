/*
 * work_fork.c - fork and join: one computation that thieves spread over all procs.
 */
#include "scale/work.h"

struct span {
    unsigned from, to, cut; /* the left part has 1/cut of the items */
};

static int halves(void *arg)
{
    const struct span *s = arg;
    unsigned n = s->to - s->from, left = n / s->cut > 0 ? n / s->cut : 1;
    struct span a = {s->from, s->from + left, s->cut}, b = {s->from + left, s->to, s->cut};
    blitz_job job;

    if (n <= 1) {
        world_burn(200);
        return 0;
    }
    blitz_fork(&job, halves, &b);
    halves(&a);
    blitz_join(&job);
    return 0;
}

static uint64_t forks(const struct work_scene *s, unsigned cut)
{
    struct span all = {0, s->rounds * 4 * s->procs, cut};
    halves(&all);
    return all.to;
}

static uint64_t run_even(const struct work_scene *s)
{
    return forks(s, 2);
}

static uint64_t run_uneven(const struct work_scene *s)
{
    return forks(s, 8);
}

static int body(size_t from, size_t to, void *arg)
{
    (void)arg;
    world_burn(20 * (to - from));
    return 0;
}

static uint64_t run_loops(const struct work_scene *s)
{
    unsigned loops = s->rounds / 50;
    size_t items = (size_t)2000 * s->procs;
    for (unsigned i = 0; i < loops; i++)
        must(blitz_for(items, body, NULL, NULL), "for");
    return loops * items / 50;
}

const struct work work_fork[] = {
    {"fork-even", WORK_CPU, "leaf of one fork-join tree, split in halves", run_even},
    {"fork-uneven", WORK_CPU, "leaf of one fork-join tree, split 1 to 7", run_uneven},
    {"loop", WORK_SPAN, "µs of the body of a parallel loop of 40 µs a proc", run_loops},
    {0},
};
