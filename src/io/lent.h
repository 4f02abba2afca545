/*
 * lent.h - buffers that a ring of the kernel's may fill: a receive takes one when there is data.
 *
 * Not for two threads at once: whoever uses it has the ring's lock.
 */
#ifndef BZ_IO_LENT_H
#define BZ_IO_LENT_H

#include "io/op.h"
#include "io/ring.h"

enum {
    BZ_LENT_BYTES = 4096, /* of a buffer; a receive with more room brings its own */
    BZ_LENT_FIRST = 16,   /* lent to begin with; one more for each receive that found none */
    BZ_LENT_MAX = 1024
};

enum bz_lent_state { BZ_LENT_UNTRIED = 0, BZ_LENT_THERE, BZ_LENT_REFUSED };

struct bz_lent {
    enum bz_lent_state state;
    struct bz_uring_buf *entry; /* shared with the kernel; the tail is in the first */
    bz_atomic(uint16_t) *shared_tail;
    char *data;           /* BZ_LENT_MAX buffers; what was never lent is never touched */
    uint16_t tail, count; /* ours; how many there are */
    unsigned served, dry; /* receives that had one, and that found none */
};

/* Are there any? Makes them, the first time. */
bool bz_lent_is_there(struct bz_lent *l, const struct bz_ring *r);
/* Does that receive take one? */
bool bz_lent_is_for(const struct bz_op *op);
/* Its submission, filled in, is for one of them from here on. */
void bz_lent_select(struct bz_uring_sqe *sqe);
/* Its completion: the bytes are its owner's, and the buffer is lent again. */
void bz_lent_copy(struct bz_lent *l, const struct bz_uring_cqe *c, const struct bz_op *op);
/* A receive found none: lend more. */
void bz_lent_more(struct bz_lent *l);
void bz_lent_fini(struct bz_lent *l);

#endif
