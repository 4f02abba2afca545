/* Race, all and timeout: what becomes of each child. Asked by hand, and awaited. */
#include "harness.h"
#include "support/alone.h"
#include "support/bell.h"
#include "support/on_each.h"
#include "support/probe.h"

#include "base/rng.h"

enum { MOST = 20 };

struct crowd {
    struct t_probe probe[MOST];
    blitz_child child[MOST];
    size_t count;
};

static void crowd_init(struct crowd *c, size_t count, blitz_class kind)
{
    c->count = count;
    for (size_t i = 0; i < count; i++) {
        t_probe_init(&c->probe[i], &bz_os_system, kind);
        c->child[i] = (blitz_child){&c->probe[i].f, BLITZ_LEFT};
    }
}

static blitz_poll ask(blitz_future *f, struct t_bell *b)
{
    blitz_waker w = t_bell_waker(b);
    return f->ops->poll(f, &w);
}

/* ---- race ---- */

TEST(race, the_first_to_be_ready_wins_and_the_others_are_revoked)
{
    for (size_t winner = 0; winner < MOST; winner++) {
        struct crowd c;
        struct t_bell bell = {0};
        blitz_race r;
        crowd_init(&c, MOST, BLITZ_REVOCABLE);
        CHECK_EQ(blitz_race_init(&r, c.child, c.count), 0);
        CHECK_EQ(r.future.ops->kind, BLITZ_REVOCABLE);
        CHECK_EQ(ask(&r.future, &bell), BLITZ_PENDING);
        t_probe_set(&c.probe[winner], 5);
        CHECK_EQ(bell.rung, 1);
        CHECK_EQ(ask(&r.future, &bell), BLITZ_READY);
        CHECK_EQ(r.winner, winner);
        CHECK_EQ(blitz_future_output(&r.future), 5);
        for (size_t i = 0; i < MOST; i++) {
            CHECK_EQ(c.child[i].fate, i == winner ? BLITZ_ENDED : BLITZ_REVOKED);
            t_probe_check(&c.probe[i], i == winner, i != winner);
        }
        CHECK_EQ(ask(&r.future, &bell), BLITZ_READY); /* ready stays ready */
        CHECK_EQ(bell.holders, 0);
    }
}

/* Earlier ones win ties, and those behind a winner are not even asked; `first` turns the order. */
TEST(race, ties_go_by_order)
{
    for (size_t first = 0; first < 3; first++) {
        struct crowd c;
        struct t_bell bell = {0};
        blitz_race r;
        crowd_init(&c, 3, BLITZ_REVOCABLE);
        for (int i = 0; i < 3; i++)
            t_probe_set(&c.probe[i], i);
        CHECK_EQ(blitz_race_init(&r, c.child, c.count), 0);
        r.first = first;
        CHECK_EQ(ask(&r.future, &bell), BLITZ_READY);
        CHECK_EQ(r.winner, first);
        for (size_t i = 0; i < 3; i++) {
            CHECK_EQ(c.probe[i].polls, i == first);
            CHECK_EQ(c.probe[i].cancels, 0); /* never polled: there is nothing to undo */
            CHECK_EQ(c.child[i].fate, i == first ? BLITZ_ENDED : BLITZ_REVOKED);
        }
    }
}

TEST(race, a_detachable_loser_is_left_behind)
{
    struct crowd c;
    struct t_bell bell = {0};
    blitz_race r;
    crowd_init(&c, 2, BLITZ_DETACHABLE);
    CHECK_EQ(blitz_race_init(&r, c.child, c.count), 0);
    CHECK_EQ(r.future.ops->kind, BLITZ_DETACHABLE);
    CHECK_EQ(ask(&r.future, &bell), BLITZ_PENDING);
    t_probe_set(&c.probe[0], 0);
    CHECK_EQ(ask(&r.future, &bell), BLITZ_READY);
    CHECK_EQ(c.child[1].fate, BLITZ_LEFT);
    t_probe_set(&c.probe[1], 0); /* later, without a waiter */
    CHECK_EQ(bell.rung, 1);
    CHECK_EQ(bell.holders, 0);
}

/* A pinned loser is waited for, and its effect is reported; the revocable one is released
 * before. */
