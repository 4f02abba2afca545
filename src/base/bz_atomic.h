/*
 * bz_atomic.h - every atomic operation of blitz, with its order in its name.
 *
 * The name spells the order, so that a reader sees it at the access and a checker can find it.
 * Examples are bz_load_acquire and bz_cas_weak_rel_acq. Every use has its reason in a comment
 * on the same line or the line above: the letter of its pairing from the essay, or a short sentence
 * for `relaxed`. tools/lint checks this.
 *
 * Three layers lie below each name:
 *   bz_load_acquire(p)          the name used in the code
 *   BZ_A_LOAD(p, BZ_ACQUIRE)    one of eight primitives, the same in every build
 *   <stdatomic.h>               a normal build; or, with BZ_MODEL, tests/model/model_atomic.h,
 *                               where each primitive is a step of the model checker
 *
 * Plain fields that two threads touch at different times (a node's payload, published by an atomic
 * beside it) are declared bz_shared(T) and accessed with bz_get(&x) and bz_set(&x, v). That is an
 * ordinary access in a normal build; the model checker proves that no two of them race.
 *
 * Stand-alone acquire and release fences are not offered: TSan cannot see them (false races), and
 * everything here can put the order on the access. bz_fence_seqcst() is, for the store that must
 * come before a load of something else; name its other half where it is used.
 */
#ifndef BZ_ATOMIC_H
#define BZ_ATOMIC_H

#include <stdbool.h>
#include <stdint.h>

#if defined(BZ_MODEL)
#include "model_atomic.h" /* defines BZ_RELAXED .. BZ_SEQCST, bz_atomic, bz_shared and BZ_A_* */
#else
#include <stdatomic.h>

#define bz_atomic(T) _Atomic(T)
#define bz_shared(T) T

#define BZ_RELAXED memory_order_relaxed
#define BZ_ACQUIRE memory_order_acquire
#define BZ_RELEASE memory_order_release
#define BZ_ACQREL memory_order_acq_rel
#define BZ_SEQCST memory_order_seq_cst

#define BZ_A_INIT(p, v) atomic_init(p, v)
#define BZ_A_LOAD(p, order) atomic_load_explicit(p, order)
#define BZ_A_STORE(p, v, order) atomic_store_explicit(p, v, order)
#define BZ_A_XCHG(p, v, order) atomic_exchange_explicit(p, v, order)
#define BZ_A_CAS_WEAK(p, e, v, won, lost) atomic_compare_exchange_weak_explicit(p, e, v, won, lost)
#define BZ_A_CAS_STRONG(p, e, v, won, lost) \
    atomic_compare_exchange_strong_explicit(p, e, v, won, lost)
#define BZ_A_FETCH(op, p, v, order) atomic_fetch_##op##_explicit(p, v, order)
#define BZ_A_FENCE(order) atomic_thread_fence(order)
#define BZ_A_GET(p) (*(p))
#define BZ_A_SET(p, v) ((void)(*(p) = (v)))
#endif

/* Before another thread can see the location: not an atomic operation. */
#define bz_atomic_init(p, v) BZ_A_INIT(p, v)

/* Plain shared fields. */
#define bz_get(p) BZ_A_GET(p)
#define bz_set(p, v) BZ_A_SET(p, v)

#define bz_load_relaxed(p) BZ_A_LOAD(p, BZ_RELAXED)
#define bz_load_acquire(p) BZ_A_LOAD(p, BZ_ACQUIRE)
#define bz_load_seqcst(p) BZ_A_LOAD(p, BZ_SEQCST)

#define bz_store_relaxed(p, v) BZ_A_STORE(p, v, BZ_RELAXED)
#define bz_store_release(p, v) BZ_A_STORE(p, v, BZ_RELEASE)
#define bz_store_seqcst(p, v) BZ_A_STORE(p, v, BZ_SEQCST)

#define bz_xchg_relaxed(p, v) BZ_A_XCHG(p, v, BZ_RELAXED)
#define bz_xchg_acquire(p, v) BZ_A_XCHG(p, v, BZ_ACQUIRE)
#define bz_xchg_release(p, v) BZ_A_XCHG(p, v, BZ_RELEASE)
#define bz_xchg_acqrel(p, v) BZ_A_XCHG(p, v, BZ_ACQREL)
#define bz_xchg_seqcst(p, v) BZ_A_XCHG(p, v, BZ_SEQCST)

#define bz_fetch_add_relaxed(p, v) BZ_A_FETCH(add, p, v, BZ_RELAXED)
#define bz_fetch_add_acquire(p, v) BZ_A_FETCH(add, p, v, BZ_ACQUIRE)
#define bz_fetch_add_release(p, v) BZ_A_FETCH(add, p, v, BZ_RELEASE)
#define bz_fetch_add_acqrel(p, v) BZ_A_FETCH(add, p, v, BZ_ACQREL)
#define bz_fetch_add_seqcst(p, v) BZ_A_FETCH(add, p, v, BZ_SEQCST)

#define bz_fetch_sub_relaxed(p, v) BZ_A_FETCH(sub, p, v, BZ_RELAXED)
#define bz_fetch_sub_acquire(p, v) BZ_A_FETCH(sub, p, v, BZ_ACQUIRE)
#define bz_fetch_sub_release(p, v) BZ_A_FETCH(sub, p, v, BZ_RELEASE)
#define bz_fetch_sub_acqrel(p, v) BZ_A_FETCH(sub, p, v, BZ_ACQREL)
#define bz_fetch_sub_seqcst(p, v) BZ_A_FETCH(sub, p, v, BZ_SEQCST)

