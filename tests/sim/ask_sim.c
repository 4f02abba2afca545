/*
 * Tasks that never wait and call blitz all the time, in virtual time: enough of them to use every
 * thread if they did not check the flag (proc/ask.h).
 */
#include "runtime/runtime.h"
#include "support/sched_sim.h"

/* More hogs than may burn at once: the other tasks of a proc run only if the hogs yield. */
enum { HOGS = 3, BURNING_MAX = 1, TURNS = 200, TURN_NS = 2 * 1000 * 1000 };

/* One has the proc for 10 ms, and is asked at the monitor's next look; there are three, and they may
 * stand before the ticker each time. */
enum { LATE_NS = 100 * 1000 * 1000 };

struct world {
    blitz_mutex mutex;
    blitz_rwlock rwlock;
    blitz_semaphore semaphore;
    blitz_chan *chan;
    uint64_t latest; /* of the ticker */
};

static int locks(void *arg)
{
    struct world *w = arg;
    for (int i = 0; i < TURNS; i++) {
        CHECK_EQ(blitz_mutex_lock(&w->mutex, BLITZ_FOREVER), 0);
        blitz_mutex_unlock(&w->mutex);
        bz_sim_burn(TURN_NS);
    }
    return 0;
}

static int reads_and_acquires(void *arg)
{
    struct world *w = arg;
    for (int i = 0; i < TURNS; i++) {
        CHECK_EQ(blitz_rwlock_read(&w->rwlock, BLITZ_FOREVER), 0);
        blitz_rwlock_read_unlock(&w->rwlock);
        bz_sim_burn(TURN_NS / 2);
        CHECK_EQ(blitz_semaphore_acquire(&w->semaphore, 1, BLITZ_FOREVER), 0);
        CHECK_EQ(blitz_semaphore_release(&w->semaphore, 1), 0);
        bz_sim_burn(TURN_NS / 2);
    }
    return 0;
}

static int sends_and_receives(void *arg)
{
    struct world *w = arg;
    for (int i = 0, got; i < TURNS; i++) {
        CHECK_EQ(blitz_chan_send(w->chan, &i, BLITZ_FOREVER), 0);
        bz_sim_burn(TURN_NS);
        CHECK_EQ(blitz_chan_recv(w->chan, &got, BLITZ_FOREVER), 0);
    }
    return 0;
}

static int ticks(void *arg)
{
    struct world *w = arg;
    uint64_t due = blitz_now();
    for (int i = 0; i < 5; i++) {
        due += 5 * BLITZ_MS;
        CHECK_EQ(blitz_sleep_until(due), 0);
        uint64_t late = blitz_now() - due;
        w->latest = late > w->latest ? late : w->latest;
    }
    return 0;
}

static int hogs_that_call(void *arg)
{
    static int (*const hog[HOGS])(void *) = {locks, reads_and_acquires, sends_and_receives};
    struct world w = {.mutex = BLITZ_MUTEX_INIT,
                      .rwlock = BLITZ_RWLOCK_INIT,
                      .semaphore = BLITZ_SEMAPHORE_INIT(1)};
    blitz_task *t[HOGS], *ticker;
    (void)arg;
    CHECK_EQ(blitz_chan_new(sizeof(int), 4, NULL, &w.chan), 0);
    CHECK_EQ(blitz_spawn(ticks, &w, NULL, &ticker), 0);
    for (int i = 0; i < HOGS; i++)
        CHECK_EQ(blitz_spawn(hog[i], &w, NULL, &t[i]), 0);
    CHECK_EQ(blitz_task_join(ticker, NULL, BLITZ_FOREVER), 0);
    for (int i = 0; i < HOGS; i++)
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
    blitz_chan_unref(w.chan);
    CHECK_LT(w.latest, LATE_NS);
    return 0;
}

static void play(const struct bz_os *os, void *arg)
{
    struct bz_runtime *rt;
    (void)arg;
    CHECK_EQ(bz_runtime_new(os, &(blitz_runtime_opts){.procs = 1, .burning_max = BURNING_MAX}, &rt),
             0);
    CHECK_EQ(blitz_runtime_block_on((blitz_runtime *)rt, hogs_that_call, NULL), 0);
    CHECK_EQ(blitz_runtime_shutdown((blitz_runtime *)rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref((blitz_runtime *)rt), 0);
}

/* Bug class 6: a loop of calls that need not wait is no hog. */
TEST(ask_sim, bug_06_tasks_that_call_and_never_wait_let_others_run)
{
    for (uint64_t i = 0, n = sim_seeds(40); i < n; i++) {
        uint64_t seed = sim_next_seed();
        t_watch("simulation seed 0x%llx", (unsigned long long)seed);
        CHECK_EQ(bz_sim_run(&(struct bz_sim_config){.seed = seed}, play, NULL, NULL), 0);
    }
}