TEST(race, a_pinned_loser_is_waited_for_and_reported)
{
    struct crowd c;
    struct t_bell bell = {0};
    blitz_race r;
    crowd_init(&c, 3, BLITZ_REVOCABLE);
    t_probe_init(&c.probe[1], &bz_os_system, BLITZ_PINNED);
    CHECK_EQ(blitz_race_init(&r, c.child, c.count), 0);
    CHECK_EQ(r.future.ops->kind, BLITZ_PINNED);
    CHECK_EQ(ask(&r.future, &bell), BLITZ_PENDING);
    t_probe_set(&c.probe[2], 2);
    CHECK_EQ(ask(&r.future, &bell), BLITZ_PENDING);
    CHECK_EQ(c.child[0].fate, BLITZ_REVOKED); /* at once, independent of the pinned one */
    CHECK_EQ(c.child[1].fate, BLITZ_STOPPING);
    CHECK_EQ(c.probe[1].cancels, 1);
    CHECK_EQ(ask(&r.future, &bell), BLITZ_PENDING);
    t_probe_set(&c.probe[1], 4096);
    CHECK_EQ(ask(&r.future, &bell), BLITZ_READY);
    CHECK_EQ(r.winner, 2);
    CHECK_EQ(c.child[1].fate, BLITZ_ENDED);
    CHECK_EQ(blitz_future_output(&c.probe[1].f), 4096);
    CHECK_EQ(bell.holders, 0);
}

TEST(race, a_cancel_gives_up_every_child)
{
    struct crowd c;
    struct t_bell bell = {0};
    blitz_race r;
    crowd_init(&c, 2, BLITZ_REVOCABLE);
    t_probe_init(&c.probe[1], &bz_os_system, BLITZ_PINNED);
    CHECK_EQ(blitz_race_init(&r, c.child, c.count), 0);
    CHECK_EQ(ask(&r.future, &bell), BLITZ_PENDING);
    r.future.ops->cancel(&r.future);
    CHECK_EQ(c.child[0].fate, BLITZ_REVOKED);
    CHECK_EQ(ask(&r.future, &bell), BLITZ_PENDING);
    t_probe_set(&c.probe[1], 0);
    CHECK_EQ(ask(&r.future, &bell), BLITZ_READY);
    CHECK_EQ(r.winner, 2);
    CHECK_EQ(blitz_future_output(&r.future), -ECANCELED);
    CHECK_EQ(c.child[1].fate, BLITZ_ENDED);
    CHECK_EQ(bell.holders, 0);
}

TEST(race, bad_input_is_refused)
{
    struct crowd c;
    blitz_race r;
    crowd_init(&c, 2, BLITZ_REVOCABLE);
    CHECK_EQ(blitz_race_init(NULL, c.child, 2), -EINVAL);
    CHECK_EQ(blitz_race_init(&r, NULL, 2), -EINVAL);
    CHECK_EQ(blitz_race_init(&r, c.child, 0), -EINVAL);
    c.child[1].future = NULL;
    CHECK_EQ(blitz_race_init(&r, c.child, 2), -EINVAL);
    CHECK_EQ(blitz_first_of(NULL, 1, 0), -EINVAL);
    blitz_future *many[BLITZ_OF_MAX + 1] = {NULL};
    CHECK_EQ(blitz_first_of(many, BLITZ_OF_MAX + 1, 0), -EINVAL);
    CHECK_EQ(blitz_all_of(many, BLITZ_OF_MAX + 1, 0), -EINVAL);
    CHECK_EQ(blitz_first_of(many, 0, 0), -EINVAL);
    CHECK_EQ(blitz_first_of(many, 1, 0), -EINVAL);
}

/* ---- all ---- */

TEST(all, is_ready_when_every_child_is)
{
    struct crowd c;
    struct t_bell bell = {0};
    blitz_all a;
    crowd_init(&c, MOST, BLITZ_REVOCABLE);
    CHECK_EQ(blitz_all_init(&a, c.child, c.count, BLITZ_FAIL_FAST), 0);
    for (size_t i = 0; i < MOST; i++) {
        CHECK_EQ(ask(&a.future, &bell), BLITZ_PENDING);
        t_probe_set(&c.probe[(i * 7) % MOST], (int)i);
    }
    CHECK_EQ(ask(&a.future, &bell), BLITZ_READY);
    CHECK_EQ(ask(&a.future, &bell), BLITZ_READY);
    CHECK_EQ(blitz_future_output(&a.future), 0);
    CHECK_EQ(a.failed, MOST);
    for (size_t i = 0; i < MOST; i++)
        t_probe_check(&c.probe[i], 1, 0);
    CHECK_EQ(blitz_all_init(&a, NULL, 0, BLITZ_COLLECT), 0);
    CHECK_EQ(ask(&a.future, &bell), BLITZ_READY); /* of nothing */
    CHECK_EQ(blitz_all_init(&a, NULL, 1, BLITZ_COLLECT), -EINVAL);
    CHECK_EQ(blitz_all_init(&a, c.child, 1, (blitz_all_mode)7), -EINVAL);
    CHECK_EQ(bell.holders, 0);
}

