/*
 * litmus_model.c - the checker against shapes whose answers are known, each both ways.
 *
 * A litmus test is a few stores and loads and a question: can it end like this? The literature has
 * the answers for C11. For each shape we ask the checker to find the outcome with orders that allow
 * it, and to find that it never happens with orders that forbid it. A checker that gets these right
 * may still be wrong; one that gets one of them wrong is useless.
 *
 * The orders are variables, so that each shape is written once. Shapes have their usual names:
 *   MP message passing   SB store buffering   WRC write-to-read causality   IRIW independent reads of
 *   independent writes   ISA2 a chain through three threads   R, S, 2+2W two writes to one location
 */
#include "model.h"

static bz_atomic(int) x, y, z;
static int r[5];   /* values read by the threads */
static int st, ld; /* orders of this case's stores and loads */
static int fence;  /* of its fences */

static void orders(int store, int load)
{
    st = store;
    ld = load;
}

#define STORE(p, v) BZ_A_STORE(p, v, M_ORDER(st))
#define LOAD(p) BZ_A_LOAD(p, M_ORDER(ld))
#define FENCE() BZ_A_FENCE(M_ORDER(fence))

/* ---- MP: data, then a flag ---- */

static void mp_sends(void)
{
    bz_store_relaxed(&x, 1);
    STORE(&y, 1);
}

static void mp_receives(void)
{
    r[0] = LOAD(&y);
    r[1] = bz_load_relaxed(&x);
}

MODEL(mp, with_release_and_acquire_the_data_comes_with_its_flag)
{
    orders(BZ_RELEASE, BZ_ACQUIRE);
    m_threads(mp_sends, mp_receives);
    m_never(r[0] == 1 && r[1] == 0);
    m_sometimes(r[0] == 1 && r[1] == 1);
}

MODEL(mp, without_release_the_data_may_lag_behind)
{
    orders(BZ_RELAXED, BZ_ACQUIRE);
    m_threads(mp_sends, mp_receives);
    m_sometimes(r[0] == 1 && r[1] == 0);
}

MODEL(mp, without_acquire_the_data_may_lag_behind)
{
    orders(BZ_RELEASE, BZ_RELAXED);
    m_threads(mp_sends, mp_receives);
    m_sometimes(r[0] == 1 && r[1] == 0);
}

/* ---- SB: each stores, then looks at the other's ---- */

static void sb_left(void)
{
    STORE(&x, 1);
    r[0] = LOAD(&y);
}

static void sb_right(void)
{
    STORE(&y, 1);
    r[1] = LOAD(&x);
}

MODEL(sb, with_seq_cst_one_of_the_two_sees_the_other)
{
    orders(BZ_SEQCST, BZ_SEQCST);
    m_threads(sb_left, sb_right);
    m_never(r[0] == 0 && r[1] == 0);
    m_sometimes(r[0] == 1 && r[1] == 1);
}

MODEL(sb, with_release_and_acquire_neither_may_see_the_other)
{
    orders(BZ_RELEASE, BZ_ACQUIRE);
    m_threads(sb_left, sb_right);
    m_sometimes(r[0] == 0 && r[1] == 0);
}

MODEL(sb, with_seq_cst_stores_alone_neither_may_see_the_other)
{
    orders(BZ_SEQCST, BZ_ACQUIRE);
    m_threads(sb_left, sb_right);
    m_sometimes(r[0] == 0 && r[1] == 0);
}

static void sb_left_fenced(void)
{
    bz_store_relaxed(&x, 1);
    FENCE();
    r[0] = bz_load_relaxed(&y);
}

static void sb_right_fenced(void)
{
    bz_store_relaxed(&y, 1);
    FENCE();
    r[1] = bz_load_relaxed(&x);
}

MODEL(sb, with_seq_cst_fences_one_sees_the_other)
{
    fence = BZ_SEQCST;
    m_threads(sb_left_fenced, sb_right_fenced);
    m_never(r[0] == 0 && r[1] == 0);
}

