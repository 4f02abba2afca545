/*
 * classics_model.c - the checker against algorithms whose mistakes are famous.
 *
 * Chase-Lev's deque needs a seq_cst fence between taking and looking, and a stale take duplicates a
 * job without it. Treiber's stack pops the wrong node when one comes back meanwhile (ABA), unless a
 * tag counts. A seqlock reader must see that a writer was there. A sleeper must look once more after
 * it said that it would sleep. (Vyukov's MPMC ring is ours: mpmc_model.c.)
 */
#include "model.h"

/* ---- Chase-Lev: the owner takes at the bottom, thieves at the top ---- */

enum { JOBS = 2 };
static bz_atomic(int) top, bottom;
static bz_atomic(int) job[4];
static int runs[JOBS + 1]; /* how often each job was run */
static bool has_fence;

static void deque_push(int j)
{
    int b = bz_load_relaxed(&bottom);
    bz_store_relaxed(&job[b], j);
    bz_store_release(&bottom, b + 1);
}

static int deque_take(void)
{
    int b = bz_load_relaxed(&bottom) - 1;
    bz_store_relaxed(&bottom, b);
    if (has_fence)
        bz_fence_seqcst();
    int t = bz_load_relaxed(&top), j = 0;
    if (t <= b) {
        j = bz_load_relaxed(&job[b]);
        if (t < b)
            return j;
        if (!bz_cas_strong_sc_rlx(&top, &t, t + 1))
            j = 0;
    }
    bz_store_relaxed(&bottom, b + 1);
    return j;
}

static int deque_steal(void)
{
    int t = bz_load_acquire(&top);
    bz_fence_seqcst();
    int b = bz_load_acquire(&bottom);
    if (t >= b)
        return 0;
    int j = bz_load_relaxed(&job[t]);
    return bz_cas_strong_sc_rlx(&top, &t, t + 1) ? j : 0;
}

static void owner_takes_twice(void)
{
    for (int i = 0; i < 2; i++)
        runs[deque_take()]++;
}

static void thief_steals_twice(void)
{
    for (int i = 0; i < 2; i++)
        runs[deque_steal()]++;
}

static void thief_steals_once(void)
{
    runs[deque_steal()]++;
}

static void given_two_jobs(void)
{
    for (int i = 0; i <= JOBS; i++)
        runs[i] = 0;
    bz_store_relaxed(&top, 0);
    bz_store_relaxed(&bottom, 0);
    deque_push(1);
    deque_push(2);
}

static void each_job_runs_once(void)
{
    for (int j; (j = deque_take()) != 0;)
        runs[j]++;
    m_assert(runs[1] == 1);
    m_assert(runs[2] == 1);
}

MODEL(chase_lev, with_its_fence_every_job_runs_once)
{
    has_fence = true;
    given_two_jobs();
    m_threads(owner_takes_twice, thief_steals_twice);
    m_finally(each_job_runs_once);
}

MODEL(chase_lev, with_its_fence_two_thieves_change_nothing)
{
    has_fence = true;
    given_two_jobs();
    m_threads(owner_takes_twice, thief_steals_once, thief_steals_once);
    m_finally(each_job_runs_once);
}

MODEL_FAILS(chase_lev, without_its_fence_a_job_runs_twice, "runs[")
{
    has_fence = false;
    given_two_jobs();
    m_threads(owner_takes_twice, thief_steals_twice);
    m_finally(each_job_runs_once);
}

/* ---- Treiber's stack: nodes 1 .. 3, 0 is the end ---- */

static bz_atomic(uint32_t) head; /* node in the low half, tag in the high one */
static bz_atomic(uint32_t) next[4];
static uint32_t tag_step;
static int popped[4];

static void stack_push(uint32_t node)
{
    uint32_t old = bz_load_relaxed(&head);
    do
        bz_store_relaxed(&next[node], old & 0xffff);
    while (!bz_cas_weak_rel_rlx(&head, &old, ((old & 0xffff0000) + tag_step) | node));
}

static uint32_t stack_pop(void)
{
    uint32_t old = bz_load_acquire(&head);
    for (;;) {
        uint32_t node = old & 0xffff;
        if (node == 0)
            return 0;
        uint32_t then = bz_load_relaxed(&next[node]);
        if (bz_cas_weak_acq_acq(&head, &old, ((old & 0xffff0000) + tag_step) | then))
            return node;
    }
}

static void pops_one(void)
{
    popped[stack_pop()]++;
}

static void pops_two_and_puts_the_first_back(void)
{
    uint32_t a = stack_pop(), b = stack_pop();
    popped[b]++;
    if (a != 0)
        stack_push(a);
}

static void given_three_nodes(uint32_t step)
{
    tag_step = step;
    bz_store_relaxed(&head, 0);
    for (uint32_t i = 3; i > 0; i--) {
        popped[i] = 0;
        stack_push(i);
    }
    popped[0] = 0;
    m_settings()->spurious = 0; /* the loops have their own reasons to go round */
}

static void every_node_is_popped_once(void)
{
    for (uint32_t n; (n = stack_pop()) != 0;)
        popped[n]++;
    for (int i = 1; i <= 3; i++)
        m_assert(popped[i] == 1);
}

