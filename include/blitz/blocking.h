/*
 * blitz/blocking.h - make blocking calls without blocking other tasks.
 *
 * A task that waits in blitz blocks no thread. A library that does not know blitz blocks its thread: a database client,
 * getaddrinfo(), a read of a slow disk, a foreign mutex. The ways to call such code, by how long it takes:
 *
 *     blitz_syscall_enter();                      // usually short: the call is made here, at the cost of some
 *     n = read(fd, buffer, sizeof buffer);        // nanoseconds; if it takes long, other tasks run meanwhile
 *     int err = errno;
 *     blitz_syscall_leave();
 *
 *     rc = blitz_block_in_place(query, &q);       // the same around a function
 *
 *     rc = blitz_blocking(query, &q);             // microseconds to minutes: on a thread of the pool
 *
 *     blitz_blocking_future_init(&call, resolve, r, &opts);     // wait no longer than `until`; opts.drop gets r
 *     rc = blitz_await(&call.future, until);      // when the call has returned
 *
 *     blitz_offload_start(query, &q, NULL, &o);   // blitz/offload.h: start it now, wait for it later
 *
 *     blitz_thread_lock();                        // for a library that is tied to a thread
 *
 * Such libraries may also need a large stack:
 *
 *     rc = blitz_on_big_stack(render, page, 4 << 20);
 *
 * The pool. Its threads are started on demand, up to threads_max of the runtime options (workers included), and end
 * after ten seconds without use. Further calls wait in a queue, first come, first served; the last few threads are kept
 * for workers. If no thread can be started at all, the call is made in place: it may take longer, but is never lost.
 * (With the uring backend a system call in it may then fail with EINTR, or transfer less than requested.)
 *
 * On a pool thread fn is not a task: blitz_task_current() is NULL, and a wait blocks the thread. A blitz_blocking()
 * inside fn is made in place, so nested calls cannot wait for a thread that they hold themselves. But a call that waits
 * for *another* blocking call may wait for ever once threads_max is reached: use tasks for that.
 *
 * errno belongs to the thread that fn ran on. Let fn return it as a negative number, as all functions here do.
 */
#ifndef BLITZ_BLOCKING_H
#define BLITZ_BLOCKING_H

#include <stddef.h>

#include "blitz/api.h"
#include "blitz/future.h"
#include "blitz/time.h"

BLITZ_BEGIN_DECLS

/*
 * Mark the start of a call that may block. The task stays on its thread until blitz_syscall_leave(). If the call takes
 * long and other tasks are ready, another thread takes the proc and runs them. Pairs nest. A task may wait in blitz in
 * between, as usual. On a plain thread both do nothing.
 * Suspends: never.
 */
BLITZ_API void blitz_syscall_enter(void);

/*
 * Mark the end of the call. If another thread has taken the proc, the task takes a free one, preferably its old one, or
 * waits in the queue with other tasks. Read errno before this call; afterwards it may be another thread's. A leave
 * without an enter aborts in debug builds.
 * Suspends: until there is a proc for this task.
 */
BLITZ_API BLITZ_SUSPENDS void blitz_syscall_leave(void);

/*
 * Call fn(arg) on this thread, between blitz_syscall_enter() and blitz_syscall_leave(). With the backend "uring"
 * (blitz_runtime_opts.io) the kernel interrupts system calls of threads that have submitted operations to it. There fn
 * is called on a thread of the pool instead, and the two calls above give no protection.
 * Owns:     `arg` is fn's until this returns.
 * Suspends: perhaps, after fn has returned, until there is a proc for this task. Call from anywhere.
 * Returns:  what fn returned; -EINVAL (no function).
 */
BLITZ_API BLITZ_SUSPENDS int blitz_block_in_place(int (*fn)(void *arg), void *arg);

/*
 * Call fn(arg) on a thread of the pool.
 * Owns:     `arg` is fn's until this returns.
 * Suspends: until fn has returned. The caller's memory is in use, so a cancel does not end the wait; the next wait gets
 *           it. Call from anywhere; a plain thread calls fn itself.
 * Returns:  what fn returned; -EINVAL (no function).
 */
BLITZ_API BLITZ_SUSPENDS int blitz_blocking(int (*fn)(void *arg), void *arg);

/* The options of a blocking future. A zeroed struct means none. */
typedef struct blitz_blocking_opts {
    void (*drop)(void *value,
                 void *ctx); /* called with fn's argument; must not suspend. NULL: none */
    void *ctx;
} blitz_blocking_opts;

/*
 * blitz_blocking() as a future: for stackless tasks, for combinators, and to leave at a deadline in any case:
 *
 *     blitz_blocking_future_init(&f, fn, arg, &opts);
 *     rc = blitz_await(&f.future, until);         // 0: f.result; -ETIMEDOUT, -ECANCELED: the call runs on
 *
 * It begins when it is first polled. A plain thread that polls it calls fn itself, and waits for it.
 */
typedef struct blitz_blocking_future {
    blitz_future future; /* to be awaited */
    int result; /* when ready: what fn returned; -ENOMEM, -EINVAL (no function): fn was not called */
    void *inside[5];
} blitz_blocking_future;

/*
 * Make a future of a call of fn(arg) on a thread of the pool. *Detachable*: after a cancel fn runs on without you, or
 * is not called at all if it had not begun.
 * Owns:     the future's memory is yours, and may be freed once the future is ready or cancelled. `arg` is yours again
 *           when the future is ready. After a cancel opts->drop gets it when fn has returned, or at once if fn was not
 *           called. So `arg` and everything that fn uses must not lie on the stack of a caller that may leave. Copies
 *           the options; NULL: none.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_blocking_future_init(blitz_blocking_future *f, int (*fn)(void *arg), void *arg,
                                          const blitz_blocking_opts *opts);

/*
 * Bind the calling task to its thread: the task runs on this thread, and no other task does. The binding ends after as
 * many unlocks, or with the task. For libraries that are tied to a thread (graphics, an interpreter, thread-local
 * state, a mutex held over a wait). A wait of such a task costs two thread switches. In a stackless task the lock ends
 * with the poll. On a plain thread both do nothing and return 0.
 * Suspends: never.
 * Returns:  lock: 0, -EAGAIN, -ENOMEM (no thread is available for the other tasks; also if so many are locked that
 *           threads_max would leave too few). unlock: 0, -EPERM (not locked).
 */
BLITZ_API BLITZ_MUST_USE int blitz_thread_lock(void);
BLITZ_API int blitz_thread_unlock(void);

/*
 * Call fn(arg) on a larger stack, for libraries that need more than a fiber has. The sizes are 64 KiB, 256 KiB, 1 MiB
 * and 8 MiB (of which the guard takes a page or two); the smallest one that holds `bytes` is used. It is a call: the
 * task stays the same, and may wait in fn.
 * Owns:     `arg` is fn's until this returns.
 * Suspends: only if fn does. Call from anywhere; a plain thread calls fn on its own stack.
 * Returns:  what fn returned; -EINVAL (no function, or more than 8 MiB), -ENOMEM (no such stack: fn was not called).
 */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int blitz_on_big_stack(int (*fn)(void *arg), void *arg,
                                                               size_t bytes);

BLITZ_END_DECLS

#endif
