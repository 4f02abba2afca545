/* Stackless tasks: start, wake, end, cancel, what they own, and waiting inside a poll. */
#include "harness.h"
#include "support/alone.h"
#include "support/on_each.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/bz_atomic.h"
#include "blitz.h"

static int join(blitz_task *t)
{
    int result = -1;
    CHECK_EQ(blitz_task_join(t, &result, BLITZ_FOREVER), 0);
    return result;
}

/* ---- start and end ---- */

static blitz_poll give_back(void *state, blitz_cx *cx)
{
    cx->result = *(int *)state;
    return BLITZ_READY;
}

static int thousand(void *arg)
{
    enum { N = 1000 };
    static blitz_task *t[N];
    (void)arg;
    for (int i = 0; i < N; i++)
        CHECK_EQ(blitz_spawn_poll(give_back, &i, sizeof i, NULL, &t[i]), 0);
    for (int i = 0; i < N; i++)
        CHECK_EQ(join(t[i]), i);
    return 0;
}

/* The state is copied: here all thousand come out of one variable. */
TEST(poll, each_has_a_copy_of_the_state)
{
    t_on_each(thousand, NULL, 0);
}

static int add_one(void *arg)
{
    return *(int *)arg + 1;
}

static blitz_poll give_pointer(void *state, blitz_cx *cx)
{
    cx->pointer = *(void **)state;
    return BLITZ_READY;
}

static blitz_poll wait_inside(void *state, blitz_cx *cx)
{
    CHECK_EQ(blitz_sleep(1), 0); /* the task gets a stack of its own */
    cx->result = *(int *)state;
    return BLITZ_READY;
}

static blitz_poll take_none(void *state, blitz_cx *cx)
{
    (void)state;
    cx->result = 7;
    return BLITZ_READY;
}

/* Fibers and stackless tasks of every small size, in turn, so that each takes headers that another kind has left. */
static int by_turns(void *arg)
{
    enum { N = 200, KINDS = 5 };
    static blitz_task *t[N];
    static int number[N];
    (void)arg;
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < N; i++) {
            void *at = &number[i];
            number[i] = round + i;
            switch ((i + round) % KINDS) {
            case 0:
                CHECK_EQ(blitz_spawn(add_one, at, NULL, &t[i]), 0);
                break;
            case 1:
                CHECK_EQ(blitz_spawn_poll(give_back, at, sizeof(int), NULL, &t[i]), 0);
                break;
            case 2:
                CHECK_EQ(blitz_spawn_poll(give_pointer, &at, sizeof at, NULL, &t[i]), 0);
                break;
            case 3:
                CHECK_EQ(blitz_spawn_poll(wait_inside, at, sizeof(int), NULL, &t[i]), 0);
                break;
            default:
                CHECK_EQ(blitz_spawn_poll(take_none, NULL, 0, NULL, &t[i]), 0);
            }
        }
        for (int n = 0; n < N; n++) {
            int i = round % 2 == 0 ? n : N - 1 - n;
            void *at = NULL;
            switch ((i + round) % KINDS) {
            case 0:
                CHECK_EQ(join(t[i]), number[i] + 1);
                break;
            case 2:
                CHECK_EQ(blitz_task_join_ptr(t[i], &at, BLITZ_FOREVER), 0);
                CHECK(at == &number[i]);
                break;
            case 4:
                CHECK_EQ(join(t[i]), 7);
                break;
            default:
                CHECK_EQ(join(t[i]), number[i]);
            }
        }
    }
    return 0;
}

TEST(poll, fibers_and_stackless_tasks_use_each_others_headers)
{
    t_on_each(by_turns, NULL, 0);
}

static blitz_poll bad(void *state, blitz_cx *cx)
{
    (void)state;
    (void)cx;
    FAIL("nothing was to be started");
    return BLITZ_READY;
}

