/* Waits: their ends, their callers, refused ones; and cancels in every wait. */
#include "harness.h"

#include "blitz.h"
#include "support/box.h"
#include "support/death.h"
#include "support/on_each.h"
#include "support/tasks.h"

static struct box box;

static const struct bz_os *here(void)
{
    return &bz_os_system;
}

/* ---- woken ---- */

static int takes(void *arg)
{
    (void)arg;
    return box_take(&box, BLITZ_FOREVER);
}

static int takes_until(void *arg)
{
    return box_take(&box, *(blitz_deadline *)arg);
}

static int put_for_many(void *arg)
{
    enum { N = 300 };
    static blitz_task *t[N];
    (void)arg;
    box_init(&box, here());
    for (int i = 0; i < N; i++)
        CHECK_EQ(blitz_spawn(takes, NULL, NULL, &t[i]), 0);
    for (int i = 0; i < N; i++) {
        if (i % 7 == 0)
            blitz_yield();
        box_put(&box);
    }
    for (int i = 0; i < N; i++) {
        int result = 1;
        CHECK_EQ(blitz_task_join(t[i], &result, BLITZ_FOREVER), 0);
        CHECK_EQ(result, 0);
    }
    CHECK_EQ(box.values, 0);
    return 0;
}

/* Each value wakes one, whether it came before or after its taker. */
TEST(wait, every_wake_reaches_one_waiter)
{
    t_on_each(put_for_many, NULL, 0);
}

static int ping(void *arg)
{
    struct box *boxes = arg;
    for (int i = 0; i < 1000; i++) {
        box_put(&boxes[0]);
        CHECK_EQ(box_take(&boxes[1], BLITZ_FOREVER), 0);
    }
    return 0;
}

static int ping_pong(void *arg)
{
    struct box boxes[2];
    blitz_task *t;
    (void)arg;
    box_init(&boxes[0], here());
    box_init(&boxes[1], here());
    CHECK_EQ(blitz_spawn(ping, boxes, NULL, &t), 0);
    for (int i = 0; i < 1000; i++) {
        CHECK_EQ(box_take(&boxes[0], i % 2 ? BLITZ_FOREVER : blitz_after(BLITZ_S * 1000)), 0);
        box_put(&boxes[1]);
    }
    return blitz_task_join(t, NULL, BLITZ_FOREVER);
}

/* With a deadline in every other wait: armed and disarmed, and never fired. */
TEST(wait, two_tasks_wake_each_other_in_turn)
{
    t_on_each(ping_pong, NULL, 0);
}

/* ---- plain threads ---- */

static int sleeper; /* the thread that waits; 0: not yet */

static int put_for_a_thread(void *arg)
{
    (void)arg;
    CHECK(t_until_asleep(sleeper));
    box_put(&box);
    return 0;
}

