/*
 * blitz/dump.h - all tasks, workers and threads of a runtime, as text.
 *
 *     blitz_dump(rt, 2, 0);                            to standard error, one line for equal tasks
 *     blitz_dump(rt, 2, BLITZ_DUMP_FRAMES);            and where each of them waits
 *     (gdb) call (int)blitz_dump(rt, 2, 0)             also from a debugger
 *
 * A dump needs no worker, no allocator, and no lock that a task could hold. So it works while every worker is in an
 * endless loop, when it is most useful. It stops no thread, so it is not a consistent snapshot: each line was true when
 * it was written, but two lines need not agree.
 *
 *     runtime "blitz": 2 procs (1 asleep, 0 searching), 10003 tasks live
 *       proc 0: running task 7 on thread blitz-1; queued 3, next 1, in hand 0; no timer; 931 tasks run
 *       proc 1: asleep on thread blitz-2; queued 0, next 0, in hand 0; timer in 8400 us; 772 tasks run
 *       queued for all: 0; pool threads: 2; monitor: looks, 310 looks
 *       task 7 "main" (fiber): running on proc 0, 2.1 s old
 *       10000 tasks "client" (fiber): waiting: receive for 980 ms, 1.9 s old, e.g. task 1033
 *       2 tasks (poll): waiting: wake, 1.9 s old, e.g. task 9
 *
 * The terms:
 *   running    the current task of a worker; "without a proc" if it ran for so long that another thread has taken its
 *              proc
 *   ready      it waits only for its turn; "new" if it has never run
 *   waiting    for the named event: a "join" (of which task), a "sleep", a lock, a channel, the future that it awaits;
 *              "wake" if it is parked on its waker and nothing more is known
 *   ended      it has returned, and a handle or a waker still holds it; shown with BLITZ_DUMP_ENDED
 *   cancelled  it was cancelled and has not ended yet
 *   for        how long it has waited, where that is known: not for joins and plain wake-ups. Of equal tasks, the
 *              longest wait; a deadline is the earliest of theirs
 *   old        the time since its spawn, to 4 ms while its worker changes tasks, to about 10 ms beside tasks that
 *              compute for long; of equal tasks, the oldest
 *
 * Frames are found by frame pointers from the point where the task waits. Code that was compiled without them
 * (-fomit-frame-pointer, the default of most compilers) ends the walk after the frame that called blitz. Names come
 * from the symbol tables of the program and its libraries. A stripped file has only exported names and offsets;
 * addr2line resolves the offsets with the unstripped file. Running tasks show no frames: use a debugger, or gdb's
 * `blitz bt` (tools/gdb/blitz.py).
 *
 * On SIGQUIT (control-backslash): each runtime with `dump_on_sigquit` in its options, or BLITZ_DUMP_ON_SIGQUIT=1,
 * writes a dump with frames to standard error, from a thread of its own. The process continues. A handler that was
 * installed before is called as well, and is restored when the runtime has ended.
 *
 * Deadlocks are reported automatically, once, to the log, with a dump. The condition: tasks wait, and every thread of
 * the process except the runtime's monitor sleeps in a wait of blitz without a deadline. Then no wake-up can come,
 * because new threads, timers, I/O and the holder of a promise or a waker all need a thread that is awake. If one
 * thread is anywhere else, for example in a read or a mutex, it may still act, and there is no report. (Signal handlers
 * must not call blitz, so they do not count; nor do other processes that share memory with this one.) Tasks that wait
 * for each other while others continue are not found this way; a dump shows them.
 */
#ifndef BLITZ_DUMP_H
#define BLITZ_DUMP_H

#include <stddef.h>

#include "blitz/api.h"
#include "blitz/runtime.h"

BLITZ_BEGIN_DECLS

typedef enum blitz_dump_flags {
    BLITZ_DUMP_ALL = 1,    /* a line for each task, equal or not */
    BLITZ_DUMP_FRAMES = 2, /* the frames of tasks that do not run; equal tasks have equal frames */
    BLITZ_DUMP_ENDED = 4   /* tasks that have ended and are still held, too */
} blitz_dump_flags;

/*
 * Receives the dump line by line, each with its newline, without a final 0. It must not call back into blitz. To stop
 * the dump, return a negative errno, which the dump then returns.
 */
typedef int (*blitz_dump_fn)(void *ctx, const char *line, size_t length);

/*
 * Write a dump of a runtime to a file descriptor. A NULL `rt` is the runtime of the calling task.
 * Owns:     borrows the runtime until it returns.
 * Suspends: never, but the thread blocks where `fd` does. Call from any thread, also from a task;
 *           not from a signal handler (blitz/runtime.h: dump_on_sigquit).
 * Returns:  0, -EINVAL (no runtime, or an unknown flag), -errno of the write that failed.
 */
BLITZ_API int blitz_dump(blitz_runtime *rt, blitz_fd fd, unsigned flags);

/*
 * Write a dump to a function.
 * Owns:     borrows the runtime until it returns; `ctx` is fn's.
 * Suspends: never; fn must not. Call from any thread, also from a task; not from a signal handler.
 * Returns:  0, -EINVAL (no runtime, no function, or an unknown flag), the error of fn.
 */
BLITZ_API int blitz_dump_to(blitz_runtime *rt, blitz_dump_fn fn, void *ctx, unsigned flags);

BLITZ_END_DECLS

#endif
