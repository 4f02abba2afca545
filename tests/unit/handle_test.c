/* Handles of tasks: queries, joins and drops. */
#include "harness.h"
#include "support/on_each.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/bz_atomic.h"

static int give_back(void *arg)
{
    return (int)(intptr_t)arg;
}

static int for_ever(void *arg)
{
    (void)arg;
    return blitz_sleep_until(BLITZ_FOREVER);
}

/* ---- try_join ---- */

static int try_until_it_ends(void *arg)
{
    int result = -1;
    blitz_task *t;
    (void)arg;
    CHECK_EQ(blitz_spawn(for_ever, NULL, NULL, &t), 0);
    CHECK_EQ(blitz_task_try_join(t, &result), -EAGAIN);
    CHECK_EQ(result, -1); /* not written */
    blitz_task_cancel(t);
    while (!blitz_task_is_done(t))
        blitz_yield();
    CHECK_EQ(blitz_task_try_join(t, &result), 0);
    return result;
}

TEST(handle, try_join_takes_the_handle_once_the_task_has_ended)
{
    t_on_each(try_until_it_ends, NULL, -ECANCELED);
}

static int try_myself(void *arg)
{
    (void)arg;
    CHECK_EQ(blitz_task_try_join(blitz_task_current(), NULL), -EDEADLK);
    CHECK_EQ(blitz_task_join(blitz_task_current(), NULL, BLITZ_FOREVER), -EDEADLK);
    CHECK_EQ(blitz_task_join(blitz_task_current(), NULL, 0), -EDEADLK);
    return 0;
}

TEST(handle, a_task_that_joins_itself_gets_an_error)
{
    t_on_each(try_myself, NULL, 0);
}

static int nobody(void *arg)
{
    void *p = arg;
    CHECK_EQ(blitz_task_join(NULL, NULL, BLITZ_FOREVER), -EINVAL);
    CHECK_EQ(blitz_task_join_ptr(NULL, &p, BLITZ_FOREVER), -EINVAL);
    CHECK(p == arg); /* not written */
    CHECK_EQ(blitz_task_try_join(NULL, NULL), -EINVAL);
    blitz_task_detach(NULL);
    blitz_task_cancel(NULL);
    return 0;
}

TEST(handle, null_is_no_task)
{
    t_on_each(nobody, NULL, 0);
    nobody(NULL); /* on a plain thread, too */
}

/* ---- thread identity ---- */

static int named(void *arg)
{
    CHECK_STR_EQ(blitz_task_name(NULL), arg);
    CHECK_STR_EQ(blitz_task_name(blitz_task_current()), arg);
    CHECK_EQ(blitz_task_id(NULL), blitz_task_id(blitz_task_current()));
    blitz_yield();
    CHECK_EQ(blitz_sleep(100 * BLITZ_US), 0);
    CHECK_STR_EQ(blitz_task_name(NULL), arg); /* on any thread */
    return 0;
}

static int nameless(void *arg)
{
    (void)arg;
    CHECK_NULL(blitz_task_name(NULL));
    return 0;
}

static int names(void *arg)
{
    static const char *const name[] = {"a", "b", "c"};
    blitz_task *t[4];
    (void)arg;
    for (int i = 0; i < 3; i++) {
        blitz_spawn_opts opts = {.name = name[i]};
        CHECK_EQ(blitz_spawn(named, (void *)name[i], &opts, &t[i]), 0);
        CHECK_STR_EQ(blitz_task_name(t[i]), name[i]);
    }
    CHECK_EQ(blitz_spawn(nameless, NULL, NULL, &t[3]), 0);
    CHECK_NULL(blitz_task_name(t[3]));
    for (int i = 0; i < 4; i++)
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
    return 0;
}

TEST(handle, a_task_knows_itself_and_its_name)
{
    CHECK_NULL(blitz_task_current());
    CHECK_NULL(blitz_task_name(NULL));
    t_on_each(names, NULL, 0);
}

/* ---- more than one ---- */

static blitz_task *shared;
static bz_atomic(int) is_shared;

static int share_myself(void *arg)
{
    (void)arg;
    shared = blitz_task_ref(blitz_task_current());
    bz_store_release(&is_shared, 1); /* for the waiter below */
    return blitz_sleep_until(BLITZ_FOREVER);
}

static int join_it(void *t)
{
    int result = 0;
    CHECK_EQ(blitz_task_join(t, &result, BLITZ_FOREVER), 0);
    return result;
}

