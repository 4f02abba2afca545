/*
 * log.h - log messages of blitz, sent to the hook of blitz/hooks.h.
 *
 * bz_log formats a line on the stack and passes it to the hook; it allocates nothing and takes no
 * lock. Callers leave the runtime state first where there is one (a hook may block).
 */
#ifndef BZ_LOG_H
#define BZ_LOG_H

#include "base/bz_atomic.h"
#include "base/compiler.h"
#include "blitz/hooks.h"

BZ_COLD BZ_PRINTF(2, 3) void bz_log(blitz_log_level level, const char *format, ...);

/* Log once per process and call site, for warnings that would repeat. */
#define bz_log_once(level, ...)                                              \
    do {                                                                     \
        static bz_atomic(int) said_;                                         \
        if (!bz_xchg_relaxed(&said_, 1)) /* relaxed: guards no other data */ \
            bz_log(level, __VA_ARGS__);                                      \
    } while (0)

#endif
