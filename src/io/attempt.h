/*
 * attempt.h - try an operation as a non-blocking system call.
 */
#ifndef BZ_IO_ATTEMPT_H
#define BZ_IO_ATTEMPT_H

#include "base/error.h"
#include "io/op.h"
#include "io/sys.h"

/*
 * Make the call. Any thread; no lock is held.
 * Returns: bytes, a descriptor or 0; -EAGAIN (it would block); any other -errno.
 */
int64_t bz_attempt(struct bz_op *op);

/* The same for a blocking descriptor: only if it is ready. */
int64_t bz_attempt_if_ready(struct bz_op *op);
/* Make the descriptor blocking. */
void bz_let_block(int fd);

/* True if, after this result, the next call may succeed without waiting. `code` is op->code, perhaps a constant. */
bool bz_attempt_left_more_in_full(const struct bz_op *op, int64_t result);
static BZ_ALWAYS_INLINE bool bz_attempt_left_more(const struct bz_op *op, enum bz_op_code code,
                                                  int64_t result)
{
    unsigned shown = BZ_FILE_STREAM; /* a short result shows that nothing is left */
    unsigned is = op->file->flags;
    if (bz_op_side(code) == BZ_SIDE_IN)
        is &= BZ_FILE_STREAM | BZ_FILE_PASSES_FDS;
    else
        is &= BZ_FILE_STREAM;
    if (result <= 0 || is != shown || (op->flags & MSG_PEEK))
        return true;
    if (code == BZ_OP_RECV || code == BZ_OP_SEND)
        return (size_t)result >= op->buffer.bytes;
    return bz_attempt_left_more_in_full(op, result);
}

/* For tests: called with the name of each call before it. If it returns an errno, the call is not
 * made and fails with it. NULL: none. */
extern int (*bz_io_fault)(const char *call);

/* The same hook for the calls of a backend. */
static inline int bz_io_fault_of(const char *call)
{
    return __builtin_expect(bz_io_fault != NULL, 0) ? bz_io_fault(call) : 0;
}

/* The two hot calls. Results as of bz_attempt, and -EINTR. */
static BZ_ALWAYS_INLINE int64_t bz_call_recv(const struct bz_op *op)
{
    int64_t n = bz_sys_recv(op->file->fd, op->buffer.data, op->buffer.bytes, op->flags | MSG_DONTWAIT);
    return BZ_LIKELY(n >= 0) ? n : -bz_error_of((int)-n);
}
static BZ_ALWAYS_INLINE int64_t bz_call_send(const struct bz_op *op)
{
    int64_t n = bz_sys_send(op->file->fd, op->buffer.data, op->buffer.bytes,
                            op->flags | MSG_DONTWAIT | MSG_NOSIGNAL);
    return BZ_LIKELY(n >= 0) ? n : -bz_error_of((int)-n);
}

/* bz_attempt; `code` is op->code, perhaps a constant: a receive or a send is then made here. */
static BZ_ALWAYS_INLINE int64_t bz_attempt_as(struct bz_op *op, enum bz_op_code code)
{
    if ((code != BZ_OP_RECV && code != BZ_OP_SEND) || BZ_UNLIKELY(bz_io_fault != NULL))
        return bz_attempt(op);
    int64_t n = code == BZ_OP_RECV ? bz_call_recv(op) : bz_call_send(op);
    return BZ_LIKELY(n != -EINTR) ? n : bz_attempt(op);
}

#endif
