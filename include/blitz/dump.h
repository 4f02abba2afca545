/*
 * blitz/dump.h - what is everybody doing? All tasks, workers and threads of a runtime, as text.
 *
 *     blitz_dump(rt, 2, 0);                            to standard error, one line for equal tasks
 *     blitz_dump(rt, 2, BLITZ_DUMP_FRAMES);            and where each of them waits
 *     (gdb) call (int)blitz_dump(rt, 2, 0)             also from a debugger
 *
 * A dump needs nobody's help: no worker, no lock that a task could hold, no allocator. It works while
 * every worker is in an endless loop, which is when it is wanted. Nobody is stopped for it, so it is
 * not one moment: each line was true when it was written, and two lines need not fit each other.
 *
 *     runtime "blitz": 2 procs (1 asleep, 0 searching), 10003 tasks live
 *       proc 0: running task 7 on thread blitz-1; queued 3, next 1, in hand 0; no timer; 931 tasks run
 *       proc 1: asleep on thread blitz-2; queued 0, next 0, in hand 0; timer in 8400 us; 772 tasks run
 *       queued for all: 0; pool threads: 2; monitor: looks, 310 looks
 *       task 7 "main" (fiber): running on proc 0, 2.1 s old
 *       10000 tasks "client" (fiber): waiting: receive for 980 ms, 1.9 s old, e.g. task 1033
 *       2 tasks (poll): waiting: wake, 1.9 s old, e.g. task 9
 *
 * What the words mean:
 *   running    a worker has it as its current task; "without a proc" if it was at it for so long that
 *              others go on with its proc
 *   ready      it waits for nothing but its turn; "new" if it has never run
 *   waiting    for what is named: a "join" (of which task), a "sleep", a lock, a channel, the future
 *              it awaits; "wake" if it is parked behind its waker and nothing more is known
 *   ended      it has returned, and a handle or a waker still holds it; shown with BLITZ_DUMP_ENDED
 *   cancelled  it was asked to stop and has not yet
 *   for        since when it waits, where that is known: not of joins and of plain wakes. Of equal tasks,
 *              the one that waits longest; a deadline is the earliest of theirs
 *   old        since its spawn, to 4 ms while its worker changes tasks, to about 10 ms beside hogs;
 *              of equal tasks, the oldest
 *
 * Frames are found by frame pointers from where the task waits. Code that was compiled without them
 * (-fomit-frame-pointer, the default of most compilers) ends the walk after the frame that called
 * blitz. Names come from the symbol tables of the program and its libraries; of a file that was
 * stripped only exported names are known, and offsets, which addr2line takes with the unstripped file. Tasks that run show no frames: use a debugger, or
 * gdb's `blitz bt` (tools/gdb/blitz.py).
 *
 * On SIGQUIT (control-backslash), with `dump_on_sigquit` in the runtime options or BLITZ_DUMP_ON_SIGQUIT=1: each
 * such runtime writes a dump with frames to standard error, from a thread of its own. The process goes
 * on. A handler that was there before is called as well, and is there again when the runtime is gone.
 *
 * Deadlocks are reported without being asked for, once, to the log, with a dump: when tasks wait, and
 * every thread of the process but the runtime's monitor sleeps in a wait of blitz that has no deadline.
 * Then nobody is left who could wake anybody, because new threads, timers, I/O and whoever holds a
 * promise or a waker need a thread that is not asleep so. One thread that is anywhere else, be it in a
 * read or a mutex, may still act: no report. (Signal handlers must not call blitz, and so do not count;
 * nor do other processes that share memory with this one.) Tasks that wait for each other while others
 * go on are not found by this; a dump shows them.
 */
#ifndef BLITZ_DUMP_H
#define BLITZ_DUMP_H

#include <stddef.h>

#include "blitz/api.h"
#include "blitz/runtime.h"

BLITZ_BEGIN_DECLS

typedef enum blitz_dump_flags {
    BLITZ_DUMP_ALL = 1,    /* a line for each task, equal or not */
    BLITZ_DUMP_FRAMES = 2, /* where each task stands that does not run; equal then: there, too */
    BLITZ_DUMP_ENDED = 4   /* tasks that have ended and are still held, too */
} blitz_dump_flags;

/*
 * Gets the dump piece by piece: a line each, its newline included, not ended by a 0. Must not call
 * back into blitz. May stop the dump by returning a negative errno, which the dump returns.
 */
typedef int (*blitz_dump_fn)(void *ctx, const char *line, size_t length);

/*
 * Write what a runtime is doing to a file descriptor. A NULL `rt` is that of the calling task.
 * Owns:     borrows the runtime until it returns.
 * Suspends: never, but the thread blocks where `fd` does. Call from any thread, also from a task;
 *           not from a signal handler (blitz/runtime.h: dump_on_sigquit).
 * Returns:  0, -EINVAL (no runtime, or an unknown flag), -errno of the write that failed.
 */
BLITZ_API int blitz_dump(blitz_runtime *rt, blitz_fd fd, unsigned flags);

/*
 * The same, to a function.
 * Owns:     borrows the runtime until it returns; `ctx` is fn's.
 * Suspends: never; fn must not. Call from any thread, also from a task; not from a signal handler.
 * Returns:  0, -EINVAL (no runtime, no function, or an unknown flag), what fn stopped it with.
 */
BLITZ_API int blitz_dump_to(blitz_runtime *rt, blitz_dump_fn fn, void *ctx, unsigned flags);

BLITZ_END_DECLS

#endif