static int refusals(void *arg)
{
    static char big[BLITZ_STATE_MAX + 1];
    blitz_task *t = NULL;
    (void)arg;
    CHECK_EQ(blitz_spawn_poll(NULL, NULL, 0, NULL, &t), -EINVAL);
    CHECK_EQ(blitz_spawn_poll(bad, NULL, 1, NULL, &t), -EINVAL);
    CHECK_EQ(blitz_spawn_poll(bad, big, sizeof big, NULL, &t), -EINVAL);
    CHECK_NULL(t);
    return 0;
}

TEST(poll, bad_arguments_are_refused_and_nothing_is_written)
{
    blitz_task *t = NULL;
    int state = 0;
    CHECK_EQ(blitz_spawn_poll(bad, &state, sizeof state, NULL, &t), -EINVAL); /* no runtime */
    CHECK_NULL(t);
    t_on_each(refusals, NULL, 0);
}

static int when_stopping(void *arg)
{
    int state = 0;
    while (blitz_sleep(BLITZ_MS) != -ECANCELED)
        ;
    *(int *)arg = blitz_spawn_poll(bad, &state, sizeof state, NULL, NULL);
    return 0;
}

TEST(poll, a_runtime_that_stops_takes_no_more)
{
    blitz_runtime *rt;
    int err = 0;
    CHECK_EQ(blitz_runtime_new(&(blitz_runtime_opts){.procs = 2}, &rt), 0);
    CHECK_EQ(blitz_spawn(when_stopping, &err, &(blitz_spawn_opts){.runtime = rt}, NULL), 0);
    CHECK_EQ(blitz_runtime_shutdown(rt, BLITZ_FOREVER), 0);
    CHECK_EQ(err, -ESHUTDOWN);
    CHECK_EQ(blitz_runtime_unref(rt), 0);
}

/* ---- the state: its place and its drop ---- */

static bz_atomic(int) dropped;

static void count_drop(void *state, void *ctx)
{
    CHECK(ctx == &dropped);               /* as in the options */
    CHECK_NOT_NULL(blitz_task_current()); /* in the task */
    CHECK_EQ(*(unsigned char *)state, 0xee);
    bz_fetch_add_relaxed(&dropped, 1); /* relaxed: the join orders */
}

static blitz_poll look_at_state(void *state, blitz_cx *cx)
{
    (void)cx;
    CHECK_EQ((uintptr_t)state % 8, 0u);
    CHECK_EQ(*(unsigned char *)state, 0xee);
    return BLITZ_READY;
}

static blitz_poll look_at_wide_state(void *state, blitz_cx *cx)
{
    CHECK_EQ((uintptr_t)state % 16, 0u);
    return look_at_state(state, cx);
}

static void free_nothing(void *p, void *ctx)
{
    (void)ctx;
    (void)p;
    FAIL("there was no pointer");
}

static int all_sizes(void *arg)
{
    unsigned char state[600];
    (void)arg;
    memset(state, 0xee, sizeof state);
    bz_store_relaxed(&dropped, 0); /* relaxed: no other thread yet */
    int drops = 0;
    for (size_t size = 1; size <= sizeof state; size += size < 100 || size > 300 ? 1 : 7)
        for (int which = 0; which < 4; which++) {
            blitz_spawn_opts opts = {.drop_state = which & 1 ? count_drop : NULL,
                                     .drop_result = which & 2 ? free_nothing : NULL,
                                     .ctx = &dropped};
            blitz_task *t;
            CHECK_EQ(blitz_spawn_poll(size % 16 == 0 ? look_at_wide_state : look_at_state, state,
                                      size, &opts, &t),
                     0);
            CHECK_EQ(join(t), 0);
            drops += which & 1;
            CHECK_EQ(bz_load_relaxed(&dropped), drops); /* relaxed: after the join */
        }
    return 0;
}

/* Every size, with and without the options that lie between header and state. */
TEST(poll, a_state_of_any_size_is_aligned_and_dropped_once)
{
    t_on_each(all_sizes, NULL, 0);
}

static int pointee;
static bz_atomic(int) freed;

static blitz_poll leaves_a_pointer(void *state, blitz_cx *cx)
{
    cx->pointer = &pointee;
    return look_at_state(state, cx);
}

