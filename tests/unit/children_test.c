/* Children that only their proc knows (proc/fresh.c): joined in any order, run in theirs, and never hidden for long. */
#include "harness.h"

#include "blitz.h"
#include "proc/enter.h"
#include "proc/fresh.h"
#include "proc/state.h"
#include "support/on_each.h"

enum { MANY = 3000 };

static int returns_its_number(void *arg)
{
    return (int)(intptr_t)arg;
}

static int yields_and_returns_its_number(void *arg)
{
    blitz_yield();
    return (int)(intptr_t)arg;
}

static blitz_task *child(int (*fn)(void *), int number)
{
    blitz_task *t = NULL;
    CHECK_EQ(blitz_spawn(fn, (void *)(intptr_t)number, NULL, &t), 0);
    return t;
}

static void joins(blitz_task *t, int number)
{
    int result = -1;
    CHECK_EQ(blitz_task_join(t, &result, BLITZ_FOREVER), 0);
    CHECK_EQ(result, number);
}

/* Joins `count` children in steps of `step`, which has no factor in common with the count. */
static void joins_in_steps(int (*fn)(void *), int count, int step)
{
    static blitz_task *t[MANY];
    for (int i = 0; i < count; i++)
        t[i] = child(fn, i);
    for (int i = 0; i < count; i++) {
        int n = (int)((long)i * step % count);
        joins(t[n], n);
    }
}

static int joins_in_many_orders(void *arg)
{
    static const int counts[] = {1, 2, 3, 10, 127, 128, 129, 131, 1021, 1025, MANY - 1};
    (void)arg;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        int count = counts[i];
        joins_in_steps(returns_its_number, count, 1);
        joins_in_steps(returns_its_number, count, count > 1 ? count - 1 : 1); /* backwards */
        joins_in_steps(returns_its_number, count, count % 7 != 0 ? 7 : 1);
        joins_in_steps(yields_and_returns_its_number, count, 1);
    }
    return 0;
}

/* Some are in the `next` slot, some in the list, in the ring, in the injector; some have ended. */
TEST(children, are_joined_in_any_order)
{
    t_on_each(joins_in_many_orders, NULL, 0);
}

static int tree(void *arg)
{
    int depth = (int)(intptr_t)arg, sum = 1;
    blitz_task *t[8];
    if (depth == 0)
        return 1;
    for (int i = 0; i < 8; i++)
        t[i] = child(tree, depth - 1);
    for (int i = 0; i < 8; i++) {
        int part = 0;
        CHECK_EQ(blitz_task_join(t[i], &part, BLITZ_FOREVER), 0);
        sum += part;
    }
    return sum;
}

static int counts_a_tree(void *arg)
{
    (void)arg;
    CHECK_EQ(tree((void *)(intptr_t)5), 37449);
    return 0;
}

TEST(children, of_children_are_all_counted)
{
    t_on_each(counts_a_tree, NULL, 0);
}

/* ---- the order ---- */

static int order[MANY], ran;

static int notes_its_number(void *arg)
{
    order[ran++] = (int)(intptr_t)arg;
    return 0;
}

static int lets_them_run(void *arg)
{
    int count = *(int *)arg, last = -1;
    ran = 0;
    for (int i = 0; i < count; i++)
        CHECK_EQ(blitz_spawn(notes_its_number, (void *)(intptr_t)i, NULL, NULL), 0);
    while (ran < count)
        blitz_yield();
    for (int i = 0; i < count; i++) {
        if (order[i] == count - 1)
            continue; /* the newest is in the `next` slot and may run before */
        CHECK(order[i] > last);
        last = order[i];
    }
    return 0;
}

/* On one proc no other worker can change the order. */
TEST(children, run_in_the_order_of_their_spawn)
{
    static const int counts[] = {1, 2, 5, 128, 129, 200, 1000};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        blitz_runtime_opts opts = {.procs = 1};
        int count = counts[i];
        CHECK_EQ(blitz_run(lets_them_run, &count, &opts), 0);
    }
}

/* ---- no child is hidden behind its parent ---- */

static _Atomic int go, begun;

static int is_busy(void *arg)
{
    (void)arg;
    begun++;
    while (!go)
        ;
    return 0;
}

static _Atomic int done;

static int counts_itself(void *arg)
{
    (void)arg;
    done++;
    return 0;
}

/* The other proc is busy while the children are spawned, so their parent may keep them. Then it has nothing to do, and
 * the parent computes until they have run. */
