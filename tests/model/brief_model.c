/*
 * brief_model.c - brief sections: the last references of a task are dropped by a plain store while no thread walks.
 *
 *   covers: src/queue/retake.h src/queue/retake.c src/base/unusual.h src/task/word.h
 *   needs: src/base/unusual.c src/queue/membarrier.c src/os/lock.c src/task/word.c
 *   defines: BZ_LOCK_SPINS=1
 *
 * A joiner has run its child and ends it, as end_alone of park/join.c. A walker looks for tasks, as bz_tasks_each of
 * life/tasks.c. `body` may be read while there is a reference: a use after the free is a data race.
 */
#include "base/unusual.h"
#include "queue/membarrier.h"
#include "queue/retake.h"
#include "task/word.h"

#include "model.h"
#include "model_os.h"

static struct bz_retake r;
static struct bz_barrier barrier;
static bz_word word;
static bz_shared(int) body; /* 1 until it is freed */
static int frees, was_brief, was_found;

static void given_a_child_that_has_returned(void)
{
    bz_barrier_init(&barrier, &m_os);
    bz_retake_init(&r, &m_os, false);
    bz_store_relaxed(&r.where, BZ_IN_USER);
    bz_atomic_init(&bz_unusual, 0);
    bz_word_init_simple(&word, 2);
    m_assert(bz_word_claim_alone(&word));
    bz_set(&body, 1);
    frees = was_brief = was_found = 0;
    m_settings()->spurious = 0;
}

static void frees_it(void)
{
    bz_set(&body, -1);
    frees++;
}

static void joiner_ends_it(void)
{
    if (bz_retake_enter_brief(&r) && bz_word_exit_alone(&word)) {
        was_brief = 1;
        frees_it();
        bz_retake_leave(&r, BZ_IN_USER);
        return;
    }
    bz_retake_leave(&r, BZ_IN_USER);
    if (bz_word_exit(&word, 2) == BZ_EXIT_LAST)
        frees_it();
}

static void walks(void)
{
    bz_unusual_begin();
    bz_barrier_pay(&barrier);
    bz_retake_outlast_brief(&r);
    if (bz_word_try_ref(&word)) {
        was_found = 1;
        m_assert(bz_get(&body) == 1);
        if (bz_word_unref(&word))
            frees_it();
    }
    bz_unusual_end();
}

/* retake.h [W] [E]: the walker gets the task whole, or not at all. */
MODEL(brief, a_walker_and_a_plain_store_of_the_last_reference_free_once)
{
    given_a_child_that_has_returned();
    m_threads(joiner_ends_it, walks);
    m_assert(frees == 1);
    m_sometimes(was_brief && !was_found);
    m_sometimes(!was_brief && was_found);
    m_sometimes(!was_brief && !was_found);
}

static void walks_and_cancels(void)
{
    bz_unusual_begin();
    bz_barrier_pay(&barrier);
    bz_retake_outlast_brief(&r);
    if (bz_word_try_ref(&word)) {
        was_found = 1;
        m_assert(bz_get(&body) == 1);
        (void)!bz_word_cancel(&word);
        if (bz_word_unref(&word))
            frees_it();
    }
    bz_unusual_end();
}

static void joiner_tries_twice(void)
{
    if (!bz_retake_enter_brief(&r)) {
        bz_retake_leave(&r, BZ_IN_USER);
        joiner_ends_it(); /* perhaps the walk is over: unusual.h [U] */
        return;
    }
    bz_retake_leave(&r, BZ_IN_USER);
    joiner_ends_it();
}

/* unusual.h [U]: a section after a walk sees what the walk did. */
MODEL(brief, a_section_after_a_walk_sees_its_references)
{
    given_a_child_that_has_returned();
    m_threads(joiner_tries_twice, walks_and_cancels);
    m_assert(frees == 1);
    m_sometimes(was_found);
}

static void joiner_ends_it_at_length(void)
{
    if (bz_retake_enter_brief(&r) && bz_word_exit_alone(&word)) {
        bz_retake_lengthen(&r); /* to free it by a call */
        frees_it();
        bz_retake_leave(&r, BZ_IN_USER);
        return;
    }
    bz_retake_leave(&r, BZ_IN_USER);
    if (bz_word_exit(&word, 2) == BZ_EXIT_LAST)
        frees_it();
}

/* retake.h [E]: a walker that finds the section over sees its stores. */
MODEL(brief, a_section_that_goes_on_in_the_runtime_has_published_its_stores)
{
    given_a_child_that_has_returned();
    m_threads(joiner_ends_it_at_length, walks);
    m_assert(frees == 1);
}

static void begins_and_ends(void)
{
    bz_unusual_begin();
    m_assert(!bz_is_usual());
    bz_unusual_end();
}

/* The end of one walk leaves the other in peace. */
MODEL(brief, two_conditions_are_both_counted)
{
    given_a_child_that_has_returned();
    m_threads(begins_and_ends, begins_and_ends);
    m_assert(bz_is_usual());
}

static void walks_twice(void)
{
    walks();
    walks();
}

MODEL(brief, two_walks_and_the_end_of_a_child_free_once)
{
    given_a_child_that_has_returned();
    m_threads(joiner_ends_it, walks_twice);
    m_assert(frees == 1);
}

/* ---- the monitor takes the proc ---- */

static int taken;

static void monitor_takes(void)
{
    bz_retake_ask(&r);
    bz_barrier_pay(&barrier);
    if (bz_retake_may(&r)) {
        taken = 1;
        bz_set(&body, 2);
    }
    bz_retake_end(&r, false);
}

static void machine_is_brief(void)
{
    if (bz_retake_enter_brief(&r)) {
        was_brief = 1;
        bz_set(&body, 3);
    }
    bz_retake_leave(&r, BZ_IN_USER);
}

/* retake.h [C]: a brief section is in the runtime, so the monitor takes nothing meanwhile. */
MODEL(brief, the_monitor_takes_nothing_from_a_brief_section)
{
    given_a_child_that_has_returned();
    taken = 0;
    m_threads(machine_is_brief, monitor_takes);
    m_sometimes(was_brief && taken);
    m_sometimes(was_brief && !taken);
    m_sometimes(!was_brief);
}
