/* Stackless tasks written with the macros: awaits, results, refused arguments. */
#include "harness.h"
#include "support/on_each.h"

#include <stdlib.h>

#include "base/bz_atomic.h"

static int join(blitz_task *t)
{
    int result = -1;
    CHECK_EQ(blitz_task_join(t, &result, BLITZ_FOREVER), 0);
    return result;
}

#define SPAWN(fn, state, out) CHECK_EQ(blitz_spawn_poll(fn, &(state), sizeof(state), NULL, out), 0)

/* ---- sleeping ---- */

struct naps {
    blitz_frame frame;
    blitz_sleep_future nap;
    blitz_deadline until;
    int left;
};

static blitz_poll naps(void *state, blitz_cx *cx)
{
    struct naps *me = state;
    int rc;
    BLITZ_BEGIN(&me->frame, cx);
    while (me->left-- > 0) {
        me->until = blitz_after(200 * BLITZ_US);
        BLITZ_SLEEP(rc, &me->nap, 200 * BLITZ_US);
        if (rc != 0)
            BLITZ_RETURN(rc);
        CHECK_GE(blitz_now(), me->until);
    }
    BLITZ_END(77);
}

static int many_nap(void *arg)
{
    enum { N = 100 };
    blitz_task *t[N];
    (void)arg;
    for (int i = 0; i < N; i++) {
        struct naps s = {.left = 1 + i % 5};
        SPAWN(naps, s, &t[i]);
    }
    for (int i = 0; i < N; i++)
        CHECK_EQ(join(t[i]), 77);
    return 0;
}

TEST(frame, sleepers_wake_and_never_early)
{
    t_on_each(many_nap, NULL, 0);
}

static blitz_poll sleeps_for_ever(void *state, blitz_cx *cx)
{
    struct naps *me = state;
    int rc;
    BLITZ_BEGIN(&me->frame, cx);
    BLITZ_SLEEP(rc, &me->nap, UINT64_MAX);
    BLITZ_END(rc);
}

static int cancel_sleepers(void *arg)
{
    enum { N = 30 };
    blitz_task *t[N];
    (void)arg;
    for (int i = 0; i < N; i++) {
        struct naps s = {.left = 1 << 30};
        SPAWN(i % 2 ? naps : sleeps_for_ever, s, &t[i]);
    }
    for (int i = 0; i < N; i++) {
        if (i % 4 == 0)
            blitz_yield();
        blitz_task_cancel(t[i]);
    }
    for (int i = 0; i < N; i++)
        CHECK_EQ(join(t[i]), -ECANCELED);
    return 0;
}

TEST(frame, a_cancel_ends_an_await)
{
    t_on_each(cancel_sleepers, NULL, 0);
}

struct careful {
    blitz_frame frame;
    blitz_sleep_future nap;
    int shielded;
    bz_atomic(int) *is_asked;
};

static blitz_poll is_careful(void *state, blitz_cx *cx)
{
    struct careful *me = state;
    int rc;
    BLITZ_BEGIN(&me->frame, cx);
    blitz_shield();
    do
        BLITZ_SLEEP(me->shielded, &me->nap, 100 * BLITZ_US);
    while (me->shielded == 0 && !bz_load_acquire(me->is_asked)); /* the cancel is sent */
    BLITZ_SLEEP(rc, &me->nap, 100 * BLITZ_US);
    CHECK_EQ(me->shielded, 0);
    CHECK_EQ(rc, 0);
    blitz_unshield();
    BLITZ_SLEEP(rc, &me->nap, BLITZ_S * 3600);
    BLITZ_END(rc);
}

static int cancel_the_careful(void *arg)
{
    bz_atomic(int) is_asked;
    struct careful s = {.is_asked = &is_asked};
    blitz_task *t;
    (void)arg;
    bz_atomic_init(&is_asked, 0);
    SPAWN(is_careful, s, &t);
    blitz_yield();
    blitz_task_cancel(t);
    bz_store_release(&is_asked, 1); /* for the poll */
    return join(t);
}

/* A shield lasts from poll to poll; the cancel waits behind it. */
TEST(frame, a_shield_holds_a_cancel_off_between_polls)
{
    t_on_each(cancel_the_careful, NULL, -ECANCELED);
}

