/* Condition, notify, barrier, once and the gates: what each promises, and the scenes of
 * support/sync_scenes.h on real threads. */
#include "harness.h"

#include "blitz.h"
#include "support/askers.h"
#include "support/on_each.h"
#include "support/sync_scenes.h"

static void on_each_seed(int (*scene)(void *))
{
    for (int i = 0; i < 10; i++) {
        struct scene_seed seed = {t_random()};
        t_on_each(scene, &seed, 0);
    }
}

TEST(sync_scenes, bug_22_a_notification_is_not_lost_to_a_leaving_waiter)
{
    on_each_seed(scene_notify);
}

TEST(sync_scenes, no_signal_is_missed_between_the_unlock_and_the_wait)
{
    on_each_seed(scene_condition);
}

TEST(sync_scenes, bug_22_a_cancelled_waiter_has_not_arrived_at_the_barrier)
{
    on_each_seed(scene_barrier);
}

TEST(sync_scenes, bug_22_a_value_is_made_by_one_and_a_failure_lets_the_next_try)
{
    on_each_seed(scene_once);
}

TEST(sync_scenes, a_released_waiter_may_free_the_group)
{
    on_each_seed(scene_group);
}

/* ---- condition ---- */

static blitz_mutex mutex;
static blitz_condition condition;

