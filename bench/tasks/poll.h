/*
 * poll.h - our cases of stackless tasks, for blitz.c.
 *
 *   poll-yield-N      N tasks whose poll lets others run first, again and again
 *   poll-spawn-join   a million tasks that are ready at once
 *   parked-poll       a million tasks that wait; their wakers lie in a table made before, as Tokio's do
 */
#ifndef BENCH_TASKS_POLL_H
#define BENCH_TASKS_POLL_H

#include <blitz.h>

#include "tasks/cases.h"

static void poll_spawn(blitz_poll (*poll)(void *, blitz_cx *), const void *state, size_t bytes,
                       blitz_task **out)
{
    int err = blitz_spawn_poll(poll, state, bytes, NULL, out);
    if (err != 0)
        bench_die("spawn: error %d", -err);
}

static void poll_join_all(blitz_task **tasks, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        int err = blitz_task_join(tasks[i], NULL, BLITZ_FOREVER);
        if (err != 0)
            bench_die("join: error %d", -err);
    }
}

static blitz_poll poll_yield(void *state, blitz_cx *cx)
{
    uint64_t *left = state;
    return (*left)-- == 0 ? BLITZ_READY : blitz_cx_yield(cx);
}

static double poll_yield_among(uint64_t ops, uint64_t count, blitz_task **tasks)
{
    uint64_t each = ops / count + 1, began = tasks_now_ns();
    for (uint64_t i = 0; i < count; i++)
        poll_spawn(poll_yield, &each, sizeof each, &tasks[i]);
    poll_join_all(tasks, count);
    return (double)(tasks_now_ns() - began) / (double)(each * count) * (double)ops;
}

static double case_poll_yield_2(uint64_t ops)
{
    blitz_task *tasks[2];
    return poll_yield_among(ops, 2, tasks);
}

static double case_poll_yield_1000(uint64_t ops)
{
    static blitz_task *tasks[1000];
    return poll_yield_among(ops, 1000, tasks);
}

static blitz_poll poll_count(void *state, blitz_cx *cx)
{
    (void)cx;
    ++**(uint64_t **)state;
    return BLITZ_READY;
}

static double poll_spawn_join(uint64_t ops, blitz_task **tasks, uint64_t *counters)
{
    uint64_t began = tasks_now_ns();
    for (uint64_t i = 0; i < ops; i++) {
        uint64_t *counter = &counters[i];
        poll_spawn(poll_count, &counter, sizeof counter, &tasks[i]);
    }
    poll_join_all(tasks, ops);
    return (double)(tasks_now_ns() - began);
}

/* ---- parked ---- */

struct poll_slot {
    blitz_waker waker;
    uint64_t is_open;
};

static uint64_t poll_arrived;

static blitz_poll poll_wait(void *state, blitz_cx *cx)
{
    struct poll_slot *slot = *(struct poll_slot **)state;
    if (__atomic_load_n(&slot->is_open, __ATOMIC_ACQUIRE))
        return BLITZ_READY;
    if (slot->waker.ops == NULL) {
        slot->waker = blitz_waker_clone(cx->waker);
        __atomic_fetch_add(&poll_arrived, 1, __ATOMIC_RELEASE);
    }
    return BLITZ_PENDING;
}

static double poll_parked(uint64_t ops, blitz_task **tasks)
{
    struct poll_slot *slots = malloc(ops * sizeof *slots);
    if (slots == NULL)
        bench_die("out of memory");
    memset(slots, 1, ops * sizeof *slots); /* touched: a memset to 0 may become a calloc */
    for (uint64_t i = 0; i < ops; i++)
        slots[i] = (struct poll_slot){.is_open = 0};
    uint64_t before = tasks_memory();
    for (uint64_t i = 0; i < ops; i++) {
        struct poll_slot *slot = &slots[i];
        poll_spawn(poll_wait, &slot, sizeof slot, &tasks[i]);
        if (i % 64 == 63)
            blitz_yield();
    }
    while (__atomic_load_n(&poll_arrived, __ATOMIC_ACQUIRE) < ops)
        blitz_yield();
    double state = sizeof(struct poll_slot *); /* the task's own, which is not ours to count */
    double bytes = (double)(tasks_memory() - before) / (double)ops - state;
    for (uint64_t i = 0; i < ops; i++) {
        __atomic_store_n(&slots[i].is_open, 1, __ATOMIC_RELEASE);
        blitz_waker_wake(&slots[i].waker);
    }
    poll_join_all(tasks, ops);
    free(slots);
    return bytes;
}

#endif
