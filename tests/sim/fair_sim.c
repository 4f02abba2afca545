/*
 * Hogs in virtual time: the scenes of support/fair_scenes.h from seeds, on one to four procs, and how late
 * the others may be. A hog burns a millisecond at a time; computing takes no time here, so a delay is
 * the scheduler's own and never the CPU's.
 */
#include "support/sched_sim.h"

#include "sim/fault.h"
#include "support/fair_calls.h"

static void hog_step(void)
{
    bz_sim_burn(BLITZ_MS);
}

/*
 * A proc is taken from a task that has run for 10 ms; the monitor, that looks every 10 ms at the
 * least, sees that at its second look after. Then a thread is started for it. Hogs queued before a
 * woken ticker do not delay it: the ticker is urgent (injector.h).
 */
enum { LATE_NS = 30 * 1000 * 1000, CROWD = 40 };

/* ---- how late ---- */

static int ticks_and_notes(void *arg)
{
    uint64_t *latest = arg, due = blitz_now();
    for (int i = 0; i < 30; i++) {
        due += 5 * BLITZ_MS;
        CHECK_EQ(blitz_sleep_until(due), 0);
        uint64_t late = blitz_now() - due;
        *latest = late > *latest ? late : *latest;
    }
    return 0;
}

static int ticks_beside(void *arg)
{
    unsigned hogs = (unsigned)(uintptr_t)arg;
    uint64_t latest[4] = {0};
    hog_flag over = 0;
    blitz_task *t[4], *hog[CROWD + 4];
    for (size_t i = 0; i < BZ_ARRAY_LEN(t); i++)
        t[i] = hog_spawn(ticks_and_notes, &latest[i]);
    for (unsigned i = 0; i < hogs; i++)
        hog[i] = hog_spawn(hog_main, &over);
    for (size_t i = 0; i < BZ_ARRAY_LEN(t); i++)
        CHECK_EQ(hog_join(t[i]), 0);
    for (size_t i = 0; i < BZ_ARRAY_LEN(t); i++)
        CHECK_LE(latest[i], (uint64_t)LATE_NS);
    hog_let_go(&over);
    for (unsigned i = 0; i < hogs; i++)
        CHECK_EQ(hog_join(hog[i]), 0);
    return 0;
}

/* As many hogs as `over` more than procs, on as many procs as the seed says, one hog at the least. */
static void beside_hogs(int (*fn)(void *), int over, uint64_t seeds, bool has_no_barrier)
{
    for (uint64_t i = 0, n = sim_seeds(seeds); i < n; i++) {
        uint64_t seed = sim_next_seed();
        unsigned procs = 1 + (unsigned)(seed % 4), hogs = procs + (unsigned)over;
        if (over == 0)
            hogs = 1 + (unsigned)(seed >> 8) % procs;
        struct sim_scene s = {procs, fn, (void *)(uintptr_t)hogs, 0};
        struct bz_sim_config config = {.seed = seed, .has_no_barrier = has_no_barrier};
        t_watch("simulation seed 0x%llx, %u procs, %u hogs", (unsigned long long)seed, procs, hogs);
        CHECK_EQ(bz_sim_run(&config, sim_play, &s, NULL), 0);
    }
}

/* Bug class 6: neither timers nor those they wake are held up. */
TEST(fair, bug_06_beside_1_to_n_hogs_on_n_procs_timers_are_late_by_no_more_than_a_few_looks)
{
    beside_hogs(ticks_beside, 0, 200, false);
}

TEST(fair, bug_06_and_beside_two_more_than_procs)
{
    beside_hogs(ticks_beside, 2, 100, false);
}

/* Bug class 45: lateness does not depend on how many hogs there are. */
TEST(fair, bug_45_and_beside_40_more_than_procs)
{
    beside_hogs(ticks_beside, CROWD, 60, false);
    beside_hogs(ticks_beside, CROWD, 20, true);
}

/* ---- hogs that end and come again ---- */

struct comers {
    hog_flag over;
    bz_atomic(int) alive;
};

static int burns_and_comes_again(void *arg)
{
    struct comers *c = arg;
    bz_sim_burn(15 * BLITZ_MS);
    if (bz_load_acquire(&c->over) == 0) /* pairs with hog_let_go */
        blitz_task_detach(hog_spawn(burns_and_comes_again, c));
    else
        bz_fetch_sub_relaxed(&c->alive, 1); /* relaxed: a count */
    return 0;
}

static int ticks_beside_comers(void *arg)
{
    unsigned hogs = (unsigned)(uintptr_t)arg;
    uint64_t latest = 0;
    struct comers c = {.over = 0};
    bz_atomic_init(&c.alive, (int)hogs);
    blitz_task *t = hog_spawn(ticks_and_notes, &latest);
    for (unsigned i = 0; i < hogs; i++)
        blitz_task_detach(hog_spawn(burns_and_comes_again, &c));
    CHECK_EQ(hog_join(t), 0);
    hog_let_go(&c.over);
    while (bz_load_relaxed(&c.alive) > 0) /* relaxed: a count */
        CHECK_EQ(blitz_sleep(10 * BLITZ_MS), 0);
    CHECK_LE(latest, (uint64_t)LATE_NS);
    return 0;
}

/* A hog is asked to let others run, and ends. The ticker that runs next on its machine must not be sent to the
 * end of the queue in its stead, behind all hogs. */
TEST(fair, bug_45_and_beside_a_crowd_of_hogs_that_end_and_come_again)
{
    beside_hogs(ticks_beside_comers, CROWD, 60, false);
}