/* ---- joining ---- */

static int seven(void *arg)
{
    (void)arg;
    (void)!blitz_sleep(300 * BLITZ_US);
    return 7;
}

struct parent {
    blitz_frame frame;
    blitz_join_future child;
    blitz_task *task;
    int depth;
};

static blitz_poll joins(void *state, blitz_cx *cx)
{
    struct parent *me = state;
    int rc;
    BLITZ_BEGIN(&me->frame, cx);
    if (me->depth == 0) {
        CHECK_EQ(blitz_spawn(seven, NULL, NULL, &me->task), 0);
    } else {
        struct parent next = {.depth = me->depth - 1};
        SPAWN(joins, next, &me->task);
    }
    BLITZ_JOIN(rc, &me->child, me->task);
    CHECK_EQ(rc, 0);
    BLITZ_END(me->child.value + 1);
}

static int chain_of_joins(void *arg)
{
    struct parent s = {.depth = 20};
    blitz_task *t;
    (void)arg;
    SPAWN(joins, s, &t);
    return join(t);
}

TEST(frame, stackless_tasks_join_each_other_and_fibers)
{
    t_on_each(chain_of_joins, NULL, 7 + 21);
}

static int for_ever(void *arg)
{
    (void)arg;
    return blitz_sleep_until(BLITZ_FOREVER);
}

static blitz_poll joins_for_ever(void *state, blitz_cx *cx)
{
    struct parent *me = state;
    int rc;
    BLITZ_BEGIN(&me->frame, cx);
    CHECK_EQ(blitz_spawn(for_ever, NULL, NULL, &me->task), 0);
    BLITZ_JOIN(rc, &me->child, me->task);
    CHECK_EQ(rc, 0); /* it has ended, by our cancel passed on */
    BLITZ_END(me->child.value);
}

static int cancel_the_parent(void *arg)
{
    (void)arg;
    for (int i = 0; i < 20; i++) {
        struct parent s = {.depth = 0};
        blitz_task *t;
        SPAWN(joins_for_ever, s, &t);
        for (int k = 0; k < i % 4; k++)
            blitz_yield();
        blitz_task_cancel(t);
        CHECK_EQ(join(t), -ECANCELED);
    }
    return 0;
}

TEST(frame, a_cancel_is_passed_on_through_a_join)
{
    t_on_each(cancel_the_parent, NULL, 0);
}

static blitz_poll joins_nothing(void *state, blitz_cx *cx)
{
    struct parent *me = state;
    int rc;
    BLITZ_BEGIN(&me->frame, cx);
    BLITZ_JOIN(rc, &me->child, NULL);
    CHECK_EQ(rc, -EINVAL);
    BLITZ_JOIN(rc, &me->child, blitz_task_current());
    CHECK_EQ(rc, -EDEADLK);
    BLITZ_END(3);
}

static int join_mistakes(void *arg)
{
    struct parent s = {.depth = 0};
    blitz_task *t;
    (void)arg;
    SPAWN(joins_nothing, s, &t);
    return join(t);
}

TEST(frame, a_join_of_null_or_of_itself_returns_an_error)
{
    t_on_each(join_mistakes, NULL, 3);
}

/* ---- deadlines ---- */

struct impatient {
    blitz_frame frame;
    blitz_join_future child;
    blitz_sleep_future timer;
    blitz_deadline until;
    blitz_task *task;
};

static blitz_poll gives_up(void *state, blitz_cx *cx)
{
    struct impatient *me = state;
    int rc;
    BLITZ_BEGIN(&me->frame, cx);
    CHECK_EQ(blitz_spawn(for_ever, NULL, NULL, &me->task), 0);
    me->until = blitz_after(300 * BLITZ_US);
    blitz_task_join_future_init(&me->child, me->task);
    BLITZ_AWAIT_UNTIL(rc, &me->child.future, &me->timer, me->until);
    CHECK_EQ(rc, -ETIMEDOUT);
    CHECK_GE(blitz_now(), me->until);
    blitz_task_cancel(me->task); /* the handle is still ours */
    blitz_task_join_future_init(&me->child, me->task);
    BLITZ_AWAIT_UNTIL(rc, &me->child.future, &me->timer, BLITZ_FOREVER);
    CHECK_EQ(rc, 0);
    CHECK_EQ(me->child.value, -ECANCELED);
    BLITZ_AWAIT_UNTIL(rc, &me->child.future, &me->timer, 0); /* ready stays ready */
    BLITZ_END(rc);
}

