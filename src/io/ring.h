/*
 * ring.h - one ring of the kernel's: making it, putting submissions in, taking completions out.
 *
 * No more than the mechanics; what is submitted and who is told is uring.c's. Not for two threads
 * at once: the caller has a lock, but for the two waits.
 */
#ifndef BZ_IO_RING_H
#define BZ_IO_RING_H

#include <stdbool.h>
#include <stddef.h>

#include "base/bz_atomic.h"
#include "base/compiler.h"
#include "io/uring_abi.h"

struct bz_ring {
    int fd;
    unsigned features;
    uint32_t sq_mask, cq_mask, sq_entries;
    bz_atomic(uint32_t) *sq_head, *sq_tail, *sq_flags, *cq_head, *cq_tail;
    uint32_t *sq_array;
    struct bz_uring_sqe *sqe;
    struct bz_uring_cqe *cqe;
    uint32_t tail;    /* ours; sq_tail follows */
    uint32_t pending; /* put in, and not handed to the kernel yet */
    void *rings, *sqes;
    size_t rings_bytes, sqes_bytes;
};

/*
 * Make a ring with room for that many submissions and completions (powers of two).
 * Returns: 0; -ENOSYS, -EPERM (there are none, or not for us), -ENOMEM (RLIMIT_MEMLOCK), -EMFILE,
 *          -ENOTSUP (a kernel too old: it loses completions, or cannot wait with a deadline).
 */
BZ_MUST_USE int bz_ring_open(struct bz_ring *r, unsigned submissions, unsigned completions);
void bz_ring_close(struct bz_ring *r);

/* Room for one more submission, zeroed; NULL: hand some in first. It is in the ring at once. */
struct bz_uring_sqe *bz_ring_put(struct bz_ring *r);
/* Hand in what is pending. Returns 0, or a negative errno: some are still pending. */
int bz_ring_submit(struct bz_ring *r);

/* The next completion, or NULL. It is the kernel's again after bz_ring_seen. */
const struct bz_uring_cqe *bz_ring_peek(struct bz_ring *r);
void bz_ring_seen(struct bz_ring *r);
/* More completed than there is room for: bz_ring_fetch brings the rest. */
bool bz_ring_has_overflow(struct bz_ring *r);
void bz_ring_fetch(struct bz_ring *r);

/* Sleep until something completes. Any thread, no lock. Returns 0, -ETIME, -EINTR, ... */
int bz_ring_wait(int fd, uint64_t left_ns, bool is_for_ever);

#endif
