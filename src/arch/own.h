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

#if defined(__x86_64__) && !defined(BZ_MODEL) && !BZ_TSAN
#define bz_own_add(p, n) \
    __asm__("addq %1, %0" : "+m"(*(uint64_t *)(p)) : "er"((uint64_t)(n)) : "cc")
/* The same; earlier accesses come before it. */
#define bz_own_add_release(p, n)              \
    __asm__ volatile("addq %1, %0"            \
                     : "+m"(*(uint64_t *)(p)) \
                     : "er"((uint64_t)(n))    \
                     : "cc", "memor"          \
                             "y")
#else
#define bz_own_add(p, n) \
    bz_store_relaxed((p), bz_load_relaxed(p) + (uint64_t)(n)) /* relaxed: one writer, statistics */
#define bz_own_add_release(p, n) \
    bz_store_release((p), bz_load_relaxed(p) + (uint64_t)(n)) /* relaxed: one writer; live.c [C] */
#endif

#endif