TEST(all, fails_fast_and_gives_up_the_rest)
{
    struct crowd c;
    struct t_bell bell = {0};
    blitz_all a;
    crowd_init(&c, 4, BLITZ_REVOCABLE);
    t_probe_init(&c.probe[0], &bz_os_system, BLITZ_PINNED);
    t_probe_init(&c.probe[3], &bz_os_system, BLITZ_DETACHABLE);
    CHECK_EQ(blitz_all_init(&a, c.child, c.count, BLITZ_FAIL_FAST), 0);
    CHECK_EQ(ask(&a.future, &bell), BLITZ_PENDING);
    t_probe_set(&c.probe[1], -EIO);
    CHECK_EQ(ask(&a.future, &bell), BLITZ_PENDING);
    CHECK_EQ(c.child[0].fate, BLITZ_STOPPING);
    CHECK_EQ(c.child[1].fate, BLITZ_ENDED);
    CHECK_EQ(c.child[2].fate, BLITZ_REVOKED);
    CHECK_EQ(c.child[3].fate, BLITZ_LEFT);
    t_probe_set(&c.probe[0], -EPIPE); /* too late to be the first */
    CHECK_EQ(ask(&a.future, &bell), BLITZ_READY);
    CHECK_EQ(blitz_future_output(&a.future), -EIO);
    CHECK_EQ(a.failed, 1);
    CHECK_EQ(bell.holders, 0);
}

TEST(all, collects_in_spite_of_failures)
{
    struct crowd c;
    struct t_bell bell = {0};
    blitz_all a;
    crowd_init(&c, 3, BLITZ_REVOCABLE);
    CHECK_EQ(blitz_all_init(&a, c.child, c.count, BLITZ_COLLECT), 0);
    CHECK_EQ(ask(&a.future, &bell), BLITZ_PENDING);
    t_probe_set(&c.probe[2], -EIO);
    CHECK_EQ(ask(&a.future, &bell), BLITZ_PENDING);
    t_probe_set(&c.probe[0], -EPIPE);
    t_probe_set(&c.probe[1], 1);
    CHECK_EQ(ask(&a.future, &bell), BLITZ_READY);
    CHECK_EQ(a.result, -EIO);
    CHECK_EQ(a.failed, 2);
    CHECK_EQ(bell.holders, 0);
}

/* ---- timeout ---- */

TEST(timeout, a_child_that_is_ready_at_its_deadline_is_ready)
{
    struct t_probe p;
    struct t_bell bell = {0};
    blitz_timeout t;
    t_probe_init(&p, &bz_os_system, BLITZ_REVOCABLE);
    t_probe_set(&p, 3);
    CHECK_EQ(blitz_timeout_init(&t, &p.f, 0), 0);
    CHECK_EQ(ask(&t.future, &bell), BLITZ_READY);
    CHECK_EQ(ask(&t.future, &bell), BLITZ_READY);
    CHECK_EQ(blitz_future_output(&t.future), 3);
    CHECK_EQ(t.child.fate, BLITZ_ENDED);
    CHECK_EQ(blitz_timeout_init(NULL, &p.f, 0), -EINVAL);
    CHECK_EQ(blitz_timeout_init(&t, NULL, 0), -EINVAL);
}

TEST(timeout, gives_up_by_class)
{
    static const blitz_fate fate[] = {BLITZ_REVOKED, BLITZ_LEFT, BLITZ_STOPPING};
    for (int kind = BLITZ_REVOCABLE; kind <= BLITZ_PINNED; kind++) {
        struct t_probe p;
        struct t_bell bell = {0};
        blitz_timeout t;
        t_probe_init(&p, &bz_os_system, (blitz_class)kind);
        CHECK_EQ(blitz_timeout_init(&t, &p.f, 0), 0);
        CHECK_EQ(t.future.ops->kind, kind);
        CHECK_EQ(ask(&t.future, &bell), kind == BLITZ_PINNED ? BLITZ_PENDING : BLITZ_READY);
        CHECK_EQ(t.child.fate, fate[kind]);
        CHECK_EQ(p.cancels, 1);
        t_probe_set(&p, 7);
        CHECK_EQ(ask(&t.future, &bell), BLITZ_READY);
        CHECK_EQ(t.result, -ETIMEDOUT);
        CHECK_EQ(t.child.fate == BLITZ_ENDED, kind == BLITZ_PINNED); /* reported */
        CHECK_EQ(bell.holders, 0);
    }
}

/* ---- the small ones ---- */

static int doubled(void *arg, blitz_future *child)
{
    ++*(int *)arg;
    return 2 * blitz_future_output(child);
}

static blitz_future *take(void *arg)
{
    return arg;
}

static blitz_future *take_next(void *arg, blitz_future *first)
{
    CHECK_GE(blitz_future_output(first), 0);
    return arg;
}