static void count_free(void *p, void *ctx)
{
    CHECK(p == &pointee);
    CHECK(ctx == &dropped);          /* as in the options */
    bz_fetch_add_relaxed(&freed, 1); /* relaxed: the join orders */
}

static int leaves_pointers(void *arg)
{
    unsigned char state = 0xee;
    (void)arg;
    bz_store_relaxed(&dropped, 0); /* relaxed: no other thread yet */
    bz_store_relaxed(&freed, 0);   /* relaxed: likewise */
    for (int which = 0; which < 4; which++) {
        blitz_spawn_opts opts = {.drop_state = which & 1 ? count_drop : NULL,
                                 .drop_result = which & 2 ? count_free : NULL,
                                 .ctx = &dropped};
        blitz_task *t;
        CHECK_EQ(blitz_spawn_poll(leaves_a_pointer, &state, 1, &opts, &t), 0);
        CHECK_EQ(join(t), 0); /* does not take the pointer */
    }
    CHECK_EQ(bz_load_relaxed(&dropped), 2); /* relaxed: after the joins */
    CHECK_EQ(bz_load_relaxed(&freed), 2);   /* relaxed: likewise */
    return 0;
}

TEST(poll, a_state_and_a_result_are_dropped_with_their_ctx)
{
    t_on_each(leaves_pointers, NULL, 0);
}

static blitz_poll no_state(void *state, blitz_cx *cx)
{
    CHECK_NOT_NULL(state);
    cx->result = 4;
    return BLITZ_READY;
}

static int stateless(void *arg)
{
    static char big[BLITZ_STATE_MAX];
    blitz_task *t;
    (void)arg;
    memset(big, 0xee, sizeof big);
    CHECK_EQ(blitz_spawn_poll(no_state, NULL, 0, NULL, &t), 0);
    CHECK_EQ(join(t), 4);
    CHECK_EQ(blitz_spawn_poll(look_at_wide_state, big, sizeof big, NULL, &t), 0);
    CHECK_EQ(join(t), 0);
    return 0;
}

TEST(poll, a_state_may_be_nothing_or_the_most_there_is)
{
    t_on_each(stateless, NULL, 0);
}

/* ---- waking ---- */

struct bell {
    bz_atomic(int) has_waker;
    blitz_waker waker;
    bz_atomic(int) is_rung;
    int polls;
};

/* Pending until is_rung; the waker is put where the ringer finds it. */
static blitz_poll until_rung(void *state, blitz_cx *cx)
{
    struct bell *b = *(struct bell **)state;
    b->polls++;
    if (bz_load_acquire(&b->is_rung)) { /* the ringer's store: what it did before is visible */
        cx->result = b->polls;
        return BLITZ_READY;
    }
    if (!bz_load_relaxed(&b->has_waker)) { /* relaxed: only the poll sets it */
        b->waker = blitz_waker_clone(cx->waker);
        bz_store_release(&b->has_waker, 1); /* the waker is visible to the acquirer */
    }
    return BLITZ_PENDING;
}

static void ring(struct bell *b)
{
    while (!bz_load_acquire(&b->has_waker)) /* the poll's store */
        blitz_yield();
    bz_store_release(&b->is_rung, 1); /* for the poll */
    blitz_waker_wake(&b->waker);
}

static int ring_from_a_task(void *arg)
{
    struct bell bell = {0}, *b = &bell;
    blitz_task *t;
    (void)arg;
    CHECK_EQ(blitz_spawn_poll(until_rung, &b, sizeof b, NULL, &t), 0);
    ring(b);
    CHECK_LE(join(t), 3);
    return 0;
}

TEST(poll, a_pending_one_goes_on_when_a_task_wakes_it)
{
    t_on_each(ring_from_a_task, NULL, 0);
}

static void *ring_thread(void *bell)
{
    struct bell *b = bell;
    while (!bz_load_acquire(&b->has_waker)) /* the poll's store */
        sched_yield();
    bz_store_release(&b->is_rung, 1); /* for the poll */
    blitz_waker_wake(&b->waker);
    return NULL;
}

