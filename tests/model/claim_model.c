/*
 * claim_model.c - the state word of a task that may be claimed, joined, and found by a walker.
 *
 *   covers: src/task/word.h src/task/word.c
 *
 * The entry of a fresh task is in a queue with a reference; a joiner holds the handle and another.
 * `runs` is a plain field that only the runner of the task may access. `body` may be read until the
 * last reference is dropped. So two runs at once, or a use after the free, are data races.
 */
#include "model.h"

#include "task/word.h"

static bz_word word;
static bz_atomic(uint32_t) queued; /* 1: the resumed entry is in a queue */
static bz_atomic(uint32_t) flag;   /* the event of the task */
static bz_shared(int) runs;        /* the task's own memory */
static bz_shared(int) body;        /* data behind the header; 1 until it is freed */
static int frees, claims;          /* counted by the only owner, in any execution */

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

static void given_a_fresh_task(unsigned refs)
{
    bz_word_init(&word, BZ_SCHEDULED, refs);
    bz_atomic_init(&queued, 0);
    bz_atomic_init(&flag, 0);
    bz_set(&runs, 0);
    bz_set(&body, 1);
    frees = claims = 0;
}

static void frees_it(void)
{
    bz_set(&body, -1);
    frees++;
}

static void drops_one(void)
{
    if (bz_word_unref(&word))
        frees_it();
}

static void runs_to_its_end(unsigned drop)
{
    claims++;
    bz_set(&runs, bz_get(&runs) + 1);
    m_assert(bz_get(&body) == 1);
    switch (bz_word_exit(&word, drop)) {
    case BZ_EXIT_LAST:
        frees_it();
        break;
    case BZ_EXIT_DONE:
        break;
    case BZ_EXIT_TELL:
        m_assert(!"nobody has asked");
    }
}

/* The worker that took the first-run entry; the reference is the entry's. */
static void takes_the_first_entry(void)
{
    if (bz_word_claim(&word, 0))
        runs_to_its_end(1);
    else
        drops_one();
}

/* The joiner has the handle, and owns what it claims. */
static void claims_and_calls(void)
{
    if (bz_word_claim(&word, 1))
        runs_to_its_end(2);
    else
        drops_one();
}

/* word.c, the claim: the winner runs it, the other finds a tombstone, and the last reference
 * frees. */
MODEL(claim, of_two_claims_one_wins)
{
    given_a_fresh_task(2);
    m_threads(takes_the_first_entry, claims_and_calls);
    m_assert(claims == 1);
    m_assert(frees == 1);
}

MODEL(claim, of_three_claims_one_wins)
{
    given_a_fresh_task(3);
    m_settings()->spurious = 0;
    m_threads(takes_the_first_entry, claims_and_calls, takes_the_first_entry);
    m_assert(claims == 1);
    m_assert(frees == 1);
}

/* The claimed task parks on the joiner's stack and is woken from outside. */
static void claims_calls_and_parks(void)
{
    m_assert(bz_word_claim(&word, 1));
    claims++;
    bz_set(&runs, bz_get(&runs) + 1);
    if (bz_word_step(&word, BZ_PARK) == BZ_OWES_ENQUEUE)
        enqueue();
}

static void takes_the_resumed_entry(void)
{
    while (!bz_xchg_acqrel(&queued, 0))
        m_word_wait(&queued, 0);
    (void)!bz_word_step(&word, BZ_RUN);
    runs_to_its_end(2);
}

/* The tombstone comes out of its queue when the task is scheduled for the second time: a check for
 * "scheduled" alone would run it a second time. */
MODEL(claim, bug_04_a_tombstone_does_not_run_a_task_that_was_woken_again)
{
    given_a_fresh_task(2);
    claims_calls_and_parks();
    m_threads(wakes, takes_the_first_entry, takes_the_resumed_entry);
    m_assert(claims == 2); /* once on each of its two runs */
    m_assert(frees == 1);
}

static void ends_with_two(void)
{
    runs_to_its_end(2);
}

/* Claim, run and end; the entry's taker is late or in the middle. */
MODEL(claim, a_claim_against_an_exit_finds_a_tombstone)
{
    given_a_fresh_task(2);
    m_assert(bz_word_claim(&word, 1));
    claims = 1;
    bz_set(&runs, 0);
    m_settings()->spurious = 0;
    m_threads(takes_the_first_entry, ends_with_two);
    m_assert(claims == 2);
    m_assert(frees == 1);
}