TEST(simple, ready_pending_map_then_and_defer)
{
    struct t_bell bell = {0};
    struct t_probe p, q;
    blitz_ready_future r;
    blitz_map_future m;
    blitz_then_future t;
    blitz_defer_future l;
    int calls = 0;
    blitz_ready_future_init(&r, 21);
    CHECK_EQ(ask(&r.future, &bell), BLITZ_READY);
    CHECK_EQ(blitz_await(blitz_pending_future(), 0), -ETIMEDOUT);

    t_probe_init(&p, &bz_os_system, BLITZ_DETACHABLE);
    blitz_map_future_init(&m, &p.f, doubled, &calls);
    CHECK_EQ(m.future.ops->kind, BLITZ_DETACHABLE);
    CHECK_EQ(ask(&m.future, &bell), BLITZ_PENDING);
    t_probe_set(&p, 4);
    CHECK_EQ(ask(&m.future, &bell), BLITZ_READY);
    CHECK_EQ(ask(&m.future, &bell), BLITZ_READY);
    CHECK_EQ(blitz_future_output(&m.future), 8);
    CHECK_EQ(calls, 1);

    t_probe_init(&q, &bz_os_system, BLITZ_REVOCABLE);
    blitz_then_future_init(&t, &r.future, take_next, &q.f);
    CHECK_EQ(ask(&t.future, &bell), BLITZ_PENDING);
    t_probe_set(&q, 9);
    CHECK_EQ(ask(&t.future, &bell), BLITZ_READY);
    CHECK_EQ(blitz_future_output(&t.future), 9);
    blitz_then_future_init(&t, &r.future, take_next, NULL);
    CHECK_EQ(ask(&t.future, &bell), BLITZ_READY);
    CHECK_EQ(blitz_future_output(&t.future), 21);
    r.result = -EIO;
    blitz_then_future_init(&t, &r.future, take_next, &q.f);
    CHECK_EQ(ask(&t.future, &bell), BLITZ_READY);
    CHECK_EQ(blitz_future_output(&t.future), -EIO);
    CHECK_NULL(t.second);

    t_probe_init(&q, &bz_os_system, BLITZ_REVOCABLE);
    blitz_defer_future_init(&l, take, &q.f);
    CHECK_EQ(q.polls, 0);
    CHECK_EQ(ask(&l.future, &bell), BLITZ_PENDING);
    t_probe_set(&q, 3);
    CHECK_EQ(ask(&l.future, &bell), BLITZ_READY);
    CHECK_EQ(ask(&l.future, &bell), BLITZ_READY);
    CHECK_EQ(blitz_future_output(&l.future), 3);
    CHECK_EQ(bell.holders, 0);
}

/* The effect of a cancel is determined by the class of the future awaited at that moment. */
TEST(simple, a_cancel_is_passed_on_by_class)
{
    for (int kind = BLITZ_REVOCABLE; kind <= BLITZ_PINNED; kind++)
        for (int made = 0; made < 3; made++) {
            struct t_bell bell = {0};
            struct t_probe p;
            blitz_ready_future r;
            blitz_then_future t;
            blitz_defer_future l;
            blitz_future *f = made == 0 ? &l.future : &t.future;
            t_probe_init(&p, &bz_os_system, (blitz_class)kind);
            blitz_ready_future_init(&r, 0);
            blitz_defer_future_init(&l, take, &p.f);
            blitz_then_future_init(&t, made == 1 ? &p.f : &r.future, take_next,
                                   made == 1 ? &r.future : &p.f);
            CHECK_EQ(ask(f, &bell), BLITZ_PENDING);
            f->ops->cancel(f);
            CHECK_EQ(p.cancels, 1);
            CHECK_EQ(ask(f, &bell), kind == BLITZ_PINNED ? BLITZ_PENDING : BLITZ_READY);
            if (kind == BLITZ_PINNED) {
                t_probe_set(&p, 6);
                CHECK_EQ(ask(f, &bell), BLITZ_READY);
            }
            CHECK_EQ(blitz_future_output(f), kind == BLITZ_PINNED ? 6 : -ECANCELED);
            CHECK(t.second != &r.future); /* a cancelled first has no second */
            CHECK_EQ(bell.holders, 0);
        }
    blitz_defer_future l;
    blitz_defer_future_init(&l, take, NULL);
    l.future.ops->cancel(&l.future); /* never asked, never made */
    CHECK_EQ(blitz_await(&l.future, 0), 0);
    CHECK_EQ(l.result, -ECANCELED);
}

/* ---- awaited ---- */

static int await_first(void *arg)
{
    blitz_sleep_future a, b, c;
    (void)arg;
    blitz_sleep_until_future_init(&a, BLITZ_FOREVER);
    blitz_sleep_until_future_init(&b, blitz_after(100 * BLITZ_US));
    blitz_sleep_until_future_init(&c, blitz_after(3600 * BLITZ_S));
    CHECK_EQ(BLITZ_FIRST_OF(BLITZ_FOREVER, &a.future, &b.future, &c.future), 1);
    CHECK_EQ(BLITZ_FIRST_OF(blitz_after(BLITZ_US), &a.future, blitz_pending_future()), -ETIMEDOUT);
    blitz_sleep_until_future_init(&a, blitz_after(50 * BLITZ_US));
    blitz_sleep_until_future_init(&c, blitz_after(100 * BLITZ_US));
    CHECK_EQ(BLITZ_ALL_OF(BLITZ_FOREVER, &a.future, &c.future), 0);
    CHECK_EQ(BLITZ_ALL_OF(blitz_after(BLITZ_US), &a.future, blitz_pending_future()), -ETIMEDOUT);
    blitz_timeout t;
    CHECK_EQ(blitz_timeout_init(&t, blitz_pending_future(), blitz_after(50 * BLITZ_US)), 0);
    CHECK_EQ(blitz_await(&t.future, BLITZ_FOREVER), 0);
    CHECK_EQ(t.result, -ETIMEDOUT);
    return 0;
}

