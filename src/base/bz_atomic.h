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
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

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

/*
 * A load and a comparison. Compilers load an atomic into a register before they compare it. x86-64 compares in memory: one
 * instruction less, and no register. The access is the same aligned load, and the order is that of every load there.
 * ThreadSanitizer would not see it.
 */
#if defined(__x86_64__) && defined(__GCC_ASM_FLAG_OUTPUTS__) && !BZ_TSAN
typedef uint32_t BZ_MAY_ALIAS bz_a_word32;
typedef uint64_t BZ_MAY_ALIAS bz_a_word64;
#define BZ_A_COMPARE(name, instruction, flag)                                                      \
    static BZ_ALWAYS_INLINE bool bz_a_##name(const volatile void *p, size_t size, uint64_t v,      \
                                             int order)                                            \
    {                                                                                              \
        const bz_a_word64 *p64 = (const bz_a_word64 *)p;                                           \
        const bz_a_word32 *p32 = (const bz_a_word32 *)p;                                           \
        uint32_t v32 = (uint32_t)v;                                                                \
        bool is;                                                                                   \
        if (size == 8 && order != BZ_RELAXED)                                                      \
            __asm__ volatile(instruction "q %2, %1" : flag(is) : "m"(*p64), "er"(v) : "memory");   \
        else if (size == 8)                                                                        \
            __asm__ volatile(instruction "q %2, %1" : flag(is) : "m"(*p64), "er"(v));              \
        else if (order != BZ_RELAXED)                                                              \
            __asm__ volatile(instruction "l %2, %1" : flag(is) : "m"(*p32), "ir"(v32) : "memory"); \
        else                                                                                       \
            __asm__ volatile(instruction "l %2, %1" : flag(is) : "m"(*p32), "ir"(v32));            \
        return is;                                                                                 \
    }
BZ_A_COMPARE(equals, "cmp", "=@ccz")
BZ_A_COMPARE(below, "cmp", "=@ccb")
BZ_A_COMPARE(test, "test", "=@ccnz")
/* Its size. No size but 4 and 8: the array would have fewer than no elements. */
#define BZ_A_SIZED(p) \
    (sizeof(char[sizeof(*(p)) == 4 || sizeof(*(p)) == 8 ? (int)sizeof(*(p)) : -1]))
#define BZ_A_EQUALS(p, v, order) bz_a_equals(p, BZ_A_SIZED(p), (uintptr_t)(v), order)
#define BZ_A_BELOW(p, v, order) bz_a_below(p, BZ_A_SIZED(p), (uintptr_t)(v), order)
#define BZ_A_TEST(p, bits, order) bz_a_test(p, BZ_A_SIZED(p), (uintptr_t)(bits), order)
#endif
#endif

#if !defined(BZ_A_EQUALS)
#define BZ_A_EQUALS(p, v, order) (BZ_A_LOAD(p, order) == (v))
#define BZ_A_BELOW(p, v, order) (BZ_A_LOAD(p, order) < (v))
#define BZ_A_TEST(p, bits, order) ((BZ_A_LOAD(p, order) & (bits)) != 0)
#endif

/* Before another thread can see the location: not an atomic operation. */
#define bz_atomic_init(p, v) BZ_A_INIT(p, v)

/* Plain shared fields. */
#define bz_get(p) BZ_A_GET(p)
#define bz_set(p, v) BZ_A_SET(p, v)

#define bz_load_relaxed(p) BZ_A_LOAD(p, BZ_RELAXED)
#define bz_load_acquire(p) BZ_A_LOAD(p, BZ_ACQUIRE)
#define bz_load_seqcst(p) BZ_A_LOAD(p, BZ_SEQCST)

/* A load of that order, and a comparison: *p == v; *p < v, unsigned; *p has one of the bits. For words of 4 or 8 bytes. */
#define bz_equals_relaxed(p, v) BZ_A_EQUALS(p, v, BZ_RELAXED)
#define bz_equals_acquire(p, v) BZ_A_EQUALS(p, v, BZ_ACQUIRE)
#define bz_below_relaxed(p, v) BZ_A_BELOW(p, v, BZ_RELAXED)
#define bz_test_relaxed(p, bits) BZ_A_TEST(p, bits, BZ_RELAXED)
#define bz_test_acquire(p, bits) BZ_A_TEST(p, bits, BZ_ACQUIRE)

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
