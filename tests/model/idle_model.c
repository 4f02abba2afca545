/*
 * idle_model.c - the idle set with fences in the pushes: work that is published is run.
 *
 *   covers: src/queue/idle.h src/queue/idle.c
 *   needs: src/queue/membarrier.c src/os/lock.c
 *   defines: BZ_PROCS_MAX=2 BZ_LOCK_SPINS=1
 *
 * A toy scheduler of two procs around the real protocol. Each proc's queue is one slot; publishers
 * fill a slot and rouse whom the idle set names; procs look for work, announce their sleep, look
 * again and sleep on a word. A lost wake-up is work in a slot while every thread sleeps, which the
 * checker reports as a deadlock.
 *
 * Here are no barriers: the plain form, and threads that are no workers. The fence-free form is
 * in idle_barrier_model.c, on the same toy.
 */
#include "idle_toy.h"

static void given(unsigned procs)
{
    bz_barrier_init(&barrier, &m_os);
    bz_idle_init(&idle, procs, procs, &barrier, false);
    m_settings()->spurious = 0;
}

static void publishes_first(void)
{
    publish_from_outside(0);
}

static void publishes_second(void)
{
    publish_from_outside(1);
}

static void proc_0_runs_one(void)
{
    if (sleeps_and_runs_one(0, false))
        rouse(bz_idle_found(&idle));
}

/* It has been asleep for a while. */
static void is_roused_and_runs_one(unsigned me)
{
    m_word_wait(&roused[me], 0);
    bool is_searching = bz_idle_stay(&idle, me, false);
    if (!take())
        is_searching = sleeps_and_runs_one(me, is_searching);
    if (is_searching)
        rouse(bz_idle_found(&idle));
}

static void proc_0_is_roused(void)
{
    is_roused_and_runs_one(0);
}

static void proc_1_is_roused(void)
{
    is_roused_and_runs_one(1);
}

/* As one who searches all the while. */
static void runs_two(bool is_searching)
{
    while (bz_load_relaxed(&done) < 2)
        if (!take())
            is_searching = sleeps(0, is_searching);
}

static void proc_0_runs_two(void)
{
    runs_two(false);
}

static void proc_0_searches_for_two(void)
{
    runs_two(true);
}

/* idle.c [F]: the store-buffer race between a publisher and a proc that goes to sleep. */
MODEL(idle, bug_01_no_work_is_left_behind_a_sleeper)
{
    given(1);
    m_threads(publishes_first, proc_0_runs_one);
    m_assert(bz_load_relaxed(&done) == 1);
    bz_idle_check(&idle);
}

/* Two publishers: each may think that the other, or a searcher, answers for it. */
MODEL(idle, two_publishers_and_a_sleeper_leave_nothing)
{
    given(1);
    m_threads(publishes_first, publishes_second, proc_0_runs_two);
    m_assert(bz_load_relaxed(&done) == 2);
}

MODEL(idle, two_publishers_and_a_searcher_leave_nothing)
{
    given(1);
    m_assert(bz_idle_search(&idle));
    m_threads(publishes_first, publishes_second, proc_0_searches_for_two);
    m_assert(bz_load_relaxed(&done) == 2);
}

static void publishes_both(void)
{
    publish_from_outside(0);
    publish_from_outside(1);
}

/* Two procs: the one that is roused passes the duty to look on. */
MODEL(idle, two_procs_share_the_work_of_one_publisher)
{
    bz_barrier_init(&barrier, &m_os);
    bz_idle_init(&idle, 2, 0, &barrier, false);
    m_settings()->spurious = 0;
    m_threads(publishes_both, proc_0_is_roused, proc_1_is_roused);
    m_assert(bz_load_relaxed(&done) == 2);
}

/* ---- a searcher that has found work ---- */

/* Waits in its sleep until it is roused. A wake-up that is lost is a deadlock. */
static void proc_1_is_roused_for_it(void)
{
    m_word_wait(&roused[1], 0);
    m_assert(bz_idle_stay(&idle, 1, false));
    m_assert(take());
}

MODEL(idle, bug_01_no_work_is_left_behind_a_searcher_that_leaves)
{
    bz_barrier_init(&barrier, &m_os);
    bz_idle_init(&idle, 2, 1, &barrier, false); /* proc 1 sleeps */
    m_settings()->spurious = 0;
    bz_store_relaxed(&roused[1], 0);
    m_assert(bz_idle_search(&idle));
    m_threads(publishes_first, leaves_the_search, proc_1_is_roused_for_it);
    m_assert(bz_load_relaxed(&done) == 1);
}

/* ---- the counts ---- */

static void searches_and_finds(void)
{
    if (bz_idle_search(&idle))
        rouse(bz_idle_found(&idle));
}