TEST(combine, fibers_and_threads_await_them)
{
    t_on_each(await_first, NULL, 0);
    await_first(NULL);
}

static int for_ever(void *arg)
{
    (void)arg;
    return blitz_sleep_until(BLITZ_FOREVER);
}

static int seven_after(void *event)
{
    return blitz_event_wait(event, BLITZ_FOREVER) == 0 ? 7 : 1;
}

/* Linked joins are pinned. The race asks every loser that it has polled to stop, and waits for it. */
static int race_of_tasks(void *arg)
{
    blitz_join_future j[8];
    blitz_child child[8];
    blitz_race r;
    blitz_event all_polled = BLITZ_EVENT_INIT;
    struct t_bell bell = {.holders = 1};
    blitz_waker waker = t_bell_waker(&bell);
    (void)arg;
    for (int i = 0; i < 8; i++) {
        blitz_task *t;
        CHECK_EQ(blitz_spawn(i == 5 ? seven_after : for_ever, &all_polled, NULL, &t), 0);
        blitz_task_join_linked_future_init(&j[i], t);
        child[i].future = &j[i].future;
    }
    CHECK_EQ(blitz_race_init(&r, child, 8), 0);
    CHECK_EQ(r.future.ops->poll(&r.future, &waker), BLITZ_PENDING); /* so all eight were polled */
    blitz_event_set(&all_polled);
    CHECK_EQ(blitz_await(&r.future, BLITZ_FOREVER), 0);
    CHECK_EQ(r.winner, 5);
    CHECK_EQ(blitz_future_output(&r.future), 7);
    for (int i = 0; i < 8; i++) {
        CHECK_EQ(child[i].fate, BLITZ_ENDED);
        CHECK_EQ(j[i].value, i == 5 ? 7 : -ECANCELED);
    }
    return 0;
}

/* The third child is ready in the first poll: those behind it are never polled, and their tasks are
 * none of the race's business. The join future says that the handle was not taken. */
static int race_with_a_ready_child(void *arg)
{
    enum { N = 5, READY = 2 };
    blitz_join_future j[N];
    blitz_task *t[N];
    blitz_child child[N];
    blitz_ready_future ready;
    blitz_race r;
    (void)arg;
    blitz_ready_future_init(&ready, 7);
    for (int i = 0; i < N; i++) {
        if (i == READY) {
            child[i].future = &ready.future;
            continue;
        }
        CHECK_EQ(blitz_spawn(for_ever, NULL, NULL, &t[i]), 0);
        blitz_task_join_linked_future_init(&j[i], t[i]);
        child[i].future = &j[i].future;
    }
    CHECK_EQ(blitz_race_init(&r, child, N), 0);
    CHECK_EQ(blitz_await(&r.future, BLITZ_FOREVER), 0);
    CHECK_EQ(r.winner, READY);
    for (int i = 0; i < N; i++) {
        if (i == READY)
            continue;
        bool was_polled = i < READY;
        CHECK_EQ(child[i].fate, was_polled ? BLITZ_ENDED : BLITZ_REVOKED);
        CHECK_EQ(j[i].result, was_polled ? 0 : -EINPROGRESS);
        if (was_polled)
            continue;
        blitz_task_cancel(t[i]);
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
    }
    return 0;
}

TEST(combine, a_child_behind_a_ready_one_is_left_alone)
{
    t_on_each(race_with_a_ready_child, NULL, 0);
}

TEST(combine, a_race_of_tasks_ends_them_all)
{
    t_on_each(race_of_tasks, NULL, 0);
}

struct stackless {
    blitz_frame frame;
    blitz_sleep_future nap[3];
    blitz_child child[3];
    blitz_race race;
};

static blitz_poll race_without_a_stack(void *state, blitz_cx *cx)
{
    struct stackless *s = state;
    int rc;
    BLITZ_BEGIN(&s->frame, cx);
    for (int i = 0; i < 3; i++) {
        blitz_sleep_until_future_init(&s->nap[i], blitz_after((uint64_t)(3 - i) * 50 * BLITZ_US));
        s->child[i].future = &s->nap[i].future;
    }
    CHECK_EQ(blitz_race_init(&s->race, s->child, 3), 0);
    BLITZ_AWAIT(rc, &s->race.future);
    CHECK_EQ(rc, 0);
    BLITZ_END((int)s->race.winner);
}

