/*
 * ring.h - one ring of the kernel's: making it, putting submissions in, taking completions out.
 *
 * No more than the mechanics; what is submitted and who is told is uring.c's. Not for two threads
 * at once: the caller has a lock, but for the wait, in which any number of threads may be.
 */
#ifndef BZ_IO_RING_H
#define BZ_IO_RING_H

#include <stdbool.h>
#include <stddef.h>

#include "base/bz_atomic.h"
#include "base/compiler.h"
#include "io/uring_abi.h"

/* Built plain: one thing at a time, and the kernel does nothing for us that could be done without. */
#if defined(BZ_PLAIN)
#define BZ_RING_IS_PLAIN 1
#else
#define BZ_RING_IS_PLAIN 0
#endif

struct bz_ring {
    int fd;
    unsigned features;
    uint32_t sq_mask, cq_mask, sq_entries;
    bz_atomic(uint32_t) *sq_head, *sq_tail, *sq_flags, *cq_head, *cq_tail;
    uint32_t *sq_array;
    struct bz_uring_sqe *sqe;
    struct bz_uring_cqe *cqe;
    uint32_t tail; /* ours; sq_tail follows */
    void *rings, *sqes;
    size_t rings_bytes, sqes_bytes;
};

/*
 * Make a ring with room for that many submissions and completions (powers of two).
 * It has completed a NOP when this returns 0.
 * Returns: 0; -ENOSYS, -EPERM, -EACCES (there are none, or a filter refuses to make, register or enter
 *          one), -ENOMEM (RLIMIT_MEMLOCK), -EMFILE,
 *          -EOPNOTSUPP (a kernel too old: it loses completions, or cannot wait with a deadline).
 */
BZ_MUST_USE int bz_ring_open(struct bz_ring *r, unsigned submissions, unsigned completions);
void bz_ring_close(struct bz_ring *r);

/* Room for one more submission, zeroed; NULL: hand some in first. It is in the ring at once. */
struct bz_uring_sqe *bz_ring_put(struct bz_ring *r);
/* How many are in the ring that the kernel has not taken. */
uint32_t bz_ring_pending(struct bz_ring *r);
/* Hand in what is pending. Returns 0, or a negative errno: some are still pending. */
int bz_ring_submit(struct bz_ring *r);

/* The next completion, or NULL. It is the kernel's again after bz_ring_seen. */
const struct bz_uring_cqe *bz_ring_peek(struct bz_ring *r);
void bz_ring_seen(struct bz_ring *r);
/* More completed than there is room for: bz_ring_fetch brings the rest. */
bool bz_ring_has_overflow(struct bz_ring *r);
void bz_ring_fetch(struct bz_ring *r);

/* A sleep: what was pending when it was meant, and how long at most. */
struct bz_ring_nap {
    int fd;
    uint32_t submit; /* handed in by the same call */
    uint64_t left_ns;
    bool is_for_ever;
};

/* Under the lock: show the kernel what is pending, and say what a sleep that hands it in looks like. */
struct bz_ring_nap bz_ring_show(struct bz_ring *r);
/*
 * Hand in, and sleep until something completes. Any thread, no lock: whoever submits meanwhile may be
 * faster, and the rest is still pending if it fails.
 * Returns: 0: look. -EPERM, -EACCES, -ENOSYS: the system refuses the call, and there was no sleep.
 */
int bz_ring_sleep(const struct bz_ring_nap *nap);

/* Tell the kernel of something. Returns 0 or a negative errno. */
int bz_ring_register(const struct bz_ring *r, unsigned what, void *arg, unsigned count);

#endif
