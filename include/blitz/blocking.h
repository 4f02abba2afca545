/*
 * blitz/blocking.h - calls that block, among tasks that wait.
 *
 * A task that waits in blitz takes nobody's time. A library that knows nothing of blitz blocks its
 * thread: a database client, getaddrinfo(), a read of a slow disk, a foreign mutex. The ways to call it,
 * by how long it takes:
 *
 *     blitz_syscall_enter();                      // usually short: made right here, at the cost of some
 *     n = read(fd, buffer, sizeof buffer);        // nanoseconds; if it takes long, others run meanwhile
 *     int err = errno;
 *     blitz_syscall_leave();
 *
 *     rc = blitz_block_in_place(query, &q);       // the same around a function
 *
 *     rc = blitz_blocking(query, &q);             // microseconds to minutes: on a thread of the pool
 *
 *     blitz_blocking_future_init(&call, resolve, r, &opts);     // and do not wait longer than `until`
 *     rc = blitz_await(&call.future, until);      // for it: opts.drop gets r when it has returned
 *
 *     blitz_thread_lock();                        // and for a library that is tied to a thread
 *
 * A big appetite for stack is the other thing such libraries have:
 *
 *     rc = blitz_on_big_stack(render, page, 4 << 20);
 *
 * The pool. Its threads are started on demand, up to the runtime options' threads_max with the workers
 * counted in, and go after ten seconds without use. Calls beyond that wait in a line, first come
 * first served; the last few threads are kept for workers. If no thread can be had at all the call is
 * made in place: it may take longer, it is never lost. (With the uring backend a system call in there may
 * then fail with EINTR, or transfer less than asked for.) On such a thread fn is no task: blitz_task_current()
 * is NULL, a wait blocks the thread, and a blitz_blocking() inside it is made in place, so nested
 * calls cannot wait for a thread they hold themselves. But a call that waits for what *another* blocking
 * call does may wait for ever once threads_max is reached: use tasks for that.
 *
 * errno is of the thread that fn ran on: let fn return it, negative, as everything here does.
 */
#ifndef BLITZ_BLOCKING_H
#define BLITZ_BLOCKING_H

#include <stddef.h>

#include "blitz/api.h"
#include "blitz/future.h"
#include "blitz/time.h"

BLITZ_BEGIN_DECLS

/*
 * A call that may block begins. Until blitz_syscall_leave() the task stands where it stood, and its
 * worker's place is free for others: if the call takes long and somebody waits to be run, another
 * thread goes on with them. Pairs nest. A task that waits in between, in blitz, waits as ever. On a
 * plain thread both do nothing.
 * Suspends: never.
 */
BLITZ_API void blitz_syscall_enter(void);

/*
 * The call is over. If somebody has the worker's place, the task takes a free one, its old one if it
 * can, or stands in line with the others. errno is yours until here, and another thread's
 * afterwards, perhaps. A leave without an enter aborts in debug builds.
 * Suspends: until there is a place for this task.
 */
BLITZ_API BLITZ_SUSPENDS void blitz_syscall_leave(void);

/*
 * Call fn(arg) here and now, between an enter and a leave of the above. With the keeper "uring"
 * (blitz_runtime_opts.io) the kernel interrupts system calls of threads that have handed operations to it:
 * there it is called on a thread of the pool instead, and the two above protect nothing.
 * Owns:     `arg` is fn's until this returns.
 * Suspends: after fn has returned, perhaps, until it is this task's turn. Call from anywhere.
 * Returns:  what fn returned; -EINVAL (no function).
 */
BLITZ_API BLITZ_SUSPENDS int blitz_block_in_place(int (*fn)(void *arg), void *arg);

/*
 * Call fn(arg) on a thread of the pool.
 * Owns:     `arg` is fn's until this returns.
 * Suspends: until fn has returned: the caller's memory is in use, so a cancel waits for that, too,
 *           and is found by the next wait. Call from anywhere; a plain thread calls fn itself.
 * Returns:  what fn returned; -EINVAL (no function).
 */
BLITZ_API BLITZ_SUSPENDS int blitz_blocking(int (*fn)(void *arg), void *arg);

/* Zeroed: nothing. */
typedef struct blitz_blocking_opts {
    void (*drop)(void *value, void *ctx); /* gets fn's argument; must not suspend. NULL: none */
    void *ctx;
} blitz_blocking_opts;

/*
 * blitz_blocking() as a future: for stackless tasks, for combinators, and to leave at a deadline, come what may:
 *
 *     blitz_blocking_future_init(&f, fn, arg, &opts);
 *     rc = blitz_await(&f.future, until);         // 0: f.result; -ETIMEDOUT, -ECANCELED: the call is on its own
 *
 * It begins when it is first polled. A plain thread that polls it calls fn itself, and waits for it.
 */
typedef struct blitz_blocking_future {
    blitz_future future; /* to be awaited */
    int result; /* when ready: what fn returned; -ENOMEM, -EINVAL (no function): fn was not called */
    void *inside[5];
} blitz_blocking_future;

/*
 * A call of fn(arg) on a thread of the pool. *Detachable*: after a cancel fn goes on without you, or is not
 * called any more if it had not begun.
 * Owns:     the future's memory is yours, and free once it was ready or cancelled. `arg` is yours
 *           again when it is ready; after a cancel opts->drop gets it, when fn has returned, or at once if
 *           fn was not called. So `arg` and all that fn uses must not lie on the stack of a caller that may
 *           leave. Copies the options; NULL: none.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_blocking_future_init(blitz_blocking_future *f, int (*fn)(void *arg), void *arg,
                                          const blitz_blocking_opts *opts);

/*
 * The calling task runs on this thread, and nobody else does, until as many unlocks or its end: for
 * libraries that are tied to a thread (graphics, an interpreter, thread-local state, a mutex held
 * over a wait). It costs a wait of such a task two changes of threads. In a stackless task the lock ends
 * with the poll. On a plain thread both do nothing and return 0.
 * Suspends: never.
 * Returns:  lock: 0, -EAGAIN, -ENOMEM (no thread is to be had for the others to go on with; also if so
 *           many are locked that threads_max would leave too few). unlock: 0, -EPERM (not locked).
 */
BLITZ_API BLITZ_MUST_USE int blitz_thread_lock(void);
BLITZ_API int blitz_thread_unlock(void);

/*
 * Call fn(arg) on a larger stack, for libraries that need more than a fiber has: 64 KiB, 256 KiB,
 * 1 MiB or 8 MiB (of which the guard takes a page or two), whichever holds `bytes`. It is a call: the
 * task stays the same, and may wait in there.
 * Owns:     `arg` is fn's until this returns.
 * Suspends: only if fn does. Call from anywhere; a plain thread has the stack it has, and calls fn
 *           on that.
 * Returns:  what fn returned; -EINVAL (no function, or more than 8 MiB), -ENOMEM (no such stack to
 *           be had: fn was not called).
 */
BLITZ_API BLITZ_SUSPENDS BLITZ_MUST_USE int blitz_on_big_stack(int (*fn)(void *arg), void *arg,
                                                               size_t bytes);

BLITZ_END_DECLS

#endif
