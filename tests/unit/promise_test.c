/* Promises: completed once, from anywhere; and boxes, which go on without their caller. */
#include "harness.h"
#include "support/bell.h"
#include "support/on_each.h"
#include "support/probe.h"

#include <pthread.h>

static int freed;

static void count_free(void *value, void *ctx)
{
    (void)ctx;
    ++freed;
    CHECK_NOT_NULL(value);
}

static blitz_poll ask(blitz_future *f, struct t_bell *b)
{
    blitz_waker w = t_bell_waker(b);
    return f->ops->poll(f, &w);
}

struct ends {
    blitz_promise *p;
    blitz_completer *c;
    blitz_promise_future f;
};

static void ends_init(struct ends *e)
{
    freed = 0;
    CHECK_EQ(blitz_promise_new(&(blitz_promise_opts){.drop = count_free}, &e->p, &e->c), 0);
    blitz_promise_await_future_init(&e->f, e->p);
}

TEST(promise, is_kept_once_and_its_value_is_taken_once)
{
    struct ends e;
    struct t_bell bell = {0};
    blitz_promise_future late;
    int x;
    ends_init(&e);
    CHECK_EQ(ask(&e.f.future, &bell), BLITZ_PENDING);
    CHECK_EQ(ask(&e.f.future, &bell), BLITZ_PENDING);
    CHECK_EQ(bell.holders, 1);
    CHECK_EQ(blitz_completer_complete(e.c, &x), 0);
    CHECK_EQ(bell.rung, 1);
    CHECK_EQ(blitz_completer_complete(e.c, &x), -EALREADY);
    CHECK_EQ(blitz_completer_fail(e.c, -EIO), -EALREADY);
    CHECK_EQ(ask(&e.f.future, &bell), BLITZ_READY);
    CHECK(e.f.value == &x);
    CHECK_EQ(blitz_future_output(&e.f.future), 0);
    CHECK_EQ(ask(&e.f.future, &bell), BLITZ_READY);
    blitz_promise_await_future_init(&late, e.p);
    CHECK_EQ(ask(&late.future, &bell), BLITZ_READY);
    CHECK_NULL(late.value); /* another had it */
    blitz_completer_unref(e.c);
    blitz_promise_unref(e.p);
    CHECK_EQ(freed, 0);
    CHECK_EQ(bell.holders, 0);
}

TEST(promise, fails_with_the_given_error_and_rejects_a_success_code)
{
    struct ends e;
    struct t_bell bell = {0};
    ends_init(&e);
    CHECK_EQ(blitz_completer_fail(e.c, 0), -EINVAL);
    CHECK_EQ(blitz_completer_fail(e.c, -EHOSTUNREACH), 0);
    CHECK_EQ(ask(&e.f.future, &bell), BLITZ_READY);
    CHECK_EQ(blitz_future_output(&e.f.future), -EHOSTUNREACH);
    blitz_promise_unref(e.p);
    blitz_completer_unref(e.c);
}

/* bug class 24: every waiter sees the drop of the last completer, in any order. */
TEST(promise, bug_24_an_unfulfilled_drop_completes_with_an_error)
{
    struct ends e;
    struct t_bell bell = {0};
    ends_init(&e);
    CHECK_EQ(ask(&e.f.future, &bell), BLITZ_PENDING);
    blitz_completer *second = blitz_completer_ref(e.c);
    blitz_completer_unref(e.c);
    CHECK_EQ(bell.rung, 0); /* there is another */
    blitz_completer_unref(second);
    CHECK_EQ(bell.rung, 1);
    CHECK_EQ(ask(&e.f.future, &bell), BLITZ_READY);
    CHECK_EQ(e.f.result, -EPIPE);
    CHECK_EQ(blitz_promise_await(e.p, NULL, 0), -EPIPE);
    blitz_promise_unref(e.p);
    blitz_completer_unref(NULL);
    blitz_promise_unref(NULL);
    CHECK_EQ(bell.holders, 0);
}

TEST(promise, an_untaken_value_is_freed)
{
    struct ends e;
    struct t_bell bell = {0};
    int x;
    ends_init(&e);
    CHECK_EQ(ask(&e.f.future, &bell), BLITZ_PENDING);
    CHECK_EQ(blitz_completer_is_wanted(e.c), 1);
    e.f.future.ops->cancel(&e.f.future); /* it leaves */
    blitz_promise_unref(blitz_promise_ref(e.p));
    CHECK_EQ(blitz_completer_is_wanted(e.c), 1);
    blitz_promise_unref(e.p);
    CHECK_EQ(blitz_completer_is_wanted(e.c), 0);
    CHECK_EQ(blitz_completer_complete(e.c, &x), 0);
    CHECK_EQ(freed, 0);
    blitz_completer_unref(e.c);
    CHECK_EQ(freed, 1);
    CHECK_EQ(bell.rung, 0);
    CHECK_EQ(bell.holders, 0);
    CHECK_EQ(blitz_promise_new(NULL, NULL, &e.c), -EINVAL);
}

