/*
 * provided.h - provided buffers of io_uring: the kernel picks one for a receive when data arrives.
 *
 * Not thread-safe: the caller holds the ring's lock.
 */
#ifndef BZ_IO_PROVIDED_H
#define BZ_IO_PROVIDED_H

#include "io/op.h"
#include "io/ring.h"

enum {
    BZ_PROVIDED_BYTES = 4096, /* size of a buffer; a larger receive uses the caller's */
    BZ_PROVIDED_FIRST = 16,   /* buffers at the start; one more for each receive that found none */
    BZ_PROVIDED_MAX = 1024
};

enum bz_provided_state { BZ_PROVIDED_UNTRIED = 0, BZ_PROVIDED_THERE, BZ_PROVIDED_REFUSED };

struct bz_provided {
    enum bz_provided_state state;
    struct bz_uring_buf *entry; /* shared with the kernel; the tail is in the first */
    bz_atomic(uint16_t) *shared_tail;
    char *data; /* BZ_PROVIDED_MAX buffers; a buffer that was never provided is never touched */
    uint16_t tail, count; /* our tail; the number of buffers */
    unsigned served, dry; /* receives that used one, and that found none */
};

/* True if there are buffers. The first call makes them. */
bool bz_provided_is_ready(struct bz_provided *l, const struct bz_ring *r);
/* True if this receive uses a provided buffer. */
bool bz_provided_is_for(const struct bz_op *op);
/* Change a filled-in submission to use a provided buffer. */
void bz_provided_select(struct bz_uring_sqe *sqe);
/* Process its completion: copy the bytes to the owner, and provide the buffer again. */
void bz_provided_copy(struct bz_provided *l, const struct bz_uring_cqe *c, const struct bz_op *op);
/* A receive found no buffer: provide more. */
void bz_provided_more(struct bz_provided *l);
void bz_provided_fini(struct bz_provided *l);

#endif