static int ring_from_a_thread(void *arg)
{
    struct bell bell = {0}, *b = &bell;
    pthread_t thread;
    blitz_task *t;
    (void)arg;
    CHECK_EQ(pthread_create(&thread, NULL, ring_thread, b), 0);
    CHECK_EQ(blitz_spawn_poll(until_rung, &b, sizeof b, NULL, &t), 0);
    CHECK_LE(join(t), 3);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    return 0;
}

TEST(poll, a_pending_one_goes_on_when_a_thread_wakes_it)
{
    t_on_each(ring_from_a_thread, NULL, 0);
}

static blitz_poll wake_itself(void *state, blitz_cx *cx)
{
    int *left = state;
    if ((*left)-- == 0)
        return BLITZ_READY;
    blitz_waker_wake_by_ref(cx->waker);
    return BLITZ_PENDING;
}

static int self_wakers(void *arg)
{
    int left = 1000;
    blitz_task *t;
    (void)arg;
    CHECK_EQ(blitz_spawn_poll(wake_itself, &left, sizeof left, NULL, &t), 0);
    return join(t);
}

/* The wake comes while it runs; the park that follows must find it. */
TEST(poll, a_wake_while_it_runs_is_not_lost)
{
    t_on_each(self_wakers, NULL, 0);
}

static blitz_waker kept;

static blitz_poll leave_a_waker(void *state, blitz_cx *cx)
{
    (void)state;
    kept = blitz_waker_clone(cx->waker);
    return BLITZ_READY;
}

static int wake_the_ended(void *arg)
{
    int state = 0;
    blitz_task *t;
    (void)arg;
    CHECK_EQ(blitz_spawn_poll(leave_a_waker, &state, sizeof state, NULL, &t), 0);
    CHECK_EQ(join(t), 0);
    blitz_waker again = blitz_waker_clone(&kept);
    blitz_waker_wake_by_ref(&kept);
    blitz_waker_wake(&again);
    return 0;
}

/* Wakers are kept by lists and timers that do not know when a task ends; nor when a runtime does. */
TEST(poll, a_waker_outlives_its_task_and_its_runtime)
{
    static const unsigned procs[] = {1, 2, 8};
    for (size_t i = 0; i < BZ_ARRAY_LEN(procs); i++) {
        CHECK_EQ(blitz_run(wake_the_ended, NULL, &(blitz_runtime_opts){.procs = procs[i]}), 0);
        blitz_waker_wake_by_ref(&kept);
        blitz_waker other = blitz_waker_clone(&kept);
        blitz_waker_wake(&kept);
        blitz_waker_drop(&other);
    }
}

/* ---- turns ---- */

struct turn {
    int *count, *order, me, left;
};

static blitz_poll note_turns(void *state, blitz_cx *cx)
{
    struct turn *s = state;
    if (s->left-- == 0)
        return BLITZ_READY;
    s->order[(*s->count)++] = s->me;
    return blitz_cx_yield(cx);
}

static int strict_turns(void *arg)
{
    int count = 0, order[12];
    blitz_task *t[4];
    (void)arg;
    for (int i = 0; i < 4; i++) {
        struct turn s = {&count, order, i, 3};
        CHECK_EQ(blitz_spawn_poll(note_turns, &s, sizeof s, NULL, &t[i]), 0);
    }
    for (int i = 0; i < 4; i++)
        CHECK_EQ(join(t[i]), 0);
    CHECK_EQ(count, 12);
    for (int turn = 0; turn < 12; turn += 4) {
        unsigned seen = 0;
        for (int i = 0; i < 4; i++)
            seen |= 1u << order[turn + i];
        CHECK_EQ(seen, 15u);
    }
    return 0;
}

/* On one proc: all have had a turn before one has two. */
TEST(poll, a_yield_lets_all_other_tasks_run_first)
{
    CHECK_EQ(t_run_alone(strict_turns, NULL), 0);
}

/* ---- cancel ---- */