/* A woken waker may wake others: no lock of ours is held. bug class 23. */
struct nosy {
    blitz_completer *c;
    int seen;
};

static void nosy_clone(void *n)
{
    (void)n;
}

static void nosy_wake(void *data)
{
    struct nosy *n = data;
    n->seen = blitz_completer_fail(n->c, -EIO);
}

TEST(promise, bug_23_a_waker_may_use_the_promise)
{
    static const blitz_waker_ops ops = {nosy_clone, nosy_wake, nosy_wake, nosy_clone};
    struct ends e;
    ends_init(&e);
    struct nosy nosy = {e.c, 0};
    blitz_waker w = {&ops, &nosy};
    CHECK_EQ(e.f.future.ops->poll(&e.f.future, &w), BLITZ_PENDING);
    CHECK_EQ(blitz_completer_complete(e.c, NULL), 0);
    CHECK_EQ(nosy.seen, -EALREADY);
    blitz_completer_unref(e.c);
    blitz_promise_unref(e.p);
}

/* ---- from other threads ---- */

static void *keep_it(void *completer)
{
    static int x = 7;
    CHECK_EQ(blitz_completer_complete(completer, &x), 0);
    blitz_completer_unref(completer);
    return NULL;
}

static int wait_for_a_thread(void *arg)
{
    (void)arg;
    for (int i = 0; i < 20; i++) {
        blitz_promise *p;
        blitz_completer *c;
        pthread_t thread;
        void *value = NULL;
        CHECK_EQ(blitz_promise_new(NULL, &p, &c), 0);
        CHECK_EQ(blitz_promise_await(p, &value, blitz_after(BLITZ_US)), -ETIMEDOUT);
        CHECK_EQ(pthread_create(&thread, NULL, keep_it, c), 0);
        CHECK_EQ(blitz_promise_await(p, &value, BLITZ_FOREVER), 0);
        CHECK_EQ(*(int *)value, 7);
        CHECK_EQ(pthread_join(thread, NULL), 0);
        blitz_promise_unref(p);
    }
    return 0;
}

TEST(promise, a_plain_thread_keeps_it)
{
    t_on_each(wait_for_a_thread, NULL, 0);
    wait_for_a_thread(NULL);
}

/* ---- parties of every form wait for one promise ---- */

static _Atomic int given; /* how many got the value */

static int awaits_until(blitz_promise *p, blitz_deadline until)
{
    void *value = NULL;
    int err = blitz_promise_await(p, &value, until);
    given += value != NULL;
    CHECK(err == 0 || value == NULL);
    return err;
}

static int awaits(void *promise)
{
    return awaits_until(promise, BLITZ_FOREVER);
}

static int awaits_a_moment(void *promise)
{
    int err = awaits_until(promise, blitz_after(20 * BLITZ_US));
    return err == -ETIMEDOUT ? 0 : err;
}

static void *awaits_on_a_thread(void *promise)
{
    CHECK_EQ(awaits(promise), 0);
    return NULL;
}

struct polls_promise {
    blitz_promise *promise;
    blitz_promise_future f;
};

static blitz_poll polls_promise(void *state, blitz_cx *cx)
{
    struct polls_promise *p = state;
    if (p->f.future.ops == NULL)
        blitz_promise_await_future_init(&p->f, p->promise);
    if (p->f.future.ops->poll(&p->f.future, cx->waker) == BLITZ_PENDING)
        return BLITZ_PENDING;
    given += p->f.value != NULL;
    CHECK_EQ(p->f.result, 0);
    return BLITZ_READY;
}

