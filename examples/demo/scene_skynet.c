/*
 * scene_skynet.c - a million tasks against the clock.
 *
 * Every task starts ten more, down to a million leaves, and adds up their results. The same tree
 * runs on one worker and on all workers. The cost of a thread for each task is extrapolated from a
 * thousand threads.
 */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include <blitz.h>

#include "demo.h"

enum { CHILDREN = 10, THREADS = 1000 };

struct node {
    uint64_t first, size, sum;
};

static int add_up(void *arg)
{
    struct node *me = arg, child[CHILDREN];
    blitz_task *task[CHILDREN];
    int started = 0, err = 0;
    me->sum = me->first;
    if (me->size == 1)
        return 0;
    for (int i = 0; i < CHILDREN && err == 0; i++) {
        uint64_t size = me->size / CHILDREN;
        child[i] = (struct node){.first = me->first + (uint64_t)i * size, .size = size};
        err = blitz_spawn(add_up, &child[i], NULL, &task[i]);
        started += err == 0;
    }
    me->sum = 0;
    for (int i = 0; i < started; i++) {
        blitz_task_join(task[i], NULL, BLITZ_FOREVER);
        me->sum += child[i].sum;
    }
    return err;
}

struct tree {
    struct node root;
    double seconds;
    int repeats;
};

/* The best of a few, warm. */
static int grow(void *arg)
{
    struct tree *t = arg;
    t->seconds = 1e9;
    for (int i = 0; i < t->repeats; i++) {
        double start = demo_seconds();
        int err = add_up(&t->root);
        double took = demo_seconds() - start;
        if (err != 0)
            return err;
        t->seconds = took < t->seconds ? took : t->seconds;
    }
    return 0;
}

static double tree_seconds(struct demo *d, unsigned procs, uint64_t size)
{
    blitz_runtime_opts config = {.procs = procs};
    struct tree t = {.root = {.size = size}, .repeats = 3};
    int err = blitz_run(grow, &t, &config);
    demo_claim(d, err == 0, "error %d", -err);
    demo_claim(d, err != 0 || t.root.sum == size * (size - 1) / 2, "0 to %s adds up to %s",
               demo_count(size - 1), demo_count(t.root.sum));
    return t.seconds;
}

static void *nothing(void *arg)
{
    return arg;
}

static double thread_seconds(void)
{
    double start = demo_seconds();
    for (int i = 0; i < THREADS; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, nothing, NULL) != 0)
            return 0;
        pthread_join(thread, NULL);
    }
    return (demo_seconds() - start) / THREADS;
}

static void play(struct demo *d)
{
    uint64_t size = demo_scaled(d, 1000000), tasks = size * CHILDREN / (CHILDREN - 1);
    unsigned cpus = (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
    demo_progress(d, 0, 2, "trees");
    double one = tree_seconds(d, 1, size);
    demo_result(d, "%s tasks on one worker: %.0f ms, %.0f ns each", demo_count(tasks), one * 1e3,
                one * 1e9 / (double)tasks);
    demo_progress(d, 1, 2, "trees");
    if (cpus > 1) {
        double all = tree_seconds(d, cpus, size);
        demo_result(d, "on %u workers: %.0f ms", cpus, all * 1e3);
    }
    double thread = thread_seconds();
    if (thread > 0)
        demo_result(d, "a thread for each would take %.0f s", thread * (double)tasks);
}

const struct demo_scene scene_skynet = {
    "skynet", "A million tasks against the clock",
    "A task starts ten tasks, which start ten each, down to a million that say a number.", play};