static int spawn_stackless(void *arg)
{
    struct stackless s = {.frame = {0, 0}};
    blitz_task *t;
    int winner = -1;
    (void)arg;
    CHECK_EQ(blitz_spawn_poll(race_without_a_stack, &s, sizeof s, NULL, &t), 0);
    CHECK_EQ(blitz_task_join(t, &winner, BLITZ_FOREVER), 0);
    CHECK(winner >= 0 && winner < 3); /* the order is the machine's when it is busy */
    return 0;
}

TEST(combine, a_stackless_task_awaits_them_too)
{
    t_on_each(spawn_stackless, NULL, 0);
}

/* ---- the swallowed wake ---- */

struct swallower {
    blitz_future f;
    struct t_probe *meant, *inner;
    int polls;
};

/* Asks what it is for, then waits for something else; the wake for the first comes meanwhile. */
static blitz_poll swallow(blitz_future *f, const blitz_waker *waker)
{
    struct swallower *s = BZ_CONTAINER_OF(f, struct swallower, f);
    if (s->meant->f.ops->poll(&s->meant->f, waker) == BLITZ_READY)
        return BLITZ_READY;
    if (s->polls++ == 0)
        CHECK_EQ(blitz_await(&s->inner->f, BLITZ_FOREVER), 0);
    return BLITZ_PENDING;
}

static int sets_both(void *arg)
{
    struct swallower *s = arg;
    t_probe_set(s->meant, 0); /* wakes the task in any wait */
    t_probe_set(s->inner, 0);
    return 0;
}

static int swallows(void *arg)
{
    static const blitz_future_ops ops = {"swallower", BLITZ_REVOCABLE, swallow, t_probe_cancel,
                                         NULL};
    struct t_probe meant, inner;
    struct swallower s = {{&ops}, &meant, &inner, 0};
    (void)arg;
    t_probe_init(&meant, &bz_os_system, BLITZ_REVOCABLE);
    t_probe_init(&inner, &bz_os_system, BLITZ_REVOCABLE);
    blitz_task *t;
    CHECK_EQ(blitz_spawn(sets_both, &s, NULL, &t), 0);
    CHECK_EQ(blitz_await(&s.f, BLITZ_FOREVER), 0); /* and not for ever */
    CHECK_EQ(blitz_task_join(t, NULL, BLITZ_FOREVER), 0);
    return 0;
}

TEST(combine, a_wake_swallowed_by_a_wait_in_a_poll_is_made_up_for)
{
    CHECK_EQ(t_run_alone(swallows, NULL), 0);
}

static int warned;

static void count_warnings(void *ctx, blitz_log_level level, const char *line)
{
    (void)ctx;
    warned += level == BLITZ_LOG_WARN && strstr(line, "\"waiter\" waits inside its poll") != NULL;
}

static blitz_poll poll_that_waits(blitz_future *f, const blitz_waker *waker)
{
    (void)f;
    (void)waker;
    CHECK_EQ(blitz_sleep(10 * BLITZ_US), 0);
    return BLITZ_READY;
}

static int race_with_one_that_waits(void *arg)
{
    static const blitz_future_ops ops = {"waiter", BLITZ_REVOCABLE, poll_that_waits, t_probe_cancel,
                                         NULL};
    blitz_future waits = {&ops};
    (void)arg;
    for (int i = 0; i < 3; i++)
        CHECK_EQ(BLITZ_FIRST_OF(BLITZ_FOREVER, blitz_pending_future(), &waits), 1);
    return 0;
}

/* It holds up those beside it; test builds say so, once. */
TEST(combine, a_poll_that_waits_beside_others_is_warned_of)
{
#if !defined(BZ_WATCH)
    t_skip("only test builds warn");
#endif
    CHECK_EQ(blitz_log_set(count_warnings, NULL, BLITZ_LOG_WARN), 0);
    CHECK_EQ(t_run_alone(race_with_one_that_waits, NULL), 0);
    CHECK_EQ(warned, 1);
}

/* ---- any order of events ---- */

