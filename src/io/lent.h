/*
 * lent.h - provided buffers of io_uring: the kernel picks one for a receive when data arrives.
 *
 * Not thread-safe: the caller holds the ring's lock.
 */
#ifndef BZ_IO_LENT_H
#define BZ_IO_LENT_H

#include "io/op.h"
#include "io/ring.h"

enum {
    BZ_LENT_BYTES = 4096, /* size of a buffer; a larger receive uses the caller's */
    BZ_LENT_FIRST = 16,   /* buffers at the start; one more for each receive that found none */
    BZ_LENT_MAX = 1024
};

enum bz_lent_state { BZ_LENT_UNTRIED = 0, BZ_LENT_THERE, BZ_LENT_REFUSED };

struct bz_lent {
    enum bz_lent_state state;
    struct bz_uring_buf *entry; /* shared with the kernel; the tail is in the first */
    bz_atomic(uint16_t) *shared_tail;
    char *data; /* BZ_LENT_MAX buffers; a buffer that was never provided is never touched */
    uint16_t tail, count; /* our tail; the number of buffers */
    unsigned served, dry; /* receives that used one, and that found none */
};

/* True if there are buffers. The first call makes them. */
bool bz_lent_is_there(struct bz_lent *l, const struct bz_ring *r);
/* True if this receive uses a provided buffer. */
bool bz_lent_is_for(const struct bz_op *op);
/* Change a filled-in submission to use a provided buffer. */
void bz_lent_select(struct bz_uring_sqe *sqe);
/* Process its completion: copy the bytes to the owner, and provide the buffer again. */
void bz_lent_copy(struct bz_lent *l, const struct bz_uring_cqe *c, const struct bz_op *op);
/* A receive found no buffer: provide more. */
void bz_lent_more(struct bz_lent *l);
void bz_lent_fini(struct bz_lent *l);

#endif
