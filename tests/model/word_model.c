/*
 * word_model.c - the state word: a wake is never lost, and a task is never in two places.
 *
 *   covers: src/task/word.h src/task/word.c
 *
 * A toy worker around the real word. The "queue" is one slot; `runs` is a plain field that only the
 * worker running the task may touch, so two workers at once would be a data race.
 */
#include "model.h"

#include "task/word.h"

static bz_word word;
static bz_atomic(uint32_t) queued; /* 1: in the queue */
static bz_atomic(uint32_t) flag;   /* the event of the task */
static bz_shared(int) runs;        /* the task's own memory */
static bz_shared(int) message;     /* written by the waker before the wake */

static void enqueue(void)
{
    uint32_t was = bz_xchg_acqrel(&queued, 1);
    m_assert(was == 0); /* never in the queue twice */
    m_word_wake(&queued, 1);
}

static void wakes(void)
{
    bz_store_relaxed(&flag, 1); /* the wake publishes it */
    if (bz_word_step(&word, BZ_WAKE) == BZ_OWES_ENQUEUE)
        enqueue();
}

/* Run the task each time it comes round: it parks until the flag is set, then exits. */
static void works(void)
{
    for (;;) {
        while (!bz_xchg_acqrel(&queued, 0))
            m_word_wait(&queued, 0);
        (void)!bz_word_step(&word, BZ_RUN);
        bz_set(&runs, bz_get(&runs) + 1);
        bool is_over = bz_load_relaxed(&flag);
        if (is_over) {
            (void)!bz_word_exit(&word, 0);
            return;
        }
        if (bz_word_step(&word, BZ_PARK) == BZ_OWES_ENQUEUE)
            enqueue();
    }
}

static void given_a_queued_task(void)
{
    bz_word_init(&word, BZ_SCHEDULED, 1);
    bz_atomic_init(&queued, 1);
    bz_atomic_init(&flag, 0);
    bz_set(&runs, 0);
}

/* word.c [T]: a wake while it runs, while it parks, while it is parked. A lost one is a deadlock. */
MODEL(word, bug_01_a_wake_is_not_lost_whenever_it_comes)
{
    given_a_queued_task();
    m_threads(works, wakes);
    m_assert(bz_word_is_complete(&word));
    m_sometimes(bz_get(&runs) == 1);
    m_sometimes(bz_get(&runs) == 2);
}

MODEL(word, two_wakes_at_once_enqueue_once)
{
    given_a_queued_task();
    m_threads(works, wakes, wakes);
    m_assert(bz_word_is_complete(&word));
}

/* Two workers: the queue's slot goes to whichever comes first. */
static void works_once(void)
{
    if (!bz_xchg_acquire(&queued, 0)) /* as every queue of ours: word.c says that it must */
        return;
    (void)!bz_word_step(&word, BZ_RUN);
    bz_set(&runs, bz_get(&runs) + 1);
    if (bz_word_step(&word, BZ_YIELD) == BZ_OWES_ENQUEUE) {
        uint32_t was = bz_xchg_release(&queued, 1);
        m_assert(was == 0);
    }
}

MODEL(word, bug_04_the_next_worker_sees_the_writes_of_the_last)
{
    given_a_queued_task();
    m_threads(works_once, works_once);
    m_sometimes(bz_get(&runs) == 2);
}

/* ---- a wake of a scheduled task still publishes ---- */

static void wakes_with_a_message(void)
{
    bz_set(&message, 7);
    bz_store_relaxed(&flag, 1);
    if (bz_word_step(&word, BZ_WAKE) == BZ_OWES_ENQUEUE)
        enqueue();
}

static void runs_and_reads(void)
{
    (void)!bz_word_step(&word, BZ_RUN);
    if (bz_word_step(&word, BZ_PARK) == BZ_OWES_ENQUEUE) { /* it was woken: the message is there */
        (void)!bz_word_step(&word, BZ_RUN);
        m_assert(bz_get(&message) == 7);
        m_assert(bz_load_relaxed(&flag) == 1);
    }
}

