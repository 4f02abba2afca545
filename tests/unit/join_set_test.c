/* Join sets: what comes out, in which order, and what becomes of the rest. */
#include "harness.h"
#include "support/bell.h"
#include "support/on_each.h"
#include "support/probe.h"

static blitz_join_set *set_new(void)
{
    blitz_join_set *set = NULL;
    CHECK_EQ(blitz_join_set_new(&set), 0);
    return set;
}

static int returns_its_number(void *arg)
{
    return (int)(intptr_t)arg;
}

static int sleeps_for_ever(void *arg)
{
    (void)arg;
    return blitz_sleep_until(BLITZ_FOREVER);
}

/* ---- taking out ---- */

static int take_all(void *arg)
{
    enum { N = 200 };
    blitz_join_set *set = set_new();
    blitz_joined out;
    int seen[N] = {0};
    (void)arg;
    for (intptr_t i = 0; i < N; i++)
        CHECK_EQ(blitz_join_set_spawn(set, returns_its_number, (void *)i, &seen[i], NULL), 0);
    CHECK_EQ(blitz_join_set_count(set), (size_t)N);
    for (int i = 0; i < N; i++) {
        CHECK_EQ(blitz_join_set_next(set, &out, BLITZ_FOREVER), 0);
        int *at = out.key;
        CHECK_EQ(out.result, (int)(at - seen));
        CHECK(out.future == NULL && out.pointer == NULL);
        CHECK_EQ((*at)++, 0);
        CHECK_EQ(blitz_join_set_count(set), (size_t)(N - 1 - i));
    }
    CHECK_EQ(blitz_join_set_next(set, &out, BLITZ_FOREVER), -ENOENT);
    CHECK_EQ(blitz_join_set_try_next(set, &out), -ENOENT);
    blitz_join_set_unref(set);
    return 0;
}

TEST(join_set, every_task_comes_out_once_with_its_key_and_result)
{
    t_on_each(take_all, NULL, 0);
}

static blitz_event gate;

static int waits_for_the_gate(void *arg)
{
    int err = blitz_event_wait(&gate, BLITZ_FOREVER);
    return err != 0 ? err : (int)(intptr_t)arg;
}

static int try_early(void *arg)
{
    blitz_join_set *set = set_new();
    blitz_joined out;
    (void)arg;
    blitz_event_init(&gate);
    for (intptr_t i = 1; i <= 4; i++)
        CHECK_EQ(blitz_join_set_spawn(set, waits_for_the_gate, (void *)i, NULL, NULL), 0);
    CHECK_EQ(blitz_join_set_try_next(set, &out), -EAGAIN);
    CHECK_EQ(blitz_join_set_next(set, &out, blitz_now()), -ETIMEDOUT);
    CHECK_EQ(blitz_join_set_next(set, &out, blitz_after(BLITZ_MS)), -ETIMEDOUT);
    CHECK_EQ(blitz_join_set_count(set), 4u);
    blitz_event_set(&gate);
    int sum = 0;
    while (blitz_join_set_next(set, &out, BLITZ_FOREVER) == 0)
        sum += out.result;
    CHECK_EQ(sum, 10);
    blitz_join_set_unref(set);
    return 0;
}

TEST(join_set, a_deadline_or_a_try_leaves_the_members_in_the_set)
{
    t_on_each(try_early, NULL, 0);
}

/* Probes that are polled by hand, so that the order is known. */
TEST(join_set, members_come_out_in_the_order_in_which_they_end)
{
    struct t_probe probe[5];
    blitz_join_set *set = set_new();
    blitz_joined out;
    for (int i = 0; i < 5; i++) {
        t_probe_init(&probe[i], &bz_os_system, BLITZ_REVOCABLE);
        CHECK_EQ(blitz_join_set_add_future(set, &probe[i].f, &probe[i]), 0);
    }
    CHECK_EQ(blitz_join_set_try_next(set, &out), -EAGAIN);
    for (int i = 0; i < 5; i++)
        t_probe_set(&probe[i * 3 % 5], 10 + i);
    for (int i = 0; i < 5; i++) {
        CHECK_EQ(blitz_join_set_try_next(set, &out), 0);
        CHECK(out.key == &probe[i * 3 % 5] && out.future == &probe[i * 3 % 5].f);
        CHECK_EQ(out.result, 10 + i);
        CHECK_EQ(probe[i * 3 % 5].polls, 2);
    }
    blitz_join_set_unref(set);
}