TEST(fair, bug_06_without_barriers_as_well)
{
    beside_hogs(ticks_beside, 0, 100, true);
    beside_hogs(ticks_beside, 2, 50, true);
}

TEST(fair, every_other_task_timer_and_wake_goes_on)
{
    beside_hogs(others_beside_hogs, 0, 100, false);
    beside_hogs(others_beside_hogs, 2, 50, false);
}

static void outside(const struct bz_os *os, void *procs)
{
    outside_spawns_a_hog_and_another(os, *(unsigned *)procs, false);
}

static void outside_on_proc(const struct bz_os *os, void *procs)
{
    outside_spawns_a_hog_and_another(os, *(unsigned *)procs, true);
}

TEST(fair, a_hog_and_another_spawned_together_from_outside)
{
    for (uint64_t i = 0, n = sim_seeds(300); i < n; i++) {
        uint64_t seed = sim_next_seed();
        unsigned procs = 1 + (unsigned)(seed % 4);
        struct bz_sim_config config = {.seed = seed, .has_no_barrier = (seed >> 8 & 3) == 0};
        t_watch("simulation seed 0x%llx, %u procs%s", (unsigned long long)seed, procs,
                config.has_no_barrier ? " without barriers" : "");
        CHECK_EQ(bz_sim_run(&config, seed >> 16 & 1 ? outside_on_proc : outside, &procs, NULL), 0);
    }
}

/* ---- where one would not look for them ---- */

TEST(fair, hogs_in_polls)
{
    sim_on_seeds(scene_poll, NULL, 0, 40);
}

TEST(fair, hogs_in_destructors_of_locals)
{
    sim_on_seeds(scene_local, NULL, 0, 40);
}

TEST(fair, hogs_in_destructors_of_states)
{
    sim_on_seeds(scene_drop_state, NULL, 0, 40);
}

TEST(fair, hogs_in_destructors_of_results)
{
    sim_on_seeds(scene_drop_result, NULL, 0, 40);
}

TEST(fair, hogs_in_foreign_wakers)
{
    sim_on_seeds(scene_waker_of_a_join, NULL, 0, 60);
    sim_on_seeds(scene_waker_of_a_timer, NULL, 0, 60);
}

TEST(fair, hogs_in_forked_jobs)
{
    sim_on_seeds(scene_jobs, NULL, 0, 60);
}

TEST(fair, bug_06_tokio_4730)
{
    sim_on_seeds(scene_tokio_4730, NULL, 0, 200);
}

/* ---- the way back ---- */

TEST(fair, a_task_without_its_proc_may_call_everything)
{
    sim_on_seeds(scene_each_call, NULL, 0, 40);
}

TEST(fair, and_so_may_many_at_once)
{
    sim_on_seeds(scene_all_calls, NULL, 0, 60);
}

TEST(fair, a_poll_that_has_lost_its_proc_may_wait_yield_and_end)
{
    sim_on_seeds(scene_polls_lose_it, NULL, 0, 60);
}

/* ---- no thread available ---- */

static uint64_t nth_thread;

static void refused(const struct bz_os *os, void *arg)
{
    struct bz_fault f;
    bz_fault_init(&f, os, NULL,
                  &(struct bz_fault_plan){.kind = BZ_FAULT_THREAD, .nth = nth_thread});
    sim_play(&f.os, arg);
}

static int burns_for_long(void *arg)
{
    (void)arg;
    bz_sim_burn(100 * BLITZ_MS);
    return 0;
}

/* Hogs that end: a thread that is not available now becomes available later. */
static int beside_hogs_that_end(void *arg)
{
    blitz_task *hog[3];
    (void)arg;
    for (size_t i = 0; i < BZ_ARRAY_LEN(hog); i++)
        hog[i] = hog_spawn(burns_for_long, NULL);
    others_live();
    for (size_t i = 0; i < BZ_ARRAY_LEN(hog); i++)
        CHECK_EQ(hog_join(hog[i]), 0);
    return 0;
}

/* Bug class 30: whichever thread cannot be started, nothing is lost. */
TEST(fair, bug_30_a_thread_that_cannot_be_had_for_a_proc_that_was_taken)
{
    for (uint64_t i = 0, n = sim_seeds(120); i < n; i++) {
        uint64_t seed = sim_next_seed();
        struct sim_scene s = {1 + (unsigned)(seed % 3), beside_hogs_that_end, NULL, 0};
        nth_thread = 2 + (seed >> 8) % 6;
        t_watch("simulation seed 0x%llx, %u procs, thread %llu fails", (unsigned long long)seed,
                s.procs, (unsigned long long)nth_thread);
        CHECK_EQ(bz_sim_run(&(struct bz_sim_config){.seed = seed}, refused, &s, NULL), 0);
    }
}

/* ---- past the cap that a program has set ---- */

static int beside_many_hogs_that_end(void *arg)
{
    blitz_task *hog[12];
    (void)arg;
    for (size_t i = 0; i < BZ_ARRAY_LEN(hog); i++)
        hog[i] = hog_spawn(burns_for_long, NULL);
    others_live();
    for (size_t i = 0; i < BZ_ARRAY_LEN(hog); i++)
        CHECK_EQ(hog_join(hog[i]), 0);
    return 0;
}

/* More hogs than may burn at once: the rest wait for their turn, and all tasks end. */
TEST(fair, beyond_the_cap_nothing_is_lost)
{
    sim_on_seeds(beside_many_hogs_that_end, NULL, 0, 60);
}
