/*
 * tasks.h - yield, spawn and join, fork and join, loops.
 */
#ifndef BENCH_BUDGET_TASKS_H
#define BENCH_BUDGET_TASKS_H

#include "budget/budget.h"

static int yield_often(void *arg)
{
    for (uint64_t n = *(uint64_t *)arg; n > 0; n--)
        blitz_yield();
    return 0;
}

static void yield_2(uint64_t rounds)
{
    uint64_t each = rounds / 2;
    in_tasks(2, yield_often, &each);
}

static void yield_1000(uint64_t rounds)
{
    uint64_t each = rounds / 1000;
    in_tasks(1000, yield_often, &each);
}

static blitz_poll poll_yield(void *state, blitz_cx *cx)
{
    uint64_t *left = state;
    return (*left)-- == 0 ? BLITZ_READY : blitz_cx_yield(cx);
}

static void yield_stackless(uint64_t rounds)
{
    uint64_t each = rounds / 2;
    blitz_task *t[2];
    for (int i = 0; i < 2; i++)
        must(blitz_spawn_poll(poll_yield, &each, sizeof each, NULL, &t[i]), "spawn");
    join(t[0]);
    join(t[1]);
}

static int do_nothing(void *arg)
{
    keep((uintptr_t)arg);
    return 0;
}

static void spawn_await(uint64_t rounds)
{
    for (; rounds > 0; rounds--)
        join(spawn(do_nothing, NULL));
}

static blitz_poll be_ready(void *state, blitz_cx *cx)
{
    (void)state;
    (void)cx;
    return BLITZ_READY;
}

static void spawn_await_stackless(uint64_t rounds)
{
    for (uint64_t i = 0; i < rounds; i++) {
        blitz_task *t = NULL;
        must(blitz_spawn_poll(be_ready, &i, sizeof i, NULL, &t), "spawn");
        join(t);
    }
}

/* All are spawned before the first is joined. */
static void spawn_join_all(uint64_t rounds)
{
    blitz_task **t = malloc(rounds * sizeof *t);
    if (t == NULL)
        budget_die("out of memory");
    for (uint64_t i = 0; i < rounds; i++)
        t[i] = spawn(do_nothing, NULL);
    for (uint64_t i = 0; i < rounds; i++)
        join(t[i]);
    free(t);
}

struct crowd {
    uint64_t first, size;
};

/* A tree of tasks with ten children each: one round is one task. */
static int skynet_node(void *arg)
{
    const struct crowd *me = arg;
    struct crowd part[10];
    blitz_task *child[10];
    if (me->size == 1)
        return 0;
    for (int i = 0; i < 10; i++) {
        part[i] = (struct crowd){me->first + me->size / 10 * (uint64_t)i, me->size / 10};
        child[i] = spawn(skynet_node, &part[i]);
    }
    for (int i = 0; i < 10; i++)
        join(child[i]);
    return 0;
}

static void skynet(uint64_t rounds)
{
    struct crowd tree = {0, 1000}; /* 1111 tasks */
    for (; rounds >= 1111; rounds -= 1111)
        skynet_node(&tree);
}

static __attribute__((noinline)) int job_answer(void *arg)
{
    return (int)(intptr_t)arg;
}

/* Another job is pending below, as in the depth of any recursion. */
static void fork_join(uint64_t rounds)
{
    blitz_job outer;
    blitz_fork(&outer, job_answer, NULL);
    for (; rounds > 0; rounds--) {
        blitz_job job;
        blitz_fork(&job, job_answer, NULL);
        keep((uint64_t)blitz_join(&job));
    }
    (void)!blitz_join(&outer);
}

static int item_keep(size_t i, void *arg)
{
    (void)arg;
    keep(i);
    return 0;
}

/* In one chunk: how a loop is split depends on time, which does not pass evenly under callgrind. */
static void for_1000(uint64_t rounds)
{
    blitz_par_opts opts = {.grain = 1000};
    for (; rounds > 0; rounds--)
        must(blitz_for_each(1000, item_keep, NULL, &opts), "for");
}

static void blocking(uint64_t rounds)
{
    for (; rounds > 0; rounds--)
        (void)!blitz_blocking(do_nothing, NULL);
}

static void block_in_place(uint64_t rounds)
{
    for (; rounds > 0; rounds--)
        (void)!blitz_block_in_place(do_nothing, NULL);
}

/* clang-format off */
#define BUDGET_TASKS                                                                         \
    {"yield, 2 fibers", yield_2}, {"yield, 1000 fibers", yield_1000},                        \
    {"yield, stackless", yield_stackless}, {"spawn + await each", spawn_await},              \
    {"spawn + await each, stackless", spawn_await_stackless},                              \
    {"spawn all, join all", spawn_join_all}, {"skynet, a task", skynet},                     \
    {"fork + join, not stolen", fork_join}, {"loop of 1000, one chunk", for_1000},                 \
    {"blocking call", blocking}, {"block in place", block_in_place}
/* clang-format on */

#endif