TEST(join_set, on_a_plain_thread_sleeps_end_in_their_order)
{
    blitz_sleep_future nap[30];
    blitz_join_set *set = set_new();
    blitz_joined out;
    uint64_t last = 0;
    for (unsigned i = 0; i < 30; i++) {
        blitz_sleep_until_future_init(&nap[i], blitz_after((i * 7 % 30) * 100 * BLITZ_US));
        CHECK_EQ(blitz_join_set_add_future(set, &nap[i].future, &nap[i]), 0);
    }
    for (unsigned i = 0; i < 30; i++) {
        CHECK_EQ(blitz_join_set_next(set, &out, BLITZ_FOREVER), 0);
        const blitz_sleep_future *n = out.key;
        CHECK_GE(blitz_now(), n->when);
        last = n->when > last ? n->when : last;
    }
    CHECK_GE(blitz_now(), last);
    CHECK_EQ(blitz_join_set_next(set, &out, BLITZ_FOREVER), -ENOENT);
    blitz_join_set_unref(set);
}

/* One poll in the beginning and one for each wake, for any number of members. */
struct ticket {
    blitz_future f;
    blitz_waker waker;
    size_t *polls;
    bool is_set;
};

static blitz_poll ticket_poll(blitz_future *f, const blitz_waker *waker)
{
    struct ticket *t = BZ_CONTAINER_OF(f, struct ticket, f);
    ++*t->polls;
    blitz_waker_drop(&t->waker);
    if (t->is_set)
        return BLITZ_READY;
    t->waker = blitz_waker_clone(waker);
    return BLITZ_PENDING;
}

static void ticket_cancel(blitz_future *f)
{
    blitz_waker_drop(&BZ_CONTAINER_OF(f, struct ticket, f)->waker);
}

TEST(join_set, bug_47_a_wake_costs_one_poll_of_a_thousand_members_and_of_a_million)
{
    static const blitz_future_ops ops = {"ticket", BLITZ_REVOCABLE, ticket_poll, ticket_cancel,
                                         NULL};
    for (size_t n = 1000; n <= 1000 * 1000; n *= 10) {
        struct ticket *t = malloc(n * sizeof *t);
        size_t polls = 0;
        blitz_join_set *set = set_new();
        blitz_joined out;
        CHECK_NOT_NULL(t);
        for (size_t i = 0; i < n; i++) {
            t[i] = (struct ticket){.f = {&ops}, .polls = &polls};
            CHECK_EQ(blitz_join_set_add_future(set, &t[i].f, &t[i]), 0);
        }
        CHECK_EQ(blitz_join_set_try_next(set, &out), -EAGAIN);
        CHECK_EQ(polls, n);
        for (size_t i = 0; i < n; i++) {
            struct ticket *one = &t[(i * 7919 + 5) % n];
            one->is_set = true;
            blitz_waker_wake(&one->waker);
            CHECK_EQ(blitz_join_set_try_next(set, &out), 0);
            CHECK(out.key == one);
            CHECK_EQ(polls, n + i + 1);
        }
        blitz_join_set_unref(set);
        free(t);
    }
}

/* ---- first on a plain thread, then in a task ---- */

static int take_the_last(void *set)
{
    blitz_joined out;
    CHECK_EQ(blitz_join_set_next(set, &out, BLITZ_FOREVER), 0);
    return out.result;
}

struct taker {
    blitz_join_set_future next;
    int rc;
};

