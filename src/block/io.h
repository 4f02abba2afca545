/*
 * io.h - operations on files, as the scheduler does them.
 *
 * The manual for code that is built on files: the network, streams.
 *
 *     struct bz_op op;
 *     bz_op_init(&op, file, BZ_OP_RECV);
 *     op.buffer.data = data, op.buffer.bytes = bytes;
 *     return bz_io_run(&op, "receive", until);
 *
 * For code that polls, there is an operation inside a future (struct bz_io_future). A file belongs to
 * the runtime in which it was opened. Any thread may use it, including a plain thread and a task of
 * another runtime.
 */
#ifndef BZ_BLOCK_IO_H
#define BZ_BLOCK_IO_H

#include "blitz/future.h"
#include "io/poll.h"
#include "io/ready.h"
#include "proc/state.h"
#include "sched/reap.h"

/* Log, once, why the calling thread cannot open files. Returns -EOPNOTSUPP. */
BZ_COLD int bz_io_refuse(void);

/*
 * Open a file for a descriptor that does not block, in the calling task's runtime.
 * Owns:    takes `fd` if it succeeds; flags: enum bz_file_flags.
 * Returns: 0, -ENOMEM, -EMFILE, -EOPNOTSUPP (the caller is no task, or its runtime has no backend).
 */
BZ_MUST_USE int bz_io_open(int fd, unsigned flags, struct bz_file **out);

/* Close the file: its operations return -EBADF. Never suspends. */
void bz_io_close(struct bz_file *f);

/*
 * Do an operation.
 * Owns:     borrows the operation and its buffers until it returns.
 * Suspends: until it is done, `until`, or a cancel of the calling task. An operation that need not wait
 *           is done whatever the deadline is.
 * Returns:  its result; -ETIMEDOUT, -ECANCELED: nothing was done; -EBADF: closed meanwhile.
 */
int64_t bz_io_run(struct bz_op *op, const char *what, blitz_deadline until);

/* bz_io_run for a BZ_OP_RECV or BZ_OP_SEND of a handle (its operations have a generation): the hot ones. */
int64_t bz_io_recv(struct bz_op *op, const char *what, blitz_deadline until);
int64_t bz_io_send(struct bz_op *op, const char *what, blitz_deadline until);
/* Wake the next waiter of a file. */
BZ_COLD void bz_io_wake_next(struct bz_file *f, struct bz_wake *next);
/* Try such a call before there is an operation. Returns true: done, *result. False: nothing was done. */
BZ_MUST_USE static BZ_ALWAYS_INLINE bool bz_io_call(struct bz_file *f, uint32_t generation,
                                                    const struct bz_call *c, int64_t *result)
{
    struct bz_wake next = {.kind = BZ_WAKE_NONE};
    bool is_done =
        BZ_LIKELY(!f->files->completes) && bz_ready_call(f, generation, c, result, &next);
    if (BZ_UNLIKELY(next.kind != BZ_WAKE_NONE))
        bz_io_wake_next(f, &next);
    return is_done;
}

/* An operation as a future. Revocable by readiness, pinned by completion. */
struct bz_io_future {
    blitz_future future;
    struct bz_op op;
};
void bz_io_future_init(struct bz_io_future *f, struct bz_file *file, enum bz_op_code code);

/* Return its result. blitz_future_output reports a result above INT_MAX as INT_MAX; this function does not. */
static inline int64_t bz_io_future_result(const struct bz_io_future *f)
{
    return f->op.result;
}

/* ---- for the scheduler ---- */

/* Create the polls of a runtime. Readiness backends open nothing yet. Returns 0, or a negative errno, logged. */
BZ_MUST_USE int bz_io_init(struct bz_runtime *rt);
void bz_io_fini(struct bz_runtime *rt);

/* True if the kernel holds this file's operations and their buffers until they complete. */
bool bz_io_completes(const struct bz_file *f);
/* True if the kernel may interrupt calls on threads that run tasks, because of operations they submitted. */
bool bz_io_interrupts(const struct bz_runtime *rt);

#endif
