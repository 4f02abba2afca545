/*
 * park_model.c - word, ring, injector and idle set together: every ready task runs once.
 *
 *   covers: src/queue/runq.h src/queue/runq.c
 *   needs: src/task/word.c src/task/chain.c src/queue/injector.c src/queue/idle.c src/queue/membarrier.c
 *   needs: src/os/lock.c
 *   defines: BZ_RUNQ_LOG2=1 BZ_RUNQ_BITS=3 BZ_PROCS_MAX=2 BZ_LOCK_SPINS=1
 *
 * A toy worker of the real parts, put together as place.c, find.c and search.c do it. Each test is
 * one race: a push, or a spill, and a proc that goes to sleep; a park and a wake from outside; and
 * a child that is claimed, spilled, parked and woken. A lost task is a deadlock or a missing run; a
 * task run twice is a data race on `runs`.
 */
#include "model.h"
#include "model_os.h"

#include "queue/idle.h"
#include "queue/injector.h"
#include "queue/runq.h"

enum { TASKS = 4 };
static struct bz_runq ring[2];
static struct bz_injector injector;
static struct bz_idle idle;
static struct bz_barrier barrier;
static bz_atomic(uint32_t) roused[2];
static struct bz_task tasks[TASKS];
static bz_shared(int) runs[TASKS]; /* the task's own memory */
static bz_shared(int) body[TASKS]; /* 1 until it is freed */
static int frees[TASKS];

static int index_of(struct bz_task *t)
{
    return (int)(t - tasks);
}

static void given_procs(bool has_barrier, unsigned awake)
{
    bz_runq_init(&ring[0], false);
    bz_runq_init(&ring[1], false);
    bz_injector_init(&injector, &m_os);
    bz_barrier_init(&barrier, &m_os);
    bz_idle_init(&idle, 2, awake, &barrier, has_barrier);
    for (int i = 0; i < 2; i++)
        bz_atomic_init(&roused[i], 0);
    m_settings()->spurious = 0;
    m_settings()->spin_tries = 1; /* a lock gives up spinning, and sleeps */
}

static struct bz_task *given_task(int i, unsigned refs)
{
    bz_word_init(&tasks[i].word, BZ_SCHEDULED, refs);
    bz_set(&runs[i], 0);
    bz_set(&body[i], 1);
    frees[i] = 0;
    return &tasks[i];
}

/* ---- the toy ---- */

static void rouse(int proc)
{
    if (proc == BZ_NOBODY)
        return;
    bz_store_release(&roused[proc], 1);
    m_word_wake(&roused[proc], 1);
}

static void place_outside(bz_entry e)
{
    bz_injector_push(&injector, e);
    rouse(bz_idle_published(&idle));
}

static void frees_it(struct bz_task *t)
{
    bz_set(&body[index_of(t)], -1);
    frees[index_of(t)]++;
}

static void drops(struct bz_task *t)
{
    if (bz_word_unref(&t->word))
        frees_it(t);
}

static bool is_tombstone(bz_entry e)
{
    return bz_entry_tag(e) == BZ_ENTRY_FIRST && bz_word_is_started(&bz_entry_task(e)->word);
}

/* place.c: what a full ring spills are its oldest, but for tombstones. */
static void push(int me, bz_entry e)
{
    bz_entry old;
    if (bz_runq_try_push(&ring[me], e))
        return;
    if (bz_runq_take_some(&ring[me], &old, 1) > 0) {
        if (is_tombstone(old))
            drops(bz_entry_task(old));
        else
            bz_injector_push(&injector, old);
    }
    if (!bz_runq_try_push(&ring[me], e))
        bz_injector_push(&injector, e);
}

static void ends(struct bz_task *t, unsigned drop)
{
    if (bz_word_exit(&t->word, drop) == BZ_EXIT_LAST)
        frees_it(t);
}

static void runs_on(struct bz_task *t)
{
    int i = index_of(t);
    m_assert(bz_get(&body[i]) == 1);
    bz_set(&runs[i], bz_get(&runs[i]) + 1);
}