static blitz_poll poll_the_last(void *state, blitz_cx *cx)
{
    struct taker *s = state;
    if (blitz_cx_await(cx, &s->next.future, NULL, &s->rc) == BLITZ_PENDING)
        return BLITZ_PENDING;
    cx->result = s->rc == 0 ? s->next.result : s->rc;
    return BLITZ_READY;
}

/* A plain thread has no timers: it polls a sleep again at its time. A task is woken by a timer, so a task that takes
 * members out after the thread must arm one. */
TEST(join_set, bug_41_a_sleep_that_a_thread_polled_first_ends_for_a_fiber)
{
    blitz_runtime *rt;
    blitz_joined out;
    blitz_sleep_future sleep;
    blitz_join_set *set = set_new();
    CHECK_EQ(blitz_runtime_new(NULL, &rt), 0);
    blitz_sleep_until_future_init(&sleep, blitz_after(20 * BLITZ_MS));
    CHECK_EQ(blitz_join_set_add_future(set, &sleep.future, NULL), 0);
    (void)blitz_join_set_try_next(set, &out);

    if (blitz_join_set_count(set) == 1)
        CHECK_EQ(blitz_runtime_block_on(rt, take_the_last, set), 0);

    CHECK_EQ(blitz_runtime_shutdown(rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref(rt), 0);
    blitz_join_set_unref(set);
}

/* The same with a race of many sleeps as the member: the race has a list of its own. */
TEST(join_set, bug_41_a_race_of_sleeps_that_a_thread_polled_first_ends_for_a_stackless_task)
{
    enum { MANY = 40 };
    blitz_runtime *rt;
    blitz_joined out;
    blitz_sleep_future sleep[MANY];
    blitz_child child[MANY];
    blitz_race race;
    blitz_join_set *set = set_new();
    blitz_task *task;
    struct taker state = {.rc = 0};
    CHECK_EQ(blitz_runtime_new(NULL, &rt), 0);
    for (int i = 0; i < MANY; i++) {
        blitz_sleep_until_future_init(&sleep[i], blitz_after(20 * BLITZ_MS + (uint64_t)i));
        child[i] = (blitz_child){.future = &sleep[i].future};
    }
    CHECK_EQ(blitz_race_init(&race, child, MANY), 0);
    CHECK_EQ(blitz_join_set_add_future(set, &race.future, NULL), 0);
    (void)blitz_join_set_try_next(set, &out);

    blitz_join_set_next_future_init(&state.next, set);
    if (blitz_join_set_count(set) == 1) {
        int result = -1;
        blitz_spawn_opts opts = {.runtime = rt};
        CHECK_EQ(blitz_spawn_poll(poll_the_last, &state, sizeof state, &opts, &task), 0);
        CHECK_EQ(blitz_task_join(task, &result, BLITZ_FOREVER), 0);
        CHECK_EQ(result, 0);
    }

    CHECK_EQ(blitz_runtime_shutdown(rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref(rt), 0);
    blitz_join_set_unref(set);
}

/* ---- adding ---- */

static int add_running(void *arg)
{
    blitz_join_set *set = set_new();
    blitz_joined out;
    blitz_task *t, *kept;
    (void)arg;
    CHECK_EQ(blitz_spawn(returns_its_number, (void *)7, NULL, &t), 0);
    kept = blitz_task_ref(t);
    CHECK_EQ(blitz_join_set_add_task(set, t, &out), 0);
    CHECK_EQ(blitz_join_set_next(set, &out, BLITZ_FOREVER), 0);
    CHECK_EQ(out.result, 7);
    CHECK(out.key == &out);
    CHECK(blitz_task_is_done(kept));
    blitz_task_detach(kept);
    blitz_join_set_unref(set);
    return 0;
}

TEST(join_set, a_task_that_runs_already_can_be_added)
{
    t_on_each(add_running, NULL, 0);
}

TEST(join_set, bad_input_is_refused)
{
    blitz_join_set *set = set_new();
    blitz_joined out;
    blitz_join_set_future f;
    CHECK_EQ(blitz_join_set_new(NULL), -EINVAL);
    CHECK_EQ(blitz_join_set_add_task(set, NULL, NULL), -EINVAL);
    CHECK_EQ(blitz_join_set_add_future(set, NULL, NULL), -EINVAL);
    CHECK_EQ(blitz_join_set_add_future(NULL, blitz_pending_future(), NULL), -EINVAL);
    CHECK_EQ(blitz_join_set_spawn(NULL, returns_its_number, NULL, NULL, NULL), -EINVAL);
    CHECK_EQ(blitz_join_set_spawn(set, returns_its_number, NULL, NULL, NULL),
             -EINVAL); /* no runtime */
    CHECK_EQ(blitz_join_set_count(set), 0u);
    CHECK_EQ(blitz_join_set_next(NULL, &out, BLITZ_FOREVER), -EINVAL);
    CHECK_EQ(blitz_join_set_next(set, NULL, BLITZ_FOREVER), -EINVAL);
    CHECK_EQ(blitz_join_set_try_next(NULL, &out), -EINVAL);
    CHECK_EQ(blitz_join_set_detach(NULL), -EINVAL);
    blitz_join_set_next_future_init(&f, NULL);
    CHECK_EQ(blitz_await(&f.future, BLITZ_FOREVER), 0);
    CHECK_EQ(f.result, -EINVAL);
    blitz_join_set_cancel(NULL);
    blitz_join_set_unref(NULL);
    blitz_join_set_unref(set);
}

static blitz_poll ask(blitz_future *f, struct t_bell *b)
{
    blitz_waker w = t_bell_waker(b);
    return f->ops->poll(f, &w);
}

TEST(join_set, a_second_taker_is_turned_away)
{
    struct t_probe probe;
    struct t_bell bell = {0};
    blitz_join_set *set = set_new();
    blitz_join_set_future first, second;
    blitz_joined out;
    t_probe_init(&probe, &bz_os_system, BLITZ_REVOCABLE);
    CHECK_EQ(blitz_join_set_add_future(set, &probe.f, NULL), 0);
    blitz_join_set_next_future_init(&first, set);
    blitz_join_set_next_future_init(&second, set);
    CHECK_EQ(ask(&first.future, &bell), BLITZ_PENDING);
    CHECK_EQ(ask(&second.future, &bell), BLITZ_READY);
    CHECK_EQ(second.result, -EBUSY);
    CHECK_EQ(blitz_join_set_try_next(set, &out), -EBUSY);
    CHECK_EQ(blitz_join_set_detach(set), -EBUSY);
    first.future.ops->cancel(&first.future); /* then the next one may */
    CHECK_EQ(bell.holders, 0);
    CHECK_EQ(blitz_join_set_try_next(set, &out), -EAGAIN);
    t_probe_set(&probe, 3);
    CHECK_EQ(blitz_join_set_try_next(set, &out), 0);
    CHECK_EQ(out.result, 3);
    blitz_join_set_unref(set);
}

/* A member that is added wakes a taker that waits. */
TEST(join_set, a_member_that_is_added_meanwhile_is_asked)
{
    struct t_probe probe[2];
    struct t_bell bell = {0};
    blitz_join_set *set = set_new();
    blitz_join_set_future f;
    for (int i = 0; i < 2; i++)
        t_probe_init(&probe[i], &bz_os_system, BLITZ_REVOCABLE);
    CHECK_EQ(blitz_join_set_add_future(set, &probe[0].f, &probe[0]), 0);
    blitz_join_set_next_future_init(&f, set);
    CHECK_EQ(ask(&f.future, &bell), BLITZ_PENDING);
    t_probe_set(&probe[1], 4);
    CHECK_EQ(blitz_join_set_add_future(set, &probe[1].f, &probe[1]), 0);
    CHECK_EQ(bell.rung, 1);
    CHECK_EQ(ask(&f.future, &bell), BLITZ_READY);
    CHECK(f.joined.key == &probe[1]);
    CHECK_EQ(bell.holders, 0);
    t_probe_set(&probe[0], 5);
    blitz_join_set_unref(set);
    CHECK(probe[0].waker.ops == NULL);
}

/* ---- giving up ---- */

static int cancel_tasks(void *arg)
{
    blitz_join_set *set = set_new();
    blitz_joined out;
    int cancelled = 0;
    (void)arg;
    for (int i = 0; i < 20; i++)
        CHECK_EQ(blitz_join_set_spawn(set, sleeps_for_ever, NULL, NULL, NULL), 0);
    CHECK_EQ(blitz_join_set_try_next(set, &out), -EAGAIN);
    blitz_join_set_cancel(set);
    CHECK_EQ(blitz_join_set_spawn(set, returns_its_number, (void *)9, NULL, NULL), 0); /* is not */
    while (blitz_join_set_next(set, &out, BLITZ_FOREVER) == 0)
        cancelled += out.result == -ECANCELED ? 1 : out.result == 9 ? 100 : 1000;
    CHECK_EQ(cancelled, 120);
    blitz_join_set_unref(set);
    return 0;
}

TEST(join_set, a_cancel_reaches_the_members_that_are_there)
{
    t_on_each(cancel_tasks, NULL, 0);
}

TEST(join_set, a_cancel_gives_up_futures_by_class)
{
    struct t_probe probe[3];
    blitz_join_set *set = set_new();
    blitz_joined out;
    for (int i = 0; i < 3; i++) {
        t_probe_init(&probe[i], &bz_os_system, (blitz_class)i);
        CHECK_EQ(blitz_join_set_add_future(set, &probe[i].f, &probe[i]), 0);
    }
    CHECK_EQ(blitz_join_set_try_next(set, &out), -EAGAIN);
    blitz_join_set_cancel(set);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(blitz_join_set_try_next(set, &out), 0);
        CHECK_EQ(out.result, -ECANCELED);
        CHECK_EQ(((struct t_probe *)out.key)->cancels, 1);
    }
    CHECK_EQ(blitz_join_set_try_next(set, &out), -EAGAIN); /* the pinned one was asked to stop */
    CHECK_EQ(probe[2].cancels, 1);
    t_probe_set(&probe[2], 6);
    CHECK_EQ(blitz_join_set_try_next(set, &out), 0);
    CHECK_EQ(out.result, 6);
    blitz_join_set_unref(set);
}

static bz_atomic(int) ended;

static int says_that_it_ends(void *arg)
{
    (void)arg;
    int err = blitz_sleep_until(BLITZ_FOREVER);
    bz_fetch_add_relaxed(&ended, 1); /* relaxed: the join orders it */
    return err;
}

static int unref_ends_all(void *arg)
{
    blitz_join_set *set = set_new();
    (void)arg;
    bz_store_relaxed(&ended, 0); /* relaxed: nothing runs yet */
    for (int i = 0; i < 20; i++)
        CHECK_EQ(blitz_join_set_spawn(set, says_that_it_ends, NULL, NULL, NULL), 0);
    CHECK(blitz_join_set_ref(set) == set);
    blitz_join_set_unref(set);
    CHECK_EQ(blitz_join_set_count(set), 20u);
    if (blitz_worker_count() == 2)
        blitz_task_cancel(blitz_task_current()); /* a cancel does not cut the wait short */
    blitz_yield();
    blitz_join_set_unref(set);
    /* relaxed: the joins order it */
    CHECK_EQ(bz_load_relaxed(&ended), 20);
    return 0;
}

TEST(join_set, the_last_unref_cancels_and_joins_all)
{
    t_on_each(unref_ends_all, NULL, 0);
}

static bz_atomic(int) freed;

static void free_one(void *p, void *ctx)
{
    (void)ctx;
    bz_fetch_add_relaxed(&freed, 1); /* relaxed: the joins order it */
    free(p);
}

static void *makes(void *arg)
{
    (void)arg;
    return malloc(1);
}

static int pointers(void *arg)
{
    blitz_join_set *set = set_new();
    blitz_spawn_opts opts = {.drop_result = free_one};
    blitz_joined out;
    (void)arg;
    bz_store_relaxed(&freed, 0); /* relaxed: nothing runs yet */
    for (int i = 0; i < 10; i++) {
        blitz_task *t;
        CHECK_EQ(blitz_spawn_ptr(makes, NULL, &opts, &t), 0);
        CHECK_EQ(blitz_join_set_add_task(set, t, NULL), 0);
    }
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(blitz_join_set_next(set, &out, BLITZ_FOREVER), 0);
        CHECK_NOT_NULL(out.pointer);
        free(out.pointer);
    }
    blitz_join_set_unref(set);
    CHECK_EQ(bz_load_relaxed(&freed), 6); /* relaxed: as above */
    return 0;
}

