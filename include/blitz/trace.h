/*
 * blitz/trace.h - what ran when, on which thread, and who woke it: a timeline.
 *
 *     blitz_trace_start(rt, NULL);
 *     ...
 *     blitz_trace_stop(rt);
 *     blitz_trace_write(rt, "trace.json");
 *
 * or, for a program as it is: BLITZ_TRACE=trace.json ./program. Perfetto and Chrome (about:tracing)
 * open the file: a row for each worker thread, a slice for each time a task ran, arrows from who
 * woke or spawned a task to where it went on. `blitz-trace` sums such a file up; docs/tracing.md shows
 * how to read it. BLITZ_TRACE_RECORDS says how many records a thread keeps then.
 *
 * Every thread keeps its own last records (32 bytes each) in a ring, and overwrites the oldest: a
 * trace may be left on for days and shows the end of them. How many were overwritten is in the file.
 * A record costs about what reading the clock does, some tens of nanoseconds. Off, an event costs a
 * test of a flag.
 *
 * What is recorded: a task is spawned, begins to run, waits (and for what), yields, ends, is woken (by
 * whom); work is stolen; a proc is handed over; a marked system call begins and ends; a timer fires; a
 * worker sleeps and is roused. Forked jobs (blitz/fork.h) show where somebody else took them: those
 * that their own task runs are calls.
 */
#ifndef BLITZ_TRACE_H
#define BLITZ_TRACE_H

#include <stddef.h>
#include <stdint.h>

#include "blitz/api.h"
#include "blitz/runtime.h"

BLITZ_BEGIN_DECLS

/* How to trace. Zero everywhere (or NULL for the whole) means the defaults. */
typedef struct blitz_trace_opts {
    size_t records; /* a thread keeps, rounded up to a power of two, to 2^24; 0: 65536, 2 MiB */
} blitz_trace_opts;

/*
 * Begin to record. What an earlier trace of the runtime recorded is forgotten; its buffers are used
 * again, and keep their size.
 * Owns:     copies the options; borrows the runtime until it returns. A NULL `rt` is that of the
 *           calling task, here and below.
 * Suspends: never. Call from any thread, also from a task.
 * Returns:  0, -EINVAL (no runtime, and the caller is no task; too many records), -EBUSY (it is being
 *           traced), -ENOMEM.
 */
BLITZ_API int blitz_trace_start(blitz_runtime *rt, const blitz_trace_opts *opts);

/*
 * End recording. What was recorded stays until the next start or the runtime's end.
 * Owns:     borrows the runtime until it returns.
 * Suspends: never. Call from any thread, also from a task.
 * Returns:  0, -EINVAL (no runtime), -EALREADY (it is not being traced).
 */
BLITZ_API int blitz_trace_stop(blitz_runtime *rt);

/* Gets a piece of the text at a time; returns 0, or a negative error that ends the writing. */
typedef int (*blitz_trace_fn)(const void *data, size_t bytes, void *ctx);

/*
 * Write what was recorded, as Chrome's JSON. Also while recording goes on: then it is what each
 * thread had recorded when it was come to, and slices that are not over end there.
 * Owns:     borrows all until it returns; calls `write` from within.
 * Suspends: never a task: it takes the caller's thread for some milliseconds per 10,000 records.
 *           Call from any thread, also from a task.
 * Returns:  0, -EINVAL (no runtime, or no function), -ENODATA (nothing was ever started), -ENOMEM,
 *           or what `write` returned.
 */
BLITZ_API int blitz_trace_write_to(blitz_runtime *rt, blitz_trace_fn write, void *ctx);

/*
 * The same into a file, which is made or overwritten.
 * Owns:     borrows both until it returns.
 * Suspends: never a task: it blocks the calling thread while the file is written.
 * Returns:  as blitz_trace_write_to(); an error of the file as -errno. On error the file may be cut.
 */
BLITZ_API int blitz_trace_write(blitz_runtime *rt, const char *path);

/*
 * Put a mark of your own into the timeline, at this moment and on this thread's row. Does nothing
 * where nothing is traced.
 * Owns:     copies `text`, up to 55 bytes; a trace has room for 511 different texts and names.
 * Suspends: never. Call from a task; elsewhere it does nothing.
 */
BLITZ_API void blitz_trace_mark(const char *text);

BLITZ_END_DECLS

#endif