static int many_give_up(void *arg)
{
    enum { N = 10 };
    blitz_task *t[N];
    (void)arg;
    for (int i = 0; i < N; i++) {
        struct impatient s = {.task = NULL};
        SPAWN(gives_up, s, &t[i]);
    }
    for (int i = 0; i < N; i++)
        CHECK_EQ(join(t[i]), 0);
    return 0;
}

TEST(frame, an_await_gives_up_at_its_deadline_and_can_be_tried_again)
{
    t_on_each(many_give_up, NULL, 0);
}

/* ---- turns and conditions ---- */

static blitz_poll yields(void *state, blitz_cx *cx)
{
    struct naps *me = state;
    BLITZ_BEGIN(&me->frame, cx);
    for (; me->left > 0; me->left--)
        BLITZ_YIELD();
    BLITZ_END(5);
}

static int many_yield(void *arg)
{
    enum { N = 100 };
    blitz_task *t[N];
    (void)arg;
    for (int i = 0; i < N; i++) {
        struct naps s = {.left = 100};
        SPAWN(yields, s, &t[i]);
    }
    for (int i = 0; i < N; i++)
        CHECK_EQ(join(t[i]), 5);
    return 0;
}

TEST(frame, a_hundred_take_turns)
{
    t_on_each(many_yield, NULL, 0);
}

struct gate {
    bz_atomic(int) has_waker, is_open;
    blitz_waker waker;
};

struct at_gate {
    blitz_frame frame;
    struct gate *gate;
};

static blitz_poll through_the_gate(void *state, blitz_cx *cx)
{
    struct at_gate *me = state;
    BLITZ_BEGIN(&me->frame, cx);
    me->gate->waker = blitz_waker_clone(cx->waker);
    bz_store_release(&me->gate->has_waker, 1);           /* the waker is there */
    BLITZ_WAIT_FOR(bz_load_acquire(&me->gate->is_open)); /* the opener's store */
    BLITZ_END(6);
}

static int open_the_gate(void *arg)
{
    struct gate gate = {0};
    struct at_gate s = {.gate = &gate};
    blitz_task *t;
    (void)arg;
    SPAWN(through_the_gate, s, &t);
    while (!bz_load_acquire(&gate.has_waker)) /* the poll's store */
        blitz_yield();
    blitz_waker_wake_by_ref(&gate.waker); /* spurious: it checks and waits again */
    bz_store_release(&gate.is_open, 1);   /* for the poll */
    blitz_waker_wake(&gate.waker);
    return join(t);
}

TEST(frame, waits_for_a_condition_through_wakes_for_nothing)
{
    t_on_each(open_the_gate, NULL, 6);
}

/* A break outside of any loop leaves for the end. */
static blitz_poll breaks(void *state, blitz_cx *cx)
{
    struct naps *me = state;
    BLITZ_BEGIN(&me->frame, cx);
    BLITZ_YIELD();
    if (me->left == 1)
        break;
    me->left = 1000;
    BLITZ_END(me->left);
}

static int break_out(void *arg)
{
    struct naps s = {.left = 1};
    blitz_task *t;
    (void)arg;
    SPAWN(breaks, s, &t);
    return join(t);
}

TEST(frame, a_break_leaves_for_the_end)
{
    t_on_each(break_out, NULL, 1);
}

/* ---- frames inside frames ---- */

struct inner {
    blitz_frame frame;
    blitz_sleep_future nap;
};

struct outer {
    blitz_frame frame;
    struct inner inner;
    int rounds;
};

static blitz_poll inner(struct inner *me, blitz_cx *cx)
{
    int rc;
    BLITZ_BEGIN(&me->frame, cx);
    BLITZ_SLEEP(rc, &me->nap, 50 * BLITZ_US);
    BLITZ_END(rc);
}

