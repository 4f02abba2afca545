/*
 * check.h - a broken invariant aborts with a message.
 *
 * Three costs:
 *   BZ_CHECK(cond, fmt, ...)   stays in release builds; for invariants that must never break
 *   BZ_ASSERT(cond)            debug builds (BZ_DEBUG); for cheap checks on a hot path
 *   BZ_ASSERT_SLOW(cond)       debug builds with BZ_SLOW too; walks a whole structure
 * Check one condition a line. Failures of the system (a system call, a full table) are not
 * invariants: they are returned as -errno.
 */
#ifndef BZ_CHECK_H
#define BZ_CHECK_H

#include "base/compiler.h"

/* Print the place, the condition and the message to standard error, then abort. Async-signal-safe
 * enough to be called from anywhere; never returns. */
BZ_NORETURN BZ_COLD BZ_PRINTF(4, 5) void bz_fail(const char *file, int line, const char *cond,
                                                 const char *format, ...);

#define BZ_CHECK(cond, ...) \
    (BZ_LIKELY(cond) ? (void)0 : bz_fail(__FILE__, __LINE__, #cond, __VA_ARGS__))

#if defined(BZ_DEBUG)
#define BZ_ASSERT(cond) BZ_CHECK(cond, "%s", "")
#else
#define BZ_ASSERT(cond) ((void)sizeof(!(cond)))
#endif

#if defined(BZ_DEBUG) && defined(BZ_SLOW)
#define BZ_ASSERT_SLOW(cond) BZ_CHECK(cond, "%s", "")
#else
#define BZ_ASSERT_SLOW(cond) ((void)sizeof(!(cond)))
#endif

#endif
