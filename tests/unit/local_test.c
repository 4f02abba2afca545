/* Task-local storage. */
#include "harness.h"
#include "support/alone.h"
#include "support/on_each.h"

#include <stdlib.h>
#include <string.h>

#include "base/bz_atomic.h"

static bz_atomic(int) destroyed;

static void count_and_free(void *p, void *ctx)
{
    (void)ctx;
    CHECK_NOT_NULL(blitz_task_current()); /* in the task */
    bz_fetch_add_relaxed(&destroyed, 1);  /* relaxed: a count, looked at after the runtime's end */
    free(p);
}

BLITZ_LOCAL(int, number, count_and_free)
BLITZ_LOCAL(const char, word, NULL)

static int *number_of(int n)
{
    int *p = malloc(sizeof *p);
    CHECK_NOT_NULL(p);
    *p = n;
    return p;
}

static int keep_one(void *arg)
{
    int me = (int)(intptr_t)arg;
    CHECK_NULL(number_local()); /* none from the parent */
    CHECK_EQ(number_local_set(number_of(me)), 0);
    for (int i = 0; i < 20; i++) {
        blitz_yield();
        CHECK_EQ(*number_local(), me);
    }
    CHECK_EQ(blitz_sleep(100 * BLITZ_US), 0);
    CHECK_EQ(*number_local(), me);
    return 0;
}

static int many_keep(void *arg)
{
    enum { N = 50 };
    blitz_task *t[N];
    (void)arg;
    CHECK_EQ(number_local_set(number_of(-1)), 0);
    for (int i = 0; i < N; i++)
        CHECK_EQ(blitz_spawn(keep_one, (void *)(intptr_t)i, NULL, &t[i]), 0);
    for (int i = 0; i < N; i++)
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0); /* perhaps on our own stack */
    CHECK_EQ(*number_local(), -1);
    return 0;
}

TEST(local, each_task_has_its_own_wherever_it_goes_on)
{
    bz_store_relaxed(&destroyed, 0); /* relaxed: no other thread yet */
    t_on_each(many_keep, NULL, 0);
    CHECK_EQ(bz_load_relaxed(&destroyed), 4 * 51); /* relaxed: all have ended */
}

static int replace(void *arg)
{
    int *p = number_of(1);
    (void)arg;
    CHECK_EQ(number_local_set(NULL), 0); /* nothing to forget */
    CHECK_EQ(number_local_set(p), 0);
    CHECK_EQ(number_local_set(p), 0);         /* the same: it stays */
    CHECK_EQ(bz_load_relaxed(&destroyed), 0); /* relaxed: we are the only task */
    CHECK_EQ(number_local_set(number_of(2)), 0);
    CHECK_EQ(bz_load_relaxed(&destroyed), 1); /* relaxed: likewise */
    CHECK_EQ(number_local_set(NULL), 0);
    CHECK_EQ(bz_load_relaxed(&destroyed), 2); /* relaxed: likewise */
    CHECK_NULL(number_local());
    CHECK_EQ(number_local_set(number_of(3)), 0);
    return *number_local();
}

TEST(local, a_replaced_value_is_destroyed)
{
    bz_store_relaxed(&destroyed, 0); /* relaxed: no other thread yet */
    CHECK_EQ(t_run_alone(replace, NULL), 3);
    CHECK_EQ(bz_load_relaxed(&destroyed), 3); /* relaxed: it has ended */
}

enum { KEYS = 100 };
static blitz_local_key keys[KEYS];
static int order[KEYS], ended;

static void note_order(void *value, void *ctx)
{
    (void)ctx;
    order[ended++] = *(int *)value;
    free(value);
}

static int many_keys(void *arg)
{
    (void)arg;
    for (int i = 0; i < KEYS; i++) {
        keys[i].drop = note_order;
        CHECK_EQ(blitz_local_set(&keys[i], number_of(i)), 0);
    }
    for (int i = 0; i < KEYS; i++)
        CHECK_EQ(*(int *)blitz_local_get(&keys[i]), i);
    CHECK_EQ(word_local_set("unowned"), 0);
    return strcmp(word_local(), "unowned");
}

TEST(local, any_number_of_keys_and_the_newest_goes_first)
{
    CHECK_EQ(blitz_run(many_keys, NULL, NULL), 0);
    CHECK_EQ(ended, KEYS);
    for (int i = 0; i < KEYS; i++)
        CHECK_EQ(order[i], KEYS - 1 - i);
}

static void uses_another(void *value, void *ctx)
{
    (void)ctx;
    int *n = number_local();
    CHECK_EQ(n != NULL ? *n : -1, 5); /* older ones are still there */
    CHECK_EQ(blitz_sleep(100 * BLITZ_US), 0);
    CHECK_EQ(number_local_set(number_of(6)), 0);
    free(value);
}
static const blitz_local_key user_key = {uses_another, NULL};

