/*
 * work_spawn.c - spawn and join: by drivers that share nothing, and as one tree that thieves spread.
 */
#include "scale/work.h"

static int nothing(void *arg)
{
    (void)arg;
    return 0;
}

static int await_each(void *arg)
{
    for (unsigned n = *(unsigned *)arg; n > 0; n--)
        join(spawn(nothing, NULL));
    return 0;
}

#define BATCH 50u

static int join_batches(void *arg)
{
    blitz_task *batch[BATCH];
    for (unsigned n = *(unsigned *)arg / BATCH; n > 0; n--) {
        for (unsigned i = 0; i < BATCH; i++)
            batch[i] = spawn(nothing, NULL);
        for (unsigned i = 0; i < BATCH; i++)
            join(batch[i]);
    }
    return 0;
}

struct count {
    unsigned n;
    char own_line[128 - sizeof(unsigned)];
};

static uint64_t drivers(const struct work_scene *s, int (*fn)(void *), unsigned each)
{
    struct count *counts = work_array(s->procs, sizeof *counts);
    for (unsigned i = 0; i < s->procs; i++)
        counts[i].n = each;
    work_on_each(s, s->procs, fn, counts, sizeof *counts);
    free(counts);
    return (uint64_t)each * s->procs;
}

static uint64_t run_await(const struct work_scene *s)
{
    return drivers(s, await_each, s->rounds);
}

/* Before a proc has its driver, and after the end of that driver, it steals children of the others. With many procs that takes
 * some 50 us. So drivers run sixteen times as long as elsewhere: the row is the cost while each proc has a driver. */
static uint64_t run_batches(const struct work_scene *s)
{
    return drivers(s, join_batches, 16 * s->rounds / BATCH * BATCH);
}

/* ---- trees ------------------------------------------------------------------------------------ */

struct node {
    unsigned leaves, ways;
};

static int grow(void *arg)
{
    const struct node *n = arg;
    struct node part[10];
    blitz_task *t[10];

    if (n->leaves < n->ways) {
        world_burn(100);
        return 0;
    }
    for (unsigned i = 0; i < n->ways; i++) {
        part[i] = (struct node){n->leaves / n->ways + (i < n->leaves % n->ways), n->ways};
        t[i] = spawn(grow, &part[i]);
    }
    for (unsigned i = 0; i < n->ways; i++)
        join(t[i]);
    return 0;
}

static uint64_t tree(const struct work_scene *s, unsigned ways)
{
    struct node root = {s->rounds * s->procs, ways};
    grow(&root);
    return root.leaves;
}

static uint64_t run_tree(const struct work_scene *s)
{
    return tree(s, 2);
}

static uint64_t run_skynet(const struct work_scene *s)
{
    return tree(s, 10);
}

const struct work work_spawn[] = {
    {"spawn-await", WORK_CPU, "spawn and join of one task, a driver on each proc", run_await},
    {"spawn-batch", WORK_CPU, "spawn and join, 50 at a time, a driver on each proc", run_batches},
    {"spawn-tree", WORK_CPU, "leaf of one binary tree of tasks", run_tree},
    {"skynet", WORK_CPU, "leaf of one tree with ten children a node", run_skynet},
    {0},
};