MODEL_FAILS(treiber, a_node_that_comes_back_corrupts_the_stack, "popped[i] == 1")
{
    given_three_nodes(0);
    m_threads(pops_one, pops_two_and_puts_the_first_back);
    m_finally(every_node_is_popped_once);
}

MODEL(treiber, a_tag_tells_that_it_was_away)
{
    given_three_nodes(0x10000);
    m_threads(pops_one, pops_two_and_puts_the_first_back);
    m_finally(every_node_is_popped_once);
}

/* ---- a seqlock ---- */

static bz_atomic(int) seq, left, right;
static int got_left, got_right;
static bool has_release;

static void seq_writes(void)
{
    int s = bz_load_relaxed(&seq);
    bz_store_relaxed(&seq, s + 1);
    BZ_A_FENCE(BZ_RELEASE);
    bz_store_relaxed(&left, 1);
    bz_store_relaxed(&right, 1);
    if (has_release)
        bz_store_release(&seq, s + 2);
    else
        bz_store_relaxed(&seq, s + 2);
}

static void seq_reads(void)
{
    for (;;) {
        int before = bz_load_acquire(&seq);
        got_left = bz_load_relaxed(&left);
        got_right = bz_load_relaxed(&right);
        BZ_A_FENCE(BZ_ACQUIRE);
        if (before % 2 == 0 && bz_load_relaxed(&seq) == before)
            return;
        m_relax();
    }
}

MODEL(seqlock, a_reader_sees_both_halves_of_one_state)
{
    has_release = true;
    m_threads(seq_writes, seq_reads);
    m_assert(got_left == got_right);
    m_sometimes(got_left == 1);
    m_sometimes(got_left == 0);
}

MODEL_FAILS(seqlock, without_its_release_a_reader_sees_half, "got_left == got_right")
{
    has_release = false;
    m_threads(seq_writes, seq_reads);
    m_assert(got_left == got_right);
}

/* ---- going to sleep while work arrives ---- */

static bz_atomic(uint32_t) word; /* 1: asleep, or about to be */
static bz_atomic(int) work;
static bool looks_again, is_fenced;

static void sleeper(void)
{
    while (bz_load_acquire(&work) == 0) {
        bz_store_relaxed(&word, 1);
        if (is_fenced)
            bz_fence_seqcst();
        if (looks_again && bz_load_acquire(&work) != 0)
            return;
        m_word_wait(&word, 1);
    }
}

static void brings_work(void)
{
    bz_store_release(&work, 1);
    if (is_fenced)
        bz_fence_seqcst();
    if (bz_load_relaxed(&word) == 1) {
        bz_store_relaxed(&word, 0);
        m_word_wake(&word, 1);
    }
}

MODEL(sleeping, one_more_look_after_a_fence_loses_nothing)
{
    looks_again = is_fenced = true;
    m_threads(sleeper, brings_work);
}

MODEL_FAILS(sleeping, without_the_second_look_the_wake_is_lost, "deadlock")
{
    looks_again = false;
    is_fenced = true;
    m_threads(sleeper, brings_work);
}

MODEL_FAILS(sleeping, without_the_fence_the_wake_is_lost, "deadlock")
{
    looks_again = true;
    is_fenced = false;
    m_threads(sleeper, brings_work);
}

/* The word itself says whether there is something to wait for: then the kernel's look is the second. */
static void sleeper_on_the_work_itself(void)
{
    while (bz_load_acquire(&word) == 0)
        m_word_wait(&word, 0);
}

static void brings_it_in_the_word(void)
{
    bz_store_release(&word, 1);
    m_word_wake(&word, 1);
}

static void brings_it_and_tells_nobody(void)
{
    bz_store_release(&word, 1);
}

MODEL(sleeping, a_wake_after_the_change_of_the_word_is_never_lost)
{
    m_threads(sleeper_on_the_work_itself, brings_it_in_the_word);
}

MODEL_FAILS(sleeping, a_change_without_a_wake_is, "lost wakeup")
{
    m_threads(sleeper_on_the_work_itself, brings_it_and_tells_nobody);
}

static void wakes_one(void)
{
    bz_store_release(&word, 1);
    m_word_wake(&word, 1);
}

static void wakes_all(void)
{
    bz_store_release(&word, 1);
    m_word_wake(&word, 2);
}

MODEL_FAILS(sleeping, one_wake_is_not_enough_for_two, "lost wakeup")
{
    m_threads(sleeper_on_the_work_itself, sleeper_on_the_work_itself, wakes_one);
}

MODEL(sleeping, two_are_roused_together)
{
    m_threads(sleeper_on_the_work_itself, sleeper_on_the_work_itself, wakes_all);
}

static void gives_up_after_a_while(void)
{
    while (bz_load_acquire(&word) == 0)
        if (m_word_wait_timed(&word, 0) != 0)
            return;
}

MODEL(sleeping, a_deadline_needs_no_wake)
{
    m_threads(gives_up_after_a_while, brings_it_and_tells_nobody);
}