static int destructor_at_work(void *arg)
{
    (void)arg;
    CHECK_EQ(number_local_set(number_of(5)), 0);
    CHECK_EQ(blitz_local_set(&user_key, number_of(0)), 0);
    return 0;
}

TEST(local, a_destructor_may_wait_and_use_the_others)
{
    bz_store_relaxed(&destroyed, 0); /* relaxed: no other thread yet */
    t_on_each(destructor_at_work, NULL, 0);
    CHECK_EQ(bz_load_relaxed(&destroyed), 4 * 2); /* relaxed: all have ended */
}

static void comes_back(void *value, void *ctx);
static const blitz_local_key boomerang = {comes_back, NULL};

static void comes_back(void *value, void *ctx)
{
    (void)ctx;
    blitz_local_set(&boomerang, value);
}

static int throw_it(void *arg)
{
    return blitz_local_set(&boomerang, arg);
}

static void run_boomerang(void *arg)
{
    t_run_alone(throw_it, arg);
}

TEST(local, a_value_that_never_ends_aborts)
{
    int value = 0;
    CHECK_ABORTS(run_boomerang, &value, "sets it again and again");
}

TEST(local, a_plain_thread_has_none)
{
    int value = 0;
    CHECK_NULL(number_local());
    CHECK_EQ(number_local_set(&value), -EINVAL);
    CHECK_NULL(number_local());
}

static blitz_poll poll_keeps(void *state, blitz_cx *cx)
{
    int *left = state;
    if (number_local() == NULL)
        CHECK_EQ(number_local_set(number_of(*left)), 0);
    if (--*left > 0)
        return blitz_cx_yield(cx);
    cx->result = *number_local();
    return BLITZ_READY;
}

static int stackless_keeps(void *arg)
{
    int left = 4, result = 0;
    blitz_task *t;
    (void)arg;
    CHECK_EQ(blitz_spawn_poll(poll_keeps, &left, sizeof left, NULL, &t), 0);
    CHECK_EQ(blitz_task_join(t, &result, BLITZ_FOREVER), 0);
    return result;
}

TEST(local, a_stackless_task_keeps_its_own_between_polls)
{
    t_on_each(stackless_keeps, NULL, 4);
}

/* A forked job whose frame was left runs under a header of its own. */
static int job_looks(void *arg)
{
    int *has_run = arg, value = 0;
    int *seen = number_local();
    CHECK_EQ(seen != NULL ? *seen : -1, 12);
    if (blitz_local_set(&keys[0], &value) == 0) /* it was called by the join: it is the task */
        CHECK_EQ(blitz_local_set(&keys[0], NULL), 0);
    else
        *has_run = 1;
    return 0;
}

static int fork_and_leave(void *arg)
{
    blitz_job job;
    int has_run = 0;
    (void)arg;
    keys[0].drop = NULL;
    CHECK_EQ(number_local_set(number_of(12)), 0);
    for (int round = 0; round < 100 && !has_run; round++) {
        blitz_fork(&job, job_looks, &has_run);
        CHECK_EQ(blitz_sleep(100 * BLITZ_US), 0); /* leaves the frame: the job goes to the queues */
        blitz_join(&job);
    }
    CHECK_EQ(*number_local(), 12);
    return has_run;
}

TEST(local, a_forked_job_elsewhere_sees_them_and_sets_none)
{
    t_on_each(fork_and_leave, NULL, 1);
}

/* An allocator that has nothing left for a table. */
static bz_atomic(int) is_out;

static void *maybe_alloc(void *ctx, size_t size, size_t align)
{
    (void)ctx;
    size = (size + align - 1) / align * align;
    return bz_load_relaxed(&is_out) ? NULL : aligned_alloc(align, size); /* relaxed: one task */
}

static void plain_free(void *ctx, void *p, size_t size)
{
    (void)ctx;
    (void)size;
    free(p);
}

static int without_memory(void *arg)
{
    int value = 0;
    (void)arg;
    bz_store_relaxed(&is_out, 1); /* relaxed: one task */
    CHECK_EQ(blitz_local_set(&boomerang, &value), -ENOMEM);
    CHECK_NULL(blitz_local_get(&boomerang));
    bz_store_relaxed(&is_out, 0); /* relaxed: one task */
    return 0;
}

TEST(local, without_memory_nothing_is_set)
{
    blitz_allocator a = {maybe_alloc, plain_free, NULL};
    CHECK_EQ(blitz_run(without_memory, NULL, &(blitz_runtime_opts){.procs = 1, .allocator = &a}),
             0);
}
