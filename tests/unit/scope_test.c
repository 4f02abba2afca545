/* Scopes: all tasks end before it closes, the first failure ends the others. And tokens. */
#include "harness.h"
#include "support/bell.h"
#include "support/on_each.h"

#include <pthread.h>

#include "base/bz_atomic.h"

static bz_atomic(int) began, ended;

static int work(void *arg)
{
    (void)arg;
    bz_fetch_add_relaxed(&began, 1);
    int err = blitz_sleep(50 * BLITZ_US);
    bz_fetch_add_relaxed(&ended, 1);
    return err;
}

static int for_ever(void *arg)
{
    (void)arg;
    bz_fetch_add_relaxed(&began, 1);
    int err = blitz_sleep_until(BLITZ_FOREVER);
    bz_fetch_add_relaxed(&ended, 1);
    return err;
}

static int fails(void *arg)
{
    (void)arg;
    return -EIO;
}

static void reset(void)
{
    bz_store_relaxed(&began, 0);
    bz_store_relaxed(&ended, 0);
}

static int all_end(void *arg)
{
    blitz_scope s;
    (void)arg;
    reset();
    CHECK_EQ(blitz_scope_open(&s, NULL, BLITZ_FOREVER), 0);
    for (int i = 0; i < 40; i++)
        CHECK_EQ(blitz_scope_spawn(&s, work, NULL,
                                   i % 8 ? NULL : &(blitz_spawn_opts){.stack_bytes = 1 << 20}),
                 0);
    CHECK_EQ(blitz_scope_is_cancelled(&s), 0);
    CHECK_EQ(blitz_scope_close(&s), 0);
    CHECK_EQ(bz_load_relaxed(&began), 40);
    CHECK_EQ(bz_load_relaxed(&ended), 40);
    CHECK_EQ(blitz_scope_spawn(&s, work, NULL, NULL), -EPIPE);
    CHECK_EQ(blitz_scope_open(&s, NULL, BLITZ_FOREVER), 0); /* an empty one */
    CHECK_EQ(blitz_scope_spawn(&s, NULL, NULL, NULL), -EINVAL);
    CHECK_EQ(blitz_scope_close(&s), 0);
    CHECK_EQ(blitz_scope_open(NULL, NULL, BLITZ_FOREVER), -EINVAL);
    return 0;
}

TEST(scope, close_waits_for_all)
{
    t_on_each(all_end, NULL, 0);
    blitz_scope s;
    CHECK_EQ(blitz_scope_open(&s, NULL, BLITZ_FOREVER), -EINVAL); /* no runtime */
}

static int one_fails(void *arg)
{
    blitz_scope s;
    (void)arg;
    reset();
    CHECK_EQ(blitz_scope_open(&s, NULL, BLITZ_FOREVER), 0);
    for (int i = 0; i < 40; i++) {
        int err = blitz_scope_spawn(&s, i == 20 ? fails : for_ever, NULL, NULL);
        CHECK(err == 0 || err == -ECANCELED);
    }
    CHECK_EQ(blitz_scope_close(&s), -EIO);
    CHECK_EQ(bz_load_relaxed(&began), bz_load_relaxed(&ended));
    return 0;
}

TEST(scope, the_first_error_cancels_the_rest_and_is_returned)
{
    t_on_each(one_fails, NULL, 0);
}

static int too_late(void *arg)
{
    blitz_scope s;
    (void)arg;
    reset();
    CHECK_EQ(blitz_scope_open(&s, NULL, blitz_after(100 * BLITZ_US)), 0);
    for (int i = 0; i < 20; i++) {
        int err = blitz_scope_spawn(&s, for_ever, NULL, NULL);
        CHECK(err == 0 || err == -ECANCELED);
    }
    CHECK_EQ(blitz_scope_close(&s), -ETIMEDOUT);
    CHECK_EQ(bz_load_relaxed(&began), bz_load_relaxed(&ended));
    CHECK_EQ(blitz_scope_open(&s, NULL, 0), 0); /* already past */
    CHECK_EQ(blitz_scope_is_cancelled(&s), 1);
    CHECK_EQ(blitz_scope_spawn(&s, for_ever, NULL, NULL), -ECANCELED);
    CHECK_EQ(blitz_scope_close(&s), -ETIMEDOUT);
    CHECK_EQ(blitz_scope_open(&s, NULL, blitz_after(3600 * BLITZ_S)), 0); /* never comes to that */
    CHECK_EQ(blitz_scope_spawn(&s, work, NULL, NULL), 0);
    CHECK_EQ(blitz_scope_close(&s), 0);
    return 0;
}

