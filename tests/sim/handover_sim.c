/*
 * Procs that move, in virtual time: a task that blocks its thread does not stop other tasks, and it
 * continues correctly when it returns without a proc.
 */
#include "support/sched_sim.h"

#include "monitor/monitor.h"
#include "sim/fault.h"
#include "runtime/runtime.h"

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

/* ---- work behind one of two hogs ---- */

struct child_show {
    uint64_t spawned_ns;
    bz_atomic(uint64_t) ran_ns;
};

static int says_when(void *arg)
{
    bz_store_relaxed(&((struct child_show *)arg)->ran_ns, blitz_now()); /* relaxed: joined */
    return 0;
}

static int burns_for_long(void *arg)
{
    (void)arg;
    for (int i = 0; i < 500; i++)
        bz_sim_burn(BLITZ_MS);
    return 0;
}

static int spawns_and_burns(void *arg)
{
    struct child_show *s = arg;
    blitz_task *t;
    s->spawned_ns = blitz_now();
    CHECK_EQ(blitz_spawn(says_when, s, NULL, &t), 0);
    burns_for_long(NULL);
    return blitz_task_join(t, NULL, BLITZ_FOREVER);
}

static int hogs_on_both(void *arg)
{
    unsigned last = *(unsigned *)arg;
    struct child_show s = {.spawned_ns = 0, .ran_ns = 0};
    blitz_task *t[2];
    CHECK_EQ(
        blitz_spawn(burns_for_long, NULL, &(blitz_spawn_opts){.proc = BLITZ_ON_PROC(!last)}, &t[0]),
        0);
    CHECK_EQ(
        blitz_spawn(spawns_and_burns, &s, &(blitz_spawn_opts){.proc = BLITZ_ON_PROC(last)}, &t[1]),
        0);
    for (int i = 0; i < 2; i++)
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
    CHECK_LT(bz_load_relaxed(&s.ran_ns) - s.spawned_ns, 120 * BLITZ_MS); /* relaxed: joined */
    return 0;
}

/* The child is known to one proc alone, the first or the last; both procs are busy, and no timer is due. */
TEST(handover, bug_06_a_task_behind_one_of_two_hogs_is_run)
{
    unsigned first = 0, last = 1;
    sim_on_procs(hogs_on_both, &first, 0, 50, 2, 2);
    sim_on_procs(hogs_on_both, &last, 0, 50, 2, 2);
}

/* ---- a crowd that blocks ---- */

enum { BLOCKERS = 64 };

struct crowd {
    bz_os_word gate;
    bz_atomic(unsigned) begun;
    uint64_t spawned_ns, passed_ns; /* when they were spawned, and when all of them had begun */
    uint64_t late_ns;               /* the worst; the ticker's */
};

/* Block the thread in a call that the task does not announce. */
static int blocker(void *arg)
{
    struct crowd *c = arg;
    const struct bz_os *os = runtime_here()->os;
    if (bz_fetch_add_relaxed(&c->begun, 1) == BLOCKERS - 1) /* relaxed: a count */
        c->passed_ns = blitz_now();
    while (bz_load_relaxed(&c->gate) == 0) /* relaxed: a flag */
        bz_os_wait(os, &c->gate, 0, BZ_OS_FOREVER);
    return 0;
}

static int fast_ticker(void *arg)
{
    struct crowd *c = arg;
    uint64_t next = blitz_now();
    while (bz_load_relaxed(&c->begun) < BLOCKERS) { /* relaxed: a count */
        next += BLITZ_MS;
        CHECK_EQ(blitz_sleep_until(next), 0);
        uint64_t now = blitz_now();
        if (now - next > c->late_ns)
            c->late_ns = now - next;
        next = now > next ? now : next;
    }
    return 0;
}

static int blockers_and_a_ticker(void *arg)
{
    struct crowd c = {.gate = 0};
    blitz_task *t[BLOCKERS], *tick;
    (void)arg;
    CHECK_EQ(blitz_spawn(fast_ticker, &c, NULL, &tick), 0);
    c.spawned_ns = blitz_now();
    for (unsigned i = 0; i < BLOCKERS; i++)
        CHECK_EQ(blitz_spawn(blocker, &c, NULL, &t[i]), 0);
    CHECK_EQ(blitz_task_join(tick, NULL, BLITZ_FOREVER), 0);
    bz_store_relaxed(&c.gate, 1); /* relaxed: a flag */
    bz_os_wake(runtime_here()->os, &c.gate, BLOCKERS);
    for (unsigned i = 0; i < BLOCKERS; i++)
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
    CHECK_LT(c.passed_ns - c.spawned_ns, BLOCKERS * BLITZ_MS);
    CHECK_LT(c.late_ns, 15 * BLITZ_MS);
    return 0;
}