MODEL(word, a_wake_during_a_run_publishes_earlier_writes)
{
    bz_word_init(&word, BZ_SCHEDULED, 1);
    bz_set(&message, 0);
    bz_atomic_init(&flag, 0);
    bz_atomic_init(&queued, 0);
    m_threads(runs_and_reads, wakes_with_a_message);
}

/* ---- references ---- */

static bz_shared(int) body; /* data behind the header */
static bz_atomic(int) freed;

static void uses_and_drops(void)
{
    bz_set(&body, bz_get(&body)); /* guarded by nothing but the turn below */
    if (bz_word_unref(&word)) {
        bz_set(&body, -1); /* the free */
        bz_fetch_add_relaxed(&freed, 1);
    }
}

static void only_drops(void)
{
    if (bz_word_unref(&word)) {
        bz_set(&body, -1);
        bz_fetch_add_relaxed(&freed, 1);
    }
}

/* word.c [R]: every use comes before the free, and exactly one frees. */
MODEL(word, the_last_reference_frees_after_every_use)
{
    bz_word_init(&word, BZ_COMPLETE, 2);
    bz_set(&body, 1);
    bz_atomic_init(&freed, 0);
    m_threads(uses_and_drops, only_drops);
    m_assert(bz_load_relaxed(&freed) == 1);
}

/* ---- cancelling ---- */

static bz_shared(int) why;

static void cancels(void)
{
    bz_set(&why, 3);
    (void)!bz_word_cancel(&word);
}

static void asks(void)
{
    if (bz_word_is_cancelled(&word))
        m_assert(bz_get(&why) == 3);
}

/* word.c [C]: who finds itself cancelled can see why. */
MODEL(word, a_cancel_brings_its_reason)
{
    bz_word_init(&word, BZ_RUNNING, 1);
    bz_set(&why, 0);
    m_threads(cancels, asks);
}

static void joins(void)
{
    if (bz_word_is_complete(&word))
        m_assert(bz_get(&runs) == 1);
}

static void exits(void)
{
    (void)!bz_word_step(&word, BZ_RUN);
    bz_set(&runs, 1);
    (void)!bz_word_exit(&word, 0);
}

/* word.c [T]: who sees the end sees what was done. */
MODEL(word, completion_brings_the_result)
{
    given_a_queued_task();
    m_threads(exits, joins);
}

/* ---- fields beside fields: no change of one loses a change of another ---- */

static void refs_and_drops(void)
{
    bz_word_ref(&word);
    m_assert(!bz_word_unref(&word));
}

MODEL(word, references_taken_at_once_are_all_counted)
{
    bz_word_init(&word, BZ_RUNNING, 1);
    m_threads(refs_and_drops, refs_and_drops);
    m_assert(bz_word_unref(&word));
}

static void wakes_it(void)
{
    (void)!bz_word_step(&word, BZ_WAKE);
}

static void cancels_it(void)
{
    m_assert(bz_word_cancel(&word));
}

MODEL(word, a_cancel_and_a_wake_at_once_both_count)
{
    bz_word_init(&word, BZ_RUNNING, 1);
    m_threads(cancels_it, wakes_it);
    m_assert(bz_word_is_cancelled(&word));
    m_assert(bz_word_step(&word, BZ_PARK) == BZ_OWES_ENQUEUE); /* it was notified */
}

static void shields_itself(void)
{
    bz_word_shield(&word);
    bz_word_unshield(&word);
}

MODEL(word, a_shield_put_up_and_down_loses_no_wake)
{
    bz_word_init(&word, BZ_RUNNING, 1);
    m_threads(shields_itself, wakes_it);
    m_assert(bz_word_step(&word, BZ_PARK) == BZ_OWES_ENQUEUE);
    bz_word_check(&word);
}
