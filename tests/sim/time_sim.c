/*
 * Sleeps, timers and intervals in virtual time: exact and in order, under any other activity. Tasks
 * that only sleep take no virtual time of their own, so moments can be compared.
 */
#include "support/sched_sim.h"

#include "base/bz_atomic.h"

enum { MANY = 40 };

/* ---- sleeping ---- */

struct nap {
    uint64_t until;
    bool is_future;
};

static int naps(void *arg)
{
    struct nap *n = arg;
    blitz_sleep_future f;
    blitz_sleep_until_future_init(&f, n->until);
    CHECK_EQ(n->is_future ? blitz_await(&f.future, BLITZ_FOREVER) : blitz_sleep_until(n->until), 0);
    CHECK_GE(blitz_now(), n->until);
    return 0;
}

/* Short and long: none is early, at any starting level of the wheel. */
static int short_and_long(void *arg)
{
    static const uint64_t unit[] = {1, BLITZ_US, BLITZ_MS, 64 * BLITZ_MS, 4096 * BLITZ_MS, BLITZ_S};
    blitz_task *t[MANY];
    struct nap nap[MANY];
    struct bz_rng dice;
    bz_rng_init(&dice, *(uint64_t *)arg);
    for (int i = 0; i < MANY; i++) {
        uint64_t u = unit[bz_rng_below(&dice, BZ_ARRAY_LEN(unit))];
        nap[i].until = blitz_after(u * bz_rng_below(&dice, 70) + bz_rng_below(&dice, 3));
        nap[i].is_future = bz_rng_below(&dice, 2);
        CHECK_EQ(blitz_spawn(naps, &nap[i], NULL, &t[i]), 0);
    }
    for (int i = 0; i < MANY; i++)
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
    return 0;
}

TEST(time, no_sleep_is_early)
{
    uint64_t seed;
    for (uint64_t n = sim_seeds(200); n > 0; n--) {
        seed = t_random();
        sim_on_next(short_and_long, &seed, 0);
    }
}

/* Below a millisecond: none is rung early, and none a millisecond late. (In what order is the wheel's
 * test: who is rung first need not run first, and a waker that is not blitz's is a task's to wake.) */
struct rings {
    int rung;
};

struct ring {
    struct rings *all;
    uint64_t until;
};

static void ring_keep(void *ring)
{
    (void)ring;
}

static void ring_note(void *data)
{
    struct ring *r = data;
    CHECK_GE(blitz_now(), r->until);
    r->all->rung++;
}

static int under_a_millisecond(void *arg)
{
    static const blitz_waker_ops ops = {ring_keep, ring_note, ring_note, ring_keep};
    struct rings all = {.rung = 0};
    struct ring ring[MANY];
    blitz_sleep_future nap[MANY];
    (void)arg;
    uint64_t begin = blitz_after(100 * BLITZ_US);
    for (uint64_t i = 0; i < MANY; i++) {
        ring[i] = (struct ring){&all, begin + (i * 17 % MANY) * 20 * BLITZ_US};
        blitz_sleep_until_future_init(&nap[i], ring[i].until);
        blitz_waker w = {&ops, &ring[i]};
        if (nap[i].future.ops->poll(&nap[i].future, &w) == BLITZ_READY)
            ring_note(&ring[i]); /* arming the ones before it took until then */
    }
    CHECK_EQ(blitz_sleep_until(begin + 2 * BLITZ_MS), 0);
    CHECK_EQ(all.rung, MANY);
    return 0;
}

TEST(time, sleeps_under_a_millisecond_end_in_time)
{
    sim_on_procs(under_a_millisecond, NULL, 0, 200, 1, 1);
}

/* ---- bug class 12: the clock leaps ---- */

/* No expiry for a while, then all timers are due at once. */
static int sleeps_long(void *arg)
{
    uint64_t until = *(uint64_t *)arg;
    CHECK_EQ(blitz_sleep_until(until), 0);
    CHECK_GE(blitz_now(), until);
    return 0;
}

