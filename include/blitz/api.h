/*
 * blitz/api.h - the words the other headers are written in.
 *
 * BLITZ_API        the function is exported by the library
 * BLITZ_SUSPENDS   the function may suspend the calling task; see its "Suspends:" line
 * BLITZ_MUST_USE   the compiler warns if the result is dropped
 * BLITZ_MAYBE_UNUSED  no warning if nobody calls it: what a macro defines
 *
 * Every function answers the same three questions in its comment:
 *   Owns:     whose memory is it, before and after?
 *   Suspends: can it wait, for what, and where may it be called?
 *   Returns:  0 or more on success, a negative errno on failure, and what then holds.
 */
#ifndef BLITZ_API_H
#define BLITZ_API_H

#if defined(__GNUC__)
#define BLITZ_API __attribute__((visibility("default")))
#define BLITZ_MUST_USE __attribute__((warn_unused_result))
#define BLITZ_MAYBE_UNUSED __attribute__((__unused__))
#define BLITZ_PRINTF(at, first) __attribute__((__format__(__printf__, at, first)))
#else
#define BLITZ_API
#define BLITZ_MUST_USE
#define BLITZ_MAYBE_UNUSED
#define BLITZ_PRINTF(at, first)
#endif

/* Inline code into which no call of a sanitizer's coverage may come, because it must not be interrupted
 * in its middle: blitz/reductions.h. Not for programs. */
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

/* A mark for readers and for tools/lint; the compiler does nothing with it. */
#define BLITZ_SUSPENDS

#if defined(__cplusplus)
#define BLITZ_BEGIN_DECLS extern "C" {
#define BLITZ_END_DECLS }
#else
#define BLITZ_BEGIN_DECLS
#define BLITZ_END_DECLS
#endif

#endif
