/*
 * idle_model.c - the idle set: work that is published is run, whatever the order.
 *
 *   covers: src/sched/idle.h src/sched/idle.c
 *   defines: BZ_PROCS_MAX=2
 *
 * A toy scheduler of two procs around the real protocol. Each proc's queue is one slot; publishers
 * are plain threads that fill a slot and rouse whom the idle set names; procs look for work, announce
 * their sleep, look again and sleep on a word. A lost wake-up is work in a slot while every thread
 * sleeps, which the checker reports as a deadlock.
 */
#include "model.h"

#include "sched/idle.h"

enum { SLOTS = 2 };
static struct bz_idle idle;
static bz_atomic(uint32_t) slot[SLOTS]; /* 1: work */
static bz_atomic(uint32_t) roused[2];
static bz_atomic(uint32_t) done; /* pieces of work that were run */

static void rouse(int proc)
{
    if (proc == BZ_NOBODY)
        return;
    bz_store_release(&roused[proc], 1);
    m_word_wake(&roused[proc], 1);
}

static void publish(int i)
{
    bz_store_relaxed(&slot[i], 1); /* the fence-free push; the idle set fences */
    rouse(bz_idle_published(&idle));
}

static void publishes_first(void)
{
    publish(0);
}

static void publishes_second(void)
{
    publish(1);
}

/* Take one piece of work; false if there is none. */
static bool take(void)
{
    for (int i = 0; i < SLOTS; i++)
        if (bz_load_relaxed(&slot[i]) && bz_xchg_acqrel(&slot[i], 0)) {
            bz_fetch_add_relaxed(&done, 1);
            return true;
        }
    return false;
}

static bool has_work(void)
{
    return bz_load_relaxed(&slot[0]) || bz_load_relaxed(&slot[1]);
}

/* Runs as proc `me` until `goal` pieces have been run by anybody. */
static void proc(unsigned me, uint32_t goal, bool is_searching)
{
    while (bz_load_relaxed(&done) < goal) {
        if (take()) {
            if (is_searching)
                rouse(bz_idle_found(&idle));
            is_searching = false;
            continue;
        }
        bz_store_relaxed(&roused[me], 0);
        bz_idle_announce(&idle, me, is_searching);
        if (!has_work() && bz_load_relaxed(&done) < goal)
            m_word_wait(&roused[me], 0);
        is_searching = !bz_idle_stay(&idle, me);
    }
    if (is_searching)
        rouse(bz_idle_found(&idle));
}

static void proc_0_for_one(void)
{
    proc(0, 1, false);
}

static void proc_0_for_two(void)
{
    proc(0, 2, false);
}

static void proc_0_searching(void)
{
    proc(0, 2, bz_idle_search(&idle));
}

/* idle.c [F]: the store-buffer race between a publisher and a proc that goes to sleep. */
MODEL(idle, bug_01_no_work_is_left_behind_a_sleeper)
{
    bz_idle_init(&idle, 1);
    m_threads(publishes_first, proc_0_for_one);
    m_assert(bz_load_relaxed(&done) == 1);
    bz_idle_check(&idle);
}

/* Two publishers: each may think that the other, or a searcher, answers for it. */
MODEL(idle, two_publishers_and_a_sleeper_leave_nothing)
{
    bz_idle_init(&idle, 1);
    m_threads(publishes_first, publishes_second, proc_0_for_two);
    m_assert(bz_load_relaxed(&done) == 2);
}

MODEL(idle, two_publishers_and_a_searcher_leave_nothing)
{
    bz_idle_init(&idle, 1);
    m_threads(publishes_first, publishes_second, proc_0_searching);
    m_assert(bz_load_relaxed(&done) == 2);
}

/* All is done: nobody need sleep any more. Who clears its word now sees `done` after its fence. */
static void all_over(void)
{
    bz_fence_seqcst();
    rouse(0);
    rouse(1);
}

static void proc_0_runs_one(void)
{
    proc(0, 2, false);
    all_over();
}

static void proc_1_runs_one(void)
{
    proc(1, 2, false);
    all_over();
}

static void publishes_both(void)
{
    publish(0);
    publish(1);
}

/* Two procs: the one that is roused passes the duty to look on. */
MODEL(idle, two_procs_share_what_one_publishes)
{
    bz_idle_init(&idle, 2);
    m_threads(publishes_both, proc_0_runs_one, proc_1_runs_one);
    m_assert(bz_load_relaxed(&done) == 2);
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
    bz_idle_announce(&idle, 0, is_searching);
    if (!bz_idle_stay(&idle, 0))
        rouse(bz_idle_found(&idle));
}

/* Everybody who joined the searchers has left them, whatever met whatever. */
static void nobody_searches(void)
{
    m_assert(bz_idle_searching(&idle) == 0);
    bz_idle_check(&idle);
}

MODEL(idle, two_that_search_and_find_leave_the_count)
{
    bz_idle_init(&idle, 2);
    m_threads(searches_and_finds, searches_and_finds);
    m_finally(nobody_searches);
}

MODEL(idle, one_that_gives_up_beside_one_that_finds)
{
    bz_idle_init(&idle, 2);
    m_threads(searches_and_gives_up, searches_and_finds);
    m_finally(nobody_searches);
}

static void wakes_by_itself(void)
{
    if (!bz_idle_stay(&idle, 0))
        rouse(bz_idle_found(&idle));
}

static void publishes_only(void)
{
    int proc = bz_idle_published(&idle);
    m_assert(proc == BZ_NOBODY || proc == 0);
}

/* A publisher that stands in while its sleeper wakes by itself and a third begins to search. */
MODEL(idle, a_publisher_that_stood_in_for_nobody_leaves_the_count)
{
    bz_idle_init(&idle, 2);
    bz_idle_announce(&idle, 0, false);
    m_threads(publishes_only, wakes_by_itself, searches_and_finds);
    m_finally(nobody_searches);
}