/* In any order of events each child has one end, and the combinator the right one. */
static void one_story(struct bz_rng *dice, bool is_race)
{
    struct crowd c;
    struct t_bell bell = {0};
    blitz_race r;
    blitz_all a;
    size_t n = 1 + bz_rng_below(dice, MOST), set_first = n;
    crowd_init(&c, n, BLITZ_REVOCABLE);
    for (size_t i = 0; i < n; i++)
        t_probe_init(&c.probe[i], &bz_os_system, (blitz_class)bz_rng_below(dice, 3));
    bool collects = bz_rng_below(dice, 2) == 0, was_cancelled = false;
    if (is_race)
        CHECK_EQ(blitz_race_init(&r, c.child, n), 0);
    else
        CHECK_EQ(blitz_all_init(&a, c.child, n, collects ? BLITZ_COLLECT : BLITZ_FAIL_FAST), 0);
    blitz_future *f = is_race ? &r.future : &a.future;
    bool is_over = false, was_polled = false;
    for (int steps = 0; !is_over; steps++) {
        uint32_t what = bz_rng_below(dice, 8);
        size_t i = bz_rng_below(dice, (uint32_t)n);
        if (what < 4 && !c.probe[i].is_set) {
            t_probe_set(&c.probe[i], bz_rng_below(dice, 4) == 0 ? -EIO : (int)i);
            if (set_first == n)
                set_first = i;
        } else if (what < 7) {
            is_over = ask(f, &bell) == BLITZ_READY;
            was_polled = true;
        } else if (was_polled && !was_cancelled && steps > 10) {
            was_cancelled = true;
            f->ops->cancel(f);
            is_over = f->ops->kind != BLITZ_PINNED;
        }
        if (!is_over && is_race && !was_cancelled && was_polled)
            CHECK_EQ(r.winner < n ? c.child[r.winner].fate : BLITZ_ENDED, BLITZ_ENDED);
    }
    size_t ended = 0;
    for (size_t i = 0; i < n; i++) {
        blitz_fate fate = c.child[i].fate;
        blitz_class kind = c.probe[i].f.ops->kind;
        CHECK(fate == BLITZ_ENDED || fate == BLITZ_REVOKED || fate == BLITZ_LEFT);
        CHECK(fate != BLITZ_LEFT || kind == BLITZ_DETACHABLE);
        CHECK(fate != BLITZ_REVOKED || kind == BLITZ_REVOCABLE || c.probe[i].polls == 0);
        t_probe_check(&c.probe[i], fate == BLITZ_ENDED,
                      fate == BLITZ_LEFT || (fate == BLITZ_REVOKED && c.probe[i].polls > 0));
        ended += fate == BLITZ_ENDED;
    }
    if (is_race && !was_cancelled)
        CHECK(r.winner < n && ended >= 1);
    if (!is_race && !was_cancelled && (collects || a.result == 0))
        CHECK_EQ(ended, n);
    if (!is_race && a.failed < n)
        CHECK_EQ(blitz_future_output(c.child[a.failed].future), a.result);
    CHECK_EQ(bell.holders, 0);
}

TEST(combine, any_order_of_events_gives_each_child_one_end)
{
    struct bz_rng dice;
    bz_rng_init(&dice, t_random());
    for (uint64_t i = t_scaled(20000); i > 0; i--)
        one_story(&dice, i % 2 == 0);
}

/* ---- many children ---- */

/* A future that counts its polls in a counter of the crowd. */
struct counted {
    blitz_future f;
    blitz_waker waker;
    size_t *polls;
    bool is_set;
};

static blitz_poll counted_poll(blitz_future *f, const blitz_waker *waker)
{
    struct counted *c = BZ_CONTAINER_OF(f, struct counted, f);
    ++*c->polls;
    blitz_waker_drop(&c->waker);
    if (c->is_set)
        return BLITZ_READY;
    c->waker = blitz_waker_clone(waker);
    return BLITZ_PENDING;
}

static void counted_cancel(blitz_future *f)
{
    blitz_waker_drop(&BZ_CONTAINER_OF(f, struct counted, f)->waker);
}

static const blitz_future_ops counted_ops = {"counted", BLITZ_REVOCABLE, counted_poll,
                                             counted_cancel, NULL};

struct many {
    struct counted *c;
    blitz_child *child;
    size_t n, polls;
};

static void many_init(struct many *m, size_t n)
{
    m->c = malloc(n * sizeof *m->c);
    m->child = malloc(n * sizeof *m->child);
    m->n = n;
    m->polls = 0;
    CHECK(m->c != NULL && m->child != NULL);
    for (size_t i = 0; i < n; i++) {
        m->c[i] = (struct counted){.f = {&counted_ops}, .polls = &m->polls};
        m->child[i].future = &m->c[i].f;
    }
}

static void many_fini(struct many *m)
{
    free(m->c);
    free(m->child);
}

/* The children in a scattered order: 7919 is prime to all sizes. */
static size_t scattered(size_t i, size_t n)
{
    return n > 0 ? (i * 7919 + 5) % n : 0;
}

static const size_t sizes[] = {1000, 10 * 1000, 100 * 1000, 1000 * 1000};

