/*
 * blitz/version.h - which blitz is this?
 *
 * The macros tell what you compiled against, the functions what you are running with. The shared
 * library's soname changes whenever the binary interface does (libblitz.so.0 now), and every
 * inline function of ours refers to the symbol blitz_abi_N, so a program never runs with a library
 * of another interface: it fails to link or to start, with that name in the message.
 */
#ifndef BLITZ_VERSION_H
#define BLITZ_VERSION_H

#include <stdbool.h>

#include "blitz/api.h"

#define BLITZ_VERSION_MAJOR 0
#define BLITZ_VERSION_MINOR 1
#define BLITZ_VERSION_PATCH 0

/* One number that grows with every release: 0.1.0 is 100, 1.2.3 is 10203. */
#define BLITZ_VERSION \
    (BLITZ_VERSION_MAJOR * 10000 + BLITZ_VERSION_MINOR * 100 + BLITZ_VERSION_PATCH)

BLITZ_BEGIN_DECLS

/* The binary interface this header describes. Nothing to read in it; its name is the point. */
BLITZ_API extern const char blitz_abi_0;

/*
 * The version of the library that is running.
 * Suspends: never. Call from any thread, at any time, also from a signal handler.
 * Returns:  the number, as BLITZ_VERSION spells it.
 */
BLITZ_API int blitz_version_number(void);

/*
 * The same for people: "0.1.0".
 * Owns:     the string is constant; do not free it.
 * Suspends: never. Call from any thread, at any time, also from a signal handler.
 * Returns:  the string, never NULL.
 */
BLITZ_API const char *blitz_version_string(void);

/*
 * Is the running library at least the one this program was compiled against?
 * Inline, so it carries the version of the caller.
 * Suspends: never.
 * Returns:  true; false if the library is older than the headers.
 */
static inline bool blitz_version_ok(void)
{
    const volatile char *abi = &blitz_abi_0; /* ties this object to libblitz.so.0 */
    return *abi == 0 && blitz_version_number() >= BLITZ_VERSION;
}

BLITZ_END_DECLS

#endif
