/*
 * blitz/clock.h - a virtual clock for the tests of your program: pause the time of a runtime, and move it.
 *
 *     static int test_of_a_timeout(void *arg)
 *     {
 *         blitz_instant start = blitz_now();
 *         assert(fetch_with_retries() == -ETIMEDOUT);                  // gives up after three hours
 *         assert(blitz_now() - start == 3 * 3600 * BLITZ_S);           // exactly, and after a millisecond
 *         return 0;
 *     }
 *     blitz_run(test_of_a_timeout, NULL, &(blitz_runtime_opts){.clock = BLITZ_CLOCK_AUTO});
 *
 * A runtime has a virtual clock if its option `clock` says so (blitz/runtime.h). It runs with the system's clock
 * until it is paused. A paused clock stands still: blitz_now() returns the same moment in every task, however long
 * the tasks compute. Two things move it:
 *
 *   blitz_clock_advance()   moves it by a duration. It stops at the moment of each timer on the way.
 *   BLITZ_CLOCK_AUTO        When all tasks wait, the clock goes to the next timer by itself.
 *
 * A paused clock goes up to 146 years from the start of the system's clock. Timers beyond that never fire.
 *
 * Either way the clock moves only when every task waits: no task runs or is ready to run. At the moment of a timer,
 * that timer fires, and the tasks that it wakes run until they wait again. Then the clock goes on. So a test sees the
 * same order of events as with a real clock and a very fast machine.
 *
 * On the virtual clock, in the tasks of its runtime:
 *   - blitz_now(), blitz_after(), sleeps, intervals, timers that can be moved, functions that run later
 *   - the deadlines of all calls, also of calls that wait for the kernel, and of scopes, tokens and timeouts
 *   - rate limiters, retries, delay queues, and the timers of actors
 *
 * Not on the virtual clock:
 *   - plain threads. blitz_now(), sleeps and deadlines there are the system's. blitz_clock_now() reads the clock of a
 *     runtime. If a plain thread calls blitz_actor_send_after() or blitz_later_at(), the moment is one of the clock of the
 *     runtime where it happens: blitz_clock_now(rt) + ns, not blitz_after(ns).
 *   - the runtime itself: preemption of long tasks, idle threads, shutdown's deadline, ages in dumps, traces
 *   - the kernel: timeouts of TCP, times of files
 *   - other runtimes, each of which has a clock of its own
 *
 * BLITZ_CLOCK_AUTO does not move the clock while a blocking call or an operation on a socket, a pipe or a child
 * process is under way: its end may come before the next timer. So a server that waits for a connection keeps the
 * clock where it is, and a deadline of that wait does not come. blitz_clock_advance() does not wait for these. Neither
 * of them knows what plain threads of the program will do. If a task waits for one, use blitz_clock_advance(). A wait
 * for a lock of a file (blitz/file.h) is a row of short sleeps, and moves a clock that moves by itself.
 */
#ifndef BLITZ_CLOCK_H
#define BLITZ_CLOCK_H

#include <stdbool.h>

#include "blitz/api.h"
#include "blitz/runtime.h"
#include "blitz/sync_future.h"
#include "blitz/time.h"

BLITZ_BEGIN_DECLS

/*
 * Pause the clock of a runtime; NULL: of the calling task's runtime. `mode` is BLITZ_CLOCK_MANUAL or BLITZ_CLOCK_AUTO.
 * Owns:     borrows the runtime until it returns.
 * Suspends: never. Call from any thread.
 * Returns:  0. -EBUSY: it is paused already. -EOPNOTSUPP: the runtime has no virtual clock. -EINVAL: another mode, or
 *           NULL on a plain thread. On an error nothing has changed.
 */
BLITZ_API BLITZ_MUST_USE int blitz_clock_pause(blitz_runtime *rt, blitz_clock_mode mode);

/*
 * Let the clock of a runtime run on, from the moment at which it stands. It does not go back to the system's time.
 * Calls of blitz_clock_advance() that have not arrived return -EINVAL.
 * Owns:     borrows the runtime until it returns.
 * Suspends: never. Call from any thread.
 * Returns:  0. -EINVAL: it is not paused, or NULL on a plain thread. -EOPNOTSUPP: the runtime has no virtual clock.
 */
BLITZ_API BLITZ_MUST_USE int blitz_clock_resume(blitz_runtime *rt);

/*
 * Move a paused clock by `ns`, and wait until every task waits. The clock stops at each timer on the way. Timers of
 * the last moment have fired on return, and the tasks that they woke have run. With 0 the clock stays where it is,
 * and the call waits for the tasks alone. Several callers may move the clock at a time: each returns when the clock
 * is at its moment.
 *
 * A task that never waits, nor ends, keeps the clock from moving.
 * Owns:     borrows the runtime until it returns.
 * Suspends: until then, `until` on the caller's own clock, or a cancel. Call from a task or any thread; a plain thread
 *           sleeps.
 * Returns:  0. -ETIMEDOUT, -ECANCELED: the clock stays at the moment that it has reached. -EINVAL: it is not paused,
 *           it was resumed meanwhile, there is no such moment (146 years), or NULL on a plain thread. -EOPNOTSUPP:
 *           the runtime has no virtual clock.
 */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int
blitz_clock_advance(blitz_runtime *rt, blitz_duration ns, blitz_deadline until);

/*
 * blitz_clock_advance() as a future. A cancel leaves the clock at the moment that it has reached.
 * Owns:     borrows the runtime until the future is ready or cancelled.
 * Suspends: never. Call from any thread. f->result is what the call would have returned.
 */
BLITZ_API void blitz_clock_advance_future_init(blitz_sync_future *f, blitz_runtime *rt,
                                               blitz_duration ns);

/*
 * Return the time of a runtime; NULL: blitz_now(). For plain threads, whose own clock is the system's.
 * Owns:     borrows the runtime until it returns.
 * Suspends: never. Call from any thread.
 * Returns:  nanoseconds, never BLITZ_FOREVER.
 */
BLITZ_API blitz_instant blitz_clock_now(blitz_runtime *rt);

/*
 * Tell whether the clock of a runtime is paused; NULL: of the calling task's runtime.
 * Owns:     borrows the runtime until it returns.
 * Suspends: never. Call from any thread.
 * Returns:  true if it is. False also if the runtime has no virtual clock, or for NULL on a plain thread.
 */
BLITZ_API bool blitz_clock_is_paused(blitz_runtime *rt);

BLITZ_END_DECLS

#endif
