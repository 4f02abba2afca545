/* Task-local storage. */
#include "harness.h"
#include "support/alone.h"
#include "support/on_each.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
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

/* ---- inherited ---- */

struct span {
    bz_atomic(int) refs;
};

static void *span_ref(void *value, void *ctx)
{
    struct span *s = value;
    CHECK_NULL(ctx);
    CHECK_NOT_NULL(blitz_task_current()); /* in the parent */
    bz_fetch_add_relaxed(&s->refs, 1);    /* relaxed: a count, looked at after the joins */
    return s;
}

static void span_unref(void *value, void *ctx)
{
    (void)ctx;
    bz_fetch_sub_relaxed(&((struct span *)value)->refs, 1); /* relaxed: likewise */
}

static const blitz_local_key span_key = {span_unref, NULL};
static const blitz_local_key none_key = {span_unref, NULL};
static const blitz_local_key own_key = {NULL, NULL};

static void *copies_nothing(void *value, void *ctx)
{
    (void)value;
    (void)ctx;
    return NULL;
}

static int refs_of(struct span *s)
{
    return bz_load_relaxed(&s->refs); /* relaxed: likewise */
}

static int grandchild(void *arg)
{
    CHECK_EQ(blitz_local_get(&span_key), arg);
    return 0;
}

static int stranger(void *arg)
{
    (void)arg;
    CHECK_NULL(blitz_local_get(&span_key));
    return 0;
}

static const blitz_spawn_opts heir = {.name = "heir", .inherits = true};

/* It has a value of its own, passes it on with the option, and not without. */
static int child(void *arg)
{
    blitz_task *t[2];
    CHECK_EQ(blitz_local_get(&span_key), arg);
    CHECK_NULL(blitz_local_get(&none_key));
    CHECK_NULL(blitz_local_get(&own_key));
    blitz_yield();
    CHECK_EQ(blitz_spawn(grandchild, arg, &heir, &t[0]), 0);
    CHECK_EQ(blitz_spawn(stranger, arg, NULL, &t[1]), 0);
    for (int i = 0; i < 2; i++)
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_local_set(&span_key, blitz_local_get(&span_key)),
             0); /* not inherited any more */
    CHECK_EQ(blitz_spawn(stranger, arg, &heir, &t[0]), 0);
    return blitz_task_join(t[0], NULL, BLITZ_FOREVER);
}

static void *child_ptr(void *arg)
{
    CHECK_EQ(blitz_local_get(&span_key), arg);
    return arg;
}

static blitz_poll child_poll(void *state, blitz_cx *cx)
{
    (void)cx;
    CHECK_EQ(blitz_local_get(&span_key), *(void **)state);
    return BLITZ_READY;
}

static void set_values(struct span *s)
{
    bz_atomic_init(&s->refs, 1);
    CHECK_EQ(blitz_local_set(&own_key, s), 0);
    CHECK_EQ(blitz_local_set_inherited(&span_key, s, span_ref), 0);
    CHECK_EQ(blitz_local_set_inherited(&none_key, span_ref(s, NULL), copies_nothing), 0);
}

static int parent(void *arg)
{
    struct span s;
    void *state = &s, *result = NULL;
    blitz_task *t[4];
    (void)arg;
    set_values(&s);
    CHECK_EQ(blitz_spawn(child, &s, &heir, &t[0]), 0);
    CHECK_EQ(blitz_spawn(stranger, &s, NULL, &t[1]), 0);
    CHECK_EQ(blitz_spawn_poll(child_poll, &state, sizeof state, &heir, &t[2]), 0);
    CHECK_EQ(blitz_spawn_ptr(child_ptr, &s, &heir, &t[3]), 0);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_task_join_ptr(t[3], &result, BLITZ_FOREVER), 0);
    CHECK_EQ(result, &s);
    CHECK_EQ(refs_of(&s), 2); /* those of this task */
    CHECK_EQ(blitz_local_set(&none_key, NULL), 0);
    CHECK_EQ(blitz_local_set(&span_key, NULL), 0);
    CHECK_EQ(refs_of(&s), 0);
    return 0;
}

TEST(local, a_child_inherits_what_may_be_inherited_if_it_is_asked_for)
{
    t_on_each(parent, NULL, 0);
}

static int spawns_in_vain(void *arg)
{
    struct span s;
    void *state = &s;
    blitz_task *t;
    (void)arg;
    set_values(&s);
    CHECK_EQ(blitz_spawn(child, &s, &heir, &t), -EAGAIN); /* tasks_max */
    CHECK_EQ(blitz_spawn_ptr(child_ptr, &s, &heir, &t), -EAGAIN);
    CHECK_EQ(blitz_spawn_poll(child_poll, &state, sizeof state, &heir, &t), -EAGAIN);
    CHECK_EQ(refs_of(&s), 2); /* the copies were dropped */
    CHECK_EQ(blitz_local_set(&none_key, NULL), 0);
    CHECK_EQ(blitz_local_set(&span_key, NULL), 0);
    return 0;
}

