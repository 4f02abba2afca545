/* Instants, durations and deadlines: arithmetic that neither wraps nor overflows. */
#include "harness.h"
#include "support/bell.h"
#include "support/on_each.h"

#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/rng.h"
#include "proc/state.h"

/* The 128-bit result, saturated to 64 bits. */
static uint64_t cut(__int128 x)
{
    if (x < 0)
        return 0;
    return x >= (__int128)BLITZ_FOREVER ? BLITZ_FOREVER : (uint64_t)x;
}

static uint64_t odd_number(struct bz_rng *dice)
{
    static const uint64_t edges[] = {
        0, 1, 2, BLITZ_MS, BLITZ_S, 1ull << 32, 1ull << 63, BLITZ_FOREVER - 1, BLITZ_FOREVER};
    uint64_t x = edges[bz_rng_below(dice, sizeof edges / sizeof edges[0])];
    switch (bz_rng_below(dice, 4)) {
    case 0:
        return x;
    case 1:
        return x + bz_rng_below(dice, 3) - 1;
    default:
        return bz_rng_next(dice) >> bz_rng_below(dice, 64);
    }
}

TEST(time, equals_the_result_of_wider_arithmetic)
{
    struct bz_rng dice;
    bz_rng_init(&dice, t_random());
    for (uint64_t n = t_scaled(200000); n > 0; n--) {
        uint64_t a = odd_number(&dice), b = odd_number(&dice);
        bool is_for_ever = a == BLITZ_FOREVER || b == BLITZ_FOREVER;
        t_watch("a %llu b %llu", (unsigned long long)a, (unsigned long long)b);
        CHECK_EQ(blitz_time_add(a, b), is_for_ever ? BLITZ_FOREVER : cut((__int128)a + b));
        CHECK_EQ(blitz_time_sub(a, b), a == BLITZ_FOREVER ? a : cut((__int128)a - b));
        CHECK_EQ(blitz_time_between(b, a), blitz_time_sub(a, b));
        if (!is_for_ever && (b == 0 || a <= (uint64_t)1 << 63))
            CHECK_EQ(blitz_duration_of(a, b), cut((__int128)a * b));
        if (is_for_ever)
            CHECK_EQ(blitz_duration_of(a, b), BLITZ_FOREVER);
        CHECK_EQ(blitz_deadline_first(a, b), a < b ? a : b);
    }
}

static int deadlines(void *arg)
{
    (void)arg;
    CHECK_EQ(blitz_deadline_left(BLITZ_FOREVER), BLITZ_FOREVER);
    CHECK_EQ(blitz_deadline_left(0), 0);
    CHECK_EQ(blitz_deadline_left(blitz_now()), 0);
    uint64_t left = blitz_deadline_left(blitz_after(3600 * BLITZ_S));
    CHECK(left > 0 && left <= 3600 * BLITZ_S);
    CHECK_EQ(blitz_after(BLITZ_FOREVER), BLITZ_FOREVER);
    uint64_t rough = blitz_now_roughly();
    CHECK_LE(rough, blitz_now());
    for (int i = 0; i < 1000; i++) {
        blitz_yield();
        rough = blitz_now_roughly();
        CHECK_LE(rough, blitz_now()); /* on whatever worker */
    }
    return 0;
}

TEST(time, the_remaining_time_of_a_deadline)
{
    t_on_each(deadlines, NULL, 0);
    deadlines(NULL);
}

/* ---- bug class 12 ---- */

enum { NAPS = 60, NAP_NS = 700000, STOP_EVERY = 20, STOP_NAPS = 12 };

static pid_t stopper;
static int told[2]; /* until when we want to be stopped */

