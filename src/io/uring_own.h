/*
 * uring_own.h - the state of the completion backend, shared by its two files: uring.c, which has the essay, and
 * uring_submit.c.
 */
#ifndef BZ_IO_URING_OWN_H
#define BZ_IO_URING_OWN_H

#include "io/ring.h"
#include "io/uring.h"

/* The kinds of completions that belong to no operation. An operation's address may have the BZ_URING_POLLED
 * bit. */
enum { BZ_URING_KICK = 2, BZ_URING_ASKED = 4, BZ_URING_BELL = 8, BZ_URING_POLLED = 1 };

/* A poll that was abandoned on a denied ring. */
struct bz_lost {
    uint64_t key;
    bool is_told;
};

/* An entry for which the ring had no room, because the kernel takes none for now. */
enum bz_later_what { BZ_LATER_BEGIN, BZ_LATER_BEGIN_WITH_POLL, BZ_LATER_END };
struct bz_later {
    struct bz_op *op;
    uint64_t key;    /* of END: what to cancel */
    uint8_t what;    /* enum bz_later_what */
    uint8_t is_over; /* the operation was cancelled meanwhile */
};

struct bz_uring_own {
    struct bz_lock lock;
    struct bz_ring ring;
    struct bz_provided provided;
    unsigned inside;      /* threads that sleep in it */
    unsigned refusals;    /* enters refused in a row, for now */
    bool is_denied;       /* enters are refused for good */
    bool has_bell;        /* the ring polls the bell */
    bool rings_once;      /* a kernel before 5.13: a poll ends with its first event */
    int bell;             /* an eventfd; -1: there is none. Constant */
    struct bz_lost *lost; /* room for lost_room; on a denied ring */
    size_t lost_count, lost_room;
    struct bz_later *later; /* room for later_room; oldest first */
    size_t later_count, later_room;
};

static inline struct bz_uring_own *bz_uring_own_of(struct bz_poll *poll)
{
    return bz_load_relaxed(&poll->own); /* relaxed: made before any other thread read it */
}

static inline struct bz_op *bz_uring_op_of(uint64_t key)
{
    return (void *)(uintptr_t)(key & ~(uint64_t)BZ_URING_POLLED);
}

static inline void bz_uring_lock(struct bz_poll *poll)
{
    bz_lock_take(&bz_uring_own_of(poll)->lock, poll->os);
}

static inline void bz_uring_unlock(struct bz_poll *poll)
{
    bz_lock_drop(&bz_uring_own_of(poll)->lock, poll->os);
}

/* ---- uring_submit.c: all under the ring's lock, but for the last two ---- */

/* An enter was refused. */
void bz_uring_was_refused(struct bz_uring_own *own, int err);
/* Submit the pending entries. Returns 0, or a negative errno: they are still pending. */
int bz_uring_submit(struct bz_poll *poll);
/* Submit entries for a waiter on another thread. */
void bz_uring_hand_in(struct bz_poll *poll);
/* Get room in the ring; NULL: the kernel takes no entry for now. */
struct bz_uring_sqe *bz_uring_put(struct bz_poll *poll);
/* Put the operation, or a poll for it, into the ring. Returns 0, -EIO, -ENOMEM. Under the file's lock. */
int bz_uring_begin(struct bz_poll *poll, struct bz_op *op, bool polls_first);
/* Ask the kernel to end an operation in flight. Under the file's lock. */
void bz_uring_request_end(struct bz_poll *poll, struct bz_op *op);

#endif