/* An entry taken from a queue runs to its end, or was a tombstone. */
static void run(bz_entry e, unsigned drop)
{
    struct bz_task *t = bz_entry_task(e);
    if (bz_entry_tag(e) == BZ_ENTRY_FIRST && !bz_word_claim(&t->word, 0)) {
        drops(t);
        return;
    }
    if (bz_entry_tag(e) == BZ_ENTRY_RESUMED)
        (void)!bz_word_step(&t->word, BZ_RUN);
    runs_on(t);
    ends(t, drop);
}

static bool has_work(void)
{
    return bz_injector_length(&injector) > 0 || bz_runq_count(&ring[0]) > 0 ||
           bz_runq_count(&ring[1]) > 0;
}

/* Proc 1 has found nothing: it sleeps unless its last look says otherwise. It must come back. */
static void sleeps_once(void)
{
    bz_store_relaxed(&roused[1], 0);
    bool will_search = bz_idle_announce(&idle, 1, true) && has_work();
    if (!will_search)
        m_word_wait(&roused[1], 0);
    m_assert(bz_idle_stay(&idle, 1, will_search));
}

/* ---- a push and a spill meet a proc that goes to sleep ---- */

static void owner_pushes(void)
{
    push(0, bz_entry_first(&tasks[0]));
    if (bz_idle_may_rouse(&idle))
        rouse(bz_idle_published(&idle));
}

static void thief_sleeps_and_steals(void)
{
    bz_entry e;
    do
        sleeps_once();
    while ((e = bz_runq_steal(&ring[0], &ring[1])) == 0);
    run(e, 1);
    rouse(bz_idle_found(&idle));
}

/* idle.c [F] with the ring's own tail as the store: no worker sleeps beside a ring with work. */
MODEL(park, bug_01_a_push_is_not_left_behind_a_proc_that_goes_to_sleep)
{
    given_procs(true, 2);
    given_task(0, 1);
    m_assert(bz_idle_search(&idle));
    m_threads(owner_pushes, thief_sleeps_and_steals);
    m_assert(bz_get(&runs[0]) == 1);
    m_assert(frees[0] == 1);
}

/* Spilled entries are in no queue for a moment; here they are the only work. */
static void owner_moves_its_last(void)
{
    bz_entry last;
    if (bz_runq_take_some(&ring[0], &last, 1) == 1) /* else it has been stolen */
        bz_injector_push(&injector, last);
}

static void owner_moves_its_last_and_looks(void)
{
    owner_moves_its_last();
    if (bz_idle_may_rouse(&idle))
        rouse(bz_idle_published(&idle));
}

static void thief_sleeps_and_takes(void)
{
    bz_entry e;
    do
        sleeps_once();
    while (bz_injector_take(&injector, &e, 1, 2) == 0 &&
           (e = bz_runq_steal(&ring[0], &ring[1])) == 0); /* on its way just now */
    run(e, 1);
    rouse(bz_idle_found(&idle));
}

static void given_a_ring_of_one(void)
{
    given_task(0, 1);
    push(0, bz_entry_first(&tasks[0]));
}

/* The sleeper's last look comes while the last entry is on its way from the ring to the injector. */
MODEL(park, bug_01_a_spill_does_not_hide_work_from_a_proc_that_goes_to_sleep)
{
    given_procs(true, 2);
    given_a_ring_of_one();
    m_assert(bz_idle_search(&idle));
    m_threads(owner_moves_its_last_and_looks, thief_sleeps_and_takes);
    m_assert(bz_get(&runs[0]) == 1);
    m_assert(frees[0] == 1);
}

MODEL_FAILS(park, a_spill_without_a_look_for_sleepers_leaves_one_asleep, "deadlock")
{
    given_procs(true, 2);
    given_a_ring_of_one();
    m_assert(bz_idle_search(&idle));
    m_threads(owner_moves_its_last, thief_sleeps_and_takes);
}

/* ---- a park meets a wake from outside ---- */

static void parks(int me, struct bz_task *t)
{
    if (bz_word_step(&t->word, BZ_PARK) == BZ_OWES_ENQUEUE) {
        push(me, bz_entry_resumed(t));
        rouse(bz_idle_published(&idle));
    }
}

static void worker_parks_task_0(void)
{
    parks(0, &tasks[0]);
}