TEST(local, a_spawn_that_fails_drops_the_copies)
{
    CHECK_EQ(blitz_run(spawns_in_vain, NULL, &(blitz_runtime_opts){.procs = 1, .tasks_max = 1}), 0);
}

/* A scope passes the option on; a plain thread has nothing to pass on. */
static int in_a_scope(void *arg)
{
    struct span s;
    blitz_scope scope;
    (void)arg;
    set_values(&s);
    CHECK_EQ(blitz_scope_open(&scope, NULL, BLITZ_FOREVER), 0);
    for (int i = 0; i < 10; i++)
        CHECK_EQ(blitz_scope_spawn(&scope, grandchild, &s, &heir), 0);
    CHECK_EQ(blitz_scope_close(&scope), 0);
    CHECK_EQ(refs_of(&s), 2);
    CHECK_EQ(blitz_local_set(&none_key, NULL), 0);
    CHECK_EQ(blitz_local_set(&span_key, NULL), 0);
    return 0;
}

TEST(local, tasks_of_a_scope_inherit_and_a_plain_thread_has_nothing_to_pass_on)
{
    blitz_runtime *rt;
    blitz_task *t;
    t_on_each(in_a_scope, NULL, 0);
    CHECK_EQ(blitz_local_set_inherited(&span_key, &rt, span_ref), -EINVAL);
    CHECK_EQ(blitz_runtime_new(&(blitz_runtime_opts){.procs = 1}, &rt), 0);
    CHECK_EQ(blitz_spawn(stranger, NULL, &(blitz_spawn_opts){.runtime = rt, .inherits = true}, &t),
             0);
    CHECK_EQ(blitz_task_join(t, NULL, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_shutdown(rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref(rt), 0);
}

/* ---- the end of a task is told after its locals ---- */

struct borrower {
    atomic_bool is_dropped;
    int result;
};

static void give_back(void *p, void *ctx)
{
    (void)ctx;
    for (int i = 0; i < 5; i++)
        blitz_yield(); /* a caller that is told too early goes on here */
    ((struct borrower *)p)->is_dropped = true;
}

BLITZ_LOCAL(struct borrower, borrowed, give_back)

static int borrow(void *arg)
{
    struct borrower *b = arg;
    CHECK_EQ(borrowed_local_set(b), 0);
    return b->result;
}

static void borrow_later(void *arg)
{
    (void)borrow(arg);
}

static void check_scope(int result, const blitz_spawn_opts *opts)
{
    blitz_scope s;
    struct borrower b = {.result = result};
    CHECK_EQ(blitz_scope_open(&s, NULL, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_scope_spawn(&s, borrow, &b, opts), 0);
    CHECK_EQ(blitz_scope_close(&s), result);
    CHECK(b.is_dropped); /* b goes out of scope */
}

static int scopes_and_later(void *arg)
{
    struct borrower b = {.result = 0};
    blitz_later *l;
    (void)arg;
    check_scope(0, NULL);
    check_scope(-EIO, NULL);
    check_scope(0, &(blitz_spawn_opts){.stack_bytes = 1 << 20});
    check_scope(-EIO, &(blitz_spawn_opts){.stack_bytes = 1 << 20});
    CHECK_EQ(blitz_later_at(0, borrow_later, &b, NULL, &l), 0);
    CHECK_EQ(blitz_later_wait(l, BLITZ_FOREVER), 0);
    CHECK(b.is_dropped);
    blitz_later_unref(l);
    return 0;
}

/* A drop function may use memory of the caller that waits for the task. */
TEST(local, values_are_dropped_before_a_scope_or_a_later_call_ends)
{
    t_on_each(scopes_and_later, NULL, 0);
}

TEST(local, values_are_dropped_before_a_bridge_has_the_result)
{
    struct borrower b = {.result = 7};
    blitz_runtime *rt;
    blitz_bridge *bridge;
    blitz_bridge_result r;
    CHECK_EQ(blitz_runtime_new(&(blitz_runtime_opts){.procs = 1}, &rt), 0);
    CHECK_EQ(blitz_bridge_new(rt, &bridge), 0);
    CHECK_EQ(blitz_bridge_submit(bridge, borrow, &b, NULL), 0);
    CHECK_EQ(poll(&(struct pollfd){.fd = blitz_bridge_fd(bridge), .events = POLLIN}, 1, -1), 1);
    CHECK_EQ(blitz_bridge_take(bridge, &r), 0);
    CHECK_EQ(r.result, 7);
    CHECK(b.is_dropped);
    blitz_bridge_unref(bridge);
    CHECK_EQ(blitz_runtime_shutdown(rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref(rt), 0);
}