MODEL(sb, with_acq_rel_fences_neither_may_see_the_other)
{
    fence = BZ_ACQREL;
    m_threads(sb_left_fenced, sb_right_fenced);
    m_sometimes(r[0] == 0 && r[1] == 0);
}

MODEL(sb, a_fence_on_one_side_is_not_enough)
{
    fence = BZ_SEQCST;
    orders(BZ_RELAXED, BZ_RELAXED);
    m_threads(sb_left_fenced, sb_right);
    m_sometimes(r[0] == 0 && r[1] == 0);
}

static void sb_left_rmw(void)
{
    (void)BZ_A_XCHG(&x, 1, M_ORDER(st));
    r[0] = LOAD(&y);
}

static void sb_right_rmw(void)
{
    (void)BZ_A_XCHG(&y, 1, M_ORDER(st));
    r[1] = LOAD(&x);
}

MODEL(sb, an_acq_rel_exchange_is_no_fence)
{
    orders(BZ_ACQREL, BZ_ACQUIRE);
    m_threads(sb_left_rmw, sb_right_rmw);
    m_sometimes(r[0] == 0 && r[1] == 0);
}

MODEL(sb, seq_cst_exchanges_and_loads_are_ordered)
{
    orders(BZ_SEQCST, BZ_SEQCST);
    m_threads(sb_left_rmw, sb_right_rmw);
    m_never(r[0] == 0 && r[1] == 0);
}

/* ---- WRC: one writes, one passes it on, one looks ---- */

static void wrc_writes(void)
{
    bz_store_relaxed(&x, 1);
}

static void wrc_passes_on(void)
{
    r[0] = bz_load_relaxed(&x);
    STORE(&y, 1);
}

static void wrc_looks(void)
{
    r[1] = LOAD(&y);
    r[2] = bz_load_relaxed(&x);
}

MODEL(wrc, reads_before_a_release_happen_before_the_acquire)
{
    orders(BZ_RELEASE, BZ_ACQUIRE);
    m_threads(wrc_writes, wrc_passes_on, wrc_looks);
    m_never(r[0] == 1 && r[1] == 1 && r[2] == 0);
}

MODEL(wrc, relaxed_hands_nothing_on)
{
    orders(BZ_RELAXED, BZ_RELAXED);
    m_threads(wrc_writes, wrc_passes_on, wrc_looks);
    m_sometimes(r[0] == 1 && r[1] == 1 && r[2] == 0);
}

/* ---- IRIW: two writers, two readers who may disagree about who was first ---- */

static void iriw_writes_x(void)
{
    STORE(&x, 1);
}

static void iriw_writes_y(void)
{
    STORE(&y, 1);
}

static void iriw_reads_x_first(void)
{
    r[0] = LOAD(&x);
    r[1] = LOAD(&y);
}

static void iriw_reads_y_first(void)
{
    r[2] = LOAD(&y);
    r[3] = LOAD(&x);
}

#define IRIW_DISAGREE (r[0] == 1 && r[1] == 0 && r[2] == 1 && r[3] == 0)

MODEL(iriw, seq_cst_readers_agree)
{
    orders(BZ_SEQCST, BZ_SEQCST);
    m_threads(iriw_writes_x, iriw_writes_y, iriw_reads_x_first, iriw_reads_y_first);
    m_never(IRIW_DISAGREE);
}

MODEL(iriw, acquiring_readers_may_disagree)
{
    orders(BZ_RELEASE, BZ_ACQUIRE);
    m_threads(iriw_writes_x, iriw_writes_y, iriw_reads_x_first, iriw_reads_y_first);
    m_sometimes(IRIW_DISAGREE);
}

static void iriw_fenced_x_first(void)
{
    r[0] = bz_load_relaxed(&x);
    FENCE();
    r[1] = bz_load_relaxed(&y);
}

static void iriw_fenced_y_first(void)
{
    r[2] = bz_load_relaxed(&y);
    FENCE();
    r[3] = bz_load_relaxed(&x);
}

