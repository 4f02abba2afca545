/* Tasks with stacks of another size than the runtime's. */
#include "harness.h"
#include "support/on_each.h"

#include <pthread.h>

#include "sim/fault.h"
#include "sim/sim.h"
#include "proc/state.h"
#include "runtime/runtime.h"

/* Use up so many bytes of stack, a KiB a call. */
static BZ_NOINLINE unsigned dig(size_t bytes)
{
    volatile unsigned char room[1024];
    for (size_t i = 0; i < sizeof room; i++)
        room[i] = (unsigned char)i;
    unsigned below = bytes > 2 * sizeof room ? dig(bytes - 2 * sizeof room) : 0;
    return below + room[bytes % sizeof room];
}

static size_t room_here(void)
{
    return bz_stack_bytes(bz_machine_self()->runner);
}

struct digger {
    size_t ask;  /* opts.stack_bytes */
    size_t need; /* the minimum size */
};

static int digs(void *arg)
{
    const struct digger *d = arg;
    CHECK_GE(room_here(), d->need / 8 * 7); /* guard and control block are inside a class */
    dig(d->need / 2);
    blitz_yield();
    CHECK_EQ(blitz_sleep(100 * BLITZ_US), 0);
    CHECK_GE(room_here(), d->need / 8 * 7); /* it has kept it */
    dig(d->need / 4);
    return 3;
}

static const struct digger diggers[] = {
    {1, 64 << 10},      {64 << 10, 64 << 10},     {(64 << 10) + 1, 256 << 10}, {1 << 20, 1 << 20},
    {8 << 20, 8 << 20}, {(1 << 20) + 1, 8 << 20}, {256 << 10, 256 << 10}};

static int one_of_each(void *arg)
{
    blitz_task *t[4 * BZ_ARRAY_LEN(diggers)];
    (void)arg;
    for (size_t i = 0; i < BZ_ARRAY_LEN(t); i++) {
        const struct digger *d = &diggers[i % BZ_ARRAY_LEN(diggers)];
        blitz_spawn_opts opts = {.stack_bytes = d->ask};
        CHECK_EQ(blitz_spawn(digs, (void *)d, &opts, &t[i]), 0);
    }
    for (size_t i = 0; i < BZ_ARRAY_LEN(t); i++) {
        int result = -1;
        CHECK_EQ(blitz_task_join(t[i], &result, BLITZ_FOREVER), 0);
        CHECK_EQ(result, 3);
        CHECK_GE(room_here(), (size_t)(56 << 10));
    }
    return 0;
}

TEST(stack_size, each_task_has_its_requested_stack_size)
{
    t_on_each(one_of_each, NULL, 0);
}

/* With a small default, and with a large one: what follows runs on the default again. */
static int usual(void *arg)
{
    CHECK_EQ(bz_machine_self()->runner->class, (int)(intptr_t)arg);
    return 0;
}

static int mixed(void *arg)
{
    for (int i = 0; i < 50; i++) {
        const struct digger *d = &diggers[(size_t)i % BZ_ARRAY_LEN(diggers)];
        blitz_spawn_opts opts = {.stack_bytes = d->ask};
        blitz_task *big, *small;
        CHECK_EQ(blitz_spawn(digs, (void *)d, &opts, &big), 0);
        CHECK_EQ(blitz_spawn(usual, arg, NULL, &small), 0);
        if (i % 2)
            CHECK_EQ(blitz_task_join(big, NULL, BLITZ_FOREVER), 0);
        CHECK_EQ(blitz_task_join(small, NULL, BLITZ_FOREVER), 0);
        if (i % 2 == 0)
            CHECK_EQ(blitz_task_join(big, NULL, BLITZ_FOREVER), 0);
    }
    return 0;
}

TEST(stack_size, the_others_stay_on_the_usual_size)
{
    static const struct {
        size_t bytes;
        enum bz_stack_class class;
    } usuals[] = {{64 << 10, BZ_STACK_64K}, {1 << 20, BZ_STACK_1M}};
    for (size_t i = 0; i < BZ_ARRAY_LEN(usuals); i++)
        for (unsigned procs = 1; procs <= 3; procs++)
            CHECK_EQ(
                blitz_run(mixed, (void *)(intptr_t)usuals[i].class,
                          &(blitz_runtime_opts){.procs = procs, .stack_bytes = usuals[i].bytes}),
                0);
}

/* A child of a task on a small stack is promised half of the usual one: it is not called there. */
static int room_of_child(void *arg)
{
    (void)arg;
    CHECK_GE(room_here(), (size_t)(128 << 10));
    dig(100 << 10);
    return 5;
}

static int small_parent(void *arg)
{
    blitz_task *t;
    int result = 0;
    (void)arg;
    CHECK_EQ(blitz_spawn(room_of_child, NULL, NULL, &t), 0);
    CHECK_EQ(blitz_task_join(t, &result, BLITZ_FOREVER), 0);
    return result;
}

static int start_small(void *arg)
{
    blitz_spawn_opts opts = {.stack_bytes = 1};
    blitz_task *t;
    int result = 0;
    (void)arg;
    CHECK_EQ(blitz_spawn(small_parent, NULL, &opts, &t), 0);
    CHECK_EQ(blitz_task_join(t, &result, BLITZ_FOREVER), 0);
    return result;
}

