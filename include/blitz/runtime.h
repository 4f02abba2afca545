/*
 * blitz/runtime.h - start and stop a runtime.
 *
 *     static int hello(void *arg) { puts(arg); return 0; }
 *     int main(void) { return blitz_run(hello, "hello", NULL); }
 *
 * A runtime is a set of worker threads and everything that runs on them. Most programs need only blitz_run().
 * The other functions are for a program that starts a runtime inside something else. A process may have several
 * runtimes.
 *
 * fork(): a process with a runtime may fork at any time, from any thread and from a task. The parent is not
 * affected. The child has one thread. The workers are not in it, and their locks may stay held for ever. So the
 * child may call exec, _exit and the functions that a signal handler may call, but nothing of blitz. It must not
 * call exit() either, because exit() runs the handlers of other code: use _exit().
 *
 * A child that calls blitz all the same gets an error. Starting or ending a runtime returns -EBUSY, and a spawn
 * returns -EINVAL. A wait that would not end, and a switch to another task, abort with a message that gives the
 * reason. Parallel calls (blitz/fork.h) run on the calling thread. A program that wants a runtime in both
 * processes forks before it makes one.
 */
#ifndef BLITZ_RUNTIME_H
#define BLITZ_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "blitz/api.h"
#include "blitz/hooks.h"
#include "blitz/time.h"

BLITZ_BEGIN_DECLS

typedef struct blitz_runtime blitz_runtime;

/* Called with the `thread_ctx` of the options. */
typedef void (*blitz_thread_fn)(void *ctx);

/* The clock of a runtime's tasks: blitz/clock.h. The last two are for tests. */
typedef enum blitz_clock_mode {
    BLITZ_CLOCK_SYSTEM = 0, /* the system's: it cannot be paused */
    BLITZ_CLOCK_RUNS = 1,   /* a virtual clock that runs with the system's until it is paused */
    BLITZ_CLOCK_MANUAL = 2, /* a virtual clock, paused: it moves by blitz_clock_advance() alone */
    BLITZ_CLOCK_AUTO = 3    /* ... which also goes to the next timer when every task waits */
} blitz_clock_mode;

/*
 * The options of a runtime. A zero field, or NULL for the whole struct, means the default.
 *
 * If a field is 0, its value comes from the environment if it is set there. BLITZ_PROCS, BLITZ_PROCS_MAX, BLITZ_STACK,
 * BLITZ_THREADS_MAX, BLITZ_TASKS_MAX and BLITZ_BURNING_MAX are numbers that may end in K, M or G. BLITZ_IO is a
 * name. The others are BLITZ_NO_ROTATION=1, BLITZ_DUMP_ON_SIGQUIT=1 and BLITZ_NO_OVERFLOW_REPORT=1.
 * BLITZ_TRACE=FILE traces the runtime (blitz/trace.h). BLITZ_PLAIN=1 turns the fast paths off, for comparison. An
 * invalid value, here or there, is refused with a message that lists the valid ones.
 *
 * tasks_max also bounds the memory: a task that waits has one stack, and a task that does not wait has none. There
 * is no separate limit on stacks. If the system has no memory for another stack, spawns return -ENOMEM until there
 * is memory again. A task that was spawned before and finds no stack runs in one of three ways. The fiber that
 * joins it without a deadline, or closes its scope, runs it. If the task is cancelled, it runs on a stack that the
 * runtime keeps for this. Otherwise it runs when a stack becomes free. Stackless tasks are polled on another kept
 * stack. So deadlines hold meanwhile, also that of a scope, provided that cancelled tasks end and polls do not
 * block. The function of a task is always called, also if the task was cancelled before it began.
 *
 * threads_max bounds the threads. The runtime starts threads on demand and ends them after ten seconds without
 * use. It needs one for each proc, one for each blocking call (blitz/blocking.h) and one for each task that blocks
 * without a mark. threads_max must be more than procs_max. Further blocking calls wait in a queue; the last threads
 * are kept for procs.
 *
 * A task that computes for long, or blocks its thread, does not stop other tasks. After 10 ms, if other tasks are
 * ready, it keeps its thread, and the other tasks continue on another thread. This holds for any number of such
 * tasks up to threads_max - procs: docs/what-can-stop-whom.md. A program that wants fewer threads sets
 * burning_max. Once that many tasks burn CPU time on threads of their own, the other tasks wait until one of them
 * ends or waits.
 *
 * A task that overflows its stack ends the process with SIGSEGV. While a runtime lives, a handler for SIGSEGV and
 * SIGBUS first writes a line that names the task, and a backtrace, to standard error. Then it calls the handler
 * that was installed before, or the default action follows. Every other fault goes straight there. A handler that
 * the program installs later replaces ours. no_overflow_report, or BLITZ_NO_OVERFLOW_REPORT=1, leaves both signals
 * alone.
 *
 * Each worker thread calls thread_start before its first task and thread_stop after its last one. A thread may
 * become a worker more than once. During both calls the thread is not a worker: it may call blitz like any plain
 * thread, but must not wait for tasks of this runtime.
 */