/* A process that stops ours on request, until a given time, and then continues it. */
static void stop_us(void)
{
    pid_t us = getpid();
    uint64_t until;
    CHECK_EQ(pipe(told), 0);
    stopper = fork();
    CHECK_GE(stopper, 0);
    if (stopper != 0)
        return;
    close(told[1]);
    while (read(told[0], &until, sizeof until) == (ssize_t)sizeof until) {
        kill(us, SIGSTOP);
        while (blitz_now() < until)
            sched_yield();
        kill(us, SIGCONT);
    }
    _exit(0);
}

struct nap {
    uint64_t until, stop_until; /* 0: it does not have us stopped */
};

static int nap(void *arg)
{
    const struct nap *n = arg;
    CHECK_EQ(blitz_sleep_until(n->until), 0);
    CHECK_GE(blitz_now(), n->until);
    if (n->stop_until != 0)
        CHECK_EQ(write(told[1], &n->stop_until, sizeof n->stop_until), sizeof n->stop_until);
    return 0;
}

/* Before, during and after the stop. */
static int naps(void *arg)
{
    blitz_task *t[NAPS];
    struct nap n[NAPS];
    uint64_t begun = blitz_now();
    (void)arg;
    for (uint64_t i = 0; i < NAPS; i++) {
        n[i].until = begun + i * NAP_NS;
        n[i].stop_until = i % STOP_EVERY == 1 ? n[i].until + STOP_NAPS * NAP_NS : 0;
        CHECK_EQ(blitz_spawn(nap, &n[i], NULL, &t[i]), 0);
    }
    for (int i = 0; i < NAPS; i++)
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
    return 0;
}

/* Stopped and continued, as by a debugger or a suspend: every sleep ends, none is early. */
TEST(time, bug_12_a_process_that_is_stopped_and_continued_loses_no_sleep)
{
    int status = -1;
    stop_us();
    CHECK_EQ(blitz_run(naps, NULL, &(blitz_runtime_opts){.procs = 2}), 0);
    close(told[1]);
    close(told[0]);
    CHECK_EQ(waitpid(stopper, &status, 0), stopper);
    CHECK_EQ(status, 0);
}

/* ---- by hand ---- */

static blitz_poll ask(blitz_future *f, struct t_bell *b)
{
    blitz_waker w = t_bell_waker(b);
    return f->ops->poll(f, &w);
}

static int timer_by_hand(void *arg)
{
    struct t_bell bell = {0};
    blitz_timer t;
    (void)arg;
    blitz_timer_init(&t, BLITZ_FOREVER);
    CHECK_EQ(blitz_timer_when(&t), BLITZ_FOREVER);
    CHECK_EQ(ask(&t.future, &bell), BLITZ_PENDING);
    CHECK_EQ(ask(&t.future, &bell), BLITZ_PENDING);
    uint64_t hour = blitz_after(3600 * BLITZ_S);
    blitz_timer_reset(&t, hour); /* earlier: its waiter checks again */
    CHECK_EQ(bell.rung, 1);
    CHECK_EQ(ask(&t.future, &bell), BLITZ_PENDING);
    for (uint64_t i = 1; i < 1000; i++)
        blitz_timer_reset(&t, hour + i); /* later: no wake-up */
    CHECK_EQ(bell.rung, 1);
    blitz_timer_reset(&t, 0);
    CHECK_EQ(bell.rung, 2);
    CHECK_EQ(ask(&t.future, &bell), BLITZ_READY);
    CHECK_EQ(bell.holders, 0);
    blitz_timer_reset(&t, hour); /* and once more */
    CHECK_EQ(ask(&t.future, &bell), BLITZ_PENDING);
    t.future.ops->cancel(&t.future);
    CHECK_EQ(bell.holders, 0);
    return 0;
}

TEST(timer, is_moved_and_wakes_its_waiter_only_when_it_comes_nearer)
{
    t_on_each(timer_by_hand, NULL, 0);
}

