/*
 * blitz/preempt.h - threads that burn past the limit take turns, by a signal. Off unless asked for.
 *
 *     static BLITZ_PREEMPTIBLE int spins(void *arg) { for (;;) ... }
 *
 *     blitz_preempt_register_marked();                  // or: blitz_preempt_register_program()
 *     blitz_run(main_task, NULL, &(blitz_config){.preempt = 1});
 *
 * A task that computes without end is in nobody's way: its worker's other tasks go on on another
 * thread. Such threads are limited in number, because each takes its share of the CPUs (the config
 * says to how many). With .preempt = 1 more of them may loop: those past the limit are stopped where
 * they are, by SIGURG, and all take turns of about 10 ms. Everything else goes on as if there were
 * only as many as the limit.
 *
 * A stopped thread sleeps in the signal handler and goes on in the very place, so nothing moves:
 * thread-locals, errno, locks and the stack are as they were. What must not happen is that it is
 * stopped while it holds a lock others need, such as malloc's. So it is only stopped
 *   - in user code of a task, not in blitz,
 *   - at an instruction that lies in registered code: code that calls malloc is not stopped inside
 *     malloc, but before or after,
 *   - outside blitz_preempt_pause() and blitz_preempt_resume() (blitz/yield.h).
 * Otherwise it is tried again a millisecond later.
 *
 * The limits:
 *   - Register code that may be stopped anywhere: no allocator, no code that others spin on. A lock
 *     of the registered code's own that is held by a stopped thread is held until its next turn.
 *   - Registered code that is called back under a foreign lock (by qsort: none; by dl_iterate_phdr,
 *     stdio's cookies: their locks) uses pause and resume. If it does not, others wait for the lock up to
 *     a second: a stop ends by itself then.
 *   - Signal handlers of the program's own that may interrupt foreign code are not registered, or
 *     block SIGURG in their sa_mask.
 *   - A system call that the signal interrupts is restarted where the kernel can (SA_RESTART). Calls
 *     with a timeout of their own (poll, nanosleep) may return EINTR, as with any handler. Threads
 *     that sleep in one are not signalled.
 *   - Earlier handlers of SIGURG get what is not ours. Who installs one later keeps ours (calls it),
 *     or preemption is off.
 *   - Not with ThreadSanitizer, which keeps signals back, nor under simulation.
 *   - A task that was cancelled is let go and not stopped again.
 * It costs nothing until threads are past the limit; then about 20 us for each turn.
 */
#ifndef BLITZ_PREEMPT_H
#define BLITZ_PREEMPT_H

#include "blitz/api.h"
#include "blitz/yield.h"

#include <errno.h>
#include <stddef.h>

BLITZ_BEGIN_DECLS

/*
 * Threads may be stopped at the instructions from start up to, but not including, end. For the whole
 * process, and all runtimes in it.
 * Owns:     nothing; the code must stay mapped until it is unregistered.
 * Suspends: never. Call from any thread.
 * Returns:  0; -EINVAL (no such range, or code of blitz lies in it), -ENOSPC (64 ranges are registered).
 */
BLITZ_API int blitz_preempt_register(const void *start, const void *end);

/*
 * No longer. A thread that is stopped there goes on at its next turn.
 * Owns:     nothing.
 * Suspends: never. Call from any thread.
 * Returns:  0; -ENOENT (that very range is not registered).
 */
BLITZ_API int blitz_preempt_unregister(const void *start, const void *end);

/*
 * Register the program's own code: all of the executable, but no library. Its own allocator, if one
 * is linked into it, is in there, too: then mark functions instead.
 * Owns:     nothing.
 * Suspends: never. Call from any thread.
 * Returns:  0; -EINVAL (blitz itself is linked into the program; mark functions instead), -ENOSPC.
 */
BLITZ_API int blitz_preempt_register_program(void);

/* Functions that may be stopped anywhere, for blitz_preempt_register_marked(). What they call is not
 * marked by that, unless it is inlined. */
#if defined(__GNUC__)
#define BLITZ_PREEMPTIBLE __attribute__((section("blitz_preemptible"), noinline))

/* The linker makes these, where there is such a section. */
extern const char blitz_marked_begin_[] __asm__("__start_blitz_preemptible")
    __attribute__((weak, visibility("hidden")));
extern const char blitz_marked_end_[] __asm__("__stop_blitz_preemptible")
    __attribute__((weak, visibility("hidden")));

/*
 * Register the marked functions of the program or library that this call is compiled into.
 * Owns:     nothing.
 * Suspends: never. Call from any thread.
 * Returns:  as blitz_preempt_register(); -EINVAL if there are none.
 */
static inline int blitz_preempt_register_marked(void)
{
    return blitz_preempt_register(blitz_marked_begin_, blitz_marked_end_);
}
#else
#define BLITZ_PREEMPTIBLE
/*
 * Nothing can be marked with this compiler.
 * Owns:     nothing.
 * Suspends: never.
 * Returns:  -EINVAL.
 */
static inline int blitz_preempt_register_marked(void)
{
    return -EINVAL;
}
#endif

BLITZ_END_DECLS

#endif
