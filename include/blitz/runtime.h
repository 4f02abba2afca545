/*
 * blitz/runtime.h - start it, stop it.
 *
 *     static int hello(void *arg) { puts(arg); return 0; }
 *     int main(void) { return blitz_run(hello, "hello", NULL); }
 *
 * A runtime is a set of worker threads and everything that runs on them. blitz_run is all most
 * programs need; the rest is for those that start a runtime inside something else. Several may
 * live in one process.
 *
 * fork(): a process with a runtime may fork, from any thread and from a task, at any time. The child
 * may call exec or _exit, what signal handlers may call, and nothing of blitz: it has one thread, the
 * workers are not in it, and locks of theirs may be held for ever. The parent does not notice. So
 * also exit(), which runs other people's handlers: use _exit(). A child that calls blitz all the same is
 * told: starting and ending a runtime is -EBUSY, a spawn -EINVAL, a wait that would not end and a
 * switch to another task abort, each with a line that says why; parallel calls (blitz/fork.h) run on
 * the calling thread. A program that wants a runtime on both sides forks before it makes one.
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

/* Gets the `thread_ctx` of the options. */
typedef void (*blitz_thread_fn)(void *ctx);

/*
 * What a runtime is to be like. Zero everywhere (or NULL for the whole) means the defaults.
 *
 * What is 0 here is taken from the environment, if it is set there: BLITZ_PROCS, BLITZ_STACK,
 * BLITZ_THREADS_MAX, BLITZ_TASKS_MAX and BLITZ_BURNING_MAX, numbers that may end in K, M or G;
 * BLITZ_IO, a name; BLITZ_NO_ROTATION=1, BLITZ_DUMP_ON_SIGQUIT=1 and
 * BLITZ_NO_OVERFLOW_REPORT=1. BLITZ_TRACE=FILE traces the runtime
 * (blitz/trace.h), BLITZ_PLAIN=1 does without the fast paths, to compare. A value that cannot be, here
 * or there, is refused with a message that says what could.
 *
 * tasks_max bounds the memory as well: a task that waits has one stack, one that does not has none.
 * There is no limit on stacks by themselves. Where the system has no memory for another stack, spawns
 * return -ENOMEM until there is some again. A task that was spawned before, and finds no stack, is run by the
 * fiber that joins it without a deadline or closes its scope; on a stack that the runtime keeps, if the task is
 * cancelled; or when a stack comes back. Stackless tasks are polled on another kept stack. So deadlines hold
 * meanwhile, that of a scope included, if cancelled tasks end and polls do not block. The function of a task
 * is always called, also if the task was cancelled before it began.
 *
 * threads_max bounds the threads, which come when they are needed and go after ten seconds without
 * use: one for each proc, one for each call that blocks (blitz/blocking.h) and one for each task that
 * blocks without having said so. It is more than procs. Calls beyond it wait in a line; the last
 * threads are kept for procs.
 *
 * A task that computes for long, or blocks its thread, does not stop other tasks. When it has done so for
 * 10 ms and there is something to run, it keeps its thread, and the other tasks go on on another thread.
 * This holds for any number of such tasks up to threads_max - procs: docs/what-can-stop-whom.md. A
 * program that wants fewer threads sets burning_max: once so many tasks burn CPU time on threads of
 * their own, the others wait until one of them ends or waits.
 *
 * A task that overflows its stack ends the process with SIGSEGV. While a runtime lives, a handler for
 * SIGSEGV and SIGBUS first writes a line to standard error that names the task, and a backtrace. Then
 * the handler that was there before is called, or the default action follows. Every other fault goes
 * straight there. A handler that is installed later replaces ours. no_overflow_report, or
 * BLITZ_NO_OVERFLOW_REPORT=1, leaves both signals alone.
 *
 * thread_start and thread_stop are called on every worker thread before its first and after its last
 * task; a thread may be one more than once. It is none of the runtime's then: it may call blitz as any
 * thread, but must not wait for tasks of this runtime.
 */
