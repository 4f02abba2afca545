/*
 * A signal at every single point of a run, one after the other: receivers of every form wait for it, arm, look and
 * give up. A signal that is lost between the look and the sleep is a deadlock of the simulation.
 */
#include "support/sched_sim.h"

#include <signal.h>

#include "sim/sim_signals.h"

static bz_os_word raise_now; /* poked */
static blitz_signal *first, *second, *third;
static unsigned procs;

static int receives(void *arg)
{
    blitz_signal_event got;
    CHECK_EQ(blitz_signal_recv(arg, &got, BLITZ_FOREVER), 0);
    CHECK_EQ(got.signal, SIGUSR1);
    CHECK_EQ(got.count, 1);
    return 0;
}

/* It gives up before the signal or not; what it has not taken is there for the next. */
static int is_impatient(void *arg)
{
    blitz_signal_event got;
    int rc = blitz_signal_recv(arg, &got, blitz_after(20 * BLITZ_US));
    CHECK(rc == 0 || rc == -ETIMEDOUT);
    return rc == 0 ? 0 : receives(arg);
}

struct polled {
    blitz_frame frame;
    blitz_signal_future f;
    blitz_sleep_future nap;
    blitz_race race;
    blitz_child child[2];
};

/* In a race with a sleep, until the signal wins. */
static blitz_poll races(void *state, blitz_cx *cx)
{
    struct polled *me = state;
    int rc;
    BLITZ_BEGIN(&me->frame, cx);
    do {
        blitz_signal_recv_future_init(&me->f, first);
        blitz_sleep_until_future_init(&me->nap, blitz_after(30 * BLITZ_US));
        me->child[0] = (blitz_child){.future = &me->f.future};
        me->child[1] = (blitz_child){.future = &me->nap.future};
        (void)!blitz_race_init(&me->race, me->child, 2);
        BLITZ_AWAIT(rc, &me->race.future);
        CHECK_GE(rc, 0);
    } while (me->f.result != 0);
    CHECK_EQ(me->f.event.signal, SIGUSR1);
    BLITZ_END(0);
}

/* One receiver for each listener: `first` by a stackless task, `second` by a fiber that is impatient, `third` by one
 * that looks once and waits: it needs the wake-up. */
static int waiters(void *arg)
{
    struct polled state = {0};
    blitz_task *t[3];
    (void)arg;
    CHECK_EQ(blitz_spawn(receives, third, NULL, &t[2]), 0);
    CHECK_EQ(blitz_spawn_poll(races, &state, sizeof state, NULL, &t[0]), 0);
    CHECK_EQ(blitz_spawn(is_impatient, second, NULL, &t[1]), 0);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
    return 0;
}

static void raises(void *arg)
{
    const struct bz_os *os = arg;
    while (bz_load_acquire(&raise_now) == 0) /* os.h, sleep words */
        bz_os_wait(os, &raise_now, 0, BZ_OS_FOREVER);
    CHECK_EQ(bz_sim_raise(SIGUSR1), 1);
}

static void play(const struct bz_os *os, void *arg)
{
    struct bz_os_thread raiser;
    struct bz_runtime *rt;
    (void)arg;
    bz_sim_signals_begin();
    CHECK_EQ(blitz_signal_listen(&(int){SIGUSR1}, 1, NULL, &first), 0);
    CHECK_EQ(blitz_signal_listen((int[]){SIGUSR2, SIGUSR1}, 2, NULL, &second), 0);
    CHECK_EQ(blitz_signal_listen(&(int){SIGUSR1}, 1, NULL, &third), 0);
    rt = sim_begin(os, procs);
    CHECK_EQ(bz_os_thread_start(os, &raiser, NULL, raises, (void *)os), 0);
    CHECK_EQ(blitz_runtime_block_on((blitz_runtime *)rt, waiters, NULL), 0);
    CHECK_EQ(bz_os_thread_join(os, &raiser), 0);
    blitz_signal_unref(
        first); /* before the end: the thread of the service may hold a waker until then */
    blitz_signal_unref(second);
    blitz_signal_unref(third);
    sim_end(rt);
    CHECK_EQ(bz_sim_signals_end(), 0);
}

static uint64_t play_with_signal_at(uint64_t seed, uint64_t k)
{
    struct bz_sim_result r;
    bz_store_relaxed(&raise_now, 0); /* relaxed: no task runs */
    t_watch("simulation seed 0x%llx, %u procs, signal at point %llu", (unsigned long long)seed,
            procs, (unsigned long long)k);
    struct bz_sim_config config = {.seed = seed, .poke = &raise_now, .poke_at = k};
    CHECK_EQ(bz_sim_run(&config, play, NULL, &r), 0);
    return r.steps;
}

/* Before the listeners exist the raiser only starts later: its word is set by then. */
TEST_LIMIT(signal_sim, bug_34_a_signal_at_every_point_reaches_every_listener, 300)
{
    uint64_t runs = 0;
    for (int i = 0; i < 6; i++) {
        uint64_t seed = t_random(), points = t_scaled(400);
        procs = 1 + (unsigned)(seed % 3);
        for (uint64_t k = 1; k <= points; k++, runs++)
            (void)play_with_signal_at(seed, k);
    }
    t_note("%llu runs", (unsigned long long)runs);
}

/* ---- listeners that come and go ---- */

static int comes_and_goes(void *arg)
{
    (void)arg;
    for (int i = 0; i < 4; i++) {
        blitz_signal *s;
        blitz_signal_event got;
        CHECK_EQ(blitz_signal_listen(&(int){SIGUSR1}, 1, NULL, &s), 0);
        CHECK_EQ(bz_sim_raise(SIGUSR1), 1); /* sent after it listens: not missed */
        CHECK_EQ(blitz_signal_recv(s, &got, BLITZ_FOREVER), 0);
        CHECK_GE(got.count, 1);
        blitz_signal_unref(s);
        blitz_yield();
    }
    return 0;
}

static int crowd(void *arg)
{
    blitz_task *t[3];
    (void)arg;
    for (int i = 0; i < 3; i++)
        CHECK_EQ(blitz_spawn(comes_and_goes, NULL, NULL, &t[i]), 0);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
    return 0;
}

static void play_crowd(const struct bz_os *os, void *arg)
{
    (void)arg;
    bz_sim_signals_begin();
    struct bz_runtime *rt = sim_begin(os, 2);
    CHECK_EQ(blitz_runtime_block_on((blitz_runtime *)rt, crowd, NULL), 0);
    sim_end(rt);
    CHECK_EQ(bz_sim_signals_end(), 0);
}

/* The thread of the service starts and ends beside listeners that begin. */
TEST_LIMIT(signal_sim, listeners_come_and_go_and_miss_nothing, 300)
{
    t_sim_each_seed(400, play_crowd, NULL);
}