TEST(join_set, pointers_that_were_not_taken_are_freed)
{
    t_on_each(pointers, NULL, 0);
}

static int lets_go(void *arg)
{
    blitz_join_set *set = set_new();
    struct t_probe probe;
    blitz_joined out;
    (void)arg;
    t_probe_init(&probe, &bz_os_system, BLITZ_PINNED);
    CHECK_EQ(blitz_join_set_add_future(set, &probe.f, NULL), 0);
    blitz_task *t;
    CHECK_EQ(blitz_spawn(sleeps_for_ever, NULL, NULL, &t), 0);
    CHECK_EQ(blitz_join_set_add_task(set, blitz_task_ref(t), NULL), 0);
    CHECK_EQ(blitz_join_set_try_next(set, &out), -EAGAIN);
    CHECK_EQ(blitz_join_set_detach(set), 0);
    CHECK_EQ(blitz_join_set_count(set), 1u); /* the pinned future */
    t_probe_set(&probe, 2);
    CHECK_EQ(blitz_join_set_next(set, &out, BLITZ_FOREVER), 0);
    CHECK_EQ(out.result, 2);
    blitz_join_set_unref(set);
    CHECK(!blitz_task_is_done(t)); /* it was not cancelled */
    blitz_task_cancel(t);
    int result;
    CHECK_EQ(blitz_task_join(t, &result, BLITZ_FOREVER), 0);
    CHECK_EQ(result, -ECANCELED);
    return 0;
}