typedef struct blitz_runtime_opts {
    unsigned procs;                   /* workers; 0: as many as the CPUs the process may use */
    size_t stack_bytes;               /* of a fiber, rounded up to a class; 0: 256 KiB */
    bool require_guards;              /* no stack without a guard page, rather -errno */
    unsigned threads_max;             /* of workers and blocking calls together; 0: 512 */
    uint64_t tasks_max;               /* that live at a time; one more is -EAGAIN. 0: any number */
    unsigned burning_max;             /* threads that hog; 0: BLITZ_BURNING_MAX or no limit */
    bool dump_on_sigquit;             /* SIGQUIT is answered with a dump: blitz/dump.h */
    const blitz_allocator *allocator; /* copied; NULL: the C library's */
    blitz_log_fn log;             /* gets the *process's* warnings and errors from now on, as by */
    void *log_ctx;                /* blitz_log_set(); NULL: leave the log as it is */
    blitz_thread_fn thread_start; /* NULL: none */
    blitz_thread_fn thread_stop;  /* NULL: none */
    void *thread_ctx;             /* yours, until the runtime is given up */
    const char *name;             /* of the worker threads; copied; NULL: "blitz" */
    const char *io; /* "epoll", "poll", "uring" (epoll, with a warning, if the system refuses a
                             * ring), "none"; NULL: BLITZ_IO, or the best */
    bool no_overflow_report; /* a stack overflow is a plain SIGSEGV: see above */
    bool no_rotation;        /* endless loops take no turns, no SIGURG handler is installed */
} blitz_runtime_opts;

/*
 * Run main(arg) as the first task of a new runtime, shut that down and return.
 * Tasks that still live when main returns are cancelled and waited for.
 * Owns:     copies the options; `arg` is main's.
 * Suspends: never a task: it blocks the calling thread, which must not be a worker.
 * Returns:  what main returned; -EINVAL (bad options; the log says what), -ENOMEM, -EAGAIN (no
 *           thread could be started), -EBUSY (called from a task).
 */
BLITZ_API int blitz_run(int (*main)(void *arg), void *arg, const blitz_runtime_opts *opts);

/*
 * Make a runtime. One thread starts at once, the others when there is work for them.
 * Owns:     copies the options. The caller holds the runtime; end it with blitz_runtime_shutdown()
 *           and then blitz_runtime_unref().
 * Suspends: never. Call from any thread.
 * Returns:  0, -EINVAL (bad options; the log says what), -ENOMEM, -EAGAIN (no thread could be
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
 * Stop a runtime: no more spawns, every task is cancelled, and all are waited for. Tasks that ignore
 * their cancel are named in the log, with what they do and where, after one second and then every ten.
 * Owns:     borrows the runtime until it returns.
 * Suspends: never a task: it blocks the calling thread, which must not be a worker, until the last
 *           task has ended and the last blocking call has returned, or `until`.
 * Returns:  0; -ETIMEDOUT: some task would not end, and is named in the log, or a blocking call that
 *           its caller has left (blitz/blocking.h) has not returned; they go on, and the call may be
 *           repeated. -EBUSY (called from a task of that runtime).
 */
BLITZ_API int blitz_runtime_shutdown(blitz_runtime *rt, blitz_deadline until);

/*
 * Stop a runtime as blitz_runtime_shutdown() does, but do not wait for blocking calls that their callers have
 * left (blitz/blocking.h). Each goes on on its thread; when its function has returned, the thread calls
 * drop(arg), frees what it holds through the runtime options' allocator, which must still be there, and ends. It
 * touches nothing else of the runtime, which may be given up meanwhile. May follow a shutdown that timed out.
 * Owns:     borrows the runtime until it returns.
 * Suspends: never a task: it blocks the calling thread, which must not be a worker, until the last
 *           task has ended, or `until`.
 * Returns:  0; -ETIMEDOUT: some task would not end, and is named in the log. -EBUSY (called from a task of
 *           that runtime).
 */
BLITZ_API int blitz_runtime_abandon(blitz_runtime *rt, blitz_deadline until);

/*
 * Give up a runtime that was shut down. NULL is ignored. In debug builds the log names each task
 * that a handle or a waker still holds.
 * Owns:     takes the runtime. Task handles and wakers outlive it; its memory goes with the last.
 * Suspends: never a task: it blocks the calling thread until the workers have ended.
 * Returns:  0; -EBUSY: it was not shut down, or its shutdown timed out: a task or a blocking call is still
 *           under way. Nothing happened, and the shutdown may be repeated.
 */
BLITZ_API BLITZ_MUST_USE int blitz_runtime_unref(blitz_runtime *rt);

BLITZ_END_DECLS

#endif
