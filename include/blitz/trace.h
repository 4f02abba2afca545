/*
 * blitz/trace.h - a timeline: what ran when, on which thread, and what woke it.
 *
 *     blitz_trace_start(rt, NULL);
 *     ...
 *     blitz_trace_stop(rt);
 *     blitz_trace_write(rt, "trace.json");
 *
 * or, for an unchanged program: BLITZ_TRACE=trace.json ./program. Perfetto and Chrome (about:tracing) open the file. It
 * has a row for each worker thread, a slice for each run of a task, and arrows from the code that woke or spawned a
 * task to where the task continued. `blitz-trace` summarizes such a file; docs/tracing.md shows how to read it.
 * BLITZ_TRACE_RECORDS sets the number of records that a thread keeps then.
 *
 * Every thread keeps its own last records (32 bytes each) in a ring, and overwrites the oldest. So a trace may stay on
 * for days and shows the end of them. The file says how many were overwritten. A record costs about as much as reading
 * the clock, some tens of nanoseconds. If tracing is off, an event costs a test of a flag.
 *
 * Events: a task is spawned, starts to run, waits (and for what), yields, ends, is woken (and by what). Work is
 * stolen. A proc is handed off. A marked system call begins and ends. A timer fires. A worker sleeps and is roused.
 * Forked jobs (blitz/fork.h) appear only if another worker took them: jobs that their own task runs are calls.
 */
#ifndef BLITZ_TRACE_H
#define BLITZ_TRACE_H

#include <stddef.h>
#include <stdint.h>

#include "blitz/api.h"
#include "blitz/runtime.h"

BLITZ_BEGIN_DECLS

/* The options of a trace. A zero field, or NULL for the whole struct, means the default. */
typedef struct blitz_trace_opts {
    size_t records; /* for each thread, rounded up to a power of two, to 2^24; 0: 65536, 2 MiB */
} blitz_trace_opts;

/*
 * Start recording. Records of an earlier trace of the runtime are discarded; its buffers are reused and keep their
 * size.
 * Owns:     copies the options; borrows the runtime until it returns. A NULL `rt` is that of the
 *           calling task, here and below.
 * Suspends: never. Call from any thread, also from a task.
 * Returns:  0, -EINVAL (no runtime, and the caller is no task; too many records), -EBUSY (it is being
 *           traced), -ENOMEM.
 */
BLITZ_API int blitz_trace_start(blitz_runtime *rt, const blitz_trace_opts *opts);

/*
 * Stop recording. The records stay until the next start or the runtime's end.
 * Owns:     borrows the runtime until it returns.
 * Suspends: never. Call from any thread, also from a task.
 * Returns:  0, -EINVAL (no runtime), -EALREADY (it is not being traced).
 */
BLITZ_API int blitz_trace_stop(blitz_runtime *rt);

/* Receives a piece of the text at a time; returns 0, or a negative error that ends the writing. */
typedef int (*blitz_trace_fn)(const void *data, size_t bytes, void *ctx);

/*
 * Write the records, as Chrome's JSON. This also works while recording continues. Then the text has, for each thread,
 * the records up to the moment it is read, and open slices end there.
 * Owns:     borrows all until it returns; calls `write` from within.
 * Suspends: never a task: it takes the caller's thread for some milliseconds per 10,000 records.
 *           Call from any thread, also from a task.
 * Returns:  0, -EINVAL (no runtime, or no function), -ENODATA (nothing was ever started), -ENOMEM,
 *           or what `write` returned.
 */
BLITZ_API int blitz_trace_write_to(blitz_runtime *rt, blitz_trace_fn write, void *ctx);

/*
 * Write the records to a file, which is made or overwritten.
 * Owns:     borrows both until it returns.
 * Suspends: never a task: it blocks the calling thread while the file is written.
 * Returns:  as blitz_trace_write_to(); an error of the file as -errno. On error the file may be cut.
 */
BLITZ_API int blitz_trace_write(blitz_runtime *rt, const char *path);

/*
 * Put a mark of your own into the timeline, at this moment and on this thread's row. Does nothing if tracing is off.
 * Owns:     copies `text`, up to 55 bytes; a trace has room for 511 different texts and names.
 * Suspends: never. Call from a task; elsewhere it does nothing.
 */
BLITZ_API void blitz_trace_mark(const char *text);

BLITZ_END_DECLS

#endif