static int interval_by_hand(void *arg)
{
    blitz_interval i;
    (void)arg;
    uint64_t now = blitz_now();
    CHECK_EQ(blitz_interval_init(&i, now, 0, BLITZ_SKIP), -EINVAL);
    CHECK_EQ(blitz_interval_init(&i, now, 1, (blitz_missed)3), -EINVAL);
    CHECK_EQ(blitz_interval_init(&i, now, BLITZ_FOREVER, BLITZ_BURST), 0);
    CHECK_EQ(blitz_interval_tick(&i, BLITZ_FOREVER), 0);
    CHECK_EQ(i.ticked, now);
    CHECK_EQ(blitz_interval_tick(&i, blitz_after(10 * BLITZ_US)), -ETIMEDOUT); /* one and no more */
    /* A tick of long ago: all missed ticks, or none, or the pattern restarts from here. */
    uint64_t past = now > BLITZ_S ? now - BLITZ_S : 0;
    CHECK_EQ(blitz_interval_init(&i, past, 100 * BLITZ_MS, BLITZ_BURST), 0);
    for (uint64_t n = 0; n < 10; n++) {
        CHECK_EQ(blitz_interval_tick(&i, 0), 0);
        CHECK_EQ(i.ticked, past + n * 100 * BLITZ_MS);
    }
    CHECK_EQ(blitz_interval_init(&i, past, 3600 * BLITZ_S, BLITZ_DELAY), 0);
    CHECK_EQ(blitz_interval_tick(&i, 0), 0);
    CHECK_GE(i.next.when, now + 3600 * BLITZ_S);
    CHECK_EQ(blitz_interval_init(&i, past, 300 * BLITZ_MS, BLITZ_SKIP), 0);
    CHECK_EQ(blitz_interval_tick(&i, 0), 0);
    CHECK_GE(i.skipped, 3);
    CHECK_EQ((i.next.when - past) % (300 * BLITZ_MS), 0);
    CHECK_EQ(i.next.when, past + (i.skipped + 1) * 300 * BLITZ_MS);
    blitz_interval_reset(&i);
    CHECK_GE(i.next.when, now + 300 * BLITZ_MS);
    return 0;
}

TEST(interval, handles_missed_ticks_by_its_policy)
{
    t_on_each(interval_by_hand, NULL, 0);
    interval_by_hand(NULL);
}

/* ---- a foreign waker that no task can wake ---- */

struct place {
    bz_atomic(int) rung;
    enum bz_where where;
};

static void keep_place(void *place)
{
    (void)place;
}

static void note_place(void *place)
{
    struct place *p = place;
    struct bz_machine *m = bz_machine_self(); /* NULL: the monitor fired the timer */
    p->where = m != NULL ? bz_retake_where(&m->taken) : BZ_IN_USER;
    bz_fetch_add_release(&p->rung, 1); /* partner: the load below */
}

static int rung_from_the_loop(void *arg)
{
    static const blitz_waker_ops ops = {keep_place, note_place, note_place, keep_place};
    struct place p = {.rung = 0};
    blitz_waker w = {&ops, &p};
    blitz_sleep_future nap;
    (void)arg;
    blitz_sleep_until_future_init(&nap, blitz_after(20 * BLITZ_MS));
    if (nap.future.ops->poll(&nap.future, &w) == BLITZ_READY)
        return 0;                         /* this thread stood still for so long */
    while (bz_load_acquire(&p.rung) == 0) /* partner: note_place */
        CHECK_EQ(blitz_sleep(BLITZ_MS), 0);
    CHECK_EQ(p.where, BZ_IN_USER);
    CHECK_EQ(nap.future.ops->poll(&nap.future, &w), BLITZ_READY);
    return 0;
}

/* The runtime has one task, and no other may be spawned. So the machine that fires the timer calls the waker itself. The
 * waker may take long: the monitor must be able to take the proc meanwhile. */
TEST(time, a_foreign_waker_without_a_task_is_called_outside_the_runtime)
{
    blitz_runtime_opts opts = {.procs = 1, .tasks_max = 1};
    CHECK_EQ(blitz_run(rung_from_the_loop, NULL, &opts), 0);
}