static int several_join(void *arg)
{
    enum { N = 5 };
    blitz_task *joiner[N];
    (void)arg;
    bz_store_relaxed(&is_shared, 0);                          /* relaxed: no other thread yet */
    CHECK_EQ(blitz_spawn(share_myself, NULL, NULL, NULL), 0); /* detached from the first moment */
    while (!bz_load_acquire(&is_shared))                      /* the task's store */
        blitz_yield();
    for (int i = 0; i < N; i++)
        CHECK_EQ(blitz_spawn(join_it, blitz_task_ref(shared), NULL, &joiner[i]), 0);
    blitz_yield();
    blitz_task_cancel(shared);
    for (int i = 0; i < N; i++)
        CHECK_EQ(join_it(joiner[i]), -ECANCELED);
    CHECK_EQ(join_it(shared), -ECANCELED);
    return 0;
}

TEST(handle, each_handle_can_join)
{
    t_on_each(several_join, NULL, 0);
}

/* ---- pointers ---- */

static void *make(void *arg)
{
    int *p = malloc(sizeof *p);
    CHECK_NOT_NULL(p);
    *p = (int)(intptr_t)arg;
    if (*p % 2)
        blitz_yield();
    return p;
}

static bz_atomic(int) freed;

static void count_free(void *p, void *ctx)
{
    CHECK(ctx == &freed);            /* as in the options */
    bz_fetch_add_relaxed(&freed, 1); /* relaxed: a count, looked at after the runtime's end */
    free(p);
}

static int take_pointers(void *arg)
{
    enum { N = 20 };
    blitz_task *t[N];
    blitz_spawn_opts opts = {.drop_result = count_free, .ctx = &freed};
    (void)arg;
    for (int i = 0; i < N; i++)
        CHECK_EQ(blitz_spawn_ptr(make, (void *)(intptr_t)i, &opts, &t[i]), 0);
    for (int i = 0; i < N; i++) {
        void *p = NULL;
        CHECK_EQ(blitz_task_join_ptr(t[i], &p, BLITZ_FOREVER), 0);
        CHECK_EQ(*(int *)p, i);
        free(p);
    }
    return 0;
}

TEST(handle, the_joiner_owns_a_pointer_result)
{
    bz_store_relaxed(&freed, 0); /* relaxed: no other thread yet */
    t_on_each(take_pointers, NULL, 0);
    CHECK_EQ(bz_load_relaxed(&freed), 0); /* relaxed: all have ended */
}

