/*
 * blitz/version.h - the version of blitz.
 *
 * The macros have the version you compiled against, the functions the version you run with. The soname of the shared
 * library changes whenever the binary interface does (libblitz.so.0 now). Every inline function of ours refers to the
 * symbol blitz_abi_N. So a program never runs with a library of another interface: it fails to link or to start, with
 * that name in the message.
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

/* The binary interface that this header describes. Only its name matters, not its value. */
BLITZ_API extern const char blitz_abi_0;

/*
 * Return the version of the running library.
 * Suspends: never. Call from any thread, at any time, also from a signal handler.
 * Returns:  the number, as BLITZ_VERSION spells it.
 */
BLITZ_API int blitz_version_number(void);

/*
 * Return the version as text: "0.1.0".
 * Owns:     the string is constant; do not free it.
 * Suspends: never. Call from any thread, at any time, also from a signal handler.
 * Returns:  the string, never NULL.
 */
BLITZ_API const char *blitz_version_string(void);

/*
 * True if the running library is at least as new as the headers this program was compiled with.
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