TEST(wait, a_task_wakes_a_plain_thread)
{
    blitz_runtime *rt;
    blitz_task *t;
    box_init(&box, here());
    sleeper = t_tid();
    CHECK_EQ(blitz_runtime_new(NULL, &rt), 0);
    blitz_spawn_opts opts = {.runtime = rt};
    CHECK_EQ(blitz_spawn(put_for_a_thread, NULL, &opts, &t), 0);
    CHECK_EQ(box_take(&box, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_task_join(t, NULL, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_shutdown(rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref(rt), 0);
}

TEST(wait, a_plain_thread_waits_until_its_deadline)
{
    box_init(&box, here());
    uint64_t until = blitz_after(BLITZ_MS);
    CHECK_EQ(box_take(&box, until), -ETIMEDOUT);
    CHECK_GE(blitz_now(), until);
    CHECK_EQ(box_take(&box, 0), -ETIMEDOUT); /* the past: at once */
    CHECK(bz_list_is_empty(&box.takers));
}

/* ---- deadlines and cancels ---- */

static int time_out(void *arg)
{
    uint64_t until = blitz_after(BLITZ_MS);
    (void)arg;
    box_init(&box, here());
    CHECK_EQ(box_take(&box, until), -ETIMEDOUT);
    CHECK_GE(blitz_now(), until);
    CHECK_EQ(box_take(&box, 0), -ETIMEDOUT);
    CHECK(bz_list_is_empty(&box.takers));
    box_put(&box);
    /* it was not lost to a waiter that had left */
    CHECK_EQ(box_take(&box, blitz_after(BLITZ_S)), 0);
    return 0;
}

TEST(wait, a_waiter_that_times_out_takes_nothing_with_it)
{
    t_on_each(time_out, NULL, 0);
}

static int cancel_a_taker(void *arg)
{
    blitz_task *t;
    int result = 1;
    blitz_deadline until = *(blitz_deadline *)arg;
    box_init(&box, here());
    CHECK_EQ(blitz_spawn(takes_until, &until, NULL, &t), 0);
    blitz_yield();
    blitz_task_cancel(t);
    CHECK_EQ(blitz_task_join(t, &result, BLITZ_FOREVER), 0);
    CHECK_EQ(result, -ECANCELED);
    CHECK(bz_list_is_empty(&box.takers));
    return 0;
}

TEST(wait, a_cancel_ends_a_wait_with_and_without_a_deadline)
{
    blitz_deadline forever = BLITZ_FOREVER, far = blitz_after(1000 * BLITZ_S);
    t_on_each(cancel_a_taker, &forever, 0);
    t_on_each(cancel_a_taker, &far, 0);
}

static int takes_under_a_shield(void *arg)
{
    (void)arg;
    blitz_shield();
    CHECK_EQ(box_take(&box, BLITZ_FOREVER), 0); /* the cancel has come by now, or comes here */
    blitz_unshield();
    CHECK_EQ(box_take(&box, BLITZ_FOREVER), -ECANCELED);
    return 0;
}

static int cancel_under_a_shield(void *arg)
{
    blitz_task *t;
    (void)arg;
    box_init(&box, here());
    CHECK_EQ(blitz_spawn(takes_under_a_shield, NULL, NULL, &t), 0);
    blitz_yield();
    blitz_task_cancel(t);
    blitz_yield();
    box_put(&box);
    return blitz_task_join(t, NULL, BLITZ_FOREVER);
}

TEST(wait, under_a_shield_a_wait_goes_on)
{
    t_on_each(cancel_under_a_shield, NULL, 0);
}

/* ---- a chain of joins ---- */

static int joins_a_sleeper(void *arg)
{
    intptr_t depth = (intptr_t)arg;
    blitz_task *t;
    int result = 1;
    if (depth == 0)
        return blitz_sleep_until(BLITZ_FOREVER);
    CHECK_EQ(blitz_spawn(joins_a_sleeper, (void *)(depth - 1), NULL, &t), 0);
    CHECK_EQ(blitz_task_join(t, &result, BLITZ_FOREVER), 0);
    CHECK(blitz_is_cancelled());
    return result;
}

static int cancel_a_chain(void *arg)
{
    blitz_task *t;
    int result = 1;
    CHECK_EQ(blitz_spawn(joins_a_sleeper, arg, NULL, &t), 0);
    blitz_yield();
    blitz_task_cancel(t);
    CHECK_EQ(blitz_task_join(t, &result, BLITZ_FOREVER), 0);
    CHECK_EQ(result, -ECANCELED);
    return 0;
}

/* Deep, and without a recursion: claimed children stand on one stack, the others on theirs. */
TEST(wait, a_cancel_goes_down_a_chain_of_joins)
{
    t_on_each(cancel_a_chain, (void *)(intptr_t)200, 0);
}

/* ---- halves ---- */

static int cancel_in_halves(void *arg)
{
    enum { N = 50 };
    struct bz_task *t[N];
    (void)arg;
    box_init(&box, here());
    for (int i = 0; i < N; i++)
        CHECK_EQ(blitz_spawn(takes, NULL, NULL, (blitz_task **)&t[i]), 0);
    blitz_yield();
    for (int i = 0; i < N; i++) {
        CHECK(bz_task_cancel_mark(t[i]));
        CHECK(!bz_task_cancel_mark(t[i])); /* once */
    }
    bz_task_cancel_barrier(t[0]->rt);
    for (int i = 0; i < N; i++)
        bz_task_cancel_deliver(t[i]);
    for (int i = 0; i < N; i++) {
        int result = 1;
        CHECK_EQ(blitz_task_join((blitz_task *)t[i], &result, BLITZ_FOREVER), 0);
        CHECK_EQ(result, -ECANCELED);
    }
    return 0;
}

TEST(wait, many_are_cancelled_with_one_barrier)
{
    t_on_each(cancel_in_halves, NULL, 0);
}

/* ---- many timers ---- */

static int sleeps_until(void *arg)
{
    return blitz_sleep_until(*(blitz_deadline *)arg);
}

static int all_at_one_moment(void *arg)
{
    enum { N = 2000 };
    static blitz_task *t[N];
    blitz_deadline at = blitz_after(2 * BLITZ_MS);
    (void)arg;
    for (int i = 0; i < N; i++)
        CHECK_EQ(blitz_spawn(sleeps_until, &at, NULL, &t[i]), 0);
    for (int i = 0; i < N; i++) {
        int result = 1;
        CHECK_EQ(blitz_task_join(t[i], &result, BLITZ_FOREVER), 0);
        CHECK_EQ(result, 0);
    }
    CHECK_GE(blitz_now(), at);
    return 0;
}

TEST(wait, two_thousand_deadlines_at_one_moment)
{
    t_on_each(all_at_one_moment, NULL, 0);
}

/* ---- misuse ---- */

TEST(wait, a_second_wake_is_named)
{
    struct bz_wait w;
    bz_wait_begin(&w, here(), "test", BLITZ_FOREVER);
    CHECK(bz_wait_wake(&w, BZ_WAIT_WOKEN));
    DIES("(test): wake while woken", bz_wait_wake(&w, BZ_WAIT_WOKEN));
}

TEST(wait, check_reports_every_broken_invariant)
{
    struct bz_wait w;
    bz_wait_begin_sole(&w, here(), "test");
    bz_wait_check(&w);
    w.until = 7;
    DIES("only its waker may end it", bz_wait_check(&w));
    w.until = BLITZ_FOREVER;
    w.is_published = true;
    DIES("it must not be published", bz_wait_check(&w));
    bz_wait_begin(&w, here(), "test", 7);
    w.timer.proc = (struct bz_proc *)&w;
    DIES("a thread's timer", bz_wait_check(&w));
}

TEST(wait, outcomes_as_errors)
{
    CHECK_EQ(bz_wait_error(BZ_WAIT_TIMED_OUT), -ETIMEDOUT);
    CHECK_EQ(bz_wait_error(BZ_WAIT_CANCELLED), -ECANCELED);
    CHECK_EQ(bz_wait_error(BZ_WAIT_WOKEN), 0);
    CHECK_EQ(bz_wait_error(BZ_WAIT_WOKEN + 5), 0);
}
