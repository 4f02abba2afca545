/*
 * turns_stress.c - more endless loops than CPUs, in code of every kind, beside a working runtime.
 *
 * Invariants: every loop makes progress repeatedly, although most of them are stopped at any time.
 * So do tasks that do not loop. Their results are correct, and all end when told. BLITZ_TURNS_S in
 * the environment: how many seconds each case burns.
 */
#include "harness.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "support/hogs.h"

enum { HOGS = 12, KEPT = 32, LAPS = 3 };

static struct t_hog hog[HOGS];
static atomic_ullong beats; /* of tasks that do not loop */
static atomic_bool is_over;

static bool is_told(struct t_hog *h)
{
    return atomic_load_explicit(&h->is_over, memory_order_relaxed);
}

static void got_on(struct t_hog *h)
{
    atomic_fetch_add_explicit(&h->turns, 1, memory_order_relaxed);
}

/* ---- bodies of the loops ---- */

static int spins(void *arg)
{
    t_hog_burn(arg);
    return 0;
}

/* Blocks of many sizes, each filled with its own byte and looked at before it goes. */
static int allocates(void *arg)
{
    struct t_hog *h = arg;
    unsigned char *kept[KEPT] = {NULL};
    size_t size[KEPT] = {0};
    uint32_t dice = (uint32_t)(uintptr_t)arg | 1;
    while (!is_told(h)) {
        dice = dice * 1664525u + 1013904223u;
        unsigned i = dice >> 27;
        for (size_t at = 0; at < size[i]; at++)
            CHECK_EQ(kept[i][at], (unsigned char)i);
        free(kept[i]);
        size[i] = 1 + (dice >> 8) % 2000;
        kept[i] = malloc(size[i]);
        CHECK_NOT_NULL(kept[i]);
        memset(kept[i], (int)i, size[i]);
        got_on(h);
    }
    for (unsigned i = 0; i < KEPT; i++)
        free(kept[i]);
    return 0;
}