/* Each wake ends one child: n polls in the beginning, and one for each wake. */
TEST(all, bug_47_a_wake_costs_one_poll_of_a_thousand_children_and_of_a_million)
{
    for (size_t s = 0; s < BZ_ARRAY_LEN(sizes); s++) {
        struct many m;
        struct t_bell bell = {0};
        blitz_all all;
        many_init(&m, sizes[s]);
        CHECK_EQ(blitz_all_init(&all, m.child, m.n, BLITZ_FAIL_FAST), 0);
        CHECK_EQ(ask(&all.future, &bell), BLITZ_PENDING);
        CHECK_EQ(m.polls, m.n);
        for (size_t i = 0; i < m.n; i++) {
            struct counted *c = &m.c[scattered(i, m.n)];
            c->is_set = true;
            blitz_waker_wake(&c->waker);
            CHECK_EQ(ask(&all.future, &bell), i + 1 == m.n ? BLITZ_READY : BLITZ_PENDING);
            CHECK_EQ(m.polls, m.n + i + 1);
        }
        CHECK_EQ(bell.rung, (int)m.n);
        CHECK_EQ(bell.holders, 0);
        many_fini(&m);
    }
}

/* A child that is woken for nothing costs one poll, too. */
TEST(race, bug_47_a_wake_costs_one_poll_of_a_thousand_children_and_of_a_million)
{
    for (size_t s = 0; s < BZ_ARRAY_LEN(sizes); s++) {
        struct many m;
        struct t_bell bell = {0};
        blitz_race r;
        many_init(&m, sizes[s]);
        CHECK_EQ(blitz_race_init(&r, m.child, m.n), 0);
        CHECK_EQ(ask(&r.future, &bell), BLITZ_PENDING);
        for (size_t i = 0; i < m.n; i++) {
            struct counted *c = &m.c[scattered(i, m.n)];
            c->is_set = i + 1 == m.n;
            blitz_waker_wake(&c->waker);
            CHECK_EQ(ask(&r.future, &bell), c->is_set ? BLITZ_READY : BLITZ_PENDING);
            CHECK_EQ(m.polls, m.n + i + 1);
        }
        CHECK_EQ(r.winner, scattered(m.n - 1, m.n));
        CHECK_EQ(bell.holders, 0);
        many_fini(&m);
    }
}

/* Several wakes before the parent's poll wake the parent once; a child that is woken twice is polled once. */
TEST(all, several_children_that_are_woken_wake_the_parent_once)
{
    struct many m;
    struct t_bell bell = {0};
    blitz_all all;
    many_init(&m, 100);
    CHECK_EQ(blitz_all_init(&all, m.child, m.n, BLITZ_COLLECT), 0);
    CHECK_EQ(ask(&all.future, &bell), BLITZ_PENDING);
    for (size_t i = 0; i < m.n; i++) {
        m.c[i].is_set = true;
        blitz_waker_wake_by_ref(&m.c[i].waker);
        blitz_waker_wake_by_ref(&m.c[i].waker);
    }
    CHECK_EQ(bell.rung, 1);
    CHECK_EQ(ask(&all.future, &bell), BLITZ_READY);
    CHECK_EQ(m.polls, 2 * m.n);
    CHECK_EQ(bell.holders, 0);
    many_fini(&m);
}

/* A waker that outlives the combinator is still there to be woken and dropped. */
TEST(all, wakers_of_children_outlive_it)
{
    struct many m;
    struct t_bell bell = {0};
    blitz_all all;
    many_init(&m, 100);
    CHECK_EQ(blitz_all_init(&all, m.child, m.n, BLITZ_COLLECT), 0);
    CHECK_EQ(ask(&all.future, &bell), BLITZ_PENDING);
    blitz_waker kept = blitz_waker_clone(&m.c[7].waker), other = blitz_waker_clone(&kept);
    all.future.ops->cancel(&all.future);
    CHECK_EQ(bell.holders, 0);
    blitz_waker_wake(&kept);
    blitz_waker_drop(&other);
    CHECK_EQ(bell.rung, 0);
    many_fini(&m);
}

/* Sleeps of various lengths, several of them equal. */
static int many_sleeps(void *arg)
{
    enum { SLEEPS = 300 };
    static blitz_sleep_future nap[SLEEPS];
    static blitz_child child[SLEEPS];
    blitz_all all;
    blitz_race race;
    (void)arg;
    for (int way = 0; way < 2; way++) {
        for (size_t i = 0; i < SLEEPS; i++) {
            blitz_sleep_until_future_init(&nap[i], blitz_after((i * 7 % 20) * 100 * BLITZ_US));
            child[i].future = &nap[i].future;
        }
        if (way == 0)
            CHECK_EQ(blitz_all_init(&all, child, SLEEPS, BLITZ_FAIL_FAST), 0);
        else
            CHECK_EQ(blitz_race_init(&race, child, SLEEPS), 0);
        CHECK_EQ(blitz_await(way == 0 ? &all.future : &race.future, BLITZ_FOREVER), 0);
    }
    return 0;
}

TEST(combine, many_sleeps_end_in_a_task_and_on_a_plain_thread)
{
    t_on_each(many_sleeps, NULL, 0);
    CHECK_EQ(many_sleeps(NULL), 0);
}