MODEL(iriw, fenced_readers_agree)
{
    orders(BZ_RELAXED, BZ_RELAXED);
    fence = BZ_SEQCST;
    m_threads(iriw_writes_x, iriw_writes_y, iriw_fenced_x_first, iriw_fenced_y_first);
    m_never(IRIW_DISAGREE);
}

/* ---- ISA2: a message through a third thread ---- */

static void isa2_sends(void)
{
    bz_store_relaxed(&x, 1);
    STORE(&y, 1);
}

static void isa2_forwards(void)
{
    r[0] = LOAD(&y);
    STORE(&z, 1);
}

static void isa2_receives(void)
{
    r[1] = LOAD(&z);
    r[2] = bz_load_relaxed(&x);
}

MODEL(isa2, release_and_acquire_carry_through)
{
    orders(BZ_RELEASE, BZ_ACQUIRE);
    m_threads(isa2_sends, isa2_forwards, isa2_receives);
    m_never(r[0] == 1 && r[1] == 1 && r[2] == 0);
}

MODEL(isa2, relaxed_does_not)
{
    orders(BZ_RELAXED, BZ_RELAXED);
    m_threads(isa2_sends, isa2_forwards, isa2_receives);
    m_sometimes(r[0] == 1 && r[1] == 1 && r[2] == 0);
}

/* ---- R, S, 2+2W: the order of two stores to one location ---- */

static void r_left(void)
{
    STORE(&x, 1);
    STORE(&y, 1);
}

static void r_right(void)
{
    STORE(&y, 2);
    r[0] = LOAD(&x);
}

MODEL(shape_r, seq_cst_forbids_it)
{
    orders(BZ_SEQCST, BZ_SEQCST);
    m_threads(r_left, r_right);
    m_never(bz_load_relaxed(&y) == 2 && r[0] == 0);
}

MODEL(shape_r, release_and_acquire_allow_it)
{
    orders(BZ_RELEASE, BZ_ACQUIRE);
    m_threads(r_left, r_right);
    m_sometimes(bz_load_relaxed(&y) == 2 && r[0] == 0);
}

static void s_left(void)
{
    bz_store_relaxed(&x, 2);
    STORE(&y, 1);
}

static void s_right(void)
{
    r[0] = LOAD(&y);
    bz_store_relaxed(&x, 1);
}

MODEL(shape_s, release_and_acquire_forbid_it)
{
    orders(BZ_RELEASE, BZ_ACQUIRE);
    m_threads(s_left, s_right);
    m_never(r[0] == 1 && bz_load_relaxed(&x) == 2);
}

MODEL(shape_s, relaxed_allows_it)
{
    orders(BZ_RELAXED, BZ_RELAXED);
    m_threads(s_left, s_right);
    m_sometimes(r[0] == 1 && bz_load_relaxed(&x) == 2);
}

static void w22_left(void)
{
    STORE(&x, 1);
    STORE(&y, 2);
}

static void w22_right(void)
{
    STORE(&y, 1);
    STORE(&x, 2);
}

MODEL(shape_2_2w, seq_cst_forbids_it)
{
    orders(BZ_SEQCST, BZ_SEQCST);
    m_threads(w22_left, w22_right);
    m_never(bz_load_relaxed(&x) == 1 && bz_load_relaxed(&y) == 1);
}

MODEL(shape_2_2w, release_allows_it)
{
    orders(BZ_RELEASE, BZ_ACQUIRE);
    m_threads(w22_left, w22_right);
    m_sometimes(bz_load_relaxed(&x) == 1 && bz_load_relaxed(&y) == 1);
}

static void w22_left_fenced(void)
{
    bz_store_relaxed(&x, 1);
    FENCE();
    bz_store_relaxed(&y, 2);
}

static void w22_right_fenced(void)
{
    bz_store_relaxed(&y, 1);
    FENCE();
    bz_store_relaxed(&x, 2);
}

MODEL(shape_2_2w, seq_cst_fences_forbid_it)
{
    fence = BZ_SEQCST;
    m_threads(w22_left_fenced, w22_right_fenced);
    m_never(bz_load_relaxed(&x) == 1 && bz_load_relaxed(&y) == 1);
}