static void searches_and_gives_up(void)
{
    bool is_searching = bz_idle_search(&idle);
    (void)!bz_idle_announce(&idle, 0, is_searching);
    if (bz_idle_stay(&idle, 0, false))
        rouse(bz_idle_found(&idle));
}

/* Every worker that joined the searchers has left them, in every order of events. */
static void nobody_searches(void)
{
    m_assert(bz_idle_searching(&idle) == 0);
    bz_idle_check(&idle);
}

MODEL(idle, two_that_search_and_find_leave_the_count)
{
    given(2);
    m_threads(searches_and_finds, searches_and_finds);
    m_finally(nobody_searches);
}

MODEL(idle, one_that_gives_up_beside_one_that_finds)
{
    given(2);
    m_threads(searches_and_gives_up, searches_and_finds);
    m_finally(nobody_searches);
}

static void wakes_by_itself(void)
{
    if (bz_idle_stay(&idle, 0, false))
        rouse(bz_idle_found(&idle));
}

static void publishes_only(void)
{
    int proc = bz_idle_published(&idle);
    m_assert(proc == BZ_NOBODY || proc == 0);
}

/* A publisher that stands in while its sleeper wakes by itself and a third begins to search. */
MODEL(idle, a_publisher_that_found_no_sleeper_restores_the_count)
{
    given(2);
    m_assert(bz_idle_announce(&idle, 0, false));
    m_threads(publishes_only, wakes_by_itself, searches_and_finds);
    m_finally(nobody_searches);
}

/* ---- one proc alone is wanted ---- */

static bz_atomic(uint32_t) inbox; /* of proc 0: no other thread reads it */

static void puts_into_inbox(void)
{
    bz_store_relaxed(&inbox, 1);
    rouse(bz_idle_wanted(&idle, 0));
}

/* As search.c does it: whatever the announcement says, the inbox is looked at after it. */
static void proc_0_empties_its_inbox(void)
{
    bool is_searching = false;
    while (!bz_load_relaxed(&inbox)) {
        bz_store_relaxed(&roused[0], 0);
        (void)!bz_idle_announce(&idle, 0, is_searching);
        bool will_search = bz_load_relaxed(&inbox) != 0;
        if (!will_search)
            m_word_wait(&roused[0], 0);
        is_searching = bz_idle_stay(&idle, 0, will_search);
    }
    if (is_searching)
        rouse(bz_idle_found(&idle));
}

/* inbox.h [A]: the store-buffer race between a pusher to an inbox and its proc going to sleep. */
MODEL(idle, bug_01_a_wanted_proc_looks_or_is_roused)
{
    given(2);
    m_threads(puts_into_inbox, proc_0_empties_its_inbox);
    m_finally(nobody_searches);
}

MODEL(idle, bug_01_a_wanted_proc_looks_beside_a_searcher)
{
    given(2);
    m_threads(puts_into_inbox, proc_0_empties_its_inbox, searches_and_finds);
    m_finally(nobody_searches);
}

static void wants_proc_0(void)
{
    int proc = bz_idle_wanted(&idle, 0);
    m_assert(proc == BZ_NOBODY || proc == 0);
}

/* It wakes by itself while it is wanted: one of the two counts it, once. */
MODEL(idle, a_proc_that_was_wanted_as_it_woke_is_counted_once)
{
    given(2);
    m_assert(bz_idle_announce(&idle, 0, false));
    m_threads(wants_proc_0, wakes_by_itself, searches_and_finds);
    m_finally(nobody_searches);
}

static void wants_proc_0_and_rouses(void)
{
    rouse(bz_idle_wanted(&idle, 0));
}

/* If it has been roused meanwhile it is a searcher and answers itself: no case, let the other go. */
static void proc_0_wakes_and_publishes(void)
{
    if (bz_idle_stay(&idle, 0, false))
        rouse(1);
    else
        publish_from_outside(0);
}

/* Once: a look if it is told to, and sleep. */
static void proc_1_goes_to_sleep(void)
{
    if (!bz_idle_announce(&idle, 1, false) || !has_work())
        m_word_wait(&roused[1], 0);
}

/* idle.c [H]: a thread counted itself as a searcher for a proc that then woke by itself. A
 * publisher and a worker that slept without a check have relied on that searcher; it must check for
 * both. */
MODEL(idle, bug_01_a_failed_claim_of_a_wanted_proc_passes_the_wake_up_on)
{
    given(2);
    m_assert(bz_idle_announce(&idle, 0, false));
    m_threads(wants_proc_0_and_rouses, proc_0_wakes_and_publishes, proc_1_goes_to_sleep);
}