static int all_await_one_promise(void *arg)
{
    enum { FORMS = 4, EACH = 7 }; /* more than one list of wake-ups holds */
    blitz_task *t[FORMS * EACH];
    struct ends e;
    pthread_t thread;
    int x;
    (void)arg;
    ends_init(&e);
    given = 0;
    CHECK_EQ(pthread_create(&thread, NULL, awaits_on_a_thread, e.p), 0);
    for (int i = 0; i < FORMS * EACH; i++) {
        struct polls_promise p = {.promise = e.p};
        if (i % FORMS == 0)
            CHECK_EQ(blitz_spawn_poll(polls_promise, &p, sizeof p, NULL, &t[i]), 0);
        else
            CHECK_EQ(blitz_spawn(i % FORMS == 1 ? awaits_a_moment : awaits, e.p, NULL, &t[i]), 0);
        if (i % FORMS == 3 || i % 8 == 4)
            blitz_task_cancel(t[i]);
        blitz_yield();
    }
    CHECK_EQ(blitz_completer_complete(e.c, &x), 0);
    blitz_completer_unref(e.c);
    for (int i = 0; i < FORMS * EACH; i++) {
        int result;
        CHECK_EQ(blitz_task_join(t[i], &result, BLITZ_FOREVER), 0);
        CHECK(result == 0 || ((i % FORMS == 3 || i % 8 == 4) && result == -ECANCELED));
    }
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(given, 1); /* each waits until there is a result: the first to run takes the value */
    blitz_promise_unref(e.p);
    CHECK_EQ(freed, 0);
    return 0;
}

TEST(promise, fibers_polled_tasks_and_threads_wait_for_one_promise)
{
    for (int round = 0; round < 50; round++)
        t_on_each(all_await_one_promise, NULL, 0);
}

/* ---- boxes ---- */

struct boxed {
    struct t_probe probe; /* its first member is the future */
    int *dropped;
};

static void count_drop(void *memory, void *ctx)
{
    (void)ctx;
    ++*((struct boxed *)memory)->dropped;
}

static struct boxed *box_of(blitz_class kind, int *dropped)
{
    struct boxed *b = blitz_box_new(sizeof *b, &(blitz_box_opts){.drop = count_drop});
    CHECK_NOT_NULL(b);
    t_probe_init(&b->probe, &bz_os_system, kind);
    b->dropped = dropped;
    return b;
}

TEST(box, is_its_owners_if_it_is_ready_and_gone_if_it_was_cancelled)
{
    for (int kind = BLITZ_REVOCABLE; kind <= BLITZ_DETACHABLE; kind++) {
        struct t_bell bell = {0};
        int dropped = 0;
        struct boxed *b = box_of((blitz_class)kind, &dropped);
        blitz_future *f = blitz_box_future(b);
        CHECK_EQ(f->ops->kind, BLITZ_DETACHABLE);
        CHECK_EQ(ask(f, &bell), BLITZ_PENDING);
        t_probe_set(&b->probe, 5);
        CHECK_EQ(ask(f, &bell), BLITZ_READY);
        CHECK_EQ(blitz_future_output(f), 5);
        CHECK_EQ(dropped, 0);
        blitz_box_unref(b);
        CHECK_EQ(dropped, 1);
        b = box_of((blitz_class)kind, &dropped);
        CHECK_EQ(blitz_await(blitz_box_future(b), 0), -ETIMEDOUT);
        CHECK_EQ(dropped, 2);
        CHECK_EQ(bell.holders, 0);
    }
    blitz_box_unref(NULL);
    CHECK_NULL(blitz_box_new(1, NULL));
    CHECK_NULL(blitz_box_new(SIZE_MAX, NULL));
}

static void set_dropped(void *memory, void *ctx)
{
    (void)ctx;
    t_probe_set(*(struct t_probe **)((struct t_probe *)memory + 1), 0);
}

/* The runtime keeps a pinned one until it has completed. */
static int leave_pinned(void *arg)
{
    struct t_probe dropped;
    (void)arg;
    t_probe_init(&dropped, &bz_os_system, BLITZ_REVOCABLE);
    struct {
        struct t_probe probe;
        struct t_probe *dropped;
    } *b = blitz_box_new(sizeof *b, &(blitz_box_opts){.drop = set_dropped});
    CHECK_NOT_NULL(b);
    t_probe_init(&b->probe, &bz_os_system, BLITZ_PINNED);
    b->dropped = &dropped;
    struct t_probe *inside = &b->probe;
    CHECK_EQ(blitz_await(blitz_box_future(b), blitz_after(10 * BLITZ_US)), -ETIMEDOUT);
    CHECK_EQ(blitz_await(&dropped.f, blitz_after(100 * BLITZ_US)), -ETIMEDOUT); /* not yet */
    t_probe_init(&dropped, &bz_os_system, BLITZ_REVOCABLE);
    t_probe_set(inside, 0); /* now its holder frees it */
    CHECK_EQ(blitz_await(&dropped.f, BLITZ_FOREVER), 0);
    return 0;
}

TEST(box, a_pinned_one_is_seen_out_by_the_runtime)
{
    t_on_each(leave_pinned, NULL, 0);
}
