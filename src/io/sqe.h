/*
 * sqe.h - encode an operation as an io_uring submission.
 */
#ifndef BZ_IO_SQE_H
#define BZ_IO_SQE_H

#include "io/op.h"
#include "io/uring_abi.h"

/* Fill in a zeroed submission except its user_data. Return false if it only polls the file, because
 * rings have no such operation. */
bool bz_sqe_fill(struct bz_uring_sqe *sqe, struct bz_op *op);
/* Encode a poll for this operation. */
void bz_sqe_poll(struct bz_uring_sqe *sqe, const struct bz_op *op);

#endif
