/*
 * uring.h - what tests ask the keeper by completion.
 */
#ifndef BZ_IO_URING_H
#define BZ_IO_URING_H

#include "io/lent.h"
#include "io/poll.h"

/* How many submissions and completions the rings have room for that are made from here on: powers of two. */
extern unsigned bz_uring_submissions, bz_uring_completions;

/* The buffers that poll lends to the kernel. Nobody else uses it. */
const struct bz_lent *bz_uring_lent(struct bz_poll *poll);
/* How many submissions the kernel has not been handed yet. */
uint32_t bz_uring_pending(struct bz_poll *poll);

#endif