/* Every way of not taking it. */
static int leave_pointers(void *arg)
{
    blitz_spawn_opts opts = {.drop_result = count_free, .ctx = &freed};
    blitz_task *t[4];
    void *first = NULL, *second = arg;
    int result = -1;
    CHECK_EQ(blitz_spawn_ptr(make, NULL, &opts, NULL), 0); /* detached at once */
    for (int i = 0; i < 4; i++)
        CHECK_EQ(blitz_spawn_ptr(make, (void *)(intptr_t)i, &opts, &t[i]), 0);
    blitz_task_detach(t[0]);
    CHECK_EQ(blitz_task_join(t[1], &result, BLITZ_FOREVER), 0);
    CHECK_EQ(result, 0); /* it has no int */
    while (blitz_task_try_join(t[2], &result) == -EAGAIN)
        blitz_yield();
    CHECK_EQ(result, 0);
    blitz_task_ref(t[3]);
    CHECK_EQ(blitz_task_join_ptr(t[3], &first, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_task_join_ptr(t[3], &second, BLITZ_FOREVER), 0);
    CHECK_EQ(*(int *)first, 3);
    CHECK_NULL(second);
    free(first);
    return 0;
}

TEST(handle, an_unread_pointer_result_is_freed)
{
    bz_store_relaxed(&freed, 0); /* relaxed: no other thread yet */
    t_on_each(leave_pointers, &freed, 0);
    CHECK_EQ(bz_load_relaxed(&freed), 4 * 4); /* relaxed: all have ended */
}

/* ---- a drop function that the loop calls ---- */

static bz_atomic(int) yields_left;

static void free_and_yield(void *p, void *ctx)
{
    (void)ctx;
    for (int i = 0; i < 3; i++)
        blitz_yield();
    CHECK_EQ(blitz_task_join(NULL, NULL, BLITZ_FOREVER), -EINVAL);
    free(p);
    bz_fetch_sub_relaxed(&yields_left, 1); /* relaxed: a count, looked at after the end */
}

static int yields_on(void *arg)
{
    for (int i = 0; i < 100; i++)
        blitz_yield();
    (void)arg;
    return 0;
}

/* The ring is not empty: the yield of a task would switch to the task in front. */
static int leave_to_the_loop(void *arg)
{
    blitz_spawn_opts opts = {.drop_result = free_and_yield};
    blitz_task *other;
    (void)arg;
    CHECK_EQ(blitz_spawn(yields_on, NULL, NULL, &other), 0);
    for (int i = 0; i < 20; i++) {
        CHECK_EQ(blitz_spawn_ptr(make, NULL, &opts, NULL), 0);
        blitz_yield();
    }
    return blitz_task_join(other, NULL, BLITZ_FOREVER);
}

/* No task calls such a function, so a yield in it has nothing to do. The fast paths do not ask for the task. */
TEST(handle, a_yield_in_a_drop_function_that_the_loop_calls_does_nothing)
{
    bz_store_relaxed(&yields_left, 4 * 20); /* relaxed: no other thread yet */
    t_on_each(leave_to_the_loop, NULL, 0);
    CHECK_EQ(bz_load_relaxed(&yields_left), 0); /* relaxed: all have ended */
}

static void *no_pointer(void *arg)
{
    return arg;
}

static blitz_poll pointer_poll(void *state, blitz_cx *cx)
{
    cx->pointer = make(*(void **)state);
    cx->result = 5; /* does not count beside a pointer */
    return BLITZ_READY;
}

static int odd_pointers(void *arg)
{
    blitz_spawn_opts opts = {.drop_result = count_free, .ctx = &freed};
    void *p = arg, *five = (void *)(intptr_t)5;
    blitz_task *t;
    int result = -1;
    CHECK_EQ(blitz_spawn_ptr(no_pointer, NULL, &opts, &t), 0);
    CHECK_EQ(blitz_task_join_ptr(t, &p, BLITZ_FOREVER), 0);
    CHECK_NULL(p);
    p = arg;
    CHECK_EQ(blitz_spawn(give_back, arg, NULL, &t), 0); /* an int */
    CHECK_EQ(blitz_task_join_ptr(t, &p, BLITZ_FOREVER), 0);
    CHECK_NULL(p);
    CHECK_EQ(blitz_spawn_ptr(no_pointer, arg, NULL, &t), 0); /* borrowed: never freed */
    blitz_task_detach(t);
    CHECK_EQ(blitz_spawn_poll(pointer_poll, &five, sizeof five, &opts, &t), 0);
    CHECK_EQ(blitz_task_join_ptr(t, &p, BLITZ_FOREVER), 0);
    CHECK_EQ(*(int *)p, 5);
    free(p);
    CHECK_EQ(blitz_spawn_poll(pointer_poll, &five, sizeof five, &opts, &t), 0);
    CHECK_EQ(blitz_task_join(t, &result, BLITZ_FOREVER), 0);
    CHECK_EQ(result, 0);
    CHECK_EQ(blitz_spawn_ptr(NULL, NULL, NULL, &t), -EINVAL);
    return 0;
}

TEST(handle, results_of_either_kind_can_be_asked_for_either_way)
{
    bz_store_relaxed(&freed, 0); /* relaxed: no other thread yet */
    t_on_each(odd_pointers, &freed, 0);
    CHECK_EQ(bz_load_relaxed(&freed), 4); /* relaxed: all have ended */
}

/* ---- from plain threads, after the end ---- */

static void *join_on_a_thread(void *task)
{
    void *p = NULL;
    CHECK_EQ(blitz_task_join_ptr(task, &p, blitz_after(0)), -ETIMEDOUT);
    blitz_task_cancel(task);
    CHECK_EQ(blitz_task_join_ptr(task, &p, BLITZ_FOREVER), 0);
    return p;
}

static void *sleep_then_make(void *arg)
{
    CHECK_EQ(blitz_sleep_until(BLITZ_FOREVER), -ECANCELED);
    return make(arg);
}

TEST(handle, a_plain_thread_has_the_same_rights)
{
    blitz_runtime *rt;
    blitz_task *t;
    pthread_t thread;
    void *p;
    CHECK_EQ(blitz_runtime_new(&(blitz_runtime_opts){.procs = 2}, &rt), 0);
    blitz_spawn_opts opts = {
        .runtime = rt, .name = "far", .drop_result = count_free, .ctx = &freed};
    CHECK_EQ(blitz_spawn_ptr(sleep_then_make, (void *)(intptr_t)8, &opts, &t), 0);
    CHECK_EQ(blitz_task_try_join(t, NULL), -EAGAIN);
    CHECK_EQ(pthread_create(&thread, NULL, join_on_a_thread, t), 0);
    CHECK_EQ(pthread_join(thread, &p), 0);
    CHECK_EQ(*(int *)p, 8);
    free(p);
    CHECK_EQ(blitz_spawn_ptr(make, (void *)(intptr_t)9, &opts, &t), 0);
    CHECK_EQ(blitz_runtime_shutdown(rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref(rt), 0);
    CHECK(blitz_task_is_done(t)); /* a handle outlives the runtime */
    CHECK_STR_EQ(blitz_task_name(t), "far");
    blitz_task_cancel(t);
    CHECK_EQ(blitz_task_join_ptr(t, &p, 0), 0);
    CHECK_EQ(*(int *)p, 9);
    free(p);
}