static unsigned fib(unsigned n)
{
    return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

static int recurses(void *arg)
{
    struct t_hog *h = arg;
    while (!is_told(h)) {
        CHECK_EQ(fib(18), 2584u);
        got_on(h);
    }
    return 0;
}

static int compare(const void *a, const void *b)
{
    return (*(const int *)a > *(const int *)b) - (*(const int *)a < *(const int *)b);
}

/* Code of a library that calls back into ours. */
static int sorts(void *arg)
{
    struct t_hog *h = arg;
    int v[500];
    while (!is_told(h)) {
        for (int i = 0; i < 500; i++)
            v[i] = i * 7919 % 500;
        qsort(v, 500, sizeof *v, compare);
        for (int i = 0; i < 500; i++)
            CHECK_EQ(v[i], i);
        got_on(h);
    }
    return 0;
}

/* ---- beside them ---- */

static int beat(void *arg)
{
    (void)arg;
    atomic_fetch_add(&beats, 1);
    return 0;
}

static int beats_all_the_time(void *arg)
{
    (void)arg;
    while (!atomic_load(&is_over)) {
        blitz_task *t;
        CHECK_EQ(blitz_spawn(beat, NULL, NULL, &t), 0);
        CHECK_EQ(blitz_task_join(t, NULL, BLITZ_FOREVER), 0);
        (void)!blitz_sleep(BLITZ_MS);
    }
    return 0;
}

static uint64_t burn_ns(void)
{
    const char *asked = getenv("BLITZ_TURNS_S");
    return asked != NULL ? strtoull(asked, NULL, 0) * BLITZ_S : t_scaled(2000) * BLITZ_MS;
}

static void each_gets_on(void)
{
    for (int lap = 0; lap < LAPS; lap++)
        for (int i = 0; i < HOGS; i++) {
            t_watch("lap %d, hog %d", lap, i);
            t_hog_until_it_runs(&hog[i]);
        }
    t_watch("beats");
    unsigned long long before = atomic_load(&beats);
    while (atomic_load(&beats) < before + 10)
        sched_yield();
}

static void note_stops(struct bz_runtime *rt)
{
    uint64_t stopped = 0, refused = 0;
    for (unsigned i = 0; i < bz_machines_count(rt); i++) {
        struct bz_turn *turn = &bz_machines_at(rt, i)->turn;
        stopped += bz_load_relaxed(&turn->stopped);
        refused += bz_load_relaxed(&turn->refused);
    }
    t_note("%llu stops, %llu refused, %llu thaws, %llu beats", (unsigned long long)stopped,
           (unsigned long long)refused,
           (unsigned long long)bz_load_relaxed(&rt->turns.thaws), /* relaxed: a statistic */
           atomic_load(&beats));
}

static void burn(int (*const *fn)(void *), unsigned kinds, unsigned procs)
{
    blitz_runtime *rt;
    blitz_task *task[HOGS], *beater;
    CHECK_EQ(blitz_runtime_new(&(blitz_runtime_opts){.procs = procs}, &rt), 0);
    blitz_spawn_opts opts = {.runtime = rt};
    atomic_store(&is_over, false);
    CHECK_EQ(blitz_spawn(beats_all_the_time, NULL, &opts, &beater), 0);
    for (unsigned i = 0; i < HOGS; i++) {
        atomic_init(&hog[i].turns, 0);
        atomic_init(&hog[i].is_over, false);
        CHECK_EQ(blitz_spawn(fn[i % kinds], &hog[i], &opts, &task[i]), 0);
    }
    uint64_t until = blitz_now() + burn_ns();
    do
        each_gets_on();
    while (blitz_now() < until);
    for (unsigned i = 0; i < HOGS; i++)
        atomic_store(&hog[i].is_over, true);
    for (unsigned i = 0; i < HOGS; i++)
        CHECK_EQ(blitz_task_join(task[i], NULL, BLITZ_FOREVER), 0);
    atomic_store(&is_over, true);
    CHECK_EQ(blitz_task_join(beater, NULL, BLITZ_FOREVER), 0);
    note_stops((struct bz_runtime *)rt);
    CHECK_EQ(blitz_runtime_shutdown(rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref(rt), 0);
}

static int (*const spinning[])(void *) = {spins};
static int (*const allocating[])(void *) = {allocates};
static int (*const recursive[])(void *) = {recurses};
static int (*const mixed[])(void *) = {spins, allocates, recurses, sorts};

TEST_LIMIT(turns, endless_loops_all_get_on, 300)
{
    burn(spinning, 1, 2);
}

/* A thread that is stopped in malloc would block all other threads, and the monitor. */
TEST_LIMIT(turns, code_that_allocates_is_stopped_outside_malloc, 300)
{
    burn(allocating, 1, 2);
}

TEST_LIMIT(turns, recursive_code_is_stopped_and_right, 300)
{
    burn(recursive, 1, 2);
}

TEST_LIMIT(turns, loops_of_all_kinds_on_one_worker, 300)
{
    burn(mixed, 4, 1);
}

/* ---- shutdown ---- */

static bool can_be_stopped(struct bz_runtime *rt)
{
    return !bz_turns_are_refused(&rt->turns);
}

static void until_one_is_stopped(struct bz_runtime *rt)
{
    for (unsigned i = 0; can_be_stopped(rt); i++) {
        unsigned count = bz_machines_count(rt);
        if (count > 0 && bz_halt_is_stopped(&bz_machines_at(rt, i % count)->turn.halt))
            return;
        sched_yield();
    }
}

static int spins_until_cancelled(void *arg)
{
    struct t_hog *h = arg;
    while (!blitz_is_cancelled())
        got_on(h);
    return 0;
}

enum { MANY = 8 };

static blitz_runtime *with_hogs(int (*fn)(void *), blitz_task *t[MANY])
{
    blitz_runtime *rt;
    CHECK_EQ(blitz_runtime_new(&(blitz_runtime_opts){.procs = 2}, &rt), 0);
    for (int i = 0; i < MANY; i++) {
        atomic_init(&hog[i].turns, 0);
        atomic_init(&hog[i].is_over, false);
        CHECK_EQ(blitz_spawn(fn, &hog[i], &(blitz_spawn_opts){.runtime = rt, .name = "hog"}, &t[i]),
                 0);
    }
    return rt;
}

/* Hogs that are stopped when the end comes have to hear of it. */
TEST_LIMIT(turns, a_shutdown_reaches_loops_that_are_stopped, 120)
{
    for (uint64_t round = 0; round < t_scaled(20); round++) {
        blitz_task *t[MANY];
        blitz_runtime *rt = with_hogs(spins_until_cancelled, t);
        for (int i = 0; i < MANY; i++)
            blitz_task_detach(t[i]);
        if (round % 4 != 0)
            until_one_is_stopped((struct bz_runtime *)rt);
        CHECK_EQ(blitz_runtime_shutdown(rt, BLITZ_FOREVER), 0);
        CHECK_EQ(blitz_runtime_unref(rt), 0);
    }
}

/* A shutdown that times out names the hogs, and the runtime goes on; a second one succeeds. */
TEST_LIMIT(turns, a_shutdown_that_times_out_leaves_hogs_that_go_on, 120)
{
    for (uint64_t round = 0; round < t_scaled(5); round++) {
        blitz_task *t[MANY];
        blitz_runtime *rt = with_hogs(spins, t);
        until_one_is_stopped((struct bz_runtime *)rt);
        CHECK_EQ(blitz_runtime_shutdown(rt, blitz_after(BLITZ_MS)), -ETIMEDOUT);
        for (int i = 0; i < MANY; i++) {
            t_hog_until_it_runs(&hog[i]);
            atomic_store(&hog[i].is_over, true);
        }
        for (int i = 0; i < MANY; i++)
            CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
        CHECK_EQ(blitz_runtime_shutdown(rt, BLITZ_FOREVER), 0);
        CHECK_EQ(blitz_runtime_unref(rt), 0);
    }
}

TEST_LIMIT(turns, a_cancel_reaches_loops_that_are_stopped, 120)
{
    blitz_task *t[MANY];
    blitz_runtime *rt = with_hogs(spins_until_cancelled, t);
    until_one_is_stopped((struct bz_runtime *)rt);
    for (int i = 0; i < MANY; i++) {
        blitz_task_cancel(t[i]);
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
    }
    CHECK_EQ(blitz_runtime_shutdown(rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref(rt), 0);
}
