/*
 * sqe.h - an operation in the kernel's words: what is written into a submission.
 */
#ifndef BZ_IO_SQE_H
#define BZ_IO_SQE_H

#include "io/op.h"
#include "io/uring_abi.h"

/* All of a submission but its user_data; it comes zeroed. False: it only asks whether the file is ready, since
 * rings have no such operation. */
bool bz_sqe_fill(struct bz_uring_sqe *sqe, struct bz_op *op);
/* Is the file ready for that operation? */
void bz_sqe_poll(struct bz_uring_sqe *sqe, const struct bz_op *op);

#endif
