/*
 * attempt.h - try an operation as a non-blocking system call.
 */
#ifndef BZ_IO_ATTEMPT_H
#define BZ_IO_ATTEMPT_H

#include "io/op.h"

/*
 * Make the call. Any thread; no lock is held.
 * Returns: bytes, a descriptor or 0; -EAGAIN (it would block); any other -errno.
 */
int64_t bz_attempt(struct bz_op *op);

/* The same for a blocking descriptor: only if it is ready. */
int64_t bz_attempt_if_ready(struct bz_op *op);
/* Make the descriptor blocking. */
void bz_let_block(int fd);

/* True if, after this result, the next call may succeed without waiting. */
bool bz_attempt_left_more_in_full(const struct bz_op *op, int64_t result);
static inline bool bz_attempt_left_more(const struct bz_op *op, int64_t result)
{
    if (result <= 0 || !(op->file->flags & BZ_FILE_STREAM) || (op->flags & MSG_PEEK))
        return true;
    if (op->side == BZ_SIDE_IN && (op->file->flags & BZ_FILE_PASSES_FDS))
        return true;
    if (op->code == BZ_OP_RECV || op->code == BZ_OP_SEND)
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

#endif
