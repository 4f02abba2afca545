/*
 * blitz/reductions.h - code that counts its steps and yields by itself. Off unless built for.
 *
 *     gcc   -fsanitize-coverage=trace-pc              -c hot.c
 *     clang -fsanitize-coverage=edge,trace-pc,no-prune -c hot.c
 *     cc ... hot.o -lblitz-reductions -lblitz         (pkg-config blitz-reductions, blitz::reductions)
 *
 * So built, code calls the library at every step from one piece of straight code to the next: a
 * reduction. After 4000 of them (BLITZ_REDUCTIONS in the environment, or blitz_reductions_set) the
 * task lets those go first that are ready, as by blitz_yield(). An endless loop on the only worker
 * then stops nobody: for (;;) g++; is enough to be counted (with clang not without no-prune). No
 * source is changed, and it may be somebody else's.
 *
 * The flag is given when compiling, not when linking (clang would add a runtime of its own).
 *
 * What it costs: small loops become 1.0 to 5.4 times as long. Build the files that need it.
 *
 * The limits:
 *   - Every step is a place at which the task may continue on another thread: see blitz/task.h for
 *     what that means. errno is carried over, but compilers keep the address of a thread-local in a
 *     register: code that uses them, and errno after a branch, is paused or not built so.
 *   - Code that holds a lock blitz knows nothing of, a pthread mutex say, is paused, or the lock
 *     is kept while others run on this worker and may want it.
 *   - Signal handlers, and hooks of blitz (allocator, log), are not built so. In the runtime and on
 *     plain threads nothing is done.
 *   - Files that include headers of blitz: gcc 12, clang 13 or newer. Older ones cannot keep the
 *     steps out of the headers' inline code, which must not be interrupted.
 *   - One hook a program: it cannot be had together with a fuzzer or coverage tool that uses
 *     trace-pc.
 */
#ifndef BLITZ_REDUCTIONS_H
#define BLITZ_REDUCTIONS_H

#include "blitz/api.h"
#include "blitz/yield.h"

BLITZ_BEGIN_DECLS

#if defined(__GNUC__)
#define BLITZ_REDUCTIONS_API __attribute__((visibility("default")))
#else
#define BLITZ_REDUCTIONS_API
#endif

/*
 * Yield after that many reductions. For the whole process; a thread goes by it when it has used up
 * what it had.
 * Suspends: never. Call from any thread.
 * Returns:  0; -EINVAL (less than 1).
 */
BLITZ_REDUCTIONS_API int blitz_reductions_set(int count);

/*
 * Between pause and resume steps are not acted upon: the same as blitz_preempt_pause() and
 * blitz_preempt_resume(), with their rules. The first step after resume makes up for it.
 * Suspends: never.
 */
static inline BLITZ_WHOLE_ void blitz_reductions_pause(void)
{
    blitz_preempt_pause();
}
static inline BLITZ_WHOLE_ void blitz_reductions_resume(void)
{
    blitz_preempt_resume();
}

/* What the compiler calls. Not for programs. */
BLITZ_REDUCTIONS_API void __sanitizer_cov_trace_pc(void);

BLITZ_END_DECLS

#endif
