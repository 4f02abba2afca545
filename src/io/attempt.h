/*
 * attempt.h - an operation as a system call that does not wait.
 */
#ifndef BZ_IO_ATTEMPT_H
#define BZ_IO_ATTEMPT_H

#include "io/op.h"

/*
 * Make the call. Any thread; no lock is held.
 * Returns: bytes, a descriptor or 0; -EAGAIN (it would have to wait); any other -errno.
 */
int64_t bz_attempt(struct bz_op *op);

/* The same for a descriptor that may block: only if it is ready. */
int64_t bz_attempt_if_ready(struct bz_op *op);
/* From here on the descriptor blocks. */
void bz_let_block(int fd);

/* After that result: may there be more to be had, so that the next one need not wait? */
bool bz_attempt_left_more_in_full(const struct bz_op *op, int64_t result);
static inline bool bz_attempt_left_more(const struct bz_op *op, int64_t result)
{
    if (result <= 0 || !(op->file->flags & BZ_FILE_STREAM) || (op->flags & MSG_PEEK))
        return true;
    if (op->side == BZ_SIDE_IN && (op->file->flags & BZ_FILE_CARGO) && !BZ_BROKEN(163))
        return true;
    if (op->code == BZ_OP_RECV || op->code == BZ_OP_SEND)
        return (size_t)result >= op->buffer.bytes;
    return bz_attempt_left_more_in_full(op, result);
}

/* For tests: asked before each call by its name; not 0: the call is not made, and fails with that
 * errno. NULL: nobody asks. */
extern int (*bz_io_fault)(const char *call);

/* What a keeper's own calls ask. */
static inline int bz_io_fault_of(const char *call)
{
    return __builtin_expect(bz_io_fault != NULL, 0) ? bz_io_fault(call) : 0;
}

#endif