/* [T]: a wake of a fresh task is one of scheduled; the first run must see what came before it. */
static void works_by_claim(void)
{
    m_assert(bz_word_claim(&word, 0));
    if (!bz_load_relaxed(&flag) && bz_word_step(&word, BZ_PARK) == BZ_OWES_NOTHING) {
        while (!bz_xchg_acqrel(&queued, 0))
            m_word_wait(&queued, 0);
    }
}

MODEL(claim, bug_01_a_wake_before_the_claim_is_seen_by_the_first_run)
{
    given_a_fresh_task(1);
    m_threads(works_by_claim, wakes);
}

static void claims_it(void)
{
    m_assert(bz_word_claim(&word, 0));
}

static void cancels_it(void)
{
    m_assert(bz_word_cancel(&word));
}

static void refs_and_drops(void)
{
    bz_word_ref(&word);
    m_assert(!bz_word_unref(&word));
}

static void wakes_it(void)
{
    (void)!bz_word_step(&word, BZ_WAKE);
}

MODEL(claim, a_cancel_and_a_claim_at_once_both_count)
{
    given_a_fresh_task(1);
    m_threads(claims_it, cancels_it);
    m_assert(bz_word_is_cancelled(&word));
    m_assert(bz_word_life(&word) == BZ_RUNNING);
}

MODEL(claim, references_and_a_claim_at_once_are_all_counted)
{
    given_a_fresh_task(1);
    m_threads(claims_it, refs_and_drops);
    m_assert(bz_word_unref(&word));
}

/* ---- the end, and who waits for it ---- */

static bz_shared(int) joiner; /* linked by the joiner for the finisher */
static int told, refused;

static void links_and_asks(void)
{
    bz_set(&joiner, 5);
    if (bz_word_want_join(&word))
        return;
    refused++;
    m_assert(bz_get(&runs) == 1); /* [J]: what it wrote is visible */
    drops_one();
}

static void ends(void)
{
    bz_set(&runs, 1);
    switch (bz_word_exit(&word, 1)) {
    case BZ_EXIT_TELL:
        m_assert(bz_get(&joiner) == 5); /* [J] */
        told++;
        m_assert(!bz_word_unref(&word));
        if (bz_word_unref(&word)) /* the joiner, being told, drops its own */
            frees_it();
        break;
    case BZ_EXIT_LAST:
        frees_it();
        break;
    case BZ_EXIT_DONE:
        break;
    }
}

static void given_a_running_task(unsigned refs)
{
    given_a_fresh_task(refs);
    m_assert(bz_word_claim(&word, 0));
    told = refused = 0;
}

/* Either the joiner sees the end or the end sees the joiner. */
MODEL(claim, bug_01_an_end_and_a_joiner_do_not_miss_each_other)
{
    given_a_running_task(2);
    m_threads(ends, links_and_asks);
    m_assert(told + refused == 1);
    m_assert(frees == 1);
    m_sometimes(told == 1);
    m_sometimes(refused == 1);
}

static void asks_twice(void)
{
    if (bz_word_want_join(&word) && bz_word_want_join(&word))
        return;
    refused++;
}

static void ends_and_counts(void)
{
    told += bz_word_exit(&word, 1) == BZ_EXIT_TELL;
}

/* Another joiner may come between the first one's question and the end: it is told or refused. */
MODEL(claim, a_second_joiner_is_woken_or_refused)
{
    given_a_running_task(3);
    m_threads(ends_and_counts, asks_twice, asks_twice);
    m_assert(told == 1 || refused == 2);
}

static void reads_and_drops(void)
{
    m_assert(bz_get(&body) == 1);
    drops_one();
}

static void ends_alone(void)
{
    runs_to_its_end(1);
}

/* [R] with exit as one of the two: its use of the task, and the other's, come before the free. */
MODEL(claim, the_end_and_the_last_handle_free_once)
{
    given_a_running_task(2);
    m_threads(ends_alone, reads_and_drops);
    m_assert(frees == 1);
}

