/*
 * workers.h - what two workers do: a job that is stolen, and a task that a plain thread spawns.
 *
 * These run in a runtime of their own with two procs. Both threads are counted, so the figures
 * include the search of the thief; they vary more than the others.
 */
#ifndef BENCH_BUDGET_WORKERS_H
#define BENCH_BUDGET_WORKERS_H

#include <pthread.h>
#include <sched.h>

#include "budget/budget.h"

/*
 * A plain thread spawns some tasks, then joins them. With one task at a time the count said how busy the machine was:
 * whether the worker slept in between was a matter of time (2034 instructions on a quiet machine, 3500 at load 20).
 */
enum { VISITS = 50 };
struct visitor {
    blitz_runtime *rt;
    uint64_t rounds;
};

static int visit(void *arg)
{
    keep((uintptr_t)arg);
    return 0;
}

static int visit_often(void *arg)
{
    struct visitor *v = arg;
    blitz_spawn_opts opts = {.runtime = v->rt};
    blitz_task *t[VISITS];
    for (uint64_t n = v->rounds; n > 0; n -= VISITS) {
        for (int i = 0; i < VISITS; i++)
            must(blitz_spawn(visit, NULL, &opts, &t[i]), "spawn");
        for (int i = 0; i < VISITS; i++)
            must(blitz_task_join(t[i], NULL, BLITZ_FOREVER), "join");
    }
    return 0;
}

static void *visitor_main(void *arg)
{
    visit_often(arg);
    return NULL;
}

static int run_visitor(void *arg)
{
    struct visitor *v = arg;
    pthread_t thread;
    if (pthread_create(&thread, NULL, visitor_main, v) != 0)
        budget_die("no thread");
    pthread_join(thread, NULL);
    return 0;
}

static void spawn_from_thread(uint64_t rounds)
{
    struct visitor v = {NULL, rounds};
    blitz_runtime_opts config = {.procs = 1};
    must(blitz_runtime_new(&config, &v.rt), "runtime");
    (void)!blitz_blocking(run_visitor, &v);
    must(blitz_runtime_shutdown(v.rt, BLITZ_FOREVER), "shutdown");
    must(blitz_runtime_unref(v.rt), "unref");
}

/* clang-format off */
#define BUDGET_WORKERS {"spawn + join from a thread, 50 at a time", spawn_from_thread}
/* clang-format on */

#endif
