/*
 * exclusion_model.c - the checker against mutual exclusion: Dekker, Peterson, and Dekker with the
 * cost moved to one side by a membarrier. Each with what it needs, and with a little less.
 *
 * The proof of exclusion is a plain field that both threads write inside: without it they race.
 */
#include "model.h"

static bz_atomic(int) flag[3]; /* of threads 1 and 2 */
static bz_atomic(int) turn;
static bz_shared(int) inside;
static int entered[3];
static int st, ld;

#define STORE(p, v) BZ_A_STORE(p, v, (enum m_order)st)
#define LOAD(p) BZ_A_LOAD(p, (enum m_order)ld)

static void critical(void)
{
    bz_set(&inside, m_self());
    m_assert(bz_get(&inside) == m_self());
    entered[m_self()] = 1;
}

static void given(int store, int load)
{
    st = store;
    ld = load;
    entered[1] = entered[2] = 0;
}

/* ---- Dekker's first step: raise the flag, look, go in or give up ---- */

static void dekker_tries(void)
{
    int me = m_self(), other = 3 - me;
    STORE(&flag[me], 1);
    if (LOAD(&flag[other]) == 0)
        critical();
    bz_store_release(&flag[me], 0);
}

MODEL(dekker, seq_cst_lets_one_in_at_most)
{
    given(BZ_SEQCST, BZ_SEQCST);
    m_threads(dekker_tries, dekker_tries);
    m_sometimes(entered[1] && !entered[2]);
    m_sometimes(!entered[1] && !entered[2]);
    m_sometimes(entered[1] && entered[2]); /* one after the other */
}

MODEL_FAILS(dekker, release_and_acquire_let_both_in, "data race")
{
    given(BZ_RELEASE, BZ_ACQUIRE);
    m_threads(dekker_tries, dekker_tries);
}

static void dekker_tries_fenced(void)
{
    int me = m_self(), other = 3 - me;
    bz_store_relaxed(&flag[me], 1);
    bz_fence_seqcst();
    if (bz_load_acquire(&flag[other]) == 0)
        critical();
    bz_store_release(&flag[me], 0);
}

MODEL(dekker, seq_cst_fences_let_one_in_at_most)
{
    given(BZ_RELAXED, BZ_RELAXED);
    m_threads(dekker_tries_fenced, dekker_tries_fenced);
}

/* ---- Peterson: wait for one's turn ---- */

static void peterson_enters(void)
{
    int me = m_self(), other = 3 - me;
    STORE(&flag[me], 1);
    STORE(&turn, other);
    while (LOAD(&flag[other]) == 1 && LOAD(&turn) == other)
        m_relax();
    critical();
    STORE(&flag[me], 0);
}

MODEL(peterson, seq_cst_lets_both_in_one_after_the_other)
{
    given(BZ_SEQCST, BZ_SEQCST);
    m_threads(peterson_enters, peterson_enters);
    m_assert(entered[1] && entered[2]);
}

MODEL_FAILS(peterson, release_and_acquire_let_both_in_at_once, "data race")
{
    given(BZ_RELEASE, BZ_ACQUIRE);
    m_threads(peterson_enters, peterson_enters);
}

/* ---- the asymmetric Dekker: the fast side pays nothing, the slow side a membarrier ---- */

static void fast_side(void)
{
    bz_store_relaxed(&flag[1], 1); /* relaxed: the membarrier on the other side orders it */
    bz_compiler_barrier();
    if (bz_load_acquire(&flag[2]) == 0)
        critical();
    bz_store_release(&flag[1], 0);
}

static void slow_side(void)
{
    bz_store_relaxed(&flag[2], 1);
    m_membarrier();
    if (bz_load_acquire(&flag[1]) == 0)
        critical();
    bz_store_release(&flag[2], 0);
}

static void slow_side_with_a_fence_only(void)
{
    bz_store_relaxed(&flag[2], 1);
    bz_fence_seqcst();
    if (bz_load_acquire(&flag[1]) == 0)
        critical();
    bz_store_release(&flag[2], 0);
}

MODEL(asymmetric_dekker, a_membarrier_on_one_side_orders_both)
{
    given(BZ_RELAXED, BZ_RELAXED);
    m_threads(fast_side, slow_side);
    m_sometimes(entered[1] && !entered[2]);
    m_sometimes(!entered[1] && entered[2]);
}

MODEL_FAILS(asymmetric_dekker, a_fence_on_one_side_does_not, "data race")
{
    given(BZ_RELAXED, BZ_RELAXED);
    m_threads(fast_side, slow_side_with_a_fence_only);
}

/* The fences may fall anywhere: two membarriers at once, and a thread that does nothing but look. */
static bz_atomic(int) x, y;
static int r[3];

static void stores_x_looks_at_y(void)
{
    bz_store_relaxed(&x, 1);
    m_membarrier();
    r[1] = bz_load_relaxed(&y);
}

static void stores_y_looks_at_x(void)
{
    bz_store_relaxed(&y, 1);
    r[2] = bz_load_relaxed(&x);
}

static void stores_y_looks_at_x_with_a_barrier(void)
{
    bz_store_relaxed(&y, 1);
    m_membarrier();
    r[2] = bz_load_relaxed(&x);
}

MODEL(membarrier, orders_a_store_and_a_load_of_another_thread)
{
    m_threads(stores_x_looks_at_y, stores_y_looks_at_x);
    m_never(r[1] == 0 && r[2] == 0);
    m_sometimes(r[1] == 1 && r[2] == 0);
    m_sometimes(r[1] == 0 && r[2] == 1);
    m_sometimes(r[1] == 1 && r[2] == 1);
}

MODEL(membarrier, two_at_once_do_not_wait_for_each_other)
{
    m_threads(stores_x_looks_at_y, stores_y_looks_at_x_with_a_barrier);
    m_never(r[1] == 0 && r[2] == 0);
}

/* Taking a proc away (as the scheduler will): the owner goes from user code back into the runtime. */
enum { USER, RUNTIME };
static bz_atomic(int) state, retake;
static bz_shared(int) proc;

static void owner_comes_back(void)
{
    bz_store_relaxed(&state, RUNTIME);
    bz_compiler_barrier();
    int asked;
    while ((asked = bz_load_acquire(&retake)) == 1)
        m_relax();
    if (asked == 0)
        bz_set(&proc, 1);
}

static void monitor_takes(void)
{
    bz_store_relaxed(&retake, 1);
    m_membarrier();
    if (bz_load_acquire(&state) == USER) {
        bz_set(&proc, 2);
        bz_store_release(&retake, 2);
    } else {
        bz_store_release(&retake, 0);
    }
}

MODEL(hand_over, the_proc_has_one_owner_at_a_time)
{
    m_threads(owner_comes_back, monitor_takes);
    m_sometimes(bz_get(&proc) == 1);
    m_sometimes(bz_get(&proc) == 2);
}
