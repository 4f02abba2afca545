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
BZ_MUST_USE int bz_io_open(blitz_fd fd, unsigned flags, struct bz_file **out);

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

/* For block/recv.h, which has a BZ_OP_RECV inline that begins with a wait. The hook of its wait, a struct bz_recv. */
bz_ctx_hook bz_io_recv_hook;
extern const struct bz_request_ops bz_io_by_readiness;
/* Go on with the operation after a wait with this outcome. Returns its result. */
int64_t bz_io_recv_after(struct bz_op *op, const char *what, uint32_t outcome);
/* Go on after a try that returned n. Under the file's lock, which it releases. */
int64_t bz_io_recv_end(struct bz_op *op, const char *what, uint32_t overs, int64_t n);

/* bz_io_run for a BZ_OP_RECV or BZ_OP_SEND of a handle (its operations have a generation): the hot ones. */
int64_t bz_io_recv(struct bz_op *op, const char *what, blitz_deadline until);
int64_t bz_io_send(struct bz_op *op, const char *what, blitz_deadline until);
/* The rest of a call that was begun by bz_ready_call_begin() (io/ready.h) and not ended in the usual way; n: what the system
 * returned. Returns true: done, *result. False: it must wait, or be repeated. */
BZ_MUST_USE bool bz_io_call_end(struct bz_file *f, const struct bz_call *c, int64_t n,
                                int64_t *result);

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
