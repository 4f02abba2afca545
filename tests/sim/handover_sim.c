/*
 * Procs that move, in virtual time: whatever a task does to its thread, others go on; and the task
 * finds its way when it comes back without a proc.
 */
#include "support/sched_sim.h"

#include "sched/monitor.h"

enum { HOGS_MAX = 6 };

static struct bz_runtime *runtime_here(void)
{
    return bz_machine_self()->rt;
}

/* ---- others go on ---- */

struct show {
    bz_atomic(unsigned) ticks;
    bz_atomic(uint32_t) is_over;
    uint64_t late_ns; /* the worst; the ticker's */
};

static int hog(void *arg)
{
    struct show *s = arg;
    for (int i = 0; i < 500 && !bz_load_relaxed(&s->is_over); i++) /* relaxed: a flag */
        bz_sim_burn(BLITZ_MS);
    return 0;
}

static int ticker(void *arg)
{
    struct show *s = arg;
    uint64_t next = blitz_now();
    for (int i = 0; i < 20; i++) {
        next += 10 * BLITZ_MS;
        CHECK_EQ(blitz_sleep_until(next), 0);
        uint64_t late = blitz_now() - next;
        if (late > s->late_ns)
            s->late_ns = late;
        bz_fetch_add_relaxed(&s->ticks, 1); /* relaxed: a count */
    }
    bz_store_relaxed(&s->is_over, 1); /* relaxed: a flag */
    return 0;
}

/* As many endless loops as there are procs and two more, and one that sleeps and wakes. */
static int hogs_and_a_ticker(void *arg)
{
    struct show s = {.ticks = 0, .is_over = 0};
    blitz_task *t[HOGS_MAX], *tick;
    unsigned n = runtime_here()->proc_count + 2;
    (void)arg;
    CHECK_EQ(blitz_spawn(ticker, &s, NULL, &tick), 0);
    for (unsigned i = 0; i < n; i++)
        CHECK_EQ(blitz_spawn(hog, &s, NULL, &t[i]), 0);
    CHECK_EQ(blitz_task_join(tick, NULL, BLITZ_FOREVER), 0);
    for (unsigned i = 0; i < n; i++)
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
    CHECK_EQ(bz_load_relaxed(&s.ticks), 20u); /* relaxed: joined */
    CHECK_LT(s.late_ns, 120 * BLITZ_MS); /* while the hogs come to be known, one after another */
    return 0;
}

TEST(handover, bug_06_procs_and_two_endless_loops_do_not_stop_a_ticker)
{
    sim_on_procs(hogs_and_a_ticker, NULL, 0, 100, 1, 4);
}

/* ---- a hog that comes back ---- */

static int nothing(void *arg)
{
    return (int)(intptr_t)arg;
}

static int child(void *arg)
{
    blitz_yield();
    return (int)(intptr_t)arg;
}

/* Burn until the proc is gone, which takes somebody who wants it. */
static void lose_the_proc(void)
{
    struct bz_machine *m = bz_machine_self();
    blitz_task *t;
    CHECK_EQ(blitz_spawn(nothing, NULL, NULL, &t), 0);
    for (int i = 0; i < 100 && !bz_load_relaxed(&m->is_stray); i++) /* relaxed: a hint */
        bz_sim_burn(BLITZ_MS);
    blitz_task_detach(t);
}

static int spawns_and_joins(void)
{
    blitz_task *t;
    int result = 0;
    CHECK_EQ(blitz_spawn(child, (void *)7, NULL, &t), 0);
    CHECK_EQ(blitz_task_join(t, &result, BLITZ_FOREVER), 0);
    return result == 7 ? 0 : -1;
}

static int yields(void)
{
    blitz_yield();
    return 0;
}

static int sleeps(void)
{
    return blitz_sleep(BLITZ_MS);
}

static int job(void *arg)
{
    return (int)(intptr_t)arg;
}

static int forks(void)
{
    blitz_job a, b;
    blitz_fork(&a, job, (void *)1);
    blitz_fork(&b, job, (void *)2);
    return blitz_join(&b) + blitz_join(&a) - 3;
}

static int ends(void)
{
    return 0;
}

static int (*const deed[])(void) = {spawns_and_joins, yields, sleeps, forks, ends};
enum { DEEDS = sizeof deed / sizeof *deed };

static int comes_back(void *arg)
{
    lose_the_proc();
    return deed[(intptr_t)arg]();
}

static int all_come_back(void *arg)
{
    blitz_task *t[DEEDS];
    (void)arg;
    for (int i = 0; i < DEEDS; i++)
        CHECK_EQ(blitz_spawn(comes_back, (void *)(intptr_t)i, NULL, &t[i]), 0);
    for (int i = 0; i < DEEDS; i++) {
        int result = -1;
        CHECK_EQ(blitz_task_join(t[i], &result, BLITZ_FOREVER), 0);
        CHECK_EQ(result, 0);
    }
    return 0;
}

TEST(handover, whatever_a_task_does_after_it_lost_its_proc_is_done)
{
    sim_on_procs(all_come_back, NULL, 0, 300, 1, 3);
}
