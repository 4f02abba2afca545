/*
 * Rates and delay queues in virtual time: what is to be had at a time is had then, and not before.
 */
#include "support/sched_sim.h"

enum { TAKERS = 5, EACH = 20, PER = 1000 * 1000, BURST = 3 };

/* ---- rate ---- */

struct takers {
    blitz_rate rate;
    blitz_instant began;
    uint64_t taken;
};

/* No taker has its permits before the time brings them. */
static int takes(void *arg)
{
    struct takers *t = arg;
    for (int i = 0; i < EACH; i++) {
        uint64_t n = 1 + (uint64_t)i % BURST;
        CHECK_EQ(blitz_rate_acquire(&t->rate, n, BLITZ_FOREVER), 0);
        uint64_t taken = __atomic_add_fetch(&t->taken, n, __ATOMIC_RELAXED);
        CHECK_LE(taken, BURST + (blitz_now() - t->began) / PER + 1);
    }
    return 0;
}

static int all_take(void *arg)
{
    struct takers t = {.began = blitz_now()};
    blitz_task *task[TAKERS];
    (void)arg;
    CHECK_EQ(blitz_rate_init(&t.rate, 1, PER, BURST), 0);
    for (int i = 0; i < TAKERS; i++)
        CHECK_EQ(blitz_spawn(takes, &t, NULL, &task[i]), 0);
    for (int i = 0; i < TAKERS; i++)
        CHECK_EQ(blitz_task_join(task[i], NULL, BLITZ_FOREVER), 0);
    uint64_t least = (t.taken - BURST) * PER, spent = blitz_now() - t.began;
    CHECK_GE(spent, least);
    CHECK_LE(spent,
             least + least / 100 + 10 * BLITZ_MS); /* and the bucket was never idle for long */
    return 0;
}

TEST(rate_sim, permits_come_steadily_and_none_too_early)
{
    for (uint64_t n = sim_seeds(100); n > 0; n--)
        sim_on_next(all_take, NULL, 0);
}

/* A third of a nanosecond is not lost: 3 permits in 10 ns, a million times. */
static int odd_rate(void *arg)
{
    blitz_rate r;
    (void)arg;
    CHECK_EQ(blitz_rate_init(&r, 3, 10, 3000000), 0);
    blitz_instant began = blitz_now();
    CHECK_EQ(blitz_rate_try_acquire(&r, 3000000), 0);
    CHECK_EQ(blitz_rate_acquire(&r, 3000000, BLITZ_FOREVER), 0);
    CHECK_GE(blitz_now() - began, 10u * 1000 * 1000);
    return 0;
}

TEST(rate_sim, a_rate_is_not_rounded)
{
    sim_on_procs(odd_rate, NULL, 0, 20, 1, 1);
}

/* ---- delay queue ---- */

struct delays {
    blitz_delay_queue *q;
    uint64_t when[EACH], received, last;
};

static int receives(void *arg)
{
    struct delays *d = arg;
    int i;
    while (blitz_delay_queue_recv(d->q, &i, BLITZ_FOREVER) == 0) {
        CHECK_GE(blitz_now(), d->when[i]);
        CHECK_LE(blitz_now(), d->when[i] + 2 * BLITZ_MS);
        __atomic_add_fetch(&d->received, 1, __ATOMIC_RELAXED);
    }
    return 0;
}

static int all_receive(void *arg)
{
    struct delays d = {.received = 0};
    blitz_task *task[3];
    struct bz_rng dice;
    bz_rng_init(&dice, *(uint64_t *)arg);
    CHECK_EQ(blitz_delay_queue_new(sizeof(int), &d.q), 0);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(blitz_spawn(receives, &d, NULL, &task[i]), 0);
    for (int i = 0; i < EACH; i++) {
        d.when[i] = blitz_after(bz_rng_below(&dice, 40) * BLITZ_MS);
        CHECK_EQ(blitz_delay_queue_insert(d.q, &i, d.when[i], NULL), 0);
        CHECK_EQ(blitz_sleep(bz_rng_below(&dice, 3) * BLITZ_MS), 0);
    }
    blitz_delay_queue_close(d.q);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(blitz_task_join(task[i], NULL, BLITZ_FOREVER), 0);
    CHECK_EQ(d.received, EACH);
    blitz_delay_queue_unref(d.q);
    return 0;
}

TEST(rate_sim, each_value_is_received_in_time_by_one_receiver)
{
    uint64_t seed;
    for (uint64_t n = sim_seeds(100); n > 0; n--) {
        seed = t_random();
        sim_on_next(all_receive, &seed, 0);
    }
}