MODEL(claim, a_wake_against_the_end_changes_nothing)
{
    given_a_running_task(2);
    m_threads(ends_alone, wakes_it);
    m_assert(bz_word_is_complete(&word));
    bz_word_check(&word);
}

/* ---- found by its word ---- */

static void walks(void)
{
    if (!bz_word_try_ref(&word))
        return;
    m_assert(bz_get(&body) == 1); /* it is there, and as it was made */
    if (bz_word_unref(&word))
        frees_it();
}

/* A walker over all words meets the last reference: it gets the task whole, or not at all. */
MODEL(claim, a_walker_and_the_last_reference_free_once)
{
    given_a_fresh_task(1);
    m_threads(walks, drops_one);
    m_assert(frees == 1);
    m_assert(!bz_word_try_ref(&word));
}

MODEL(claim, two_walkers_and_the_last_reference_free_once)
{
    given_a_fresh_task(1);
    m_settings()->spurious = 0;
    m_threads(walks, drops_one, walks);
    m_assert(frees == 1);
}

static void makes_it(void)
{
    bz_set(&body, 1);
    bz_word_init(&word, BZ_SCHEDULED, 1);
}

/* [P]: a walker sees a task that is just being made whole, or not yet. */
MODEL(claim, a_walker_sees_a_new_task_completely_or_not_at_all)
{
    bz_atomic_init(&word, 0);
    bz_set(&body, 0);
    frees = 0;
    m_threads(makes_it, walks);
    m_assert(frees == 0);
    m_assert(bz_word_unref(&word));
}

/* ---- simple tasks ---- */

static void makes_a_simple_task(void)
{
    bz_set(&body, 1);
    bz_word_init_simple(&word, 2);
}

/* word.c [P] */
MODEL(claim, a_walker_sees_a_new_simple_task_completely_or_not_at_all)
{
    bz_word_init(&word, BZ_COMPLETE, 0);
    frees = claims = 0;
    m_threads(makes_a_simple_task, walks);
    m_assert(frees == 0);
}

static bool is_claimed, is_alone;

static void given_a_simple_task(unsigned refs)
{
    given_a_fresh_task(refs);
    bz_word_init_simple(&word, refs);
    is_claimed = is_alone = false;
}

static void claims_alone(void)
{
    is_claimed = bz_word_claim_alone(&word);
}

static void cancels_by_a_borrowed_handle(void)
{
    m_assert(bz_word_cancel(&word));
}

/* A cancel through a borrowed handle is not lost: it comes before the claim, which refuses, or after it. */
MODEL(claim, a_cancel_beside_a_claim_of_a_simple_task_counts)
{
    given_a_simple_task(2);
    m_threads(claims_alone, cancels_by_a_borrowed_handle);
    m_assert(bz_word_is_cancelled(&word));
    m_sometimes(is_claimed);
    m_sometimes(!is_claimed);
}

static void writes_and_drops(void)
{
    bz_set(&body, 2);
    m_assert(!bz_word_unref(&word));
}

static void claims_alone_and_reads(void)
{
    is_claimed = bz_word_claim_alone(&word);
    if (is_claimed)
        m_assert(bz_get(&body) == 2);
}

/* word.c [T]: the claimer sees what a thread with a handle did before it dropped the handle. */
MODEL(claim, a_claim_of_a_simple_task_sees_the_writes_of_earlier_handles)
{
    given_a_simple_task(3);
    m_threads(claims_alone_and_reads, writes_and_drops);
    m_sometimes(is_claimed);
}

static void ends_alone_or_not(void)
{
    is_alone = bz_word_exit_alone(&word);
    if (is_alone)
        frees_it();
}

static void takes_part_and_drops(void)
{
    m_assert(bz_get(&body) == 1);
    m_assert(!bz_word_unref(&word));
}

/* word.c [R]: the last use of another handle comes before the free. */
MODEL(claim, the_end_of_a_simple_task_comes_after_every_use)
{
    given_a_simple_task(2);
    m_assert(bz_word_claim_alone(&word));
    bz_word_ref(&word);
    m_threads(ends_alone_or_not, takes_part_and_drops);
    m_assert(frees == (is_alone ? 1 : 0));
    m_sometimes(is_alone);
    m_sometimes(!is_alone);
}