typedef struct blitz_runtime_opts {
    unsigned procs;                   /* workers; 0: one for each CPU the process may use */
    size_t stack_bytes;               /* of a fiber, rounded up to a size class; 0: 256 KiB */
    bool require_guards;              /* fail with -errno if a stack cannot have a guard page */
    unsigned threads_max;             /* for workers and blocking calls together; 0: 512 */
    uint64_t tasks_max;               /* live tasks at a time; one more is -EAGAIN. 0: any number */
    unsigned burning_max;             /* threads that burn; 0: BLITZ_BURNING_MAX or no limit */
    bool dump_on_sigquit;             /* write a dump on SIGQUIT: blitz/dump.h */
    const blitz_allocator *allocator; /* copied; NULL: the C library's */
    blitz_log_fn log;             /* receives the *process's* warnings and errors, as if set by */
    void *log_ctx;                /* blitz_log_set(); NULL: leave the log as it is */
    blitz_thread_fn thread_start; /* NULL: none */
    blitz_thread_fn thread_stop;  /* NULL: none */
    void *thread_ctx;             /* yours; must stay until blitz_runtime_unref() */
    const char *name;             /* of the worker threads; copied; NULL: "blitz" */
    const char
        *io; /* "epoll", "iocp" (Windows), "kqueue" (macOS, BSD), "poll", "uring" (epoll, with a
                             * warning, if the system refuses a ring), "none"; NULL: BLITZ_IO, or the best */
    bool no_overflow_report; /* a stack overflow is a plain SIGSEGV: see above */
    bool no_rotation;        /* endless loops do not take turns; no SIGURG handler */
    blitz_clock_mode clock;  /* for tests: a clock that can be paused (blitz/clock.h) */
    unsigned procs_max;      /* the most that blitz_runtime_resize() may set; 0: as many as procs */
} blitz_runtime_opts;

/*
 * Run main(arg) as the first task of a new runtime, then shut the runtime down. Tasks that are still alive when
 * main returns are cancelled, and the call waits for them.
 * Owns:     copies the options; `arg` is passed to main.
 * Suspends: never a task: it blocks the calling thread, which must not be a worker.
 * Returns:  what main returned; -EINVAL (bad options; the log has the reason), -ENOMEM, -EAGAIN (no
 *           thread could be started), -EBUSY (called from a task).
 */
BLITZ_API int blitz_run(int (*main)(void *arg), void *arg, const blitz_runtime_opts *opts);

/*
 * Make a runtime. One thread starts at once, the others when there is work for them.
 * Owns:     copies the options. The caller holds the runtime; end it with blitz_runtime_shutdown()
 *           and then blitz_runtime_unref().
 * Suspends: never. Call from any thread.
 * Returns:  0, -EINVAL (bad options; the log has the reason), -ENOMEM, -EAGAIN (no thread could be
 *           started). *out is written only on 0.
 */