static void outsider_wakes_task_0(void)
{
    if (bz_word_step(&tasks[0].word, BZ_WAKE) == BZ_OWES_ENQUEUE)
        place_outside(bz_entry_resumed(&tasks[0]));
}

static void given_a_running_task_0(void)
{
    given_task(0, 1);
    m_assert(bz_word_claim(&tasks[0].word, 0));
    runs_on(&tasks[0]);
}

/* The second of wake and park queues it; and the sleeper takes it. */
MODEL(park, bug_01_a_wake_from_outside_reaches_a_task_that_parks)
{
    given_procs(false, 2);
    given_a_running_task_0();
    m_assert(bz_idle_search(&idle));
    m_threads(worker_parks_task_0, outsider_wakes_task_0, thief_sleeps_and_takes);
    m_assert(bz_get(&runs[0]) == 2);
    m_assert(frees[0] == 1);
}

/* ---- claim, spill, park and a wake from outside ---- */

/* The owner joins child 0, which its full ring has spilled: it claims and calls it, the child parks,
 * and what is pushed next spills more. */
static void owner_claims_parks_and_spills(void)
{
    if (bz_word_claim(&tasks[0].word, 1)) {
        runs_on(&tasks[0]);
        parks(0, &tasks[0]);
    }
    push(0, bz_entry_first(&tasks[2]));
}

static void taker_runs_what_is_injected(void)
{
    bz_entry e;
    if (bz_injector_take(&injector, &e, 1, 2) != 0)
        run(e, 1);
}

static void the_rest_runs(void)
{
    for (bz_entry e;
         bz_injector_take(&injector, &e, 1, 2) != 0 || (e = bz_runq_take(&ring[0])) != 0;)
        run(e, 1);
    m_assert(!has_work());
}

static void each_task_was_freed_once(int count)
{
    for (int i = 0; i < count; i++)
        m_assert(frees[i] == 1);
}

/* The tombstone and the child itself stand in ring and injector in every mixture. */
MODEL(park, bug_04_claim_spill_park_and_wake_run_the_child_once_a_wake)
{
    given_procs(false, 2);
    for (int i = 0; i < 4; i++)
        given_task(i, 1);
    push(0, bz_entry_first(&tasks[0]));
    push(0, bz_entry_first(&tasks[1]));
    push(0, bz_entry_first(&tasks[3]));
    m_threads(owner_claims_parks_and_spills, outsider_wakes_task_0, taker_runs_what_is_injected);
    m_sometimes(bz_injector_length(&injector) == 2);
    the_rest_runs();
    m_sometimes(bz_get(&runs[0]) == 2); /* claimed, parked, woken */
    m_assert(bz_get(&runs[0]) == 1 || bz_get(&runs[0]) == 2);
    for (int i = 1; i < 4; i++)
        m_assert(bz_get(&runs[i]) == 1 && frees[i] == 1);
    m_assert(frees[0] == (bz_word_life(&tasks[0].word) == BZ_IDLE ? 0 : 1));
}

/* The same with a thief that may take the child's entry before it is claimed. */
static void thief_steals_and_runs(void)
{
    bz_entry e = bz_runq_steal(&ring[0], &ring[1]);
    if (e != 0)
        run(e, 1);
}

static void owner_claims_and_spills(void)
{
    if (bz_word_claim(&tasks[0].word, 1)) {
        runs_on(&tasks[0]);
        ends(&tasks[0], 1);
    }
    push(0, bz_entry_first(&tasks[2]));
}

MODEL(park, claim_spill_and_steal_run_each_once)
{
    given_procs(false, 2);
    for (int i = 0; i < 3; i++)
        given_task(i, 1);
    push(0, bz_entry_first(&tasks[0]));
    push(0, bz_entry_first(&tasks[1]));
    m_threads(owner_claims_and_spills, thief_steals_and_runs, taker_runs_what_is_injected);
    the_rest_runs();
    for (bz_entry e; (e = bz_runq_take(&ring[1])) != 0;)
        run(e, 1);
    for (int i = 0; i < 3; i++)
        m_assert(bz_get(&runs[i]) == 1);
    each_task_was_freed_once(3);
}