TEST(join_set, detached_tasks_run_on)
{
    t_on_each(lets_go, NULL, 0);
}

/* ---- from a stackless task ---- */

struct sum {
    blitz_frame frame;
    blitz_join_set_future next;
    blitz_join_set *set;
    int sum;
};

static blitz_poll sums(void *state, blitz_cx *cx)
{
    struct sum *s = state;
    int rc;
    BLITZ_BEGIN(&s->frame, cx);
    for (;;) {
        blitz_join_set_next_future_init(&s->next, s->set);
        BLITZ_AWAIT(rc, &s->next.future);
        if (rc != 0 || s->next.result != 0)
            break;
        s->sum += s->next.joined.result;
    }
    BLITZ_END(s->sum);
}

static int sum_stackless(void *arg)
{
    struct sum s = {.set = set_new()};
    blitz_task *t;
    int result;
    (void)arg;
    for (intptr_t i = 1; i <= 100; i++)
        CHECK_EQ(blitz_join_set_spawn(s.set, returns_its_number, (void *)i, NULL, NULL), 0);
    CHECK_EQ(blitz_spawn_poll(sums, &s, sizeof s, NULL, &t), 0);
    CHECK_EQ(blitz_task_join(t, &result, BLITZ_FOREVER), 0);
    CHECK_EQ(result, 5050);
    blitz_join_set_unref(s.set);
    return 0;
}

TEST(join_set, a_stackless_task_takes_members_out)
{
    t_on_each(sum_stackless, NULL, 0);
}