/* ---- coherence: one location behaves, whatever the orders ---- */

static void co_writes_1_2(void)
{
    bz_store_relaxed(&x, 1);
    bz_store_relaxed(&x, 2);
}

static void co_writes_1(void)
{
    bz_store_relaxed(&x, 1);
}

static void co_writes_2(void)
{
    bz_store_relaxed(&x, 2);
}

static void co_reads_twice(void)
{
    r[0] = bz_load_relaxed(&x);
    r[1] = bz_load_relaxed(&x);
}

static void co_reads_twice_too(void)
{
    r[2] = bz_load_relaxed(&x);
    r[3] = bz_load_relaxed(&x);
}

static void co_writes_then_reads(void)
{
    bz_store_relaxed(&x, 3);
    r[0] = bz_load_relaxed(&x);
}

MODEL(coherence, corr_a_reader_never_goes_back)
{
    m_threads(co_writes_1_2, co_reads_twice);
    m_never(r[0] > r[1]);
    m_sometimes(r[0] == 0 && r[1] == 2);
}

MODEL(coherence, corr_two_readers_see_one_order)
{
    m_threads(co_writes_1, co_writes_2, co_reads_twice, co_reads_twice_too);
    m_never(r[0] == 1 && r[1] == 2 && r[2] == 2 && r[3] == 1);
    m_sometimes(r[0] == 1 && r[1] == 2);
    m_sometimes(r[0] == 2 && r[1] == 1);
}

MODEL(coherence, cowr_a_thread_does_not_miss_its_own_store)
{
    m_threads(co_writes_1, co_writes_then_reads);
    m_never(r[0] == 0);
    m_sometimes(r[0] == 1);
}

MODEL(coherence, coww_stores_of_one_thread_stay_in_order)
{
    m_threads(co_writes_1_2, co_reads_twice);
    m_never(bz_load_relaxed(&x) == 1);
}

static void co_reads_then_writes(void)
{
    r[0] = bz_load_relaxed(&x);
    bz_store_relaxed(&x, 3);
}

MODEL(coherence, corw_a_store_lands_behind_the_reads_of_its_thread)
{
    m_threads(co_writes_1, co_reads_then_writes);
    m_never(r[0] == 1 && bz_load_relaxed(&x) == 1);
    m_sometimes(r[0] == 0 && bz_load_relaxed(&x) == 1);
}

/* ---- RMWs ---- */

static void rmw_adds(void)
{
    bz_fetch_add_relaxed(&x, 1);
}

MODEL(rmw, relaxed_additions_are_not_lost)
{
    m_threads(rmw_adds, rmw_adds, rmw_adds);
    m_assert(bz_load_relaxed(&x) == 3);
}

static void rmw_loads_and_stores(void)
{
    bz_store_relaxed(&x, bz_load_relaxed(&x) + 1);
}

MODEL_FAILS(rmw, a_load_and_a_store_are_no_addition, "assertion")
{
    m_threads(rmw_loads_and_stores, rmw_loads_and_stores);
    m_assert(bz_load_relaxed(&x) == 2);
}

static void rmw_claims(void)
{
    int none = 0;
    r[m_self()] = bz_cas_strong_rlx_rlx(&x, &none, m_self());
}

MODEL(rmw, one_cas_wins)
{
    m_threads(rmw_claims, rmw_claims);
    m_assert(r[1] + r[2] == 1);
    m_sometimes(r[1] == 1);
    m_sometimes(r[2] == 1);
}

static void rmw_claims_weakly(void)
{
    int none = 0;
    r[0] = bz_cas_weak_rlx_rlx(&x, &none, 1);
}

MODEL(rmw, a_weak_cas_may_fail_for_no_reason)
{
    m_threads(rmw_claims_weakly);
    m_sometimes(r[0] == 1);
    m_sometimes(r[0] == 0);
}