TEST(scope, a_deadline_cancels_it)
{
    t_on_each(too_late, NULL, 0);
}

/* ---- nesting ---- */

static int inner(void *arg)
{
    blitz_scope s;
    int depth = *(int *)arg, below = depth - 1;
    if (depth == 0)
        return for_ever(NULL);
    CHECK_EQ(blitz_scope_open(&s, NULL, BLITZ_FOREVER), 0);
    for (int i = 0; i < 2; i++)
        (void)!blitz_scope_spawn(&s, inner, &below, NULL);
    return blitz_scope_close(&s);
}

static int nest(void *arg)
{
    blitz_scope s;
    int depth = 4;
    (void)arg;
    reset();
    CHECK_EQ(blitz_scope_open(&s, NULL, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_scope_spawn(&s, inner, &depth, NULL), 0);
    while (bz_load_relaxed(&began) < 16)
        blitz_yield();
    blitz_scope_cancel(&s);
    CHECK_EQ(blitz_scope_close(&s), -ECANCELED);
    CHECK_EQ(bz_load_relaxed(&ended), 16);
    return 0;
}

TEST(scope, a_cancel_reaches_the_scopes_within)
{
    t_on_each(nest, NULL, 0);
}

static int closes(void *arg)
{
    blitz_scope s;
    (void)arg;
    CHECK_EQ(blitz_scope_open(&s, NULL, BLITZ_FOREVER), 0);
    for (int i = 0; i < 5; i++)
        CHECK_EQ(blitz_scope_spawn(&s, for_ever, NULL, NULL), 0);
    int err = blitz_scope_close(&s);
    CHECK_EQ(bz_load_relaxed(&began), bz_load_relaxed(&ended));
    return err;
}

static int cancel_the_closer(void *arg)
{
    blitz_task *t;
    int result = 0;
    (void)arg;
    reset();
    CHECK_EQ(blitz_spawn(closes, NULL, NULL, &t), 0);
    while (bz_load_relaxed(&began) < 5)
        blitz_yield();
    blitz_task_cancel(t);
    CHECK_EQ(blitz_task_join(t, &result, BLITZ_FOREVER), 0);
    return result;
}

TEST(scope, a_cancel_of_the_closer_is_passed_on)
{
    t_on_each(cancel_the_closer, NULL, -ECANCELED);
}

static int spawns_more(void *scope)
{
    if (bz_fetch_add_relaxed(&began, 1) < 20)
        CHECK_EQ(blitz_scope_spawn(scope, spawns_more, scope, NULL), 0);
    return 0;
}

static int grow(void *arg)
{
    blitz_scope s;
    (void)arg;
    reset();
    CHECK_EQ(blitz_scope_open(&s, NULL, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_scope_spawn(&s, spawns_more, &s, NULL), 0);
    CHECK_EQ(blitz_scope_close(&s), 0);
    CHECK_EQ(bz_load_relaxed(&began), 21);
    return 0;
}

TEST(scope, its_tasks_may_spawn_into_it)
{
    t_on_each(grow, NULL, 0);
}

/* ---- from outside, and without a stack ---- */

TEST(scope, a_plain_thread_has_scopes_too)
{
    blitz_runtime *rt;
    blitz_scope s;
    CHECK_EQ(blitz_runtime_new(&(blitz_runtime_opts){.procs = 2}, &rt), 0);
    blitz_scope_opts opts = {.runtime = rt};
    reset();
    CHECK_EQ(blitz_scope_open(&s, &opts, BLITZ_FOREVER), 0);
    for (int i = 0; i < 10; i++)
        CHECK_EQ(blitz_scope_spawn(&s, work, NULL, NULL), 0);
    CHECK_EQ(blitz_scope_close(&s), 0);
    CHECK_EQ(bz_load_relaxed(&ended), 10);
    CHECK_EQ(blitz_scope_open(&s, &opts, blitz_after(200 * BLITZ_US)), 0);
    int err = blitz_scope_spawn(&s, for_ever, NULL, NULL);
    CHECK(err == 0 || err == -ECANCELED); /* the time may be over already */
    CHECK_EQ(blitz_scope_close(&s), -ETIMEDOUT);
    CHECK_EQ(blitz_runtime_shutdown(rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref(rt), 0);
}

struct stackless {
    blitz_frame frame;
    blitz_scope scope;
};

static blitz_poll scope_without_a_stack(void *state, blitz_cx *cx)
{
    struct stackless *s = state;
    int rc;
    BLITZ_BEGIN(&s->frame, cx);
    CHECK_EQ(blitz_scope_open(&s->scope, NULL, BLITZ_FOREVER), 0);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(blitz_scope_spawn(&s->scope, work, NULL, NULL), 0);
    CHECK_EQ(blitz_scope_spawn(&s->scope, fails, NULL, NULL), 0);
    BLITZ_AWAIT(rc, &s->scope.future);
    CHECK_EQ(rc, 0);
    BLITZ_END(s->scope.result);
}

static int spawn_stackless(void *arg)
{
    struct stackless s = {.frame = {0, 0}};
    blitz_task *t;
    int result = 0;
    (void)arg;
    reset();
    CHECK_EQ(blitz_spawn_poll(scope_without_a_stack, &s, sizeof s, NULL, &t), 0);
    CHECK_EQ(blitz_task_join(t, &result, BLITZ_FOREVER), 0);
    CHECK_EQ(bz_load_relaxed(&began), bz_load_relaxed(&ended));
    return result;
}

TEST(scope, a_stackless_task_awaits_its_end)
{
    t_on_each(spawn_stackless, NULL, -EIO);
}

/* ---- the last task ends inside the first poll ---- */

/* A waker whose clone ends the last task of a scope, and returns when the task is gone. */
struct ender {
    struct t_bell bell;
    blitz_runtime *rt;
    blitz_event may_end;
    bool has_ended;
};

static int waits_for_the_end(void *arg)
{
    struct ender *e = arg;
    return blitz_event_wait(&e->may_end, BLITZ_FOREVER);
}

static void ender_clone(void *arg)
{
    struct ender *e = arg;
    blitz_stats stats;
    t_bell_clone(&e->bell);
    if (e->has_ended)
        return;
    e->has_ended = true;
    blitz_event_set(&e->may_end);
    do
        CHECK_EQ(blitz_stats_read(e->rt, &stats), 0);
    while (stats.ended < stats.spawned);
}

static void ender_wake(void *arg)
{
    t_bell_wake(&((struct ender *)arg)->bell);
}

static void ender_wake_by_ref(void *arg)
{
    t_bell_wake_by_ref(&((struct ender *)arg)->bell);
}

static void ender_drop(void *arg)
{
    t_bell_drop(&((struct ender *)arg)->bell);
}

/* A scope whose last task ends in the middle of its first poll is ready, or wakes its waker. */
TEST(scope, bug_50_the_last_task_may_end_during_the_first_poll)
{
    static const blitz_waker_ops ops = {ender_clone, ender_wake, ender_wake_by_ref, ender_drop};
    static const blitz_deadline until[] = {BLITZ_FOREVER, 3600 * BLITZ_S};
    struct ender e = {.bell = {.holders = 1}};
    blitz_scope s;
    CHECK_EQ(blitz_runtime_new(&(blitz_runtime_opts){.procs = 2}, &e.rt), 0);
    for (int i = 0; i < 2; i++) {
        blitz_deadline when = until[i] == BLITZ_FOREVER ? BLITZ_FOREVER : blitz_after(until[i]);
        CHECK_EQ(blitz_scope_open(&s, &(blitz_scope_opts){.runtime = e.rt}, when), 0);
        blitz_event_init(&e.may_end);
        e.has_ended = false;
        CHECK_EQ(blitz_scope_spawn(&s, waits_for_the_end, &e, NULL), 0);
        blitz_waker waker = {&ops, &e};
        blitz_poll answer = s.future.ops->poll(&s.future, &waker);
        CHECK(answer == BLITZ_READY || e.bell.rung > 0);
        CHECK_EQ(blitz_scope_close(&s), 0);
    }
    CHECK_EQ(e.bell.holders, 1);
    CHECK_EQ(blitz_runtime_shutdown(e.rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref(e.rt), 0);
}

/* ---- tokens ---- */

static blitz_poll ask(blitz_future *f, struct t_bell *b)
{
    blitz_waker w = t_bell_waker(b);
    return f->ops->poll(f, &w);
}

TEST(token, cancels_only_its_subtree)
{
    blitz_token *t[7]; /* a tree: the parent of i is (i - 1) / 2 */
    for (int top = 0; top < 7; top++) {
        CHECK_EQ(blitz_token_new(NULL, &t[0]), 0);
        for (int i = 1; i < 7; i++)
            CHECK_EQ(blitz_token_new(t[(i - 1) / 2], &t[i]), 0);
        blitz_token_cancel(t[top]);
        blitz_token_cancel(t[top]);
        for (int i = 0; i < 7; i++) {
            int is_below = i == top || (i > 0 && (i - 1) / 2 == top) ||
                           (i > 2 && ((i - 1) / 2 - 1) / 2 == top);
            CHECK_EQ(blitz_token_is_cancelled(t[i]), is_below);
        }
        blitz_token *late;
        CHECK_EQ(blitz_token_new(t[top], &late), 0);
        CHECK_EQ(blitz_token_is_cancelled(late), 1); /* born so */
        blitz_token_unref(late);
        for (int i = 0; i < 7; i++)
            blitz_token_unref(t[top % 2 ? i : 6 - i]); /* from above, from below */
    }
    blitz_token_unref(NULL);
    CHECK_EQ(blitz_token_new(NULL, NULL), -EINVAL);
}

TEST(token, the_way_down_stays_when_its_handle_is_given_up)
{
    blitz_token *root, *middle, *leaf;
    struct t_bell bell = {0};
    blitz_token_future f, g;
    CHECK_EQ(blitz_token_new(NULL, &root), 0);
    CHECK_EQ(blitz_token_new(root, &middle), 0);
    CHECK_EQ(blitz_token_new(middle, &leaf), 0);
    blitz_token_unref(middle);
    blitz_token_wait_future_init(&f, leaf);
    blitz_token_wait_future_init(&g, leaf);
    CHECK_EQ(ask(&f.future, &bell), BLITZ_PENDING);
    CHECK_EQ(ask(&f.future, &bell), BLITZ_PENDING);
    CHECK_EQ(ask(&g.future, &bell), BLITZ_PENDING);
    CHECK_EQ(bell.holders, 2);
    g.future.ops->cancel(&g.future);
    blitz_token_cancel(root);
    CHECK_EQ(bell.rung, 1);
    CHECK_EQ(ask(&f.future, &bell), BLITZ_READY);
    CHECK_EQ(ask(&f.future, &bell), BLITZ_READY);
    CHECK_EQ(bell.holders, 0);
    blitz_token_unref(root);
    blitz_token_unref(leaf);
}

TEST(token, a_wait_ends_at_its_deadline_or_with_the_token)
{
    blitz_token *t;
    CHECK_EQ(blitz_token_new(NULL, &t), 0);
    CHECK_EQ(blitz_token_wait(t, blitz_after(BLITZ_MS)), -ETIMEDOUT);
    blitz_token_cancel(t);
    CHECK_EQ(blitz_token_wait(t, BLITZ_FOREVER), 0);
    blitz_token_unref(t);
}

/* ---- a token that parties of every form wait for ---- */

static int waits_for_token(void *token)
{
    return blitz_token_wait(token, BLITZ_FOREVER);
}

static int waits_for_token_a_moment(void *token)
{
    int err = blitz_token_wait(token, blitz_after(20 * BLITZ_US));
    return err == -ETIMEDOUT ? 0 : err;
}

struct polls_token {
    blitz_token *token;
    blitz_token_future f;
};

static blitz_poll polls_token(void *state, blitz_cx *cx)
{
    struct polls_token *p = state;
    if (p->f.future.ops == NULL)
        blitz_token_wait_future_init(&p->f, p->token);
    return p->f.future.ops->poll(&p->f.future, cx->waker);
}

static void *waits_for_token_on_a_thread(void *token)
{
    CHECK_EQ(blitz_token_wait(token, BLITZ_FOREVER), 0);
    return NULL;
}

static int all_wait_for_one_token(void *arg)
{
    enum { FORMS = 4, EACH = 7 }; /* more than one list of wake-ups holds */
    blitz_task *t[FORMS * EACH];
    blitz_token *token;
    pthread_t thread;
    (void)arg;
    CHECK_EQ(blitz_token_new(NULL, &token), 0);
    CHECK_EQ(pthread_create(&thread, NULL, waits_for_token_on_a_thread, token), 0);
    for (int i = 0; i < FORMS * EACH; i++) {
        struct polls_token p = {.token = token};
        if (i % FORMS == 0)
            CHECK_EQ(blitz_spawn_poll(polls_token, &p, sizeof p, NULL, &t[i]), 0);
        else
            CHECK_EQ(blitz_spawn(i % FORMS == 1 ? waits_for_token_a_moment : waits_for_token, token,
                                 NULL, &t[i]),
                     0);
        if (i % FORMS == 3)
            blitz_task_cancel(t[i]);
        blitz_yield();
    }
    blitz_token_cancel(token);
    for (int i = 0; i < FORMS * EACH; i++) {
        int result;
        CHECK_EQ(blitz_task_join(t[i], &result, BLITZ_FOREVER), 0);
        CHECK(result == 0 || (i % FORMS == 3 && result == -ECANCELED));
    }
    CHECK_EQ(pthread_join(thread, NULL), 0);
    blitz_token_unref(token);
    return 0;
}

TEST(token, fibers_polled_tasks_and_threads_wait_for_one_token)
{
    for (int round = 0; round < 50; round++)
        t_on_each(all_wait_for_one_token, NULL, 0);
}

static void *cancel_it(void *token)
{
    blitz_token_cancel(token);
    blitz_token_unref(token);
    return NULL;
}

static int token_ends_a_scope(void *arg)
{
    blitz_scope s;
    blitz_token *t, *below;
    pthread_t thread;
    (void)arg;
    reset();
    CHECK_EQ(blitz_token_new(NULL, &t), 0);
    CHECK_EQ(blitz_token_new(t, &below), 0);
    CHECK_EQ(blitz_scope_open(&s, &(blitz_scope_opts){.token = below}, BLITZ_FOREVER), 0);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(blitz_scope_spawn(&s, for_ever, NULL, NULL), 0);
    CHECK_EQ(pthread_create(&thread, NULL, cancel_it, t), 0);
    CHECK_EQ(blitz_scope_close(&s), -ECANCELED);
    CHECK_EQ(blitz_scope_open(&s, &(blitz_scope_opts){.token = below}, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_scope_spawn(&s, for_ever, NULL, NULL), -ECANCELED);
    CHECK_EQ(blitz_scope_close(&s), -ECANCELED);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    blitz_token_unref(below);
    return 0;
}

TEST(token, a_thread_cancels_and_a_scope_ends)
{
    t_on_each(token_ends_a_scope, NULL, 0);
}
