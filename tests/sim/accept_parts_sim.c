/*
 * Requirements for parts of the scheduler, as scenes in virtual time: timers beside endless tasks,
 * the order in which a thief visits rings, a blocking call that delays no other task.
 */
#include "support/holder.h"
#include "support/sched_sim.h"

/* ---- timers beside a full queue ---- */

/* Atomic for readers: one thread runs at a time. */
static bz_atomic(unsigned) runs, runs_when_due;
static bz_atomic(uint64_t) due_ns;
static bz_atomic(int) is_over;

enum {
    RUN_NS = 1000,
    RUNNERS = 5,
    LOOK_RUNS = 32 + RUNNERS,      /* between two checks of the timers, and a round of the ring */
    GLOBAL_RUNS = 256 + LOOK_RUNS, /* if the monitor fired it: it stood in the injector */
    NAPS = 20
};

static int runs_for_ever(void *arg)
{
    (void)arg;
    while (!bz_load_relaxed(&is_over)) {
        bz_sim_burn(RUN_NS);
        unsigned n = bz_fetch_add_relaxed(&runs, 1);
        if (blitz_now() >= bz_load_relaxed(&due_ns) && bz_load_relaxed(&runs_when_due) == 0)
            bz_store_relaxed(&runs_when_due, n);
        blitz_yield();
    }
    return 0;
}

/* How many ran although the sleeper's time had come. */
static unsigned nap(void)
{
    uint64_t until = blitz_now() + 50 * RUN_NS;
    bz_store_relaxed(&due_ns, until);
    bz_store_relaxed(&runs_when_due, 0);
    CHECK_EQ(blitz_sleep_until(until), 0);
    unsigned since = bz_load_relaxed(&runs_when_due);
    return since != 0 ? bz_load_relaxed(&runs) - since : 0;
}

/* One proc, whose ring is never empty. */
static int naps_beside_a_busy_ring(void *arg)
{
    blitz_task *t[RUNNERS];
    unsigned *worst = arg, seldom = 0;
    bz_store_relaxed(&is_over, 0);
    for (int i = 0; i < RUNNERS; i++)
        CHECK_EQ(blitz_spawn(runs_for_ever, NULL, NULL, &t[i]), 0);
    for (int i = 0; i < NAPS; i++) {
        unsigned late = nap();
        *worst = late > *worst ? late : *worst;
        seldom += late > LOOK_RUNS;
    }
    bz_store_relaxed(&is_over, 1);
    for (int i = 0; i < RUNNERS; i++)
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
    CHECK_LE(*worst, GLOBAL_RUNS);
    CHECK_LT(seldom, NAPS / 2);
    return 0;
}

TEST(accept, timers_are_looked_at_however_busy_a_proc_keeps_itself)
{
    unsigned worst = 0;
    sim_on_procs(naps_beside_a_busy_ring, &worst, 0, 60, 1, 1);
    t_note("the longest wait was %u runs", worst);
}

/* ---- the first victim of a thief ---- */

enum { PROCS = 4, EACH = 20 };
static bz_atomic(int) first_victim; /* of the last proc; -1: it has not stolen yet */

static int says_where(void *arg)
{
    if (sim_proc() == PROCS - 1 && bz_load_relaxed(&first_victim) < 0)
        bz_store_relaxed(&first_victim, (int)(intptr_t)arg);
    bz_sim_burn(200 * BLITZ_US);
    return 0;
}

static int fills_its_ring(void *arg)
{
    blitz_task *t[EACH];
    for (int i = 0; i < EACH; i++)
        CHECK_EQ(blitz_spawn(says_where, arg, NULL, &t[i]), 0);
    for (int i = 0; i < EACH; i++)
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
    return 0;
}

/* All but the last proc have a full ring; the last has nothing. */
static int one_steals(void *arg)
{
    blitz_task *t[PROCS - 1];
    unsigned *victims = arg;
    bz_store_relaxed(&first_victim, -1);
    for (int i = 0; i < PROCS - 1; i++)
        CHECK_EQ(blitz_spawn(fills_its_ring, (void *)(intptr_t)i,
                             &(blitz_spawn_opts){.proc = BLITZ_ON_PROC(i)}, &t[i]),
                 0);
    for (int i = 0; i < PROCS - 1; i++)
        CHECK_EQ(blitz_task_join(t[i], NULL, blitz_after(BLITZ_S)), 0);
    int first = bz_load_relaxed(&first_victim);
    if (first >= 0)
        victims[first]++;
    return 0;
}

/* Thieves that begin at the same one convoy there. */
TEST(accept, a_thief_begins_anywhere)
{
    unsigned victims[PROCS - 1] = {0}, all = 0;
    sim_on_procs(one_steals, victims, 0, 200, PROCS, PROCS);
    for (int i = 0; i < PROCS - 1; i++)
        all += victims[i];
    t_note("of %u thieves %u, %u and %u began at each", all, victims[0], victims[1], victims[2]);
    for (int i = 0; i < PROCS - 1 && all >= 100;
         i++) /* with fewer seeds: no more than that it ran */
        CHECK_GE(victims[i] * 10, all);
}

/* ---- a call that delays no other task ---- */

static int blocks(void *arg)
{
    const struct bz_os *os = bz_machine_self()->rt->os;
    bz_os_word never = 0;
    uint64_t until = bz_os_now(os) + (uint64_t)(uintptr_t)arg;
    while (bz_os_wait(os, &never, 0, until) != -ETIMEDOUT)
        ;
    return 1;
}

static int calls_alone(void *arg)
{
    struct bz_machine *m = bz_machine_self();
    struct bz_proc *p = m->last;
    blitz_stats s;
    (void)arg;
    CHECK_EQ(blitz_block_in_place(blocks, (void *)(uintptr_t)(20 * BLITZ_MS)), 1);
    CHECK(bz_machine_self() == m);
    CHECK(m->last == p);
    CHECK(t_proc_holder(p) == m);
    CHECK_EQ(blitz_stats_read(NULL, &s), 0);
    CHECK_EQ(s.calls_moved, 0u);
    return 0;
}

/* Nothing waits to be run: its proc is not moved, and no thread is spent on it. */
TEST(accept, a_proc_that_no_task_needs_stays_with_its_call)
{
    sim_on_procs(calls_alone, NULL, 0, 100, 1, 4);
}

static int nothing(void *arg)
{
    (void)arg;
    return 0;
}

/* A task waits all the time, but for less than the hog limit. */
static int calls_again_and_again(void *arg)
{
    unsigned *moved = arg;
    blitz_task *t;
    blitz_stats s;
    CHECK_EQ(blitz_spawn(nothing, NULL, NULL, &t), 0);
    for (int i = 0; i < 200; i++)
        CHECK_EQ(blitz_block_in_place(blocks, (void *)(uintptr_t)(5 * BLITZ_US)), 1);
    CHECK_EQ(blitz_stats_read(NULL, &s), 0);
    *moved += s.calls_moved > 0;
    return blitz_task_join(t, NULL, BLITZ_FOREVER);
}

/* They are counted, or the second look would find it in a call still. A seed may hold one of them up for
 * long enough. */
TEST(accept, many_short_calls_are_not_taken_for_a_long_one)
{
    unsigned moved = 0;
    uint64_t seeds = sim_seeds(100);
    sim_on_procs(calls_again_and_again, &moved, 0, 100, 1, 1);
    t_note("the proc was moved in %u of %llu runs", moved, (unsigned long long)seeds);
    CHECK_LE(moved * 4, seeds);
}