static int computes_for_long(void *arg)
{
    int count = *(int *)arg;
    blitz_task *other = child(is_busy, 0);
    while (!begun)
        blitz_yield();
    for (int i = 0; i < count; i++)
        CHECK_EQ(blitz_spawn(counts_itself, NULL, NULL, NULL), 0);
    go = 1;
    while (done < count)
        ; /* it does not call the runtime */
    CHECK_EQ(blitz_task_join(other, NULL, BLITZ_FOREVER), 0);
    return 0;
}

TEST(children, behind_a_parent_that_computes_run_elsewhere)
{
    static const int counts[] = {1, 2, 3, 100, 128, 300};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        blitz_runtime_opts opts = {.procs = 2};
        int count = counts[i];
        go = begun = done = 0;
        CHECK_EQ(blitz_run(computes_for_long, &count, &opts), 0);
    }
}

/* ---- cancels, and second handles ---- */

static int waits_for_a_cancel(void *arg)
{
    (void)arg;
    return blitz_sleep(1000 * BLITZ_S);
}

static int cancels_children(void *arg)
{
    enum { FEW = 20 };
    blitz_task *t[FEW];
    (void)arg;
    for (int i = 0; i < FEW; i++)
        t[i] = child(waits_for_a_cancel, i);
    for (int i = 0; i < FEW; i++)
        blitz_task_cancel(t[i]);
    for (int i = 0; i < FEW; i++)
        joins(t[i], -ECANCELED);
    return 0;
}

TEST(children, that_were_cancelled_before_their_join_see_it)
{
    t_on_each(cancels_children, NULL, 0);
}

static int has_two_handles(void *arg)
{
    enum { FEW = 200 };
    blitz_task *t[FEW], *again[FEW];
    (void)arg;
    for (int i = 0; i < FEW; i++) {
        t[i] = child(returns_its_number, i);
        again[i] = blitz_task_ref(t[i]);
    }
    for (int i = 0; i < FEW; i++)
        joins(t[i], i);
    for (int i = 0; i < FEW; i++)
        joins(again[i], i);
    return 0;
}

TEST(children, with_two_handles_are_joined_twice)
{
    t_on_each(has_two_handles, NULL, 0);
}

/* ---- tasks that a timer starts ---- */

static bz_atomic(int) rung;

static void rings(void *bell)
{
    bz_fetch_add_relaxed((bz_atomic(int) *)bell, 1); /* relaxed: a count */
}

static void nothing(void *bell)
{
    (void)bell;
}

static int sleeps_until(void *when)
{
    return blitz_sleep_until(*(blitz_deadline *)when);
}

/* Fresh tasks are published by a duty. So while there are any, one is due. */
static void has_its_duty(void)
{
    uint32_t was;
    struct bz_machine *m = bz_enter(&was);
    if (m != NULL && bz_fresh_count(m->proc) > 0)
        CHECK_LE((int32_t)(uint32_t)bz_load_relaxed(&m->proc->tick), 1); /* relaxed: ours */
    bz_leave(was);
}

enum { TIMERS = 3 };

/* The wakers are foreign: each is called in a task of its own, which begins in the list of this proc. */
static int is_rung_by_timers(void *arg)
{
    static const blitz_waker_ops ops = {nothing, rings, rings, nothing};
    blitz_waker w = {&ops, (void *)&rung};
    (void)arg;
    for (uint64_t n = t_scaled(40); n > 0; n--) {
        blitz_sleep_future f[TIMERS];
        blitz_deadline when = blitz_after(BLITZ_MS);
        blitz_task *t;
        int due = 0;
        bz_store_relaxed(&rung, 0); /* relaxed: this task */
        for (int i = 0; i < TIMERS; i++) {
            blitz_sleep_until_future_init(&f[i], when);
            due += f[i].future.ops->poll(&f[i].future, &w) == BLITZ_PENDING;
        }
        CHECK_EQ(blitz_spawn(sleeps_until, &when, NULL, &t), 0);
        while (bz_load_relaxed(&rung) < due || !blitz_task_is_done(t)) { /* relaxed: a count */
            blitz_yield();
            has_its_duty();
        }
        CHECK_EQ(blitz_task_join(t, NULL, BLITZ_FOREVER), 0);
        for (int i = 0; i < TIMERS; i++)
            CHECK_EQ(blitz_await(&f[i].future, BLITZ_FOREVER), 0);
    }
    return 0;
}

TEST(children, of_timers_wait_for_no_second_duty)
{
    CHECK_EQ(blitz_run(is_rung_by_timers, NULL, &(blitz_runtime_opts){.procs = 1}), 0);
}