BLITZ_API BLITZ_MUST_USE int blitz_runtime_new(const blitz_runtime_opts *opts, blitz_runtime **out);

/*
 * Run fn(arg) as a task of the runtime and wait for its result.
 * Owns:     borrows the runtime until it returns; `arg` is fn's.
 * Suspends: never a task: it blocks the calling thread, which must not be a worker.
 * Returns:  what fn returned; -ENOMEM, -ESHUTDOWN (the runtime is shutting down), -EAGAIN (tasks_max
 *           tasks live), -EBUSY (called from a task).
 */
BLITZ_API int blitz_runtime_block_on(blitz_runtime *rt, int (*fn)(void *arg), void *arg);

/*
 * Change the number of procs, on which tasks run, as GOMAXPROCS does in Go. It returns at once. A proc that is taken
 * away finishes the run of its current task, then passes its other tasks on. Its thread stays, and serves the timers
 * and the files that were begun there. Parallel calls (blitz/par.h) use the new number from their next split on.
 * Owns:     borrows the runtime until it returns. NULL: the runtime of the calling task.
 * Suspends: never. Call from any thread.
 * Returns:  0, -EINVAL (0, more than procs_max of the options, or NULL outside a task).
 */
BLITZ_API BLITZ_MUST_USE int blitz_runtime_resize(blitz_runtime *rt, unsigned procs);

/*
 * Stop a runtime: refuse further spawns, cancel every task and wait for all of them. After one second, and then
 * every ten, the log names each task that ignores its cancel, with what it does and where.
 * Owns:     borrows the runtime until it returns.
 * Suspends: never a task: it blocks the calling thread, which must not be a worker, until the last
 *           task has ended and the last blocking call has returned, or `until`.
 * Returns:  0. -ETIMEDOUT: a task has not ended (the log names it), or a blocking call whose caller has left
 *           (blitz/blocking.h) has not returned. They continue, and you may repeat the call. -EBUSY (called from a
 *           task of that runtime).
 */
BLITZ_API int blitz_runtime_shutdown(blitz_runtime *rt, blitz_deadline until);

/*
 * Stop a runtime as blitz_runtime_shutdown() does, but do not wait for blocking calls whose callers have left
 * (blitz/blocking.h), nor for offloaded ones (blitz/offload.h): those that have not begun are cancelled. Each call that
 * runs continues on its thread. When its function has returned, the thread calls drop(arg), frees its memory through
 * the allocator of the runtime options, and ends. That allocator must still exist. The thread touches nothing else of
 * the runtime, so blitz_runtime_unref() may be called meanwhile. You may call this after a shutdown that timed out.
 * Owns:     borrows the runtime until it returns.
 * Suspends: never a task: it blocks the calling thread, which must not be a worker, until the last
 *           task has ended, or `until`.
 * Returns:  0. -ETIMEDOUT: a task has not ended; the log names it. -EBUSY (called from a task of that runtime).
 */
BLITZ_API int blitz_runtime_abandon(blitz_runtime *rt, blitz_deadline until);

/*
 * Release a runtime that was shut down. NULL is ignored. In debug builds the log names each task that a handle or
 * a waker still holds.
 * Owns:     takes the runtime. Task handles and wakers outlive it; its memory is freed with the last of them.
 * Suspends: never a task: it blocks the calling thread until the workers have ended.
 * Returns:  0. -EBUSY: it was not shut down, or its shutdown timed out because a task or a blocking call has not
 *           ended. Nothing happened, and you may repeat the shutdown.
 */
BLITZ_API BLITZ_MUST_USE int blitz_runtime_unref(blitz_runtime *rt);

BLITZ_END_DECLS

#endif