/* On one proc each of them blocks as soon as the proc has moved to it. */
TEST(handover, a_crowd_of_tasks_that_block_passes_at_two_a_millisecond)
{
    sim_on_procs(blockers_and_a_ticker, NULL, 0, 60, 1, 2);
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

/* Burn until the proc is taken, which needs a task that waits for it. */
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

static blitz_poll poll_seven(void *state, blitz_cx *cx)
{
    cx->result = (int)*(uint64_t *)state;
    return BLITZ_READY;
}

/* The first spawn learns that the proc is gone, the others know it. */
static int spawns_a_few(void)
{
    enum { FEW = 4 };
    blitz_task *t[FEW];
    uint64_t seven = 7;
    int result, sum = 0;
    for (int i = 0; i < FEW; i++)
        CHECK_EQ(i % 2 != 0 ? blitz_spawn(child, (void *)7, NULL, &t[i])
                            : blitz_spawn_poll(poll_seven, &seven, sizeof seven, NULL, &t[i]),
                 0);
    for (int i = 0; i < FEW; i++) {
        CHECK_EQ(blitz_task_join(t[i], &result, BLITZ_FOREVER), 0);
        sum += result;
    }
    return sum - 7 * FEW;
}

static int ends(void)
{
    return 0;
}

static int (*const deed[])(void) = {spawns_and_joins, spawns_a_few, yields, sleeps, forks, ends};
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

TEST(handover, every_action_after_losing_the_proc_completes)
{
    sim_on_procs(all_come_back, NULL, 0, 300, 1, 3);
}

/* ---- losing the proc ---- */

enum { SHORT = 12 };

/* Long enough to be a hog, and not long enough (OLD_NS in handover.c) to be taken for an endless loop. */
static int burns_for_a_while(void *arg)
{
    struct bz_machine *m = bz_machine_self();
    bool *has_lost = arg;
    for (int i = 0; i < 60; i++)
        bz_sim_burn(BLITZ_MS);
    *has_lost = bz_load_relaxed(&m->is_stray) != 0; /* relaxed: a hint */
    return 0;
}

/* Half the time of a hog. The plain form has no next slot: the joiner that a task wakes waits in the injector, beside a
 * stray that burns. That is evidence (long_after in handover.c), and a task may lose its proc after 2 ms. */
static int is_busy(void *arg)
{
    struct bz_machine *m = bz_machine_self();
    (void)arg;
    for (int i = 0; i < 5; i++)
        bz_sim_burn(BLITZ_MS);
    CHECK(bz_is_plain(m->rt) || bz_load_relaxed(&m->is_stray) == 0); /* relaxed: a hint */
    return 0;
}

/* One hog, and a crowd of tasks that are not. */
static int hog_and_busy_ones(void *arg)
{
    struct bz_runtime *rt = runtime_here();
    bool has_lost = false;
    blitz_task *hog_task, *t[SHORT];
    (void)arg;
    CHECK_EQ(blitz_spawn(burns_for_a_while, &has_lost, NULL, &hog_task), 0);
    for (int i = 0; i < SHORT; i++)
        CHECK_EQ(blitz_spawn(is_busy, NULL, NULL, &t[i]), 0);
    /* With a deadline: the joiner leaves them to the workers. */
    for (int i = 0; i < SHORT; i++)
        CHECK_EQ(blitz_task_join(t[i], NULL, blitz_after(3600 * BLITZ_S)), 0);
    CHECK_EQ(blitz_task_join(hog_task, NULL, blitz_after(3600 * BLITZ_S)), 0);
    uint64_t moved = bz_load_relaxed(&rt->monitor.moved); /* relaxed: statistics */
    CHECK(bz_is_plain(rt) ? moved >= has_lost : moved == has_lost);
    return 0;
}

/* The hog's proc moves, once. A task of half that length keeps its own: one hog that has just begun is no evidence. */
TEST(handover, only_a_task_that_is_long_at_it_loses_its_proc)
{
    sim_on_procs(hog_and_busy_ones, NULL, 0, 200, 1, 2);
}

/* ---- a limit on burning threads ---- */

static int one_hog_after_another(void *arg)
{
    (void)arg;
    for (int i = 0; i < 3; i++) {
        struct show s = {.ticks = 0, .is_over = 0};
        uint64_t began = blitz_now();
        blitz_task *t, *tick;
        CHECK_EQ(blitz_spawn(ticker, &s, NULL, &tick), 0);
        CHECK_EQ(blitz_spawn(hog, &s, NULL, &t), 0);
        CHECK_EQ(blitz_task_join(tick, NULL, blitz_after(3600 * BLITZ_S)), 0);
        CHECK_EQ(blitz_task_join(t, NULL, blitz_after(3600 * BLITZ_S)), 0);
        CHECK_LT(blitz_now() - began,
                 400 * BLITZ_MS); /* 20 ticks of 10 ms; the hog burns for 500 */
    }
    return 0;
}

static void play_with_a_limit(const struct bz_os *os, void *arg)
{
    struct bz_runtime *rt;
    (void)arg;
    CHECK_EQ(bz_runtime_new(os, &(blitz_runtime_opts){.procs = 1, .burning_max = 1}, &rt), 0);
    CHECK_EQ(blitz_runtime_block_on((blitz_runtime *)rt, one_hog_after_another, NULL), 0);
    CHECK_EQ(blitz_runtime_shutdown((blitz_runtime *)rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref((blitz_runtime *)rt), 0);
}

static void play_without_a_thread(const struct bz_os *os, void *arg)
{
    struct bz_fault f;
    struct sim_scene s = {1, one_hog_after_another, NULL, 0};
    bz_fault_init(&f, os, NULL,
                  &(struct bz_fault_plan){.kind = BZ_FAULT_THREAD, .nth = *(uint64_t *)arg});
    sim_play(&f.os, &s);
}

/* The proc lies idle for a moment, and is taken up when there is a thread again. */
TEST(handover, bug_30_a_proc_that_no_thread_was_there_for_is_tried_again)
{
    for (uint64_t i = 0, n = sim_seeds(60); i < n; i++) {
        uint64_t seed = sim_next_seed(), nth = 3 + i % 3; /* after the worker and the monitor */
        t_watch("simulation seed 0x%llx, without thread %u", (unsigned long long)seed,
                (unsigned)nth);
        CHECK_EQ(
            bz_sim_run(&(struct bz_sim_config){.seed = seed}, play_without_a_thread, &nth, NULL),
            0);
    }
}

static int hog_without_threads(void *arg)
{
    blitz_stats stats;
    blitz_task *t;
    (void)arg;
    CHECK_EQ(blitz_spawn(nothing, NULL, NULL, &t), 0);
    for (int i = 0; i < 300; i++)
        bz_sim_burn(BLITZ_MS);
    CHECK_EQ(blitz_task_join(t, NULL, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_stats_read(NULL, &stats), 0);
    CHECK_LE(stats.stacks, 16u);
    return 0;
}

static void play_without_threads(const struct bz_os *os, void *arg)
{
    struct bz_fault f;
    struct sim_scene s = {1, hog_without_threads, NULL, 0};
    (void)arg;
    bz_fault_init(&f, os, NULL,
                  &(struct bz_fault_plan){.kind = BZ_FAULT_THREAD, .nth = 3, .for_good = true});
    sim_play(&f.os, &s);
    CHECK_EQ(bz_fault_failed(&f), BZ_FAULT_THREAD);
}

/* The monitor tries again and again. What a machine without a thread was given is given back each time. */
TEST(handover, bug_30_a_machine_that_gets_no_thread_keeps_no_stack)
{
    for (uint64_t i = 0, n = sim_seeds(20); i < n; i++) {
        uint64_t seed = sim_next_seed();
        t_watch("simulation seed 0x%llx", (unsigned long long)seed);
        CHECK_EQ(
            bz_sim_run(&(struct bz_sim_config){.seed = seed}, play_without_threads, NULL, NULL), 0);
    }
}

/* One may burn beside the procs. When it has ended it is the next one's turn. */
TEST(handover, a_hog_that_has_ended_makes_room_for_the_next)
{
    for (uint64_t i = 0, n = sim_seeds(60); i < n; i++) {
        uint64_t seed = sim_next_seed();
        t_watch("simulation seed 0x%llx", (unsigned long long)seed);
        struct bz_sim_config config = {.seed = seed,
                                       .has_no_interrupt = i % 2}; /* strays take turns, or not */
        CHECK_EQ(bz_sim_run(&config, play_with_a_limit, NULL, NULL), 0);
    }
}