#define bz_fetch_or_relaxed(p, v) BZ_A_FETCH(or, p, v, BZ_RELAXED)
#define bz_fetch_or_acquire(p, v) BZ_A_FETCH(or, p, v, BZ_ACQUIRE)
#define bz_fetch_or_release(p, v) BZ_A_FETCH(or, p, v, BZ_RELEASE)
#define bz_fetch_or_acqrel(p, v) BZ_A_FETCH(or, p, v, BZ_ACQREL)
#define bz_fetch_or_seqcst(p, v) BZ_A_FETCH(or, p, v, BZ_SEQCST)

#define bz_fetch_and_relaxed(p, v) BZ_A_FETCH(and, p, v, BZ_RELAXED)
#define bz_fetch_and_acquire(p, v) BZ_A_FETCH(and, p, v, BZ_ACQUIRE)
#define bz_fetch_and_release(p, v) BZ_A_FETCH(and, p, v, BZ_RELEASE)
#define bz_fetch_and_acqrel(p, v) BZ_A_FETCH(and, p, v, BZ_ACQREL)
#define bz_fetch_and_seqcst(p, v) BZ_A_FETCH(and, p, v, BZ_SEQCST)

/*
 * Compare and swap, named bz_cas_{weak,strong}_{order on success}_{order on failure}. Return true
 * if *p was *expected and is now v; else *expected is the value found. `weak` may fail spuriously
 * and belongs in a loop.
 */
#define bz_cas_weak_rlx_rlx(p, e, v) BZ_A_CAS_WEAK(p, e, v, BZ_RELAXED, BZ_RELAXED)
#define bz_cas_weak_acq_rlx(p, e, v) BZ_A_CAS_WEAK(p, e, v, BZ_ACQUIRE, BZ_RELAXED)
#define bz_cas_weak_acq_acq(p, e, v) BZ_A_CAS_WEAK(p, e, v, BZ_ACQUIRE, BZ_ACQUIRE)
#define bz_cas_weak_rel_rlx(p, e, v) BZ_A_CAS_WEAK(p, e, v, BZ_RELEASE, BZ_RELAXED)
#define bz_cas_weak_rel_acq(p, e, v) BZ_A_CAS_WEAK(p, e, v, BZ_RELEASE, BZ_ACQUIRE)
#define bz_cas_weak_acqrel_rlx(p, e, v) BZ_A_CAS_WEAK(p, e, v, BZ_ACQREL, BZ_RELAXED)
#define bz_cas_weak_acqrel_acq(p, e, v) BZ_A_CAS_WEAK(p, e, v, BZ_ACQREL, BZ_ACQUIRE)
#define bz_cas_weak_sc_rlx(p, e, v) BZ_A_CAS_WEAK(p, e, v, BZ_SEQCST, BZ_RELAXED)
#define bz_cas_weak_sc_acq(p, e, v) BZ_A_CAS_WEAK(p, e, v, BZ_SEQCST, BZ_ACQUIRE)
#define bz_cas_weak_sc_sc(p, e, v) BZ_A_CAS_WEAK(p, e, v, BZ_SEQCST, BZ_SEQCST)

#define bz_cas_strong_rlx_rlx(p, e, v) BZ_A_CAS_STRONG(p, e, v, BZ_RELAXED, BZ_RELAXED)
#define bz_cas_strong_acq_rlx(p, e, v) BZ_A_CAS_STRONG(p, e, v, BZ_ACQUIRE, BZ_RELAXED)
#define bz_cas_strong_acq_acq(p, e, v) BZ_A_CAS_STRONG(p, e, v, BZ_ACQUIRE, BZ_ACQUIRE)
#define bz_cas_strong_rel_rlx(p, e, v) BZ_A_CAS_STRONG(p, e, v, BZ_RELEASE, BZ_RELAXED)
#define bz_cas_strong_rel_acq(p, e, v) BZ_A_CAS_STRONG(p, e, v, BZ_RELEASE, BZ_ACQUIRE)
#define bz_cas_strong_acqrel_rlx(p, e, v) BZ_A_CAS_STRONG(p, e, v, BZ_ACQREL, BZ_RELAXED)
#define bz_cas_strong_acqrel_acq(p, e, v) BZ_A_CAS_STRONG(p, e, v, BZ_ACQREL, BZ_ACQUIRE)
#define bz_cas_strong_sc_rlx(p, e, v) BZ_A_CAS_STRONG(p, e, v, BZ_SEQCST, BZ_RELAXED)
#define bz_cas_strong_sc_acq(p, e, v) BZ_A_CAS_STRONG(p, e, v, BZ_SEQCST, BZ_ACQUIRE)
#define bz_cas_strong_sc_sc(p, e, v) BZ_A_CAS_STRONG(p, e, v, BZ_SEQCST, BZ_SEQCST)

#define bz_fence_seqcst() BZ_A_FENCE(BZ_SEQCST)

/* A compiler barrier, not a CPU fence: the light half of a pair with a membarrier. */
#define bz_compiler_barrier() __asm__ volatile("" ::: "memory")

#endif