static void rmw_increments_in_a_loop(void)
{
    int seen = bz_load_relaxed(&x);
    while (!bz_cas_weak_rlx_rlx(&x, &seen, seen + 1))
        ;
}

MODEL(rmw, a_loop_around_a_weak_cas_loses_nothing)
{
    m_threads(rmw_increments_in_a_loop, rmw_increments_in_a_loop);
    m_assert(bz_load_relaxed(&x) == 2);
}

/* ---- release sequences ---- */

static bz_shared(int) data;

static void rs_releases(void)
{
    bz_set(&data, 1);
    bz_store_release(&x, 1);
}

static void rs_adds(void)
{
    int one = 1;
    bz_cas_strong_rlx_rlx(&x, &one, 2);
}

static void rs_acquires_2(void)
{
    if (bz_load_acquire(&x) == 2)
        m_assert(bz_get(&data) == 1);
}

MODEL(release_sequence, an_rmw_of_another_thread_carries_it_on)
{
    m_threads(rs_releases, rs_adds, rs_acquires_2);
}

static void rs_overwrites(void)
{
    if (bz_load_relaxed(&x) == 1)
        bz_store_relaxed(&x, 2);
}

MODEL_FAILS(release_sequence, a_store_of_another_thread_breaks_it, "data race")
{
    m_threads(rs_releases, rs_overwrites, rs_acquires_2);
}

static void rs_releases_and_overwrites(void)
{
    bz_set(&data, 1);
    bz_store_release(&x, 1);
    bz_store_relaxed(&x, 2);
}

/* As C++20 has it; C11 let a later relaxed store of the same thread carry it on. */
MODEL_FAILS(release_sequence, a_relaxed_store_of_its_own_thread_breaks_it, "data race")
{
    m_threads(rs_releases_and_overwrites, rs_acquires_2);
}

/* ---- fences around relaxed accesses ---- */

static void fence_sends(void)
{
    bz_set(&data, 1);
    FENCE();
    bz_store_relaxed(&x, 1);
}

static void fence_receives(void)
{
    if (bz_load_relaxed(&x) == 1) {
        FENCE();
        m_assert(bz_get(&data) == 1);
    }
}

static void receives_unfenced(void)
{
    if (bz_load_relaxed(&x) == 1)
        m_assert(bz_get(&data) == 1);
}

static void sends_unfenced(void)
{
    bz_set(&data, 1);
    bz_store_relaxed(&x, 1);
}

static void sends_with_release(void)
{
    bz_set(&data, 1);
    bz_store_release(&x, 1);
}

MODEL(fences, a_pair_of_acq_rel_fences_passes_a_message)
{
    fence = BZ_ACQREL;
    m_threads(fence_sends, fence_receives);
}

MODEL(fences, an_acquire_fence_meets_a_release_store)
{
    fence = BZ_ACQUIRE;
    m_threads(sends_with_release, fence_receives);
}

MODEL_FAILS(fences, an_acquire_fence_alone_passes_nothing, "data race")
{
    fence = BZ_ACQUIRE;
    m_threads(sends_unfenced, fence_receives);
}

MODEL_FAILS(fences, a_release_fence_alone_passes_nothing, "data race")
{
    fence = BZ_RELEASE;
    m_threads(fence_sends, receives_unfenced);
}

/* ---- where seq_cst is weaker than one might think (RC11, section 2) ---- */

static void z6u_first(void)
{
    bz_store_seqcst(&x, 1);
    bz_store_release(&y, 1);
}

static void z6u_second(void)
{
    r[0] = bz_fetch_add_seqcst(&y, 1);
    r[1] = bz_load_relaxed(&y);
}

static void z6u_third(void)
{
    bz_store_seqcst(&y, 3);
    r[2] = bz_load_seqcst(&x);
}

/* C11's text forbids it, POWER does it, C++20 allows it. A protocol must not lean on it. */
MODEL(seq_cst, mixed_with_weaker_accesses_promises_less)
{
    m_threads(z6u_first, z6u_second, z6u_third);
    m_sometimes(r[0] == 1 && r[1] == 3 && r[2] == 0);
}
