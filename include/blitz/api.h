/*
 * blitz/api.h - macros and conventions of all headers.
 *
 * BLITZ_API        the function is exported by the library
 * BLITZ_SUSPENDS   the function may suspend the calling task; see its "Suspends:" line
 * BLITZ_MUST_USE   the compiler warns if the result is ignored
 * BLITZ_MAYBE_UNUSED  no warning if the function is not called, for functions that a macro defines
 *
 * blitz_fd         a descriptor; BLITZ_NO_FD is no descriptor
 *
 * Every function answers the same three questions in its comment:
 *   Owns:     who owns the memory, before and after?
 *   Suspends: can it wait, for what, and where may it be called? "Call from a task" means a fiber, a stackless task or
 *             a forked job. "Call from any thread" or "anywhere" means those and plain threads, and so does no mention.
 *             A signal handler must not call blitz, unless the comment says so. docs/where-to-call.md has the table.
 *   Returns:  0 or more on success, a negative errno on failure, and the state after it.
 */
#ifndef BLITZ_API_H
#define BLITZ_API_H

#include "blitz/error.h"

#if defined(_WIN32)
#include <stdint.h>
#if defined(BLITZ_STATIC) /* defined by a program that links the static library */
#define BLITZ_API
#elif defined(BLITZ_BUILDING)
#define BLITZ_API __declspec(dllexport)
#else
#define BLITZ_API __declspec(dllimport)
#endif
#elif defined(__GNUC__)
#define BLITZ_API __attribute__((visibility("default")))
#else
#define BLITZ_API
#endif

/* A descriptor of the system: of a socket, a file, a pipe. It is as wide as a pointer where sockets and files are
 * handles. BLITZ_NO_FD: none. */
#if defined(_WIN32)
typedef intptr_t blitz_fd;
#define BLITZ_NO_FD ((blitz_fd)-1)
#else
typedef int blitz_fd;
#define BLITZ_NO_FD (-1)
#endif

#if defined(__GNUC__)
#define BLITZ_MUST_USE __attribute__((warn_unused_result))
#define BLITZ_MAYBE_UNUSED __attribute__((__unused__))
#define BLITZ_PRINTF(at, first) __attribute__((__format__(__printf__, at, first)))
#else
#define BLITZ_MUST_USE
#define BLITZ_MAYBE_UNUSED
#define BLITZ_PRINTF(at, first)
#endif

/* Inline code without calls of a sanitizer's coverage, because it must not be interrupted in the middle:
 * blitz/reductions.h. Not for programs. */
#if defined(__clang__) && defined(__has_feature)
#if __has_feature(coverage_sanitizer)
#define BLITZ_WHOLE_ __attribute__((noinline, no_sanitize("coverage")))
#endif
#elif defined(__GNUC__) && defined(__has_attribute)
#if __has_attribute(no_sanitize_coverage)
#define BLITZ_WHOLE_ __attribute__((no_sanitize_coverage))
#endif
#endif
#if !defined(BLITZ_WHOLE_)
#define BLITZ_WHOLE_
#endif

/* A mark for readers and for tools/lint; it expands to nothing. */
#define BLITZ_SUSPENDS

#if defined(__cplusplus)
#define BLITZ_BEGIN_DECLS extern "C" {
#define BLITZ_END_DECLS }
#else
#define BLITZ_BEGIN_DECLS
#define BLITZ_END_DECLS
#endif

#endif
