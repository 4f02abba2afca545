/*
 * preempt_stress.c - more endless loops than may burn, in code of every kind, and a runtime that goes on.
 *
 * What must hold: every loop gets on, again and again, though most of them are past the limit; so do
 * tasks that do not loop; what they compute is right; and all come to an end when told.
 * BLITZ_PREEMPT_S in the environment: how many seconds each case burns.
 */
#include "harness.h"

#include <stdlib.h>
#include <string.h>

#include "support/hogs.h"

enum { HOGS = 12, BURNING = 2, KEPT = 32, LAPS = 3 };

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

/* ---- what they do ---- */

static int spins(void *arg)
{
    t_hog_burn(arg);
    return 0;
}

/* Blocks of many sizes, each filled with its own byte and looked at before it goes. */
static BLITZ_PREEMPTIBLE int allocates(void *arg)
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

static BLITZ_PREEMPTIBLE unsigned fib(unsigned n)
{
    return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

static BLITZ_PREEMPTIBLE int recurses(void *arg)
{
    struct t_hog *h = arg;
    while (!is_told(h)) {
        CHECK_EQ(fib(18), 2584u);
        got_on(h);
    }
    return 0;
}

static BLITZ_PREEMPTIBLE int compare(const void *a, const void *b)
{
    return (*(const int *)a > *(const int *)b) - (*(const int *)a < *(const int *)b);
}

/* Code of a library that calls back into ours. */
static BLITZ_PREEMPTIBLE int sorts(void *arg)
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
        CHECK_EQ(blitz_task_join(t, BLITZ_FOREVER, NULL), 0);
        (void)!blitz_sleep(BLITZ_MS);
    }
    return 0;
}

static uint64_t burn_ns(void)
{
    const char *asked = getenv("BLITZ_PREEMPT_S");
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
    uint64_t stopped = 0, refused = 0, late = 0;
    for (unsigned i = 0; i < bz_machines_count(rt); i++) {
        struct bz_preempt_seat *seat = &bz_machines_at(rt, i)->seat;
        stopped += bz_load_relaxed(&seat->stopped);
        refused += bz_load_relaxed(&seat->refused);
        late += seat->late;
    }
    t_note("%llu of %llu stops within 20 ms of a turn's begin, %llu refused, %llu beats",
           (unsigned long long)(stopped - late), (unsigned long long)stopped,
           (unsigned long long)refused, atomic_load(&beats));
    CHECK_GT(stopped, (uint64_t)0);
}

static void burn(int (*const *fn)(void *), unsigned kinds, unsigned procs)
{
    static blitz_config config = {.preempt = 1, .burning_max = BURNING};
    blitz_runtime *rt;
    blitz_task *task[HOGS], *beater;
    config.procs = procs;
    int err = blitz_runtime_new(&config, &rt);
    if (err == -ENOSYS)
        t_skip("threads cannot be interrupted in this build");
    CHECK_EQ(err, 0);
    CHECK_EQ(blitz_preempt_register_marked(), 0);
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
        CHECK_EQ(blitz_task_join(task[i], BLITZ_FOREVER, NULL), 0);
    atomic_store(&is_over, true);
    CHECK_EQ(blitz_task_join(beater, BLITZ_FOREVER, NULL), 0);
    note_stops((struct bz_runtime *)rt);
    CHECK_EQ(blitz_runtime_shutdown(rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref(rt), 0);
}

static int (*const spinning[])(void *) = {spins};
static int (*const allocating[])(void *) = {allocates};
static int (*const recursive[])(void *) = {recurses};
static int (*const mixed[])(void *) = {spins, allocates, recurses, sorts};

/* Twelve loops where two may burn: without stopping them, ten would never begin. */
TEST_LIMIT(preempt, loops_past_the_limit_all_get_on, 300)
{
    burn(spinning, 1, 2);
}

/* Nobody is stopped in malloc: its lock would stop all the others, and the monitor. */
TEST_LIMIT(preempt, code_that_allocates_is_stopped_outside_malloc, 300)
{
    burn(allocating, 1, 2);
}

TEST_LIMIT(preempt, recursive_code_is_stopped_and_right, 300)
{
    burn(recursive, 1, 2);
}

TEST_LIMIT(preempt, loops_of_all_kinds_on_one_worker, 300)
{
    burn(mixed, 4, 1);
}

/* ---- shutdown ---- */

static void until_one_is_stopped(struct bz_runtime *rt)
{
    for (unsigned i = 0;; i++) {
        unsigned count = bz_machines_count(rt);
        if (count > 0 && bz_preempt_is_stopped(bz_machines_at(rt, i % count)))
            return;
        sched_yield();
    }
}

static BLITZ_PREEMPTIBLE int spins_until_cancelled(void *arg)
{
    struct t_hog *h = arg;
    while (!blitz_is_cancelled())
        got_on(h);
    return 0;
}

/* Those that are stopped when the end comes have to hear of it. */
TEST_LIMIT(preempt, a_shutdown_reaches_loops_that_are_stopped, 120)
{
    for (uint64_t round = 0; round < t_scaled(20); round++) {
        blitz_runtime *rt;
        blitz_config config = {.procs = 1, .preempt = 1, .burning_max = 1};
        int err = blitz_runtime_new(&config, &rt);
        if (err == -ENOSYS)
            t_skip("threads cannot be interrupted in this build");
        CHECK_EQ(err, 0);
        CHECK_EQ(blitz_preempt_register_marked(), 0);
        for (int i = 0; i < 3; i++) {
            atomic_init(&hog[i].turns, 0);
            CHECK_EQ(blitz_spawn(spins_until_cancelled, &hog[i], &(blitz_spawn_opts){.runtime = rt},
                                 NULL),
                     0);
        }
        if (round % 4 != 0)
            until_one_is_stopped((struct bz_runtime *)rt);
        CHECK_EQ(blitz_runtime_shutdown(rt, BLITZ_FOREVER), 0);
        CHECK_EQ(blitz_runtime_unref(rt), 0);
    }
}
