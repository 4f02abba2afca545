/*
 * compiler.h - the compiler's extras behind names of our own.
 *
 * The code is C11; what goes beyond it (attributes, hints) is spelled here once, so that a compiler
 * without it needs one file. Also the cache-line constants: BZ_LINE is the distance at which two
 * CPUs writing two fields no longer disturb each other. On x86_64 the prefetcher fetches lines in
 * pairs, on aarch64 several makers have 128-byte lines, so it is 128 there; ppc64's lines are 128
 * bytes and s390x's 256. Elsewhere it is 64, also on 32-bit ARM and MIPS, whose older cores have
 * lines of 32 bytes: too wide wastes a few bytes, too narrow shares lines.
 */
#ifndef BZ_COMPILER_H
#define BZ_COMPILER_H

#include <stddef.h>
#include <stdint.h>

#define BZ_MUST_USE __attribute__((warn_unused_result))
#define BZ_NOINLINE __attribute__((noinline))
#define BZ_ALWAYS_INLINE inline __attribute__((always_inline))
#define BZ_NORETURN __attribute__((noreturn))
#define BZ_COLD __attribute__((cold))
#define BZ_PRINTF(at, first) __attribute__((__format__(__printf__, at, first)))
#define BZ_ALIGNED(n) __attribute__((aligned(n)))
#define BZ_MAYBE_UNUSED __attribute__((unused))
/* For variables: an extern one is otherwise reached by way of the global offset table. */
#define BZ_HIDDEN __attribute__((visibility("hidden")))
#define BZ_LIKELY(x) __builtin_expect(!!(x), 1)
#define BZ_UNLIKELY(x) __builtin_expect(!!(x), 0)

/* Tell the compiler what always holds where it cannot see it. Checked by BZ_ASSERT beside it. */
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

/* How far apart are two addresses that one __builtin_prefetch does not fetch together? At least. */
#define BZ_FETCHED 64

/* Put before a field: it starts a line of its own. */
#define BZ_OWN_LINE BZ_ALIGNED(BZ_LINE)

/* From the address of a member to the structure it is in. */
#define BZ_CONTAINER_OF(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

#define BZ_ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

/* Test builds watch themselves: locks held, tasks running, work left behind (os/held.h,
 * sched/watch.h). Every debug build is one; the model checker looks at such things by itself. */
#if defined(BZ_DEBUG) && !defined(BZ_MODEL) && !defined(BZ_WATCH)
#define BZ_WATCH 1
#endif

/* Is the planted bug of that number, from 1, there? Only where tests/canaries/broken.h was read before
 * this (tools/canaries); constant everywhere else, so it costs nothing. */
#if !defined(BZ_BROKEN)
#define BZ_BROKEN(n) (0 == (n))
#endif

#endif
