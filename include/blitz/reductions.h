/*
 * blitz/reductions.h - code that counts its steps and yields by itself. Off unless built in.
 *
 *     gcc   -fsanitize-coverage=trace-pc              -c hot.c
 *     clang -fsanitize-coverage=edge,trace-pc,no-prune -c hot.c
 *     cc ... hot.o -lblitz-reductions -lblitz         (pkg-config blitz-reductions, blitz::reductions)
 *
 * Code that is built so calls the library at every step from one basic block to the next: a reduction. After 4000 of
 * them (BLITZ_REDUCTIONS in the environment, or blitz_reductions_set) the task lets other ready tasks run first, as by
 * blitz_yield(). So an endless loop on the only worker does not stop other tasks: even for (;;) g++; is counted (with
 * clang only with no-prune). No source is changed, so it also works for third-party code.
 *
 * Pass the flag when compiling, not when linking (clang would add a runtime of its own).
 *
 * Cost: small loops become 1.0 to 5.4 times as long. Build only the files that need it.
 *
 * The limits:
 *   - At every step the task may continue on another thread: see blitz/task.h for the consequences. errno is carried
 *     over, but compilers keep the address of a thread-local in a register. So code that uses thread-locals, or errno
 *     after a branch, must be paused or not built so.
 *   - Code that holds a lock unknown to blitz, such as a pthread mutex, must be paused. Otherwise the lock stays held
 *     while other tasks run on this worker and may want it.
 *   - Do not build signal handlers and hooks of blitz (allocator, log) so. In the runtime and on plain threads a step
 *     does nothing.
 *   - Files that include headers of blitz need gcc 12, clang 13 or newer. Older compilers cannot keep the steps out of
 *     the headers' inline code, which must not be interrupted.
 *   - A program has one such hook: it cannot be combined with a fuzzer or coverage tool that uses trace-pc.
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
 * Yield after that many reductions. It applies to the whole process; a thread uses it once its current count has run
 * out.
 * Suspends: never. Call from any thread.
 * Returns:  0; -EINVAL (less than 1).
 */
BLITZ_REDUCTIONS_API int blitz_reductions_set(int count);

/*
 * Between pause and resume steps do not yield. These are the same as blitz_preempt_pause() and blitz_preempt_resume(),
 * with the same rules. The first step after resume makes up for it.
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

/* The function that the compiler calls. Not for programs. */
BLITZ_REDUCTIONS_API void __sanitizer_cov_trace_pc(void);

BLITZ_END_DECLS

#endif