static blitz_poll until_cancelled(void *state, blitz_cx *cx)
{
    (void)state;
    if (!blitz_is_cancelled())
        return BLITZ_PENDING; /* the waker is not shared: only a cancel wakes it */
    cx->result = -ECANCELED;
    return BLITZ_READY;
}

static int cancel_some(void *arg)
{
    enum { N = 50 };
    blitz_task *t[N];
    (void)arg;
    for (int i = 0; i < N; i++) {
        CHECK_EQ(blitz_spawn_poll(until_cancelled, NULL, 0, NULL, &t[i]), 0);
        if (i % 3 == 0)
            blitz_yield();
        if (i % 2 == 0)
            blitz_task_cancel(t[i]);
    }
    for (int i = 0; i < N; i++) {
        blitz_task_cancel(t[i]); /* a second one is harmless */
        CHECK_EQ(join(t[i]), -ECANCELED);
    }
    return 0;
}

TEST(poll, a_cancel_calls_the_poll_again)
{
    t_on_each(cancel_some, NULL, 0);
}

static int leave_behind(void *arg)
{
    (void)arg;
    for (int i = 0; i < 20; i++)
        CHECK_EQ(blitz_spawn_poll(until_cancelled, NULL, 0, NULL, NULL), 0);
    return 3;
}

TEST(poll, shutdown_ends_pending_tasks)
{
    t_on_each(leave_behind, NULL, 3);
}

/* ---- waiting inside a poll ---- */

static int sleep_a_little(void *arg)
{
    (void)arg;
    return blitz_sleep(100 * BLITZ_US);
}

static blitz_poll waits_inside(void *state, blitz_cx *cx)
{
    blitz_task *child;
    int left = --*(int *)state;
    CHECK_EQ(blitz_sleep(100 * BLITZ_US), 0);
    blitz_yield();
    CHECK_EQ(blitz_spawn(sleep_a_little, NULL, NULL, &child), 0);
    CHECK_EQ(blitz_task_join(child, NULL, BLITZ_FOREVER), 0);
    if (left > 0)
        return blitz_cx_yield(cx);
    cx->result = 9;
    return BLITZ_READY;
}

static int many_wait_inside(void *arg)
{
    enum { N = 20 };
    blitz_task *t[N];
    (void)arg;
    for (int i = 0; i < N; i++) {
        int left = 1 + i % 4;
        CHECK_EQ(blitz_spawn_poll(waits_inside, &left, sizeof left, NULL, &t[i]), 0);
    }
    for (int i = 0; i < N; i++)
        CHECK_EQ(join(t[i]), 9);
    return 0;
}

/* No coloured functions: a poll may call everything that a fiber may call. */
TEST(poll, a_poll_may_sleep_yield_and_join)
{
    t_on_each(many_wait_inside, NULL, 0);
}

/*
 * The swallowed wake-up. The poll checks, gives its waker away, and then sleeps; the wake-up comes
 * during the sleep, which consumes it. The poll returns "pending", because it checked before. No
 * further wake-up comes.
 */
static blitz_poll asks_then_sleeps(void *state, blitz_cx *cx)
{
    struct bell *b = *(struct bell **)state;
    blitz_sleep_future nap;
    blitz_poll said = until_rung(state, cx);
    while (said == BLITZ_PENDING && !bz_load_acquire(&b->is_rung)) { /* the ringer's store */
        blitz_sleep_until_future_init(&nap, blitz_after(100 * BLITZ_US));
        CHECK_EQ(blitz_await(&nap.future, BLITZ_FOREVER), 0);
    }
    return said;
}

static int ring_the_sleeping(void *arg)
{
    struct bell bell = {0}, *b = &bell;
    blitz_task *t;
    (void)arg;
    CHECK_EQ(blitz_spawn_poll(asks_then_sleeps, &b, sizeof b, NULL, &t), 0);
    ring(b);
    CHECK_GE(join(t), 2);
    return 0;
}

TEST(poll, a_wake_swallowed_by_a_wait_inside_is_made_good)
{
    t_on_each(ring_the_sleeping, NULL, 0);
}
