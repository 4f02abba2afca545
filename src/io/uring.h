/*
 * uring.h - test access to the completion backend.
 */
#ifndef BZ_IO_URING_H
#define BZ_IO_URING_H

#include "io/provided.h"
#include "io/poll.h"

/* Set the queue sizes of rings made from here on: powers of two. */
extern unsigned bz_uring_submissions, bz_uring_completions;

/* The provided buffers of this poll, which is not in use otherwise. */
const struct bz_provided *bz_uring_provided(struct bz_poll *poll);
/* The number of pending submissions. */
uint32_t bz_uring_pending(struct bz_poll *poll);

#endif
