/*
 * ring.h - one io_uring: making it, adding submissions, taking completions.
 *
 * Only the mechanics; uring.c decides what to submit and which task to wake. Not thread-safe: the
 * caller holds a lock, except in the wait, in which any number of threads may be.
 */
#ifndef BZ_IO_RING_H
#define BZ_IO_RING_H

#include <stdbool.h>
#include <stddef.h>

#include "base/bz_atomic.h"
#include "base/compiler.h"
#include "io/uring_abi.h"

/* Plain builds: submit and sleep separately, and use no optional kernel feature. */
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
    uint32_t tail; /* our tail; sq_tail follows */
    void *rings, *sqes;
    size_t rings_bytes, sqes_bytes;
};

/*
 * Make a ring with room for that many submissions and completions (powers of two).
 * It has completed a NOP when this returns 0.
 * Returns: 0; -ENOSYS, -EPERM, -EACCES (there are none, or a filter refuses to make, register or
 *          enter one), -ENOMEM (RLIMIT_MEMLOCK), -EMFILE, -EOPNOTSUPP (a kernel too old: it loses
 *          completions, or cannot wait with a deadline).
 */
BZ_MUST_USE int bz_ring_open(struct bz_ring *r, unsigned submissions, unsigned completions);
void bz_ring_close(struct bz_ring *r);

/* Get a zeroed entry for a submission, which is in the ring at once; NULL: submit some first. */
struct bz_uring_sqe *bz_ring_put(struct bz_ring *r);
/* Take back the newest entry that the kernel has not taken; NULL: there is none. No thread may be inside a
 * call that submits. */
const struct bz_uring_sqe *bz_ring_unput(struct bz_ring *r);
/* True if an entry with that key is still in the ring. */
bool bz_ring_has(struct bz_ring *r, uint64_t key);
/* The number of entries that the kernel has not taken yet. */
uint32_t bz_ring_pending(struct bz_ring *r);
/* Submit the pending entries. Returns 0, or a negative errno: some are still pending. */
int bz_ring_submit(struct bz_ring *r);

/* The next completion, or NULL. The kernel owns it again after bz_ring_seen. */
const struct bz_uring_cqe *bz_ring_peek(struct bz_ring *r);
void bz_ring_seen(struct bz_ring *r);
/* True if completions overflowed the queue, or are not posted yet: bz_ring_fetch gets them. */
bool bz_ring_has_more(struct bz_ring *r);
void bz_ring_fetch(struct bz_ring *r);

/* Parameters of a sleep: the pending entries at its start, and its timeout. */
struct bz_ring_nap {
    int fd;
    uint32_t submit; /* submitted by the same call */
    uint64_t left_ns;
    bool is_for_ever;
};

/* Under the lock: publish the pending entries, and prepare a sleep that submits them. */
struct bz_ring_nap bz_ring_show(struct bz_ring *r);
/*
 * Submit, and sleep until an operation completes. Any thread, no lock: another thread may submit
 * first; on failure the rest is still pending.
 * Returns: 0: check for completions. A negative errno: the system refuses the call, for now or for
 *          good, and there was no sleep.
 */
int bz_ring_sleep(const struct bz_ring_nap *nap);

/* Call io_uring_register. Returns 0 or a negative errno. */
int bz_ring_register(const struct bz_ring *r, unsigned what, void *arg, unsigned count);

#endif