TEST(stack_size, a_child_is_not_called_on_a_stack_that_is_too_small)
{
    t_on_each(start_small, NULL, 5);
}

static blitz_poll never(void *state, blitz_cx *cx)
{
    (void)state;
    (void)cx;
    return BLITZ_READY;
}

static int too_large(void *arg)
{
    blitz_spawn_opts opts = {.stack_bytes = (8 << 20) + 1};
    blitz_task *t = NULL;
    (void)arg;
    CHECK_EQ(blitz_spawn(usual, NULL, &opts, &t), -EINVAL);
    opts.stack_bytes = SIZE_MAX;
    CHECK_EQ(blitz_spawn(usual, NULL, &opts, &t), -EINVAL);
    opts.stack_bytes = 1; /* a stackless task has none */
    CHECK_EQ(blitz_spawn_poll(never, NULL, 0, &opts, &t), -EINVAL);
    CHECK_NULL(t);
    return 0;
}

TEST(stack_size, sizes_that_cannot_be_had_are_refused)
{
    t_on_each(too_large, NULL, 0);
}

static void *spawn_outside(void *rt)
{
    for (size_t i = 0; i < 20; i++) {
        const struct digger *d = &diggers[i % BZ_ARRAY_LEN(diggers)];
        blitz_spawn_opts opts = {.runtime = rt, .stack_bytes = d->ask, .proc = BLITZ_ON_PROC(1)};
        blitz_task *t;
        int result = 0;
        CHECK_EQ(blitz_spawn(digs, (void *)d, &opts, &t), 0);
        CHECK_EQ(blitz_task_join(t, &result, BLITZ_FOREVER), 0);
        CHECK_EQ(result, 3);
    }
    return NULL;
}

TEST(stack_size, plain_threads_ask_for_them_too)
{
    blitz_runtime *rt;
    pthread_t thread;
    CHECK_EQ(blitz_runtime_new(&(blitz_runtime_opts){.procs = 2}, &rt), 0);
    CHECK_EQ(pthread_create(&thread, NULL, spawn_outside, rt), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(blitz_runtime_shutdown(rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref(rt), 0);
}

static int when_stopping(void *arg)
{
    blitz_spawn_opts opts = {.stack_bytes = 8 << 20};
    while (blitz_sleep(BLITZ_MS) != -ECANCELED)
        ;
    *(int *)arg = blitz_spawn(usual, NULL, &opts, NULL);
    return 0;
}

/* The stack that was taken for it goes back: the pool would say so. */
TEST(stack_size, a_refused_spawn_gives_its_stack_back)
{
    blitz_runtime *rt;
    int err = 0;
    CHECK_EQ(blitz_runtime_new(&(blitz_runtime_opts){.procs = 2}, &rt), 0);
    CHECK_EQ(blitz_spawn(when_stopping, &err, &(blitz_spawn_opts){.runtime = rt}, NULL), 0);
    CHECK_EQ(blitz_runtime_shutdown(rt, BLITZ_FOREVER), 0);
    CHECK_EQ(err, -ESHUTDOWN);
    CHECK_EQ(blitz_runtime_unref(rt), 0);
}

/* ---- without memory, and from seeds ---- */

static int some_of_each(void *arg)
{
    blitz_task *t[6];
    int started = 0;
    (void)arg;
    for (int i = 0; i < 6; i++) {
        const struct digger *d = &diggers[i];
        blitz_spawn_opts opts = {.stack_bytes = d->ask};
        int err = blitz_spawn(digs, (void *)d, &opts, &t[started]);
        CHECK(err == 0 || err == -ENOMEM);
        started += err == 0;
    }
    for (int i = 0; i < started; i++) {
        int result = 0;
        CHECK_EQ(blitz_task_join(t[i], &result, BLITZ_FOREVER), 0);
        CHECK_EQ(result, 3);
    }
    return started;
}

static void run_faulty(const struct bz_os *os, void *arg)
{
    struct bz_fault fault;
    struct bz_runtime *rt;
    bz_fault_init(&fault, os, NULL, arg);
    blitz_runtime_opts config = {.procs = 2, .allocator = &fault.allocator};
    int err = bz_runtime_new(&fault.os, &config, &rt);
    CHECK(err == 0 || err == -ENOMEM);
    if (err != 0)
        return;
    int started = blitz_runtime_block_on((blitz_runtime *)rt, some_of_each, NULL);
    CHECK(started == -ENOMEM || started >= 4); /* one slab, or one object, is not there */
    CHECK_EQ(blitz_runtime_shutdown((blitz_runtime *)rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref((blitz_runtime *)rt), 0);
    CHECK_EQ(bz_fault_books(&fault).slabs, 0);
}

TEST(stack_size, an_unavailable_stack_returns_an_error_and_other_tasks_run)
{
    for (unsigned i = 0; i < 200; i++) {
        uint64_t seed = t_random();
        struct bz_fault_plan plan = {.kind = i % 2 ? BZ_FAULT_RESERVE : BZ_FAULT_MEMORY,
                                     .nth = 1 + i / 2 % 20};
        t_watch("simulation seed 0x%llx, call %u fails", (unsigned long long)seed, 1 + i / 2 % 20);
        CHECK_EQ(bz_sim_run(&(struct bz_sim_config){.seed = seed}, run_faulty, &plan, NULL), 0);
    }
}
