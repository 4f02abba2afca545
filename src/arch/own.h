/*
 * own.h - add to a counter that one thread writes and other threads read.
 *
 * A relaxed load and a relaxed store say that, but compilers make three instructions of them. x86-64 has one, which is
 * not locked. No reader sees half of an addition: the counter is aligned.
 */
#ifndef BZ_OWN_H
#define BZ_OWN_H

#include "arch/notes.h"
#include "base/bz_atomic.h"

#if defined(__x86_64__) && defined(__GCC_ASM_FLAG_OUTPUTS__) && !defined(BZ_MODEL) && !BZ_TSAN
#define bz_own_add(p, n) \
    __asm__("addq %1, %0" : "+m"(*(uint64_t *)(p)) : "er"((uint64_t)(n)) : "cc")
/* The same; earlier accesses come before it. */
#define bz_own_add_release(p, n)              \
    __asm__ volatile("addq %1, %0"            \
                     : "+m"(*(uint64_t *)(p)) \
                     : "er"((uint64_t)(n))    \
                     : "cc", "memor"          \
                             "y")
/* Add to a plain number of 4 or 8 bytes, in memory: the sum needs no register. */
#define bz_own_add_plain(p, n)                                               \
    do {                                                                     \
        if (sizeof(*(p)) == 8)                                               \
            __asm__("addq %1, %0" : "+m"(*(p)) : "er"((int64_t)(n)) : "cc"); \
        else                                                                 \
            __asm__("addl %1, %0" : "+m"(*(p)) : "ir"((int32_t)(n)) : "cc"); \
    } while (0)
/* Subtract 1 from the lower half of the word, a signed count. The upper half stays. True if the count is 0 or less now. */
static BZ_ALWAYS_INLINE bool bz_own_count_down(bz_atomic(uint64_t) *p)
{
    bool is_out;
    __asm__("subl $1, %0" : "+m"(*(uint64_t *)p), "=@ccle"(is_out));
    return is_out;
}
#else
#define bz_own_add(p, n) \
    bz_store_relaxed((p), bz_load_relaxed(p) + (uint64_t)(n)) /* relaxed: one writer, statistics */
#define bz_own_add_release(p, n) \
    bz_store_release((p), bz_load_relaxed(p) + (uint64_t)(n)) /* relaxed: one writer; live.c [C] */
#define bz_own_add_plain(p, n) ((void)(*(p) += (__typeof__(*(p)))(n)))
static BZ_ALWAYS_INLINE bool bz_own_count_down(bz_atomic(uint64_t) *p)
{
    uint64_t word = bz_load_relaxed(p); /* relaxed: one writer */
    uint32_t left = (uint32_t)word - 1;
    bz_store_relaxed(p, (word & ~(uint64_t)UINT32_MAX) | left); /* relaxed: likewise */
    return (int32_t)left <= 0;
}
#endif

#endif
