/*
 * compiler.h - compiler extensions behind our own names.
 *
 * The code is C11. Extensions (attributes, hints) are defined only here, so a compiler without them
 * needs a change in one file. This file also has the cache-line constants: BZ_LINE is the distance
 * at which two fields written by two CPUs do not share a cache line. On x86_64 the prefetcher
 * fetches lines in pairs, on aarch64 several makers have 128-byte lines, so it is 128 there;
 * ppc64's lines are 128 bytes and s390x's 256. Elsewhere it is 64, also on 32-bit ARM and MIPS,
 * whose older cores have lines of 32 bytes: a value too large wastes a few bytes, a value too small
 * causes false sharing.
 */
#ifndef BZ_COMPILER_H
#define BZ_COMPILER_H

#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

#if defined(__has_feature)
#define BZ_HAS_FEATURE(x) __has_feature(x)
#else
#define BZ_HAS_FEATURE(x) 0
#endif

/* The sanitizers: gcc defines a macro, clang has a feature. */
#if defined(__SANITIZE_ADDRESS__) || BZ_HAS_FEATURE(address_sanitizer)
#define BZ_ASAN 1
#else
#define BZ_ASAN 0
#endif
#if defined(__SANITIZE_THREAD__) || BZ_HAS_FEATURE(thread_sanitizer)
#define BZ_TSAN 1
#else
#define BZ_TSAN 0
#endif

#define BZ_MUST_USE __attribute__((warn_unused_result))
#define BZ_NOINLINE __attribute__((noinline))
#define BZ_ALWAYS_INLINE inline __attribute__((always_inline))
#define BZ_NORETURN __attribute__((noreturn))
#define BZ_COLD __attribute__((cold))
/* mingw's plain __printf__ is the printf of an old C library, which has no %z. */
#if defined(__MINGW32__)
#define BZ_PRINTF(at, first) __attribute__((__format__(__gnu_printf__, at, first)))
#else
#define BZ_PRINTF(at, first) __attribute__((__format__(__printf__, at, first)))
#endif
#define BZ_ALIGNED(n) __attribute__((aligned(n)))
#define BZ_MAYBE_UNUSED __attribute__((unused))
/* For types: another type with the same layout may be used for the same memory. */
#define BZ_MAY_ALIAS __attribute__((may_alias))
/* For variables: without it an extern variable is accessed through the global offset table. */
#if defined(__ELF__)
#define BZ_HIDDEN __attribute__((visibility("hidden")))
#else
#define BZ_HIDDEN /* a name is exported only if its declaration says so */
#endif
#define BZ_LIKELY(x) __builtin_expect(!!(x), 1)
#define BZ_UNLIKELY(x) __builtin_expect(!!(x), 0)

/* A pointer with any value, for a parameter that is not read: it costs no instruction. */
static BZ_ALWAYS_INLINE void *bz_any_pointer(void)
{
    void *p;
    __asm__("" : "=r"(p));
    return p;
}

/* Tell the compiler a condition that always holds. A BZ_ASSERT beside it checks the condition. */
#define BZ_ASSUME(x)                 \
    do {                             \
        if (!(x))                    \
            __builtin_unreachable(); \
    } while (0)

#if defined(__s390x__)
#define BZ_LINE 256
#elif defined(__x86_64__) || defined(__aarch64__) || defined(__powerpc64__)
#define BZ_LINE 128
#else
#define BZ_LINE 64
#endif

/* The smallest distance of two addresses that need separate __builtin_prefetch calls. */
#define BZ_FETCHED 64

/* Put before a field: it starts a new cache line. */
#define BZ_OWN_LINE BZ_ALIGNED(BZ_LINE)

/* From the address of a member to the structure it is in. */
#define BZ_CONTAINER_OF(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

#define BZ_ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

/* Test builds check themselves: locks held, tasks running, work left behind (os/held.h,
 * proc/selfcheck.h). Every debug build is a test build. The model checker has its own checks for
 * these. */
#if defined(BZ_DEBUG) && !defined(BZ_MODEL) && !defined(BZ_WATCH)
#define BZ_WATCH 1
#endif

#endif