static int waits_cancelled(void *arg)
{
    (void)arg;
    CHECK_EQ(blitz_mutex_lock(&mutex, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_condition_wait(&condition, &mutex, BLITZ_FOREVER), -ECANCELED);
    CHECK_EQ(blitz_mutex_holder(&mutex), blitz_task_id(NULL)); /* all the same */
    blitz_mutex_unlock(&mutex);
    return 0;
}

static int cancel_a_waiter(void *arg)
{
    blitz_task *t;
    int result = 1;
    (void)arg;
    blitz_mutex_init(&mutex);
    blitz_condition_init(&condition);
    CHECK_EQ(blitz_mutex_lock(&mutex, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_condition_wait(&condition, &mutex, blitz_after(BLITZ_US)), -ETIMEDOUT);
    CHECK_EQ(blitz_mutex_holder(&mutex), blitz_task_id(NULL));
    blitz_mutex_unlock(&mutex);
    CHECK_EQ(blitz_spawn(waits_cancelled, NULL, NULL, &t), 0);
    blitz_yield();
    blitz_task_cancel(t);
    CHECK_EQ(blitz_task_join(t, &result, BLITZ_FOREVER), 0);
    return result;
}

TEST(sync_scenes, every_condition_wait_returns_with_the_mutex_locked)
{
    t_on_each(cancel_a_waiter, NULL, 0);
}

/* By hand: the first poll unlocks, the last one has it locked, a cancel in between has not. */
TEST(sync_scenes, bug_22_a_cancelled_future_of_a_condition_passes_its_signal_on)
{
    struct asker a = {.is_asking = false}, b = a;
    blitz_mutex_init(&mutex);
    blitz_condition_init(&condition);
    blitz_condition_wait_future_init(&a.f, &condition, &mutex);
    blitz_condition_wait_future_init(&b.f, &condition, &mutex);
    asker_begin(&a);
    asker_begin(&b);
    CHECK_EQ(blitz_mutex_try_lock(&mutex), 0);
    CHECK(!asker_ask(&a));
    CHECK(!blitz_mutex_is_locked(&mutex));
    CHECK_EQ(blitz_mutex_try_lock(&mutex), 0);
    CHECK(!asker_ask(&b));
    blitz_condition_signal(&condition);
    CHECK(asker_was_rung(&a));
    CHECK(!asker_was_rung(&b));
    asker_give_up(&a);
    CHECK(asker_was_rung(&b));
    CHECK_EQ(blitz_mutex_try_lock(&mutex), 0);
    CHECK(!asker_ask(&b)); /* signalled, and now it waits for the mutex */
    blitz_mutex_unlock(&mutex);
    CHECK(asker_ask(&b));
    CHECK(blitz_mutex_is_locked(&mutex));
    blitz_mutex_unlock(&mutex);
}

/* Two condition futures wait; the mutex is free. */
static void two_wait(struct asker a[2])
{
    blitz_mutex_init(&mutex);
    blitz_condition_init(&condition);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(blitz_mutex_try_lock(&mutex), 0);
        blitz_condition_wait_future_init(&a[i].f, &condition, &mutex);
        asker_begin(&a[i]);
        CHECK(!asker_ask(&a[i])); /* unlocks the mutex */
    }
}

/* A condition future that has its signal and waits for the mutex still owns the signal: a cancel
 * gives it to the next waiter, as a cancel before that does. */
TEST(sync_scenes, bug_52_a_signal_outlives_a_cancel_in_either_phase)
{
    for (int phase = 1; phase <= 2; phase++) {
        struct asker a[2] = {{.is_asking = false}, {.is_asking = false}};
        two_wait(a);
        CHECK_EQ(blitz_mutex_try_lock(&mutex), 0);
        blitz_condition_signal(&condition);
        CHECK(asker_was_rung(&a[0]));
        if (phase == 2)
            CHECK(!asker_ask(&a[0])); /* signalled; the mutex is locked */
        asker_give_up(&a[0]);
        CHECK(asker_was_rung(&a[1]));
        CHECK(!asker_ask(&a[1]));
        blitz_mutex_unlock(&mutex);
        CHECK(asker_was_rung(&a[1]));
        CHECK(asker_ask(&a[1]));
        CHECK_EQ(a[1].f.result, 0);
        blitz_mutex_unlock(&mutex);
    }
}

/* A broadcast woke every waiter: a cancelled one has nothing to pass on. */
TEST(sync_scenes, a_cancel_after_a_broadcast_signals_no_other_waiter)
{
    struct asker a[2] = {{.is_asking = false}, {.is_asking = false}}, late = a[0];
    two_wait(a);
    CHECK_EQ(blitz_mutex_try_lock(&mutex), 0);
    blitz_condition_broadcast(&condition);
    CHECK(!asker_ask(&a[0]));
    blitz_condition_wait_future_init(&late.f, &condition, &mutex);
    asker_begin(&late);
    CHECK(!asker_ask(&late)); /* unlocks the mutex: the first waiter is notified */
    CHECK_EQ(blitz_mutex_try_lock(&mutex), 0);
    asker_give_up(&a[0]);
    asker_give_up(&a[1]);
    CHECK(!asker_was_rung(&late));
    blitz_mutex_unlock(&mutex);
    asker_give_up(&late);
}

/* ---- once ---- */

static blitz_once once = BLITZ_ONCE_INIT;

static int asks_for_itself(void *arg, void **value)
{
    (void)arg;
    CHECK_EQ(blitz_once_get(&once, asks_for_itself, NULL, value, BLITZ_FOREVER), -EDEADLK);
    return -EIO;
}

static int makes_seven(void *arg, void **value)
{
    *value = arg;
    return 0;
}

static int ask_in_circles(void *arg)
{
    static int seven = 7;
    static blitz_lazy lazy = BLITZ_LAZY_INIT(makes_seven, &seven);
    void *value = NULL;
    (void)arg;
    blitz_once_init(&once);
    CHECK_EQ(blitz_once_try_get(&once, &value), -EAGAIN);
    CHECK_EQ(blitz_once_get(&once, asks_for_itself, NULL, &value, BLITZ_FOREVER), -EIO);
    CHECK_EQ(blitz_once_set(&once, &seven), 0);
    CHECK_EQ(blitz_once_set(&once, NULL), -EEXIST);
    CHECK_EQ(blitz_once_get(&once, asks_for_itself, NULL, &value, BLITZ_FOREVER), 0);
    CHECK(value == &seven);
    CHECK_EQ(blitz_lazy_get(&lazy, &value, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_lazy_get(&lazy, &value, 0), 0);
    CHECK(value == &seven);
    return 0;
}

TEST(sync_scenes, a_recursive_get_of_a_value_in_the_making_returns_an_error)
{
    t_on_each(ask_in_circles, NULL, 0);
}

static int makes_after_a_nested_wait(void *arg, void **value)
{
    static blitz_once inner = BLITZ_ONCE_INIT;
    *value = arg;
    return blitz_once_get(&inner, makes_seven, arg, NULL, BLITZ_FOREVER);
}

static int gets_nested(void *arg)
{
    void *value = NULL;
    int err = blitz_once_get(arg, makes_after_a_nested_wait, &mutex, &value, BLITZ_FOREVER);
    CHECK(err != 0 || value == &mutex);
    return err;
}

static int nest_in_one_proc(void *arg)
{
    enum { N = 20 };
    blitz_once outer = BLITZ_ONCE_INIT;
    blitz_task *t[N];
    (void)arg;
    for (int i = 0; i < N; i++)
        CHECK_EQ(blitz_spawn(gets_nested, &outer, NULL, &t[i]), 0);
    scene_join(t, N);
    return 0;
}

/* Bug class 29: waits inside of waits use up no thread; one proc is enough for any depth. */
TEST(sync_scenes, bug_29_values_made_of_values_need_no_second_thread)
{
    t_on_each(nest_in_one_proc, NULL, 0);
}

/* ---- gates ---- */

TEST(sync_scenes, an_event_stays_set_until_it_is_reset)
{
    enum { MANY = 20 };
    static struct asker a[MANY];
    blitz_event e = BLITZ_EVENT_INIT;
    CHECK(!blitz_event_is_set(&e));
    CHECK_EQ(blitz_event_wait(&e, 0), -ETIMEDOUT);
    for (int i = 0; i < MANY; i++) {
        blitz_event_wait_future_init(&a[i].f, &e);
        asker_begin(&a[i]);
        CHECK(!asker_ask(&a[i]));
    }
    blitz_event_set(&e);
    blitz_event_set(&e);
    blitz_event_reset(&e);
    CHECK_EQ(blitz_event_wait(&e, 0), -ETIMEDOUT);
    for (int i = 0; i < MANY; i++)
        CHECK(asker_ask(&a[i])); /* the waiters when it was set */
    blitz_event_set(&e);
    CHECK_EQ(blitz_event_wait(&e, 0), 0);
    CHECK(blitz_event_is_set(&e));
}

TEST(sync_scenes, a_latch_and_a_group_refuse_to_count_below_nothing)
{
    blitz_latch l = BLITZ_LATCH_INIT(3);
    blitz_wait_group g = BLITZ_WAIT_GROUP_INIT;
    CHECK_EQ(blitz_latch_count_down(&l, 4), -EINVAL);
    CHECK_EQ(blitz_latch_left(&l), 3);
    CHECK_EQ(blitz_latch_count_down(&l, 0), 0);
    CHECK_EQ(blitz_latch_wait(&l, 0), -ETIMEDOUT);
    CHECK_EQ(blitz_latch_count_down(&l, 3), 0);
    CHECK_EQ(blitz_latch_wait(&l, 0), 0);
    CHECK_EQ(blitz_wait_group_wait(&g, 0), 0);
    CHECK_EQ(blitz_wait_group_done(&g), -EINVAL);
    CHECK_EQ(blitz_wait_group_add(&g, UINT32_MAX), 0);
    CHECK_EQ(blitz_wait_group_add(&g, 1), -EOVERFLOW);
    CHECK_EQ(blitz_wait_group_left(&g), UINT32_MAX);
}

TEST(sync_scenes, a_barrier_for_one_or_none_does_not_wait)
{
    blitz_barrier one = BLITZ_BARRIER_INIT(1), none = BLITZ_BARRIER_INIT(0);
    CHECK_EQ(blitz_barrier_wait(&one, 0), BLITZ_BARRIER_LEADER);
    CHECK_EQ(blitz_barrier_wait(&none, 0), BLITZ_BARRIER_LEADER);
}

/* ---- a gate is freed by the first released waiter ---- */

enum { CROWD_MAX = 100 };

enum gate_kind { A_LATCH, AN_EVENT, A_GROUP, GATE_KINDS };

union gate {
    blitz_latch latch;
    blitz_event event;
    blitz_wait_group group;
};

/* Waiters of one gate, in futures with wakers of their own. */
struct gate_crowd {
    union gate *gate;
    int count;
    bool frees; /* the first waker that fires ends all waits and frees the gate */
    struct gate_waiter {
        struct gate_crowd *crowd;
        blitz_sync_future f;
        int rung;
        bool is_over;
    } waiter[CROWD_MAX];
};

static void gate_waiter_nothing(void *arg)
{
    (void)arg;
}

static bool gate_waiter_ask(struct gate_waiter *w);

static void gate_waiter_wake(void *arg)
{
    struct gate_waiter *w = arg;
    struct gate_crowd *c = w->crowd;
    w->rung++;
    if (!c->frees)
        return;
    c->frees = false;
    CHECK(gate_waiter_ask(w));
    for (int i = 0; i < c->count; i++)
        if (!c->waiter[i].is_over)
            c->waiter[i].f.future.ops->cancel(&c->waiter[i].f.future);
    memset(c->gate, 0xa5, sizeof *c->gate);
    free(c->gate);
}

static bool gate_waiter_ask(struct gate_waiter *w)
{
    static const blitz_waker_ops ops = {gate_waiter_nothing, gate_waiter_wake, gate_waiter_wake,
                                        gate_waiter_nothing};
    blitz_waker waker = {&ops, w};
    w->is_over = w->f.future.ops->poll(&w->f.future, &waker) == BLITZ_READY;
    return w->is_over;
}

static void gate_crowd_gather(struct gate_crowd *c, enum gate_kind kind, int count, bool frees)
{
    c->gate = malloc(sizeof *c->gate);
    c->count = count;
    c->frees = frees;
    CHECK_NOT_NULL(c->gate);
    if (kind == A_LATCH)
        blitz_latch_init(&c->gate->latch, 1);
    if (kind == AN_EVENT)
        blitz_event_init(&c->gate->event);
    if (kind == A_GROUP) {
        blitz_wait_group_init(&c->gate->group);
        CHECK_EQ(blitz_wait_group_add(&c->gate->group, 1), 0);
    }
    for (int i = 0; i < count; i++) {
        struct gate_waiter *w = &c->waiter[i];
        *w = (struct gate_waiter){.crowd = c};
        if (kind == A_LATCH)
            blitz_latch_wait_future_init(&w->f, &c->gate->latch);
        if (kind == AN_EVENT)
            blitz_event_wait_future_init(&w->f, &c->gate->event);
        if (kind == A_GROUP)
            blitz_wait_group_wait_future_init(&w->f, &c->gate->group);
        CHECK(!gate_waiter_ask(w));
    }
}

static void gate_crowd_release(struct gate_crowd *c, enum gate_kind kind)
{
    if (kind == A_LATCH)
        CHECK_EQ(blitz_latch_count_down(&c->gate->latch, 1), 0);
    if (kind == AN_EVENT)
        blitz_event_set(&c->gate->event);
    if (kind == A_GROUP)
        CHECK_EQ(blitz_wait_group_done(&c->gate->group), 0);
}

/* The opener must not touch the gate once a released waiter can free it, however many wait. */
TEST(sync_scenes, bug_54_the_first_released_waiter_may_free_the_gate)
{
    static struct gate_crowd c;
    for (int kind = 0; kind < GATE_KINDS; kind++)
        for (int count = 1; count <= CROWD_MAX; count++) {
            t_watch("kind %d, %d waiters", kind, count);
            gate_crowd_gather(&c, (enum gate_kind)kind, count, true);
            gate_crowd_release(&c, (enum gate_kind)kind);
            CHECK(!c.frees);
        }
}

/* Each waiter is woken once, if those that are woken poll. */
TEST(sync_scenes, a_gate_wakes_every_waiter_that_it_let_out)
{
    static struct gate_crowd c;
    for (int kind = 0; kind < GATE_KINDS; kind++)
        for (int count = 1; count <= CROWD_MAX; count++) {
            int over = 0, before;
            gate_crowd_gather(&c, (enum gate_kind)kind, count, false);
            gate_crowd_release(&c, (enum gate_kind)kind);
            do {
                before = over;
                for (int i = 0; i < count; i++)
                    if (c.waiter[i].rung == 1 && !c.waiter[i].is_over)
                        over += gate_waiter_ask(&c.waiter[i]);
            } while (over > before);
            CHECK_EQ(over, count);
            free(c.gate);
        }
}
