/*
 * idle_barrier_model.c - the idle set without fences in the pushes: the last searcher pays.
 *
 *   covers: src/queue/idle.h src/queue/idle.c
 *   needs: src/queue/membarrier.c src/os/lock.c
 *   defines: BZ_PROCS_MAX=2 BZ_LOCK_SPINS=1
 *
 * The same toy as in idle_model.c; its publishers are workers, which store and load and nothing
 * more. Every operation of a thread may be where a barrier's fence falls, so each test is small:
 * one race each.
 */
#include "idle_toy.h"

static void given(unsigned procs, unsigned awake)
{
    bz_barrier_init(&barrier, &m_os);
    bz_idle_init(&idle, procs, awake, &barrier, true);
    m_settings()->spurious = 0;
}

static void publishes_first(void)
{
    publish(0);
}

static void last_searcher(void)
{
    m_assert(sleeps_and_runs_one(0, true));
}

static void not_a_searcher(void)
{
    m_assert(sleeps_and_runs_one(0, false));
}

/* idle.c [F]: a plain store and a plain load on the publisher's side. */
MODEL(idle_barrier, bug_01_a_plain_push_is_not_left_behind_the_last_searcher)
{
    given(2, 2);
    m_assert(bz_idle_search(&idle));
    m_threads(publishes_first, last_searcher);
    m_assert(bz_load_relaxed(&done) == 1);
    m_assert(bz_idle_found(&idle) == BZ_NOBODY);
    bz_idle_check(&idle);
}

MODEL(idle_barrier, a_sleeper_that_did_not_search_issues_the_barrier_if_none_searches)
{
    given(2, 2);
    m_threads(publishes_first, not_a_searcher);
    m_assert(bz_load_relaxed(&done) == 1);
}

/* The other searcher answers: it gives up, or finds the work and sends us. Two sleepers, one of
 * which pays; one publisher. */
static void searcher_0(void)
{
    m_assert(sleeps(0, true));
    bool has_run = take();
    rouse(bz_idle_found(&idle));
    if (has_run)
        rouse(bz_idle_published(&idle)); /* so that the other can end, too */
}

static void searcher_1(void)
{
    m_assert(sleeps(1, true));
    bool has_run = take();
    rouse(bz_idle_found(&idle));
    if (has_run)
        rouse(bz_idle_published(&idle));
}

MODEL(idle_barrier, of_two_searchers_one_answers)
{
    given(2, 2);
    bz_store_relaxed(&idle.counts, 2 * BZ_IDLE_SEARCHER);
    m_threads(publishes_first, searcher_0, searcher_1);
    m_assert(bz_load_relaxed(&done) == 1);
}

/* ---- a searcher that has found work ---- */

/* Waits in its sleep until it is roused. A wake-up that is lost is a deadlock. */
static void proc_1_is_roused_for_it(void)
{
    m_word_wait(&roused[1], 0);
    m_assert(bz_idle_stay(&idle, 1, false));
    m_assert(take());
}

/* idle.c [F]: the publisher trusts the searcher, which has a task to run by then and looks once more. */
MODEL(idle_barrier, bug_01_a_plain_push_is_not_left_behind_a_searcher_that_leaves)
{
    given(2, 1); /* proc 1 sleeps */
    bz_store_relaxed(&roused[1], 0);
    m_assert(bz_idle_search(&idle));
    m_threads(publishes_first, leaves_the_search, proc_1_is_roused_for_it);
    m_assert(bz_load_relaxed(&done) == 1);
}

/* ---- the stand-in ---- */

static void proc_1_wakes_by_itself(void)
{
    if (bz_idle_stay(&idle, 1, false))
        rouse(bz_idle_found(&idle));
}

/* idle.c [H]: a publisher counts as searching for proc 1, which wakes by itself just then; proc 0
 * goes to sleep meanwhile and trusts that searcher. */
MODEL(idle_barrier, a_stand_in_sees_every_worker_that_relied_on_it)
{
    given(2, 1); /* proc 1 sleeps */
    m_threads(publishes_first, proc_1_wakes_by_itself, not_a_searcher);
    m_assert(bz_load_relaxed(&done) == 1);
}

/* ---- over to fences, and back ---- */

static void goes_over(void)
{
    bz_idle_go_over(&idle);
}

static void goes_back(void)
{
    bz_idle_go_back(&idle);
}

static void goes_over_and_sleeps(void)
{
    bz_idle_go_over(&idle);
    uint64_t paid = bz_load_relaxed(&barrier.ended);
    not_a_searcher();
    m_assert(bz_load_relaxed(&barrier.ended) == paid); /* trusted */
}

MODEL(idle_barrier, gone_over_a_plain_push_from_before_is_seen)
{
    given(2, 2);
    m_threads(publishes_first, goes_over_and_sleeps);
    m_assert(bz_load_relaxed(&done) == 1);
}

/* Work left behind is a deadlock. */
static void only_sleeps(void)
{
    m_assert(sleeps(0, false));
}

MODEL(idle_barrier, while_another_goes_over_nothing_is_left_behind)
{
    given(2, 2);
    m_threads(publishes_first, only_sleeps, goes_over);
}

MODEL(idle_barrier, while_another_goes_back_nothing_is_left_behind)
{
    given(2, 2);
    bz_idle_go_over(&idle);
    m_threads(publishes_first, not_a_searcher, goes_back);
    m_assert(bz_load_relaxed(&done) == 1);
    m_assert(!bz_idle_has_fences(&idle));
}

/* The bits alone, set where nothing has fenced: what canary 76 does, in the small. */
static void trusts_too_early(void)
{
    (void)bz_fetch_or_relaxed(&idle.counts, BZ_IDLE_FENCES | BZ_IDLE_TRUSTED);
    not_a_searcher();
}

MODEL_FAILS(idle_barrier, trust_without_a_barrier_leaves_work_behind, "deadlock")
{
    given(2, 2);
    m_threads(publishes_first, trusts_too_early);
}

/* ---- the check whether all workers sleep ---- */

static bz_atomic(uint32_t) dozes;
static bool is_seen_dozing, is_seen_awake;

static void proc_1_is_claimed_and_wakes(void)
{
    (void)!bz_idle_stay(&idle, 1, false); /* by itself, or claimed: it has cleared its bit */
    is_seen_dozing = bz_load_relaxed(&dozes);
}

static void somebody_publishes(void)
{
    int proc = bz_idle_published(&idle);
    m_assert(proc == BZ_NOBODY || proc == 0 || proc == 1);
}

static void monitor_dozes_off(void)
{
    bz_store_relaxed(&dozes, 1);
    bz_barrier_pay(&barrier);
    is_seen_awake = !bz_idle_all_sleep(&idle);
}

/* monitor.c [S]: a machine that wakes up sees that the monitor dozes, or is seen awake by it; also
 * if another has claimed it and not yet said so in the counts. */
MODEL(idle_barrier, one_that_wakes_and_one_that_dozes_off_never_both_miss)
{
    given(2, 0);
    is_seen_dozing = is_seen_awake = false;
    m_threads(proc_1_is_claimed_and_wakes, somebody_publishes, monitor_dozes_off);
    m_assert(is_seen_dozing || is_seen_awake);
    m_sometimes(!is_seen_dozing);
}