static blitz_poll outer(void *state, blitz_cx *cx)
{
    struct outer *me = state;
    BLITZ_BEGIN(&me->frame, cx);
    for (me->rounds = 0; me->rounds < 4; me->rounds++) {
        BLITZ_WAIT_FOR(inner(&me->inner, cx) == BLITZ_READY);
        if (cx->result != 0)
            BLITZ_RETURN(cx->result);
    }
    BLITZ_END(me->rounds);
}

static int run_outer(void *arg)
{
    struct outer s = {.rounds = 0};
    blitz_task *t;
    (void)arg;
    SPAWN(outer, s, &t);
    return join(t);
}

/* A frame that has ended begins again: a function can be called in a loop. */
TEST(frame, functions_with_frames_nest_and_repeat)
{
    t_on_each(run_outer, NULL, 4);
}

/* ---- pinned futures ---- */

struct pinned {
    blitz_future future;
    int asked_to_stop;
    blitz_waker waker;
};

static blitz_poll pinned_poll(blitz_future *f, const blitz_waker *waker)
{
    struct pinned *p = (struct pinned *)f;
    if (p->asked_to_stop == 2)
        return BLITZ_READY;
    if (p->asked_to_stop == 1) { /* completes a little later */
        p->asked_to_stop = 2;
        blitz_waker_wake_by_ref(waker);
    }
    return BLITZ_PENDING;
}

static void pinned_cancel(blitz_future *f)
{
    struct pinned *p = (struct pinned *)f;
    CHECK_EQ(p->asked_to_stop, 0); /* once */
    p->asked_to_stop = 1;
}

struct with_pinned {
    blitz_frame frame;
    struct pinned pinned;
    blitz_sleep_future timer;
};

static blitz_poll awaits_pinned(void *state, blitz_cx *cx)
{
    struct with_pinned *me = state;
    int rc;
    BLITZ_BEGIN(&me->frame, cx);
    BLITZ_AWAIT_UNTIL(rc, &me->pinned.future, &me->timer, blitz_after(100 * BLITZ_US));
    CHECK_EQ(me->pinned.asked_to_stop, 2);
    BLITZ_END(rc);
}

static int give_a_pinned_one_up(void *arg)
{
    static const blitz_future_ops ops = {"pinned", BLITZ_PINNED, pinned_poll, pinned_cancel, NULL};
    (void)arg;
    for (int cancel = 0; cancel < 2; cancel++) {
        struct with_pinned s = {.pinned = {.future = {&ops}}};
        blitz_task *t;
        SPAWN(awaits_pinned, s, &t);
        if (cancel)
            blitz_task_cancel(t);
        int result = join(t);
        CHECK(result == -ETIMEDOUT || (cancel && result == -ECANCELED));
    }
    return 0;
}

TEST(frame, a_pinned_future_is_asked_until_it_is_ready)
{
    t_on_each(give_a_pinned_one_up, NULL, 0);
}

/* ---- mistakes ---- */

static blitz_poll awaits_inside_a_switch(void *state, blitz_cx *cx)
{
    struct naps *me = state;
    BLITZ_BEGIN(&me->frame, cx);
    switch (me->left) {
    default:
        BLITZ_YIELD();
    }
    BLITZ_END(0);
}

static void run_mistake(void *arg)
{
    struct naps s = {.left = 1};
    blitz_cx cx = {0};
    (void)arg;
    awaits_inside_a_switch(&s, &cx);
    awaits_inside_a_switch(&s, &cx);
}

static void run_garbage(void *arg)
{
    struct naps s = {.frame = {12345678, 0}};
    blitz_cx cx = {0};
    (void)arg;
    naps(&s, &cx);
}

TEST(frame, a_frame_that_leads_nowhere_aborts_and_says_why)
{
    CHECK_ABORTS(run_mistake, NULL, "does the await stand inside a switch?");
    CHECK_ABORTS(run_garbage, NULL, "naps: its frame says line 12345678");
}

TEST(frame, is_eight_bytes)
{
    CHECK_EQ(sizeof(blitz_frame), 8u);
}