static int much_later(void *arg)
{
    blitz_task *t[MANY];
    uint64_t until[MANY];
    blitz_interval i;
    (void)arg;
    uint64_t begin = blitz_now();
    CHECK_EQ(blitz_interval_init(&i, begin, BLITZ_S, BLITZ_SKIP), 0);
    for (uint64_t n = 0; n < MANY; n++) {
        until[n] = begin + (n * 17 % MANY) * 2 * BLITZ_S; /* to 80 s */
        CHECK_EQ(blitz_spawn(sleeps_long, &until[n], NULL, &t[n]), 0);
    }
    blitz_yield();
    t_burn(100 * BLITZ_S);
    for (int n = 0; n < MANY; n++)
        CHECK_EQ(blitz_task_join(t[n], NULL, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_interval_tick(&i, BLITZ_FOREVER), 0);
    CHECK_GE(i.skipped, 99); /* left out in one step */
    return 0;
}

TEST(time, bug_12_a_leap_of_the_clock_fires_all_that_it_passes)
{
    sim_on_procs(much_later, NULL, 0, 20, 1, 1);
}

/* ---- bug class 11: moved or cancelled while it fires ---- */

struct storm {
    blitz_timer timer;
    bz_atomic(uint64_t) earliest; /* it must not ring before that */
    uint64_t seed;
};

static int waits_for_it(void *arg)
{
    struct storm *s = arg;
    for (int i = 0; i < 10; i++) {
        int err = blitz_await(&s->timer.future, blitz_after(50 * BLITZ_US));
        CHECK(err == 0 || err == -ETIMEDOUT);
        if (err == 0)
            CHECK_GE(blitz_now(), bz_load_relaxed(&s->earliest)); /* relaxed: a lower bound */
        if (err == 0)
            CHECK_EQ(blitz_sleep(10 * BLITZ_US), 0);
    }
    return 0;
}

static int moves_it(void *arg)
{
    struct storm *s = arg;
    struct bz_rng dice;
    bz_rng_init(&dice, s->seed);
    for (int i = 0; i < 40; i++) {
        blitz_timer_reset(&s->timer, blitz_after(bz_rng_below(&dice, 40) * BLITZ_US));
        if (bz_rng_below(&dice, 2))
            CHECK_EQ(blitz_sleep(bz_rng_below(&dice, 30) * BLITZ_US), 0);
    }
    blitz_timer_reset(&s->timer, BLITZ_FOREVER);
    return 0;
}

static int storm(void *arg)
{
    struct storm s = {.seed = *(uint64_t *)arg};
    blitz_task *w, *m;
    blitz_timer_init(&s.timer, BLITZ_FOREVER);
    bz_store_relaxed(&s.earliest, blitz_now()); /* relaxed: before they begin */
    CHECK_EQ(blitz_spawn(waits_for_it, &s, NULL, &w), 0);
    CHECK_EQ(blitz_spawn(moves_it, &s, NULL, &m), 0);
    CHECK_EQ(blitz_task_join(m, NULL, BLITZ_FOREVER), 0);
    blitz_timer_reset(&s.timer, 0); /* the last word: it must be heard */
    CHECK_EQ(blitz_task_join(w, NULL, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_await(&s.timer.future, BLITZ_FOREVER), 0);
    return 0;
}

TEST(timer, bug_11_moved_while_it_fires)
{
    for (uint64_t n = sim_seeds(400); n > 0; n--) {
        uint64_t seed = t_random();
        sim_on_next(storm, &seed, 0);
    }
}

/* The waiter waits for ever; moved later and later, then here and now: it is never lost. */
static int waits_once(void *arg)
{
    blitz_timer *t = arg;
    CHECK_EQ(blitz_await(&t->future, BLITZ_FOREVER), 0);
    CHECK_GE(blitz_now(), blitz_timer_when(t));
    return 0;
}

static int put_off(void *arg)
{
    blitz_timer t;
    blitz_task *w;
    (void)arg;
    uint64_t begin = blitz_now();
    blitz_timer_init(&t, begin + BLITZ_MS);
    CHECK_EQ(blitz_spawn(waits_once, &t, NULL, &w), 0);
    for (uint64_t i = 1; i <= 10; i++) {
        CHECK_EQ(blitz_sleep_until(begin + i * BLITZ_MS / 2), 0);
        blitz_timer_reset(&t, begin + i * BLITZ_MS / 2 + BLITZ_MS);
    }
    CHECK_EQ(blitz_task_is_done(w), 0); /* put off each time */
    CHECK_EQ(blitz_task_join(w, NULL, BLITZ_FOREVER), 0);
    return 0;
}

TEST(timer, one_that_is_put_off_rings_at_the_last_moment_it_was_given)
{
    sim_on_seeds(put_off, NULL, 0, 200);
}

/* ---- intervals ---- */

static int ticks(void *arg)
{
    blitz_interval i;
    blitz_missed missed = *(blitz_missed *)arg;
    uint64_t begin = blitz_now() + BLITZ_MS;
    CHECK_EQ(blitz_interval_init(&i, begin, BLITZ_MS, missed), 0);
    for (uint64_t n = 0; n < 5; n++) {
        CHECK_EQ(blitz_interval_tick(&i, BLITZ_FOREVER), 0);
        if (missed != BLITZ_DELAY)
            CHECK_EQ(i.ticked, begin + n * BLITZ_MS);
        CHECK_GE(blitz_now(), i.ticked);
    }
    uint64_t late = i.ticked + 7 * BLITZ_MS / 2; /* three and a half are missed */
    CHECK_EQ(blitz_sleep_until(late), 0);
    uint64_t was = i.ticked;
    CHECK_EQ(blitz_interval_tick(&i, BLITZ_FOREVER), 0);
    CHECK_EQ(i.ticked, missed == BLITZ_DELAY ? i.ticked : was + BLITZ_MS);
    switch (missed) {
    case BLITZ_BURST:
        CHECK_EQ(i.next.when, was + 2 * BLITZ_MS);
        break;
    case BLITZ_DELAY:
        CHECK_GE(i.next.when, late + BLITZ_MS);
        break;
    default:
        CHECK_EQ((i.next.when - begin) % BLITZ_MS, 0);
        CHECK_GE(i.next.when, late);
        CHECK_GE(i.skipped, 2);
    }
    CHECK_EQ(blitz_interval_tick(&i, 0), missed == BLITZ_BURST ? 0 : -ETIMEDOUT);
    CHECK_EQ(blitz_interval_tick(&i, BLITZ_FOREVER), 0); /* a tick not taken is not lost */
    return 0;
}

TEST(interval, ticks_are_exact_and_missed_ones_are_dealt_with)
{
    for (blitz_missed m = BLITZ_BURST; m <= BLITZ_SKIP; m++)
        sim_on_seeds(ticks, &m, 0, 60);
}
